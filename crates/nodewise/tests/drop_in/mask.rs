//! Parts of an outcome that vary from run to run, or are known to be worded otherwise.

use crate::draw::Line;
use crate::play::Outcome;

/// Whether what a line prints is of the running machine, which moves on.
pub fn moves(line: &Line) -> bool {
    matches!(line.tool, "numastat" | "migspeed")
}

/// An outcome without what varies: numbers of a running machine, and usage texts, whose wording is ours.
pub fn masked(line: &Line, outcome: Outcome) -> Outcome {
    let Outcome { status, out, err, effects } = outcome;
    let err = without_usage(&err);
    let (out, err) = match line.tool {
        "numactl" => (each_line(&out, hardware), err),
        "numastat" => (table(line, &out), err),
        "migspeed" => (each_line(&out, measured), err),
        _ => (out, err),
    };
    Outcome { status, out, err, effects: each_line(&effects, segment) }
}

/// Usage texts begin like this; none says anything behind them.
const USAGES: [&str; 2] = ["usage: numactl [--all", "Usage: numastat ["];

fn without_usage(text: &str) -> String {
    match USAGES.iter().find_map(|usage| text.find(usage)) {
        Some(at) => format!("{}<usage>", &text[..at]),
        None => text.to_owned(),
    }
}

fn each_line(text: &str, mask: impl Fn(&str) -> String) -> String {
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => mask(line) + "\n",
            None => mask(line),
        })
        .collect()
}

/// Sizes of nodes, and the node of the next interleaved page, which depends on how often a program allocated.
fn hardware(line: &str) -> String {
    if line.starts_with("node ") && line.ends_with(" MB") {
        let (name, _) = line.split_once(':').unwrap_or((line, ""));
        return format!("{name}: N MB");
    }
    if let Some((address, rest)) = line.strip_prefix("numactl verify ").and_then(|line| line.split_once('('))
    {
        if u64::from_str_radix(address, 16).is_ok() {
            return format!("numactl verify ADDRESS({rest}");
        }
    }
    if line.starts_with("interleavenode: ") {
        return "interleavenode: N".to_owned();
    }
    match line.strip_suffix(" (interleave next)") {
        Some(_) => "preferred node: N (interleave next)".to_owned(),
        None => line.to_owned(),
    }
}

/// Numbers of a table, with the blanks and hyphens that follow from their width. Which rows hold only zeros, and
/// which are larger, depends on the numbers.
fn table(line: &Line, out: &str) -> String {
    let words = |text: &str| {
        let words = text.split_whitespace().map(|word| match word {
            _ if word.parse::<f64>().is_ok() => "N",
            _ if word.bytes().all(|byte| byte == b'-') => "-",
            _ => word,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let mut lines: Vec<String> = out.lines().map(words).collect();
    let letters: String =
        line.words.iter().filter(|word| word.starts_with('-')).map(String::as_str).collect();
    if letters.contains('z') {
        lines.retain(|line| !line.ends_with(" N"));
    }
    if letters.contains('s') {
        lines.sort_unstable();
    }
    lines.join("\n")
}

/// Addresses, ages of pages and times.
fn measured(line: &str) -> String {
    if let Some((megabytes, _)) = line.split_once(" Mbyte migrated in ") {
        return format!("{megabytes} Mbyte migrated in TIME");
    }
    let Some((address, rest)) = line.split_once(' ') else { return line.to_owned() };
    if address.len() < 8 || u64::from_str_radix(address, 16).is_err() {
        return line.to_owned();
    }
    // Without it all pages are active.
    let words: Vec<&str> = rest.split(' ').filter(|word| !word.starts_with("active=")).collect();
    format!("ADDRESS {}", words.join(" "))
}

/// A segment of System V: its key, which is made of the file's number; its own number; who made it, when, and what
/// of it is in use.
fn segment(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_segment = words.len() == 16 && words.iter().all(|word| word.parse::<i64>().is_ok());
    if !is_segment {
        return line.to_owned();
    }
    // Permissions, size, processes that have it attached, owner and group, resident bytes.
    let kept = [2, 3, 6, 7, 8, 14].map(|at| words[at]);
    format!("segment {}", kept.join(" "))
}
