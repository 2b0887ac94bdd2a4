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
    /// Whether the rule is why the two outcomes, the original's first, differ.
    covers: fn(&Line, &Outcome, &Outcome) -> bool,
}

const fn plain(name: &'static str, covers: fn(&Line, &Outcome, &Outcome) -> bool) -> Rule {
    Rule { name, strict: false, covers }
}

const fn always(name: &'static str, covers: fn(&Line, &Outcome, &Outcome) -> bool) -> Rule {
    Rule { name, strict: true, covers }
}

/// A difference that is covered only where the originals do the same with a rewritten line (`reading`).
const fn rewritten(name: &'static str) -> Rule {
    plain(name, |_, _, _| false)
}

/// The rules.
pub const RULES: [Rule; 18] = [
    always("control characters", control_characters),
    always("device numbers", device_numbers),
    always("count beyond --all", count_beyond_all),
    always("processes beyond 2^31", processes_beyond),
    always("memhog's short file", short_file),
    always("crashes", crashes),
    plain("numbers beyond 2^32", numbers_beyond),
    plain("nodes of devices", dots_in_names),
    plain("shared policies", shared_policies),
    plain("verified offset", verified_offset),
    plain("negative keys", negative_keys),
    plain("local in --show", local_in_show),
    plain("policies in --show", policies_in_show),
    rewritten("inverse sets"),
    plain("nodes for CPUs", nodes_in_show),
    plain("unreadable processes", unreadable_processes),
    plain("--json", json),
    plain("process numbers of migratepages", migrated_process),
];

/// The rule by which two outcomes may differ, also where control characters are written as escapes besides.
pub fn find(line: &Line, answers: Answers, original: &Outcome, ours: &Outcome) -> Option<&'static str> {
    let holds = |rule: &Rule, original: &Outcome| {
        (rule.strict || answers == Answers::Plain) && (rule.covers)(line, original, ours)
    };
    let visible = visible(original);
    let rule = RULES.iter().find(|rule| holds(rule, original));
    rule.or_else(|| RULES.iter().find(|rule| holds(rule, &visible))).map(|rule| rule.name)
}

/// An outcome with escapes in place of characters that drive a terminal.
fn visible(outcome: &Outcome) -> Outcome {
    Outcome { out: escaped(&outcome.out), err: escaped(&outcome.err), ..outcome.clone() }
}

fn escaped(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
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

/// Characters that drive a terminal are written as escapes, by which numastat's rows may be in another order.
fn control_characters(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let sorted = |outcome: &Outcome, text: &str| {
        let mut lines: Vec<String> = escaped(text).split('\n').map(str::to_owned).collect();
        if line.tool == "numastat" {
            lines.sort_unstable();
        }
        Outcome { out: lines.join("\n"), err: escaped(&outcome.err), ..outcome.clone() }
    };
    visible(original) != *original && sorted(original, &original.out) == sorted(ours, &ours.out)
}

/// The original dies of SIGSEGV in memory of an impossible size; nodewise refuses it after the same deeds.
fn crashes(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    const SIGSEGV: i32 = 128 + 11;
    let refused = ours.status == 1 && !ours.err.is_empty();
    original.status == SIGSEGV && refused && original.out == ours.out && original.effects == ours.effects
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

/// A number that no process has is not made another's. The originals make several of them the same process.
fn processes_beyond(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let is_beyond = |word: &&String| word.parse::<u128>().is_ok_and(|number| number > i32::MAX as u128);
    let beyond = line.words.iter().filter(is_beyond).count();
    let numbers = |text: &str| {
        let parts = text.split("/proc/").enumerate().map(|(at, part)| match at {
            0 => part,
            _ => part.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit()),
        });
        let mut lines: Vec<String> =
            parts.collect::<Vec<_>>().join("/proc/N").lines().map(str::to_owned).collect();
        if beyond > 1 {
            lines.dedup();
        }
        lines
    };
    line.tool == "numastat"
        && beyond > 0
        && numbers(&original.err) == numbers(&ours.err)
        && only_unreadable_rows_differ(original, ours)
}

/// Whether two tables of numastat differ in rows of processes alone: the originals have one of zeros for a process
/// that cannot be read, or no table at all.
fn only_unreadable_rows_differ(original: &Outcome, ours: &Outcome) -> bool {
    // The heads and totals of tables, which one of nodes shares, and the rows of the table of a single process.
    const HEADS: [&str; 9] = [
        "Per-node process memory",
        "PID ",
        "Node N ",
        "Total ",
        "- ",
        "Huge ",
        "Heap ",
        "Stack ",
        "Private ",
    ];
    let about_processes = |line: &str| line.contains(" (") || HEADS.iter().any(|head| line.starts_with(head));
    let others = |text: &str| kept(text, |line| !about_processes(line) && !line.trim().is_empty());
    original.err.contains("Can't read /proc/")
        && ours.err.contains("Can't read /proc/")
        && (ours.status == original.status || ours.status == 1)
        && others(&original.out).trim_end() == others(&ours.out).trim_end()
        && original.effects == ours.effects
}

/// A file that is shorter than the memory is made longer.
fn short_file(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    const SIGBUS: i32 = 128 + 7;
    line.tool == "memhog" && line.has(&["-f"]) && original.status == SIGBUS && ours.status == 0
}

/// A number beyond 32 bits names nothing: the string with it is invalid.
fn numbers_beyond(line: &Line, _: &Outcome, ours: &Outcome) -> bool {
    let is_large = |text: &str| text.parse::<u128>().is_ok_and(|number| number > u32::MAX as u128);
    let names_one = |word: &String| word.split(|c: char| !c.is_ascii_digit()).any(is_large);
    let invalid = ours.out.lines().find_map(|line| line.strip_prefix('<')?.strip_suffix("> is invalid"));
    ours.status == 1
        && ours.err.contains("out of range")
        && invalid.is_some_and(|text| line.words.iter().any(|word| names_one(word) && word.ends_with(text)))
}

/// Names of network devices may have a dot; one that does not exist is not found.
fn dots_in_names(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let illegal = "Illegal characters in `";
    let Some((before, behind)) = original.err.split_once(illegal) else { return false };
    let Some((name, rest)) = behind.split_once("' specification") else { return false };
    let found = |class: &str| format!("{before}Cannot read node mask for {class} device `{name}'{rest}");
    only_errors_differ(original, ours)
        && name.contains('.')
        && !name.contains('/')
        && ["net", "block"].iter().any(|class| ours.err == found(class))
}

/// Weights and several preferred nodes hold for shared memory too; 2.0.16 prefers none there.
fn shared_policies(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let shared = line.has_option('f', "file") || line.has_option('S', "shm");
    let weighted = line.has_option('w', "weighted-interleave");
    let preferred = line.has_option('p', "preferred") || line.has_option('P', "preferred-many");
    if !shared {
        return false;
    }
    if weighted {
        return unweighted(original) == unweighted(ours);
    }
    let refused =
        original.err.ends_with("mbind: Invalid argument\nsetting preferred node: Invalid argument\n");
    // The original stops there; several nodes for `-p` are wrong usage.
    if preferred && refused {
        return ours.out.starts_with(&original.out) && !ours.err.contains("mbind: ");
    }
    preferred && first_preferred(original) == first_preferred(ours)
}

/// An outcome with plain interleaving in place of weighted, and without the complaint about that.
fn unweighted(outcome: &Outcome) -> Outcome {
    let interleaved =
        |text: &str| text.replace("weighted-interleave :", "interleave :").replace("[6] :", "interleave :");
    let complaint = |line: &str| line.ends_with("wrong policy interleave, expected [6]\n");
    let complains = outcome.out.split_inclusive('\n').any(complaint);
    Outcome {
        status: if complains { 0 } else { outcome.status },
        out: interleaved(&kept(&outcome.out, |line| !complaint(line))),
        err: outcome.err.clone(),
        effects: interleaved(&outcome.effects),
    }
}

/// An outcome with the first of several preferred nodes alone.
fn first_preferred(outcome: &Outcome) -> Outcome {
    let first = |text: &str| {
        let lines = text.split('\n').map(|line| match line.split_once("preferred-many : ") {
            Some((before, nodes)) => {
                format!("{before}preferred-many : {}", nodes.split(' ').next().unwrap_or_default())
            }
            None => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    Outcome { out: first(&outcome.out), effects: first(&outcome.effects), ..outcome.clone() }
}

/// A part of shared memory behind its own length can be verified.
fn verified_offset(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let (stopped, until) = last_line(&original.err);
    stopped.contains(" beyond its length ")
        && stopped.ends_with(" at --verify\n")
        && ours.err.starts_with(until)
        && ours.out.starts_with(&original.out)
        && !ours.err.contains("at --verify")
}

/// The last line of a text, and what precedes it.
fn last_line(text: &str) -> (&str, &str) {
    let begins = text.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
    (&text[begins..], &text[..begins])
}

/// Keys of segments may have the highest bit.
fn negative_keys(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let refuses = |outcome: &Outcome| {
        ["cannot get key for newly created shm key file ", "cannot create key for shm "]
            .iter()
            .any(|refusal| outcome.err.contains(refusal))
    };
    line.has_option('I', "shmid")
        && original.status == 1
        && refuses(original)
        && !refuses(ours)
        && ours.out.starts_with(&original.out)
}

/// `--show` ends the line behind `preferred node:`.
fn local_in_show(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let swallowed = "policy: local\npreferred node: physcpubind:";
    let ended = original.out.replace(swallowed, "policy: local\npreferred node: current\nphyscpubind:");
    original.out.contains(swallowed) && Outcome { out: ended, ..original.clone() } == *ours
}

/// `--show` knows policies with flags and with weights, and the node that is preferred first.
fn policies_in_show(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    const OF_POLICIES: [&str; 6] = [
        "policy: ",
        "preferred node: ",
        "membind: ",
        "interleavemask: ",
        "interleaveweights: ",
        "interleavenode: ",
    ];
    let unknown = original.out.contains("policy: [") || original.out.contains("(preferred-many)");
    // An unknown policy has no preferred node, nor an end of that line.
    let ended = original.out.replace("preferred node: physcpubind:", "physcpubind:");
    let others = |text: &str| kept(text, |line| !OF_POLICIES.iter().any(|key| line.starts_with(key)));
    unknown
        && others(&ended) == others(&ours.out)
        && Outcome { out: ours.out.clone(), ..original.clone() } == *ours
}

/// `--show` names the nodes without memory that have one of the process's CPUs.
fn nodes_in_show(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let nodes = |text: &str| {
        let keys = ["cpubind: ", "nodebind: "];
        let (mut named, mut others) = (Vec::new(), String::new());
        for line in text.split_inclusive('\n') {
            match keys.iter().find_map(|key| line.strip_prefix(key)) {
                Some(nodes) => named.push(nodes.split_whitespace().map(str::to_owned).collect::<Vec<_>>()),
                None => others.push_str(line),
            }
        }
        (named, others)
    };
    let ((theirs, others), (named, ours_others)) = (nodes(&original.out), nodes(&ours.out));
    theirs.len() == named.len()
        && theirs.iter().zip(&named).all(|(theirs, named)| theirs.iter().all(|node| named.contains(node)))
        && others == ours_others
        && Outcome { out: ours.out.clone(), ..original.clone() } == *ours
}

/// One process that cannot be read costs its own row, and the exit status says so.
fn unreadable_processes(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    line.tool == "numastat" && original.err == ours.err && only_unreadable_rows_differ(original, ours)
}

/// `--json` is among the options that a word may stand for.
fn json(_: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let alone = with_errors(ours, ours.err.replace(" '--json'", ""));
    // Where the original has one option only, the word stands for that.
    let decided = ours.err.contains("is ambiguous; possibilities: '--help' '--json'\n")
        && original.err.contains("option '--help' doesn't allow an argument\n");
    ours.err.contains(" '--json'") && (alone == *original || (decided && only_errors_differ(original, ours)))
}

/// A number that no process has is reported as none.
fn migrated_process(line: &Line, original: &Outcome, ours: &Outcome) -> bool {
    let number = line.words.iter().filter_map(|word| word.parse::<u128>().ok()).max().unwrap_or(0);
    let expected = with_errors(original, "migrate_pages: No such process\n".to_owned());
    line.tool == "migratepages" && number > u32::MAX as u128 && Outcome { status: 1, ..expected } == *ours
}
