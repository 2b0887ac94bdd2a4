//! `--serve`: a server under the placements and its client.

use std::fs;

use serde_json::Value;

use crate::nodewise::{Ran, a_memory_node, run};

/// A server that is ready at once and stops when it is told to.
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
    let study: Value = serde_json::from_str(&serve(&server, "ready", &client, &options).ok()).unwrap();
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
    assert!(text.ends_with(&format!("the program fails without any placement too: {why}")), "{}", ran.stdout);
}

#[test]
fn what_is_wrong_with_a_server_or_a_client_is_said() {
    let dies = serve("sh -c 'echo no space >&2; exit 4'", "ready", "true", &[]);
    check(&dies, "the server ended with exit code 4 before it was ready: no space");
    let never = serve("sleep 1000", "1", "true", &["--ready-limit=200ms"]);
    check(&never, "the server was not ready within 200ms: nobody answers at port 1");
    let client = serve(SERVER, "ready", "sh -c 'echo refused >&2; exit 2'", &[]);
    check(&client, "the client ended with exit code 2: refused");
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let taken = serve(SERVER, &port, "true", &[]);
    check(&taken, &format!("port {port} answers before the server is started: expected nobody there"));
}

#[test]
fn wrong_usage_of_servers_says_what_would_be_right() {
    let wrong = |ran: Ran, expected: &str| {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    };
    wrong(serve("a | b", "1", "true", &[]), "--serve: \"a | b\" needs a shell, for '|': expected a program");
    wrong(serve("a 'b", "1", "true", &[]), "--serve: a quote is not closed in \"a 'b\"");
    wrong(serve("a", "1", "", &[]), "--drive: there is no program: expected one with its arguments");
    wrong(serve("a", "99999", "b", &[]), "--ready: \"99999\" is no port: expected a number from 1 to 65535");
    wrong(serve("a", "(", "b", &[]), "--ready: \"(\" is neither a port nor a regular expression");
    wrong(serve("a", "1", "b", &["--stop-limit=x"]), "--stop-limit: \"x\" is not a time");
    wrong(
        serve("a", "1", "b", &["true"]),
        "--serve names the program that is placed: a client belongs into --drive",
    );
    wrong(run(&["tune", "--serve", "a"]), "nodewise tune needs --ready PORT|REGEX and --drive CMD");
    wrong(run(&["tune", "--ready", "1", "true"]), "--serve");
}

#[test]
fn an_interrupt_leaves_no_server_behind() {
    for signal in ["INT", "TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        let server = SERVER.replace("echo ready", &format!("echo $$ >> {}; echo ready", pids.display()));
        let client = format!("sh -c 'kill -{signal} $PPID; exec sleep 1000'");
        assert_eq!(serve(&server, "ready", &client, &[]).code, Some(0));
        for pid in fs::read_to_string(pids).unwrap().split_whitespace() {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
        }
    }
}
