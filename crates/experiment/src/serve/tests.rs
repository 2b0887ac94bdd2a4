//! Servers and clients that are short scripts: all that can go wrong between them.

use super::*;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::executor::NoWitness;
use crate::metric::{Metric, Pattern};
use crate::study::{Plan, Rounds, Treatment};
use nodewise_stats::Direction;

fn shell(script: &str) -> Program {
    Program::new(["sh", "-c", script]).unwrap()
}

fn service(server: &str, ready: &str, client: &str) -> Service {
    Service {
        server: shell(server),
        ready: Ready::parse(ready).unwrap(),
        client: shell(client),
        patience: Patience::DEFAULT,
    }
}

fn run_under(service: Service, metric: Metric, placement: Placement) -> Run {
    let plan = Plan::new([Treatment::new("it", placement)], metric, Rounds::DEFAULT, 1).unwrap();
    let interrupt = AtomicBool::new(false);
    let cpus = nodewise_syscall::affinity::cpus(nodewise_syscall::Task::CURRENT).unwrap();
    ServeExecutor::new(service, &plan, cpus, &mut NoWitness, &interrupt).run(&plan.arms()[0])
}

fn run(service: Service, metric: Metric) -> Run {
    run_under(service, metric, Placement::DEFAULT)
}

fn number(pattern: &str) -> Metric {
    Metric::Printed(Pattern::new(pattern).unwrap(), Direction::HigherIsBetter)
}

/// A server that says that it is ready, and ends when it is asked to.
const GOOD: &str = "trap 'exit 0' TERM; echo ready; while :; do sleep 1000 & wait; done";

fn check(service: Service, expected: &str) {
    assert_eq!(run(service, Metric::Wall).ending.to_string(), expected);
}

/// Whether a process is there and not only waits to be waited for.
fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// The kernel ends what was killed soon; the test hangs if it does not.
fn ends(path: &Path) {
    for pid in fs::read_to_string(path).unwrap().split_whitespace() {
        while lives(pid) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn the_metric_is_what_the_client_prints() {
    let run = run(service(GOOD, "^ready", "echo tps = 512.5"), number("tps = ([0-9.]+)"));
    assert_eq!((run.ending, run.printed), (Ending::Done, Some(512.5)));
    assert!(run.usage.is_some() && run.evidence.own.is_some() && run.wall.is_some());
}

#[test]
fn what_a_server_says_on_either_stream_tells_that_it_is_ready() {
    let server = GOOD.replace("echo ready", "echo now >&2");
    check(service(&server, "now|later", "exit 0"), "done");
}

#[test]
fn a_server_that_ends_too_early_is_said_to() {
    check(
        service("echo oops >&2; exit 3", "ready", "exit 0"),
        "the server ended with exit code 3 before it was ready: oops",
    );
    check(
        service("kill -9 $$", "1", "exit 0"),
        "the server was ended by signal 9 (SIGKILL, as the kernel sends when memory runs out) before it was ready",
    );
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    let pid = folder.path().join("pid");
    let server = format!(
        "echo $$ > {}; echo ready; while [ ! -e {} ]; do :; done; exit 5",
        pid.display(),
        gone.display()
    );
    // The client ends after the server has.
    let client = format!("touch {}; while [ -e /proc/$(cat {}) ]; do :; done", gone.display(), pid.display());
    let ending = run(service(&server, "ready", &client), Metric::Wall).ending.to_string();
    assert_eq!(ending, "the server ended with exit code 5 while the client ran");
}

#[test]
fn a_server_that_is_never_ready_is_ended_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let server = format!("trap '' TERM; sleep 1000 & echo $! $$ > {}; wait", pids.display());
    let patience = Patience { ready: Duration::from_millis(700), stop: Duration::from_millis(50) };
    let ending = run(Service { patience, ..service(&server, "ready", "exit 0") }, Metric::Wall).ending;
    assert_eq!(
        ending.to_string(),
        "the server was not ready within 700ms: nothing that it wrote matches \"ready\""
    );
    ends(&pids);
}

#[test]
fn a_client_that_fails_is_told_from_the_server() {
    let failed = run(service(GOOD, "ready", "echo refused >&2; exit 2"), Metric::Wall);
    assert_eq!(failed.ending.to_string(), "the client ended with exit code 2");
    assert_eq!(failed.complaint.as_deref(), Some("refused"));
    let missing = Service { client: Program::new(["no-such-client"]).unwrap(), ..service(GOOD, "ready", "") };
    check(missing, "the client could not be started: no-such-client: no such file or directory");
    let slow = Service {
        client: shell("exec sleep 1000").with_time_limit(Duration::from_millis(300)),
        ..service(GOOD, "ready", "")
    };
    check(slow, "the client did not end within 300ms");
    let server = Service { server: Program::new(["no-such-server"]).unwrap(), ..service("", "ready", "") };
    check(server, "could not be started: no-such-server: no such file or directory");
}

#[test]
fn a_port_that_somebody_else_has_is_said_to_be_taken() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    check(
        service(GOOD, &port.to_string(), "exit 0"),
        &format!("port {port} answers before the server is started: expected a free port"),
    );
}

#[test]
fn a_server_is_stopped_gently_and_one_that_does_not_listen_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (pids, said) = (folder.path().join("pids"), folder.path().join("said"));
    let gentle = format!(
        "trap 'echo stopped > {}; exit 0' TERM; sleep 1000 & echo $! $$ > {}; echo ready; wait",
        said.display(),
        pids.display()
    );
    check(service(&gentle, "ready", "exit 0"), "done");
    assert_eq!(fs::read_to_string(&said).unwrap(), "stopped\n");
    ends(&pids);
    let deaf = format!(
        "trap '' TERM; sleep 1000 & echo $! $$ > {}; echo ready; while :; do wait; done",
        pids.display()
    );
    let patience = Patience { stop: Duration::from_millis(50), ..Patience::DEFAULT };
    check(Service { patience, ..service(&deaf, "ready", "exit 0") }, "done");
    ends(&pids);
}

#[test]
fn an_interrupt_leaves_no_server_behind() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let server = format!(
        "trap '' TERM; sleep 1000 & echo $! $$ > {}; echo ready; while :; do wait; done",
        pids.display()
    );
    let plan =
        Plan::new([Treatment::new("it", Placement::DEFAULT)], Metric::Wall, Rounds::DEFAULT, 1).unwrap();
    let interrupt = AtomicBool::new(false);
    /// Interrupts at the first look.
    struct Impatient<'a>(&'a AtomicBool, u32);
    impl Witness for Impatient<'_> {
        fn before(&mut self) {}
        fn look(&mut self, process: u32) -> Look {
            self.1 = process;
            self.0.store(true, Ordering::Relaxed);
            Look::default()
        }
        fn after(&mut self) -> Surroundings {
            Surroundings::default()
        }
    }
    let mut witness = Impatient(&interrupt, 0);
    let patience = Patience { stop: Duration::from_millis(50), ..Patience::DEFAULT };
    let service = Service { patience, ..service(&server, "ready", "exec sleep 1000") };
    let run =
        ServeExecutor::new(service, &plan, CpuSet::new(), &mut witness, &interrupt).run(&plan.arms()[0]);
    assert_eq!(run.ending, Ending::Interrupted);
    let text = fs::read_to_string(&pids).unwrap();
    let server = text.split_whitespace().last().unwrap();
    assert_eq!(witness.1.to_string(), server, "the pages looked at are the server's");
    ends(&pids);
}

#[test]
fn the_client_runs_on_the_cpus_that_the_server_leaves() {
    let all = CpuSet::from([0, 1, 2, 3]);
    let check = |placement: Placement, expected: Placement| assert_eq!(beside(&placement, &all), expected);
    check(Placement::DEFAULT, Placement::DEFAULT);
    check(Placement::on_cpus(CpuSet::from([0, 1])), Placement::on_cpus(CpuSet::from([2, 3])));
    check(Placement::on_cpus(all.clone()), Placement::DEFAULT);
}
