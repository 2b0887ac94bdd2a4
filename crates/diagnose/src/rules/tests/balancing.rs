//! Rules about balancing, tiers and interleaving.

use nodewise_machine::{KernelRelease, ModeFlags, NodeSet, Tier, TierId};

use super::*;

const TIERS: &str = "2x(2c 16G) (32G tier=22)";

/// A machine with fast nodes 0 and 1, and a slow node 2.
fn tiers() -> Fixture {
    let mut fixture = Fixture::new(TIERS);
    let tier = |id, nodes: NodeSet| Tier { id: TierId::new(id), nodes };
    fixture.machine.tiers = vec![tier(4, nodes("0-1")), tier(22, nodes("2"))];
    fixture.machine.settings.numa_balancing = Some(0);
    fixture.machine.settings.demotion_enabled = Some(false);
    fixture.machine.kernel = KernelRelease::new("6.12.1");
    fixture
}

fn stranded() -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(2, gib(4))], cpu: &[(0, seconds(10))], ..Work::default() });
    fixture.machine.settings.numa_balancing = Some(0);
    fixture
}

#[test]
fn memory_that_nothing_brings_home() {
    let rule = &balancing_off::RULE;
    let mut fixture = stranded();
    let found = one(&fixture, rule);
    assert_eq!(found.mends[0].commands, ["sysctl -w kernel.numa_balancing=1"]);
    fixture.machine.settings.numa_balancing = Some(1);
    silent(&fixture, rule);
    // A policy placed it.
    let mut fixture = stranded();
    let bound = MemPolicy::new(PolicyMode::Bind, nodes("2"));
    fixture.mappings(100, &[(MappingKind::Anonymous, bound, &[(2, gib(4))])]);
    silent(&fixture, rule);
    fixture.machine.settings.numa_balancing = None;
    let situation = crate::Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(rule.lacks(&situation)[0].fact, "the setting of automatic balancing");
}

#[test]
fn a_policy_that_forbids_balancing() {
    let rule = &balancing_cannot::RULE;
    let with = |flags: ModeFlags, release: &str| {
        let mut fixture = stranded();
        fixture.machine.settings.numa_balancing = Some(1);
        fixture.machine.kernel = KernelRelease::new(release);
        let policy = MemPolicy { flags, ..MemPolicy::new(PolicyMode::Bind, nodes("1-2")) };
        fixture.mappings(100, &[(MappingKind::Anonymous, policy, &[(2, gib(4))])]);
        fixture
    };
    let found = one(&with(ModeFlags::NONE, "6.12.1"), rule);
    assert_eq!(found.mends[0].commands, ["nodewise run --membind=1-2 --balancing -- COMMAND"]);
    silent(&with(ModeFlags::NUMA_BALANCING, "6.12.1"), rule);
    silent(&with(ModeFlags::NONE, "5.11.0"), rule);
}

#[test]
fn faults_that_cost_more_than_scanning_may() {
    let rule = &balancing_costly::RULE;
    let mut fixture = stranded();
    fixture.happened(&[("numa_hint_faults", 400_000), ("numa_pages_migrated", 100_000)]);
    let found = one(&fixture, rule);
    assert_eq!((found.confidence, found.mends.len()), (Confidence::Possible, 0));
    fixture.happened(&[("numa_hint_faults", 40_000), ("numa_pages_migrated", 10_000)]);
    silent(&fixture, rule);
}

#[test]
fn a_daemon_beside_the_kernel() {
    let rule = &two_placers::RULE;
    let mut fixture = stranded();
    let process = std::sync::Arc::make_mut(fixture.now.processes.last_mut().unwrap());
    process.name = "numad".into();
    silent(&fixture, rule);
    fixture.machine.settings.numa_balancing = Some(1);
    assert!(one(&fixture, rule).summary.contains("\"numad\", the kernel's balancing"));
}

#[test]
fn interleaving_over_a_slow_node() {
    let rule = &slow_node_in_interleave::RULE;
    let memory: &[(u32, Bytes)] = &[(0, gib(1)), (1, gib(1)), (2, gib(1))];
    let with = |mode| {
        let mut fixture = tiers();
        fixture.process(&Work { memory, ..Work::default() });
        fixture.mappings(100, &[(MappingKind::Anonymous, MemPolicy::new(mode, nodes("0-2")), memory)]);
        fixture
    };
    let found = one(&with(PolicyMode::Interleave), rule);
    assert_eq!((found.concerns, &found.nodes), (Some(gib(1)), &nodes("2")));
    assert_eq!(found.mends[0].commands, ["nodewise run --interleave=0-1 -- COMMAND"]);
    silent(&with(PolicyMode::WeightedInterleave), rule);
}

#[test]
fn even_weights_over_unlike_nodes() {
    let rule = &weights_not_set::RULE;
    let memory: &[(u32, Bytes)] = &[(0, gib(1)), (1, gib(1))];
    let text = "2x(2c 16G); access=0>0:80ns/20G; weights=0:1,1:1";
    let with = |text: &str| {
        let mut fixture = Fixture::new(text);
        fixture.process(&Work { memory, ..Work::default() });
        let policy = MemPolicy::new(PolicyMode::WeightedInterleave, nodes("0-1"));
        fixture.mappings(100, &[(MappingKind::Anonymous, policy, memory)]);
        fixture
    };
    silent(&with(text), rule);
    let unlike = "2x(2c 16G); access=0>0:80ns/100G; access=1>1:80ns/20G; weights=0:1,1:1";
    let found = one(&with(unlike), rule);
    assert_eq!((found.concerns, found.mends.len()), (Some(gib(2)), 1));
    silent(&with(&unlike.replace("0:1,1:1", "0:5,1:1")), rule);
    // A kernel that can work them out comes first.
    let mut can = with(unlike);
    can.machine.settings.interleave_weights_auto = Some(false);
    let found = one(&can, rule);
    let files = "/sys/kernel/mm/mempolicy/weighted_interleave";
    assert_eq!(found.mends[0].commands, [format!("echo 1 | tee {files}/*auto*")]);
    assert_eq!(found.mends[0].undo, ["node0", "node1"].map(|node| format!("echo 1 > {files}/{node}")));
    assert!(found.mends[1].commands[0].starts_with("nodewise bandwidth --apply-weights"), "{found:#?}");
}

#[test]
fn a_way_down_without_a_way_up() {
    let rule = &half_tiering::RULE;
    let mut fixture = tiers();
    silent(&fixture, rule);
    fixture.machine.settings.demotion_enabled = Some(true);
    assert_eq!(one(&fixture, rule).mends[0].commands, ["sysctl -w kernel.numa_balancing=2"]);
    fixture.machine.settings.numa_balancing = Some(2);
    silent(&fixture, rule);
    fixture.machine.settings.demotion_enabled = Some(false);
    assert_eq!(one(&fixture, rule).mends[0].commands, ["echo 1 > /sys/kernel/mm/numa/demotion_enabled"]);
}

#[test]
fn demotion_past_a_binding() {
    let rule = &demotion_breaks_binding::RULE;
    let memory: &[(u32, Bytes)] = &[(0, gib(1)), (2, gib(1))];
    let mut fixture = tiers();
    fixture.machine.settings.demotion_enabled = Some(true);
    fixture.process(&Work { memory, ..Work::default() });
    let bound = MemPolicy::new(PolicyMode::Bind, nodes("0"));
    fixture.mappings(100, &[(MappingKind::Anonymous, bound, memory)]);
    assert_eq!(one(&fixture, rule).concerns, Some(gib(1)));
    fixture.machine.kernel = KernelRelease::new("6.16.0");
    silent(&fixture, rule);
}
