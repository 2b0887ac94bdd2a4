//! The first texts that a new user reads.

use crate::nodewise::{command, golden, output, run, wider};

const MACHINE: &str = "2x(2x(6c2t 128G l3=32M/6c)); dist=11,20; dev=net:eth0@1; arch=x86_64; kernel=6.12.5";

/// Tools that nodewise is under other names: they have their own words and their own width.
const PERSONALITIES: [&str; 5] = ["numactl", "numastat", "migratepages", "migspeed", "memhog"];

/// Lists the words that can be typed before `--help`: none, each verb, and what some verbs are followed by.
fn verbs() -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut next = 0;
    while let Some(verbs) = all.get(next).cloned() {
        let help = output(command(&verbs).arg("--help")).ok();
        all.extend(listed(&help).into_iter().map(|verb| [&verbs[..], &[verb]].concat()));
        next += 1;
    }
    all
}

/// The verbs that a help text lists: the first words of a section, two columns in.
fn listed(help: &str) -> Vec<String> {
    let section = ["\nVerbs:\n", "\nWorkloads:\n"].iter().find_map(|head| help.split_once(head));
    let lines = section.map_or("", |(_, section)| section).lines().take_while(|line| !line.is_empty());
    let entries = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let words = entries.filter_map(|line| line.split_whitespace().next());
    words.filter(|verb| !PERSONALITIES.contains(verb)).map(str::to_owned).collect()
}

#[test]
fn nodewise_alone_tells_the_machine_and_what_to_try() {
    golden("overview", run(&["--machine", MACHINE]).ok());
}

#[test]
fn every_verb_explains_itself() {
    let all = verbs();
    assert!(all.len() > 8, "{all:?}");
    for verbs in all {
        let name = ["help".to_owned()].into_iter().chain(verbs.clone()).collect::<Vec<_>>().join("-");
        golden(&name, output(command(&verbs).arg("--help").env("COLUMNS", "80")).ok());
    }
}

#[test]
fn help_fits_the_terminal() {
    for verbs in verbs() {
        for (columns, expected) in [("60", 60), ("80", 80), ("90", 90), ("200", 100)] {
            for option in ["--help", "-h"] {
                let text = output(command(&verbs).arg(option).env("COLUMNS", columns)).ok();
                assert_eq!(wider(&text, expected), [""; 0], "{verbs:?} {option} at {columns} columns");
            }
        }
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let text = run(&["--version"]).ok();
    assert!(text.starts_with(&format!("nodewise {}\n", env!("CARGO_PKG_VERSION"))), "{text}");
    for part in [std::env::consts::ARCH, "numastat", "2.0.19", "6.12", "board", "database"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(run(&["version"]).ok(), text);
    assert_eq!(run(&["-V"]).ok(), text);
    assert_eq!(wider(&text, 80), [""; 0]);
}

const TOPICS: [&str; 7] = ["machines", "policies", "nodes", "units", "exit-codes", "environment", "formats"];

#[test]
fn topics_are_listed_and_fit_the_terminal() {
    let list = run(&["help"]).ok();
    for topic in TOPICS {
        assert!(list.contains(&format!("\n  {topic} ")), "{topic} in {list}");
        golden(&format!("topic-{topic}"), run(&["help", topic]).ok());
        for columns in ["60", "80", "200"] {
            let text = output(command(["help", topic]).env("COLUMNS", columns)).ok();
            let most = columns.parse().unwrap_or(80).min(80);
            assert_eq!(wider(&text, most), [""; 0], "{topic} at {columns} columns");
        }
    }
    assert_eq!(run(&["help", "json"]).ok(), run(&["help", "formats"]).ok());
}

#[test]
fn the_help_of_a_verb_is_printed_under_both_names() {
    for verb in [&["show"][..], &["workload", "stream"], &["help"]] {
        let by_option = run(&[verb, &["--help"]].concat()).ok();
        assert_eq!(run(&[&["help"], verb].concat()).ok(), by_option, "{verb:?}");
    }
    assert!(run(&["help"]).ok().starts_with(&run(&["--help"]).ok()));
    let tool = run(&["help", "numactl"]);
    let original = run(&["numactl", "--help"]);
    assert_eq!((tool.code, tool.stdout, tool.stderr), (original.code, original.stdout, original.stderr));
}

#[test]
fn a_verb_without_its_object_prints_its_help_as_an_error() {
    let ran = run(&["workload"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("chase") && ran.stderr.contains("stream"), "{}", ran.stderr);
}
