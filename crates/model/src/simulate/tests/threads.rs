//! Threads: whose policy and CPU count, and what they have in common.

use super::*;

fn thread(name: &str) -> Act {
    Act::StartThread { name: name.to_owned() }
}

/// Some of the heap.
fn part(pages: Range<u64>) -> Part {
    Part { region: "heap".to_owned(), pages: Some(pages) }
}

fn go(node: u32) -> Act {
    Act::RunOn(NodeId::new(node))
}

#[test]
fn a_thread_takes_memory_by_its_own_policy_and_cpu() {
    let mut simulation = simulation();
    let steps = [
        ("a", start("default")),
        ("a", thread("t")),
        ("t", go(1)),
        ("a", Act::Map(mapping("heap", 4, Backing::Small))),
        ("t", Act::Touch(part(0..GIB))),
        ("a", Act::Touch(part(GIB..2 * GIB))),
        ("t", Act::SetPolicy("bind:0".parse().unwrap())),
        ("t", Act::Touch(part(2 * GIB..3 * GIB))),
        ("a", go(1)),
        ("a", Act::Touch(part(3 * GIB..4 * GIB))),
    ];
    let steps = play(&mut simulation, &steps);
    let taken = [4, 5, 7, 9].map(|at: usize| steps[at].taken.clone());
    let on = |node| vec![(NodeId::new(node), GIB)];
    assert_eq!(taken, [on(1), on(0), on(0), on(1)]);
    assert_eq!(placed(&simulation, "a"), [2, 2]);
}

#[test]
fn a_thread_begins_as_the_one_that_starts_it_and_a_child_has_no_other() {
    let mut simulation = simulation();
    let steps = [
        ("a", start("default")),
        ("a", thread("t")),
        ("t", Act::SetPolicy("bind:1".parse().unwrap())),
        ("t", thread("u")),
        ("t", Act::SetPolicy(MemPolicy::DEFAULT)),
        ("u", allocate("heap", 1)),
        ("u", Act::Fork { child: "c".to_owned() }),
        ("c", allocate("own", 1)),
        ("u", Act::End),
        ("a", Act::End),
    ];
    let steps = play(&mut simulation, &steps);
    let on = vec![(NodeId::new(1), GIB)];
    assert_eq!((&steps[5].taken, &steps[7].taken), (&on, &on));
    for name in ["t", "u", "a"] {
        assert_eq!(simulation.play(name, &Act::Balance), Err(Refused::NotThere), "{name}");
    }
    assert_eq!(simulation.play("c", &thread("c")), Err(Refused::Started("c".to_owned())));
    assert_eq!(placed(&simulation, "c"), [0, 2]);
}

#[test]
fn a_program_with_a_thread_that_is_not_bound_may_be_killed_for_a_bound_one() {
    let victim = |bound: &str| {
        let mut simulation = simulation();
        let steps = [
            ("a", start("bind:0")),
            ("a", thread("t")),
            ("t", Act::SetPolicy(bound.parse().unwrap())),
            ("a", allocate("heap", 6)),
            ("a", Act::AdjustOom(500)),
            ("b", start("bind:1")),
            ("b", allocate("heap", 5)),
            ("b", allocate("more", 4)),
        ];
        let steps = play(&mut simulation, &steps);
        let skipped = simulation.play("t", &Act::Balance).map(|step| step.skipped);
        (killed(steps.last().unwrap()).join(","), skipped)
    };
    assert_eq!(victim("bind:0"), ("b".to_owned(), Ok(None)));
    let expected = victim("default");
    assert!(expected.0.starts_with('a'), "{expected:?}");
    assert_eq!(expected.1, Ok(Some(Skipped::Killed)));
}

#[test]
fn a_new_cpuset_is_that_of_all_threads() {
    let mut simulation = simulation();
    let steps = [
        ("a", start("default")),
        ("a", thread("t")),
        ("t", Act::SetPolicy("bind:0".parse().unwrap())),
        ("a", Act::Restrict(NodeSet::from([1]))),
        ("t", allocate("heap", 1)),
    ];
    let steps = play(&mut simulation, &steps);
    assert_eq!(steps[4].taken, [(NodeId::new(1), GIB)]);
}
