//! Transparent huge pages at a fault: which memory has them, and how hard the kernel tries.
//!
//! # Source
//! `vma_thp_gfp_mask` in `mm/huge_memory.c`; 4.20 to at least 7.2. What khugepaged puts together later is not modelled.

use nodewise_machine::Machine;

use crate::memory::HugeEffort;
use crate::ram::huge_order;

/// The huge pages of private memory; `None` for memory that has small ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransparentHuge {
    /// Of memory that is not advised.
    pub plain: Option<HugeEffort>,
    /// Of memory that is advised to be in huge pages (`MADV_HUGEPAGE`).
    pub advised: Option<HugeEffort>,
}

impl TransparentHuge {
    /// Advised memory alone: what a machine gives that does not say.
    pub const ADVISED: Self = Self { plain: None, advised: Some(HugeEffort::Everywhere) };

    /// By the settings `transparent_hugepage/enabled` and `transparent_hugepage/defrag`.
    pub fn from_settings(enabled: Option<&str>, defrag: Option<&str>) -> Self {
        let advised = Some(Self::advised_effort(defrag));
        match enabled {
            Some("always") => Self { plain: Some(Self::plain_effort(defrag)), advised },
            Some("never") => Self { plain: None, advised: None },
            _ => Self { plain: None, advised },
        }
    }

    /// The same by the settings of a machine.
    pub fn from_machine(machine: &Machine) -> Self {
        let settings = &machine.settings;
        let (enabled, defrag) = (&settings.transparent_hugepage, &settings.transparent_hugepage_defrag);
        let own = Self::from_settings(enabled.as_deref(), defrag.as_deref());
        // Not where the size of huge pages is not known.
        if huge_order(machine).is_some() { own } else { Self { plain: None, ..own } }
    }

    /// The effort for memory that is advised, by `transparent_hugepage/defrag`.
    pub fn advised_effort(defrag: Option<&str>) -> HugeEffort {
        match defrag {
            Some("never" | "defer") => HugeEffort::FirstNode,
            _ => HugeEffort::Everywhere,
        }
    }

    /// The effort for all other memory.
    pub fn plain_effort(defrag: Option<&str>) -> HugeEffort {
        match defrag {
            Some("always") => HugeEffort::Everywhere,
            _ => HugeEffort::FirstNode,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_say_which_memory_has_huge_pages() {
        const FIRST: Option<HugeEffort> = Some(HugeEffort::FirstNode);
        const EVERYWHERE: Option<HugeEffort> = Some(HugeEffort::Everywhere);
        let check = |enabled, defrag, plain, advised| {
            let expected = TransparentHuge { plain, advised };
            assert_eq!(TransparentHuge::from_settings(enabled, defrag), expected, "{enabled:?} {defrag:?}");
        };
        check(None, None, None, EVERYWHERE);
        check(Some("never"), Some("always"), None, None);
        check(Some("madvise"), Some("madvise"), None, EVERYWHERE);
        check(Some("always"), Some("madvise"), FIRST, EVERYWHERE);
        check(Some("always"), Some("defer+madvise"), FIRST, EVERYWHERE);
        check(Some("always"), Some("always"), EVERYWHERE, EVERYWHERE);
        check(Some("always"), Some("defer"), FIRST, FIRST);
        check(Some("always"), Some("never"), FIRST, FIRST);
    }
}
