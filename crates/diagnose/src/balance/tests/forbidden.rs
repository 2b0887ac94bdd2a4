//! Each reason to leave a process alone, alone.

use nodewise_machine::{Bytes, MemPolicy};
use nodewise_source::process::Pid;
use nodewise_source::sample::GroupSample;

use super::{OWN, Program, World, cpus, each, gib, identity};
use crate::balance::{Hold, Limits, Never, claimed};
use crate::situation::fixture::{Fixture, Work};

const FOUR: &str = "4x(4c 64G); dist=20";

fn check(expected: &str, change: impl Fn(&mut Program), more: fn(&mut Fixture)) {
    let mut program = Program::new(100, &[(0, gib(2)), (1, gib(1))], &[4, 5]);
    change(&mut program);
    let mut world = World::new(FOUR, vec![program]);
    world.more = more;
    for _ in 0..5 {
        let plan = world.window();
        assert_eq!(plan.actions, [], "{expected}");
        let found: Vec<&str> = plan.left_alone.iter().map(|of| of.why.word()).collect();
        if expected == "small" {
            assert_eq!((plan.small, found.len()), (1, 0));
        } else {
            assert_eq!(found, [expected]);
        }
        for of in &plan.left_alone {
            assert!(!of.why.to_string().is_empty());
        }
    }
}

fn nothing(_: &mut Fixture) {}

fn group(fixture: &mut Fixture, path: &str) {
    each(fixture, |process| process.group = Some(path.into()));
}

#[test]
fn what_its_owner_decided() {
    check("policy", |of| of.policy = Some("prefer:0".parse().unwrap()), nothing);
    check("policy", |of| of.policy = Some("local".parse().unwrap()), nothing);
    check("policy_unknown", |of| of.facts.policies = None, nothing);
    check("policy", |of| of.facts.policies = Some(vec!["bind:0".to_owned()]), nothing);
    check("affinity", |of| of.cpus = Some("4-7".to_owned()), nothing);
    check("affinity", |of| of.facts.threads = Some(vec![cpus("0-15"), cpus("5")]), nothing);
    check("cpuset", |of| of.nodes = Some("0-1".to_owned()), nothing);
    check(
        "cpuset",
        |of| of.cpus = Some("4-7".to_owned()),
        |fixture| {
            let mut group = GroupSample { path: "/user.slice".into(), ..GroupSample::default() };
            group.allowed.cpus = Some(cpus("4-7"));
            fixture.now.groups.push(group);
        },
    );
}

#[test]
fn what_an_orchestrator_claims() {
    check("orchestrator", |_| {}, |fixture| group(fixture, "/kubepods.slice/kubepods-burstable.slice/x"));
    check(
        "orchestrator",
        |_| {},
        |fixture| {
            group(fixture, "/system.slice/slurmstepd.scope/job_12/step_0/user/task_0");
        },
    );
    check(
        "orchestrator",
        |_| {},
        |fixture| {
            group(fixture, "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope");
        },
    );
    check("orchestrator", |_| {}, |fixture| group(fixture, "/machine.slice/other"));
}

#[test]
fn what_it_is() {
    check("first_process", |of| of.pid = 1, nothing);
    check("own_ancestor", |of| of.pid = OWN.number(), nothing);
    check(
        "own_ancestor",
        |_| {},
        |fixture| {
            // nodewise was started by 101, which 100 started.
            for (pid, parent) in [(OWN.number(), 101), (101, 100)] {
                fixture.process(&Work { pid, ..Work::default() });
                each(fixture, |process| {
                    if process.identity == identity(pid) {
                        process.parent = Some(Pid::new(parent));
                    }
                });
            }
        },
    );
    check("small", |of| of.memory = vec![(0, Bytes::from_mib(299))], nothing);
    check("realtime", |of| of.facts.realtime = Some(true), nothing);
    check("traced", |of| of.facts.traced = Some(true), nothing);
    check("locked", |of| of.facts.locked = Some(Bytes::from_mib(400)), nothing);
    check("locked", |of| of.facts.pinned = Some(Bytes::from_mib(400)), nothing);
    check("near_limit", |of| of.facts.limit_used = Some(0.93), nothing);
    check(
        "young",
        |_| {},
        |fixture| {
            let now = fixture.now.moment;
            assert_eq!(now.since_boot.as_secs(), 1010);
            for sample in [&mut fixture.before, &mut fixture.now] {
                sample.moment.since_boot -= std::time::Duration::from_secs(960);
            }
        },
    );
}

#[test]
fn what_could_not_be_read() {
    check("unreadable", |of| of.facts.realtime = None, nothing);
    check("unreadable", |of| of.facts.traced = None, nothing);
    check("unreadable", |of| of.facts.locked = None, nothing);
    check("unreadable", |of| of.facts.pinned = None, nothing);
    check("unreadable", |of| of.facts.limit_used = None, nothing);
    check("unreadable", |of| of.facts.threads = None, nothing);
    check("unreadable", |_| {}, |fixture| each(fixture, |process| process.group = None));
    check("unreadable", |_| {}, |fixture| each(fixture, |process| process.allowed = None));
}

#[test]
fn programs_that_place_and_their_children() {
    check(
        "placer",
        |_| {},
        |fixture| {
            each(fixture, |process| {
                if process.identity == identity(100) {
                    process.name = "numad".into();
                }
            });
        },
    );
    check(
        "child_of_placer",
        |_| {},
        |fixture| {
            fixture.process(&Work { pid: 99, ..Work::default() });
            each(fixture, |process| match process.identity.pid.number() {
                99 => process.name = "memtierd".into(),
                100 => process.parent = Some(Pid::new(99)),
                _ => {}
            });
        },
    );
}

#[test]
fn threads_of_the_kernel_are_not_even_examined() {
    let mut world = World::new(FOUR, vec![Program::new(100, &[(0, gib(2))], &[4, 5])]);
    world.more = |fixture| each(fixture, |process| process.kernel_thread = true);
    for _ in 0..5 {
        let plan = world.window();
        assert_eq!((plan.actions.len(), plan.examined, plan.left_alone.len()), (0, 0, 0));
    }
}

/// Policies are read when everything else speaks for an action; until they are known nothing begins.
#[test]
fn no_action_begins_before_the_policies_of_the_mappings_are_known() {
    let mut program = Program::new(100, &[(0, gib(2)), (1, gib(1))], &[4, 5]);
    program.policy = None;
    let mut world = World::new(FOUR, vec![program]);
    for window in 1..6 {
        let plan = world.window();
        assert_eq!((plan.actions.len(), plan.left_alone.len()), (0, 0));
        let [waiting] = &plan.waiting[..] else { panic!("{plan:?}") };
        let expected = if window < 3 { Hold::Windows(window, 3) } else { Hold::PolicyUnknown };
        assert_eq!(waiting.hold, expected);
    }
    world.programs[0].policy = Some(MemPolicy::DEFAULT);
    assert!(world.until_action(1).is_some());
    world.programs[0].policy = Some("bind:0".parse().unwrap());
    assert_eq!(world.window().left_alone[0].why.word(), "policy");
}

/// A policy that another hand sets after an action is found before the verdict.
#[test]
fn a_process_that_got_a_policy_after_an_action_is_handed_back() {
    let mut world = World::new(FOUR, vec![Program::new(100, &[(0, gib(2)), (1, gib(1))], &[4, 5])]);
    world.reads = Some(1);
    let action = world.until_action(3).unwrap();
    world.act(&action);
    world.programs[0].policy = Some("bind:1".parse().unwrap());
    let handed_back: Vec<_> = (0..4).flat_map(|_| world.window().handed_back).collect();
    let [(process, why)] = &handed_back[..] else { panic!("{handed_back:?}") };
    assert_eq!((process.identity, why), (identity(100), &Never::Policy("bind:1".to_owned())));
}

/// The first process is kept on the CPUs for services, and programs are on purpose on more of them.
#[test]
fn cpus_beyond_those_of_the_first_process_were_set_by_another() {
    let mut world = World::new(FOUR, vec![Program::new(100, &[(0, gib(2)), (1, gib(1))], &[4, 5])]);
    world.first = Some("0-1");
    for _ in 0..5 {
        let plan = world.window();
        assert_eq!((plan.actions.len(), plan.left_alone[0].why.word()), (0, "affinity"));
        assert_eq!(plan.stop.map(|stop| stop.word()), Some("defaults_unknown"));
    }
    let mut world = World::new(FOUR, vec![Program::new(100, &[(0, gib(2)), (1, gib(1))], &[4, 5])]);
    // CPUs that are offline or do not exist say nothing.
    world.first = Some("0-63");
    assert!(world.until_action(5).is_some());
}

#[test]
fn claims_are_looked_at_again_before_an_action() {
    let limits = Limits::default();
    let mut facts = Program::new(100, &[(0, gib(1))], &[4]).facts;
    let group = Some("/user.slice");
    assert_eq!(claimed(group, &facts, Some(gib(1)), &limits), None);
    let kubelet = claimed(Some("/kubepods.slice/pod"), &facts, Some(gib(1)), &limits);
    assert_eq!(kubelet, Some(Never::Orchestrator("the kubelet")));
    assert_eq!(claimed(None, &facts, Some(gib(1)), &limits), Some(Never::Unreadable("its control group")));
    assert_eq!(claimed(group, &facts, None, &limits), Some(Never::Unreadable("its size")));
    facts.locked = Some(Bytes::from_mib(200));
    assert!(
        matches!(claimed(group, &facts, Some(gib(1)), &limits), Some(Never::Locked(share)) if share > 0.19)
    );
    facts.locked = None;
    let unknown = claimed(group, &facts, Some(gib(1)), &limits);
    assert_eq!(unknown, Some(Never::Unreadable("its locked memory")));
}
