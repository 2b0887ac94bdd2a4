//! Uncertain page cache.

use super::cache::{MIB, cached, dropped, read, write};
use super::*;
use crate::caches::Interval;

/// As [`simulation`], of a kernel that raises no watermarks.
fn plain() -> Simulation {
    let mut simulation = simulation();
    simulation.memory.boost = 0;
    simulation
}

fn interval(simulation: &Simulation, node: u32) -> Interval {
    simulation.page_cache().get(&NodeId::new(node)).copied().unwrap_or_default()
}

/// Page cache of a node in the model.
fn all_cached(simulation: &Simulation, node: u32) -> u64 {
    simulation.cached_pages().get(&NodeId::new(node)).copied().unwrap_or(0)
}

fn heap(mib: u64) -> Act {
    Act::Allocate(Mapping { pages: mib * MIB, ..mapping("heap", 0, Backing::NeverHuge) })
}

/// A machine on whose full node 0 kswapd may have freed pages ahead, and how many.
fn with_room() -> (Simulation, u64) {
    let mut simulation = plain();
    let fill =
        [("a", start("bind:0")), ("a", read("data", 0..7900)), ("b", start("bind:0")), ("b", heap(1000))];
    let steps = play(&mut simulation, &fill);
    let [(_, ahead)] = steps[3].ahead[..] else { panic!("{:?}", steps[3].ahead) };
    (simulation, ahead)
}

#[test]
fn room_that_kswapd_made_takes_pages_that_come_later_to_the_next_node() {
    let (mut simulation, ahead) = with_room();
    play(&mut simulation, &[("c", start("default")), ("c", read("new", 0..10))]);
    assert!(ahead > 20 * MIB, "{ahead}");
    assert_eq!(cached::<2>(&simulation, "new"), [0, 10 * MIB]);
    // Ten pages of MiB came, and no more can be on node 0 instead.
    assert_eq!(interval(&simulation, 1), Interval { least: 0, most: 10 * MIB });
    play(&mut simulation, &[("c", read("new", 10..1000))]);
    assert_eq!(interval(&simulation, 1), Interval { least: 1000 * MIB - ahead, most: 1000 * MIB });
    // The room is used once.
    play(&mut simulation, &[("c", read("new", 1000..2000))]);
    assert_eq!(interval(&simulation, 1), Interval { least: 2000 * MIB - ahead, most: 2000 * MIB });
    let here = all_cached(&simulation, 0);
    assert_eq!(interval(&simulation, 0), Interval { least: here - ahead, most: here });
    // A program that is bound to node 1 finds what it would.
    play(&mut simulation, &[("d", start("bind:1")), ("d", read("other", 0..1000))]);
    assert_eq!(interval(&simulation, 1), Interval { least: 3000 * MIB - ahead, most: 3000 * MIB });
    assert!(simulation.astray().is_empty());
    // Pages of a program may lie there as well.
    play(&mut simulation, &[("e", start("default")), ("e", heap(500))]);
    assert_eq!(simulation.astray(), [(NodeId::new(1), ahead)].into());
    play(&mut simulation, &[("", Act::DropCaches)]);
    assert_eq!(simulation.page_cache(), [(NodeId::new(1), Interval::exactly(0))].into());
    assert_eq!(simulation.astray(), [(NodeId::new(1), ahead)].into());
    // They leave less room on node 0 and more on node 1.
    play(&mut simulation, &[("c", read("new", 0..8000))]);
    let [here, there] = [0, 1].map(|node| all_cached(&simulation, node));
    assert_eq!(interval(&simulation, 0), Interval { least: here - ahead, most: here });
    assert_eq!(interval(&simulation, 1), Interval { least: there, most: there + ahead });
}

#[test]
fn kswapd_makes_room_again_when_pages_have_come_into_it() {
    let (mut simulation, ahead) = with_room();
    let more =
        |name: &str| Act::Allocate(Mapping { pages: 100 * MIB, ..mapping(name, 0, Backing::NeverHuge) });
    play(&mut simulation, &[("c", start("default")), ("c", read("new", 0..1000))]);
    for times in 1..4 {
        let all = all_cached(&simulation, 1);
        assert_eq!(interval(&simulation, 1), Interval { least: all - times * ahead, most: all }, "{times}");
        let end = 1000 * (times + 1);
        let steps = [("b", more(&format!("more{times}"))), ("c", read("new", end - 1000..end))];
        play(&mut simulation, &steps);
    }
}

#[test]
fn pages_that_come_back_in_parts_are_as_many_as_at_once() {
    let parts = [2000..2010, 2010..2020, 2020..7900];
    let more = |parts: &[Range<u64>]| {
        let mut simulation = plain();
        let bound =
            [("a", start("bind:0")), ("a", read("data", 0..7900)), ("a", heap(1000)), ("c", start("bind:1"))];
        play(&mut simulation, &bound);
        let widths = parts.iter().map(|part| {
            play(&mut simulation, &[("c", read("data", part.clone()))]);
            interval(&simulation, 1).most - all_cached(&simulation, 1)
        });
        widths.collect::<Vec<_>>()
    };
    let (at_once, in_parts) = (more(&[Range { start: 2000, end: 7900 }]), more(&parts));
    assert_eq!(in_parts[..2], [10 * MIB, 20 * MIB]);
    assert_eq!(in_parts[2], at_once[0]);
    assert!(at_once[0] > 30 * MIB, "{at_once:?}");
}

#[test]
fn clean_pages_of_a_file_that_was_written_in_part_have_their_own_age() {
    let mut simulation = plain();
    let steps = [
        ("a", start("bind:0")),
        ("a", read("old", 0..3000)),
        ("a", write("old", 0..100)),
        ("a", read("new", 0..3000)),
        ("a", read("old", 0..3000)),
        ("b", start("bind:0")),
        ("b", heap(3000)),
    ];
    let steps = play(&mut simulation, &steps);
    // The new file goes by its last use, and the clean part of the old one by its first.
    assert_eq!(simulation.misjudged, dropped(&steps[6]));
    assert!(simulation.misjudged > 500 * MIB);
}

#[test]
fn raised_watermarks_of_a_full_node_take_all_pages_that_come_later() {
    let file = [("a", start("default")), ("a", read("data", 0..7900)), ("a", read("new", 0..1000))];
    let mut none = plain();
    play(&mut none, &file);
    let there = all_cached(&none, 1);
    assert_eq!(interval(&none, 1), Interval::exactly(there));
    let mut raised = simulation();
    let steps = play(&mut raised, &file);
    assert_eq!((all_cached(&raised, 1), dropped(&steps[2])), (there, 0));
    assert_eq!(steps[2].raised, [(NodeId::new(0), there)]);
    assert_eq!(interval(&raised, 1), Interval { least: 0, most: there });
    // What comes in takes the place of what goes, but for what kswapd frees ahead.
    let Interval { least, most } = interval(&raised, 0);
    let high = *raised.memory().high_of(NodeId::new(0)).end();
    assert_eq!(
        (most - least, most),
        (2 * high - raised.memory().free_of(NodeId::new(0)), all_cached(&raised, 0))
    );
    // Memory of programs does not.
    let mut raised = simulation();
    let steps = [("a", start("default")), ("a", read("data", 0..7500)), ("a", heap(3000))];
    let steps = play(&mut raised, &steps);
    assert_eq!((raised.astray(), &steps[2].raised), (BTreeMap::new(), &vec![]));
    assert_eq!(interval(&raised, 0), Interval::exactly(all_cached(&raised, 0)));
    // A node without page cache has nothing to free.
    let mut full = simulation();
    play(&mut full, &[("a", start("default")), ("a", heap(9000)), ("a", read("new", 0..1000))]);
    assert_eq!(interval(&full, 1), Interval::exactly(1000 * MIB));
}

#[test]
fn pages_that_were_used_again_may_go_first() {
    for again in [0, 1000] {
        let mut simulation = plain();
        let steps = [
            ("a", start("bind:0")),
            ("a", read("old", 0..3000)),
            ("a", read("new", 0..3000)),
            ("a", read("old", 0..again)),
            ("b", start("bind:0")),
            ("b", heap(4000)),
        ];
        let steps = play(&mut simulation, &steps);
        let gone = dropped(&steps[5]);
        assert!((1500 * MIB..2000 * MIB).contains(&gone), "{gone}");
        // By their last use those of the old file go that were not used again, by their first those at its beginning.
        let misjudged = if again > 0 { 1000 * MIB } else { 0 };
        assert_eq!(simulation.misjudged, misjudged);
        let [(_, ahead)] = steps[5].ahead[..] else { panic!("{:?}", steps[5].ahead) };
        let mut there = simulation.clone();
        // The model has them, and where the kernel has dropped them they come back to node 1.
        play(&mut there, &[("c", start("default")), ("c", read("old", 0..again))]);
        assert_eq!(interval(&there, 1), Interval { least: 0, most: misjudged });
        // The model has dropped them, and where the kernel has them none comes.
        let back = again + 1000..again + 1500;
        play(&mut simulation, &[("c", start("default")), ("c", read("old", back))]);
        let taken = all_cached(&simulation, 1);
        assert_eq!(taken, 500 * MIB);
        let least = taken.saturating_sub(ahead + misjudged);
        assert_eq!(interval(&simulation, 1), Interval { least, most: taken }, "{again}");
        play(&mut simulation, &[("", Act::DropCaches)]);
        assert_eq!(simulation.misjudged, 0);
    }
}

#[test]
fn pages_that_come_back_take_the_room_that_others_have_left_before() {
    for (node, [here, there]) in [(0, [false, false]), (1, [true, false])] {
        let mut simulation = plain();
        let bound = start(&format!("bind:{node}"));
        let steps = [
            ("a", bound.clone()),
            ("a", read("data", 0..7900)),
            ("b", bound),
            ("b", heap(1000)),
            ("c", start("default")),
            ("c", read("data", 2000..7900)),
        ];
        play(&mut simulation, &steps);
        let more = [0, 1].map(|node| interval(&simulation, node).most > all_cached(&simulation, node));
        // Pages of node 0 come back to node 0, those of node 1 also where the program looks first.
        assert_eq!(more, [here, there], "node {node}");
        // A turn takes them to either.
        play(&mut simulation, &[("d", start("interleave:0-1")), ("d", read("data", 2000..7900))]);
        let other = 1 - node;
        assert!(interval(&simulation, other).most > all_cached(&simulation, other), "node {node}");
    }
}

#[test]
fn each_turn_brings_its_share_of_the_pages_that_come_back() {
    let more = |policy: &str, full: u32| {
        let mut simulation = simulation_on("4x(8c 8G); dist=20", Release::REFERENCE);
        simulation.memory.boost = 0;
        let steps = [("a", start("bind:0")), ("a", read("data", 0..7900)), ("a", heap(1000))];
        play(&mut simulation, &steps);
        // Less is left than what is read below.
        let pages = simulation.memory().above_low_of(NodeId::new(full)).saturating_sub(MIB);
        let fill = Act::Allocate(Mapping { pages, ..mapping("heap", 0, Backing::NeverHuge) });
        let bound = start(&format!("bind:{full}"));
        play(
            &mut simulation,
            &[("b", bound), ("b", fill), ("c", start(policy)), ("c", read("data", 7000..7030))],
        );
        [1, 2, 3].map(|node| interval(&simulation, node).most)
    };
    let all = 30 * MIB;
    let share = all / 3 + 3;
    // Pages of node 0, which is full.
    assert_eq!(more("prefer:3", 1), [0, 0, all]);
    assert_eq!(more("interleave:0,2-3", 0), [share, share, share]);
    assert_eq!(more("interleave:2-3", 0), [0, all / 2 + 3, all / 2 + 3]);
    // Where node 1 is full, too, those of its turn come to node 2.
    assert_eq!(more("interleave:0,2-3", 1)[1..], [2 * share, share]);
}

#[test]
fn pages_of_a_nodes_own_turns_are_on_it() {
    let fill = [("a", start("bind:0")), ("a", read("data", 0..8400))];
    let later = [("c", start("interleave:0-1")), ("c", read("new", 0..1000))];
    let mut raised = simulation();
    play(&mut raised, &fill);
    let steps = play(&mut raised, &later);
    assert_eq!(cached::<2>(&raised, "new"), [0, 1000 * MIB]);
    // Those of node 0 have fallen to it, but for one whose turn is not known.
    let fallen = 500 * MIB + 1;
    assert_eq!(steps[1].raised, [(NodeId::new(0), fallen)]);
    assert_eq!(interval(&raised, 1), Interval { least: 1000 * MIB - fallen, most: 1000 * MIB });
    // Room that kswapd has made has no others either.
    let (mut simulation, ahead) = with_room();
    play(&mut simulation, &[("c", start("interleave:0-1")), ("c", read("new", 0..20))]);
    assert!(ahead > 20 * MIB, "{ahead}");
    assert_eq!(interval(&simulation, 1), Interval { least: 10 * MIB - 1, most: 20 * MIB });
}

#[test]
fn turns_of_larger_pages_take_what_is_written_to_any_node() {
    let written = |release: Release| {
        let mut simulation = simulation_on("4x(8c 8G); dist=20", release);
        play(&mut simulation, &[("a", start("interleave:1,3")), ("a", write("data", 0..100))]);
        [1, 2, 3].map(|node| interval(&simulation, node))
    };
    let half = Interval::exactly(50 * MIB);
    assert_eq!(written(Release::new(6, 12)), [half, Interval::exactly(0), half]);
    let any = Interval { least: 0, most: 100 * MIB };
    assert_eq!(written(Release::new(6, 18)), [any, Interval::exactly(0), any]);
}
