//! `--serve`: a server under the placements and its client.

use std::fs;
use std::path::Path;

use crate::nodewise::{KNOW_NODEWISE, Ran, a_memory_node, output, path, run, without_variables};

/// A server that is ready at once and stops when it is asked to.
const SERVER: &str = "sh -c 'trap \"exit 0\" TERM; echo ready; while :; do sleep 1000 & wait; done'";

fn serve(server: &str, ready: &str, client: &str, options: &[&str]) -> Ran {
    let words = ["tune", "--placement=localalloc", "--repeats=0", "--runs=1", "--serve", server];
    run(&[&words, &["--ready", ready, "--drive", client][..], options].concat())
}

#[test]
fn the_clients_number_is_compared_and_the_server_is_placed() {
    let node = a_memory_node();
    // The client asks which policy the server has.
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let server = SERVER.replace("echo ready", &format!("echo $$ > {}; echo ready", pid.display()));
    let client = format!(
        "sh -c 'if grep -q \" bind\" /proc/$(cat {})/numa_maps; then echo tps 20; else echo tps 10; fi'",
        pid.display()
    );
    let placement = format!("--placement=membind={node}");
    let options = ["--metric=tps ([0-9]+)", "--higher-is-better", "--json", &placement];
    let study = serve(&server, "ready", &client, &options).ok_json();
    let medians: Vec<_> = (0..3).map(|arm| study["arms"][arm]["summary"]["median"].as_f64()).collect();
    assert_eq!(medians, [Some(10.0), Some(10.0), Some(20.0)]);
    assert_eq!(study["service"]["ready"], "ready");
    assert_eq!(study["service"]["client"][0], "sh");
    assert_eq!(study["conditions"]["command"][0], "sh");
}

/// The sentence of a study whose server or client does not work at all.
fn check(ran: &Ran, why: &str) {
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.starts_with(&format!("the program fails without any placement too: {why} 2 placements, ")),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_is_wrong_with_a_server_or_a_client_is_said() {
    let dies = serve("sh -c 'echo no space >&2; exit 4'", "ready", "true", &[]);
    check(&dies, "the server ended with exit code 4 before it was ready: no space");
    let never = serve("sleep 1000", "1", "true", &["--ready-limit=200ms"]);
    check(&never, "the server was not ready within 200ms: nothing answers at port 1");
    let client = serve(SERVER, "ready", "sh -c 'echo refused >&2; exit 2'", &[]);
    check(&client, "the client ended with exit code 2: refused");
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let taken = serve(SERVER, &port, "true", &[]);
    check(&taken, &format!("port {port} answers before the server is started: expected a free port"));
}

#[test]
fn wrong_usage_of_servers_says_what_would_be_right() {
    let wrong = |ran: Ran, expected: &str| {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    };
    wrong(serve("a | b", "1", "true", &[]), "--serve: \"a | b\" needs a shell, for '|': expected a program");
    wrong(serve("a 'b", "1", "true", &[]), "--serve: a quote is not closed in \"a 'b\"");
    wrong(serve("a", "1", "", &[]), "--drive: there is not a program: expected one with its arguments");
    wrong(
        serve("a", "99999", "b", &[]),
        "--ready: \"99999\" is not a port: expected a number from 1 to 65535",
    );
    wrong(serve("a", "(", "b", &[]), "--ready: \"(\" is neither a port nor a regular expression");
    wrong(serve("a", "1", "b", &["--stop-limit=x"]), "--stop-limit: \"x\" is not a time");
    wrong(
        serve("a", "1", "b", &["true"]),
        "--serve names the program that is placed: a client belongs into --drive",
    );
    wrong(run(&["tune", "--serve", "a"]), "--serve needs --ready PORT|REGEX and --drive CMD");
    wrong(run(&["tune", "--ready", "1", "true"]), "--serve");
}

/// Waits until processes whose numbers are in a file are gone; hangs if they stay.
pub fn gone(pids: &Path, count: usize) {
    let text = fs::read_to_string(pids).unwrap();
    assert_eq!(text.lines().count(), count, "{text}");
    for pid in text.lines() {
        let lives = || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ") && !stat.contains(") X ")
        };
        while lives() {
            std::thread::yield_now();
        }
    }
}

/// A script that starts a child, one in a session of its own and a daemon that forks twice, none of which
/// listens to SIGTERM, and writes down their numbers and its own.
fn family(folder: &Path, name: &str, then: &str) -> String {
    let script = folder.join(name);
    let pids = folder.join(format!("{name}.pids"));
    let text = format!(
        "trap '' TERM
        pids={}
        echo $$ > $pids
        sleep 1000 & echo $! >> $pids
        setsid sh -c 'echo $$ >> $0; exec sleep 1000' $pids &
        setsid sh -c '(setsid sh -c \"echo \\$\\$ >> $0; exec sleep 1000\") & exit 0' $pids &
        while [ $(wc -l < $pids) -lt 4 ]; do :; done
        {then}
        while :; do wait; done\n",
        pids.display()
    );
    fs::write(&script, text).unwrap();
    format!("sh {}", script.display())
}

#[test]
fn no_server_and_no_client_outlives_nodewise_however_it_ends() {
    for signal in ["INT", "TERM", "HUP", "KILL"] {
        let folder = tempfile::tempdir().unwrap();
        let server = family(folder.path(), "server", "echo ready");
        let end = format!("{KNOW_NODEWISE}; kill -{signal} $nodewise");
        let client = family(folder.path(), "client", &end);
        // Whoever runs the tests may ignore SIGHUP.
        let mut command = without_variables("env");
        command.args(["--default-signal=HUP", path(), "tune", "--placement=localalloc", "--runs=1"]);
        command.args(["--serve", &server, "--ready", "ready", "--drive", &client, "--stop-limit=50ms"]);
        let ran = output(&mut command);
        assert_eq!(ran.code, (signal != "KILL").then_some(0), "{signal}: {}", ran.stderr);
        for name in ["server.pids", "client.pids"] {
            gone(&folder.path().join(name), 4);
        }
    }
}

#[test]
fn a_terminal_that_closes_ends_no_study_under_nohup() {
    let client = format!("sh -c '{KNOW_NODEWISE}; kill -HUP $nodewise'");
    let mut command = without_variables("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", path(), "tune", "--placement=localalloc"]);
    command.args(["--runs=1", "--json", "--serve", SERVER, "--ready", "ready", "--drive", &client]);
    let study = output(&mut command).json();
    assert_eq!(study["end"], "completed");
}
