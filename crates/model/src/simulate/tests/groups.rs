//! Control groups: limits, protection, and who is killed.

use super::*;
use crate::simulate::{GroupLimit, GroupLimits, LimitOutcome};

fn limits() -> GroupLimits {
    GroupLimits { swap_max: Some(0), ..GroupLimits::default() }
}

fn group(name: &str, limits: GroupLimits) -> Act {
    Act::Limit { group: name.to_owned(), parent: None, limits }
}

fn below(parent: &str, name: &str, limits: GroupLimits) -> Act {
    Act::Limit { group: name.to_owned(), parent: Some(parent.to_owned()), limits }
}

fn join(name: &str) -> Act {
    Act::Join { group: name.to_owned() }
}

fn max(gib: u64) -> GroupLimits {
    GroupLimits { max: Some(gib * GIB), ..limits() }
}

/// Steps after which the program a is in the group db, which has these limits.
fn in_db(limits: GroupLimits) -> Vec<(&'static str, Act)> {
    vec![("", group("db", limits)), ("a", start("default")), ("a", join("db"))]
}

/// The same, and a program beside the group has 3 GiB.
fn beside_another(limits: GroupLimits) -> Vec<(&'static str, Act)> {
    let other = [("other", start("default")), ("other", allocate("heap", 3))];
    let mut steps = in_db(limits);
    steps.splice(1..1, other);
    steps
}

/// Limits that were met, with what happened there.
fn met(step: &Step) -> Vec<(&str, GroupLimit, LimitOutcome)> {
    step.limits.iter().map(|met| (met.group.as_str(), met.limit, met.outcome)).collect()
}

#[test]
fn a_program_is_killed_at_the_limit_of_its_group_though_nodes_are_free() {
    let mut simulation = simulation();
    let more = [("a", allocate("heap", 2)), ("a", allocate("more", 1))];
    let steps = [beside_another(max(2)), more.to_vec()].concat();
    let steps = play(&mut simulation, &steps);
    assert_eq!(killed(&steps[5]), [""; 0]);
    assert_eq!(killed(&steps[6]), ["a"]);
    assert_eq!(steps[6].killed[0].cause, Cause::GroupLimit { group: "db".to_owned(), missing: GIB });
    assert_eq!(met(&steps[6]), [("db", GroupLimit::Max, LimitOutcome::Killed)]);
    let groups = simulation.groups();
    assert_eq!(
        (groups["db"].memory, groups["db"].peak, groups["db"].killed, groups["db"].ooms),
        (0, 2 * GIB, 1, 1)
    );
    // What is beside the group stays as it is.
    assert_eq!(placed(&simulation, "other"), [3, 0]);
}

#[test]
fn pages_of_the_group_are_swapped_and_of_no_other_until_its_swap_is_full() {
    let mut simulation = simulation().with_swap(8 * GIB);
    let more = [("a", allocate("heap", 3)), ("a", allocate("more", 1))];
    let steps = [
        beside_another(GroupLimits { max: Some(2 * GIB), swap_max: Some(GIB), ..GroupLimits::default() }),
        more.to_vec(),
    ]
    .concat();
    let steps = play(&mut simulation, &steps);
    assert_eq!(met(&steps[5]), [("db", GroupLimit::Max, LimitOutcome::Fits)]);
    assert_eq!(steps[5].limits[0].swapped, [(NodeId::new(0), GIB)]);
    assert_eq!((killed(&steps[5]), killed(&steps[6])), (vec![""; 0], vec!["a"]));
    assert_eq!(placed(&simulation, "other"), [3, 0]);
    assert_eq!(simulation.swap_left(), 8 * GIB);
}

#[test]
fn pages_that_come_back_are_charged_and_push_others_of_the_group_out() {
    let mut simulation = simulation().with_swap(8 * GIB);
    let more = [("a", allocate("old", 2)), ("a", allocate("new", 1)), ("a", Act::Touch(whole("old")))];
    let steps = [in_db(GroupLimits { max: Some(2 * GIB), ..GroupLimits::default() }), more.to_vec()].concat();
    let steps = play(&mut simulation, &steps);
    assert_eq!((steps[5].swapped_in, killed(&steps[5])), (GIB, vec![""; 0]));
    let groups = simulation.groups();
    assert_eq!((groups["db"].memory, groups["db"].swap), (2 * GIB, GIB));
}

#[test]
fn above_high_programs_are_slowed_down_and_live() {
    let mut simulation = simulation();
    let high = GroupLimits { high: Some(GIB), ..limits() };
    let steps =
        [("", group("web", high)), ("a", start("default")), ("a", join("web")), ("a", allocate("heap", 3))];
    let steps = play(&mut simulation, &steps);
    assert_eq!(met(&steps[3]), [("web", GroupLimit::High, LimitOutcome::Throttled)]);
    assert_eq!((killed(&steps[3]), placed(&simulation, "a")), (vec![""; 0], [3, 0]));
}

#[test]
fn a_high_limit_that_is_written_below_the_size_has_pages_swapped_at_once() {
    let mut simulation = simulation().with_swap(8 * GIB);
    let high = |gib: u64| GroupLimits { high: Some(gib * GIB), ..GroupLimits::default() };
    let steps = [in_db(high(4)), vec![("a", allocate("heap", 3)), ("", group("db", high(1)))]].concat();
    let steps = play(&mut simulation, &steps);
    assert_eq!(met(&steps[4]), [("db", GroupLimit::High, LimitOutcome::Fits)]);
    assert_eq!((simulation.groups()["db"].memory, simulation.groups()["db"].swap), (GIB, 2 * GIB));
    // Without room for them its programs are slowed down.
    let none = GroupLimits { swap_max: Some(2 * GIB), high: Some(GIB / 2), ..GroupLimits::default() };
    let step = simulation.play("", &group("db", none)).unwrap();
    assert_eq!(met(&step), [("db", GroupLimit::High, LimitOutcome::Throttled)]);
}

#[test]
fn the_limit_of_a_group_above_counts_all_below_and_kills_the_largest() {
    let mut simulation = simulation();
    let steps = [
        ("", group("pod", max(4))),
        ("", below("pod", "one", limits())),
        ("", below("pod", "two", limits())),
        ("small", start("default")),
        ("small", join("one")),
        ("small", allocate("heap", 1)),
        ("large", start("default")),
        ("large", join("two")),
        ("large", allocate("heap", 3)),
        ("small", allocate("more", 1)),
    ];
    let steps = play(&mut simulation, &steps);
    assert_eq!(killed(&steps[9]), ["large"]);
    assert_eq!(steps[9].killed[0].next.as_deref(), Some("small"));
    let groups = simulation.groups();
    let of = |name: &str| (groups[name].memory / GIB, groups[name].killed);
    assert_eq!((of("pod"), of("one"), of("two")), ((2, 1), (2, 0), (0, 1)));
}

#[test]
fn a_limit_without_room_is_counted_in_the_groups_above_too() {
    let mut simulation = simulation();
    let steps = [
        ("", group("pod", limits())),
        ("", below("pod", "one", max(1))),
        ("", below("pod", "two", limits())),
        ("a", start("default")),
        ("a", join("one")),
        ("a", allocate("heap", 2)),
    ];
    let steps = play(&mut simulation, &steps);
    assert_eq!(killed(&steps[5]), ["a"]);
    let groups = simulation.groups();
    assert_eq!(
        ["pod", "one", "two"].map(|name| (groups[name].ooms, groups[name].killed)),
        [(1, 1), (1, 1), (0, 0)]
    );
}

#[test]
fn a_group_that_is_killed_as_a_whole_spares_exempt_programs() {
    let mut simulation = simulation();
    let whole = GroupLimits { kills_all: true, ..max(4) };
    let steps = [
        ("", group("job", whole)),
        ("a", start("default")),
        ("a", join("job")),
        ("b", start("default")),
        ("b", join("job")),
        ("c", start("default")),
        ("c", join("job")),
        ("c", Act::AdjustOom(-1000)),
        ("b", allocate("heap", 1)),
        ("a", allocate("heap", 5)),
    ];
    let steps = play(&mut simulation, &steps);
    assert_eq!(killed(&steps[9]), ["a", "b"]);
    assert_eq!(steps[9].killed[1].cause, Cause::WholeGroup { group: "job".to_owned() });
    assert!(simulation.placements().contains_key(&Owner::Program("c".to_owned())));
}

#[test]
fn a_program_that_may_not_be_killed_waits() {
    let mut simulation = simulation();
    let more = [("a", Act::AdjustOom(-1000)), ("a", allocate("heap", 2))];
    let steps = [in_db(max(1)), more.to_vec()].concat();
    let steps = play(&mut simulation, &steps);
    assert_eq!(met(&steps[4]), [("db", GroupLimit::Max, LimitOutcome::NoVictim)]);
    assert_eq!((killed(&steps[4]), placed(&simulation, "a")), (vec![""; 0], [1, 0]));
}

#[test]
fn protected_groups_are_swapped_last_or_not_at_all() {
    let check = |protection: GroupLimits, rest: u64, expected: [u64; 2]| {
        let mut simulation = simulation_on("(8c 8G)", Release::REFERENCE).with_swap(8 * GIB);
        let more = [("a", allocate("heap", 3)), ("b", start("default")), ("b", allocate("heap", rest))];
        let steps = [in_db(protection), more.to_vec()].concat();
        let steps = play(&mut simulation, &steps);
        assert_eq!(killed(&steps[5]), [""; 0]);
        let swapped = |name: &str| simulation.placements()[&Owner::Program(name.to_owned())].swapped;
        assert_eq!(["a", "b"].map(|name| (swapped(name) + GIB / 2) / GIB), expected);
    };
    // Without protection the oldest pages go first.
    check(GroupLimits::default(), 7, [2, 0]);
    check(GroupLimits { low: Some(3 * GIB), ..GroupLimits::default() }, 7, [0, 2]);
    check(GroupLimits { min: Some(2 * GIB), ..GroupLimits::default() }, 8, [1, 2]);
    check(GroupLimits { low: Some(3 * GIB), ..GroupLimits::default() }, 12, [0, 7]);
}

#[test]
fn low_holds_until_nothing_else_is_left_and_min_holds_then_too() {
    let check = |protection: GroupLimits, expected: &[&str]| {
        let mut simulation = simulation_on("(8c 8G)", Release::REFERENCE).with_swap(8 * GIB);
        let more = [("a", allocate("heap", 3)), ("a", allocate("more", 7))];
        let steps = [in_db(protection), more.to_vec()].concat();
        let steps = play(&mut simulation, &steps);
        assert_eq!(killed(&steps[4]), expected);
    };
    check(GroupLimits { low: Some(9 * GIB), ..GroupLimits::default() }, &[]);
    check(GroupLimits { min: Some(9 * GIB), ..GroupLimits::default() }, &["a"]);
}

#[test]
fn a_limit_that_is_lowered_takes_pages_at_once() {
    let mut simulation = simulation().with_swap(GIB);
    let more = [
        ("a", allocate("heap", 3)),
        ("", group("db", GroupLimits { max: Some(2 * GIB), ..GroupLimits::default() })),
        ("", group("db", max(1))),
    ];
    let steps = [in_db(GroupLimits::default()), more.to_vec()].concat();
    let steps = play(&mut simulation, &steps);
    assert_eq!(
        (steps[4].limits[0].swapped.as_slice(), killed(&steps[4])),
        (&[(NodeId::new(0), GIB)][..], vec![""; 0])
    );
    assert_eq!(killed(&steps[5]), ["a"]);
}

#[test]
fn pages_stay_charged_to_the_group_that_took_them() {
    let mut simulation = simulation();
    let steps = [
        ("", group("one", limits())),
        ("", group("two", max(1))),
        ("a", start("default")),
        ("a", join("one")),
        ("a", allocate("heap", 2)),
        ("a", join("two")),
        ("a", allocate("more", 1)),
        ("a", Act::Fork { child: "b".to_owned() }),
        ("a", Act::End),
    ];
    play(&mut simulation, &steps);
    let groups = simulation.groups();
    assert_eq!((groups["one"].memory, groups["two"].memory), (2 * GIB, GIB));
    assert_eq!(simulation.play("b", &join("three")), Err(Refused::NoGroup("three".to_owned())));
    assert_eq!(simulation.play("", &below("none", "x", limits())), Err(Refused::NoGroup("none".to_owned())));
}

#[test]
fn huge_pages_that_the_limit_does_not_take_are_small_ones() {
    let mut simulation = simulation_on("(8c 8G)", Release::REFERENCE);
    let limit = GroupLimits { max: Some(GIB + 100), ..limits() };
    let huge = |region, gib| Act::Allocate(mapping(region, gib, Backing::Huge));
    let rest = Act::Allocate(Mapping { pages: 512, ..mapping("rest", 0, Backing::Huge) });
    let steps = [
        ("", group("db", limit)),
        ("a", start("default")),
        ("a", Act::AdjustOom(-1000)),
        ("a", join("db")),
        ("a", huge("heap", 1)),
        ("a", rest),
    ];
    play(&mut simulation, &steps);
    // The last hundred pages are a part of a huge page that does not fit.
    assert_eq!(simulation.groups()["db"].memory, GIB + 100);
}
