//! Oddities: wrong or unusual facts of a machine, or of the files that describe it.

use std::fmt;

/// The kinds of oddity. Each has a word that does not change, for scripts and JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OddityKind {
    /// The distance from a to b is not that from b to a.
    DistanceAsymmetric,
    /// A pair of nodes has no distance.
    DistanceMissing,
    /// A distance of 10 (local) between two different nodes.
    DistanceLocalOffDiagonal,
    /// A distance below 10, or not 10 from a node to itself.
    DistanceInvalid,
    /// Several nodes list the same CPU.
    CpuInSeveralNodes,
    /// An online CPU that no node lists.
    CpuInNoNode,
    /// A node lists a CPU that is not online.
    CpuNotOnline,
    /// A CPU that exists and is not online.
    CpuOffline,
    /// A node without CPUs, memory or another initiator.
    NodeEmpty,
    /// A node that is possible or expected and is missing.
    NodeMissing,
    /// A node whose memory size the kernel does not say.
    MemoryUnknown,
    /// A node whose allocator manages far less memory than is present.
    MemoryHeldBack,
    /// Two files say different things.
    Disagreement,
    /// A file that exists and does not parse.
    Unparseable,
    /// A file that exists and cannot be read.
    Unreadable,
    /// A file with bytes that do not belong there, which were ignored.
    StrayBytes,
    /// This process may not use all CPUs or all memory nodes.
    Restricted,
    /// Nodes that cannot differ: the numbers are nominal (emulated nodes).
    Nominal,
    /// No node at all: a kernel without NUMA, or a capture without its files.
    NoNodes,
    /// The kernel rejects a table of the firmware as a whole.
    FirmwareRejected,
    /// The kernel accepts a table of the firmware and does not boot with it.
    FirmwareDoesNotBoot,
    /// A table of the firmware with something unusual, or with a part that is ignored.
    FirmwareUnusual,
    /// The firmware does not say it, and it is taken for granted.
    FirmwareAssumed,
    /// Memory modules of several sizes or speeds.
    MemoryModulesMixed,
    /// Nodes or sockets with more memory in modules than others.
    MemoryModulesUneven,
    /// Memory channels with more memory than others of their socket.
    MemoryChannelsUneven,
}

impl OddityKind {
    /// Every kind.
    pub const ALL: [Self; 26] = [
        Self::DistanceAsymmetric,
        Self::DistanceMissing,
        Self::DistanceLocalOffDiagonal,
        Self::DistanceInvalid,
        Self::CpuInSeveralNodes,
        Self::CpuInNoNode,
        Self::CpuNotOnline,
        Self::CpuOffline,
        Self::NodeEmpty,
        Self::NodeMissing,
        Self::MemoryUnknown,
        Self::MemoryHeldBack,
        Self::Disagreement,
        Self::Unparseable,
        Self::Unreadable,
        Self::StrayBytes,
        Self::Restricted,
        Self::Nominal,
        Self::NoNodes,
        Self::FirmwareRejected,
        Self::FirmwareDoesNotBoot,
        Self::FirmwareUnusual,
        Self::FirmwareAssumed,
        Self::MemoryModulesMixed,
        Self::MemoryModulesUneven,
        Self::MemoryChannelsUneven,
    ];

    /// The word for scripts: `distance-asymmetric`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::DistanceAsymmetric => "distance-asymmetric",
            Self::DistanceMissing => "distance-missing",
            Self::DistanceLocalOffDiagonal => "distance-local-off-diagonal",
            Self::DistanceInvalid => "distance-invalid",
            Self::CpuInSeveralNodes => "cpu-in-several-nodes",
            Self::CpuInNoNode => "cpu-in-no-node",
            Self::CpuNotOnline => "cpu-not-online",
            Self::CpuOffline => "cpu-offline",
            Self::NodeEmpty => "node-empty",
            Self::NodeMissing => "node-missing",
            Self::MemoryUnknown => "memory-unknown",
            Self::MemoryHeldBack => "memory-held-back",
            Self::Disagreement => "disagreement",
            Self::Unparseable => "unparseable",
            Self::Unreadable => "unreadable",
            Self::StrayBytes => "stray-bytes",
            Self::Restricted => "restricted",
            Self::Nominal => "nominal",
            Self::NoNodes => "no-nodes",
            Self::FirmwareRejected => "firmware-rejected",
            Self::FirmwareDoesNotBoot => "firmware-does-not-boot",
            Self::FirmwareUnusual => "firmware-unusual",
            Self::FirmwareAssumed => "firmware-assumed",
            Self::MemoryModulesMixed => "memory-modules-mixed",
            Self::MemoryModulesUneven => "memory-modules-uneven",
            Self::MemoryChannelsUneven => "memory-channels-uneven",
        }
    }

    /// The kind with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl fmt::Display for OddityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One thing that is wrong or unusual: a sentence, and where it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oddity {
    pub kind: OddityKind,
    /// The file it was seen in, from the root of the machine (`/sys/...`), if it was one file.
    pub path: Option<String>,
    /// The line in that file, from 1.
    pub line: Option<u32>,
    /// The sentence: lower case, no full stop, already fit for a terminal.
    pub text: String,
}

impl Oddity {
    /// An oddity of the machine as a whole.
    pub fn new(kind: OddityKind, text: impl Into<String>) -> Self {
        Self { kind, path: None, line: None, text: text.into() }
    }

    /// An oddity of one file.
    pub fn in_file(kind: OddityKind, path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { kind, path: Some(path.into()), line: None, text: text.into() }
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            f.write_str(path)?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_word() {
        for kind in OddityKind::ALL {
            assert_eq!(OddityKind::from_word(kind.word()), Some(kind));
        }
        assert_eq!(OddityKind::from_word("strange"), None);
    }

    #[test]
    fn an_oddity_says_where() {
        let mut oddity = Oddity::in_file(OddityKind::Unparseable, "/sys/x", "expected a number");
        oddity.line = Some(3);
        assert_eq!(oddity.to_string(), "/sys/x:3: expected a number");
        assert_eq!(Oddity::new(OddityKind::NodeEmpty, "node 3 is empty").to_string(), "node 3 is empty");
    }
}
