//! Rules about programs: ranks of MPI, MongoDB, MySQL.

use std::sync::Arc;
use std::time::Duration;

use nodewise_source::process::Pid;

use super::*;

/// Gives a process its name and its parent, in both samples.
fn named(fixture: &mut Fixture, pid: u32, name: &str, parent: Option<u32>) {
    for sample in [&mut fixture.before, &mut fixture.now] {
        let of = sample.processes.iter_mut().find(|of| of.identity.pid.number() == pid).unwrap();
        let process = Arc::make_mut(of);
        (process.name, process.parent) = (name.into(), parent.map(Pid::new));
    }
}

/// Two ranks below a launcher, each with these threads on a CPU of its own, that may use these CPUs.
fn ranks(launcher: &str, threads: &[u64], cpus: [&str; 2]) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { pid: 90, ..Work::default() });
    named(&mut fixture, 90, launcher, None);
    for ((pid, cpu), cpus) in [(100, 0), (200, 1)].into_iter().zip(cpus) {
        let times: Vec<_> = threads.iter().map(|ms| (cpu, Duration::from_millis(*ms))).collect();
        fixture.process(&Work {
            pid,
            memory: &[(0, gib(1))],
            cpu: &times,
            cpus: Some(cpus),
            ..Work::default()
        });
        named(&mut fixture, pid, "xhpl", Some(90));
    }
    fixture
}

#[test]
fn ranks_whose_threads_share_a_core() {
    let rule = &ranks_on_one_core::RULE;
    let busy = [2_500; 4];
    let found = one(&ranks("mpirun", &busy, ["0", "1"]), rule);
    assert_eq!(found.severity, Severity::Warning);
    assert_eq!(found.summary, "2 ranks are bound to 1 CPU each, the first with 4 busy threads");
    assert_eq!(found.mends[0].commands, ["mpirun --bind-to none COMMAND"]);
    assert!(found.mends[0].what.contains("PE=4"), "{}", found.mends[0].what);
    assert_eq!(
        one(&ranks("hydra_pmi_proxy", &busy, ["0", "1"]), rule).mends[0].commands,
        ["mpiexec -bind-to none COMMAND"]
    );
    // A core for each thread, or no binding.
    silent(&ranks("mpirun", &busy, ["0-3", "4-7"]), rule);
    silent(&ranks("mpirun", &busy, ["0-7", "0-7"]), rule);
    // Threads of a communication library sleep.
    silent(&ranks("mpirun", &[9_900, 20, 20, 20], ["0", "1"]), rule);
    // Waiting for something else than CPUs.
    silent(&ranks("mpirun", &[1_000; 4], ["0", "1"]), rule);
    // Bound by hand, without a launcher.
    silent(&ranks("bash", &busy, ["0", "1"]), rule);
    assert!(ranks("mpirun", &busy, ["0", "1"]).lacks_at_once(rule).contains(&"rates"));
}

#[test]
fn ranks_on_a_machine_without_other_cpus_are_not_confined() {
    let mut fixture = ranks("mpirun", &[2_500; 4], ["0", "1"]);
    for sample in [&mut fixture.before, &mut fixture.now] {
        sample.cpus.truncate(1);
    }
    silent(&fixture, &ranks_on_one_core::RULE);
}

/// A server with this memory, with threads on these CPUs.
fn server(name: &str, memory: &[(u32, Bytes)], cpus: &[u32]) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    let cpu: Vec<_> = cpus.iter().map(|cpu| (*cpu, seconds(5))).collect();
    fixture.process(&Work { memory, cpu: &cpu, ..Work::default() });
    named(&mut fixture, 100, name, None);
    fixture
}

/// Puts it under a policy.
fn placed(mut fixture: Fixture, mode: PolicyMode, of: &str, memory: &[(u32, Bytes)]) -> Fixture {
    fixture.mappings(100, &[(MappingKind::Anonymous, MemPolicy::new(mode, nodes(of)), memory)]);
    fixture
}

#[test]
fn mongod_on_a_node_without_room() {
    let rule = &mongod_start::RULE;
    let memory: &[(u32, Bytes)] = &[(1, gib(14)), (0, gib(2))];
    let short = |name: &str| {
        let mut fixture = server(name, memory, &[0, 2]);
        full(&mut fixture, 1, Bytes::default());
        fixture
    };
    let found = one(&short("mongod"), rule);
    assert_eq!((found.severity, &found.nodes), (Severity::Note, &nodes("1")));
    assert_eq!(found.mends[0].commands, ["nodewise run --interleave=all -- COMMAND"]);
    let mut of_unit = short("mongod");
    let process = Arc::make_mut(of_unit.now.processes.last_mut().unwrap());
    process.group = Some("/system.slice/mongod.service".into());
    let found = one(&of_unit, rule);
    assert!(found.mends[0].what.contains("drop-in of mongod.service"), "{}", found.mends[0].what);
    silent(&short("mongos"), rule);
    // No node is short, or the server is interleaved already, or bound to the node that holds it.
    silent(&server("mongod", memory, &[0, 2]), rule);
    silent(&placed(short("mongod"), PolicyMode::Interleave, "0-3", memory), rule);
    silent(&placed(short("mongod"), PolicyMode::Bind, "0-1", memory), rule);
    let mut unread = short("mongod");
    unread.now.mappings.clear();
    let situation = crate::Situation::new(&unread.machine, Some(&unread.before), &unread.now).unwrap();
    assert_eq!(rule.lacks(&situation)[0].fact, "policies of processes");
}

#[test]
fn a_buffer_pool_on_one_of_the_nodes_that_use_it() {
    let rule = &mysqld_interleave::RULE;
    let uneven: &[(u32, Bytes)] = &[(0, gib(2)), (1, gib(10))];
    let even: &[(u32, Bytes)] = &[(0, gib(3)), (1, gib(3)), (2, gib(3)), (3, gib(3))];
    let found = one(&server("mysqld", uneven, &[0, 2]), rule);
    assert_eq!((found.severity, found.concerns, found.mends.len()), (Severity::Note, Some(gib(10)), 2));
    assert!(found.mends[0].what.contains("innodb_numa_interleave"));
    // MariaDB has no such option any more.
    let found = one(&server("mariadbd", uneven, &[0, 2]), rule);
    assert!(found.mends.iter().all(|mend| !mend.what.contains("innodb")), "{found:#?}");
    silent(&server("mysqld", even, &[0, 2]), rule);
    // Its threads are where its memory is.
    silent(&server("mysqld", uneven, &[2]), rule);
    silent(&server("mysqld", &[(0, gib(1)), (1, gib(5))], &[0, 2]), rule);
    silent(&placed(server("mysqld", uneven, &[0, 2]), PolicyMode::Interleave, "0-3", uneven), rule);
    silent(&server("postgres", uneven, &[0, 2]), rule);
}
