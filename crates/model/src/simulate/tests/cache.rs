//! Page cache of files on a disk.

use super::*;
use crate::caches::Interval;

pub(super) const MIB: u64 = 1 << 8;

fn part(file: &str, mib: Range<u64>) -> FilePart {
    FilePart { file: file.to_owned(), pages: mib.start * MIB..mib.end * MIB }
}

pub(super) fn read(file: &str, mib: Range<u64>) -> Act {
    Act::Read(part(file, mib))
}

pub(super) fn write(file: &str, mib: Range<u64>) -> Act {
    Act::Write(part(file, mib))
}

/// Pages of a file's cache by node.
pub(super) fn cached<const N: usize>(simulation: &Simulation, file: &str) -> [u64; N] {
    let all = simulation.placements();
    let placement = all.get(&Owner::Cache(file.to_owned())).cloned().unwrap_or_default();
    std::array::from_fn(|node| placement.nodes.get(&NodeId::new(node as u32)).copied().unwrap_or(0))
}

pub(super) fn dropped(step: &Step) -> u64 {
    let pages = step.reliefs.iter().map(|relief| match relief {
        Relief::Dropped { pages, .. } => *pages,
        Relief::Swapped { .. } | Relief::Demoted { .. } => 0,
    });
    pages.sum()
}

#[test]
fn pages_come_from_where_the_policy_of_the_reader_says_and_stay_after_its_end() {
    for (policy, expected) in
        [("default", [400, 0]), ("bind:1", [0, 400]), ("prefer:1", [0, 400]), ("interleave:0-1", [200, 200])]
    {
        let mut simulation = simulation();
        let steps = [("a", start(policy)), ("a", read("data", 0..400)), ("a", Act::End)];
        let steps = play(&mut simulation, &steps);
        assert_eq!(cached(&simulation, "data"), expected.map(|mib| mib * MIB), "{policy}");
        assert_eq!(steps[1].taken.iter().map(|(_, pages)| pages).sum::<u64>(), 400 * MIB);
        let exact = simulation.page_cache().into_values().all(|pages| pages.least == pages.most);
        assert!(exact, "{policy}: {:?}", simulation.page_cache());
    }
}

#[test]
fn pages_of_the_kernel_can_wake_a_kswapd_where_few_are_left() {
    let mut simulation = simulation();
    play(&mut simulation, &[("a", start("bind:0")), ("a", read("data", 0..1000))]);
    let node = NodeId::new(0);
    let above = simulation.memory().above_low_of(node);
    simulation.doubt_own("a", above);
    assert_eq!(simulation.page_cache()[&node], Interval { least: 1000 * MIB, most: 1000 * MIB });
    simulation.doubt_own("a", above + 1);
    assert_eq!(simulation.page_cache()[&node].least, 1000 * MIB, "twice the high watermark is free");
    let heap = Mapping { pages: above - 10, ..mapping("heap", 0, Backing::NeverHuge) };
    play(&mut simulation, &[("a", Act::Allocate(heap))]);
    simulation.doubt_own("a", 10);
    assert_eq!(simulation.page_cache()[&node].least, 1000 * MIB);
    simulation.doubt_own("a", 11);
    let ahead = 2 * simulation.memory().high_of(node).end() - simulation.memory().free_of(node);
    assert_eq!(simulation.page_cache()[&node], Interval { least: 1000 * MIB - ahead, most: 1000 * MIB });
}

#[test]
fn pages_that_are_cached_are_not_read_again_and_are_nobodys() {
    let mut simulation = simulation();
    let steps = [
        ("a", start("bind:0")),
        ("a", read("data", 0..100)),
        ("b", start("bind:1")),
        ("b", read("data", 50..150)),
        ("b", write("data", 0..10)),
    ];
    let steps = play(&mut simulation, &steps);
    assert_eq!(cached(&simulation, "data"), [100 * MIB, 50 * MIB]);
    assert_eq!((steps[3].taken.clone(), steps[4].taken.clone()), (vec![(NodeId::new(1), 50 * MIB)], vec![]));
    let programs = ["a", "b"].map(|name| simulation.placements()[&Owner::Program(name.to_owned())].clone());
    assert!(programs.iter().all(|placement| *placement == Placement::default()));
}

#[test]
fn drop_caches_leaves_what_is_not_on_the_disk() {
    let mut simulation = simulation_on("2x(8c 8G free=5G cache=1G); dist=21", Release::REFERENCE);
    let steps = [
        ("a", start("bind:1")),
        ("a", read("data", 0..100)),
        ("a", write("data", 20..30)),
        ("", Act::DropCaches),
        ("", Act::Sync),
        ("", Act::DropCaches),
    ];
    let free = simulation.memory().free_of(NodeId::new(1));
    let steps = play(&mut simulation, &steps);
    // With it go the caches that the machine had, as far as they are certain.
    assert!(dropped(&steps[3]) > 90 * MIB + 2 * 900 * MIB, "{:?}", steps[3]);
    assert_eq!((steps[3].unwritten, dropped(&steps[5]), steps[5].unwritten), (10 * MIB, 10 * MIB, 0));
    assert_eq!(cached(&simulation, "data"), [0, 0]);
    assert!(simulation.memory().free_of(NodeId::new(1)) > free + 900 * MIB);
    assert_eq!(simulation.page_cache(), BTreeMap::new());
}

#[test]
fn a_bound_program_has_the_cache_of_its_node_and_the_rest_is_an_interval() {
    let mut simulation = simulation();
    let steps = [
        ("a", start("bind:0")),
        ("a", read("old", 0..3000)),
        ("a", read("new", 0..3000)),
        ("a", Act::End),
        ("b", start("bind:0")),
        ("b", allocate("heap", 4)),
    ];
    let steps = play(&mut simulation, &steps);
    let gone = 6000 * MIB - cached::<1>(&simulation, "old")[0] - cached::<1>(&simulation, "new")[0];
    assert_eq!(cached::<1>(&simulation, "new")[0], 3000 * MIB, "the older one goes first");
    assert_eq!((dropped(&steps[5]), killed(&steps[5])), (gone, vec![]));
    let node = NodeId::new(0);
    let Interval { least, most } = simulation.page_cache()[&node];
    assert_eq!(most, 6000 * MIB - gone);
    // Twice the high watermark, which may be raised to 2.5 times itself.
    let high = simulation.memory().high_of(node);
    let (plain, raised) = (*high.start(), *high.end());
    assert_eq!(raised, plain * 5 / 2);
    assert!(most - least > 2 * plain && most - least <= 2 * raised, "{least} to {most}");
    assert_eq!(simulation.memory().clone().with_boost(0).high_of(node), plain..=plain);
    assert_eq!(steps[5].ahead, [(node, most - least)]);
    // When all of it is gone and not enough, a program is killed.
    let steps = play(&mut simulation, &[("c", start("bind:0")), ("c", allocate("heap", 5))]);
    assert_eq!((cached(&simulation, "new"), killed(&steps[1])), ([0], vec!["b"]));
}

#[test]
fn a_program_that_is_not_bound_goes_to_another_node_before_cache_is_dropped() {
    let mut simulation = simulation();
    let steps = [
        ("a", start("bind:0")),
        ("a", read("data", 0..7900)),
        ("b", start("default")),
        ("b", allocate("heap", 4)),
        ("b", allocate("more", 6)),
    ];
    let steps = play(&mut simulation, &steps);
    assert_eq!((dropped(&steps[3]), placed(&simulation, "b")), (0, [2, 8]));
    assert!(dropped(&steps[4]) > GIB && killed(&steps[4]).is_empty());
}

#[test]
fn a_file_larger_than_the_memory_drops_its_own_pages() {
    let mut simulation = simulation_on("2x(8c 1G); dist=21", Release::REFERENCE);
    let steps = play(&mut simulation, &[("a", start("default")), ("a", read("data", 0..5000))]);
    assert!(killed(&steps[1]).is_empty() && dropped(&steps[1]) > 2900 * MIB, "{:?}", steps[1].reliefs);
    let left: u64 = cached::<2>(&simulation, "data").iter().sum();
    assert!((1900 * MIB..2048 * MIB).contains(&left), "{left}");
}

#[test]
fn more_than_a_node_may_have_to_write_is_an_interval() {
    let mut simulation = simulation();
    play(&mut simulation, &[("a", start("default")), ("a", write("data", 0..1000))]);
    assert!(simulation.page_cache().into_values().all(|pages| pages.least == pages.most));
    play(&mut simulation, &[("a", write("data", 1000..4000))]);
    let [here, there] = [0, 1].map(|node| simulation.page_cache()[&NodeId::new(node)]);
    // A fifth of 8 GiB may be dirty.
    assert!(here.most == 4000 * MIB && (1300 * MIB..1700 * MIB).contains(&here.least), "{here:?}");
    assert_eq!((there.least, there.most), (0, here.most - here.least));
    // A bound task writes to its node alone.
    play(&mut simulation, &[("b", start("bind:1")), ("b", write("more", 0..4000))]);
    assert_eq!(cached(&simulation, "more"), [0, 4000 * MIB]);
}

#[test]
fn a_node_has_no_more_cache_than_it_has_room() {
    let mut simulation = simulation();
    // Both nodes are nearly full when pages that may have been dropped come back.
    let steps = [
        ("a", start("default")),
        ("a", read("old", 0..7900)),
        ("b", start("bind:1")),
        ("b", read("other", 0..7900)),
        ("a", read("new", 0..3000)),
        ("a", read("old", 0..7900)),
    ];
    play(&mut simulation, &steps);
    let mut is_open = false;
    for (node, Interval { most, .. }) in simulation.page_cache() {
        let zones = simulation.memory().zones().iter().filter(|zone| zone.node == node);
        let kept: u64 = zones.map(|zone| zone.marks.min).sum();
        let cached: u64 = ["old", "other", "new"]
            .map(|file| cached::<2>(&simulation, file)[node.number() as usize])
            .iter()
            .sum();
        let free = simulation.memory().free_of(node);
        assert!(most - cached <= free.saturating_sub(kept), "{node}: {most} of {cached}, {free} free");
        is_open |= most > cached;
    }
    assert!(is_open, "pages that come back may be anywhere");
}

#[test]
fn a_group_is_charged_for_what_it_reads_and_drops_it_at_its_limit() {
    let mut simulation = simulation();
    let limits = GroupLimits { max: Some(2 * GIB), ..GroupLimits::default() };
    let limit = Act::Limit { group: "db".to_owned(), parent: None, limits };
    let steps = [
        ("", limit),
        ("a", start("default")),
        ("a", Act::Join { group: "db".to_owned() }),
        ("a", read("data", 0..1500)),
        ("b", start("default")),
        ("b", read("data", 0..1500)),
        ("a", allocate("heap", 1)),
        ("a", Act::End),
    ];
    let steps = play(&mut simulation, &steps);
    let met = &steps[6].limits[0];
    assert_eq!((met.outcome, met.dropped.clone()), (LimitOutcome::Fits, vec![(NodeId::new(0), 476 * MIB)]));
    assert_eq!((killed(&steps[6]), dropped(&steps[6])), (vec![], 0));
    assert_eq!(simulation.groups()["db"].memory, 1024 * MIB);
    assert_eq!(cached(&simulation, "data"), [1024 * MIB, 0]);
}

#[test]
fn a_program_that_finds_no_cache_to_drop_is_killed_while_it_writes_to_a_file() {
    let mut simulation = simulation();
    let limits = GroupLimits { max: Some(2 * GIB), ..GroupLimits::default() };
    let steps = [
        ("", Act::Limit { group: "db".to_owned(), parent: None, limits }),
        ("a", start("default")),
        ("a", Act::Join { group: "db".to_owned() }),
        ("a", allocate("heap", 2)),
        ("a", write("data", 0..500)),
    ];
    let steps = play(&mut simulation, &steps);
    assert_eq!(killed(&steps[4]), ["a"]);
    assert_eq!(simulation.placements().keys().filter(|owner| matches!(owner, Owner::Program(_))).count(), 0);
}

#[test]
fn pages_that_a_large_file_has_dropped_of_its_own_are_clean_when_they_are_read_again() {
    let mut simulation = simulation_on("(8c 1G)", Release::REFERENCE);
    let steps = [
        ("a", start("default")),
        ("a", write("data", 0..3000)),
        ("", Act::Sync),
        ("", Act::DropCaches),
        ("a", write("data", 0..3000)),
        ("a", read("data", 0..100)),
        ("", Act::DropCaches),
    ];
    let steps = play(&mut simulation, &steps);
    let left = cached::<1>(&simulation, "data")[0];
    assert!(steps[6].unwritten == left && left < 1000 * MIB, "{left}");
    assert_eq!(dropped(&steps[6]), 100 * MIB);
}
