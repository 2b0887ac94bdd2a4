//! Why ours may differ from the original: each rule is a row of the table in `docs/compat.md`.

use std::path::Path;

use libtest_mimic::Failed;
use nodewise_machine::printable::printable;

use crate::draw::Line;
use crate::play::{Answers, Outcome};

/// A difference that is wanted.
pub struct Rule {
    /// Its name in the table.
    pub name: &'static str,
    /// Whether the rule holds with strict settings too.
    pub strict: bool,
    /// Whether it is why the two outcomes, the original's first, differ.
    covers: fn(&Line, &Outcome, &Outcome) -> bool,
}

const fn plain(name: &'static str, covers: fn(&Line, &Outcome, &Outcome) -> bool) -> Rule {
    Rule { name, strict: false, covers }
}

const fn always(name: &'static str, covers: fn(&Line, &Outcome, &Outcome) -> bool) -> Rule {
    Rule { name, strict: true, covers }
}

/// The rules.
pub const RULES: [Rule; 17] = [
    always("control characters", control_characters),
    always("device numbers", device_numbers),
    always("count beyond --all", count_beyond_all),
    always("processes beyond 2^31", processes_beyond),
    always("memhog's short file", short_file),
    plain("numbers beyond 2^32", numbers_beyond),
    plain("nodes of devices", nodes_of_devices),
    plain("shared policies", shared_policies),
    plain("verified offset", verified_offset),
    plain("negative keys", negative_keys),
    plain("local in --show", local_in_show),
    plain("policies in --show", policies_in_show),
    plain("inverse sets", inverse_sets),
    plain("nodes for CPUs", nodes_for_cpus),
    plain("unreadable processes", unreadable_processes),
    plain("--json", json),
    plain("process numbers of migratepages", migrated_process),
];

/// The rule by which two outcomes may differ.
pub fn find(line: &Line, answers: Answers, original: &Outcome, ours: &Outcome) -> Option<&'static str> {
    let holds =
        |rule: &&Rule| (rule.strict || answers == Answers::Plain) && (rule.covers)(line, original, ours);
    RULES.iter().find(holds).map(|rule| rule.name)
}

/// Compares the rules with the table.
pub fn are_documented() -> Result<(), Failed> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compat.md");
    let text = std::fs::read_to_string(path)?;
    let table = text.split("| rule | strict too |").nth(1).ok_or("docs/compat.md has no table of rules")?;
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    let documented: Vec<(String, bool)> = rows
        .map(|row| {
            let mut cells = row.split('|').map(str::trim).skip(1);
            let name = cells.next().unwrap_or_default().replace('`', "");
            (name, cells.next() == Some("yes"))
        })
        .collect();
    let known: Vec<(String, bool)> = RULES.iter().map(|rule| (rule.name.to_owned(), rule.strict)).collect();
    if documented == known {
        return Ok(());
    }
    Err(format!("docs/compat.md has the rules\n{documented:?}\nand this test\n{known:?}").into())
}

/// Whether all but standard error is the same.
fn only_errors_differ(original: &Outcome, ours: &Outcome) -> bool {
    original.status == ours.status && original.out == ours.out && original.effects == ours.effects
}

/// The same outcome with another standard error.
fn with_errors(outcome: &Outcome, err: String) -> Outcome {
    Outcome { err, ..outcome.clone() }
}

/// Lines of a text that fulfil a condition.
fn kept(text: &str, keep: impl Fn(&str) -> bool) -> String {
    text.split_inclusive('\n').filter(|line| keep(line)).collect()
}

/// Characters that drive a terminal are written as escapes.
fn control_characters(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let visible = |text: &str| text.split('\n').map(printable).collect::<Vec<_>>().join("\n");
    let (out, err) = (visible(&original.out), visible(&original.err));
    Outcome { out, err, ..original.clone() } == *ours
}

/// The originals search the disks for a file's and name what they looked at last.
fn device_numbers(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let plain = |text: &str| {
        let text = kept(text, |line| !line.contains("Cannot parse sysfs device"));
        let words = text.split(' ').map(|word| {
            let numbers = word
                .split_once(':')
                .is_some_and(|(major, minor)| major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok());
            if numbers { "M:m" } else { word }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    line.words.iter().any(|word| word.contains("file:"))
        && only_errors_differ(original, ours)
        && plain(&original.err) == plain(&ours.err)
}

/// Behind `--all` the originals name the size of their masks of CPUs, and not of nodes.
fn count_beyond_all(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let plain = |text: &str| {
        let warning = "node argument ";
        let Some((before, behind)) = text.split_once(warning) else { return text.to_owned() };
        format!("{before}{warning}N{}", behind.trim_start_matches(|c: char| c.is_ascii_digit()))
    };
    line.has_option('a', "all")
        && line.words.iter().any(|word| word.contains('+'))
        && plain(&original.err) == plain(&ours.err)
        && only_errors_differ(original, ours)
}

/// A number that no process has is not made another's.
fn processes_beyond(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    line.tool == "numastat"
        && line.words.iter().any(|word| word.parse::<u128>().is_ok_and(|number| number > i32::MAX as u128))
        && original.err.contains("Can't read /proc/")
        && ours.err.contains("Can't read /proc/")
}

/// A file that is shorter than the memory is made longer.
fn short_file(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    const SIGBUS: i32 = 128 + 7;
    line.tool == "memhog" && line.has(&["-f"]) && original.status == SIGBUS && ours.status == 0
}

/// A number beyond 32 bits names nothing.
fn numbers_beyond(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let is_large = |text: &str| text.parse::<u128>().is_ok_and(|number| number > u32::MAX as u128);
    let names_one = |word: &String| word.split(|c: char| !c.is_ascii_digit()).any(is_large);
    original != ours && line.words.iter().any(names_one) && ours.err.contains("out of range")
}

/// A device whose node the kernel does not say is on the only node, one behind a bridge on its own.
fn nodes_of_devices(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    const KINDS: [&str; 5] = ["netdev:", "block:", "file:", "ip:", "pci:"];
    let _ = ours;
    line.words.iter().any(|word| KINDS.iter().any(|kind| word.contains(kind)))
        && ["Kernel does not know node mask", "Cannot read node mask", "Illegal characters"]
            .iter()
            .any(|warning| original.err.contains(warning))
}

/// Weights and several preferred nodes hold for shared memory too; 2.0.16 prefers none there.
fn shared_policies(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let shared = line.has_option('f', "file") || line.has_option('S', "shm");
    let weighted = line.has_option('w', "weighted-interleave");
    let preferred = line.has_option('p', "preferred") || line.has_option('P', "preferred-many");
    let refused =
        original.err.ends_with("mbind: Invalid argument\nsetting preferred node: Invalid argument\n");
    shared && original != ours && (weighted || (preferred && (refused || original.out != ours.out)))
}

/// A part of shared memory behind its own length can be verified.
fn verified_offset(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    original.err.contains(" beyond its length ")
        && original.err.ends_with(" at --verify\n")
        && !ours.err.contains("at --verify")
}

/// Keys of segments may have the highest bit.
fn negative_keys(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    line.has_option('I', "shmid")
        && original.err.contains("numactl: cannot get key for newly created shm key file")
        && !ours.err.contains("numactl: cannot get key for newly created shm key file")
}

/// `--show` ends the line behind `preferred node:`.
fn local_in_show(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let swallowed = "policy: local\npreferred node: physcpubind:";
    let ended = original.out.replace(swallowed, "policy: local\npreferred node: current\nphyscpubind:");
    original.out.contains(swallowed) && Outcome { out: ended, ..original.clone() } == *ours
}

/// `--show` knows policies with flags and with weights, and the node that is preferred first.
fn policies_in_show(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let unknown = original.out.contains("policy: [") || original.out.contains("(preferred-many)");
    unknown && original.status == ours.status && original.err == ours.err && original.effects == ours.effects
}

/// What is inverted is inverted among the nodes that exist.
fn inverse_sets(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let _ = (original, ours);
    line.words.iter().any(|word| word.contains('!'))
}

/// `-N` may name nodes without memory, and `--show` names them.
fn nodes_for_cpus(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let _ = (line, original, ours);
    false
}

/// One process that cannot be read costs its own row, and the exit status says so.
fn unreadable_processes(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    line.tool == "numastat" && original.err.contains("Can't read /proc/") && original.err == ours.err
}

/// `--json` is among the options that a word may stand for.
fn json(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    ours.err.contains("--json") && original.out == ours.out && original.status == ours.status
}

/// A number that no process has is said to be none.
fn migrated_process(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let number = line.words.iter().filter_map(|word| word.parse::<u128>().ok()).max().unwrap_or(0);
    let expected = with_errors(original, "migrate_pages: No such process\n".to_owned());
    line.tool == "migratepages" && number > u32::MAX as u128 && Outcome { status: 1, ..expected } == *ours
}
