//! The checks that run inside a guest.

mod advise;
mod balance;
mod bandwidth;
mod cache;
mod calls;
mod counters;
pub mod course;
mod doctor;
mod firmware;
mod fragmented;
mod full;
mod groups;
mod io;
mod limits;
mod loaded;
mod managed;
mod measure;
mod model;
mod moving;
mod oom;
mod policies;
mod pools;
mod raised;
mod running;
pub mod scripts;
mod short;
mod sick;
mod soak;
mod top;
mod topology;
mod tuning;
mod turns;
mod udev;
mod ways;

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use nodewise_syscall::{Task, affinity};

use crate::guest::{FIRST, MARK, Plan};
use crate::nodewise::Context;
use crate::watchdog::{BEGINS, END};

pub use soak::Load;

/// A check: what does not hold, as a message.
pub type Check = fn(&Context) -> Result<(), String>;

/// Checks of the model of the allocator against what the kernel does; on drawn machines too.
pub const MODEL: &[(&str, Check)] = &[
    ("the_firmwares_tables_give_the_kernels_nodes", firmware::tables),
    ("the_model_gives_the_kernels_fallback_orders", topology::fallback_orders),
    ("the_model_gives_the_kernels_zones", model::zones_of_ranges),
    ("the_model_gives_the_kernels_watermarks", model::watermarks),
    ("nodes_have_the_weights_that_the_kernel_works_out", model::weights_nobody_set),
    ("drawn_policies_get_the_kernels_answer", model::answers),
    ("pages_of_drawn_requests_are_where_the_model_says", model::drawn_requests),
    ("drawn_requests_are_counted_as_the_model_says", counters::drawn_requests),
    ("a_full_node_gives_way_as_the_model_says", full::small_pages),
    ("huge_pages_come_from_where_the_model_says_when_a_node_is_full", full::huge_pages),
    ("calls_with_any_arguments_get_the_kernels_answer", calls::numbers),
    ("drawn_scripts_end_as_the_model_says", scripts::play),
    ("a_pool_that_is_too_small_loses_what_programs_free", pools::too_small),
    ("a_page_of_a_pool_leaves_a_free_one_for_the_next", pools::moved),
];

/// Checks of what nodewise says of the machine, and where it places programs. Nothing but nodewise is
/// needed for these, so guests without the host's programs have them too.
pub const PLACEMENT: &[(&str, Check)] = &[
    ("the_guest_has_the_nodes_of_the_layout", topology::layout),
    ("show_json_equals_what_the_kernel_says", topology::show_json),
    ("show_text_names_every_node", topology::show_text),
    ("a_capture_loads_to_the_same_machine", topology::capture),
    ("membind_takes_pages_from_its_nodes_only", policies::membind),
    ("interleave_places_page_by_page", policies::interleave),
    ("interleave_places_huge_pages_one_by_one", policies::interleave_huge),
    ("weighted_interleave_follows_the_weights", policies::weighted_interleave),
    ("preferred_takes_pages_from_its_node", policies::preferred),
    ("preferred_many_takes_pages_from_the_nearest", policies::preferred_many),
    ("localalloc_follows_the_cpu", policies::localalloc),
    ("cpunodebind_and_physcpubind_bind", policies::cpu_binding),
    ("relative_inverse_all_and_same_name_nodes", policies::node_words),
    ("balancing_is_set_where_it_can_be", policies::balancing),
    ("near_a_device_is_its_node", policies::near_device),
    ("huge_pages_can_be_refused", policies::huge_never),
    ("a_node_without_cpus_is_explained", limits::no_cpus),
];

/// Rights, and measurements by node. They run in this order in one guest, so one must leave the
/// system as it found it.
pub const CHECKS: &[(&str, Check)] = &[
    ("pages_of_moved_memory_and_of_a_private_file_have_the_turns_of_the_model", turns::moved_and_private),
    ("a_cpuset_is_named_as_the_limit", limits::cpuset),
    ("an_ordinary_user_can_place_programs", limits::ordinary_user),
    ("latency_is_measured_on_the_pages_of_the_node_it_names", measure::placement),
    ("latency_marks_what_a_cpuset_forbids", measure::forbidden_node),
    ("latency_refuses_what_a_node_cannot_give", measure::too_little_memory),
    ("bandwidth_is_measured_on_the_pages_of_the_node_it_names", bandwidth::placement),
];

/// Measurements that take long in a guest: on one machine, on the others where they are asked for.
pub const LONG: &[(&str, Check)] = &[
    ("latency_goes_on_without_a_cpu_that_is_switched_off", measure::lost_cpu),
    ("latency_under_load_is_measured_where_its_paths_say", loaded::placement),
    ("cross_traffic_is_moved_where_its_path_says", loaded::cross_traffic),
    ("interleave_weights_are_set_and_put_back", bandwidth::weights),
    ("c2c_lines_are_on_the_nodes_that_are_their_homes", bandwidth::cores),
    ("files_in_memory_are_on_the_node_that_bandwidth_names", io::files),
    ("a_file_system_without_room_is_named_with_its_figure", io::no_room),
    ("a_block_device_is_read_into_buffers_on_each_node", io::block_device),
    ("tune_sees_the_pages_where_placements_put_them", tuning::residency),
    ("a_disk_fills_the_page_cache_of_the_node_that_reads_it", cache::disk),
    ("page_cache_makes_room_for_a_bound_program_and_files_in_memory_do_not", cache::bound),
    ("page_cache_that_is_not_on_the_disk_yet_makes_room_too", cache::dirty),
    ("the_process_that_is_killed_is_the_one_that_explain_names", oom::victim),
    ("rules_of_udev_fill_the_pools_of_huge_pages", udev::pools),
];

/// Scripts that change limits, weights and swap again and again, and have programs killed: last, because their messages push
/// those of the start out of the kernel's log.
const SCRIPTS: &[(&str, Check)] = &[
    ("drawn_scripts_of_further_kinds_end_as_the_model_says", scripts::kinds),
    ("a_rule_of_the_model_that_is_wrong_is_found_in_few_calls", scripts::wrong_rule),
    ("a_wrong_rule_of_huge_pages_threads_or_pools_is_found_in_few_calls", scripts::wrong_rules_of_kinds),
    ("a_wrong_rule_of_groups_or_swap_is_found_in_few_calls", scripts::wrong_rules_of_groups),
    ("a_program_in_c_repeats_what_a_script_did", scripts::as_programs),
];

/// Pages that move while programs run, on one machine: they take minutes.
const MOVING: &[(&str, Check)] = &[
    ("a_pool_that_is_short_is_named_with_what_it_got_and_restored", moving::pool_that_is_short),
    ("a_pool_on_a_fragmented_node_is_named_with_what_it_got", fragmented::pool),
    ("pages_of_a_running_program_move_at_a_rate_and_back", moving::there_and_back),
    ("ctrl_c_ends_a_migration_after_a_chunk", moving::interrupted),
    ("a_target_that_is_too_small_takes_what_it_can", moving::target_too_small),
    ("a_migration_without_the_right_names_what_would_give_it", moving::refused),
    ("shared_memory_is_seen_without_filling_it_and_moved_under_a_policy", moving::shared_memory),
];

/// The running system, on one machine with four nodes.
const RUNNING: &[(&str, Check)] = &[
    ("ten_programs_are_where_maps_and_stat_say", ways::ten_programs),
    ("top_has_the_program_with_the_most_stranded_memory_first", top::offender_first),
    ("intervals_of_drawn_pages_hold_the_true_share", running::drawn_pages),
    ("pages_that_balancing_moves_are_counted_as_the_kernel_counts_them", running::balancing),
    ("counters_of_nodes_are_the_differences_of_the_kernels", running::counters),
    ("a_right_that_is_missing_is_named_with_what_gives_it", running::rights),
    ("nothing_is_wrong_with_a_healthy_system", doctor::healthy),
    ("stranded_memory_is_found_mended_and_stranded_again", doctor::stranded),
    ("memory_bound_away_from_its_cpus_is_found", doctor::bound_away),
    ("a_node_that_a_program_fills_is_found_and_relieved", doctor::full_node),
    ("balance_moves_stranded_memory_and_undo_takes_it_back", balance::stranded),
    ("balance_leaves_placed_programs_alone_by_name", balance::left_alone),
    ("balance_that_is_killed_leaves_a_journal_that_undo_follows", balance::killed),
    ("a_pool_that_is_short_on_one_node_is_found_and_filled", doctor::uneven_pool),
    ("advice_for_a_small_program_is_one_node", advise::small),
    ("advice_for_a_program_away_from_its_memory_makes_it_local_and_is_undone", advise::away),
    ("advice_for_a_program_that_grows_binds_nothing", advise::growing),
    ("an_applied_advice_brings_memory_to_its_program_and_is_taken_back", advise::applied),
    ("an_applied_advice_keeps_threads_with_their_memory_and_is_taken_back", advise::applied_to_threads),
    ("an_applied_advice_leaves_a_policy_and_writes_a_drop_in_for_the_unit", advise::applied_to_unit),
    ("far_memory_becomes_local_in_the_bands_of_the_model", course::short),
];

/// Limits of control groups, where programs are killed: last on a machine with four nodes.
const LIMITED: &[(&str, Check)] = &[
    ("memory_high_slows_down_where_explain_says_and_kills_none", groups::high),
    ("page_cache_of_a_group_makes_room_as_explain_says", groups::cached),
    ("memory_max_kills_at_the_size_and_the_process_that_explain_names", groups::largest),
];

/// Scripts that fill nodes with page cache, on a machine of their own.
const CACHE: &[(&str, Check)] = &[
    ("drawn_scripts_of_page_cache_end_as_the_model_says", scripts::cache),
    ("a_wrong_rule_of_page_cache_is_found_in_few_calls", scripts::wrong_rules_of_cache),
    ("a_fragmented_node_gives_more_of_its_page_cache", fragmented::page_cache),
    ("raised_watermarks_are_lowered_before_a_script", raised::lowered),
];

/// On a machine that memory is plugged into.
const PLUGGED: &[(&str, Check)] = &[
    ("fallback_orders_are_built_anew_when_a_node_gains_memory", topology::rebuilt_orders),
    ("a_node_that_gained_memory_is_not_found", sick::filled_node),
];

/// Rules of doctor, each on a system that was made sick for it: they take minutes. The guest's boot line has a pool of
/// two huge pages for each node, which the first check needs, and a word that no kernel knows.
const SICK: &[(&str, Check)] = &[
    ("a_pool_smaller_than_the_boot_line_asks_is_found", sick::pool_cut),
    ("a_setting_that_the_kernel_does_not_know_is_found", sick::unknown_setting),
    ("counters_that_are_off_are_found_and_switched_on", sick::counters),
    ("a_reserve_that_is_too_large_is_found", sick::large_reserve),
    ("memory_that_nobody_places_is_found_and_balancing_switched_on", sick::nobody_places),
    ("a_small_program_that_is_interleaved_is_found", sick::interleaved),
    ("a_policy_of_the_parent_is_found_and_replaced", sick::inherited),
    ("a_policy_that_came_too_late_is_found_and_pages_moved", sick::too_late),
    ("a_shared_segment_on_one_node_is_found_and_interleaved", sick::shared_segment),
    ("memory_confined_to_fewer_nodes_than_threads_is_found", sick::memory_confined),
    ("pages_of_a_pool_on_another_node_are_found", sick::pool_elsewhere),
    ("a_pool_that_nobody_uses_on_a_full_node_is_found", sick::idle_pool),
    ("a_bound_program_that_grows_is_found", sick::grows),
    ("a_bound_program_that_is_killed_while_others_have_memory_is_found", sick::killed),
    ("a_bound_program_that_is_swapped_beside_free_memory_is_found", short::swapped),
    ("node_reclaim_of_page_cache_is_found_and_switched_off", short::node_reclaim),
    ("node_reclaim_that_frees_nothing_is_found_and_switched_off", short::void_reclaim),
    ("watermarks_that_are_too_low_are_found_and_raised", short::small_reserve),
    ("compaction_in_page_faults_is_found_and_put_into_the_background", short::compaction),
];

/// Rules about servers and virtual machines.
const SERVERS: &[(&str, Check)] = &[
    ("a_mongod_on_a_node_that_is_short_is_found_and_interleaved", sick::servers::mongod),
    ("a_mysqld_whose_pool_is_on_one_node_is_found_and_interleaved", sick::servers::mysqld),
    ("a_haproxy_on_the_cpus_of_one_node_is_found", sick::servers::half_used),
    ("weights_of_a_model_on_one_node_are_found_and_interleaved", sick::servers::weights),
    ("ranks_on_one_core_are_found_and_unbound", sick::servers::ranks),
    ("memory_of_a_virtual_machine_away_from_its_cpus_is_found_and_moved", sick::guests::stranded),
    ("a_virtual_machine_on_two_nodes_is_found_and_put_on_one", sick::guests::spread),
    ("a_virtual_machine_bound_to_a_full_node_is_found", sick::guests::strict),
];

/// Rules about runtimes, and about programs that place others.
const RUNTIMES: &[(&str, Check)] = &[
    ("a_pod_without_the_memory_of_its_cpus_is_found", sick::orchestrators::kubelet),
    ("slurm_without_a_plugin_that_binds_is_found", sick::orchestrators::slurm),
    ("a_profile_that_switched_balancing_off_is_found", sick::orchestrators::profile),
    ("threads_of_openmp_that_nothing_binds_are_found_and_bound", sick::runtimes::openmp),
    ("a_java_heap_on_one_of_two_nodes_is_found", sick::runtimes::java_unused),
    ("a_java_machine_whose_nodes_are_apart_is_found_and_mended", sick::runtimes::java_void),
    ("a_go_program_on_two_nodes_is_found_and_put_on_one", sick::runtimes::go),
];

/// On a machine with more nodes than the kubelet takes.
const NINE: &[(&str, Check)] =
    &[("more_nodes_than_the_kubelet_takes_are_found", sick::orchestrators::many_nodes)];

/// Rules of doctor about threads, files and huge pages, each on a system that was made sick for it.
const LOCALITY: &[(&str, Check)] = &[
    ("memory_that_one_thread_filled_for_all_is_found", sick::locality::one_toucher),
    ("a_thread_that_wanders_is_found_and_kept_on_a_node", sick::locality::wanderer),
    ("a_file_in_another_nodes_page_cache_is_found_and_dropped", sick::locality::far_file),
    ("pages_of_a_pool_that_balancing_leaves_are_found_and_placed", sick::locality::pool_that_stays),
    ("a_store_that_forks_is_left_alone_where_copies_are_small", sick::locality::forking_store),
    ("a_mode_of_huge_pages_for_another_mongodb_is_found_and_set", sick::locality::outdated_advice),
    ("page_cache_that_fills_a_node_is_found_and_spread", sick::locality::full_of_files),
    ("reclaim_on_one_node_is_found", sick::locality::one_reclaimer),
];

/// Rules of doctor about automatic balancing.
const BALANCING: &[(&str, Check)] = &[
    ("a_binding_that_keeps_balancing_away_is_found_and_loosened", sick::balancing::bound_over_two),
    ("a_process_too_large_for_its_scans_is_found_and_scanned_faster", sick::balancing::slow_scan),
    ("scans_of_placed_memory_are_found_and_switched_off", sick::balancing::placed),
    ("pages_that_move_to_and_fro_are_found_and_interleaved", sick::balancing::to_and_fro),
    ("two_placers_are_found_and_one_is_stopped", sick::balancing::two_placers),
    ("balancing_that_costs_much_is_found_and_switched_off", sick::balancing::costly),
];

/// Rules of doctor about policies and limits in control groups.
const POLICIES: &[(&str, Check)] = &[
    ("interleaving_in_a_cpuset_of_one_node_is_found", sick::policies::interleaved_in_cpuset),
    ("threads_that_bound_themselves_to_one_cpu_are_found", sick::policies::self_bound),
    ("a_quota_over_two_nodes_is_found_and_confined", sick::policies::quota),
    ("a_policy_that_a_container_refuses_is_found", sick::policies::refused),
];

/// On a machine with a node that has CPUs and no memory.
const BARE: &[(&str, Check)] = &[("a_node_without_memory_is_found", sick::bare_node)];

/// Programs that start and end under each manager, and the evaluation of balance by itself.
const MANAGED: &[(&str, Check)] = &[
    ("an_evaluation_shows_that_balance_lowers_the_remote_share", balance::evaluated),
    ("twelve_programs_placed_by_nodewise", managed::by_nodewise),
    ("twelve_programs_placed_by_numad", managed::by_numad),
    ("twelve_programs_placed_by_the_kernel", managed::by_the_kernel),
    ("twelve_programs_placed_by_none", managed::by_nobody),
];

/// Far memory that becomes local over time, beside the model's bands.
const COURSE: &[(&str, Check)] = &[
    ("pages_touched_at_random_become_local_in_the_bands_of_the_model", course::at_random),
    ("windows_of_a_started_thread_become_local_in_the_bands_of_the_model", course::windows),
    ("windows_of_a_forked_process_become_local_in_the_bands_of_the_model", course::forked),
    ("windows_of_a_spawned_process_become_local_in_the_bands_of_the_model", course::spawned),
    ("a_thread_rests_after_a_long_scan_as_in_the_model", course::rests),
];

/// The same of memory of a slower tier.
const TIER_COURSE: &[(&str, Check)] = &[
    ("hot_pages_are_promoted_in_the_bands_of_the_model", course::promoted),
    ("as_much_is_promoted_as_the_limit_lets_through", course::limited),
    ("the_fourth_pass_waits_for_mappings_that_are_not_used", course::fourth),
];

/// On a machine with memory that came online as movable.
const MOVABLE: &[(&str, Check)] = &[
    ("a_node_for_programs_only_is_found_and_shared", sick::memory::movable_only),
    ("memory_that_is_offline_is_found_and_brought_online", sick::memory::offline),
];

/// On a machine with devices behind a bridge of one node.
const DEVICES: &[(&str, Check)] = &[
    ("kernel_memory_on_one_node_is_found", sick::memory::of_the_kernel),
    ("a_device_without_a_node_is_found_and_given_one", sick::devices::unknown),
    ("interrupts_on_another_node_are_found_and_brought_back", sick::devices::interrupts),
    ("queues_that_name_another_node_are_found_and_brought_back", sick::devices::queues),
    ("lines_that_irqbalance_moves_are_found_and_banned", sick::devices::daemon),
    ("a_program_away_from_its_disk_is_found_and_placed", sick::devices::user),
    ("interleaved_memory_for_an_accelerator_is_found_and_placed", sick::devices::staging),
];

/// On a machine with slow memory, whose kernel puts it into a tier of its own, or would work out weights, or does neither.
const TIERS: &[(&str, Check)] = &[
    ("slow_memory_in_a_tier_of_its_own_is_not_found", sick::tiers::apart),
    ("interleaving_over_slow_memory_is_found_and_narrowed", sick::tiers::interleaved),
    ("demotion_without_promotion_is_found_and_completed", sick::tiers::half),
    ("demotion_past_a_binding_is_found_and_switched_off", sick::tiers::past_a_binding),
];
const PROMOTION: &[(&str, Check)] =
    &[("promotion_without_a_limit_is_found_and_limited", sick::tiers::unlimited)];
const WEIGHTS: &[(&str, Check)] =
    &[("equal_weights_of_unlike_nodes_are_found_and_worked_out", sick::tiers::weights)];
const FLAT_TIERS: &[(&str, Check)] =
    &[("slow_memory_in_the_tier_of_fast_memory_is_found", sick::tiers::flat)];

/// Machines that other firmware mends, and one that has it.
const FLAT: &[(&str, Check)] = &[
    ("nodes_that_are_all_equally_far_apart_are_found", sick::firmware::flat),
    ("distances_that_a_hypervisor_made_up_are_found", sick::firmware::flat_in_a_guest),
];
const UNREACHABLE: &[(&str, Check)] = &[("a_distance_that_cannot_be_is_found", sick::firmware::unreachable)];
const REJECTED: &[(&str, Check)] =
    &[("a_table_of_distances_that_the_kernel_rejects_is_found", sick::firmware::rejected)];
const ONE_NODE: &[(&str, Check)] =
    &[("a_virtual_machine_of_two_packages_with_one_node_is_found", sick::firmware::one_node)];
const HIDDEN: &[(&str, Check)] = &[("nodes_that_the_firmware_hides_are_found", sick::firmware::hidden)];
const MISPLACED: &[(&str, Check)] = &[
    ("modules_of_a_package_without_memory_are_found", sick::firmware::misplaced),
    ("modules_that_are_uneven_are_found", sick::firmware::uneven_modules),
];
const TOO_LARGE: &[(&str, Check)] =
    &[("emulated_nodes_larger_than_the_machine_are_found", sick::firmware::too_large)];
const SERVER: &[(&str, Check)] =
    &[("nothing_is_wrong_with_the_firmware_of_a_server", sick::firmware::healthy)];

/// Rules of doctor about boot lines.
const OFF: &[(&str, Check)] = &[("nodes_that_are_switched_off_are_found", sick::switched_off)];
const EMULATED: &[(&str, Check)] = &[
    ("programs_on_some_emulated_nodes_are_found", sick::emulated),
    ("emulated_nodes_that_are_there_are_not_found_missing", sick::firmware::emulated),
];

/// Gigabytes that move while their program works.
const SOAK: &[(&str, Check)] = &[
    ("gigabytes_move_at_a_rate_and_back", soak::at_a_rate),
    ("gigabytes_that_ctrl_c_stops_in_the_middle_go_back", soak::interrupted),
    ("a_program_may_end_while_its_gigabytes_move", soak::ended),
];

/// Runs all checks and writes a line for each.
pub fn run_all(plan: &Plan, nodewise: &str) {
    let context = Context::new(plan, nodewise);
    let cpus = affinity::cpus(Task::CURRENT).expect("the CPUs are known");
    for (name, check) in of_machine(plan.checks).filter(|(name, _)| plan.has(name)) {
        // A guest that does not come to its end has its console to say where it was.
        let _ = std::fs::write("/dev/kmsg", format!("check {name}\n"));
        let start = Instant::now();
        let attempt = || {
            println!("{BEGINS}{name}");
            let message = outcome(*check, &context).replace('\n', "\\n");
            // Programs that the next checks start inherit the CPUs of this thread, which checks of pools narrow.
            affinity::set_cpus(Task::CURRENT, &cpus).expect("CPUs that it had can be had again");
            message
        };
        let mut message = attempt();
        if !message.is_empty() && has_second_try(name) {
            println!("{FIRST}{name} {message}");
            message = attempt();
        }
        let took = start.elapsed().as_secs_f64();
        writeln!(std::io::stdout().lock(), "{MARK}{name} {took:.1} {message}").expect("the host reads");
    }
    println!("{END}");
}

/// The fault that a check found; empty where all holds.
fn outcome(check: Check, context: &Context) -> String {
    match catch_unwind(AssertUnwindSafe(|| check(context))) {
        Ok(Ok(())) => String::new(),
        Ok(Err(message)) => message,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            format!("panic: {:?}", text.or(panic.downcast_ref::<&str>().copied()))
        }
    }
}

/// Whether a check that fails is tried once more: those that watch a system at work, where a busy host can take a program's
/// time for the whole of a window. Both outcomes are reported. What pages the kernel gives does not depend on the host.
fn has_second_try(name: &str) -> bool {
    ![PLACEMENT, MODEL, SOAK, MANAGED, COURSE].into_iter().flatten().any(|(single, _)| *single == name)
}

/// Which checks a machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All but those of moving pages.
    All,
    /// The same without long measurements.
    Short,
    /// All.
    Moving,
    /// Those that need no program of the host's.
    Own,
    /// Those of the model.
    Model,
    /// Those of a machine that memory is plugged into, alone.
    Plugged,
    /// Those of nodes that are full of page cache, alone: after other programs they did not hold, and why is not known.
    Cached,
    /// Those of much memory that moves, alone.
    Soak,
    /// Those of rules of doctor, alone; where nodes are switched off, and where they are emulated.
    Sick,
    Off,
    Emulated,
    /// Those of a node without memory, alone.
    Bare,
    /// Those of rules about programs by their names, alone; one machine with nine nodes.
    Servers,
    Runtimes,
    Nine,
    /// Those of rules of doctor about what runs: threads and their memory, balancing, policies.
    Locality,
    Balancing,
    Policies,
    /// Those of managers of placement, alone.
    Managed,
    /// Those of memory that follows its program, or is promoted, alone.
    Course,
    TierCourse,
    /// Those of rules about memory that is movable or offline, about devices, about tiers, and about firmware, each alone.
    Movable,
    Devices,
    Tiers,
    Promotion,
    Weights,
    FlatTiers,
    Flat,
    Unreachable,
    Rejected,
    OneNode,
    Hidden,
    Misplaced,
    TooLarge,
    Server,
}

type Checks = &'static [(&'static str, Check)];

/// Extents with their words on a command line and their checks.
const EXTENTS: &[(Extent, &str, &[Checks])] = &[
    (Extent::All, "all", &[PLACEMENT, CHECKS, LONG, MODEL, SCRIPTS]),
    (Extent::Short, "short", &[PLACEMENT, CHECKS, MODEL]),
    (Extent::Moving, "moving", &[PLACEMENT, MODEL, MOVING, RUNNING, LIMITED]),
    (Extent::Own, "own", &[PLACEMENT, MODEL]),
    (Extent::Model, "model", &[MODEL]),
    (Extent::Plugged, "plugged", &[PLUGGED]),
    (Extent::Cached, "cached", &[CACHE]),
    (Extent::Soak, "soak", &[SOAK]),
    (Extent::Sick, "sick", &[SICK]),
    (Extent::Off, "off", &[OFF]),
    (Extent::Emulated, "emulated", &[EMULATED]),
    (Extent::Bare, "bare", &[BARE]),
    (Extent::Servers, "servers", &[SERVERS]),
    (Extent::Runtimes, "runtimes", &[RUNTIMES]),
    (Extent::Nine, "nine", &[NINE]),
    (Extent::Locality, "locality", &[LOCALITY]),
    (Extent::Balancing, "balancing", &[BALANCING]),
    (Extent::Policies, "policies", &[POLICIES]),
    (Extent::Managed, "managed", &[MANAGED]),
    (Extent::Course, "course", &[COURSE]),
    (Extent::TierCourse, "tier-course", &[TIER_COURSE]),
    (Extent::Movable, "movable", &[MOVABLE]),
    (Extent::Devices, "devices", &[DEVICES]),
    (Extent::Tiers, "tiers", &[TIERS]),
    (Extent::Promotion, "promotion", &[PROMOTION]),
    (Extent::Weights, "weights", &[WEIGHTS]),
    (Extent::FlatTiers, "flat-tiers", &[FLAT_TIERS]),
    (Extent::Flat, "flat", &[FLAT]),
    (Extent::Unreachable, "unreachable", &[UNREACHABLE]),
    (Extent::Rejected, "rejected", &[REJECTED]),
    (Extent::OneNode, "one-node", &[ONE_NODE]),
    (Extent::Hidden, "hidden", &[HIDDEN]),
    (Extent::Misplaced, "misplaced", &[MISPLACED]),
    (Extent::TooLarge, "too-large", &[TOO_LARGE]),
    (Extent::Server, "server", &[SERVER]),
];

impl Extent {
    pub fn all() -> impl Iterator<Item = Self> {
        EXTENTS.iter().map(|(extent, ..)| *extent)
    }

    /// The word for it on a command line.
    pub fn word(self) -> &'static str {
        EXTENTS.iter().find(|(extent, ..)| *extent == self).expect("each has a word").1
    }

    pub fn of_word(word: &str) -> Option<Self> {
        EXTENTS.iter().find(|(_, text, _)| *text == word).map(|(extent, ..)| *extent)
    }
}

/// The checks of a machine.
pub fn of_machine(extent: Extent) -> impl Iterator<Item = &'static (&'static str, Check)> {
    EXTENTS.iter().filter(move |(of, ..)| *of == extent).flat_map(|(.., parts)| *parts).copied().flatten()
}

/// Fails with both values when they differ.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: got {got:?}, expected {expected:?}")) }
}
