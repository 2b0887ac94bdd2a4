//! The decision table. The first row whose conditions all hold decides.

use nodewise_machine::placement::Placement;
use nodewise_machine::{NodeSet, PolicyMode};

use super::decision::{Condition, Quantity, Row};
use super::profile::{Profile, Sharing};
use crate::knowledge::ProgramKind;
use crate::situation::Class;

/// The part of a node's bandwidth from which a program is limited by it.
const SATURATES: f64 = 0.6;
/// CPUs beyond those of a node that do not count: ticks are counted late, and helpers run for a moment.
const SLACK: f64 = 1.05;
/// A program with more threads than this multiple of a node's CPUs cannot live there.
const CROWDS: f64 = 2.0;

/// The row of a program that was measured under several placements: it is not part of the table, which it overrides.
pub static MEASURED: Row = Row {
    number: "0",
    title: "the best placement that tune measured",
    because: "Its own speed was compared under these placements, which decides more than its evidence can.",
    kind: None,
    conditions: |_| Vec::new(),
    place: |_| Vec::new(),
};

/// Every row, in the order in which they are asked.
pub static ROWS: &[Row] = &[
    Row {
        number: "1",
        title: "nothing to choose: one node",
        because: "All memory is equally near, so no placement can help; at most huge pages can.",
        kind: None,
        conditions: |profile| {
            vec![Condition::fact(
                "the machine has one node",
                match profile.class {
                    Class::NoNodes => None,
                    class => Some(class == Class::One),
                },
                "nodes",
            )]
        },
        place: |_| Vec::new(),
    },
    Row {
        number: "2",
        title: "interleave over the emulated nodes",
        because: "Emulated nodes share one memory controller: interleaving uses all of its banks, and nothing is remote.",
        kind: None,
        conditions: |profile| {
            vec![Condition::fact("the nodes are emulated", Some(profile.class == Class::Emulated), "nodes")]
        },
        place: |profile| vec![profile.interleaved()],
    },
    Row {
        number: "3",
        title: "leave it as it is placed",
        because: "Its owner placed it, and no finding says that this placement costs anything.",
        kind: None,
        conditions: |profile| {
            let who = profile.placed.value().cloned().flatten();
            let words =
                who.map_or_else(|| "it is placed already".to_owned(), |who| format!("it is placed: {who}"));
            // Without a finding an owner is not overruled, also where nothing could be examined.
            let fine = Some(profile.complaints.value().is_none_or(Vec::is_empty));
            let placed = profile.placed.value().map(Option::is_some);
            let is_near = Some(profile.common_away.is_none());
            vec![
                Condition::fact(words, placed, "placement in force"),
                Condition::fact("no rule of doctor complains about it", fine, "findings of doctor"),
                Condition::fact(
                    "no memory that it shares is away from all of its users",
                    is_near,
                    "shared memory",
                ),
            ]
        },
        place: |_| Vec::new(),
    },
    Row {
        number: "4",
        title: "CPUs of the device's node, its memory preferred",
        because: "The device and the CPU exchange all data through that memory; preferred, because a binding can abort when the node is full.",
        kind: Some(ProgramKind::Device),
        conditions: |profile| {
            let works = profile.device.value().map(|_| profile.usable_device().is_some());
            vec![
                Condition::fact("it works for a device of one node", works, "devices"),
                fits(profile),
                few_threads(profile),
            ]
        },
        place: |profile| at_home(profile, PolicyMode::Preferred),
    },
    Row {
        number: "5",
        title: "CPUs and memory of one node, bound, locked and filled at the start",
        because: "A page fault or a moved page costs such a program more than any distance.",
        kind: Some(ProgramKind::Latency),
        conditions: |profile| {
            let is = profile.latency.value().copied();
            let needs = Condition::fact("it needs low latency", is, "need for latency");
            vec![needs, fits(profile), few_threads(profile)]
        },
        place: |profile| at_home(profile, PolicyMode::Bind),
    },
    Row {
        number: "6",
        title: "CPUs and memory of one node, bound",
        because: "Its size does not change, so that all of it can be local and nothing has to fall back.",
        kind: Some(ProgramKind::OneNode),
        conditions: |profile| {
            vec![growth(profile, true), not_snapshot(profile), fits(profile), few_threads(profile)]
        },
        place: |profile| at_home(profile, PolicyMode::Bind),
    },
    Row {
        number: "7",
        title: "CPUs of one node, its memory preferred",
        because: "It grows: a binding would make it swap when the node is full, a preference falls back to other nodes.",
        kind: Some(ProgramKind::Growing),
        conditions: |profile| {
            vec![growth(profile, false), not_snapshot(profile), fits(profile), few_threads(profile)]
        },
        place: |profile| at_home(profile, PolicyMode::Preferred),
    },
    Row {
        number: "7a",
        title: "one node preferred, with room for a snapshot",
        because: "Pages that are written during a snapshot are copied on the node of the writer: a full node makes it swap.",
        kind: Some(ProgramKind::Snapshot),
        conditions: |profile| {
            let forks = profile.snapshot.value().copied();
            vec![
                Condition::fact("it forks for snapshots", forks, "snapshots by fork"),
                fits(profile),
                few_threads(profile),
            ]
        },
        place: |profile| at_home(profile, PolicyMode::Preferred),
    },
    Row {
        number: "8",
        title: "undecided between one node with fewer threads and all nodes: ask tune",
        because: "Its memory fits a node and its threads do not, so locality and CPUs are weighed by a measurement.",
        kind: None,
        conditions: |profile| {
            let not_private = profile.sharing.value().is_none_or(|sharing| *sharing != Sharing::Private);
            vec![
                fits(profile),
                threads(profile, 1.0, false),
                threads(profile, CROWDS, true),
                Condition::fact("its memory is shared, or that is not known", Some(not_private), "sharing"),
            ]
        },
        place: |_| Vec::new(),
    },
    Row {
        number: "9",
        title: "one instance per node, memory of that node preferred",
        because: "Instances share nothing, so that all memory of each can be local.",
        kind: Some(ProgramKind::Splittable),
        conditions: |profile| {
            let can = profile.splittable.value().copied();
            vec![Condition::fact("it can be split", can, "instances"), too_large(profile)]
        },
        place: |profile| {
            let with_cpus = profile.nodes.iter().filter(|(_, node)| node.cpus > 0);
            with_cpus.map(|(id, _)| profile.on_node(*id, PolicyMode::Preferred)).collect()
        },
    },
    Row {
        number: "10",
        title: "interleave, filled at the start",
        because: "Threads of all nodes use all of it at random: interleaved, no node's controller is the bottleneck.",
        kind: Some(ProgramKind::Shared),
        conditions: |profile| {
            vec![too_large(profile), everywhere(profile), sharing(profile, Sharing::Shared)]
        },
        place: |profile| vec![profile.interleaved()],
    },
    Row {
        number: "11",
        title: "local memory, threads bound and spread",
        because: "Each thread uses memory of its own, which first touch puts beside it; interleaving would make most of it remote.",
        kind: None,
        conditions: |profile| {
            vec![too_large(profile), everywhere(profile), sharing(profile, Sharing::Private)]
        },
        place: |_| vec![Placement::memory(PolicyMode::Local, NodeSet::new())],
    },
    Row {
        number: "12",
        title: "threads and memory over all nodes",
        because: "One memory controller is not enough for it.",
        kind: Some(ProgramKind::Bandwidth),
        conditions: |profile| {
            let value = profile.bandwidth.value().copied();
            let words = "it uses more than 60 % of one node's bandwidth";
            vec![Condition::limit(words, Quantity::Bandwidth, value, Some(SATURATES), false)]
        },
        place: |profile| vec![profile.interleaved()],
    },
    Row {
        number: "13",
        title: "the fast nodes preferred, the rest falls over to the slow ones",
        because: "Memory in use should be in the fast tier, and it does not fit there.",
        kind: None,
        conditions: |profile| {
            let need = profile.need.value().map(|need| need.get() as f64);
            let room = profile.fast_room().map(|room| room.get() as f64);
            let tiered = profile.class == Class::Tiered;
            vec![
                Condition::fact("the machine has memory of several speeds", Some(tiered), "tiers"),
                Condition::limit("it is larger than the fast memory", Quantity::Need, need, room, false),
            ]
        },
        place: |profile| vec![Placement::memory(PolicyMode::PreferredMany, profile.fast.clone())],
    },
    Row {
        number: "14",
        title: "the default policy",
        because: "Default placement with automatic balancing is right for small, short and mixed programs.",
        kind: None,
        conditions: |_| Vec::new(),
        place: |_| Vec::new(),
    },
];

fn at_home(profile: &Profile, mode: PolicyMode) -> Vec<Placement> {
    profile.home().map(|home| profile.on_node(home, mode)).into_iter().collect()
}

/// The memory that it needs is at most 0.8 of the room of the best node.
fn fits(profile: &Profile) -> Condition {
    let home = profile.home().map_or_else(|| "a node".to_owned(), |home| format!("node {home}"));
    let need = profile.need.value().map(|need| need.get() as f64);
    let room = profile.room_at_home().map(|room| room.get() as f64);
    Condition::limit(format!("its memory fits {home}"), Quantity::Need, need, room, true)
}

/// It is larger than 0.8 of the room of any node.
fn too_large(profile: &Profile) -> Condition {
    let need = profile.need.value().map(|need| need.get() as f64);
    let room = profile.largest_room().map(|room| room.get() as f64);
    Condition::limit("its memory fits no node", Quantity::Need, need, room, false)
}

fn few_threads(profile: &Profile) -> Condition {
    threads(profile, 1.0, true)
}

/// The CPUs that it keeps busy against a multiple of those of the best node.
fn threads(profile: &Profile, times: f64, is_at_most: bool) -> Condition {
    let home = profile.home().and_then(|home| Some((home, profile.nodes.get(&home)?.cpus)));
    let at = home.map(|(_, cpus)| cpus as f64 * times * SLACK);
    let busy = profile.parallelism.value().copied();
    let than = if is_at_most { "at most" } else { "more than" };
    let words = match home {
        Some((home, cpus)) => {
            format!("it keeps {than} {} CPUs busy (node {home} has {cpus})", cpus as f64 * times)
        }
        None => format!("it keeps {than} the CPUs of a node busy"),
    };
    Condition::limit(words, Quantity::Parallelism, busy, at, is_at_most)
}

fn growth(profile: &Profile, is_static: bool) -> Condition {
    let words = if is_static { "its memory does not grow" } else { "its memory grows" };
    let growth = profile.growth.value().copied();
    // A growth at the edge counts: the limit is just below.
    let at = Some(profile.growth_edge * (1.0 - f64::EPSILON));
    Condition::limit(words, Quantity::Growth, growth, at, is_static)
}

fn not_snapshot(profile: &Profile) -> Condition {
    let not = profile.snapshot.value().map(|forks| !forks);
    Condition::fact("it does not fork for snapshots", not, "snapshots by fork")
}

fn everywhere(profile: &Profile) -> Condition {
    let several = profile.runs_on.value().map(|nodes| nodes.len() > 1);
    Condition::fact("its threads run on several nodes", several, "nodes of its threads")
}

fn sharing(profile: &Profile, wanted: Sharing) -> Condition {
    let words = match wanted {
        Sharing::Shared => "its threads share its memory",
        Sharing::Private => "each thread has memory of its own",
    };
    Condition::fact(words, profile.sharing.value().map(|sharing| *sharing == wanted), "sharing")
}
