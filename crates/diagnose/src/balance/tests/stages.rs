//! From seen to resting; and where numad went wrong.

use std::time::Duration;

use nodewise_machine::{Bytes, NodeId};

use super::super::{Done, Hold, Limits, Need, Never, PageMove, Stop, Verdict};
use super::{OWN, Program, World, cpus, each, gib, identity};
use crate::situation::fixture::Fixture;

const FOUR: &str = "4x(4c 64G); dist=20";

fn stranded(pid: u32) -> Program {
    Program::new(pid, &[(0, gib(2)), (1, gib(1))], &[4, 5])
}

fn holds(world: &mut World) -> Vec<Hold> {
    world.window().waiting.into_iter().map(|waiting| waiting.hold).collect()
}

#[test]
fn pages_move_to_where_threads_run_after_three_windows() {
    let mut world = World::new(FOUR, vec![stranded(100)]);
    assert_eq!(holds(&mut world), [Hold::Windows(1, 3)]);
    assert_eq!(holds(&mut world), [Hold::Windows(2, 3)]);
    let plan = world.window();
    let [action] = &plan.actions[..] else { panic!("{plan:?}") };
    let moves = [PageMove { from: NodeId::new(0), to: NodeId::new(1), size: gib(2) }];
    assert_eq!((action.means.pages.as_slice(), &action.means.cpus), (&moves[..], &None));
    assert_eq!((action.most, action.process.identity), (gib(2), identity(100)));
    assert!(matches!(action.need, Need::Stranded(share) if (0.66..0.67).contains(&share)));
}

#[test]
fn a_need_that_passes_is_forgotten() {
    let mut world = World::new(FOUR, vec![stranded(100)]);
    world.window();
    world.window();
    world.programs[0].runs = vec![0, 4];
    assert_eq!(world.window().waiting, []);
    world.programs[0].runs = vec![4, 5];
    assert_eq!(holds(&mut world), [Hold::Windows(1, 3)]);
}

#[test]
fn an_action_settles_is_judged_and_rests() {
    let mut world = World::new(FOUR, vec![stranded(100)]);
    let action = world.until_action(3).unwrap();
    world.act(&action);
    assert!(matches!(holds(&mut world)[..], [Hold::Settling(_)]));
    assert!(world.window().judged.is_empty());
    let plan = world.window();
    let [judged] = &plan.judged[..] else { panic!("{plan:?}") };
    assert_eq!((judged.verdict, judged.after), (Verdict::AsPlanned, Some(0.0)));
    assert_eq!(world.window().waiting, [], "it needs nothing");
}

#[test]
fn rests_are_doubled_until_a_program_is_given_up() {
    let mut world = World::new(FOUR, vec![stranded(100)]);
    let mut rests = Vec::new();
    for _ in 0..2 {
        let action = world.until_action(100).unwrap();
        let now = world.now();
        world.controller.begin(&action, now);
        world.controller.end(
            identity(100),
            now,
            Done { narrowed: false, moved: Bytes::MIB, failed: Bytes::new(0) },
        );
        let judged = (0..9).find_map(|_| world.window().judged.into_iter().next()).unwrap();
        assert_eq!(judged.verdict, Verdict::NoDifference);
        let began = world.now();
        if let Some(waiting) = world.window().waiting.first() {
            let Hold::Resting(until, Verdict::NoDifference) = waiting.hold else { panic!("{waiting:?}") };
            rests.push((until - began).as_secs() / 60);
        }
    }
    assert_eq!(rests, [4], "the second verdict ends it");
    let plan = world.window();
    assert_eq!(plan.left_alone[0].why, Never::NoEffect);
}

#[test]
fn what_two_actions_made_worse_is_never_touched_again() {
    let mut world = World::new(FOUR, vec![Program::new(100, &[(0, gib(1)), (1, gib(2))], &[4, 5])]);
    for _ in 0..2 {
        world.programs[0].memory = vec![(0, gib(1)), (1, gib(2))];
        let action = world.until_action(4000).unwrap();
        let now = world.now();
        world.controller.begin(&action, now);
        world.controller.end(
            identity(100),
            now,
            Done { narrowed: false, moved: gib(1), failed: Bytes::new(0) },
        );
        world.programs[0].memory = vec![(0, gib(3))];
        let judged = (0..9).find_map(|_| world.window().judged.into_iter().next()).unwrap();
        assert_eq!(judged.verdict, Verdict::Worse);
        world.controller.undone(identity(100), world.now(), gib(1));
    }
    assert_eq!(world.window().left_alone[0].why, Never::Worse);
}

#[test]
fn pages_that_fail_to_move_end_in_a_rest() {
    let mut world = World::new(FOUR, vec![stranded(100)]);
    let action = world.until_action(3).unwrap();
    let now = world.now();
    world.controller.begin(&action, now);
    let done = Done { narrowed: false, moved: Bytes::from_mib(900), failed: Bytes::from_mib(100) };
    world.controller.end(identity(100), now, done);
    assert!(matches!(holds(&mut world)[..], [Hold::Resting(_, Verdict::Failed)]));
}

#[test]
fn threads_stay_where_the_memory_is_when_only_they_are_elsewhere() {
    let mut world = World::new(FOUR, vec![Program::new(100, &[(2, gib(4))], &[8, 0])]);
    let action = world.until_action(3).unwrap();
    assert!(action.means.pages.is_empty() && matches!(action.need, Need::Scattered(share) if share == 0.5));
    assert_eq!(action.means.cpus.as_ref().unwrap().0, cpus("8-11"));
    world.act(&action);
    let judged = (0..5).find_map(|_| world.window().judged.into_iter().next()).unwrap();
    assert_eq!((judged.verdict, judged.after), (Verdict::AsPlanned, Some(0.0)));
    // Its CPUs are those that the controller gave it, so it is not taken for another's.
    assert_eq!(world.window().left_alone, []);
    world.programs[0].facts.threads = Some(vec![cpus("8-11"), cpus("3")]);
    let plan = world.window();
    assert_eq!(plan.handed_back[0].1, Never::Affinity);
    assert_eq!(world.window().handed_back, [], "once");
}

#[test]
fn threads_are_not_sent_to_busy_cpus_and_not_at_all_without_leave() {
    let four = |pid| Program::new(pid, &[(2, gib(4))], &[8, 0]);
    let busy = Program::new(101, &[(2, gib(1))], &[8, 9, 10, 11]);
    let mut world = World::new(FOUR, vec![four(100), busy]);
    world.window();
    world.window();
    assert_eq!(holds(&mut world), [Hold::NoCpus(NodeId::new(2))]);
    let limits = Limits { affinity: false, ..Limits::default() };
    let mut world = World::with(limits, FOUR, vec![four(100)]);
    assert!(world.until_action(10).is_none() && world.window().waiting.is_empty());
}

#[test]
fn without_room_for_pages_threads_go_to_the_memory_with_the_rest() {
    let programs = vec![Program::new(100, &[(0, gib(6)), (2, gib(1))], &[4])];
    let mut world = World::new(FOUR, programs);
    world.more = |fixture| fixture.meminfo(1, "MemFree", Bytes::from_mib(900));
    let action = world.until_action(3).unwrap();
    let moves = [PageMove { from: NodeId::new(2), to: NodeId::new(0), size: gib(1) }];
    assert_eq!(action.means.pages, moves);
    assert_eq!(action.means.cpus.unwrap().0, cpus("0-3"));
}

#[test]
fn the_kernel_has_two_scans_to_do_it_itself() {
    let balancing = |fixture: &mut Fixture| fixture.machine.settings.numa_balancing = Some(1);
    let mut world = World::new(FOUR, vec![stranded(100)]);
    world.more = balancing;
    world.window();
    world.window();
    assert_eq!(holds(&mut world), [Hold::Balancing(None, 2)]);
    assert!(world.until_action(20).is_some(), "the time of two scans is over");
    let mut world = World::new(FOUR, vec![stranded(100)]);
    world.more = |fixture| scanned_by(fixture, 7);
    world.window();
    world.window();
    assert_eq!(holds(&mut world), [Hold::Balancing(Some(0), 2)]);
    world.more = |fixture| scanned_by(fixture, 9);
    assert_eq!(world.window().actions.len(), 1);
}

fn scanned_by(fixture: &mut Fixture, scans: u64) {
    fixture.machine.settings.numa_balancing = Some(1);
    each(fixture, |process| {
        for task in process.tasks.iter_mut().flatten() {
            let sample =
                nodewise_source::sample::BalancingSample { scans: Some(scans), ..Default::default() };
            task.balancing = Some(sample);
        }
    });
}

#[test]
fn nothing_begins_while_programs_wait_for_memory_or_another_placer_runs() {
    let check = |more: fn(&mut Fixture), expected: &str| {
        let mut world = World::new(FOUR, vec![stranded(100)]);
        world.more = more;
        assert!(world.until_action(9).is_none(), "{expected}");
        assert_eq!(world.window().stop.map(|stop| stop.word()), Some(expected));
    };
    check(
        |fixture| {
            let stall =
                nodewise_source::parse::pressure::Stall { avg10: 12.5, avg60: 0.0, avg300: 0.0, total_us: 9 };
            let memory = nodewise_source::parse::pressure::Pressure { some: Some(stall), full: None };
            fixture.now.pressure.memory = Some(memory);
        },
        "memory_pressure",
    );
    check(|fixture| fixture.happened(&[("oom_kill", 1)]), "out_of_memory");
    check(
        |fixture| {
            fixture.process(&super::Work { pid: 77, ..Default::default() });
            each(fixture, |process| {
                if process.identity == identity(77) {
                    process.name = "numad".into();
                }
            });
        },
        "other_placer",
    );
}

#[test]
fn on_a_null_machine_nothing_moves() {
    for spec in ["4x(4c 64G); dist=20", "1x(16c 256G)"] {
        let mut world = World::new(spec, vec![Program::new(100, &[(0, gib(9))], &[4, 5])]);
        world.more = |fixture| {
            // One node that is cut into several: the firmware says nothing of distances.
            let oddity =
                nodewise_machine::Oddity::new(nodewise_machine::OddityKind::Nominal, "nodes are emulated");
            fixture.machine.oddities.push(oddity);
        };
        assert!(world.until_action(50).is_none(), "{spec}");
        assert!(matches!(world.window().stop, Some(Stop::NoDistance(_))));
    }
}

#[test]
fn a_first_node_without_memory_is_no_divisor() {
    // numad takes the size and the CPUs of node 0 for those of every node.
    let program = Program::new(100, &[(1, gib(2))], &[8, 9]);
    let mut world = World::new("(4c) 3x(4c 64G); dist=20", vec![program]);
    let action = world.until_action(3).unwrap();
    assert_eq!(action.means.pages[0].to, NodeId::new(2));
    // Threads on the node without memory have no memory near them.
    let mut world = World::new("(4c) 3x(4c 64G); dist=20", vec![Program::new(100, &[(1, gib(2))], &[0, 1])]);
    let action = world.until_action(3).unwrap();
    assert_eq!(action.means.cpus.unwrap().0, cpus("4-7"));
}

#[test]
fn node_numbers_may_have_holes() {
    // numad uses numbers as places in an array that is as long as there are nodes.
    let program = Program::new(100, &[(2, gib(2))], &[12, 13]);
    let mut world = World::new(FOUR, vec![program]);
    world.more = |fixture| {
        fixture.machine.nodes.remove(&NodeId::new(1));
        fixture.before.nodes.remove(1);
        fixture.now.nodes.remove(1);
        each(fixture, |process| {
            if let Some(allowed) = &mut process.allowed {
                allowed.nodes = Some("0,2-3".parse().unwrap());
            }
        });
    };
    let action = world.until_action(3).unwrap();
    assert_eq!((action.means.pages[0].from, action.means.pages[0].to), (NodeId::new(2), NodeId::new(3)));
}

#[test]
fn the_most_stranded_memory_comes_first() {
    // numad compares an unsigned difference with 0, so that its order is that of its list.
    let small = Program::new(100, &[(0, gib(1))], &[4]);
    let most = Program::new(101, &[(0, gib(9))], &[8]);
    // The largest process has less of its memory away than the others.
    let large = Program::new(102, &[(0, gib(3)), (3, gib(27))], &[12]);
    let limits = Limits { per_hour: gib(20), ..Limits::default() };
    let mut world = World::with(limits, FOUR, vec![small, large, most]);
    world.window();
    world.window();
    let order: Vec<u32> =
        world.window().actions.iter().map(|action| action.process.identity.pid.number()).collect();
    assert_eq!(order, [101, 102]);
    let plan = world.window();
    let most: Vec<Bytes> = plan.actions.iter().map(|action| action.most).collect();
    assert_eq!(most, [gib(9), gib(1)], "20 GiB an hour, half of them for the way back");
    assert_eq!(plan.waiting[0].hold, Hold::HourSpent);
}

#[test]
fn demand_is_memory_that_is_present_and_not_address_space() {
    // The mapping of a program in these worlds spans a TiB; numad would want all nodes for it.
    let mut world = World::new(FOUR, vec![Program::new(100, &[(0, gib(1))], &[4])]);
    let action = world.until_action(3).unwrap();
    assert_eq!((action.means.size(), action.means.pages.len()), (gib(1), 1));
}

#[test]
fn placed_processes_are_never_touched() {
    // numad overwrites affinities, and merges memory under policies.
    let mut bound = stranded(100);
    bound.policy = Some("bind:0-1".parse().unwrap());
    let mut pinned = stranded(101);
    pinned.cpus = Some("4-7".to_owned());
    let mut world = World::new(FOUR, vec![bound, pinned]);
    for _ in 0..10 {
        let plan = world.window();
        assert_eq!((plan.actions.len(), plan.left_alone.len()), (0, 2));
    }
}

#[test]
fn an_unreadable_process_is_named_and_others_go_on() {
    // numad ends at the first token of numa_maps that it does not know.
    let mut world = World::new(FOUR, vec![stranded(100), stranded(101)]);
    world.more = |fixture| {
        fixture.now.mappings.retain(|of| of.identity != identity(101));
        each(fixture, |process| {
            if process.identity == identity(101) {
                process.pages = None;
                process.resident = Some(gib(3));
            }
        });
    };
    let action = world.until_action(3).unwrap();
    assert_eq!(action.process.identity, identity(100));
    assert_eq!(world.window().left_alone[0].why.word(), "unreadable");
}

#[test]
fn a_process_that_follows_its_pages_away_is_given_up() {
    let mut world = World::new(FOUR, vec![Program::new(100, &[(0, gib(1))], &[4])]);
    let (mut moved, mut at, mut times) = (0u64, 1, Vec::new());
    for _ in 0..1_000 {
        let plan = world.window();
        for action in plan.actions {
            assert_ne!(action.process.identity.pid, OWN);
            for pages in &action.means.pages {
                moved += pages.size.get();
                times.push((world.now(), pages.from, pages.to));
            }
            world.act(&action);
            // As soon as its memory is there, its thread runs on the next node.
            at = (at + 1) % 4;
            world.programs[0].runs = vec![at * 4];
        }
    }
    assert!(moved <= 3 * gib(1).get(), "{moved}");
    for (when, _, to) in &times {
        let recent = |(at, from, _): &(Duration, NodeId, NodeId)| {
            from == to && *at < *when && *when - *at < Duration::from_secs(30 * 60)
        };
        assert!(!times.iter().any(recent), "back within half an hour: {times:?}");
    }
    assert!(!times.is_empty() && times.len() <= 3, "{times:?}");
}

#[test]
fn an_action_that_never_began_says_nothing_about_the_program() {
    let mut world = World::new(FOUR, vec![stranded(100)]);
    for _ in 0..3 {
        let action = world.until_action(100).unwrap();
        let now = world.now();
        world.controller.begin(&action, now);
        world.controller.end(identity(100), now, Done::default());
        assert!(matches!(holds(&mut world)[..], [Hold::Resting(_, Verdict::Unknown)]));
    }
}

#[test]
fn a_part_of_a_plan_is_judged_by_that_part() {
    let limits = Limits { per_hour: Bytes::from_gib(1), ..Limits::default() };
    let mut world = World::with(limits, FOUR, vec![stranded(100)]);
    let action = world.until_action(3).unwrap();
    assert_eq!(action.most, Bytes::from_mib(512));
    world.act(&action);
    let judged = (0..5).find_map(|_| world.window().judged.into_iter().next()).unwrap();
    assert_eq!(judged.verdict, Verdict::AsPlanned);
    assert!(judged.after.is_some_and(|after| (0.49..0.51).contains(&after)));
}

#[test]
fn what_moves_can_be_taken_back_within_the_bytes_of_the_hour() {
    let limits = Limits { per_hour: gib(1), ..Limits::default() };
    let other = Program::new(101, &[(0, Bytes::from_mib(400))], &[8]);
    let mut world = World::with(limits, FOUR, vec![stranded(100), other]);
    let action = world.until_action(3).unwrap();
    world.act(&action);
    let held = |world: &mut World| -> Vec<Hold> {
        let plan = world.window();
        assert!(plan.actions.is_empty(), "{:?}", plan.actions);
        plan.waiting.into_iter().map(|waiting| waiting.hold).collect()
    };
    // The other half is kept until the verdict.
    assert!(held(&mut world).contains(&Hold::HourSpent));
    let now = world.now();
    world.controller.undone(identity(100), now, action.most);
    assert_eq!(action.most, Bytes::from_mib(512));
    assert!(held(&mut world).contains(&Hold::HourSpent), "the hour is used up");
}

#[test]
fn a_controller_that_begins_again_knows_no_process_and_the_bytes_of_the_hour() {
    let limits = Limits { per_hour: gib(1), per_day: f64::MAX, ..Limits::default() };
    let mut world = World::with(limits, FOUR, vec![stranded(100)]);
    let action = world.until_action(3).unwrap();
    world.act(&action);
    let now = world.now();
    world.controller.undone(identity(100), now, action.most);
    world.controller = world.controller.renewed();
    world.programs = vec![stranded(100)];
    assert_eq!(holds(&mut world), [Hold::Windows(1, 3)]);
    world.window();
    assert_eq!(holds(&mut world), [Hold::HourSpent]);
    // An hour later the same process may be moved again.
    world.windows += 3600;
    assert!(world.until_action(1).is_some());
}

#[test]
fn remote_time_is_the_share_of_the_memory_weighted_by_cpu_time() {
    // Two CPUs each, one with two thirds of its memory away, one with none; the small one does not count.
    let near = Program::new(101, &[(2, gib(1))], &[8, 9]);
    let small = Program::new(102, &[(0, Bytes::from_mib(50))], &[12]);
    let mut world = World::new(FOUR, vec![stranded(100), near, small]);
    let share = world.window().remote.share().unwrap();
    assert!((0.32..0.35).contains(&share), "{share}");
    assert_eq!(World::new(FOUR, Vec::new()).window().remote.share(), None);
}

#[test]
fn a_window_without_evidence_changes_nothing() {
    let mut world = World::new(FOUR, vec![stranded(100)]);
    assert_eq!(holds(&mut world), [Hold::Windows(1, 3)]);
    world.programs[0].facts.policies = None;
    assert_eq!(world.window().left_alone[0].why, Never::PolicyUnknown);
    world.programs[0].facts.policies = Some(Vec::new());
    assert_eq!(holds(&mut world), [Hold::Windows(2, 3)]);
    let action = world.until_action(1).unwrap();
    let now = world.now();
    world.controller.begin(&action, now);
    let done = Done { narrowed: false, moved: Bytes::from_mib(900), failed: Bytes::from_mib(100) };
    world.controller.end(identity(100), now, done);
    world.programs[0].facts.policies = None;
    world.window();
    world.programs[0].facts.policies = Some(Vec::new());
    assert!(matches!(holds(&mut world)[..], [Hold::Resting(_, Verdict::Failed)]), "the rest holds");
}

#[test]
fn a_verdict_waits_for_the_end_of_a_stop() {
    let mut world = World::new(FOUR, vec![stranded(100)]);
    let action = world.until_action(3).unwrap();
    world.act(&action);
    world.more = |fixture| fixture.happened(&[("oom_kill", 1)]);
    for _ in 0..6 {
        assert_eq!(world.window().judged, []);
    }
    world.more = |_| {};
    assert_eq!(world.window().judged[0].verdict, Verdict::AsPlanned);
    // A stop that does not end leaves no verdict.
    let mut world = World::new(FOUR, vec![stranded(100)]);
    let action = world.until_action(3).unwrap();
    world.act(&action);
    world.more = |fixture| fixture.now.pressure.memory = None;
    let judged = (0..100).find_map(|_| world.window().judged.into_iter().next()).unwrap();
    assert_eq!(judged.verdict, Verdict::Unknown);
}

#[test]
fn facts_that_are_not_readable_stop_it() {
    let check = |more: fn(&mut Fixture)| {
        let mut world = World::new(FOUR, vec![stranded(100)]);
        world.more = more;
        assert!(world.until_action(9).is_none());
        assert_eq!(world.window().stop.map(|stop| stop.word()), Some("unknown"));
    };
    check(|fixture| fixture.now.pressure.memory = None);
    check(|fixture| fixture.happened(&[("pswpout", 0)]));
    // Whether the kernel balances is not known: it has its time.
    let mut world = World::new(FOUR, vec![stranded(100)]);
    world.more = |fixture| fixture.machine.settings.numa_balancing = None;
    assert!(world.until_action(5).is_none());
    assert!(world.until_action(9).is_some());
}

#[test]
fn without_swap_what_stays_available_is_free() {
    let limits = Limits { affinity: false, ..Limits::default() };
    let mut world = World::with(limits, FOUR, vec![stranded(100)]);
    // 16 % of 64 GiB are 10.2 GiB.
    world.more = |fixture| fixture.meminfo(1, "MemFree", gib(11));
    assert!(world.until_action(3).is_some());
    let mut world = World::with(limits, FOUR, vec![stranded(100)]);
    world.has_swap = false;
    world.more = |fixture| fixture.meminfo(1, "MemFree", gib(11));
    assert!(world.until_action(9).is_none());
}

#[test]
fn a_process_that_wants_more_than_it_was_left_is_released() {
    let mut world = World::new(FOUR, vec![Program::new(100, &[(2, gib(4))], &[8, 0])]);
    let action = world.until_action(3).unwrap();
    world.act(&action);
    assert_eq!(world.window().release, []);
    // Five threads of it share the four CPUs.
    world.programs[0].runs = vec![8, 9, 10, 11, 8];
    let plan = world.window();
    assert_eq!(plan.release[0].identity, identity(100));
    world.controller.released(identity(100), world.now());
    world.programs[0].cpus = None;
    world.programs[0].facts.threads = Some(Vec::new());
    let plan = world.window();
    assert_eq!((plan.release.len(), plan.left_alone.len(), plan.actions.len()), (0, 0, 0));
}

#[test]
fn memory_on_nodes_without_cpus_stays_there() {
    // The first node where it runs has no room, so its threads go to the third with the rest of its pages.
    let memory = [(0, gib(1)), (2, gib(8)), (3, gib(1))];
    let mut world = World::new("3x(4c 64G) (64G tier=22); dist=20", vec![Program::new(100, &memory, &[4])]);
    world.more = |fixture| fixture.meminfo(1, "MemFree", Bytes::from_mib(900));
    let action = world.until_action(3).unwrap();
    let moves = [PageMove { from: NodeId::new(0), to: NodeId::new(2), size: gib(1) }];
    assert_eq!(action.means.pages, moves);
}

#[test]
fn the_hour_counts_from_the_end_of_an_action() {
    let mut world = World::new(FOUR, vec![Program::new(100, &[(0, gib(10))], &[4]), stranded(101)]);
    let action = world.until_action(3).unwrap();
    let now = world.now();
    world.controller.begin(&action, now);
    // It waited for an hour, and moved then.
    world.windows += 60 * 60 / 15 + 1;
    let done = Done { narrowed: false, moved: gib(10), failed: Bytes::new(0) };
    world.controller.end(identity(100), world.now(), done);
    for _ in 0..9 {
        assert_eq!(world.window().actions, []);
    }
}
