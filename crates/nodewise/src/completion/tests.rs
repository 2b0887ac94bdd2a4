use proptest::prelude::*;

use super::{Answer, CompletionKind, answer, reply};

/// Two packages with two nodes each, and a node of memory only.
const MACHINE: &str = "2x(2c 1G) (2G); dist=20";

fn after(words: &[&str]) -> Answer {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    answer(&words)
}

fn names(answer: &Answer) -> Vec<&str> {
    answer.words.keys().map(String::as_str).collect()
}

fn line(line: &str, breaks: &str) -> String {
    reply(["--line", line, breaks].map(Into::into).into())
}

#[test]
fn verbs_come_first_and_hidden_ones_do_not() {
    let answer = after(&[""]);
    assert!(names(&answer).contains(&"show"));
    assert_eq!(answer.words["tune"], "Runs a program under many placements and names the best");
    assert!(names(&after(&["emulation", ""])).contains(&"plan"));
    assert!(!names(&after(&["show", ""])).contains(&"show"));
}

#[test]
fn options_are_those_of_the_verb_and_global_ones() {
    let answer = after(&["run", "--"]);
    let names = names(&answer);
    assert!(names.contains(&"--membind") && names.contains(&"-m") && names.contains(&"--color"), "{names:?}");
    assert!(!names.contains(&"--quick"));
    // A change works on this machine only: its help does not have --machine either.
    assert!(!after(&["migrate", "--"]).words.contains_key("--machine"));
}

#[test]
fn nodes_are_those_of_the_machine_that_was_named() {
    let nodes = after(&["--machine", MACHINE, "run", "--membind", ""]);
    assert_eq!(names(&nodes), ["0", "1", "2", "all"]);
    assert_eq!(nodes.words["1"], "1 GiB, CPUs 2-3");
    assert_eq!(nodes.words["2"], "2 GiB");
    assert_eq!(names(&after(&["run", &format!("--machine={MACHINE}"), "-m", "0,"])), ["0,1", "0,2"]);
    assert_eq!(names(&after(&["run", "--machine", MACHINE, "-p", ""])), ["0", "1", "2"]);
    let equals = after(&["run", "--machine", MACHINE, "--membind=2,"]);
    assert_eq!(names(&equals), ["--membind=2,0", "--membind=2,1"]);
    assert_eq!(names(&after(&["run", "--machine", MACHINE, "-C", ""])), ["0-1", "2-3"]);
}

#[test]
fn devices_are_those_of_the_machine() {
    let capture =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/captures/32em64t-2n8c+dax+nvme+mic+dimms.tar.bz2");
    let devices = after(&["run", "--machine", capture, "--near", ""]);
    assert_eq!(devices.words["net:eth0"], "node 0");
    assert_eq!(devices.words["gpu:0"], "node 0");
    assert!(after(&["io", "--machine", capture, ""]).words.contains_key("nvme0n1"));
}

#[test]
fn values_with_a_list_are_completed_one_by_one() {
    assert_eq!(names(&after(&["run", "--huge", ""])), ["always", "never", "pool"]);
    assert_eq!(names(&after(&["run", "--huge="])), ["--huge=always", "--huge=never", "--huge=pool"]);
    let pages = after(&["report", "--with", "doctor,"]);
    assert!(names(&pages).contains(&"doctor,latency"), "{pages:?}");
    assert!(names(&after(&["help", ""])).contains(&"policies"));
    assert!(after(&["doctor", "--rule", ""]).words.contains_key("swap-while-free"));
}

#[test]
fn files_directories_and_programs_are_the_shells() {
    assert_eq!(after(&["show", "--svg", ""]).kind, CompletionKind::Files);
    assert_eq!(after(&["show", "--machine", ""]).kind, CompletionKind::Files);
    assert_eq!(after(&["links", ""]).kind, CompletionKind::Directories);
    assert_eq!(after(&["run", "--near", "gpu:0", "--", ""]).kind, CompletionKind::Programs);
    assert_eq!(after(&["run", ""]).kind, CompletionKind::Programs);
    assert_eq!(after(&["run", "ls", "-"]), Answer { kind: CompletionKind::Files, ..Answer::default() });
    assert_eq!(after(&["tune", "--", "ls", ""]).kind, CompletionKind::Files);
    assert_eq!(after(&["record", "-o", "x", "--", ""]).kind, CompletionKind::Programs);
}

#[test]
fn a_line_is_answered_with_what_the_shell_replaces() {
    let plan = "plan\tShows the nodes that a kernel would make: ranges, CPUs, distances, fallback orders\n";
    assert_eq!(line("nodewise emulation pl", ""), format!("words\tpl\n{plan}"));
    let spec = line(&format!("nodewise run --machine '{MACHINE}' --membind=1,"), "=:");
    assert_eq!(spec, "words\t1,\n1,0\t1 GiB, CPUs 0-1\n1,2\t2 GiB\n");
    assert_eq!(line("nodewise explain bin", ":"), "words\tbin\nbind:\tthese nodes only\n");
    assert_eq!(line("nodewise show --svg=pic", "=:"), "files\tpic\n");
    assert_eq!(line("nodewise show --svg=pic", ""), "files\t--svg=pic\n");
}

#[test]
fn words_that_mean_nothing_get_an_empty_answer() {
    assert_eq!(reply(vec![]), "words\t\n");
    assert_eq!(line("nodewise run --machine /nonexistent -m ", ""), "words\t\n");
    assert_eq!(line("nodewise run --nonsense=", "="), "words\t\n");
}

proptest! {
    #[test]
    fn any_words_are_answered_without_a_panic_or_a_raw_character(
        words in prop::collection::vec("(run|show|--machine|2x\\(1c 1G\\)|--membind|--|-m|help|=|\\PC{0,4})", 0..5),
        breaks in "[=:]{0,2}",
    ) {
        let line = format!("nodewise {}", words.join(" "));
        for reply in [reply(vec!["--line".into(), line.into(), breaks.into()]), answer(&words).lines("", 0)] {
            prop_assert!(reply.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
        }
    }
}
