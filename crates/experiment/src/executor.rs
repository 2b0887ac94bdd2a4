//! The interface that runs an arm, and the result of a run.
//!
//! The experiment knows nothing of processes: it asks an [`Executor`] for a run and keeps the
//! [`Run`]. [`crate::command`] starts real programs; a test plays recorded times. What a run cannot
//! see of itself (where its pages were, what else the machine did) comes from a [`Witness`], because
//! this crate reads no files of the kernel.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use nodewise_machine::{Bytes, NodeId, NodeSet};
pub use nodewise_syscall::Usage;

use crate::evidence::Evidence;
use crate::fidelity::{Fidelity, Look};
use crate::metric::{Metric, MetricError};
use crate::schedule::ArmId;
use nodewise_machine::placement::Placement;

/// The placeholder for the number of threads in the words of a program.
pub const THREADS: &str = "{threads}";

/// One of the things compared: a treatment with its place in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    pub id: ArmId,
    pub name: String,
    pub placement: Placement,
    /// Variables that its environment has besides those of nodewise's own.
    pub environment: BTreeMap<String, String>,
    /// The number that replaces `{threads}` in its command.
    pub threads: Option<u32>,
}

impl Arm {
    /// A word of the program, with the arm's number of threads in place of the placeholder.
    pub fn fill(&self, word: &str) -> String {
        match self.threads {
            Some(threads) => word.replace(THREADS, &threads.to_string()),
            None => word.to_owned(),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The program ended by itself with code 0, and the metric was found.
    Done,
    /// The program ended by itself with another code.
    Code(i32),
    Signal(i32),
    /// It could not be started; why.
    NotStarted(String),
    /// It ran into the time limit of a run and was ended.
    TimedOut(Duration),
    /// A signal stopped it (SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU), and it did not continue for so long.
    Stopped(Duration),
    /// It ended well and did not print the metric.
    NoMetric(MetricError),
    /// Something is wrong with a server or its client; a sentence.
    Service(String),
    /// The user ended the experiment while it ran. Says nothing of the arm.
    Interrupted,
}

impl Ending {
    /// That of a program that ended by itself: done where its code is 0.
    pub fn from_status(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(0), _) => Self::Done,
            (Some(code), _) => Self::Code(code),
            (None, signal) => Self::Signal(signal.unwrap_or(0)),
        }
    }

    /// In words, with the last line of what was complained about.
    pub fn with_complaint(&self, complaint: Option<&str>) -> String {
        format!("{self}{}", last_line(complaint))
    }

    /// Whether the run can be compared.
    pub fn is_done(&self) -> bool {
        *self == Self::Done
    }

    /// Whether the run speaks against its arm.
    pub fn is_failure(&self) -> bool {
        !matches!(self, Self::Done | Self::Interrupted)
    }
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Code(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(signal) => write!(f, "ended by signal {signal}{}", signal_name(*signal)),
            Self::NotStarted(why) => write!(f, "could not be started: {why}"),
            Self::TimedOut(limit) => write!(f, "did not end within {:?}", limit),
            Self::Stopped(time) => {
                write!(f, "was stopped by a signal (as SIGSTOP does) and did not continue within {time:?}")
            }
            Self::NoMetric(error) => error.fmt(f),
            Self::Service(what) => f.write_str(what),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// The name of a signal that ends programs in practice; nothing for others.
///
/// # Source
/// `signal(7)`; these numbers are the same on all architectures that Linux runs on but the last,
/// SIGBUS, which MIPS, Alpha and SPARC number differently.
pub(crate) fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL, as the kernel sends when memory runs out)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        7 => " (SIGBUS)",
        _ => "",
    }
}

/// Where the pages of a program were at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Residency {
    /// Resident memory on each node that holds any.
    pub by_node: BTreeMap<NodeId, Bytes>,
}

impl Residency {
    /// Adds what was seen of another run.
    pub fn add(&mut self, other: &Self) {
        for (node, size) in &other.by_node {
            *self.by_node.entry(*node).or_default() += *size;
        }
    }

    /// All of it.
    pub fn total(&self) -> Bytes {
        self.by_node.values().copied().sum()
    }

    /// The share on one node, of 1; `None` when nothing was resident.
    pub fn share(&self, node: NodeId) -> Option<f64> {
        self.share_of(&NodeSet::from_iter([node]))
    }

    /// The share on some nodes together, of 1: for the nodes of a policy, how far it was obeyed.
    /// `None` when nothing was resident.
    pub fn share_of(&self, nodes: &NodeSet) -> Option<f64> {
        let total = self.total().get();
        // Bytes are added, not shares: rounded shares of all nodes can come to more than 1.
        let here: Bytes = nodes.iter().filter_map(|node| self.by_node.get(&node)).copied().sum();
        (total > 0).then(|| here.get() as f64 / total as f64)
    }
}

/// The state of the rest of the machine during a run. `None`: the kernel does not say.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Surroundings {
    /// The share of the CPUs' time that the hypervisor gave to others, of 1.
    pub steal_share: Option<f64>,
    /// Programs that ran or wanted to, on average over the last minute.
    pub load: Option<f64>,
}

/// Result of one run of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub ending: Ending,
    /// From the start of the program to its end; `None` when it did not start.
    pub wall: Option<Duration>,
    /// The number it printed, where the metric is one.
    pub printed: Option<f64>,
    /// Other numbers it printed, by the pattern that finds them: see [`crate::study::Plan::also`].
    pub also_printed: BTreeMap<String, f64>,
    /// The resources it used; `None` when it did not start.
    pub usage: Option<Usage>,
    /// Where its pages were when it had the most of them.
    pub residency: Option<Residency>,
    /// How far it ran as its arm asks; `None` when nothing is asked for, or nothing was seen.
    pub fidelity: Option<Fidelity>,
    pub surroundings: Surroundings,
    pub evidence: Evidence,
    /// The last lines of its standard error, where it failed and wrote any. As it wrote them: not
    /// fit for a terminal.
    pub complaint: Option<String>,
}

impl Run {
    /// A run that only ended.
    pub fn ended(ending: Ending) -> Self {
        Self {
            ending,
            wall: None,
            printed: None,
            also_printed: BTreeMap::new(),
            usage: None,
            residency: None,
            fidelity: None,
            surroundings: Surroundings::default(),
            evidence: Evidence::default(),
            complaint: None,
        }
    }

    /// The value to compare; `None` for a run that failed.
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        self.of(metric, self.printed)
    }

    /// The value of a metric that is shown and decides nothing; `None` for a run that failed.
    pub fn also(&self, metric: &Metric) -> Option<f64> {
        let printed = match metric {
            Metric::Printed(pattern, _) => self.also_printed.get(pattern.text()).copied(),
            _ => None,
        };
        self.of(metric, printed)
    }

    fn of(&self, metric: &Metric, printed: Option<f64>) -> Option<f64> {
        if !self.ending.is_done() {
            return None;
        }
        let usage = self.usage.as_ref();
        let value = match metric {
            Metric::Wall => self.wall.map(|wall| wall.as_secs_f64()),
            Metric::CpuTime => usage.map(|usage| usage.cpu_time().as_secs_f64()),
            Metric::MaxRss => usage.map(|usage| usage.max_rss.get() as f64),
            Metric::Counted(counter) => self.evidence.events.get(counter).map(|count| *count as f64),
            Metric::Printed(..) => printed,
        };
        // Of nothing there is no ratio.
        value.filter(|value| *value > 0.0)
    }
}

/// The last line of a complaint behind a colon, as the end of a sentence; nothing where there is none. As it was
/// written: not fit for a terminal.
pub fn last_line(complaint: Option<&str>) -> String {
    let last = complaint.and_then(|text| text.lines().rfind(|line| !line.trim().is_empty()));
    last.map_or_else(String::new, |line| format!(": {}", line.trim()))
}

/// Why a run could not be prepared.
#[derive(Clone, Debug, PartialEq)]
pub struct Unprepared {
    pub ending: Ending,
    /// The last lines of its standard error, where it wrote any. As it wrote them: not fit for a terminal.
    pub complaint: Option<String>,
}

impl std::fmt::Display for Unprepared {
    /// How it ended, with the last line of its complaint.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.ending.with_complaint(self.complaint.as_deref()))
    }
}

/// Runs an arm once.
pub trait Executor {
    /// Does what comes before a run of this arm: not timed, and no part of the run.
    ///
    /// # Errors
    /// Why it could not be done: the run is not to be made.
    fn prepare(&mut self, _arm: &Arm) -> Result<(), Unprepared> {
        Ok(())
    }

    /// Ends the runs that follow when they take longer than this, besides what the executor limits by
    /// itself; such a run has timed out.
    fn limit(&mut self, _limit: Option<Duration>) {}

    /// Runs it and waits for its end. A failure is a result.
    fn run(&mut self, arm: &Arm) -> Run;
}

/// Observer of a run from outside, for what the run cannot see of itself.
pub trait Witness {
    /// Called before the program starts.
    fn before(&mut self);
    /// Where the pages of this process and its descendants are now, and what placement is in force;
    /// nothing when that cannot be read, as when it has ended. Called a few times while the program runs.
    fn look(&mut self, process: u32) -> Look;
    /// Whether a signal has stopped this process or what it waits for, so that none of it can run. Called about
    /// once a second.
    fn is_stopped(&mut self, _process: u32) -> bool {
        false
    }
    /// Called after the program has ended: what the machine did since [`Witness::before`].
    fn after(&mut self) -> Surroundings;
    /// Returns the kernel's counts between [`Witness::before`] and [`Witness::after`]; called after both.
    fn evidence(&mut self) -> Evidence {
        Evidence::default()
    }
}

/// A witness that sees nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWitness;

impl Witness for NoWitness {
    fn before(&mut self) {}
    fn look(&mut self, _process: u32) -> Look {
        Look::default()
    }
    fn after(&mut self) -> Surroundings {
        Surroundings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_is_resident() {
        let residency = Residency {
            by_node: BTreeMap::from([
                (NodeId::new(0), Bytes::from_mib(30)),
                (NodeId::new(2), Bytes::from_mib(10)),
            ]),
        };
        assert_eq!(residency.total(), Bytes::from_mib(40));
        assert_eq!(residency.share(NodeId::new(0)), Some(0.75));
        assert_eq!(residency.share(NodeId::new(1)), Some(0.0));
        assert_eq!(residency.share_of(&NodeSet::from([1, 2])), Some(0.25));
        assert_eq!(Residency::default().share(NodeId::new(0)), None);
    }

    #[test]
    fn all_nodes_together_have_everything_however_their_shares_round() {
        let by_node = (0..).map(NodeId::new).zip([29, 25, 2].map(Bytes::new)).collect();
        assert_eq!(Residency { by_node }.share_of(&NodeSet::from([0, 1, 2, 7])), Some(1.0));
    }

    #[test]
    fn a_failed_run_has_no_value_even_when_it_has_a_time() {
        let mut run = Run { wall: Some(Duration::from_millis(20)), ..Run::ended(Ending::Code(1)) };
        assert_eq!(run.value(&Metric::Wall), None);
        run.ending = Ending::Done;
        assert_eq!(run.value(&Metric::Wall), Some(0.02));
        run.wall = Some(Duration::ZERO);
        assert_eq!(run.value(&Metric::Wall), None, "a time of 0 has no ratio");
        assert_eq!(run.value(&Metric::CpuTime), None, "what it used is not known");
        run.usage = Some(Usage {
            user: Duration::from_millis(30),
            system: Duration::from_millis(20),
            max_rss: Bytes::from_kib(3),
            minor_faults: 0,
            major_faults: 0,
            voluntary_switches: 0,
            involuntary_switches: 0,
        });
        assert_eq!(run.value(&Metric::CpuTime), Some(0.05));
        assert_eq!(run.value(&Metric::MaxRss), Some(3072.0));
    }

    #[test]
    fn endings_say_what_happened() {
        for (ending, expected) in [
            (Ending::Code(2), "ended with exit code 2"),
            (Ending::Signal(9), "ended by signal 9 (SIGKILL, as the kernel sends when memory runs out)"),
            (Ending::Signal(64), "ended by signal 64"),
            (Ending::TimedOut(Duration::from_millis(1500)), "did not end within 1.5s"),
            (Ending::NotStarted("no such file".to_owned()), "could not be started: no such file"),
        ] {
            assert_eq!(ending.to_string(), expected);
            assert!(ending.is_failure());
        }
        assert!(!Ending::Interrupted.is_failure() && !Ending::Interrupted.is_done());
    }
}
