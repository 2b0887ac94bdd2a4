//! Whether a program really ran as its arm asks: the fidelity of the treatment.
//!
//! A placement is what a program starts with. A program that binds itself, and a launcher that undoes
//! what it was started under, run otherwise than the table would say. So what is in force is looked at
//! while the program runs ([`Look`]) and compared with what was asked ([`Fidelity`]); an arm whose
//! treatment did not hold has no verdict.
//!
//! # Source
//! Shadish, Cook and Campbell, "Experimental and quasi-experimental designs for generalized causal
//! inference", 2002, chapter 10: treatment fidelity is measured, not assumed.

use nodewise_machine::{CpuSet, MemPolicy, NodeSet, PolicyMode};

use crate::executor::Residency;
use nodewise_machine::placement::Placement;
use nodewise_stats::mean;

/// The least share that has to be as asked for a treatment to have held, of 1. A choice: a helper
/// thread that a library binds for itself changes little; that a third of a program runs elsewhere
/// changes what is compared.
pub const HELD: f64 = 0.9;

/// One look at a program and its children.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Look {
    /// Where all of their pages are; `None` where that could not be read.
    pub residency: Option<Residency>,
    /// How many of their threads may use the same CPUs, for each such set.
    pub threads: Vec<(CpuSet, usize)>,
    /// Their own memory, without that of files, by the policy over it.
    pub memory: Vec<(MemPolicy, Residency)>,
}

/// How far a program ran as asked: shares of 1. `None`: nothing of that was asked for, or nothing was
/// seen of it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Fidelity {
    /// Of its threads, those that kept to the CPUs asked for.
    pub cpus: Option<f64>,
    /// Of its own memory, what was under the policy asked for.
    pub policy: Option<f64>,
    /// Of its own memory, what was on the nodes asked for.
    pub nodes: Option<f64>,
    /// CPUs that were not asked for and that threads could use.
    pub other_cpus: Option<CpuSet>,
    /// The policy over most of the memory that was not under the one asked for.
    pub other_policy: Option<MemPolicy>,
}

impl Fidelity {
    /// Compares what a look saw with the placement that was asked for; `None` when nothing of it could
    /// be compared.
    pub fn from_look(look: &Look, asked: &Placement) -> Option<Self> {
        let mut fidelity = Self::default();
        if let Some(cpus) = &asked.cpus {
            fidelity.compare_cpus(&look.threads, cpus);
        }
        if let Some(policy) = asked.policy.as_ref().filter(|policy| policy.mode != PolicyMode::Default) {
            fidelity.compare_memory(&look.memory, policy);
        }
        fidelity.least().map(|_| fidelity)
    }

    fn compare_cpus(&mut self, threads: &[(CpuSet, usize)], asked: &CpuSet) {
        let count = |threads: &mut dyn Iterator<Item = &(CpuSet, usize)>| -> usize {
            threads.map(|(_, count)| count).sum()
        };
        let kept = count(&mut threads.iter().filter(|(cpus, _)| cpus.is_subset(asked)));
        let all = count(&mut threads.iter());
        self.cpus = (all > 0).then(|| kept as f64 / all as f64);
        let others = threads.iter().fold(CpuSet::new(), |others, (cpus, _)| others.union(cpus));
        self.other_cpus = Some(others.difference(asked)).filter(|others| !others.is_empty());
    }

    fn compare_memory(&mut self, memory: &[(MemPolicy, Residency)], asked: &MemPolicy) {
        let mut all = Residency::default();
        memory.iter().for_each(|(_, pages)| all.add(pages));
        let total = all.total().get();
        if total == 0 {
            return;
        }
        // Which pages may be moved by balancing is not a question of where they come from, and older kernels
        // do not print that flag.
        let is_asked = |policy: &MemPolicy| (policy.mode, &policy.nodes) == (asked.mode, &asked.nodes);
        let under: u64 = memory
            .iter()
            .filter(|(policy, _)| is_asked(policy))
            .map(|(_, pages)| pages.total().get())
            .fold(0, u64::saturating_add);
        self.policy = Some(under as f64 / total as f64);
        let others = memory.iter().filter(|(policy, _)| !is_asked(policy));
        let most = others.max_by_key(|(_, pages)| pages.total());
        self.other_policy = most.map(|(policy, _)| policy.clone());
        if !asked.nodes.is_empty() {
            self.nodes = all.share_of(&asked.nodes);
        }
    }

    /// The least of the shares; `None` when there is none.
    pub fn least(&self) -> Option<f64> {
        [self.cpus, self.policy, self.nodes].into_iter().flatten().reduce(f64::min)
    }

    /// Whether the treatment held. What is not known does not speak against it; nor do pages on other
    /// nodes under a policy that only prefers some.
    pub fn held(&self, asked: &Placement) -> bool {
        let nodes = self.binding_nodes(asked).map(|(share, _)| share);
        [self.cpus, self.policy, nodes].into_iter().flatten().all(|share| share >= HELD)
    }

    /// Of the memory what was on the nodes that it had to be on, with these nodes.
    fn binding_nodes<'a>(&self, asked: &'a Placement) -> Option<(f64, &'a NodeSet)> {
        let policy = asked.policy.as_ref().filter(|policy| policy.mode == PolicyMode::Bind)?;
        Some((self.nodes?, &policy.nodes))
    }

    /// That of several runs: the mean of each share, and of the others those of the run that kept to it
    /// least. `None` where no run is known.
    pub fn mean<'a>(runs: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let runs: Vec<&Self> = runs.collect();
        let share =
            |of: fn(&Self) -> Option<f64>| mean(&runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>());
        let worst = |of: fn(&Self) -> Option<f64>| {
            let known = runs.iter().filter_map(|run| Some((of(run)?, *run)));
            known.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, run)| run)
        };
        let fidelity = Self {
            cpus: share(|run| run.cpus),
            policy: share(|run| run.policy),
            nodes: share(|run| run.nodes),
            other_cpus: worst(|run| run.cpus).and_then(|run| run.other_cpus.clone()),
            other_policy: worst(|run| run.policy).and_then(|run| run.other_policy.clone()),
        };
        fidelity.least().map(|_| fidelity)
    }

    /// Says what did not hold, as a sentence without its end; `None` when all did.
    pub fn why(&self, asked: &Placement) -> Option<String> {
        if self.held(asked) {
            return None;
        }
        let mut parts = Vec::new();
        if let (Some(share), Some(cpus)) = (self.cpus.filter(|share| *share < HELD), &asked.cpus) {
            let others = self.other_cpus.as_ref();
            let others =
                others.map_or_else(String::new, |others| format!(", others could use CPUs {others}"));
            parts.push(format!("{} of its threads kept to CPUs {cpus}{others}", percent(share)));
        }
        if let (Some(share), Some(policy)) = (self.policy.filter(|share| *share < HELD), &asked.policy) {
            let other = self.other_policy.as_ref();
            let other = other.map_or_else(String::new, |other| format!(", the rest under {other}"));
            parts.push(format!("{} of its memory was under {policy}{other}", percent(share)));
        } else if let Some((share, nodes)) = self.binding_nodes(asked).filter(|(share, _)| *share < HELD) {
            parts.push(format!("{} of its memory was on nodes {nodes}", percent(share)));
        }
        Some(parts.join("; "))
    }
}

/// A share in whole percent that are reached: less than everything is never rounded up to everything.
pub fn percent(share: f64) -> String {
    // 0.29 * 100 is less than 29 by the last digit.
    format!("{} %", (share * 100.0 + 1e-9).floor())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{Bytes, NodeId};
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    fn pages(kib: &[u64]) -> Residency {
        let by_node = (0..).map(NodeId::new).zip(kib.iter().map(|kib| Bytes::from_kib(*kib)));
        Residency { by_node: by_node.filter(|(_, size)| size.get() > 0).collect() }
    }

    fn look(threads: &[(&str, usize)], memory: &[(&str, &[u64])]) -> Look {
        Look {
            residency: None,
            threads: threads.iter().map(|(cpus, count)| (cpus.parse().unwrap(), *count)).collect(),
            memory: memory.iter().map(|(policy, kib)| (policy.parse().unwrap(), pages(kib))).collect(),
        }
    }

    fn asked(cpus: &str, policy: &str) -> Placement {
        Placement {
            cpus: (!cpus.is_empty()).then(|| cpus.parse().unwrap()),
            policy: (!policy.is_empty()).then(|| policy.parse().unwrap()),
            ..Placement::DEFAULT
        }
    }

    fn check(look: &Look, asked: &Placement, shares: [Option<f64>; 3], why: Option<&str>) {
        let fidelity = Fidelity::from_look(look, asked);
        let found = fidelity.as_ref().map_or([None; 3], |f| [f.cpus, f.policy, f.nodes]);
        assert_eq!(found, shares);
        assert_eq!(fidelity.and_then(|fidelity| fidelity.why(asked)).as_deref(), why);
    }

    #[test]
    fn a_program_that_keeps_to_what_was_asked_holds() {
        let look = look(&[("0-1", 3), ("1", 1)], &[("bind:1", &[0, 400])]);
        check(&look, &asked("0-1", "bind:1"), [Some(1.0); 3], None);
        check(&look, &asked("0-3", ""), [Some(1.0), None, None], None);
    }

    #[test]
    fn a_program_that_binds_itself_elsewhere_does_not() {
        let look = look(&[("0", 1), ("1", 3)], &[]);
        let why = "25 % of its threads kept to CPUs 0, others could use CPUs 1";
        check(&look, &asked("0", ""), [Some(0.25), None, None], Some(why));
    }

    #[test]
    fn a_launcher_that_undoes_the_policy_is_found_out_even_where_the_pages_lie_as_asked() {
        let look = look(&[("0-3", 2)], &[("bind:0", &[100]), ("default", &[300])]);
        let why = "25 % of its memory was under bind:0, the rest under default";
        check(&look, &asked("", "bind:0"), [None, Some(0.25), Some(1.0)], Some(why));
    }

    #[test]
    fn pages_elsewhere_speak_against_a_binding_and_not_against_a_preference() {
        let at = |policy: &str| look(&[], &[(policy, &[300, 100])]);
        let shares = [None, Some(1.0), Some(0.75)];
        check(&at("bind:0"), &asked("", "bind:0"), shares, Some("75 % of its memory was on nodes 0"));
        check(&at("prefer:0"), &asked("", "prefer:0"), shares, None);
    }

    #[test]
    fn pages_elsewhere_under_a_preference_are_no_reason_when_the_cpus_are_one() {
        let look = look(&[("0", 1), ("1", 3)], &[("prefer:0", &[100, 300])]);
        let why = "25 % of its threads kept to CPUs 0, others could use CPUs 1";
        check(&look, &asked("0", "prefer:0"), [Some(0.25), Some(1.0), Some(0.25)], Some(why));
    }

    #[test]
    fn what_nearly_held_is_not_told_as_what_is_enough() {
        let at = look(&[], &[("bind:0", &[896, 104])]);
        let why = Some("89 % of its memory was on nodes 0");
        check(&at, &asked("", "bind:0"), [None, Some(1.0), Some(0.896)], why);
        for (share, expected) in
            [(1.0, "100 %"), (0.9999, "99 %"), (0.29, "29 %"), (0.57, "57 %"), (0.0, "0 %")]
        {
            assert_eq!(percent(share), expected);
        }
    }

    #[test]
    fn local_memory_has_no_nodes_to_be_on_and_the_flag_of_balancing_is_not_compared() {
        check(&look(&[], &[("local", &[7, 9])]), &asked("", "local"), [None, Some(1.0), None], None);
        let asked = asked("", "bind=balancing:0-1");
        check(&look(&[], &[("bind:0-1", &[7, 9])]), &asked, [None, Some(1.0), Some(1.0)], None);
    }

    #[test]
    fn what_was_not_asked_or_not_seen_is_not_known() {
        let nothing = Look::default();
        assert_eq!(Fidelity::from_look(&nothing, &asked("0", "bind:0")), None);
        let seen = look(&[("1", 1)], &[("bind:1", &[0, 4])]);
        assert_eq!(Fidelity::from_look(&seen, &Placement::DEFAULT), None);
        assert_eq!(Fidelity::from_look(&seen, &asked("", "default")), None);
        assert_eq!(Fidelity::from_look(&look(&[], &[("bind:0", &[])]), &asked("", "bind:0")), None);
    }

    #[test]
    fn runs_are_told_by_their_mean_and_what_was_there_instead_by_the_worst_of_them() {
        let of = |cpus: &str| Fidelity::from_look(&look(&[(cpus, 1)], &[]), &asked("0", "")).unwrap();
        let runs = [of("0"), of("1"), of("0"), of("0")];
        let mean = Fidelity::mean(runs.iter()).unwrap();
        assert_eq!((mean.cpus, mean.other_cpus.clone()), (Some(0.75), Some(CpuSet::from([1]))));
        assert!(!mean.held(&asked("0", "")));
        assert_eq!(Fidelity::mean(std::iter::empty()), None);
    }

    proptest! {
        #[test]
        fn shares_are_between_nothing_and_everything(
            threads in prop::collection::vec((0u32..6, 0usize..5), 0..5),
            memory in prop::collection::vec((any::<bool>(), 0u64..u64::MAX / 8, 0u64..9), 0..5), cpu in 0u32..6,
        ) {
            let look = Look {
                residency: None,
                threads: threads.iter().map(|(cpu, count)| (CpuSet::from([*cpu]), *count)).collect(),
                memory: memory
                    .iter()
                    .map(|(bound, here, there)| {
                        let mode = if *bound { PolicyMode::Bind } else { PolicyMode::Interleave };
                        (MemPolicy::new(mode, NodeSet::from([0])), pages(&[here / 1024, *there]))
                    })
                    .collect(),
            };
            let asked = Placement::memory(PolicyMode::Bind, NodeSet::from([0])).with_cpus(CpuSet::from([cpu]));
            if let Some(fidelity) = Fidelity::from_look(&look, &asked) {
                let least = fidelity.least().unwrap();
                prop_assert!((0.0..=1.0).contains(&least));
                prop_assert!(fidelity.nodes.is_none_or(|nodes| (0.0..=1.0).contains(&nodes)));
                prop_assert_eq!(fidelity.why(&asked).is_none(), fidelity.held(&asked));
                prop_assert!(fidelity.why(&asked) != Some(String::new()));
            }
        }
    }
}
