//! Rules about counters of the kernel, tiers, and emulated nodes.

use nodewise_machine::{KernelRelease, ModeFlags, NodeCounters, Tier, TierId};
use nodewise_source::sample::Sample;

use super::running::change;
use super::*;
use crate::Situation;

#[test]
fn counters_that_stay_at_zero() {
    let rule = &counters_off::RULE;
    let counting = |hit: Option<u64>, taken: u64| {
        let mut fixture = Fixture::new(FOUR);
        let set = |sample: &mut Sample| {
            for node in &mut sample.nodes {
                node.allocations = NodeCounters { hit, miss: hit.map(|_| 0), ..Default::default() };
            }
        };
        set(&mut fixture.before);
        set(&mut fixture.now);
        fixture.happened(&[("pgalloc_normal", taken)]);
        fixture
    };
    let found = one(&counting(Some(0), 500_000), rule);
    assert_eq!((found.severity, found.confidence), (Severity::Info, Confidence::Certain));
    assert_eq!(found.mends[0].commands, ["sysctl -w vm.numa_stat=1"]);
    assert_eq!(found.mends[0].undo, ["sysctl -w vm.numa_stat=0"]);
    silent(&counting(Some(1), 500_000), rule);
    // A machine that just started, in a test of a kernel.
    silent(&counting(Some(0), 500), rule);
    // One node that counts, or is not known, is enough for doubt.
    for hit in [Some(3), None] {
        let mut fixture = counting(Some(0), 500_000);
        fixture.now.nodes[2].allocations.hit = hit;
        silent(&fixture, rule);
    }
    let unknown = counting(None, 500_000);
    let situation = Situation::new(&unknown.machine, Some(&unknown.before), &unknown.now).unwrap();
    assert_eq!(rule.lacks(&situation)[0].fact, "allocations of nodes");
}

/// A process with this memory that is gone at the end; node 1 was full at the beginning, and is not any more.
fn lost(memory: &[(u32, Bytes)], cache: Bytes, allowed: Option<&str>, kills: u64) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory, nodes: allowed, ..Work::default() });
    fixture.now.processes.retain(|process| process.kernel_thread);
    let after = fixture.now.nodes.clone();
    full(&mut fixture, 1, cache);
    fixture.now.nodes = after;
    fixture.happened(&[("oom_kill", kills)]);
    fixture
}

#[test]
fn a_kill_while_other_nodes_have_memory() {
    let rule = &oom_while_free::RULE;
    let (memory, none): (&[_], _) = (&[(1, gib(15))], Bytes::default());
    let found = one(&lost(memory, none, None, 1), rule);
    assert_eq!((found.severity, found.confidence), (Severity::Critical, Confidence::Likely));
    assert_eq!((found.concerns, &found.nodes), (Some(gib(15)), &nodes("1")));
    assert!(found.cause.unwrap().contains("dmesg"));
    let found = one(&lost(memory, none, Some("1"), 1), rule);
    assert_eq!(found.cause.as_deref(), Some("its cpuset has node 1 only"));
    // Its parent has not asked for its end yet.
    let mut ended = lost(memory, none, None, 1);
    ended.now.processes = ended.before.processes.clone();
    change(&mut ended, 100, |process, is_now| {
        if is_now {
            (process.state, process.pages) = ('Z', None);
        }
    });
    assert_eq!(one(&ended, rule).concerns, Some(gib(15)));
    // It ended by itself.
    silent(&lost(memory, none, None, 0), rule);
    // A limit of a control group: its node had page cache to give.
    silent(&lost(memory, gib(8), None, 1), rule);
    // Its memory was on nodes with room.
    silent(&lost(&[(1, gib(1)), (2, gib(6))], none, None, 1), rule);
    // Another process was killed, and this one lives.
    let mut fixture = lost(memory, none, None, 1);
    fixture.now.processes = fixture.before.processes.clone();
    silent(&fixture, rule);
    let lacks = lost(memory, none, None, 1).lacks_at_once(rule);
    assert!(lacks.contains(&"rates"), "{lacks:?}");
}

#[test]
fn memory_is_short_everywhere_when_it_is_killed() {
    let mut fixture = lost(&[(1, gib(15))], Bytes::default(), None, 1);
    for node in [0, 2, 3] {
        full(&mut fixture, node, Bytes::default());
    }
    silent(&fixture, &oom_while_free::RULE);
}

#[test]
fn slow_memory_in_the_tier_of_fast_memory() {
    let rule = &tiers_flat::RULE;
    let with = |text: &str, tiers: &[(u16, &str)]| {
        let mut fixture = Fixture::new(text);
        let tier = |(id, of): &(u16, &str)| Tier { id: TierId::new((*id).into()), nodes: nodes(of) };
        fixture.machine.tiers = tiers.iter().map(tier).collect();
        fixture
    };
    let slow = "2x(2c 16G) (32G); access=0>0:80ns/100G; access=1>1:80ns/100G; access=0>2:250ns/30G";
    let found = one(&with(slow, &[(4, "0-2")]), rule);
    assert_eq!((found.severity, &found.nodes, found.concerns), (Severity::Note, &nodes("2"), Some(gib(32))));
    assert_eq!(found.summary, "node 2 is in one tier with memory 3.3 times as fast");
    // As fast as the others.
    silent(&with(&slow.replace("250ns/30G", "90ns/95G"), &[(4, "0-2")]), rule);
    // A slow node with CPUs does not make a tier of its own.
    silent(&with(&slow.replace("(32G)", "(2c 32G)").replace("0>2", "2>2"), &[(4, "0-2")]), rule);
    // In tiers of their own nothing is flat.
    silent(&with(slow, &[(4, "0-1"), (22, "2")]), rule);
    let unknown = with("2x(2c 16G) (32G)", &[]);
    let situation = Situation::new(&unknown.machine, Some(&unknown.before), &unknown.now).unwrap();
    let facts: Vec<_> = rule.lacks(&situation).iter().map(|lack| lack.fact).collect();
    assert_eq!(facts, ["memory tiers", "latency and bandwidth of nodes"]);
}

#[test]
fn scans_of_memory_that_is_placed() {
    let rule = &balancing_on_but_placed::RULE;
    let with = |flags: ModeFlags, mode: u32, updates: u64| {
        let mut fixture = Fixture::new(FOUR);
        let memory: &[(u32, Bytes)] = &[(0, gib(4))];
        fixture.process(&Work { memory, cpu: &[(0, seconds(10))], ..Work::default() });
        let bound = MemPolicy { flags, ..MemPolicy::new(PolicyMode::Bind, nodes("0")) };
        fixture.mappings(100, &[(MappingKind::Anonymous, bound, memory)]);
        fixture.machine.settings.numa_balancing = Some(mode);
        fixture.happened(&[("numa_pte_updates", updates)]);
        fixture
    };
    let found = one(&with(ModeFlags::NONE, 1, 40_000), rule);
    assert_eq!((found.severity, found.mends.len()), (Severity::Note, 0), "an experiment, and no command");
    assert!(found.experiment.unwrap().contains("--placement localalloc"));
    silent(&with(ModeFlags::NONE, 0, 40_000), rule);
    silent(&with(ModeFlags::NONE, 1, 400), rule);
    // The policy relies on balancing.
    silent(&with(ModeFlags::NUMA_BALANCING, 1, 40_000), rule);
    // A second process that balancing may help.
    let mut fixture = with(ModeFlags::NONE, 1, 40_000);
    fixture.process(&Work { pid: 200, memory: &[(2, gib(4))], cpu: &[(4, seconds(5))], ..Work::default() });
    silent(&fixture, rule);
    // In a cpuset of one node it could not.
    let mut fixture = with(ModeFlags::NONE, 1, 40_000);
    let memory = &[(2, gib(4))];
    fixture.process(&Work { pid: 200, memory, cpu: &[(4, seconds(5))], nodes: Some("2"), ..Work::default() });
    assert_eq!(fixture.findings(rule).len(), 1);
    fixture.machine.settings.numa_balancing = None;
    let situation = Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(rule.lacks(&situation)[0].fact, "the setting of automatic balancing");
}

#[test]
fn allocations_that_reclaim_memory_themselves() {
    let rule = &reserve_too_small::RULE;
    let with = |stalls: u64, high: Option<Bytes>, kswapd: u64| {
        let mut fixture = Fixture::new(FOUR);
        fixture.happened(&[("allocstall_normal", stalls), ("allocstall_movable", 0)]);
        fixture.reclaimer(1, seconds(kswapd));
        fixture.now.nodes[1].high_watermark = high;
        full(&mut fixture, 1, gib(12));
        fixture
    };
    let low = Some(Bytes::from_mib(12));
    // Allocations waited, and not for this node.
    let mut roomy = with(300, low, 0);
    roomy.meminfo(1, "MemFree", gib(1));
    silent(&roomy, rule);
    assert_eq!(one(&with(300, low, 0), rule).subject, Subject::Nodes(nodes("1")));
    silent(&with(3, low, 0), rule);
    // The kernel's own watermarks, and a kswapd that is at work all the time.
    silent(&with(300, Some(Bytes::from_mib(40)), 0), rule);
    silent(&with(300, low, 6), rule);
    silent(&with(300, None, 0), rule);
    assert!(with(300, low, 0).lacks_at_once(rule).contains(&"rates"));
}

#[test]
fn pages_that_go_up_and_down_all_the_time() {
    let rule = &promotion_unlimited::RULE;
    let with = |up: u64, down: u64| {
        let mut fixture = Fixture::new("2x(2c 16G) (32G tier=22)");
        fixture.happened(&[("pgpromote_success", up), ("pgdemote_kswapd", down), ("pgdemote_direct", 0)]);
        fixture
    };
    let found = one(&with(2_000_000, 2_000_000), rule);
    assert_eq!((found.severity, found.evidence.len()), (Severity::Info, 3));
    silent(&with(200_000, 200_000), rule);
    // Demotion alone makes room.
    silent(&with(0, 4_000_000), rule);
}

#[test]
fn a_guest_without_distances() {
    let rule = &guest_distances_flat::RULE;
    let found = |text: &str, is_virtual| {
        let fixture = Fixture::new(text);
        let mut situation = Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
        situation.virtual_machine = is_virtual;
        (rule.check)(&situation).len()
    };
    assert_eq!(found("4x(2c 16G); dist=20", Some(true)), 1);
    assert_eq!(found("4x(2c 16G); dist=20", Some(false)), 0);
    assert_eq!(found("4x(2c 16G); dist=20", None), 0, "not known");
    assert_eq!(found("2x(2x(2c 16G)); dist=11,20", Some(true)), 0);
    assert_eq!(found("2x(2c 16G); dist=20", Some(true)), 0, "two nodes have one distance");
}

#[test]
fn a_program_on_some_of_the_emulated_nodes() {
    let rule = &fake_nodes_bound::RULE;
    let memory: &[(u32, Bytes)] = &[(0, Bytes::from_mib(700))];
    let with = |release: &str, policy: MemPolicy, allowed: Option<&str>| {
        let mut fixture = Fixture::new("4x(1c 1G)");
        fixture.machine.kernel = KernelRelease::new(release);
        fixture.process(&Work { memory, nodes: allowed, ..Work::default() });
        fixture.mappings(100, &[(MappingKind::Anonymous, policy, memory)]);
        fixture
    };
    let bind = |of: &str| MemPolicy::new(PolicyMode::Bind, nodes(of));
    let board = "6.12.25+rpt-rpi-2712";
    let found = one(&with(board, bind("0"), None), rule);
    assert_eq!((found.severity, &found.nodes), (Severity::Warning, &nodes("0")));
    assert_eq!(found.mends[1].commands, ["mpirun --bind-to none COMMAND"]);
    assert_eq!(one(&with(board, MemPolicy::DEFAULT, Some("0-1")), rule).nodes, nodes("0-1"));
    // Elsewhere emulated nodes are for trying out what a binding does.
    assert_eq!(one(&with("6.12.1", bind("0"), None), rule).severity, Severity::Info);
    silent(&with(board, MemPolicy::new(PolicyMode::Interleave, nodes("0-3")), None), rule);
    silent(&with(board, MemPolicy::DEFAULT, None), rule);
}
