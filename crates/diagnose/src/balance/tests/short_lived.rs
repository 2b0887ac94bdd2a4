//! Twelve programs that start and end on a machine of four nodes while the controller watches: each window it learns the
//! policies of one process, and acts on what it may.

use super::{Program, World, cpus, identity};
use crate::balance::{Limits, Never};
use nodewise_machine::{Bytes, NodeSet};

const FOUR: &str = "4x(4c 2G); dist=20";
/// Windows from the start of a program to its end, and how many run at one time.
const LIFE: u64 = 25;
const AT_ONCE: usize = 5;
const PROGRAMS: u32 = 12;

/// A program away from its memory; every second one was placed by others.
fn program(number: u32) -> Program {
    let (home, away) = (number % 4, (number + 2) % 4);
    let mut program = Program::new(100 + number, &[(away, Bytes::from_mib(320))], &[home * 4]);
    match number % 6 {
        3 => program.policy = Some(format!("bind:{away}").parse().expect("a policy")),
        4 => program.facts.threads = Some(vec![cpus(&(home * 4).to_string())]),
        5 => program.nodes = Some(NodeSet::from([away]).to_string()),
        _ => {}
    }
    program
}

/// The remote part of the memory of a program.
fn is_remote(program: &Program) -> bool {
    let home = program.runs.first().expect("it works") / 4;
    program.memory.iter().any(|(node, _)| *node != home)
}

/// Runs all programs; returns the windows in which those that may be touched were remote, and all of their windows.
fn run(mut acts: impl FnMut(&mut World) -> bool) -> (usize, usize) {
    let limits = Limits { least_age: std::time::Duration::ZERO, ..Limits::default() };
    let mut world = World::with(limits, FOUR, Vec::new());
    world.reads = Some(1);
    let (mut next, mut remote, mut all) = (0, 0, 0);
    let mut ends: Vec<(u32, u64)> = Vec::new();
    while next < PROGRAMS || !world.programs.is_empty() {
        let now = world.windows;
        ends.retain(|(_, end)| now < *end);
        world.programs.retain(|program| ends.iter().any(|(pid, _)| *pid == program.pid));
        while world.programs.len() < AT_ONCE && next < PROGRAMS {
            world.programs.push(program(next));
            ends.push((100 + next, now + LIFE));
            next += 1;
        }
        let free = world.programs.iter().filter(|program| (program.pid - 100) % 6 < 3);
        let free: Vec<&Program> = free.collect();
        all += free.len();
        remote += free.iter().filter(|program| is_remote(program)).count();
        if !acts(&mut world) {
            break;
        }
    }
    (remote, all)
}

#[test]
fn short_lived_programs_come_to_their_memory_in_a_fifth_of_their_lives() {
    let (mut actions, mut left_alone) = (Vec::new(), Vec::new());
    let (remote, all) = run(|world| {
        let plan = world.window();
        left_alone.extend(plan.left_alone.iter().map(|left| (left.process.identity, left.why.word())));
        for action in &plan.actions {
            actions.push(action.process.identity);
            world.act(action);
        }
        true
    });
    let free: Vec<_> =
        (0..PROGRAMS).filter(|number| number % 6 < 3).map(|number| identity(100 + number)).collect();
    let mut acted = actions.clone();
    acted.sort_unstable();
    assert_eq!(acted, free, "each once, and no other");
    assert!(remote * 5 <= all, "{remote} of {all} windows");
    for (number, word) in [(3, "policy"), (4, "affinity"), (5, "cpuset"), (9, "policy")] {
        assert!(left_alone.contains(&(identity(100 + number), word)), "{number}: {left_alone:?}");
    }
    // Without a controller all of their memory is remote all the time.
    let (remote, all) = run(|world| {
        world.windows += 1;
        true
    });
    assert_eq!(remote, all);
}

/// Policies over everything: no program is touched, and each is read once.
#[test]
fn programs_under_policies_are_read_one_after_the_other_and_left_alone() {
    let bound = (0..5).map(|number| {
        let mut bound = program(number * 6);
        bound.policy = Some("interleave:0-3".parse().expect("a policy"));
        bound
    });
    let mut world = World::new(FOUR, bound.collect());
    world.reads = Some(1);
    let known: Vec<usize> = (0..9)
        .map(|_| {
            let plan = world.window();
            assert_eq!(plan.actions, []);
            plan.left_alone.iter().filter(|left| matches!(left.why, Never::Policy(_))).count()
        })
        .collect();
    assert_eq!(known, [0, 0, 1, 2, 3, 4, 5, 5, 5]);
}
