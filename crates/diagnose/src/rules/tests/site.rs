//! Rules about a machine's site: zones and blocks of memory, the kubelet, Slurm, tuned, boards.

use nodewise_machine::NodeId;
use nodewise_source::parse::kubelet_config::KubeletConfig;
use nodewise_source::site::{BoardHints, OfflineMemory, Site, SiteFact};

use super::running::change;
use super::thresholds::{Case, Outcome::Silent, case};
use super::*;
use crate::thresholds;

fn at(mut fixture: Fixture, site: Site) -> Fixture {
    fixture.site = Some(site);
    fixture
}

/// A rule is not examined where the site was not read, or only root may read the fact.
fn lacks_site(rule: &Rule, fact: &str, denied: Site) {
    let unknown = at(Fixture::new(FOUR), Site::default());
    let lacks = rule.lacks(&unknown.situation());
    assert!(lacks.iter().any(|lack| lack.fact == fact && lack.remedy.is_none()), "{lacks:?}");
    let lacks = rule.lacks(&at(Fixture::new(FOUR), denied).situation());
    assert!(lacks.iter().any(|lack| lack.fact == fact && lack.reason == "permission denied"), "{lacks:?}");
}

#[test]
fn a_node_for_programs_only() {
    let rule = &node_movable_only::RULE;
    let with = |of: &str| {
        let site = Site { movable_only: SiteFact::Known(nodes(of)), ..Site::default() };
        at(Fixture::new(FOUR), site)
    };
    assert_eq!(one(&with("3"), rule).severity, Severity::Info);
    silent(&with(""), rule);
    let mut confined = with("3");
    confined.process(&Work { memory: &[(3, gib(4))], nodes: Some("3"), ..Work::default() });
    let found = one(&confined, rule);
    assert_eq!(found.severity, Severity::Warning);
    assert!(found.cause.is_some() && found.mends[0].what.contains("nodes 0-2"), "{found:#?}");
    lacks_site(rule, "zones of nodes", Site { movable_only: SiteFact::Denied, ..Site::default() });
}

#[test]
fn memory_that_is_there_and_not_used() {
    let rule = &memory_offline::RULE;
    let with = |blocks: &[(u32, &[u64])]| {
        let memory = |blocks: &[u64]| OfflineMemory {
            size: Bytes::from_mib(128 * blocks.len() as u64),
            blocks: blocks.to_vec(),
        };
        let offline = blocks.iter().map(|(node, blocks)| (NodeId::new(*node), memory(blocks))).collect();
        at(Fixture::new(FOUR), Site { offline: SiteFact::Known(offline), ..Site::default() })
    };
    let found = one(&with(&[(1, &[8, 9]), (2, &[10, 16])]), rule);
    assert_eq!(
        (found.severity, found.summary.as_str()),
        (Severity::Note, "512 MiB of nodes 1-2 exist and are not used")
    );
    let mend = &found.mends[0];
    assert_eq!(mend.commands, ["chmem --enable -b 8-10", "chmem --enable -b 16-16"]);
    assert_eq!(mend.undo, ["chmem --disable -b 8-10", "chmem --disable -b 16-16"]);
    silent(&with(&[]), rule);
    // A host that takes memory away does it this way.
    let mut guest = with(&[(1, &[8, 9])]);
    guest.virtual_machine = Some(true);
    assert_eq!(one(&guest, rule).severity, Severity::Info);
    lacks_site(rule, "blocks of memory", Site { offline: SiteFact::Denied, ..Site::default() });
}

fn kubelet(cpu: &str, memory: Option<&str>) -> Site {
    let config = KubeletConfig {
        cpu_manager: Some(cpu.to_owned()),
        memory_manager: memory.map(str::to_owned),
        ..KubeletConfig::default()
    };
    Site { kubelet: SiteFact::Known(config), ..Site::default() }
}

/// A pod on the CPUs of node 0, half of whose memory is on node 2.
fn pod(site: Site, group: &str) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    let memory = &[(0, gib(2)), (2, gib(2))];
    fixture.process(&Work { memory, cpu: &[(0, seconds(10))], cpus: Some("0-1"), ..Work::default() });
    change(&mut fixture, 100, |process, _| process.group = Some(group.into()));
    at(fixture, site)
}

const POD: &str = "/kubepods.slice/kubepods-pod12345678_1234_1234_1234_123456789012.slice/x";

#[test]
fn a_pod_whose_memory_the_kubelet_does_not_pin() {
    let rule = &kubelet_cpu_only::RULE;
    let found = one(&pod(kubelet("static", Some("None")), POD), rule);
    assert_eq!((found.severity, found.concerns), (Severity::Warning, Some(gib(2))));
    one(&pod(kubelet("static", None), POD), rule);
    silent(&pod(kubelet("static", Some("Static")), POD), rule);
    silent(&pod(kubelet("none", None), POD), rule);
    silent(&pod(kubelet("static", None), "/system.slice/x.service"), rule);
    let absent = Site { kubelet: SiteFact::Absent, ..Site::default() };
    silent(&pod(absent, POD), rule);
    lacks_site(rule, "the kubelet's configuration", Site { kubelet: SiteFact::Denied, ..Site::default() });
}

#[test]
fn a_topology_manager_on_nine_nodes() {
    let rule = &kubelet_too_many_nodes::RULE;
    let with = |text: &str, policy: &str, most_nodes| {
        let config = KubeletConfig {
            topology_manager: Some(policy.to_owned()),
            most_nodes,
            ..KubeletConfig::default()
        };
        at(Fixture::new(text), Site { kubelet: SiteFact::Known(config), ..Site::default() })
    };
    let nine = "9x(1c 2G)";
    let found = one(&with(nine, "restricted", None), rule);
    assert!(found.mends[0].what.contains("max-allowable-numa-nodes: \"9\""), "{}", found.mends[0].what);
    one(&with(nine, "restricted", Some(4)), rule);
    silent(&with(nine, "restricted", Some(16)), rule);
    silent(&with(nine, "none", None), rule);
    silent(&with("8x(1c 2G)", "restricted", None), rule);
    lacks_site(rule, "the kubelet's configuration", Site { kubelet: SiteFact::Denied, ..Site::default() });
}

#[test]
fn steps_of_slurm_that_nothing_binds() {
    let rule = &slurm_no_binding::RULE;
    let with = |plugins: Option<&[&str]>, group: &str| {
        let plugins = plugins.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
        let site = Site { task_plugins: SiteFact::Known(plugins), ..Site::default() };
        let mut fixture = Fixture::new(FOUR);
        fixture.process(&Work { memory: &[(0, gib(1))], ..Work::default() });
        change(&mut fixture, 100, |process, _| process.group = Some(group.into()));
        at(fixture, site)
    };
    let step = "/system.slice/slurmstepd.scope/job_12/step_0/user/task_0";
    assert_eq!(one(&with(Some(&["task/cgroup"]), step), rule).severity, Severity::Note);
    silent(&with(Some(&["task/affinity", "task/cgroup"]), step), rule);
    silent(&with(None, step), rule);
    silent(&with(Some(&["task/cgroup"]), "/"), rule);
    lacks_site(rule, "Slurm's configuration", Site { task_plugins: SiteFact::Denied, ..Site::default() });
}

#[test]
fn a_profile_that_switches_off_what_is_missing() {
    let rule = &profile_against_workload::RULE;
    let with = |profile: &str, balancing| {
        let mut fixture = Fixture::new(FOUR);
        fixture.process(&Work { memory: &[(2, gib(4))], cpu: &[(0, seconds(10))], ..Work::default() });
        fixture.machine.settings.numa_balancing = Some(balancing);
        at(fixture, Site { tuned: SiteFact::Known(profile.to_owned()), ..Site::default() })
    };
    let found = one(&with("oracle", 0), rule);
    assert_eq!(found.summary, "the profile \"oracle\" sets kernel.numa_balancing=0");
    // tuned takes quotes for a part of the name, and parts names by commas.
    assert!(found.mends[0].what.contains("[main] include=oracle) "), "{}", found.mends[0].what);
    let found = one(&with("my-own oracle", 0), rule);
    assert!(found.mends[0].what.contains("[main] include=my-own,oracle) "), "{}", found.mends[0].what);
    let found = one(&with("a$b oracle", 0), rule);
    assert!(!found.mends[0].what.contains("include="), "{}", found.mends[0].what);
    silent(&with("balanced", 0), rule);
    silent(&with("oracle", 1), rule);
    let all = crate::Diagnosis::new(&with("oracle", 0).situation(), &[]);
    let roots: Vec<_> = all.findings.iter().map(|found| found.rule).collect();
    assert_eq!(roots, ["profile-against-workload"]);
    let mut reclaim = with("hpc-compute", 1);
    reclaim.machine.settings.zone_reclaim_mode = Some(1);
    reclaim.machine.settings.lru_gen_enabled = Some(true);
    reclaim.happened(&[("zone_reclaim_failed", 12_375), ("zone_reclaim_success", 0)]);
    assert!(one(&reclaim, rule).summary.ends_with("vm.zone_reclaim_mode=1"));
    lacks_site(rule, "the active profile of tuned", Site { tuned: SiteFact::Denied, ..Site::default() });
}

#[test]
fn a_board_without_its_cards_queue() {
    let rule = &board_hints::RULE;
    let with = |model: &str, card_queue| {
        let board = BoardHints { model: model.to_owned(), card_queue, ..BoardHints::default() };
        at(Fixture::new("1x(4c 8G)"), Site { board: SiteFact::Known(board), ..Site::default() })
    };
    let pi = "Raspberry Pi 5 Model B Rev 1.0";
    assert_eq!(one(&with(pi, Some(false)), rule).severity, Severity::Info);
    silent(&with(pi, Some(true)), rule);
    silent(&with(pi, None), rule);
    silent(&with("Raspberry Pi 3 Model B", Some(false)), rule);
    lacks_site(rule, "hints of the board", Site { board: SiteFact::Denied, ..Site::default() });
}

/// Each threshold of these rules over the measured value.
pub(super) fn cases() -> Vec<Case> {
    let stranded = pod(kubelet("static", None), POD);
    vec![case(&thresholds::POD_STRANDED, &kubelet_cpu_only::RULE, 0.6, Silent, stranded)]
}
