//! Programs that the field has advice about: how each is recognised, today's rule, its own option, and old advice.
//!
//! The data are in `data/applications.toml`, a file for people who do not program. An entry never decides a placement.

mod read;
mod recognise;

use nodewise_machine::{Bytes, PolicyMode};

pub use read::{KnowledgeError, read};
pub use recognise::{Declared, ProgramFacts, declared, recognise};

/// The file that comes with nodewise.
const OWN: &str = include_str!("../data/applications.toml");

/// A kind of program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProgramKind {
    /// Memory of a fixed size that fits a node.
    OneNode,
    /// Memory that grows while it runs.
    Growing,
    Bandwidth,
    Latency,
    /// It works for one device.
    Device,
    /// It forks to save a snapshot of its memory.
    Snapshot,
    /// It can run as several instances.
    Splittable,
    /// Many threads or processes use one large segment at random.
    Shared,
    FileReader,
    /// A virtual machine.
    Guest,
    CollectedHeap,
    /// It places its threads and memory by itself.
    PlacesItself,
    /// It starts other programs and places them.
    Manager,
    Mixed,
}

impl ProgramKind {
    /// All of them, in the order of the file's comment.
    pub const ALL: [Self; 14] = [
        Self::OneNode,
        Self::Growing,
        Self::Bandwidth,
        Self::Latency,
        Self::Device,
        Self::Snapshot,
        Self::Splittable,
        Self::Shared,
        Self::FileReader,
        Self::Guest,
        Self::CollectedHeap,
        Self::PlacesItself,
        Self::Manager,
        Self::Mixed,
    ];

    /// Its word, in the file and in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::OneNode => "one-node",
            Self::Growing => "growing",
            Self::Bandwidth => "bandwidth",
            Self::Latency => "latency",
            Self::Device => "device",
            Self::Snapshot => "snapshot",
            Self::Splittable => "splittable",
            Self::Shared => "shared",
            Self::FileReader => "file-reader",
            Self::Guest => "guest",
            Self::CollectedHeap => "collected-heap",
            Self::PlacesItself => "places-itself",
            Self::Manager => "manager",
            Self::Mixed => "mixed",
        }
    }

    /// Its words, in text.
    pub const fn words(self) -> &'static str {
        match self {
            Self::OneNode => "fits a node",
            Self::Growing => "grows",
            Self::Bandwidth => "limited by bandwidth",
            Self::Latency => "limited by latency",
            Self::Device => "works for a device",
            Self::Snapshot => "forks for snapshots",
            Self::Splittable => "can be split",
            Self::Shared => "memory shared by all threads",
            Self::FileReader => "reads through the page cache",
            Self::Guest => "virtual machine",
            Self::CollectedHeap => "heap with a garbage collector",
            Self::PlacesItself => "places itself",
            Self::Manager => "places other programs",
            Self::Mixed => "mixed",
        }
    }
}

/// An entry of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    pub id: String,
    pub name: String,
    /// The most important first; never empty.
    pub kinds: Vec<ProgramKind>,
    /// One of them that fits is enough.
    pub signs: Vec<Sign>,
    pub memory: Vec<MemoryWord>,
    pub rule: String,
    pub reason: String,
    pub options: Vec<OwnOption>,
    /// The tool of `run --emit` that writes its configuration.
    pub emit: Option<String>,
    pub obsolete: Option<String>,
    pub sources: Vec<String>,
    /// The day on which the sources were read.
    pub checked: String,
}

impl Application {
    /// Whether the program is of a kind.
    pub fn is(&self, kind: ProgramKind) -> bool {
        self.kinds.contains(&kind)
    }
}

/// Patterns of a process: of each list that is not empty, one must fit.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sign {
    pub exe: Vec<String>,
    pub script: Vec<String>,
    pub word: Vec<String>,
    pub library: Vec<String>,
    /// None of these may fit.
    pub without: Vec<String>,
}

/// A word of the command line that says how much memory the program may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryWord {
    /// The text before the size.
    pub before: String,
    /// Whether the size is in the word after it.
    pub is_next: bool,
    /// The text that the next word begins with.
    pub next_before: String,
    /// The unit of a number without one.
    pub unit: Bytes,
}

/// A setting of the program itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnOption {
    pub file: String,
    pub text: String,
    pub when: OptionFor,
}

/// The placements that an option goes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionFor {
    Any,
    /// One node for an instance.
    Node,
    /// Memory over several nodes.
    Spread,
}

impl OptionFor {
    /// Whether the option goes with a memory policy.
    pub const fn suits(self, mode: PolicyMode) -> bool {
        let is_spread =
            matches!(mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave | PolicyMode::Local);
        match self {
            Self::Any => true,
            Self::Node => !is_spread,
            Self::Spread => is_spread,
        }
    }
}

/// The programs of the file that comes with nodewise.
///
/// # Errors
/// A file that was edited wrongly.
pub fn applications() -> Result<Vec<Application>, KnowledgeError> {
    read(OWN)
}

#[cfg(test)]
mod tests;
