//! Arguments of the calls, as data: below the calls themselves and below their errors.

use std::ffi::c_int;
use std::fmt;

use nodewise_machine::Bytes;
use nodewise_machine::placement::TransparentHuge;

/// Advice for `madvise(2)` about a range of memory; none changes the contents of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// `MADV_HUGEPAGE`: back the range with transparent huge pages. Linux 2.6.38.
    HugePages,
    /// `MADV_NOHUGEPAGE`: keep to small pages. Linux 2.6.38.
    SmallPages,
    /// `MADV_DONTFORK`: leave the range out of what `fork(2)` copies. Linux 2.6.16.
    NotForChildren,
    /// `MADV_DOFORK`: take [`Advice::NotForChildren`] back. Linux 2.6.16.
    ForChildren,
    /// `MADV_POPULATE_WRITE`: allocate every page now, as a write would. Linux 5.14.
    Populate,
    /// `MADV_POPULATE_READ`: map every page now, as a read would. Linux 5.14.
    PopulateToRead,
}

impl Advice {
    pub(crate) const fn number(self) -> c_int {
        match self {
            Self::HugePages => libc::MADV_HUGEPAGE,
            Self::SmallPages => libc::MADV_NOHUGEPAGE,
            Self::NotForChildren => libc::MADV_DONTFORK,
            Self::ForChildren => libc::MADV_DOFORK,
            Self::Populate => libc::MADV_POPULATE_WRITE,
            Self::PopulateToRead => libc::MADV_POPULATE_READ,
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HugePages => "MADV_HUGEPAGE",
            Self::SmallPages => "MADV_NOHUGEPAGE",
            Self::NotForChildren => "MADV_DONTFORK",
            Self::ForChildren => "MADV_DOFORK",
            Self::Populate => "MADV_POPULATE_WRITE",
            Self::PopulateToRead => "MADV_POPULATE_READ",
        })
    }
}

/// A size of huge page that a kernel may keep a pool of: a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HugePageSize(pub(crate) u32);

impl HugePageSize {
    /// 2 MiB: x86, Arm with pages of 4 KiB, RISC-V.
    pub const MIB_2: Self = Self(21);
    /// 1 GiB: x86, Arm with pages of 4 KiB, RISC-V.
    pub const GIB_1: Self = Self(30);

    /// The page of this size; `None` unless it is a power of two of at least 64 KiB, the smallest
    /// pool of any architecture, and at most 16 GiB, the largest.
    pub fn new(size: Bytes) -> Option<Self> {
        let shift = size.get().checked_ilog2()?;
        (size.get().is_power_of_two() && (16..=34).contains(&shift)).then_some(Self(shift))
    }

    /// The size in bytes.
    pub const fn bytes(self) -> Bytes {
        Bytes::new(1 << self.0)
    }
}

/// The pages of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageKind {
    /// Small pages only, whatever the system's setting for transparent huge pages is.
    Small,
    /// Transparent huge pages, as far as the kernel finds any: its outcome shows in
    /// `AnonHugePages` of `/proc/PID/smaps`, not in an error.
    TransparentHuge,
    /// Pages from the kernel's pool of this size, or none at all.
    Hugetlb(HugePageSize),
}

impl fmt::Display for PageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Small => f.write_str("small pages"),
            Self::TransparentHuge => f.write_str("transparent huge pages"),
            Self::Hugetlb(size) => write!(f, "{} huge pages", size.bytes()),
        }
    }
}

/// The treatment of pages that `mbind(2)` finds in a range. The default: they stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BindOptions {
    /// Which misplaced pages to move.
    pub moving: Option<PageScope>,
    /// Whether a page that is, or after moving remains, on another node is an error: `EIO`.
    pub strict: bool,
}

impl fmt::Display for BindOptions {
    /// Writes what is asked, each with a comma in front: `, move all, strict`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.moving {
            None => "",
            Some(PageScope::Own) => ", move",
            Some(PageScope::All) => ", move all",
        })?;
        f.write_str(if self.strict { ", strict" } else { "" })
    }
}

/// Which pages may be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageScope {
    /// Those that only this process maps: `MPOL_MF_MOVE`.
    Own,
    /// Also those that other processes map: `MPOL_MF_MOVE_ALL`. Needs `CAP_SYS_NICE` outside of any
    /// user namespace.
    All,
}

impl fmt::Display for PageScope {
    /// Nothing for the usual scope, `, shared ones too` for the other.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "",
            Self::All => ", shared ones too",
        })
    }
}

/// The arguments in words, as a message writes them.
pub(crate) const fn thp_words(setting: TransparentHuge) -> &'static str {
    match setting {
        TransparentHuge::Allowed => "0",
        TransparentHuge::Never => "1",
        TransparentHuge::OnlyAdvised => "1, PR_THP_DISABLE_EXCEPT_ADVISED",
    }
}
