//! A smaller script that differs in the same way: calls are left out one by one, then what is in them becomes less.

use nodewise_machine::{MemPolicy, ModeFlags, NodeSet};
use nodewise_syscall::BindOptions;

use crate::adapt::fewer_pages;
use crate::script::{Call, Part, Script, Step};

/// Shrinks a script for as long as what is left still differs, and with at most this many attempts.
pub fn shrunk(script: Script, most: usize, differs: impl FnMut(&Script) -> bool) -> Script {
    let mut shrinker = Shrinker { script, left: most, differs };
    loop {
        let before = shrinker.script.clone();
        shrinker.drop_calls();
        shrinker.drop_steps();
        shrinker.simplify();
        if shrinker.script == before || shrinker.left == 0 {
            return shrinker.script;
        }
    }
}

struct Shrinker<F> {
    script: Script,
    left: usize,
    differs: F,
}

impl<F: FnMut(&Script) -> bool> Shrinker<F> {
    /// Takes a candidate if it differs.
    fn attempt(&mut self, candidate: Script) -> bool {
        if self.left == 0 || candidate == self.script {
            return false;
        }
        self.left -= 1;
        let taken = (self.differs)(&candidate);
        if taken {
            self.script = candidate;
        }
        taken
    }

    /// Leaves out calls, from the end on: halves of the script first, then ever fewer at once. What is behind the
    /// difference goes with the first attempts.
    fn drop_calls(&mut self) {
        let mut size = (self.script.calls.len() / 2).max(1);
        loop {
            let mut end = self.script.calls.len();
            while end > 0 {
                let start = end.saturating_sub(size);
                self.attempt(self.script.without(start..end));
                end = start.min(self.script.calls.len());
            }
            if size == 1 {
                return;
            }
            size /= 2;
        }
    }

    fn drop_steps(&mut self) {
        for at in (0..self.script.calls.len()).rev() {
            let mut step = self.script.calls[at].steps();
            while step > 0 {
                step -= 1;
                let fewer = self.script.calls[at].with_steps(&|other| other != step);
                if let Some(fewer) = fewer {
                    self.attempt(self.script.with(at, fewer));
                }
            }
        }
    }

    /// Makes less of each call, as long as one way to do so works.
    fn simplify(&mut self) {
        let mut at = self.script.calls.len();
        while at > 0 {
            at = (at - 1).min(self.script.calls.len().saturating_sub(1));
            while self.left > 0 && self.simplify_call(at) {}
        }
        let plain = self.script.weights.iter().map(|(node, _)| (*node, 1)).collect();
        self.attempt(Script { weights: plain, ..self.script.clone() });
    }

    fn simplify_call(&mut self, at: usize) -> bool {
        let Some(call) = self.script.calls.get(at).cloned() else { return false };
        if let Call::Map(kind, pages) = call {
            let fewer = fewer_pages(kind, pages);
            return fewer.into_iter().any(|pages| self.attempt(self.script.with_pages(at, pages)));
        }
        simpler(&call).into_iter().any(|call| self.attempt(self.script.with(at, call)))
    }
}

/// Calls that do a little less than this one.
fn simpler(call: &Call) -> Vec<Call> {
    match call {
        Call::SetPolicy(policy) => simpler_policies(policy).into_iter().map(Call::SetPolicy).collect(),
        Call::Touch(mapping, pages) => {
            fewer(pages).into_iter().map(|pages| Call::Touch(*mapping, pages)).collect()
        }
        Call::Bind(part, policy, options) => {
            let plain = Call::Bind(*part, policy.clone(), BindOptions::default());
            let policies = simpler_policies(policy);
            let policies = policies.into_iter().map(|policy| Call::Bind(*part, policy, *options));
            let parts = smaller(*part).into_iter().map(|part| Call::Bind(part, policy.clone(), *options));
            [plain].into_iter().chain(policies).chain(parts).collect()
        }
        Call::Migrate(old, new) => {
            let olds = without_one(old).into_iter().map(|old| Call::Migrate(old, new.clone()));
            olds.chain(without_one(new).into_iter().map(|new| Call::Migrate(old.clone(), new))).collect()
        }
        Call::Move(mapping, moves) => {
            fewer(moves).into_iter().map(|moves| Call::Move(*mapping, moves)).collect()
        }
        Call::Program(pages) => {
            let less = [1, pages / 2].into_iter().filter(|less| (1..*pages).contains(less));
            less.map(Call::Program).collect()
        }
        Call::Fork(steps) => (0..steps.len()).flat_map(|at| simpler_steps(steps, at)).collect(),
        Call::Pool { pools, pages, steps } => (1..*pages)
            .map(|pages| {
                let within = steps.iter().filter(|step| step.is_within(pages));
                Call::Pool { pools: pools.clone(), pages, steps: within.cloned().collect() }
            })
            .collect(),
        Call::Group(script) => script.simpler().into_iter().map(Call::Group).collect(),
        Call::Cache(script) => script.simpler().into_iter().map(Call::Cache).collect(),
        Call::RunOn(_)
        | Call::Map(..)
        | Call::SetHome(..)
        | Call::Restrict(_)
        | Call::Keep(_)
        | Call::HugePages(..)
        | Call::Thread(_) => Vec::new(),
    }
}

/// Forks whose step at a place does a little less.
fn simpler_steps(steps: &[Step], at: usize) -> Vec<Call> {
    let less: Vec<Step> = match &steps[at] {
        Step::Write(member, mapping, pages) => {
            fewer(pages).into_iter().map(|pages| Step::Write(*member, *mapping, pages)).collect()
        }
        Step::SetPolicy(policy) => simpler_policies(policy).into_iter().map(Step::SetPolicy).collect(),
        Step::Bind(part, policy) => {
            let policies = simpler_policies(policy).into_iter().map(|policy| Step::Bind(*part, policy));
            policies.chain(smaller(*part).into_iter().map(|part| Step::Bind(part, policy.clone()))).collect()
        }
        Step::RunOn(..) => Vec::new(),
    };
    let with = |step: Step| {
        let mut steps = steps.to_vec();
        steps[at] = step;
        Call::Fork(steps)
    };
    less.into_iter().map(with).collect()
}

/// Shorter lists: one of the first, a half, all but one.
fn fewer<T: Clone>(list: &[T]) -> Vec<Vec<T>> {
    if list.len() < 2 {
        return Vec::new();
    }
    let half = list.len() / 2;
    let singles = list.iter().take(3).map(|one| vec![one.clone()]);
    let halves = [list[..half].to_vec(), list[half..].to_vec()];
    let mut shorter: Vec<Vec<T>> = singles.chain(halves).collect();
    if list.len() <= 8 {
        shorter.extend((0..list.len()).map(|at| [&list[..at], &list[at + 1..]].concat()));
    }
    shorter
}

/// The same policy without flags, or without one of its nodes.
fn simpler_policies(policy: &MemPolicy) -> Vec<MemPolicy> {
    let plain =
        (policy.flags != ModeFlags::NONE).then(|| MemPolicy { flags: ModeFlags::NONE, ..policy.clone() });
    let nodes = without_one(&policy.nodes);
    plain.into_iter().chain(nodes.into_iter().map(|nodes| MemPolicy { nodes, ..policy.clone() })).collect()
}

fn without_one(nodes: &NodeSet) -> Vec<NodeSet> {
    let without = |left_out| nodes.iter().filter(|node| *node != left_out).collect();
    nodes.iter().map(without).collect()
}

/// The same part from the beginning of its mapping, which can then be smaller, and halves of it.
fn smaller(part: Part) -> Vec<Part> {
    let half = part.count / 2;
    let halves =
        [Part { count: half, ..part }, Part { first: part.first + half, count: part.count - half, ..part }];
    let start = (part.first > 0).then_some(Part { first: 0, ..part });
    start.into_iter().chain(halves.into_iter().filter(|_| half > 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawer::Drawer;
    use crate::kind::{ScriptId, ScriptKind};
    use crate::script::MappingKind;
    use nodewise_machine::{NodeId, spec};
    use proptest::prelude::{prop_assert, proptest};
    use proptest::sample::select;

    fn machine() -> nodewise_machine::Machine {
        spec::machine("4x(1c 512M); dist=20").unwrap()
    }

    fn drawn(kind: ScriptKind, number: u64) -> Script {
        Drawer::script(&machine(), ScriptId { kind, number })
    }

    /// Whether every call refers to mappings and pages that exist.
    fn is_sound(script: &Script) -> bool {
        let mut sizes: Vec<u64> = Vec::new();
        script.calls.iter().all(|call| {
            let has = |mapping: usize, page: u64| sizes.get(mapping).is_some_and(|pages| page < *pages);
            let all = |mapping: usize, pages: &[u64]| {
                !pages.is_empty() && pages.iter().all(|page| has(mapping, *page))
            };
            let whole = |part: &Part| part.count > 0 && has(part.mapping, part.first + part.count - 1);
            let sound = match call {
                Call::Touch(mapping, pages) => all(*mapping, pages),
                Call::Bind(part, ..) | Call::SetHome(part, _) => whole(part),
                Call::Move(mapping, moves) => moves.iter().all(|(page, _)| has(*mapping, *page)),
                Call::Keep(mapping) => has(*mapping, 0),
                Call::Fork(steps) => steps.iter().all(|step| match step {
                    Step::Write(_, mapping, pages) => all(*mapping, pages),
                    Step::Bind(part, _) => whole(part),
                    Step::RunOn(..) | Step::SetPolicy(_) => true,
                }),
                Call::Pool { pages, steps, .. } => steps.iter().all(|step| step.is_within(*pages)),
                Call::Group(script) => {
                    let exists = |program: usize| program < script.programs.len();
                    script.steps.iter().all(|step| step.program().is_none_or(exists))
                }
                Call::Cache(script) => {
                    let exists = |program: usize| program < script.programs.len();
                    script.steps.iter().all(|step| step.program().is_none_or(exists))
                }
                _ => true,
            };
            if let Call::Map(_, pages) = call {
                sizes.push(*pages);
            }
            sound
        })
    }

    #[test]
    fn a_fault_of_two_calls_is_shrunk_to_them() {
        // The fault: a second touch of page 0 of any mapping under a policy that interleaves.
        let differs = |script: &Script| {
            let interleaves = |call: &&Call| matches!(call, Call::SetPolicy(policy) if policy.mode.kernel_word() == "interleave");
            let at = script.calls.iter().position(|call| interleaves(&call));
            at.is_some_and(|at| {
                script.calls[at..].iter().any(|call| matches!(call, Call::Touch(_, pages) if pages.len() > 1))
            })
        };
        let found: Vec<Script> = (0..400)
            .map(|number| drawn(ScriptKind::Calls, number))
            .filter(|script| differs(script))
            .collect();
        assert!(found.len() > 3, "{}", found.len());
        for script in found {
            let small = shrunk(script, 2000, differs);
            assert_eq!(small.length(), 3, "{:?}", small.lines());
            assert!(matches!(small.calls.last(), Some(Call::Touch(_, pages)) if pages.len() == 2));
            assert!(small.weights.iter().all(|(_, weight)| *weight == 1));
        }
    }

    #[test]
    fn pages_and_parts_become_as_few_as_can_be() {
        let bind = |part: Part| Call::Bind(part, MemPolicy::DEFAULT, BindOptions::default());
        let calls = vec![
            Call::Map(MappingKind::Small, 40),
            Call::Touch(0, vec![30, 31]),
            bind(Part { mapping: 0, first: 20, count: 9 }),
        ];
        let script = Script { weights: Vec::new(), calls };
        let small =
            shrunk(script, 200, |script| script.calls.iter().any(|call| matches!(call, Call::Bind(..))));
        let one = bind(Part { mapping: 0, first: 0, count: 1 });
        assert_eq!(small.calls, [Call::Map(MappingKind::Small, 1), one]);
    }

    #[test]
    fn a_group_keeps_one_program_and_one_step() {
        // The fault: any program of the group takes more than a thousand pages in all.
        let differs = |script: &Script| match script.calls.first() {
            Some(Call::Group(group)) => {
                let inside = (0..group.programs.len()).filter(|program| group.programs[*program].is_inside);
                inside.map(|program| group.pages_of(program)).any(|pages| pages > 1000)
            }
            _ => false,
        };
        let drawn = (0..100).map(|number| drawn(ScriptKind::Swap, number));
        let found: Vec<Script> = drawn.filter(differs).collect();
        assert!(found.len() > 20, "{}", found.len());
        for script in found {
            let small = shrunk(script, 2000, differs);
            let Some(Call::Group(group)) = small.calls.first() else { panic!("{:?}", small.lines()) };
            let inside = group.programs.iter().filter(|program| program.is_inside).count();
            assert!(group.steps.len() == 1 && inside <= 2, "{:?}", small.lines());
            assert!(group.programs.iter().all(|program| program.policy.is_none()));
        }
    }

    #[test]
    fn attempts_end() {
        let script = drawn(ScriptKind::Calls, 1);
        let mut plays = 0;
        // Nothing can be left out.
        let small = shrunk(script.clone(), 7, |_| {
            plays += 1;
            false
        });
        assert_eq!((plays, small), (7, script));
    }

    #[test]
    fn a_mapping_takes_its_calls_along() {
        let node = NodeId::new(0);
        let script = Script {
            weights: Vec::new(),
            calls: vec![
                Call::Map(MappingKind::Small, 4),
                Call::Map(MappingKind::Small, 9),
                Call::Touch(0, vec![1]),
                Call::Touch(1, vec![8, 2]),
                Call::Move(1, vec![(8, node)]),
            ],
        };
        let calls = script.without(0..1).calls;
        assert_eq!(calls[1..], [Call::Touch(0, vec![8, 2]), Call::Move(0, vec![(8, node)])]);
        let calls = script.with_pages(1, 3).calls;
        assert_eq!(calls[2..], [Call::Touch(0, vec![1]), Call::Touch(1, vec![2])]);
    }

    proptest! {
        #[test]
        fn whatever_is_left_can_be_played(number: u64, kind in select(&ScriptKind::ALL[..]), choices: Vec<bool>) {
            let script = drawn(kind, number);
            prop_assert!(is_sound(&script));
            let mut choices = choices.into_iter().cycle();
            let mut sound = true;
            shrunk(script, 200, |candidate| {
                sound &= is_sound(candidate);
                choices.next().unwrap_or(true)
            });
            prop_assert!(sound);
        }
    }
}
