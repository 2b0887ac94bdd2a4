mod apply;

use std::collections::BTreeMap;

use nodewise_machine::placement::Scope;
use nodewise_machine::{Bytes, Machine, NodeId, NodeSet, PolicyMode, spec};
use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::*;
use crate::finding::{Owner, Value};
use crate::situation::Class;

/// Machines that the table is asked on.
const MACHINES: [&str; 3] = ["4x(8c 64G)", "2x(16c 128G)", "2x(4x(4c 32G))"];

fn gib(count: u64) -> Bytes {
    Bytes::from_gib(count)
}

/// A quiet program of 10 % of a node: it does not grow, and keeps half of a node's CPUs busy.
fn quiet(machine: &Machine) -> Profile {
    let scope = Scope::from_machine(machine);
    let node = |node: &nodewise_machine::Node| {
        let size = node.memory_total().unwrap();
        let cpus = scope.cpus_of(node.id).len();
        (node.id, NodeRoom { size, room: size, cpus, free_cpus: Some(cpus as f64) })
    };
    let nodes: BTreeMap<NodeId, NodeRoom> = machine.nodes.values().map(node).collect();
    let first = nodes.values().next().unwrap();
    let size = first.size.share(0.1);
    Profile {
        class: Class::from_machine(machine),
        fast: machine.node_ids(),
        has_weights: false,
        memory: Known::certain(BTreeMap::from([(NodeId::new(0), size)])),
        common: BTreeMap::new(),
        common_away: None,
        size: Known::certain(size),
        peak: Known::certain(size),
        declared: Known::unknown("no word"),
        limit: Known::unknown("no limit"),
        growth: Known::certain(0.0),
        growth_edge: 1e6,
        need: Known::certain(size),
        horizon: HORIZON,
        threads: Known::certain(4),
        parallelism: Known::certain(first.cpus as f64 / 2.0),
        runs_on: Known::certain(NodeSet::from_iter([NodeId::new(0)])),
        remote: Known::certain(0.0),
        stranded: Known::certain(Bytes::new(0)),
        sharing: Known::unknown("no faults"),
        bandwidth: Known::unknown("no counter"),
        latency: Known::certain(false),
        device: Known::certain(None),
        snapshot: Known::certain(false),
        splittable: Known::certain(false),
        placed: Known::certain(None),
        complaints: Known::certain(Vec::new()),
        cpus: Known::certain(scope.cpus.clone()),
        policy: Known::certain(None),
        age: Known::certain(Duration::from_secs(3600)),
        nodes,
        scope,
    }
}

/// The memory of a node.
fn node_size(profile: &Profile) -> Bytes {
    profile.nodes.values().next().unwrap().size
}

/// A program that is larger than any node, with threads on all of them.
fn large(profile: &mut Profile) {
    profile.need = Known::certain(Bytes::new(node_size(profile).get() * 3 / 2));
    profile.runs_on = Known::certain(profile.nodes.keys().copied().collect());
    profile.parallelism = Known::certain(profile.scope.cpus.len() as f64);
}

fn mode(advice: &Advice) -> Option<PolicyMode> {
    advice.placements.first()?.policy.as_ref().map(|policy| policy.mode)
}

/// On each machine: the program has the row and the policy, and with one thing changed it has another row.
fn check(
    row: &str,
    expected: Option<PolicyMode>,
    change: fn(&mut Profile),
    trap: fn(&mut Profile),
    instead: &str,
) {
    for text in MACHINES {
        let machine = spec::machine(text).unwrap();
        let mut profile = quiet(&machine);
        change(&mut profile);
        let advice = Advice::new(&profile, None);
        assert_eq!((advice.row.number, mode(&advice)), (row, expected), "{text}: {:?}", advice.undecided);
        trap(&mut profile);
        assert_eq!(Advice::new(&profile, None).row.number, instead, "{text}: the trap");
    }
}

#[test]
fn one_node_leaves_nothing_to_choose() {
    let change = |profile: &mut Profile| profile.class = Class::One;
    check("1", None, change, |profile| profile.class = Class::Real, "6");
}

#[test]
fn emulated_nodes_are_interleaved() {
    let change = |profile: &mut Profile| profile.class = Class::Emulated;
    check("2", Some(PolicyMode::Interleave), change, |profile| profile.class = Class::Real, "6");
}

#[test]
fn what_its_owner_placed_is_left_alone_unless_a_rule_complains() {
    let change =
        |profile: &mut Profile| profile.placed = Known::certain(Some("memory policy bind:1".to_owned()));
    let trap = |profile: &mut Profile| profile.complaints = Known::certain(vec!["memory-stranded"]);
    check("3", None, change, trap, "6");
}

#[test]
fn a_program_of_a_device_is_near_it_if_it_fits_there() {
    let change = |profile: &mut Profile| profile.device = Known::certain(Some(NodeId::new(1)));
    check("4", Some(PolicyMode::Preferred), change, large, "14");
    let machine = spec::machine(MACHINES[0]).unwrap();
    let mut profile = quiet(&machine);
    change(&mut profile);
    assert_eq!(profile.home(), Some(NodeId::new(1)), "the device's node, though the memory is on node 0");
}

#[test]
fn a_program_that_lives_from_latency_is_bound() {
    let change = |profile: &mut Profile| profile.latency = Known::certain(true);
    check("5", Some(PolicyMode::Bind), change, large, "14");
}

#[test]
fn a_small_program_that_does_not_grow_is_bound() {
    let trap = |profile: &mut Profile| profile.growth = Known::certain(1e6);
    check("6", Some(PolicyMode::Bind), |_| {}, trap, "7");
    // More threads than the node has CPUs.
    let trap = |profile: &mut Profile| profile.parallelism = Known::certain(node_cpus(profile) * 1.1);
    check("6", Some(PolicyMode::Bind), |_| {}, trap, "8");
}

fn node_cpus(profile: &Profile) -> f64 {
    profile.nodes.values().next().unwrap().cpus as f64
}

#[test]
fn a_program_that_grows_is_preferred_and_not_bound() {
    let change = |profile: &mut Profile| profile.growth = Known::certain(5e6);
    let trap = |profile: &mut Profile| profile.need = Known::certain(node_size(profile).share(0.81));
    check("7", Some(PolicyMode::Preferred), change, trap, "14");
}

#[test]
fn a_program_that_forks_for_snapshots_needs_room_for_a_copy() {
    let change = |profile: &mut Profile| profile.snapshot = Known::certain(true);
    let trap = |profile: &mut Profile| profile.need = Known::certain(node_size(profile).share(0.9));
    check("7a", Some(PolicyMode::Preferred), change, trap, "14");
}

#[test]
fn more_threads_than_a_node_has_cpus_are_a_question_for_tune() {
    let change = |profile: &mut Profile| profile.parallelism = Known::certain(node_cpus(profile) * 1.5);
    let trap = |profile: &mut Profile| profile.sharing = Known::certain(Sharing::Private);
    check("8", None, change, trap, "14");
    let machine = spec::machine(MACHINES[0]).unwrap();
    let mut profile = quiet(&machine);
    change(&mut profile);
    let ask = Advice::new(&profile, None).ask;
    let names: Vec<String> = ask.iter().map(|placement| placement.name(&profile.scope)).collect();
    assert_eq!(names, ["default", "local to node 0", "interleave all"]);
}

#[test]
fn a_server_that_can_be_split_has_an_instance_per_node() {
    let change = |profile: &mut Profile| {
        large(profile);
        profile.splittable = Known::certain(true);
    };
    let trap = |profile: &mut Profile| profile.splittable = Known::certain(false);
    check("9", Some(PolicyMode::Preferred), change, trap, "14");
    let machine = spec::machine(MACHINES[0]).unwrap();
    let mut profile = quiet(&machine);
    change(&mut profile);
    assert_eq!(Advice::new(&profile, None).placements.len(), 4);
}

#[test]
fn a_large_shared_segment_is_interleaved_where_there_is_room() {
    let change = |profile: &mut Profile| {
        large(profile);
        profile.sharing = Known::certain(Sharing::Shared);
    };
    let trap = |profile: &mut Profile| profile.runs_on = Known::certain(NodeSet::from_iter([NodeId::new(0)]));
    check("10", Some(PolicyMode::Interleave), change, trap, "14");
    let machine = spec::machine("4x(8c 64G)").unwrap();
    let mut profile = quiet(&machine);
    change(&mut profile);
    // 96 GiB: node 2 has no room for 24 GiB, the others have room for 32 GiB each.
    profile.nodes.get_mut(&NodeId::new(2)).unwrap().room = gib(20);
    let advice = Advice::new(&profile, None);
    let nodes = advice.placements[0].policy.as_ref().unwrap().nodes.to_string();
    assert_eq!((advice.row.number, nodes.as_str()), ("10", "0-1,3"));
}

#[test]
fn large_memory_of_each_thread_stays_local() {
    let change = |profile: &mut Profile| {
        large(profile);
        profile.sharing = Known::certain(Sharing::Private);
    };
    let trap = |profile: &mut Profile| profile.sharing = Known::certain(Sharing::Shared);
    check("11", Some(PolicyMode::Local), change, trap, "10");
}

#[test]
fn measured_bandwidth_spreads_a_program() {
    let change = |profile: &mut Profile| {
        profile.parallelism = Known::certain(node_cpus(profile) * 3.0);
        profile.bandwidth = Known::certain(0.61);
    };
    let trap = |profile: &mut Profile| profile.bandwidth = Known::certain(0.6);
    check("12", Some(PolicyMode::Interleave), change, trap, "14");
}

#[test]
fn memory_of_several_speeds_is_filled_from_the_fastest() {
    let change = |profile: &mut Profile| {
        profile.class = Class::Tiered;
        profile.fast = NodeSet::from_iter([NodeId::new(0)]);
        large(profile);
    };
    let trap = |profile: &mut Profile| profile.class = Class::Real;
    check("13", Some(PolicyMode::PreferredMany), change, trap, "14");
}

#[test]
fn everything_else_has_the_default() {
    let trap = |profile: &mut Profile| {
        profile.need = Known::certain(gib(1));
        profile.parallelism = Known::certain(1.0);
    };
    check("14", None, large, trap, "6");
}

#[test]
fn a_fact_that_is_not_known_is_named_and_is_no_answer() {
    let machine = spec::machine(MACHINES[0]).unwrap();
    let mut profile = quiet(&machine);
    profile.growth = Known::unknown("one moment only");
    let advice = Advice::new(&profile, None);
    assert_eq!(advice.row.number, "14");
    let undecided: Vec<(&str, &[&str])> =
        advice.undecided.iter().map(|open| (open.row.number, open.lacks.as_slice())).collect();
    assert_eq!(undecided, [("6", &["growth"][..]), ("7", &["growth"]), ("12", &["bandwidth"])]);
    profile.bandwidth = Known::certain(0.1);
    let advice = Advice::new(&profile, None);
    assert_eq!(advice.undecided.len(), 2);
}

#[test]
fn the_value_that_leads_to_another_row_is_computed() {
    let machine = spec::machine(MACHINES[0]).unwrap();
    let profile = quiet(&machine);
    let advice = Advice::new(&profile, None);
    let flips: Vec<String> = advice
        .flips
        .iter()
        .map(|flip| {
            let value = match flip.quantity.value(flip.at) {
                Value::Size(size) => size.to_string(),
                Value::Text(text) => text,
                other => format!("{other:?}"),
            };
            let way = if flip.is_above { "above" } else { "below" };
            format!("{} {way} {value}: row {}", flip.quantity.name(), flip.row.number)
        })
        .collect();
    assert_eq!(
        flips,
        [
            "parallelism above 8.4 CPUs: row 8",
            "parallelism above 16.8 CPUs: row 14",
            "memory needed above 51.2 GiB: row 14",
            "growth above 1.0 MiB/s: row 7",
        ]
    );
    // Asked again beyond the edge, the table gives that row.
    for flip in &advice.flips {
        let mut other = profile.clone();
        let beyond = flip.at * if flip.is_above { 1.001 } else { 0.999 };
        match flip.quantity {
            Quantity::Need => other.need = Known::certain(Bytes::new(beyond as u64)),
            Quantity::Parallelism => other.parallelism = Known::certain(beyond),
            Quantity::Growth => other.growth = Known::certain(beyond),
            Quantity::Bandwidth => other.bandwidth = Known::certain(beyond),
        }
        assert_eq!(Advice::new(&other, None).row, flip.row);
    }
}

#[test]
fn the_best_node_has_room_for_memory_and_threads() {
    let machine = spec::machine(MACHINES[0]).unwrap();
    let mut profile = quiet(&machine);
    profile.need = Known::certain(gib(40));
    profile.memory = Known::unknown("not seen");
    for (node, room, free) in [(0, 60, 1.0), (1, 30, 8.0), (2, 50, 6.0), (3, 64, 3.0)] {
        let node = profile.nodes.get_mut(&NodeId::new(node)).unwrap();
        (node.room, node.free_cpus) = (gib(room), Some(free));
    }
    assert_eq!(profile.home(), Some(NodeId::new(2)));
    // Of equal nodes that which holds the memory, else the first.
    let mut profile = quiet(&machine);
    assert_eq!(profile.home(), Some(NodeId::new(0)));
    profile.memory = Known::certain(BTreeMap::from([(NodeId::new(3), gib(6))]));
    assert_eq!(profile.home(), Some(NodeId::new(3)));
}

#[test]
fn an_advice_is_in_force_when_cpus_and_memory_are_where_it_says() {
    let machine = spec::machine(MACHINES[0]).unwrap();
    let mut profile = quiet(&machine);
    let advice = Advice::new(&profile, None);
    let InForce::No(differences) = advice.in_force(&profile) else { panic!("it may use all CPUs") };
    assert_eq!(differences, ["it may use CPUs 0-31, not only 0-7"]);
    profile.cpus = Known::certain("2-3".parse().unwrap());
    assert_eq!(advice.in_force(&profile), InForce::Yes);
    profile.memory = Known::certain(BTreeMap::from([(NodeId::new(0), gib(4)), (NodeId::new(2), gib(1))]));
    let InForce::No(differences) = advice.in_force(&profile) else { panic!("a fifth is elsewhere") };
    assert_eq!(differences, ["20 % of its memory is not on node 0"]);
    profile.memory = Known::unknown("denied");
    assert!(matches!(advice.in_force(&profile), InForce::Unknown(_)));
}

#[test]
fn commands_of_the_moment_have_a_way_back_and_respect_the_owner() {
    let machine = spec::machine(MACHINES[0]).unwrap();
    let mut profile = quiet(&machine);
    profile.memory = Known::certain(BTreeMap::from([(NodeId::new(0), gib(4)), (NodeId::new(2), gib(2))]));
    let advice = Advice::new(&profile, None);
    let commands = |owner: &Owner| -> Vec<String> {
        let mends = advice.at_once(&profile, 7, owner);
        assert!(mends.iter().all(|mend| !mend.undo.is_empty()), "{mends:?}");
        mends.into_iter().flat_map(|mend| mend.commands).collect()
    };
    let migrate = "nodewise migrate 7 --from-nodes 2 --to 0 --save nodewise-7.moved";
    assert_eq!(commands(&Owner::Itself), [migrate, "taskset -apc 0-7 7"]);
    assert_eq!(commands(&Owner::Service("x.service".into())), [migrate]);
    assert_eq!(commands(&Owner::Kubelet), [""; 0]);
    assert_eq!(commands(&Owner::Libvirt("x".into())), [""; 0]);
    large(&mut profile);
    profile.sharing = Known::certain(Sharing::Shared);
    let mends = Advice::new(&profile, None).at_once(&profile, 7, &Owner::Itself);
    assert_eq!(mends[0].commands, ["nodewise migrate 7 --to interleave:0-3 --save nodewise-7.moved"]);
}

fn known<T: std::fmt::Debug + Clone + 'static>(
    of: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Known<T>> {
    prop_oneof![of.prop_map(Known::certain), Just(Known::unknown("not known"))]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(f64::NAN), Just(f64::INFINITY), -1e12..1e12, 0.0..100.0]
}

proptest! {
    #[test]
    fn one_row_decides_whatever_is_known(
        text in prop::sample::select(&MACHINES),
        class in prop::sample::select(vec![Class::NoNodes, Class::One, Class::Emulated, Class::Real, Class::Tiered]),
        need in known(any::<u64>().prop_map(Bytes::new)),
        busy in known(number()),
        growth in known(number()),
        bandwidth in known(number()),
        sharing in known(prop::sample::select(vec![Sharing::Shared, Sharing::Private])),
        flags in prop::collection::vec(known(any::<bool>()), 3),
        device in known(prop::option::of((0_u32..9).prop_map(NodeId::new))),
        rooms in prop::collection::vec((any::<u64>(), 0_usize..9, number()), 0..9),
        complaints in known(prop::sample::select(vec![vec![], vec!["memory-stranded"]])),
    ) {
        let machine = spec::machine(text).unwrap();
        let mut profile = quiet(&machine);
        (profile.class, profile.need, profile.parallelism, profile.growth) = (class, need, busy, growth);
        (profile.bandwidth, profile.sharing, profile.device) = (bandwidth, sharing, device);
        (profile.latency, profile.snapshot, profile.splittable) = (flags[0].clone(), flags[1].clone(), flags[2].clone());
        profile.complaints = complaints;
        let rooms = rooms.into_iter().zip(0..).map(|((room, cpus, free), id)| {
            (NodeId::new(id), NodeRoom { size: Bytes::new(room), room: Bytes::new(room), cpus, free_cpus: Some(free) })
        });
        profile.nodes = rooms.collect();
        let advice = Advice::new(&profile, None);
        // All rows before it do not hold, or are named as open.
        let at = ROWS.iter().position(|row| row == advice.row).unwrap();
        for row in &ROWS[..at] {
            let conditions = (row.conditions)(&profile);
            let is_open = advice.undecided.iter().any(|open| open.row == row);
            prop_assert_eq!(is_open, !conditions.iter().any(|condition| condition.holds == Holds::No));
        }
        prop_assert!(advice.conditions.iter().all(|condition| condition.holds == Holds::Yes));
        prop_assert!(advice.flips.iter().all(|flip| flip.row != advice.row));
        let _ = (advice.in_force(&profile), profile.evidence());
    }
}

#[test]
fn a_row_without_a_placement_is_in_force_only_where_nothing_else_is_set() {
    let machine = spec::machine(MACHINES[0]).unwrap();
    let mut profile = quiet(&machine);
    large(&mut profile);
    profile.runs_on = Known::unknown("idle");
    let default = Advice::new(&profile, None);
    assert_eq!((default.row.number, default.in_force(&profile)), ("14", InForce::Yes));
    profile.placed = Known::certain(Some("CPUs 0-7".to_owned()));
    profile.complaints = Known::certain(vec!["memory-stranded"]);
    let placed = Advice::new(&profile, None);
    assert_eq!(placed.row.number, "14");
    assert!(matches!(placed.in_force(&profile), InForce::No(_)));
    let mut crowd = quiet(&machine);
    crowd.parallelism = Known::certain(12.0);
    let undecided = Advice::new(&crowd, None);
    assert_eq!(undecided.row.number, "8");
    assert!(matches!(undecided.in_force(&crowd), InForce::Unknown(_)));
}

#[test]
fn an_owner_is_not_overruled_because_nothing_could_be_examined() {
    let mut profile = quiet(&spec::machine(MACHINES[0]).unwrap());
    profile.placed = Known::certain(Some("memory policy bind:1".to_owned()));
    profile.complaints = Known::unknown("one moment only");
    profile.device = Known::certain(Some(NodeId::new(0)));
    assert_eq!(Advice::new(&profile, None).row.number, "3");
}

#[test]
fn a_node_without_cpus_is_no_place_for_a_program_and_does_not_make_its_memory_fit() {
    let machine = spec::machine("2x(8c 64G) (256G)").unwrap();
    let slow = NodeId::new(2);
    let mut profile = quiet(&machine);
    profile.class = Class::Tiered;
    profile.fast = NodeSet::from_iter([NodeId::new(0), NodeId::new(1)]);
    profile.device = Known::certain(Some(slow));
    assert_ne!(profile.home(), Some(slow));
    for placement in Advice::new(&profile, None).placements {
        assert!(placement.cpus.is_none_or(|cpus| !cpus.is_empty()));
    }
    profile.device = Known::certain(None);
    profile.need = Known::certain(gib(100));
    profile.runs_on = Known::certain(profile.fast.clone());
    profile.sharing = Known::certain(Sharing::Shared);
    let shared = Advice::new(&profile, None);
    assert_eq!(shared.row.number, "10", "{:?}", shared.undecided);
    let nodes = &shared.placements[0].policy.as_ref().unwrap().nodes;
    assert_eq!(nodes, &profile.fast, "without weights a third of it would be slow");
}

#[test]
fn a_study_overrides_the_table_and_the_default_is_in_force_where_nothing_places_the_program() {
    let mut profile = quiet(&spec::machine(MACHINES[0]).unwrap());
    assert_eq!(Advice::new(&profile, None).row.number, "6");
    let measured =
        |profile: &Profile, best: &Placement| Advice::from_measurement(profile, None, best, "12 rounds");
    let default = measured(&profile, &Placement::DEFAULT);
    assert_eq!((default.row.number, &default.placements[..]), ("0", &[][..]));
    assert_eq!(default.conditions[0].words, "12 rounds");
    assert!(default.flips.is_empty() && default.undecided.is_empty() && default.ask.is_empty());
    assert_eq!(default.in_force(&profile), InForce::Yes);
    profile.placed = Known::certain(Some("memory policy bind:1".to_owned()));
    let InForce::No(why) = default.in_force(&profile) else { panic!("it is placed") };
    assert_eq!(why, ["it is placed: memory policy bind:1"]);
    let on_two = profile.on_node(NodeId::new(2), PolicyMode::Bind);
    assert_eq!(measured(&profile, &on_two).placements, [on_two]);
}
