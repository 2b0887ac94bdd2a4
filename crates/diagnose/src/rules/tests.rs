//! Each rule firing, silent in its trap, and not examined; healthy machines are in the tests of `diagnosis`.

use nodewise_machine::mapping::MappingKind;
use nodewise_machine::{Bytes, MemPolicy, NodeSet, PolicyMode};

use super::*;

mod balancing;
mod bound;
mod counts;
mod hardware;
mod interrupts;
mod machine;
mod pools;
mod processes;
mod programs;
mod recordings;
mod running;
mod runtimes;
mod site;
mod started;
mod thresholds;

use crate::finding::{Confidence, RuleFinding, Severity, Subject};
use crate::situation::fixture::{Fixture, Work, nodes, seconds};

const FOUR: &str = "4x(2c 16G)";

fn gib(count: u64) -> Bytes {
    Bytes::from_gib(count)
}

fn one(fixture: &Fixture, rule: &Rule) -> RuleFinding {
    let mut found = fixture.findings(rule);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn silent(fixture: &Fixture, rule: &Rule) {
    assert_eq!(fixture.findings(rule), [], "{}", rule.id);
}

/// A node with little free memory, with this much page cache.
fn full(fixture: &mut Fixture, node: u32, cache: Bytes) {
    fixture.meminfo(node, "MemFree", Bytes::from_mib(60));
    fixture.meminfo(node, "Active(file)", cache);
    fixture.meminfo(node, "Inactive(file)", Bytes::default());
}

#[test]
fn stranded_memory_of_a_process_at_work() {
    let rule = &memory_stranded::RULE;
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(2, gib(4))], cpu: &[(0, seconds(10))], ..Work::default() });
    let found = one(&fixture, rule);
    assert_eq!((found.severity, found.confidence), (Severity::Warning, Confidence::Certain));
    assert_eq!((found.concerns, &found.nodes), (Some(gib(4)), &nodes("2")));
    assert_eq!(
        found.mends[0].commands,
        ["nodewise migrate 100 --from-nodes 2 --to 0 --save nodewise-100.moved"]
    );
    assert_eq!(found.mends[0].undo, ["nodewise migrate --undo nodewise-100.moved"]);
    assert!(fixture.lacks_at_once(rule).contains(&"rates"));
    // A thread that is there one tenth of the time uses it.
    let mut fixture = Fixture::new(FOUR);
    let cpu = &[(0, seconds(9)), (4, seconds(1))];
    fixture.process(&Work { memory: &[(2, gib(4))], cpu, ..Work::default() });
    silent(&fixture, rule);
}

#[test]
fn memory_that_balancing_had_no_time_to_bring_home_is_a_note() {
    let severity = |mode: u32, cpu: std::time::Duration, size: Bytes, policy: Option<MemPolicy>| {
        let mut fixture = Fixture::new(FOUR);
        fixture.machine.settings.numa_balancing = Some(mode);
        let memory = [(2, size)];
        fixture.process(&Work { memory: &memory, cpu: &[(0, cpu)], ..Work::default() });
        let policy = policy.unwrap_or_else(|| MemPolicy::new(PolicyMode::Default, NodeSet::new()));
        fixture.mappings(100, &[(MappingKind::Anonymous, policy, &memory)]);
        let found = one(&fixture, &memory_stranded::RULE);
        assert_eq!(
            found.severity == Severity::Note,
            found.cause.is_some_and(|why| why.contains("watch longer"))
        );
        found.severity
    };
    // A worker of nginx with a tenth of a CPU, which the scheduler has just moved.
    assert_eq!(severity(1, seconds(1), gib(1), None), Severity::Note);
    assert_eq!(severity(1, seconds(2), gib(1), None), Severity::Warning);
    // Two passes over 8 GiB take 6.4 s at 2,560 MiB a second.
    assert_eq!(severity(1, seconds(6), gib(8), None), Severity::Note);
    assert_eq!(severity(1, seconds(7), gib(8), None), Severity::Warning);
    // Nothing brings it home where balancing is off, is for tiers alone, or a policy forbids it.
    assert_eq!(severity(0, seconds(1), gib(1), None), Severity::Warning);
    assert_eq!(severity(2, seconds(1), gib(1), None), Severity::Warning);
    let bound = MemPolicy::new(PolicyMode::Bind, nodes("2"));
    assert_eq!(severity(1, seconds(1), gib(1), Some(bound)), Severity::Warning);
}

#[test]
fn stranded_memory_without_room_at_home_asks_for_an_experiment() {
    let mut fixture = Fixture::new(FOUR);
    full(&mut fixture, 0, Bytes::default());
    fixture.process(&Work { memory: &[(2, gib(4))], cpu: &[(0, seconds(10))], ..Work::default() });
    let found = one(&fixture, &memory_stranded::RULE);
    assert_eq!(found.mends, []);
    assert!(found.experiment.unwrap().contains("nodewise tune"));
}

#[test]
fn memory_on_a_node_without_cpus_is_not_stranded() {
    let mut fixture = Fixture::new("2x(2c 16G) (16G)");
    fixture.process(&Work { memory: &[(2, gib(4))], cpu: &[(0, seconds(10))], ..Work::default() });
    silent(&fixture, &memory_stranded::RULE);
}

#[test]
fn a_policy_that_the_mask_excludes() {
    let rule = &bound_away::RULE;
    let bind = || MemPolicy::new(PolicyMode::Bind, nodes("2"));
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(2, gib(4))], cpus: Some("0-1"), ..Work::default() });
    fixture.mappings(100, &[(MappingKind::Anonymous, bind(), &[(2, gib(4))])]);
    let found = one(&fixture, rule);
    assert_eq!(found.cause.as_deref(), Some("it was started under bind:2"));
    // The same nodes: right.
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(2, gib(4))], cpus: Some("4-5"), ..Work::default() });
    fixture.mappings(100, &[(MappingKind::Anonymous, bind(), &[(2, gib(4))])]);
    silent(&fixture, rule);
    // Memory without CPUs of its own: on purpose.
    let mut fixture = Fixture::new("2x(2c 16G) (16G)");
    fixture.process(&Work { memory: &[(2, gib(4))], cpus: Some("0-1"), ..Work::default() });
    fixture.mappings(100, &[(MappingKind::Anonymous, bind(), &[(2, gib(4))])]);
    assert_eq!(one(&fixture, rule).severity, Severity::Note);
}

#[test]
fn a_cpuset_that_the_mask_excludes() {
    let mut fixture = Fixture::new(FOUR);
    let work = Work { memory: &[(2, gib(4))], cpus: Some("0-1"), nodes: Some("2"), ..Work::default() };
    fixture.process(&work);
    fixture.mappings(100, &[(MappingKind::Anonymous, MemPolicy::DEFAULT, &[(2, gib(4))])]);
    let found = one(&fixture, &bound_away::RULE);
    assert_eq!(found.cause.as_deref(), Some("it was started under the cpuset's nodes 2"));
}

#[test]
fn a_node_at_its_edge() {
    let rule = &node_at_watermark::RULE;
    let mut fixture = Fixture::new(FOUR);
    full(&mut fixture, 1, Bytes::default());
    fixture.process(&Work { memory: &[(1, gib(12))], cpu: &[(2, seconds(1))], ..Work::default() });
    let found = one(&fixture, rule);
    assert_eq!((found.severity, &found.subject), (Severity::Warning, &Subject::Nodes(nodes("1"))));
    assert!(found.evidence.iter().any(|evidence| evidence.fact == "held by \"x\" (100)"), "{found:#?}");
    // Page cache can be dropped.
    let mut fixture = Fixture::new(FOUR);
    full(&mut fixture, 1, gib(12));
    assert_eq!(one(&fixture, rule).severity, Severity::Note);
    // Memory is short everywhere: no matter of nodes.
    let mut fixture = Fixture::new(FOUR);
    for node in 0..4 {
        full(&mut fixture, node, Bytes::default());
    }
    silent(&fixture, rule);
}

#[test]
fn a_node_that_is_full_in_a_text_without_watermarks_is_possible_at_most() {
    let mut fixture = Fixture::new(FOUR);
    full(&mut fixture, 1, Bytes::default());
    for node in &mut fixture.now.nodes {
        node.high_watermark = None;
        node.memory.retain(|field| field.name.starts_with("Mem"));
    }
    let found = one(&fixture, &node_at_watermark::RULE);
    assert_eq!((found.severity, found.confidence), (Severity::Note, Confidence::Possible));
}

#[test]
fn swap_beside_free_memory() {
    let rule = &swap_while_free::RULE;
    let mut fixture = Fixture::new(FOUR);
    full(&mut fixture, 1, Bytes::default());
    fixture.happened(&[("pswpout", 40_000)]);
    let work = Work { memory: &[(1, gib(12))], cpu: &[(2, seconds(1))], ..Work::default() };
    fixture.process(&work);
    let found = one(&fixture, rule);
    assert_eq!((found.severity, found.confidence), (Severity::Critical, Confidence::Likely));
    let bound = MemPolicy::new(PolicyMode::Bind, nodes("1"));
    fixture.mappings(100, &[(MappingKind::Anonymous, bound, &[(1, gib(12))])]);
    let found = one(&fixture, rule);
    assert_eq!(found.cause.as_deref(), Some("\"x\" (100) may use node 1 only: the policy bind:1"));
    assert_eq!(found.mends[0].commands, ["nodewise run --preferred-many=1 -- COMMAND"]);
    // Swap without a node that is short is a limit of a control group.
    let mut fixture = Fixture::new(FOUR);
    fixture.happened(&[("pswpout", 40_000)]);
    silent(&fixture, rule);
    assert!(fixture.lacks_at_once(rule).contains(&"rates"));
}

#[test]
fn swap_by_node_reclaim() {
    let mut fixture = Fixture::new(FOUR);
    full(&mut fixture, 1, Bytes::default());
    fixture.happened(&[("pswpout", 40_000)]);
    fixture.machine.settings.zone_reclaim_mode = Some(7);
    let found = one(&fixture, &swap_while_free::RULE);
    assert_eq!(found.mends[0].commands, ["sysctl -w vm.zone_reclaim_mode=0"]);
    assert_eq!(found.mends[0].undo, ["sysctl -w vm.zone_reclaim_mode=7"]);
}

#[test]
fn one_reclaim_thread_at_work() {
    let rule = &kswapd_one_node::RULE;
    let mut fixture = Fixture::new(FOUR);
    silent(&fixture, rule);
    fixture.reclaimer(1, seconds(6));
    assert_eq!(one(&fixture, rule).subject, Subject::Nodes(nodes("1")));
    fixture.reclaimer(2, seconds(6));
    silent(&fixture, rule);
}

#[test]
fn node_reclaim_that_frees_nothing() {
    let rule = &zone_reclaim_void::RULE;
    let mut fixture = Fixture::new(FOUR);
    fixture.machine.settings.zone_reclaim_mode = Some(1);
    fixture.machine.settings.lru_gen_enabled = Some(true);
    fixture.happened(&[("zone_reclaim_failed", 12_375), ("zone_reclaim_success", 0)]);
    assert_eq!(one(&fixture, rule).mends[0].undo, ["sysctl -w vm.zone_reclaim_mode=1"]);
    fixture.machine.settings.zone_reclaim_mode = Some(7);
    silent(&fixture, rule);
    fixture.machine.settings.zone_reclaim_mode = Some(1);
    fixture.machine.settings.lru_gen_enabled = None;
    silent(&fixture, rule);
    fixture.machine.settings.zone_reclaim_mode = None;
    let situation = crate::Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(rule.lacks(&situation).len(), 1);
}
