//! Evidence from rests and youth, and several actions of one window.

use std::time::Duration;

use nodewise_machine::{Bytes, NodeId};

use super::super::{Hold, Limits, Never, Verdict};
use super::{Program, World, gib, identity};

const FOUR: &str = "4x(4c 64G); dist=20";

fn stranded(pid: u32) -> Program {
    Program::new(pid, &[(0, gib(2)), (1, gib(1))], &[4, 5])
}

/// A process that rests since the last window: five minutes, which are 20 windows.
fn resting() -> World {
    let mut world = World::new(FOUR, vec![stranded(100)]);
    let action = world.until_action(3).unwrap();
    world.act(&action);
    assert!((0..5).any(|_| !world.window().judged.is_empty()));
    world
}

/// Windows without an action before the first one that has any.
fn waits(world: &mut World) -> usize {
    (0..100).take_while(|_| world.window().actions.is_empty()).count()
}

#[test]
fn a_need_that_was_seen_in_a_rest_is_acted_on_when_the_rest_is_over() {
    let mut world = resting();
    world.programs[0].runs = vec![8, 9];
    assert_eq!(waits(&mut world), 19);
    // One that passed in between has to be seen in three windows again.
    let mut world = resting();
    world.programs[0].runs = vec![8, 9];
    (0..18).for_each(|_| assert!(world.window().actions.is_empty()));
    world.programs[0].runs = vec![4, 5];
    world.window();
    world.programs[0].runs = vec![8, 9];
    assert_eq!(waits(&mut world), 2);
}

#[test]
fn a_need_that_was_seen_in_youth_is_acted_on_when_the_process_is_old_enough() {
    let mut world = World::new(FOUR, vec![stranded(100)]);
    world.controller.limits.least_age = Duration::from_secs(24 * 3600);
    for _ in 0..5 {
        let plan = world.window();
        assert_eq!((plan.left_alone[0].why.clone(), plan.actions.len()), (Never::Young, 0));
    }
    world.controller.limits.least_age = Duration::ZERO;
    assert_eq!(waits(&mut world), 0);
    // What it needed before others placed it counts no more.
    let mut world = World::new(FOUR, vec![stranded(100)]);
    world.controller.limits.least_age = Duration::from_secs(24 * 3600);
    (0..5).for_each(|_| drop(world.window()));
    world.programs[0].cpus = Some("4-7".to_owned());
    assert_eq!(world.window().left_alone[0].why, Never::Affinity);
    world.programs[0].cpus = None;
    world.controller.limits.least_age = Duration::ZERO;
    assert_eq!(waits(&mut world), 2);
}

#[test]
fn all_actions_of_a_window_are_carried_out_and_judged() {
    let programs = (0..3).map(|number| stranded(100 + number)).collect();
    let mut world = World::new(FOUR, programs);
    world.reads = Some(3);
    world.window();
    world.window();
    let plan = world.window();
    // Half of 10 GiB are less than three times 2 GiB.
    let whole: Vec<bool> = plan.actions.iter().map(super::Action::is_whole).collect();
    assert_eq!(whole, [true, true, false], "{plan:?}");
    plan.actions.iter().for_each(|action| world.act(action));
    let judged: Vec<_> = (0..3).flat_map(|_| world.window().judged).collect();
    let verdicts: Vec<_> = judged.iter().map(|judged| (judged.process.identity, judged.verdict)).collect();
    assert_eq!(verdicts, [100, 101, 102].map(|pid| (identity(pid), Verdict::AsPlanned)));
}

#[test]
fn actions_of_a_window_share_room_and_the_time_of_cpus() {
    // 900 MiB of node 1 are free, and each wants to bring 600.
    let mut small = stranded(100);
    small.memory = vec![(0, Bytes::from_mib(600))];
    let other = Program { pid: 101, ..small.clone() };
    let limits = Limits { affinity: false, ..Limits::default() };
    let mut world = World::with(limits, FOUR, vec![small, other]);
    world.more = |fixture| fixture.meminfo(1, "MemFree", Bytes::from_mib(1310));
    world.window();
    world.window();
    let plan = world.window();
    assert_eq!(plan.actions.len(), 1, "{plan:?}");
    assert_eq!(plan.waiting[0].hold, Hold::NoRoom(NodeId::new(1)));
    // Both fit the four CPUs of node 2 alone, and not together.
    let scattered = |pid, runs: &[u32]| Program::new(pid, &[(2, gib(4))], runs);
    let mut world = World::new(FOUR, vec![scattered(100, &[8, 0]), scattered(101, &[9, 1])]);
    world.window();
    world.window();
    let plan = world.window();
    assert_eq!(plan.actions.len(), 1, "{plan:?}");
    assert_eq!(plan.waiting[0].hold, Hold::NoCpus(NodeId::new(2)));
    let mut world = World::new(FOUR, vec![scattered(101, &[9, 1])]);
    assert!(world.until_action(3).is_some());
}
