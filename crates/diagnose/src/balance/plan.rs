//! The answer to a window, in types and in words.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, NodeId};
use nodewise_source::sample::Identity;

use super::Observation;
use super::limits::Limits;
use super::means::{Means, Named, Need, RemoteTime};
use super::never::Never;
use crate::situation::ProcessState;

/// An action that may begin now.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    pub process: Named,
    pub need: Need,
    pub means: Means,
    /// The most bytes that may move: the plan's, or what the budget leaves.
    pub most: Bytes,
    /// The part of its memory that is remote to its threads now.
    pub remote: Option<f64>,
}

impl Action {
    /// Whether the budget has room for all of its bytes.
    pub fn is_whole(&self) -> bool {
        self.most >= self.means.size()
    }
}

/// Why an action waits.
#[derive(Clone, Debug, PartialEq)]
pub enum Hold {
    /// The windows in which it was needed, and those that are wanted.
    Windows(u32, u32),
    /// The kernel's balancing may do it: scans done, scans waited for.
    Balancing(Option<u64>, u64),
    /// Everything speaks for it but the policies of its mappings, which are not known now.
    PolicyUnknown,
    NoRoom(NodeId),
    RoomUnknown(NodeId),
    NoCpus(NodeId),
    CpusUnknown(NodeId),
    /// No node where it runs has memory that it may use.
    NoTarget,
    /// The target is a node that it left a short time ago.
    LeftRecently,
    HourSpent,
    DaySpent,
    /// The last action takes effect until then.
    Settling(Duration),
    /// It is left alone until then, after this verdict.
    Resting(Duration, Verdict),
    /// It is being moved.
    Acting,
}

impl Hold {
    /// Its word, in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Windows(..) => "windows",
            Self::Balancing(..) => "kernel_balancing",
            Self::PolicyUnknown => "policy_unknown",
            Self::NoRoom(_) => "no_room",
            Self::RoomUnknown(_) => "room_unknown",
            Self::NoCpus(_) => "no_cpus",
            Self::CpusUnknown(_) => "cpus_unknown",
            Self::NoTarget => "no_target",
            Self::LeftRecently => "left_recently",
            Self::HourSpent => "hour_spent",
            Self::DaySpent => "day_spent",
            Self::Settling(_) => "settling",
            Self::Resting(..) => "resting",
            Self::Acting => "acting",
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Windows(seen, wanted) => write!(f, "needed in {seen} of {wanted} windows"),
            Self::Balancing(Some(done), wanted) => {
                write!(f, "the kernel's balancing may do it: {done} of {wanted} scans seen")
            }
            Self::Balancing(None, wanted) => {
                write!(f, "the kernel's balancing may do it: time of {wanted} scans not over")
            }
            Self::PolicyUnknown => f.write_str("the policies of its memory are not known yet"),
            Self::NoRoom(node) => write!(f, "node {node} has no room"),
            Self::RoomUnknown(node) => write!(f, "room of node {node} unknown"),
            Self::NoCpus(node) => write!(f, "the CPUs of node {node} are too busy"),
            Self::CpusUnknown(node) => write!(f, "load of the CPUs of node {node} unknown"),
            Self::NoTarget => f.write_str("no node where it runs has memory that it may use"),
            Self::LeftRecently => f.write_str("it left that node less than --back-after ago"),
            Self::HourSpent => f.write_str("the bytes of this hour are used up"),
            Self::DaySpent => f.write_str("the bytes of this process for today are used up"),
            Self::Settling(_) => f.write_str("the last action takes effect"),
            Self::Resting(_, verdict) => write!(f, "it rests after an action ({verdict})"),
            Self::Acting => f.write_str("it is being moved"),
        }
    }
}

/// The effect of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The memory is where it was meant to be. Whether the program is faster was not measured.
    AsPlanned,
    NoDifference,
    /// More memory is remote than before, or programs wait for memory.
    Worse,
    /// Too many pages failed to move.
    Failed,
    /// It was idle, or could not be examined.
    Unknown,
}

impl Verdict {
    /// Its word, in text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::AsPlanned => "as planned",
            Self::NoDifference => "no difference",
            Self::Worse => "worse",
            Self::Failed => "pages failed to move",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A process that waits for an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    pub process: Named,
    pub need: Option<Need>,
    pub hold: Hold,
}

/// A process that is never touched.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftAlone {
    pub process: Named,
    pub size: Bytes,
    pub why: Never,
}

/// A judged action; one that made it worse is to be taken back.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub process: Named,
    pub verdict: Verdict,
    /// The remote or stranded part before and after.
    pub before: f64,
    pub after: Option<f64>,
}

/// Why nothing at all may be done now.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// No memory of this machine is farther than other memory.
    NoDistance(&'static str),
    /// Tasks wait for memory: some, and all of them, in percent of ten seconds.
    Pressure(f64, f64),
    /// The kernel killed a process for want of memory in the window.
    OutOfMemory,
    /// Another program places processes.
    Placer(String),
    /// The first process has not all CPUs and nodes, so that nothing shows what others have by default.
    NoDefaults,
    /// This fact, without which it is not safe to move memory, is not readable.
    Unknown(&'static str),
}

impl Stop {
    /// Its word, in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::NoDistance(_) => "no_distance",
            Self::Pressure(..) => "memory_pressure",
            Self::OutOfMemory => "out_of_memory",
            Self::Placer(_) => "other_placer",
            Self::NoDefaults => "defaults_unknown",
            Self::Unknown(_) => "unknown",
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDistance(class) => write!(f, "no memory is remote on this machine ({class})"),
            Self::Pressure(some, full) => {
                write!(f, "programs wait for memory (PSI some {some:.1} %, full {full:.1} %)")
            }
            Self::OutOfMemory => f.write_str("the kernel killed a process for want of memory"),
            Self::Placer(name) => {
                write!(f, "{} places processes too: stop one of them", quote(name))
            }
            Self::NoDefaults => f.write_str(
                "process 1 has not all CPUs and nodes: which processes were placed on purpose is unknown",
            ),
            Self::Unknown(fact) => write!(f, "{fact} not readable"),
        }
    }
}

/// The answer to a window.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Plan {
    pub stop: Option<Stop>,
    /// Actions that may begin, the most needed first; one at a time, and together within the budget and the room.
    pub actions: Vec<Action>,
    pub waiting: Vec<Waiting>,
    pub left_alone: Vec<LeftAlone>,
    /// Processes with less memory than the limit.
    pub small: usize,
    pub judged: Vec<Judged>,
    /// Processes that want more CPUs than this controller left them: they are to have their old ones.
    pub release: Vec<Named>,
    /// Processes that this controller had moved and that another hand has changed since.
    pub handed_back: Vec<(Named, Never)>,
    /// Processes whose memory is known.
    pub examined: usize,
    /// CPU time of the window, and the part of it that went to remote memory.
    pub remote: RemoteTime,
}

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Done {
    /// Whether CPUs of threads were changed.
    pub narrowed: bool,
    pub moved: Bytes,
    pub failed: Bytes,
}

impl Plan {
    pub(super) fn wait(&mut self, process: &ProcessState<'_>, need: Option<Need>, hold: Hold) {
        self.waiting.push(Waiting { process: Named::new(process), need, hold });
    }

    /// Small processes that were not examined, and large ones whose pages could not be read.
    pub(super) fn add_unreadable(&mut self, seen: &Observation<'_>, limits: &Limits) {
        let situation = seen.situation;
        let known: BTreeSet<Identity> =
            situation.processes.iter().map(|of| of.process.identity).collect_set();
        for process in &situation.now.processes {
            let size = process.resident.unwrap_or_default();
            if process.kernel_thread || known.contains(&process.identity) {
                continue;
            }
            if size < limits.least_size {
                self.small += usize::from(size.get() > 0);
                continue;
            }
            self.left_alone.push(LeftAlone {
                process: Named { identity: process.identity, name: process.name.as_ref().to_owned() },
                size,
                why: Never::Unreadable("where its pages are"),
            });
        }
    }
}
