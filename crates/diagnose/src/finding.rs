//! A finding: what is wrong, the proof, the mend, and how to see that it worked.
//!
//! A finding is a fact with an effect: where pages are, what counters did in the window, against the edge that
//! the kernel itself acts on. A setting is at most the cause of one.

use nodewise_machine::{Bytes, NodeId, NodeSet};
use nodewise_source::paths::shown;
use nodewise_source::sample::Identity;

use crate::thresholds::{ReplacedThreshold, RuleThreshold, ThresholdUnit, Thresholds, mib};

pub use nodewise_machine::Severity;

pub use crate::thresholds::OWN;

/// How sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// Settings say it, or a text without rates.
    Possible,
    /// Rates or draws say it.
    Likely,
    /// The kernel's own counters or the places of pages say it.
    Certain,
}

impl Confidence {
    /// Its word, in text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

/// The subject of a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    Machine,
    Nodes(NodeSet),
    Process {
        identity: Identity,
        /// The name that it chose itself: not fit for a terminal.
        name: String,
        owner: Owner,
    },
    /// A device as users name it: `net:eth0`.
    Device(String),
}

impl Subject {
    /// One node.
    pub fn node(node: NodeId) -> Self {
        Self::Nodes(NodeSet::from_iter([node]))
    }

    /// Its kind, in JSON.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Nodes(_) => "node",
            Self::Process { .. } => "process",
            Self::Device(_) => "device",
        }
    }
}

/// Who places a process: a mend is written for the owner of the setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// Whoever started it.
    Itself,
    /// A unit of systemd, with its suffix.
    Service(String),
    /// A container: the program that runs it, and its identifier.
    Container(&'static str, String),
    /// The kubelet: it takes back what others set.
    Kubelet,
    /// A step of Slurm.
    Slurm,
    /// A virtual machine of libvirt, by name.
    Libvirt(String),
}

impl Owner {
    /// Its kind, in JSON.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Itself => "process",
            Self::Service(_) => "systemd",
            Self::Container(..) => "container",
            Self::Kubelet => "kubelet",
            Self::Slurm => "slurm",
            Self::Libvirt(_) => "libvirt",
        }
    }

    /// Its name where it has one: not fit for a terminal.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Service(name) | Self::Container(_, name) | Self::Libvirt(name) => Some(name),
            Self::Itself | Self::Kubelet | Self::Slurm => None,
        }
    }
}

/// A number with its unit, or words.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Size(Bytes),
    /// From 0 to 1.
    Share(f64),
    /// Events, or this unit, per second.
    Rate(f64, &'static str),
    Count(u64, &'static str),
    Text(String),
}

impl Value {
    /// A number in the unit of a threshold.
    pub fn in_unit(number: f64, unit: ThresholdUnit) -> Self {
        match unit {
            ThresholdUnit::Share => Self::Share(number),
            ThresholdUnit::Mib => Self::Size(mib(number)),
            ThresholdUnit::PerSecond(events) => Self::Rate(number, events),
            ThresholdUnit::Times
            | ThresholdUnit::Seconds
            | ThresholdUnit::Microseconds
            | ThresholdUnit::Count(_) => Self::Text(format!("{number} {}", unit.word())),
        }
    }

    /// Words.
    pub fn text(words: impl Into<String>) -> Self {
        Self::Text(words.into())
    }
}

/// The number from which on it counts, and who says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    pub value: Value,
    pub origin: &'static str,
}

/// One number of the proof.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    pub fact: String,
    pub value: Value,
    pub threshold: Option<Threshold>,
    /// Where it was read.
    pub read_from: &'static str,
}

impl Evidence {
    /// A fact and where it was read.
    pub fn new(fact: impl Into<String>, value: Value, read_from: &'static str) -> Self {
        Self { fact: fact.into(), value, threshold: None, read_from }
    }

    /// With a threshold of the catalogue.
    #[must_use]
    pub fn at(self, thresholds: &Thresholds, of: &RuleThreshold) -> Self {
        self.at_part(Value::in_unit(thresholds.get(of), of.unit), thresholds, of)
    }

    /// With a number that a threshold of the catalogue gives.
    #[must_use]
    pub fn at_part(self, value: Value, thresholds: &Thresholds, of: &RuleThreshold) -> Self {
        self.against(value, thresholds.origin(of))
    }

    /// With the number from which on it counts.
    #[must_use]
    pub fn against(mut self, value: Value, origin: &'static str) -> Self {
        self.threshold = Some(Threshold { value, origin });
        self
    }
}

/// When a mend works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Now,
    /// After the program's next start.
    Restart,
    /// After the machine's next start.
    Reboot,
    /// With the machine switched off and open.
    Hardware,
}

impl Scope {
    /// Its word, in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Restart => "restart",
            Self::Reboot => "reboot",
            Self::Hardware => "hardware",
        }
    }

    /// Its words, in text.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Now => "at once",
            Self::Restart => "after a restart of the program",
            Self::Reboot => "after a reboot",
            Self::Hardware => "with the machine switched off",
        }
    }
}

/// A way to mend it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mend {
    /// Its effect and its price.
    pub what: String,
    /// Each runs alone, and a second time changes nothing. Empty where no command can do it.
    pub commands: Vec<String>,
    pub scope: Scope,
    pub needs_root: bool,
    /// The memory that it moves.
    pub moves: Option<Bytes>,
    /// Commands that take it back; empty where nothing has to be taken back, or nothing can.
    pub undo: Vec<String>,
}

impl Mend {
    /// A mend by words alone.
    pub fn words(what: impl Into<String>, scope: Scope) -> Self {
        Self {
            what: what.into(),
            commands: Vec::new(),
            scope,
            needs_root: false,
            moves: None,
            undo: Vec::new(),
        }
    }

    /// Moves pages of a process: at once, and back by the list of what was where.
    pub fn migrate(what: impl Into<String>, pid: u32, from: Option<&NodeSet>, to: &str, size: Bytes) -> Self {
        let file = format!("nodewise-{pid}.moved");
        let from = from.map_or_else(String::new, |from| format!(" --from-nodes {from}"));
        Self {
            commands: vec![format!("nodewise migrate {pid}{from} --to {to} --save {file}")],
            needs_root: true,
            moves: Some(size),
            undo: vec![format!("nodewise migrate --undo {file}")],
            ..Self::words(what, Scope::Now)
        }
    }

    /// The same of a migration for pages that other processes map, too.
    #[must_use]
    pub fn with_shared_pages(mut self) -> Self {
        for command in self.commands.iter_mut().chain(&mut self.undo) {
            command.push_str(" --shared");
        }
        self
    }

    /// A value in a file of the kernel, by sysctl: at once, until the next boot.
    pub fn sysctl(what: impl Into<String>, key: &str, value: u64, old: u64) -> Self {
        Self {
            commands: vec![format!("sysctl -w {key}={value}")],
            needs_root: true,
            undo: vec![format!("sysctl -w {key}={old}")],
            ..Self::words(what, Scope::Now)
        }
    }

    /// Drops the page cache. Nothing can take that back but reading the files again.
    pub fn drop_page_cache(what: impl Into<String>, scope: Scope) -> Self {
        Self {
            commands: vec!["sync".to_owned(), format!("echo 1 > {}", shown::DROP_CACHES)],
            needs_root: true,
            ..Self::words(what, scope)
        }
    }

    /// Sets the pool of huge pages of a size on nodes: each with its new number of pages, and the old one.
    pub fn pool(
        what: impl Into<String>,
        scope: Scope,
        page_size: Bytes,
        nodes: &[(NodeId, u64, u64)],
    ) -> Self {
        let set = |count: fn(&(NodeId, u64, u64)) -> u64| {
            let counts: Vec<String> =
                nodes.iter().map(|node| format!("{}={}", node.0, count(node))).collect();
            format!("nodewise hugepages set {} --huge-page-size={}", counts.join(","), page_size.exact())
        };
        Self {
            commands: vec![set(|node| node.1)],
            needs_root: true,
            undo: vec![set(|node| node.2)],
            ..Self::words(what, scope)
        }
    }

    /// A word in a file of the kernel: at once, until the next boot.
    pub fn write(what: impl Into<String>, file: &str, value: &str, old: &str) -> Self {
        Self {
            commands: vec![format!("echo {value} > {file}")],
            needs_root: true,
            undo: vec![format!("echo {old} > {file}")],
            ..Self::words(what, Scope::Now)
        }
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleFinding {
    /// The rule that found it.
    pub rule: &'static str,
    pub severity: Severity,
    pub confidence: Confidence,
    pub subject: Subject,
    /// A sentence about it.
    pub summary: String,
    /// Memory that it concerns: the largest comes first.
    pub concerns: Option<Bytes>,
    pub evidence: Vec<Evidence>,
    /// Why it is so, where that is known.
    pub cause: Option<String>,
    pub mends: Vec<Mend>,
    /// A measurement that says whether a change helps, where a mend could make it worse.
    pub experiment: Option<String>,
    /// Nodes that it touches: findings are folded where they touch the same.
    pub nodes: NodeSet,
    /// Thresholds of its rule that a file replaced.
    pub replaced: Vec<ReplacedThreshold>,
    /// Findings that it explains.
    pub explains: Vec<RuleFinding>,
}

impl RuleFinding {
    /// A finding of a rule, with nothing else known.
    pub fn new(rule: &'static str, severity: Severity, subject: Subject, summary: impl Into<String>) -> Self {
        let nodes = match &subject {
            Subject::Nodes(nodes) => nodes.clone(),
            _ => NodeSet::new(),
        };
        Self {
            rule,
            severity,
            confidence: Confidence::Certain,
            subject,
            summary: summary.into(),
            concerns: None,
            evidence: Vec::new(),
            cause: None,
            mends: Vec::new(),
            experiment: None,
            nodes,
            replaced: Vec::new(),
            explains: Vec::new(),
        }
    }
}
