//! Numbers that name things. A bare integer never means an id.
//!
//! Node and CPU numbers have holes, so an id is not an index either: look things up by id.

use std::fmt;

/// The common properties of the ids of a kind: a word for messages and an upper bound.
pub trait Id: Copy + Ord + fmt::Debug + fmt::Display + 'static {
    /// The word for one such thing: `node`, `CPU`.
    const WORD: &'static str;
    /// Ids are below this number. Text that names a larger one is refused instead of making a set
    /// of that size: a hostile `0-4294967295` must not cost half a gigabyte.
    const LIMIT: u32;
    /// Makes the id with this number.
    fn new(number: u32) -> Self;
    /// The number the kernel uses for it.
    fn number(self) -> u32;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $word:literal, $limit:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// Makes the id with this number.
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// The number the kernel uses for it.
            pub const fn number(self) -> u32 {
                self.0
            }
        }

        impl Id for $name {
            const WORD: &'static str = $word;
            const LIMIT: u32 = $limit;
            fn new(number: u32) -> Self {
                Self(number)
            }
            fn number(self) -> u32 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($word, " {}"), self.0)
            }
        }
    )*};
}

ids! {
    /// A NUMA node as Linux numbers it.
    ///
    /// The kernel's own bound is 1,024 (`NODES_SHIFT` of 10, its largest value in any
    /// architecture); ours leaves room for captures that were edited by hand.
    NodeId, "node", 1 << 14;
    /// A logical CPU as Linux numbers it (`cpuN`).
    CpuId, "CPU", 1 << 18;
    /// A physical package (socket): `topology/physical_package_id`.
    PackageId, "package", u32::MAX;
    /// A drawer of books on s390: `topology/drawer_id`, Linux 4.9.
    DrawerId, "drawer", u32::MAX;
    /// A book of packages, unique only inside its drawer, on s390: `topology/book_id`, Linux 2.6.37.
    BookId, "book", u32::MAX;
    /// A die inside its package: `topology/die_id`, Linux 5.2.
    DieId, "die", u32::MAX;
    /// A cluster of cores inside its die: `topology/cluster_id`, Linux 5.16.
    ClusterId, "cluster", u32::MAX;
    /// A core; unique only inside its package: `topology/core_id`.
    CoreId, "core", u32::MAX;
    /// A process; the kernel's bound is 2^22 (`PID_MAX_LIMIT`).
    Pid, "process", u32::MAX;
    /// A memory tier; smaller is faster: `memory_tierN`, Linux 6.1.
    TierId, "tier", u32::MAX;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_prints_as_its_number_and_pads() {
        assert_eq!(NodeId::new(7).to_string(), "7");
        assert_eq!(format!("{:>4}", CpuId::new(12)), "  12");
        assert_eq!(format!("{:?}", CpuId::new(12)), "CPU 12");
    }
}
