//! The values that fit an argument: its own where it has a list, else what its name in the help asks for.

use clap::{Arg, CommandFactory as _};
use nodewise_diagnose::rules;
use nodewise_machine::{Machine, NodeId, PolicyMode};
use nodewise_source::Detail;
use nodewise_source::process::search;
use nodewise_source::tree::Tree;

use super::{Answer, CompletionKind};
use crate::cli::Cli;
use crate::cli::topics::TOPICS;
use crate::input;
use crate::scenario::SHIPPED;

/// A policy in a few words.
const fn policy_meaning(mode: PolicyMode) -> &'static str {
    match mode {
        PolicyMode::Default => "the policy that programs start with",
        PolicyMode::Local => "the node of the CPU that touches a page first",
        PolicyMode::Bind => "these nodes only",
        PolicyMode::Preferred => "this node first",
        PolicyMode::PreferredMany => "these nodes first",
        PolicyMode::Interleave => "page by page over these nodes",
        PolicyMode::WeightedInterleave => "page by page, in proportion to weights",
    }
}

/// Completions of an argument whose value begins with `begun`, on the machine that was named.
pub fn values(argument: &Arg, begun: &str, machine: Option<&str>) -> Answer {
    let mut answer = Answer::default();
    // The last of several values is being typed.
    let head = match argument.get_value_delimiter() {
        Some(delimiter) => begun.rfind(delimiter).map_or("", |at| &begun[..=at]),
        None => "",
    };
    for value in argument.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
        let meaning = value.get_help().map(ToString::to_string).unwrap_or_default();
        answer.offer(format!("{head}{}", value.get_name()), meaning);
    }
    if !answer.words.is_empty() {
        return answer;
    }
    let names = argument.get_value_names().unwrap_or_default();
    let names = names.first().map_or("", |name| name.as_str());
    for name in names.split('|') {
        by_name(name, argument, begun, machine, &mut answer);
    }
    answer
}

/// Adds what fits a value with this name.
fn by_name(name: &str, argument: &Arg, begun: &str, named: Option<&str>, answer: &mut Answer) {
    let machine = |detail| input::named(named.unwrap_or("live"), detail).map(|input| input.machine);
    match name {
        "FILE" | "[LABEL=]FILE" | "PATH" | "REPORT" => answer.kind = CompletionKind::Files,
        "SCENARIO" => {
            answer.kind = CompletionKind::Files;
            for (scenario, _) in SHIPPED {
                answer.offer(scenario, "comes with nodewise");
            }
        }
        "DIR" => answer.kind = CompletionKind::Directories,
        "CMD" | "PROGRAM" | "COMMAND" => answer.kind = CompletionKind::Programs,
        "M" | "A" | "B" => {
            answer.kind = CompletionKind::Files;
            answer.offer("live", "this machine");
        }
        "NODE" | "NODES" => {
            if let Ok(machine) = machine(Detail::Nodes) {
                nodes(&machine, name == "NODES", begun, answer);
            }
        }
        "CPUS" => {
            if let Ok(machine) = machine(Detail::Nodes) {
                cpus(&machine, answer);
            }
        }
        "DEVICE" => {
            if let Ok(machine) = machine(Detail::Overview) {
                devices(&machine, argument.get_id() == "near", answer);
            }
        }
        "PID" => processes(answer),
        "POLICY" => {
            for mode in PolicyMode::ALL {
                // Nodes follow a colon.
                let colon = if matches!(mode, PolicyMode::Default | PolicyMode::Local) { "" } else { ":" };
                answer.offer(format!("{}{colon}", mode.word()), policy_meaning(mode));
            }
        }
        "RULE" | "RULE[:SUBJECT]" => {
            for rule in rules::ALL {
                answer.offer(rule.id, rule.title);
            }
        }
        "VERB" => answer.offer_verbs(&Cli::command()),
        "TOPIC" => {
            for topic in &TOPICS {
                answer.offer(topic.names[0], topic.about);
            }
        }
        _ => {}
    }
}

/// Numbers of nodes; behind a comma those that the list lacks.
fn nodes(machine: &Machine, several: bool, begun: &str, answer: &mut Answer) {
    let head = if several { begun.rfind(',').map_or("", |at| &begun[..=at]) } else { "" };
    let there: Vec<&str> = head.split(',').collect();
    for id in machine.nodes.keys() {
        let number = id.to_string();
        if !there.contains(&number.as_str()) {
            answer.offer(format!("{head}{number}"), about(machine, *id));
        }
    }
    if several && head.is_empty() {
        answer.offer("all", "all nodes that may be used");
    }
}

fn about(machine: &Machine, id: NodeId) -> String {
    let memory = machine.memory_of(id).map(|memory| memory.to_string());
    let cpus = machine.nodes.get(&id).map(|node| &node.cpus).filter(|cpus| !cpus.is_empty());
    let facts: Vec<String> = memory.into_iter().chain(cpus.map(|cpus| format!("CPUs {cpus}"))).collect();
    facts.join(", ")
}

/// The CPUs of each node.
fn cpus(machine: &Machine, answer: &mut Answer) {
    for node in machine.nodes.values().filter(|node| !node.cpus.is_empty()) {
        answer.offer(node.cpus.to_string(), format!("node {}", node.id));
    }
}

/// Devices, with their classes where an option takes them so.
fn devices(machine: &Machine, with_class: bool, answer: &mut Answer) {
    let place = |node: Option<NodeId>| node.map_or(String::new(), |node| format!("node {node}"));
    for device in &machine.devices {
        for name in &device.names {
            let word =
                if with_class { format!("{}:{}", name.class.word(), name.name) } else { name.name.clone() };
            answer.offer(word, place(device.node));
        }
    }
    if with_class {
        for (index, gpu) in machine.gpus().into_iter().enumerate() {
            answer.offer(format!("gpu:{index}"), place(gpu.node));
        }
    }
}

/// Processes that run here, by name; the numbers of those with the same name are its meaning.
fn processes(answer: &mut Answer) {
    let tree = Tree::live();
    let Ok(pids) = search::all(&tree) else { return };
    for pid in pids {
        let Ok(Some(name)) = search::name(&tree, pid) else { continue };
        let Ok(name) = String::from_utf8(name) else { continue };
        // A name with blanks or quotes would have to be quoted for each shell.
        if name.is_empty() || name.contains(|c: char| !c.is_ascii_alphanumeric() && !"._-+@:/".contains(c)) {
            continue;
        }
        let numbers = answer.words.entry(name).or_default();
        if numbers.is_empty() {
            *numbers = format!("process {pid}");
        } else if numbers.len() < MOST_OF_A_MEANING {
            *numbers += &format!(", {pid}");
        }
    }
}

/// Bytes of a meaning behind which no more is added.
const MOST_OF_A_MEANING: usize = 40;
