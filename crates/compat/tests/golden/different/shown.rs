//! `--show`: the lines that the original leaves out or gets wrong.

use super::Context;
use crate::answer::Answer;

/// The recorded answer with these lines put right.
pub fn plain(context: &Context<'_>, recorded: &Answer) -> Answer {
    if !recorded.stdout.starts_with("policy: ") {
        return recorded.clone();
    }
    // The original leaves out this line's end, so that the next one follows at once.
    let text = recorded.stdout.replace("preferred node: physcpubind", "preferred node:\nphyscpubind");
    let mut lines: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim_start().to_owned()))
        .collect();
    nodes_of_our_cpus(context, &mut lines);
    modes_that_the_original_does_not_know(&mut lines);
    let stdout = lines.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    Answer { stdout, ..recorded.clone() }
}

fn value<'l>(lines: &'l mut [(String, String)], name: &str) -> &'l mut String {
    let line = lines.iter_mut().find(|(known, _)| known == name);
    &mut line.expect("the records have this line").1
}

fn nodes_of_our_cpus(context: &Context<'_>, lines: &mut [(String, String)]) {
    let cpus = value(lines, "physcpubind").clone();
    let mut nodes: Vec<u32> = cpus
        .split_whitespace()
        .filter_map(|cpu| node_of(context, cpu.parse().expect("CPUs are numbers")))
        .collect();
    nodes.dedup();
    let nodes: String = nodes.iter().map(|node| format!("{node} ")).collect();
    *value(lines, "cpubind") = nodes.clone();
    *value(lines, "nodebind") = nodes;
}

/// The node of a CPU on the machine of a record.
pub fn node_of(context: &Context<'_>, cpu: u32) -> Option<u32> {
    let section = |part: &str| context.record.section.contains(part);
    match context.file {
        "host-one-node" => Some(0),
        "numactl-mixed" => Some(cpu.min(6) / 3),
        "fakesys-hardware-and-numastat" => {
            if section("one-high") {
                Some(8)
            } else if section("no /sys") || section("empty") {
                None
            } else if section("n32") || section("nodist") || section("bigdist") {
                Some(cpu)
            } else {
                Some(0)
            }
        }
        _ => Some(cpu),
    }
}

fn modes_that_the_original_does_not_know(lines: &mut Vec<(String, String)>) {
    let nodes = value(lines, "preferred").clone();
    let first = nodes.split_whitespace().next().unwrap_or_default().to_owned();
    match value(lines, "policy").as_str() {
        "local" => *value(lines, "preferred node") = "current".to_owned(),
        "preferred-many" => *value(lines, "preferred node") = format!("{first} (preferred-many)"),
        "[8194]" => {
            *value(lines, "policy") = "bind (balancing)".to_owned();
            *value(lines, "preferred node") = first;
            *value(lines, "membind") = nodes;
        }
        "[6]" => {
            *value(lines, "policy") = "weighted-interleave".to_owned();
            *value(lines, "preferred node") = "N (interleave next)".to_owned();
            let weights = vec!["1"; nodes.split_whitespace().count()].join(" ");
            let more = [
                ("interleavemask", nodes),
                ("interleaveweights", weights),
                ("interleavenode", "N".to_owned()),
            ];
            let at = lines.iter().position(|(name, _)| name == "physcpubind").expect("it is there");
            lines.splice(at..at, more.map(|(name, value)| (name.to_owned(), value)));
        }
        _ => {}
    }
}
