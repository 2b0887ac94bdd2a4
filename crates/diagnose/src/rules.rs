//! The catalogue: one rule per file.
//!
//! To add one: a file in `rules/` with a `pub static RULE`, a line in [`ALL`], and tests that show it firing, silent
//! on a healthy machine, silent in its trap, and not examined.

mod affinity_intersects_to_one;
mod balancing_cannot;
mod balancing_costly;
mod balancing_off;
mod balancing_on_but_placed;
mod balancing_ping_pong;
mod bind_too_small;
mod board_hints;
mod bound_away;
mod cache_fills_node;
mod counters_off;
mod cpu_inference_one_node;
mod cpus_without_mems;
mod cpuset_eats_policy;
mod demotion_breaks_binding;
mod device_node_unknown;
mod device_user_remote;
mod devices_lopsided;
mod dimms_uneven;
mod distances_flat;
mod distances_invalid;
mod fake_nodes_bound;
mod fake_nodes_local;
mod fake_not_honoured;
mod file_cache_far;
mod first_touch_on_one;
mod go_across_nodes;
mod gpu_staging_interleaved;
mod guest_distances_flat;
mod guest_one_node_of_many;
mod half_tiering;
mod hugepages_cut;
mod hugepages_idle;
mod hugepages_uneven;
mod hugepages_wrong_node;
mod hugetlb_stays;
mod inherited_policy;
mod interleaved_but_small;
mod irq_remote;
pub mod irqbalance_against_you;
mod jvm_numa_unused;
mod jvm_numa_void;
mod kernel_memory_lopsided;
mod kernel_without_numa;
mod kswapd_one_node;
mod kubelet_cpu_only;
mod kubelet_too_many_nodes;
mod libvirt_strict;
mod memory_offline;
mod memory_on_one_node;
mod memory_stranded;
mod mems_without_cpus;
mod mongod_start;
mod mysqld_interleave;
mod node_at_watermark;
mod node_movable_only;
mod node_without_memory;
mod nodes_hidden;
mod numa_off;
mod oom_while_free;
mod openmp_unbound;
mod policy_refused;
mod policy_too_late;
mod profile_against_workload;
mod promotion_unlimited;
mod quota_spans_nodes;
mod ranks_on_one_core;
mod reserve_too_large;
mod reserve_too_small;
mod rps_xps_remote;
mod scan_too_slow;
mod server_on_half;
mod setting_does_not_exist;
mod shared_segment_on_one;
mod slow_node_in_interleave;
mod slurm_no_binding;
mod swap_while_free;
mod thp_advice_outdated;
mod thp_and_fork;
mod thp_stalling;
mod thread_wanders;
mod tiers_flat;
pub(crate) mod two_placers;
mod vm_memory_stranded;
mod vm_spans;
mod weights_not_set;
mod words;
mod zone_reclaim_on;
mod zone_reclaim_void;

use crate::rule::Rule;

/// Every rule, by family: one process, full nodes, huge pages, balancing, tiers, containers, devices,
/// firmware, programs.
pub static ALL: &[&Rule] = &[
    &memory_stranded::RULE,
    &bound_away::RULE,
    &first_touch_on_one::RULE,
    &policy_too_late::RULE,
    &shared_segment_on_one::RULE,
    &interleaved_but_small::RULE,
    &inherited_policy::RULE,
    &thread_wanders::RULE,
    &file_cache_far::RULE,
    &cpu_inference_one_node::RULE,
    &gpu_staging_interleaved::RULE,
    &vm_memory_stranded::RULE,
    &vm_spans::RULE,
    &node_at_watermark::RULE,
    &swap_while_free::RULE,
    &oom_while_free::RULE,
    &bind_too_small::RULE,
    &libvirt_strict::RULE,
    &cache_fills_node::RULE,
    &zone_reclaim_on::RULE,
    &zone_reclaim_void::RULE,
    &reserve_too_large::RULE,
    &reserve_too_small::RULE,
    &kswapd_one_node::RULE,
    &kernel_memory_lopsided::RULE,
    &node_movable_only::RULE,
    &memory_offline::RULE,
    &hugepages_uneven::RULE,
    &hugepages_cut::RULE,
    &hugepages_idle::RULE,
    &hugepages_wrong_node::RULE,
    &hugetlb_stays::RULE,
    &thp_stalling::RULE,
    &thp_and_fork::RULE,
    &thp_advice_outdated::RULE,
    &balancing_off::RULE,
    &balancing_costly::RULE,
    &balancing_ping_pong::RULE,
    &balancing_cannot::RULE,
    &scan_too_slow::RULE,
    &balancing_on_but_placed::RULE,
    &two_placers::RULE,
    &counters_off::RULE,
    &profile_against_workload::RULE,
    &slow_node_in_interleave::RULE,
    &weights_not_set::RULE,
    &tiers_flat::RULE,
    &half_tiering::RULE,
    &demotion_breaks_binding::RULE,
    &promotion_unlimited::RULE,
    &cpus_without_mems::RULE,
    &mems_without_cpus::RULE,
    &cpuset_eats_policy::RULE,
    &policy_refused::RULE,
    &quota_spans_nodes::RULE,
    &kubelet_cpu_only::RULE,
    &kubelet_too_many_nodes::RULE,
    &slurm_no_binding::RULE,
    &irq_remote::RULE,
    &irqbalance_against_you::RULE,
    &rps_xps_remote::RULE,
    &device_user_remote::RULE,
    &device_node_unknown::RULE,
    &devices_lopsided::RULE,
    &affinity_intersects_to_one::RULE,
    &nodes_hidden::RULE,
    &guest_one_node_of_many::RULE,
    &numa_off::RULE,
    &kernel_without_numa::RULE,
    &node_without_memory::RULE,
    &memory_on_one_node::RULE,
    &dimms_uneven::RULE,
    &distances_invalid::RULE,
    &distances_flat::RULE,
    &guest_distances_flat::RULE,
    &fake_nodes_local::RULE,
    &fake_nodes_bound::RULE,
    &fake_not_honoured::RULE,
    &board_hints::RULE,
    &setting_does_not_exist::RULE,
    &ranks_on_one_core::RULE,
    &server_on_half::RULE,
    &openmp_unbound::RULE,
    &jvm_numa_unused::RULE,
    &jvm_numa_void::RULE,
    &go_across_nodes::RULE,
    &mongod_start::RULE,
    &mysqld_interleave::RULE,
];

#[cfg(test)]
mod tests;
