//! The catalogue: one rule per file.
//!
//! To add one: a file in `rules/` with a `pub static RULE`, a line in [`ALL`], and tests that show it firing, silent
//! on a healthy machine, silent in its trap, and not examined.

mod bound_away;
mod kswapd_one_node;
mod memory_stranded;
mod node_at_watermark;
mod swap_while_free;
mod zone_reclaim_void;

use crate::rule::Rule;

/// Every rule, by family: one process, full nodes, huge pages, balancing, tiers, containers, devices, firmware.
pub static ALL: &[&Rule] = &[
    &memory_stranded::RULE,
    &bound_away::RULE,
    &node_at_watermark::RULE,
    &swap_while_free::RULE,
    &kswapd_one_node::RULE,
    &zone_reclaim_void::RULE,
];

#[cfg(test)]
mod tests;
