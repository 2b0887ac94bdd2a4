//! Settings of the running system that nodewise changes: the one door through which they are written.
//!
//! A setting is a value of [`Setting`], never a path: what a journal names can be nothing but these. Whoever writes
//! keeps the old value in a [`journal`] first.

pub mod journal;

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write as _};

use nodewise_machine::{Bytes, NodeId};

use crate::file::{self, FileError};
use crate::parse::number;
use crate::paths;
use crate::tree::Tree;

/// A number that the kernel keeps, and that root may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting {
    /// Pages of a pool of huge pages.
    HugePages {
        node: NodeId,
        /// The size of a page.
        size: Bytes,
    },
    /// The weight of a node in weighted interleaving.
    InterleaveWeight { node: NodeId },
    /// Whether the kernel sets these weights itself: 0 or 1.
    InterleaveWeightsAuto,
}

impl Setting {
    /// The file that holds it.
    ///
    /// # Source
    /// `nr_hugepages` of a node's pool, Linux 2.6.32; weights, Linux 6.9 and 6.16.
    pub fn path(&self) -> String {
        match self {
            Self::HugePages { node, size } => paths::huge_pool(*node, *size, "nr_hugepages"),
            Self::InterleaveWeight { node } => paths::interleave_weight(*node),
            Self::InterleaveWeightsAuto => {
                let [usual, other] = paths::INTERLEAVE_WEIGHTS_AUTO;
                (if std::path::Path::new(other).exists() { other } else { usual }).to_owned()
            }
        }
    }

    /// Reads its present value; `None` where the kernel has no such setting.
    ///
    /// # Errors
    /// A file that cannot be read or does not hold a number.
    pub fn read(&self, tree: &Tree) -> Result<Option<u64>, FileError> {
        file::value(tree, &self.path(), number::number)
    }

    /// Writes a value. The kernel may take less than it was asked for, and report success.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn write(&self, value: u64) -> io::Result<()> {
        write(&self.path(), &value.to_string())
    }

    /// Opens its file for writing, and writes nothing: whether this user may set it.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn may_write(&self) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.path()).map(drop)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HugePages { node, size } => write!(f, "huge pages of {size} on node {node}"),
            Self::InterleaveWeight { node } => write!(f, "interleave weight of node {node}"),
            Self::InterleaveWeightsAuto => f.write_str("automatic interleave weights"),
        }
    }
}

/// Asks the kernel to compact the memory of a node, and waits until it has.
///
/// # Source
/// `/sys/devices/system/node/nodeN/compact`, Linux 2.6.35, in kernels with compaction.
///
/// # Errors
/// What the system refuses; a kernel without compaction has no such file.
pub fn compact(node: NodeId) -> io::Result<()> {
    write(&paths::of_node(node, "compact"), "1")
}

fn write(path: &str, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    #[test]
    fn a_setting_is_read_from_its_own_file() {
        let pool = Setting::HugePages { node: NodeId::new(3), size: Bytes::from_mib(2) };
        assert_eq!(pool.path(), "/sys/devices/system/node/node3/hugepages/hugepages-2048kB/nr_hugepages");
        assert_eq!(pool.to_string(), "huge pages of 2 MiB on node 3");
        let tree = Tree::memory(Memory::new().file(&pool.path(), "512\n"));
        assert_eq!(pool.read(&tree).unwrap(), Some(512));
        assert_eq!(Setting::InterleaveWeight { node: NodeId::new(0) }.read(&tree).unwrap(), None);
        let broken = Tree::memory(Memory::new().file(&pool.path(), "many\n"));
        assert!(pool.read(&broken).is_err());
    }
}
