//! The part of an advice that a running process can be given, on machines with holes and with many nodes, too.

use nodewise_machine::CpuSet;

use super::*;
use crate::balance::PageMove;

/// Machines with nodes of their own numbers, and one with more nodes than a table on a screen has columns.
const MACHINES: [&str; 3] = ["4x(8c 64G)", "4x(8c 64G); ids=0,8,252,253", "16x(4c 32G)"];

/// A quiet program whose memory is on the second node while its threads may run everywhere.
fn away(text: &str) -> (Profile, Vec<NodeId>) {
    let machine = spec::machine(text).unwrap();
    let mut profile = quiet(&machine);
    let ids: Vec<NodeId> = profile.nodes.keys().copied().collect();
    let size = *profile.size.value().unwrap();
    profile.memory = Known::certain(BTreeMap::from([(ids[1], size)]));
    // A full node is not chosen.
    profile.nodes.get_mut(&ids[1]).unwrap().room = Bytes::new(0);
    (profile, ids)
}

fn undoable(profile: &Profile, owner: &Owner) -> Undoable {
    Advice::new(profile, None).undoable(profile, owner, MovablePages::Own)
}

#[test]
fn pages_go_to_the_node_of_the_advice_and_threads_to_its_cpus() {
    for text in MACHINES {
        let (profile, ids) = away(text);
        let found = undoable(&profile, &Owner::Itself);
        let size = *profile.size.value().unwrap();
        assert_eq!(found.means.pages, [PageMove { from: ids[1], to: ids[0], size }], "{text}");
        let (cpus, nodes) = found.means.cpus.unwrap();
        assert_eq!((cpus, nodes), (profile.scope.cpus_of(ids[0]), NodeSet::from_iter([ids[0]])), "{text}");
        assert!((found.elsewhere - 1.0).abs() < 1e-9, "{text}");
        let [policy] = &found.left[..] else { panic!("{text}: {:?}", found.left) };
        assert!(policy.contains("memory policy") && policy.contains(&ids[0].to_string()), "{policy}");
    }
}

#[test]
fn what_is_in_its_place_stays() {
    for text in MACHINES {
        let (mut profile, ids) = away(text);
        let size = *profile.size.value().unwrap();
        profile.memory = Known::certain(BTreeMap::from([(ids[0], size)]));
        profile.cpus = Known::certain(CpuSet::from_iter(profile.scope.cpus_of(ids[0]).first()));
        let found = undoable(&profile, &Owner::Itself);
        assert!(found.means.is_empty(), "{text}: {:?}", found.means);
        let home = Placement::memory(PolicyMode::Bind, NodeSet::from_iter([ids[0]]));
        profile.policy = Known::certain(home.policy);
        assert_eq!(undoable(&profile, &Owner::Itself).left, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn shared_memory_that_fits_no_node_is_spread_over_those_with_room() {
    for text in MACHINES {
        let machine = spec::machine(text).unwrap();
        let mut profile = quiet(&machine);
        large(&mut profile);
        profile.sharing = Known::certain(Sharing::Shared);
        let (need, ids) =
            (*profile.need.value().unwrap(), profile.nodes.keys().copied().collect::<NodeSet>());
        profile.memory = Known::certain(BTreeMap::from([(ids.first().unwrap(), need)]));
        let found = undoable(&profile, &Owner::Service("db.service".to_owned()));
        let spread = found.means.spread.clone().unwrap();
        assert_eq!(spread.over, ids, "{text}");
        assert_eq!(spread.from, NodeSet::from_iter(ids.first()), "{text}");
        let stays = need.get() / ids.len() as u64;
        assert_eq!((spread.size.get(), found.means.size()), (need.get() - stays, spread.size), "{text}");
        // What is spread evenly is not spread again.
        let part = Bytes::new(stays);
        profile.memory = Known::certain(ids.iter().map(|node| (node, part)).collect());
        assert!(undoable(&profile, &Owner::Itself).means.is_empty(), "{text}");
    }
}

#[test]
fn what_another_hand_would_take_back_is_not_applied() {
    let (profile, _) = away(MACHINES[0]);
    for (owner, who) in [
        (Owner::Kubelet, "the kubelet"),
        (Owner::Slurm, "Slurm"),
        (Owner::Libvirt("vm".to_owned()), "libvirt"),
    ] {
        let found = undoable(&profile, &owner);
        assert!(found.means.is_empty() && found.left[0].starts_with(who), "{:?}", found.left);
    }
    let mut split = profile.clone();
    large(&mut split);
    split.splittable = Known::certain(true);
    let found = undoable(&split, &Owner::Itself);
    assert!(found.means.is_empty() && found.left[0].contains("instances"), "{:?}", found.left);
}

#[test]
fn unknown_places_are_named_and_nothing_is_guessed() {
    let (mut profile, _) = away(MACHINES[0]);
    profile.memory = Known::unknown("not readable");
    profile.cpus = Known::unknown("not readable");
    let found = undoable(&profile, &Owner::Itself);
    assert!(found.means.is_empty(), "{:?}", found.means);
    assert!(found.left.iter().any(|left| left.starts_with("its pages: where")), "{:?}", found.left);
    assert!(found.left.iter().any(|left| left.starts_with("CPUs of its threads")), "{:?}", found.left);
    // A cpuset that lacks the node.
    let (mut profile, ids) = away(MACHINES[1]);
    let advice = Advice::new(&profile, None);
    profile.scope.memory_nodes.remove(ids[0]);
    let found = advice.undoable(&profile, &Owner::Itself, MovablePages::Own);
    assert!(found.means.pages.is_empty() && found.left[0].contains("cpuset"), "{:?}", found.left);
}

#[test]
fn pages_that_others_map_move_only_with_the_right_to() {
    let machine = spec::machine(MACHINES[0]).unwrap();
    let mut profile = quiet(&machine);
    let (small, segment) = (Bytes::from_mib(8), gib(2));
    profile.memory = Known::certain(BTreeMap::from([(NodeId::new(2), small + segment)]));
    profile.common = BTreeMap::from([(NodeId::new(2), segment)]);
    profile.nodes.get_mut(&NodeId::new(2)).unwrap().room = Bytes::new(0);
    let advice = Advice::new(&profile, None);
    let of = |movable| advice.undoable(&profile, &Owner::Itself, movable);
    let own = of(MovablePages::Own);
    assert_eq!(own.means.size(), small);
    assert!(own.left.iter().any(|left| left.starts_with("2 GiB that it shares")), "{:?}", own.left);
    let all = of(MovablePages::WithShared);
    assert_eq!(all.means.size(), small + segment);
    assert!(!all.left.iter().any(|left| left.contains("shares")), "{:?}", all.left);
    let commands = advice.at_once(&profile, 7, &Owner::Itself);
    assert!(commands[0].commands[0].ends_with(" --shared"), "{commands:?}");
    assert!(commands[0].undo[0].ends_with(" --shared"), "{commands:?}");
}
