//! Why memory, or the kind of pages asked for, could not be had.

use super::circumstances::Circumstances;
use super::{Finding, Limit, too_old};
use crate::arguments::Advice;
use crate::arguments::{HugePageSize, PageKind};
use crate::error::Errno;
use crate::huge::TransparentHuge;

/// `mmap(2)`.
pub(super) fn map(pages: PageKind, errno: Errno) -> Option<Finding> {
    match (errno, pages) {
        (Errno::ENOMEM, PageKind::Hugetlb(size)) => {
            Some(Finding::new(Limit::Memory, format!("the pool has too few {pages}")).mend(more_pages(size)))
        }
        (Errno::EINVAL, PageKind::Hugetlb(_)) => {
            Some(Finding::new(Limit::KernelBuild, format!("this kernel has no pool of {pages}")))
        }
        (Errno::ENOMEM, _) => Some(
            Finding::new(Limit::Memory, "more than the limits on address space or committed memory allow")
                .mend("ask for less, or raise the limit (ulimit -v, vm.overcommit_memory)"),
        ),
        (Errno::EINVAL, _) => Some(Finding::new(Limit::Arguments, "a length of at least one byte is needed")),
        _ => None,
    }
}

/// `madvise(2)`.
pub(super) fn advise(advice: Advice, errno: Errno, circumstances: &Circumstances) -> Option<Finding> {
    let unknown_release = circumstances.release.is_none();
    match (errno, advice) {
        (Errno::EINVAL, Advice::HugePages | Advice::SmallPages) => Some(
            Finding::new(
                Limit::KernelBuild,
                "this kernel was built without transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE)",
            )
            .mend("use small pages, or pages of a pool"),
        ),
        (Errno::EINVAL, Advice::Populate) => {
            too_old("MADV_POPULATE_WRITE", (5, 14), unknown_release, circumstances)
                .map(|old| old.mend("leave the policy of the buffer out, and set that of the thread"))
        }
        (Errno::EFAULT, Advice::Populate) => Some(
            Finding::new(Limit::Memory, "the pool has too few huge pages on the nodes of the policy")
                .mend("give these nodes more, in nr_hugepages of each node"),
        ),
        (Errno::ENOMEM, _) => {
            Some(Finding::new(Limit::Address, "part of the range is not mapped, or no memory is left"))
        }
        (Errno::EHWPOISON, _) => {
            Some(Finding::new(Limit::Memory, "a page of the range has a hardware memory error"))
        }
        _ => None,
    }
}

/// `prctl(2)` with `PR_SET_THP_DISABLE` or `PR_GET_THP_DISABLE`.
pub(super) fn thp(setting: TransparentHuge, errno: Errno, circumstances: &Circumstances) -> Option<Finding> {
    if errno != Errno::EINVAL {
        return None;
    }
    let unknown_release = circumstances.release.is_none();
    match setting {
        TransparentHuge::OnlyAdvised => {
            too_old("huge pages only where a program advises them", (6, 18), unknown_release, circumstances)
                .map(|old| old.mend("use never, or write madvise into transparent_hugepage/enabled"))
        }
        TransparentHuge::Allowed | TransparentHuge::Never => {
            too_old("a setting for huge pages per process", (3, 15), unknown_release, circumstances)
        }
    }
}

/// How a pool gets more pages.
fn more_pages(size: HugePageSize) -> String {
    if size == HugePageSize::MIB_2 {
        return "give it more: sysctl vm.nr_hugepages=COUNT".to_owned();
    }
    let size = size.bytes().exact();
    format!("give it more at boot, when memory is still in one piece: hugepagesz={size} hugepages=COUNT")
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;
    use crate::call::Call;
    use nodewise_machine::{Bytes, KernelRelease};

    fn release(text: &str) -> Circumstances {
        Circumstances { release: KernelRelease::new(text), ..Circumstances::default() }
    }

    fn mmap(pages: PageKind) -> Call {
        Call::Mmap { length: Bytes::GIB, pages }
    }

    fn madvise(advice: Advice) -> Call {
        Call::Madvise { address: 0x20_0000, length: Bytes::GIB, advice }
    }

    #[test]
    fn a_pool_that_is_too_small_or_missing_is_named() {
        let here = Circumstances::default();
        check(
            mmap(PageKind::Hugetlb(HugePageSize::MIB_2)),
            Errno::ENOMEM,
            &here,
            Limit::Memory,
            "mmap(1 GiB, 2 MiB huge pages): the pool has too few 2 MiB huge pages; give it more: \
             sysctl vm.nr_hugepages=COUNT",
        );
        check(
            mmap(PageKind::Hugetlb(HugePageSize::GIB_1)),
            Errno::ENOMEM,
            &here,
            Limit::Memory,
            "mmap(1 GiB, 1 GiB huge pages): the pool has too few 1 GiB huge pages; give it more at \
             boot, when memory is still in one piece: hugepagesz=1G hugepages=COUNT",
        );
        check(
            mmap(PageKind::Hugetlb(HugePageSize::GIB_1)),
            Errno::EINVAL,
            &here,
            Limit::KernelBuild,
            "mmap(1 GiB, 1 GiB huge pages): this kernel has no pool of 1 GiB huge pages",
        );
        check(
            madvise(Advice::Populate),
            Errno::EFAULT,
            &here,
            Limit::Memory,
            "madvise(0x200000, 1 GiB, MADV_POPULATE_WRITE): the pool has too few huge pages on the nodes \
             of the policy; give these nodes more, in nr_hugepages of each node",
        );
    }

    #[test]
    fn memory_that_cannot_be_had_is_explained() {
        let here = Circumstances::default();
        check(
            mmap(PageKind::Small),
            Errno::ENOMEM,
            &here,
            Limit::Memory,
            "mmap(1 GiB, small pages): more than the limits on address space or committed memory allow; \
             ask for less, or raise the limit (ulimit -v, vm.overcommit_memory)",
        );
        check(
            Call::Mmap { length: Bytes::new(0), pages: PageKind::Small },
            Errno::EINVAL,
            &here,
            Limit::Arguments,
            "mmap(0 B, small pages): a length of at least one byte is needed",
        );
        check(
            madvise(Advice::Populate),
            Errno::EHWPOISON,
            &here,
            Limit::Memory,
            "madvise(0x200000, 1 GiB, MADV_POPULATE_WRITE): a page of the range has a hardware memory error",
        );
        check(
            madvise(Advice::SmallPages),
            Errno::ENOMEM,
            &here,
            Limit::Address,
            "madvise(0x200000, 1 GiB, MADV_NOHUGEPAGE): part of the range is not mapped, or no memory is left",
        );
    }

    #[test]
    fn huge_pages_that_the_kernel_does_not_know_are_explained_by_release_or_build() {
        check(
            madvise(Advice::HugePages),
            Errno::EINVAL,
            &Circumstances::default(),
            Limit::KernelBuild,
            "madvise(0x200000, 1 GiB, MADV_HUGEPAGE): this kernel was built without transparent huge \
             pages (CONFIG_TRANSPARENT_HUGEPAGE); use small pages, or pages of a pool",
        );
        check(
            madvise(Advice::Populate),
            Errno::EINVAL,
            &release("5.10.0-28-amd64"),
            Limit::KernelRelease,
            "madvise(0x200000, 1 GiB, MADV_POPULATE_WRITE): MADV_POPULATE_WRITE needs Linux 5.14 or \
             newer: this is 5.10.0-28-amd64; leave the policy of the buffer out, and set that of the thread",
        );
        let only_advised = || Call::SetThpDisable { setting: TransparentHuge::OnlyAdvised };
        check(
            only_advised(),
            Errno::EINVAL,
            &release("6.12.107+deb13-amd64"),
            Limit::KernelRelease,
            "prctl(PR_SET_THP_DISABLE, 1, PR_THP_DISABLE_EXCEPT_ADVISED): huge pages only where a \
             program advises them needs Linux 6.18 or newer: this is 6.12.107+deb13-amd64; use never, \
             or write madvise into transparent_hugepage/enabled",
        );
        check(
            Call::SetThpDisable { setting: TransparentHuge::Never },
            Errno::EINVAL,
            &release("3.10.0-1160.el7.x86_64"),
            Limit::KernelRelease,
            "prctl(PR_SET_THP_DISABLE, 1): a setting for huge pages per process needs Linux 3.15 or \
             newer: this is 3.10.0-1160.el7.x86_64",
        );
        check(
            Call::GetThpDisable,
            Errno::EINVAL,
            &Circumstances::default(),
            Limit::KernelRelease,
            "prctl(PR_GET_THP_DISABLE): a setting for huge pages per process needs Linux 3.15 or newer: \
             this kernel does not have it",
        );
    }
}
