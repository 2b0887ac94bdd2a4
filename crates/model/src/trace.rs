//! Which functions of the kernel a request passes, in order.
//!
//! # Source
//! `mm/memory.c`, `mm/mempolicy.c` and `mm/page_alloc.c` of Linux 6.12; names of other releases
//! differ a little.

use nodewise_machine::PolicyMode;

use crate::walk::{Mark, Outcome};

/// A function, and what it does for this request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The kernel's name for it.
    pub function: &'static str,
    pub does: String,
}

/// The functions that the pages of an outcome passed.
pub fn trace(mode: PolicyMode, outcome: &Outcome) -> Vec<Passed> {
    let mut passed = Vec::new();
    let mut pass = |function, does: &str| passed.push(Passed { function, does: does.to_owned() });
    pass("get_vma_policy", "takes the policy of the mapping, else that of the task, else the default");
    match mode {
        PolicyMode::Interleave => pass("interleave_nid", "finds whose turn the page is, by its address"),
        PolicyMode::WeightedInterleave => {
            pass("weighted_interleave_nid", "finds whose turn the page is, by its address and the weights");
        }
        _ => {}
    }
    pass("policy_nodemask", nodemask(mode));
    if mode == PolicyMode::PreferredMany {
        pass(
            "alloc_pages_preferred_many",
            "begins with a pass over the policy's nodes that does not reclaim",
        );
    }
    let mut last = None;
    for stretch in &outcome.stretches {
        for share in &stretch.shares {
            if last == Some(share.mark) {
                continue;
            }
            match share.mark {
                Mark::Low if last == Some(Mark::Min) => {
                    pass("alloc_pages_preferred_many", "begins a second pass over all nodes");
                    pass("get_page_from_freelist", "takes pages from zones above their low watermark");
                }
                Mark::Low => {
                    pass("get_page_from_freelist", "takes pages from zones above their low watermark");
                }
                Mark::Min => {
                    pass("__alloc_pages_slowpath", "finds none, wakes kswapd on every node of the list");
                    pass("get_page_from_freelist", "takes pages from zones above their minimum watermark");
                }
            }
            last = Some(share.mark);
        }
    }
    if outcome.out_of_memory.is_some() {
        pass("__alloc_pages_direct_reclaim", "drops caches and swaps pages out of the nodes of the list");
        pass("out_of_memory", "ends a process when nothing more can be reclaimed");
    }
    passed
}

const fn nodemask(mode: PolicyMode) -> &'static str {
    match mode {
        PolicyMode::Default | PolicyMode::Local => "begins at the CPU's node; no node is left out",
        PolicyMode::Preferred => "begins at the preferred node; no node is left out",
        PolicyMode::Interleave | PolicyMode::WeightedInterleave => {
            "begins at the node whose turn it is; no node is left out"
        }
        PolicyMode::Bind | PolicyMode::PreferredMany => {
            "begins at the CPU's node and leaves out all but the policy's nodes"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::{Share, Stretch};
    use crate::zones::ZoneKind;
    use nodewise_machine::NodeId;

    #[test]
    fn each_change_of_the_watermark_is_a_step() {
        let stretch = |mark| Stretch {
            order: 0,
            shares: vec![Share { node: NodeId::new(0), kind: ZoneKind::Normal, mark, pages: 1 }],
        };
        let stretches = [Mark::Low, Mark::Min, Mark::Low].map(stretch).into();
        let outcome = Outcome { stretches, ..Outcome::default() };
        let functions: Vec<&str> =
            trace(PolicyMode::PreferredMany, &outcome).iter().map(|passed| passed.function).collect();
        assert_eq!(
            functions,
            [
                "get_vma_policy",
                "policy_nodemask",
                "alloc_pages_preferred_many",
                "get_page_from_freelist",
                "__alloc_pages_slowpath",
                "get_page_from_freelist",
                "alloc_pages_preferred_many",
                "get_page_from_freelist"
            ]
        );
    }
}
