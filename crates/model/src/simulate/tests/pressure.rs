//! Memory that has to be made room for: swap, demotion, and small pages where no huge ones are left.

use super::*;
use crate::ZoneState;
use crate::simulate::run::{At, Held};
use crate::walk::HUGE_ORDER;

/// Pages in a huge one.
const HUGE: u64 = 1 << HUGE_ORDER;

fn swapped(simulation: &Simulation, name: &str) -> u64 {
    simulation.placements()[&Owner::Program(name.to_owned())].swapped
}

/// Pages that reliefs report.
fn told(step: &Step) -> u64 {
    let pages = |relief: &Relief| match relief {
        Relief::Dropped { pages, .. } | Relief::Swapped { pages, .. } | Relief::Demoted { pages, .. } => {
            *pages
        }
    };
    step.reliefs.iter().map(pages).sum()
}

/// Pages of a program that are in huge ones, and those that are not.
fn huge_and_small(simulation: &Simulation, name: &str) -> (u64, u64) {
    let id = simulation.names[name];
    let extents = simulation.objects.values().flat_map(|object| &object.extents);
    let own: Vec<_> = extents.filter(|extent| extent.holders.contains(id, &simulation.family)).collect();
    let of = |order: u32| {
        let is = |held: &Held| held.order == order && held.at != At::Swap;
        own.iter().map(|extent| extent.run.count(is)).sum()
    };
    (of(HUGE_ORDER), of(0))
}

#[test]
fn swap_takes_what_was_touched_longest_ago_and_gives_it_back_where_there_is_room() {
    let mut simulation = simulation().with_swap(4 * GIB);
    let steps = [
        ("database", start("default")),
        ("database", allocate("old", 4)),
        ("database", allocate("new", 3)),
        ("tool", start("bind:0")),
        ("tool", allocate("heap", 3)),
    ];
    let step = play(&mut simulation, &steps).pop().unwrap();
    assert_eq!(killed(&step), [""; 0]);
    assert_eq!(placed(&simulation, "database"), [5, 0]);
    let out =
        |simulation: &Simulation| simulation.placements()[&Owner::Program("database".to_owned())].swapped;
    assert_eq!((out(&simulation) + GIB / 2) / GIB, 2);
    assert_eq!(simulation.swap_left() + out(&simulation), 4 * GIB);
    let step = simulation.play("database", &Act::Touch(whole("old"))).unwrap();
    assert!(step.swapped_in > 2 * GIB - GIB / 2 && out(&simulation) == 0, "{step:?}");
    assert_eq!(placed(&simulation, "database"), [5, 2]);
    assert_eq!(simulation.swap_left(), 4 * GIB);
}

#[test]
fn caches_go_before_pages_of_programs() {
    let check = |machine: &str, gib: u64, expected: &[Relief], killed_names: &[&str]| {
        let mut simulation = simulation_on(machine, Release::REFERENCE);
        let steps = play(&mut simulation, &[("a", start("bind:1")), ("a", allocate("heap", gib))]);
        let node = |relief: &Relief| match relief {
            Relief::Dropped { node, .. } => (*node, "dropped"),
            Relief::Swapped { node, .. } => (*node, "swapped"),
            Relief::Demoted { node, .. } => (*node, "demoted"),
        };
        let reliefs = |reliefs: &[Relief]| reliefs.iter().map(node).collect::<Vec<_>>();
        assert_eq!(reliefs(&steps[1].reliefs), reliefs(expected), "{machine}");
        assert_eq!(killed(&steps[1]), killed_names, "{machine}");
    };
    let (node, pages) = (NodeId::new(1), 0);
    let (dropped, swapped) = (Relief::Dropped { node, pages }, Relief::Swapped { node, pages });
    check("2x(1c 8G free=1G cache=6G)", 4, &[dropped], &[]);
    check("2x(1c 8G free=1G cache=2G); swap=8G", 4, &[dropped, swapped], &[]);
    check("2x(1c 8G free=1G cache=2G)", 4, &[dropped], &["a"]);
    check("2x(1c 8G free=1G)", 4, &[], &["a"]);
}

#[test]
fn pages_that_make_room_for_those_behind_them_are_not_brought_back() {
    let mut simulation = simulation().with_swap(3 * GIB);
    let steps = play(&mut simulation, &[("a", start("bind:0")), ("a", allocate("heap", 10))]);
    // What does not fit goes out once: the pages that were touched first.
    let out = swapped(&simulation, "a");
    assert_eq!((out + GIB / 2) / GIB, 2);
    assert_eq!((steps[1].swapped_in, told(&steps[1])), (0, out));
    assert_eq!(simulation.swap_left(), 3 * GIB - out);
}

#[test]
fn whole_huge_pages_that_go_out_are_all_told_of() {
    let mut simulation = simulation_on("(8c 8G)", Release::REFERENCE).with_swap(4 * GIB);
    let mapping = Mapping { pages: 7 * GIB, ..mapping("heap", 0, Backing::Huge) };
    let other = Mapping {
        region: "heap".to_owned(),
        pages: GIB + 77,
        backing: Backing::Small,
        policy: None,
        first_page: None,
    };
    let steps = [
        ("a", start("default")),
        ("a", Act::Allocate(mapping)),
        ("b", start("default")),
        ("b", Act::Allocate(other)),
    ];
    let step = play(&mut simulation, &steps).pop().unwrap();
    let out = swapped(&simulation, "a");
    assert!(out > 0 && out % HUGE == 0, "{out} pages");
    assert_eq!(told(&step), out);
}

#[test]
fn huge_pages_come_again_when_there_is_room_for_them() {
    let mut simulation = simulation_on("(8c 8G)", Release::REFERENCE).with_swap(8 * GIB);
    let huge = Act::Allocate(mapping("heap", 4, Backing::Huge));
    let steps = [("a", start("default")), ("a", allocate("heap", 7)), ("b", start("default")), ("b", huge)];
    play(&mut simulation, &steps);
    // Small ones are those that were left in each zone, and those up to the next place for a huge one.
    let (huge, small) = huge_and_small(&simulation, "b");
    assert_eq!(huge + small, 4 * GIB);
    assert!((1..4 * HUGE).contains(&small), "{small} small pages");
}

#[test]
fn after_a_fork_huge_pages_are_copied_as_small_ones_and_new_ones_beside_them_are_huge() {
    let mut simulation = simulation();
    let part = |first, end| Act::Touch(Part { region: "heap".to_owned(), pages: Some(first..end) });
    let steps = [
        ("a", start("default")),
        ("a", Act::Map(mapping("heap", 2, Backing::Huge))),
        ("a", part(0, HUGE)),
        ("a", part(9 * HUGE, 11 * HUGE)),
        ("a", Act::Fork { child: "b".to_owned() }),
        ("b", Act::Touch(whole("heap"))),
    ];
    play(&mut simulation, &steps);
    assert_eq!(huge_and_small(&simulation, "b"), (2 * GIB - 3 * HUGE, 3 * HUGE));
    assert_eq!(huge_and_small(&simulation, "a"), (3 * HUGE, 0));
}

#[test]
fn demotion_takes_the_programs_that_are_wanted_and_no_more() {
    let mut simulation = simulation_on(TIERED, Release::REFERENCE);
    let mut steps = vec![(String::new(), Act::SetDemotion(true))];
    for number in 0..4 {
        steps.push((format!("p{number}"), start("bind:0")));
        steps.push((format!("p{number}"), allocate("heap", 2)));
    }
    steps.push(("last".to_owned(), start("bind:0")));
    steps.push(("last".to_owned(), allocate("heap", 3)));
    let steps: Vec<(&str, Act)> = steps.iter().map(|(name, act)| (name.as_str(), act.clone())).collect();
    play(&mut simulation, &steps);
    // The oldest is gone as a whole, the next in part, and no other is touched.
    let all = ["p0", "p1", "p2", "p3", "last"].map(|name| placed(&simulation, name));
    assert_eq!(all, [[0, 2], [1, 1], [2, 0], [2, 0], [3, 0]]);
}

const TIERED: &str = "(8c 8G) (16G tier=22); dist=17";

#[test]
fn demotion_keeps_a_bound_program_alive_and_leaves_its_nodes() {
    let play_on = |demotion| {
        let mut simulation = simulation_on(TIERED, Release::REFERENCE);
        let steps = [("", Act::SetDemotion(demotion)), ("a", start("bind:0")), ("a", allocate("heap", 10))];
        let step = play(&mut simulation, &steps).pop().unwrap();
        (placed(&simulation, "a"), killed(&step).len())
    };
    assert_eq!(play_on(true), ([8, 2], 0));
    assert_eq!(play_on(false), ([0, 0], 1));
}

#[test]
fn time_that_passes_brings_a_full_node_above_its_high_mark_and_no_further() {
    let mut simulation = simulation_on(TIERED, Release::REFERENCE);
    let steps = [
        ("", Act::SetDemotion(true)),
        ("a", start("bind:0")),
        ("a", allocate("heap", 9)),
        ("a", Act::Balance),
        ("a", Act::Balance),
    ];
    let steps = play(&mut simulation, &steps);
    let demoted = |step: &Step| matches!(step.reliefs.as_slice(), [Relief::Demoted { pages: 1.., .. }]);
    assert!(demoted(&steps[2]) && demoted(&steps[3]));
    assert_eq!(steps[4].reliefs, []);
    let zones = simulation.memory().zones().iter().filter(|zone| zone.node == NodeId::new(0));
    let above = |zone: &ZoneState| zone.free as i64 - (zone.marks.high + zone.reserves[3]) as i64;
    assert_eq!(zones.map(above).max(), Some(1));
}

#[test]
fn demotion_keeps_to_the_cpuset_since_6_16() {
    for (release, dead) in [(Release::REFERENCE, 0), (Release::new(6, 16), 1)] {
        let mut simulation = simulation_on(TIERED, release);
        let start = start_in("default", NodeSet::from([0]));
        let steps = [("", Act::SetDemotion(true)), ("a", start), ("a", allocate("heap", 10))];
        assert_eq!(play(&mut simulation, &steps)[2].killed.len(), dead, "{release}");
    }
}

#[test]
fn a_pool_takes_no_more_than_there_is() {
    for pages in [u64::MAX, u64::MAX / HUGE, 1 << 40] {
        let mut simulation = simulation();
        let free = |simulation: &Simulation| -> (u64, u64) {
            let sum = |zones: &[ZoneState]| zones.iter().map(|zone| zone.free).sum::<u64>();
            (sum(simulation.memory().zones()), sum(simulation.pool.free.zones()) * HUGE)
        };
        let (all, none) = free(&simulation);
        play(&mut simulation, &[("", Act::ResizePool { pages })]);
        let (left, pooled) = free(&simulation);
        assert_eq!((none, left + pooled), (0, all), "{pages}");
        assert!(pooled > all / 2, "{pages}: {pooled} of {all}");
    }
}

#[test]
fn memory_without_pages_is_refused() {
    let mut simulation = simulation();
    play(&mut simulation, &[("a", start("default"))]);
    for act in [Act::Map as fn(Mapping) -> Act, Act::Allocate] {
        let step = simulation.play("a", &act(mapping("heap", 0, Backing::Small))).unwrap();
        assert_eq!(step.refused, Some(Errno::Einval));
    }
    let step = simulation.play("a", &Act::Touch(whole("heap"))).unwrap();
    assert_eq!(step.skipped, Some(Skipped::NotMapped));
}
