//! The catalogue: one rule per file.
//!
//! To add one: a file in `rules/` with a `pub static RULE`, a line in [`ALL`], and tests that show it firing, silent
//! on a healthy machine, silent in its trap, and not examined.

mod balancing_cannot;
mod balancing_costly;
mod balancing_off;
mod bind_too_small;
mod bound_away;
mod cpus_without_mems;
mod demotion_breaks_binding;
mod file_cache_far;
mod first_touch_on_one;
mod half_tiering;
mod hugepages_idle;
mod hugepages_uneven;
mod hugepages_wrong_node;
mod hugetlb_stays;
mod interleaved_but_small;
mod kswapd_one_node;
mod memory_stranded;
mod mems_without_cpus;
mod node_at_watermark;
mod policy_too_late;
mod shared_segment_on_one;
mod slow_node_in_interleave;
mod swap_while_free;
mod thp_stalling;
mod two_placers;
mod weights_not_set;
mod words;
mod zone_reclaim_void;

use crate::rule::Rule;

/// Every rule, by family: one process, full nodes, huge pages, balancing, tiers, containers, devices, firmware.
pub static ALL: &[&Rule] = &[
    &memory_stranded::RULE,
    &bound_away::RULE,
    &first_touch_on_one::RULE,
    &policy_too_late::RULE,
    &shared_segment_on_one::RULE,
    &interleaved_but_small::RULE,
    &file_cache_far::RULE,
    &node_at_watermark::RULE,
    &swap_while_free::RULE,
    &bind_too_small::RULE,
    &zone_reclaim_void::RULE,
    &kswapd_one_node::RULE,
    &hugepages_uneven::RULE,
    &hugepages_idle::RULE,
    &hugepages_wrong_node::RULE,
    &hugetlb_stays::RULE,
    &thp_stalling::RULE,
    &balancing_off::RULE,
    &balancing_costly::RULE,
    &balancing_cannot::RULE,
    &two_placers::RULE,
    &slow_node_in_interleave::RULE,
    &weights_not_set::RULE,
    &half_tiering::RULE,
    &demotion_breaks_binding::RULE,
    &cpus_without_mems::RULE,
    &mems_without_cpus::RULE,
];

#[cfg(test)]
mod tests;
