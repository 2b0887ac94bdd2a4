//! Sees what a run cannot see of itself: where its pages are, the time that a hypervisor takes, and for a
//! study also the placement that is in force and what the kernel counts meanwhile.

use nodewise_experiment::evidence::{CpuTime, Evidence, Moves};
use nodewise_experiment::executor::{Residency, Surroundings, Witness};
use nodewise_experiment::fidelity::Look;
use nodewise_machine::{Machine, NodeCounters, NodeId, NodeSet};
use nodewise_source::in_force::{InForce, in_force};
use nodewise_source::parse::counters::Counters;
use nodewise_source::parse::proc_stat::CpuTimes;
use nodewise_source::process::{self, Pid};
use nodewise_source::system;
use nodewise_source::tree::Tree;

use crate::facts::{busy, ticks};

/// The share of the CPUs' time that a hypervisor gives to others, between two moments.
pub struct Steal {
    before: Option<CpuTime>,
}

impl Steal {
    /// From now on.
    pub fn begin() -> Self {
        Self { before: cpu_time(&Tree::live()) }
    }

    /// Until now, of 1; `None` where the kernel does not say, or too little time has passed.
    pub fn end(&self) -> Option<f64> {
        stolen_share(cpu_between(self.before, cpu_time(&Tree::live()))?)
    }
}

/// The share of a time that was stolen.
fn stolen_share(time: CpuTime) -> Option<f64> {
    (!time.all.is_zero()).then_some(time.stolen?.as_secs_f64() / time.all.as_secs_f64())
}

/// A witness of what is around a run.
pub struct SystemWitness {
    tree: Tree,
    steal: Option<Steal>,
}

impl SystemWitness {
    /// A witness of the running system.
    pub fn new() -> Self {
        Self { tree: Tree::live(), steal: None }
    }
}

impl Witness for SystemWitness {
    fn before(&mut self) {
        self.steal = Some(Steal::begin());
    }

    fn look(&mut self, process: u32) -> Look {
        Look { residency: look(&self.tree, process).residency, ..Look::default() }
    }

    fn is_stopped(&mut self, process: u32) -> bool {
        is_stopped(&self.tree, process)
    }

    fn after(&mut self) -> Surroundings {
        let steal_share = self.steal.as_ref().and_then(Steal::end);
        Surroundings { steal_share, load: load(&self.tree) }
    }
}

/// Where the own memory of a process and of its children is, and what placement is in force.
fn look(tree: &Tree, process: u32) -> Look {
    let InForce { by_node, threads, memory } = in_force(tree, &process::family(tree, Pid::new(process)));
    let memory = memory.into_iter().map(|(policy, by_node)| (policy, Residency { by_node }));
    Look {
        residency: (!by_node.is_empty()).then_some(Residency { by_node }),
        threads,
        memory: memory.collect(),
    }
}

/// Whether a signal has stopped a process, or the one it waits for.
fn is_stopped(tree: &Tree, process: u32) -> bool {
    process::is_stopped(tree, &process::family(tree, Pid::new(process)))
}

/// The load of the last minute.
fn load(tree: &Tree) -> Option<f64> {
    system::load_average(tree).ok().flatten().map(|load| load.one_minute)
}

/// A witness that also counts.
pub struct CountingWitness {
    tree: Tree,
    nodes: NodeSet,
    before: Evidence,
    after: Evidence,
}

impl CountingWitness {
    /// A witness of the running system, which is this machine.
    pub fn new(machine: &Machine) -> Self {
        Self {
            tree: Tree::live(),
            nodes: machine.node_ids(),
            before: Evidence::default(),
            after: Evidence::default(),
        }
    }

    /// The counters now, since boot.
    fn snapshot(&self) -> Evidence {
        let counters = system::counters(&self.tree).ok().flatten().map(|parsed| parsed.value);
        Evidence {
            cpu: cpu_time(&self.tree),
            allocations: system::numastats(&self.tree, &self.nodes).unwrap_or_default(),
            moves: counters.as_ref().map(moves).unwrap_or_default(),
            ..Evidence::default()
        }
    }
}

/// The time of all CPUs, since boot.
fn cpu_time(tree: &Tree) -> Option<CpuTime> {
    let times: CpuTimes = system::cpu_times(tree).ok().flatten()?.value.total?;
    Some(CpuTime { all: ticks(times.total()), busy: ticks(busy(&times)), stolen: times.steal.map(ticks) })
}

/// The time that passed between two moments; time that went back says nothing.
fn cpu_between(before: Option<CpuTime>, after: Option<CpuTime>) -> Option<CpuTime> {
    let (before, after) = (before?, after?);
    Some(CpuTime {
        all: after.all.checked_sub(before.all)?,
        busy: after.busy.checked_sub(before.busy)?,
        stolen: before.stolen.zip(after.stolen).and_then(|(before, after)| after.checked_sub(before)),
    })
}

fn moves(counters: &Counters) -> Moves {
    Moves {
        migrated: counters.get("pgmigrate_success"),
        failed: counters.get("pgmigrate_fail"),
        balanced: counters.get("numa_pages_migrated"),
        hints: counters.get("numa_hint_faults"),
    }
}

/// Computes the counts between two moments. A counter that went back says nothing.
fn between(before: &Evidence, after: &Evidence) -> Evidence {
    let grown = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
    let cpu = cpu_between(before.cpu, after.cpu);
    let moves = Moves {
        migrated: grown(before.moves.migrated, after.moves.migrated),
        failed: grown(before.moves.failed, after.moves.failed),
        balanced: grown(before.moves.balanced, after.moves.balanced),
        hints: grown(before.moves.hints, after.moves.hints),
    };
    let node = |(id, after): (&NodeId, &NodeCounters<Option<u64>>)| {
        Some((*id, after.since(*before.allocations.get(id)?)))
    };
    let allocations = after.allocations.iter().filter_map(node).collect();
    Evidence { cpu, allocations, moves, ..Evidence::default() }
}

impl Witness for CountingWitness {
    fn before(&mut self) {
        self.before = self.snapshot();
    }

    fn look(&mut self, process: u32) -> Look {
        look(&self.tree, process)
    }

    fn is_stopped(&mut self, process: u32) -> bool {
        is_stopped(&self.tree, process)
    }

    fn after(&mut self) -> Surroundings {
        self.after = self.snapshot();
        let time = cpu_between(self.before.cpu, self.after.cpu);
        Surroundings { steal_share: time.and_then(stolen_share), load: load(&self.tree) }
    }

    fn evidence(&mut self) -> Evidence {
        between(&self.before, &self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_experiment::command::{CommandExecutor, setup};
    use nodewise_experiment::fidelity::Fidelity;
    use nodewise_machine::placement::Placement;
    use nodewise_machine::{CpuSet, PolicyMode};
    use std::io::Read as _;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    #[test]
    fn counters_are_told_as_what_was_added_and_those_that_went_back_not_at_all() {
        let at = |all, hit, migrated| Evidence {
            cpu: Some(CpuTime { all: Duration::from_secs(all), ..CpuTime::default() }),
            allocations: [(NodeId::new(1), NodeCounters { hit, ..NodeCounters::default() })].into(),
            moves: Moves { migrated, ..Moves::default() },
            ..Evidence::default()
        };
        let found = between(&at(5, Some(10), Some(7)), &at(8, Some(14), Some(6)));
        assert_eq!(found, at(3, Some(4), None));
        assert_eq!(between(&at(5, None, None), &at(4, Some(1), None)).cpu, None);
        assert_eq!(between(&Evidence::default(), &at(1, Some(1), Some(1))), Evidence::default());
    }

    #[test]
    fn the_share_that_was_stolen_is_of_all_time_between_two_moments() {
        let at = |all, stolen: Option<u64>| CpuTime {
            all: Duration::from_secs(all),
            stolen: stolen.map(Duration::from_secs),
            ..CpuTime::default()
        };
        let check = |before, after, expected: Option<f64>| {
            let share = cpu_between(Some(before), Some(after)).and_then(stolen_share);
            assert_eq!(share, expected, "{before:?} {after:?}");
        };
        check(at(10, Some(1)), at(20, Some(2)), Some(0.1));
        check(at(10, Some(1)), at(10, Some(1)), None);
        check(at(10, Some(2)), at(20, Some(1)), None);
        check(at(10, None), at(20, Some(1)), None);
        check(at(20, Some(1)), at(10, Some(1)), None);
    }

    /// Returns the look at a script that was started under a placement and then waits for its input.
    fn seen_of(script: &str, placement: &Placement) -> Look {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = setup(placement).spawn(command).unwrap();
        let mut said = [0; 1];
        // It says when it has come to the point where it waits.
        child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        let seen = look(&Tree::live(), child.id());
        drop(child.stdin.take());
        child.wait().unwrap();
        seen
    }

    /// A CPU and, where there is one, another.
    fn cpus() -> (CpuSet, Option<CpuSet>) {
        let own = nodewise_syscall::affinity::cpus(nodewise_syscall::Task::CURRENT).unwrap();
        let mut each = own.iter().map(|cpu| CpuSet::from_iter([cpu]));
        (each.next().unwrap(), each.next())
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
    fn a_program_that_binds_itself_elsewhere_is_seen_to_and_one_that_does_not_is_not() {
        let (first, second) = cpus();
        let asked = Placement::on_cpus(first);
        let shares = |script: &str| {
            let fidelity = Fidelity::from_look(&seen_of(script, &asked), &asked).unwrap();
            (fidelity.cpus, fidelity.other_cpus.clone(), fidelity.held(&asked))
        };
        assert_eq!(shares("printf x; read line || true"), (Some(1.0), None, true));
        let Some(second) = second else { return eprintln!("not tried: this process may use one CPU only") };
        let moved = format!("taskset -c -p {second} $$ > /dev/null; printf x; read line || true");
        assert_eq!(shares(&moved), (Some(0.0), Some(second), false));
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
    fn the_policy_that_is_in_force_is_seen() {
        let nodes = nodewise_syscall::mempolicy::allowed_nodes().unwrap_or(NodeSet::from([0]));
        let asked = Placement::memory(PolicyMode::Interleave, nodes.clone());
        if let Err(why) = CommandExecutor::check(&asked) {
            return eprintln!("not tried: {why}");
        }
        let seen = seen_of("printf x; read line || true", &asked);
        let Some(fidelity) = Fidelity::from_look(&seen, &asked) else {
            return eprintln!("not tried: this kernel has no numa_maps");
        };
        assert_eq!((fidelity.policy, fidelity.nodes), (Some(1.0), Some(1.0)));
        // What would have been seen of a program that was started in another way.
        let other = Placement::memory(PolicyMode::Bind, nodes);
        assert_eq!(Fidelity::from_look(&seen, &other).unwrap().policy, Some(0.0));
    }

    #[test]
    fn a_process_that_is_gone_is_not_seen() {
        assert_eq!(look(&Tree::live(), u32::MAX - 1), Look::default());
    }

    #[test]
    fn the_running_system_is_counted() {
        let machine = crate::input::open("live", nodewise_source::Detail::Full).unwrap().machine;
        let mut witness = CountingWitness::new(&machine);
        witness.before();
        witness.after();
        assert!(witness.evidence().cpu.is_some());
    }
}
