//! Rules about runtimes: OpenMP, Java, Go, and programs whose container refuses policies.

use std::collections::BTreeMap;
use std::sync::Arc;

use nodewise_source::program::running::RunningProgram;

use super::running::{change, working};
use super::started::{BOTH, HALVES, container, lacks_programs, started, under};
use super::thresholds::{Case, Outcome::Silent, case};
use super::*;
use crate::thresholds;

#[test]
fn a_fact_that_the_user_may_not_read_is_a_lack_of_its_process() {
    let fixture = started("x", RunningProgram::default());
    let lacks = openmp_unbound::RULE.lacks(&fixture.situation());
    assert_eq!((lacks[0].fact, &*lacks[0].reason), ("variables of processes", "permission denied"));
    assert_eq!(lacks[0].remedy.as_deref(), Some("run as root"));
    assert_eq!(quota_spans_nodes::RULE.lacks(&fixture.situation()), []);
    let mut unread = started("x", RunningProgram::default());
    unread.programs = Some(BTreeMap::new());
    assert_eq!(quota_spans_nodes::RULE.lacks(&unread.situation())[0].reason, "its program was not read");
}

/// A program with this library and these variables, whose memory lies on one of the nodes where its threads run.
fn parallel(library: &str, variables: &[&str]) -> Fixture {
    let mut fixture = working(&[(0, gib(8))], BOTH);
    let kinds: &[(u32, Bytes)] = &[(0, gib(8))];
    let default = MemPolicy::DEFAULT;
    fixture.mappings(
        100,
        &[(MappingKind::Anonymous, default.clone(), kinds), (MappingKind::File, default, &[])],
    );
    let read = Arc::make_mut(&mut fixture.now.mappings.last_mut().unwrap().mappings);
    read.mappings[1].name = Some(library.to_owned());
    let variables = variables.iter().map(|name| ((*name).to_owned(), "close".to_owned())).collect();
    fixture.program(100, RunningProgram { variables: Some(variables), ..RunningProgram::default() });
    fixture
}

#[test]
fn threads_of_openmp_that_nothing_binds() {
    let rule = &openmp_unbound::RULE;
    let gcc = "/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0";
    let found = one(&parallel(gcc, &["OMP_NUM_THREADS"]), rule);
    assert_eq!(
        (found.severity, found.evidence[0].value.clone()),
        (Severity::Note, crate::finding::Value::text("libgomp.so.1.0.0"))
    );
    silent(&parallel(gcc, &["OMP_PROC_BIND"]), rule);
    silent(&parallel(gcc, &["GOMP_CPU_AFFINITY"]), rule);
    silent(&parallel(gcc, &["OMP_PLACES"]), rule);
    let set = |name: &str, value: &str| {
        let mut fixture = parallel(gcc, &["OMP_PLACES"]);
        let program = fixture.programs.as_mut().unwrap().values_mut().next().unwrap();
        program.variables = Some(BTreeMap::from([(name.to_owned(), value.to_owned())]));
        fixture
    };
    assert_eq!(
        one(&set("OMP_PROC_BIND", "FALSE"), rule).evidence[1].value,
        crate::finding::Value::text("false")
    );
    one(&set("KMP_AFFINITY", "verbose,none"), rule);
    one(&set("OMP_PROC_BIND", ""), rule);
    silent(&set("KMP_AFFINITY", "granularity=fine,compact,1,0"), rule);
    silent(&parallel("/usr/lib/libc.so.6", &[]), rule);
    // Its memory is where its threads are.
    let mut spread = parallel(gcc, &[]);
    spread.now.mappings.clear();
    spread.now.mappings = working(HALVES, BOTH).now.mappings;
    silent(&spread, rule);
    lacks_programs(parallel(gcc, &[]), rule);
    let explained = crate::Diagnosis::new(&parallel(gcc, &[]).situation(), &[]).findings;
    let folded: Vec<_> = explained.iter().map(|of| (of.rule, of.explains.len())).collect();
    assert_eq!(folded, [("openmp-unbound", 1)]);
}

fn java(version: u32, options: &[&str]) -> Fixture {
    let words = std::iter::once("java").chain(options.iter().copied()).map(str::to_owned).collect();
    let exe = Some("/usr/lib/jvm/x/bin/java".to_owned());
    started(
        "java",
        RunningProgram { words: Some(words), exe, version: Some(version), ..RunningProgram::default() },
    )
}

#[test]
fn a_java_heap_on_two_nodes() {
    let rule = &jvm_numa_unused::RULE;
    assert_eq!(one(&java(17, &["-Xmx8g"]), rule).severity, Severity::Note);
    one(&java(8, &[]), rule);
    one(&java(11, &["-XX:+UseParallelGC"]), rule);
    silent(&java(17, &["-XX:+UseNUMA"]), rule);
    silent(&java(17, &["-XX:-UseNUMA"]), rule);
    silent(&java(17, &["-XX:+UseZGC"]), rule);
    silent(&java(11, &[]), rule);
    silent(&java(8, &["-XX:+UseG1GC"]), rule);
    silent(&java(17, &["@options"]), rule);
    silent(&under(java(17, &[]), PolicyMode::Interleave, "0-1"), rule);
    silent(&started("node", RunningProgram { version: Some(17), ..RunningProgram::default() }), rule);
    lacks_programs(java(17, &[]), rule);
}

/// Java of a version with UseNUMA that may use these CPUs, and memory of these nodes under a policy, in a filter or not.
fn confined_java(version: u32, cpus: &str, allowed: &str, policy: &MemPolicy, filtered: bool) -> Fixture {
    let mut fixture = java(version, &["-XX:+UseNUMA"]);
    change(&mut fixture, 100, |process, _| {
        let bounds = process.allowed.as_mut().unwrap();
        (bounds.cpus, bounds.nodes) = (Some(cpus.parse().unwrap()), Some(nodes(allowed)));
        let bounds = process.allowed.clone();
        process.tasks.as_mut().unwrap().iter_mut().for_each(|task| task.allowed = bounds.clone());
    });
    // The heap is under policies of its own.
    let interleave = MemPolicy::new(PolicyMode::Interleave, nodes("0-3"));
    let (heap, stack) = (MappingKind::Anonymous, MappingKind::Stack);
    fixture
        .mappings(100, &[(heap, interleave, HALVES), (stack, policy.clone(), &[(0, Bytes::from_kib(64))])]);
    let program = fixture.programs.as_mut().unwrap().values_mut().next().unwrap();
    (program.is_filtered, program.has_nice) = (Some(filtered), Some(false));
    fixture
}

/// CPUs of nodes 0 and 1 of four.
const TWO_NODES: &str = "0-3";

#[test]
fn a_java_machine_whose_cpus_and_memory_are_apart() {
    let rule = &jvm_numa_void::RULE;
    let with =
        |version, cpus, allowed, policy: &MemPolicy| confined_java(version, cpus, allowed, policy, false);
    let default = &MemPolicy::DEFAULT;
    let found = one(&with(25, TWO_NODES, "0-3", default), rule);
    assert_eq!(
        (found.summary.as_str(), found.cause.as_deref()),
        (
            "\"java\" (100) was started with UseNUMA, which is off",
            Some("its CPUs are those of nodes 0-1, its memory may come from nodes 0-3")
        )
    );
    assert_eq!(found.mends[0].commands, ["nodewise run --membind=0-1 -- COMMAND"]);
    // What the mend does.
    let bound = MemPolicy::new(PolicyMode::Bind, nodes("0-1"));
    silent(&with(25, TWO_NODES, "0-3", &bound), rule);
    silent(&with(25, TWO_NODES, "0-1", default), rule);
    // Older versions go on with a heap for four nodes, on CPUs of one as well.
    let found = one(&with(17, TWO_NODES, "0-3", default), rule);
    assert!(found.summary.ends_with("its heap is for nodes 0-3, it runs on nodes 0-1"), "{}", found.summary);
    one(&with(17, "0-1", "0-3", default), rule);
    silent(&with(25, "0-1", "0-3", default), rule);
    // Memory of one node switches it off in each version.
    let one_node = MemPolicy::new(PolicyMode::Bind, nodes("1"));
    assert!(one(&with(17, TWO_NODES, "0-3", &one_node), rule).summary.ends_with("which is off"));
    silent(&with(17, "2-3", "0-3", &one_node), rule);
}

#[test]
fn a_java_machine_in_a_cpuset_or_a_filter() {
    let rule = &jvm_numa_void::RULE;
    let with = |allowed, filtered| confined_java(17, TWO_NODES, allowed, &MemPolicy::DEFAULT, filtered);
    // No policy goes beyond a cpuset.
    let found = one(&with("0", false), rule);
    assert!(found.mends[0].commands.is_empty(), "{:?}", found.mends);
    assert!(found.mends[0].what.contains("cpuset.mems=0-1"), "{:?}", found.mends);
    let found = one(&container(with("0", false)), rule);
    assert!(found.mends[0].commands[0].starts_with("docker update --cpuset-mems=0-1 "), "{:?}", found.mends);
    assert_eq!(one(&container(with("0-1", true)), rule).confidence, Confidence::Possible);
    // A filter outside of a container is not that of the container.
    silent(&with("0-1", true), rule);
    silent(&java(17, &[]), rule);
    lacks_programs(with("0-3", false), rule);
}

#[test]
fn a_policy_that_a_container_refuses() {
    let rule = &policy_refused::RULE;
    let with = |name: &str, option: &str, has_nice| {
        let words = Some(vec![name.to_owned(), option.to_owned()]);
        let (is_filtered, has_nice) = (Some(true), Some(has_nice));
        started(name, RunningProgram { words, is_filtered, has_nice, ..RunningProgram::default() })
    };
    let asked = "--innodb-numa-interleave=ON";
    let found = one(&container(with("mysqld", asked, false)), rule);
    assert_eq!(found.severity, Severity::Note);
    assert!(found.summary.contains("innodb-numa-interleave"), "{}", found.summary);
    silent(&container(with("mysqld", asked, true)), rule);
    silent(&container(with("mysqld", "--innodb-numa-interleave=0", false)), rule);
    silent(&container(with("mysqld", "--port=3306", false)), rule);
    silent(&with("mysqld", asked, false), rule);
    silent(&container(under(with("mysqld", asked, false), PolicyMode::Interleave, "0-1")), rule);
    lacks_programs(container(with("mysqld", asked, false)), rule);
}

fn go(is_go: bool, most: Option<&str>) -> Fixture {
    let variables = most.map(|most| ("GOMAXPROCS".to_owned(), most.to_owned())).into_iter().collect();
    started(
        "tidb-server",
        RunningProgram { is_go: Some(is_go), variables: Some(variables), ..RunningProgram::default() },
    )
}

#[test]
fn a_go_program_on_two_nodes() {
    let rule = &go_across_nodes::RULE;
    let found = one(&go(true, None), rule);
    assert_eq!((found.severity, found.confidence), (Severity::Note, Confidence::Possible));
    assert_eq!(found.mends[0].commands, ["nodewise run --cpunodebind=0 --preferred=0 -- COMMAND"]);
    one(&go(true, Some("8")), rule);
    silent(&go(true, Some("2")), rule);
    silent(&go(false, None), rule);
    lacks_programs(go(true, None), rule);
}

/// Each threshold of these rules over the measured value.
pub(super) fn cases() -> Vec<Case> {
    let (jvm, go_rule) = (&jvm_numa_unused::RULE, &go_across_nodes::RULE);
    vec![
        case(&thresholds::JVM_HEAP, jvm, 0.9, Silent, java(17, &[])),
        case(&thresholds::JVM_CPU, jvm, 0.6, Silent, java(17, &[])),
        case(&thresholds::GO_SIZE, go_rule, 0.9, Silent, go(true, None)),
        case(&thresholds::GO_CPU, go_rule, 0.6, Silent, go(true, None)),
    ]
}
