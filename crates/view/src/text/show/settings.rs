//! Kernel settings that decide where memory goes, and what this process may use.

use std::collections::BTreeMap;

use nodewise_machine::{Machine, NodeSet, Settings, check::node_names};

use crate::digest::counts::cpu_names;
use crate::style::Ink;
use crate::text::line::{Line, Page};

/// Writes the settings that are known.
pub(super) fn settings(machine: &Machine, page: &mut Page) {
    let mut words = words(&machine.settings);
    if machine.settings.interleave_weights_auto == Some(true) && machine.nodes.len() > 1 {
        words.push("interleave weights automatic".to_owned());
    }
    let weights = weights(&machine.settings);
    let boot = machine.settings.command_line.as_deref().map(boot_words).unwrap_or_default();
    if words.is_empty() && weights.is_none() && boot.is_empty() {
        return;
    }
    page.heading("Settings", "");
    if !words.is_empty() {
        page.line(2, &format!("  {}", words.join(", ")).into());
    }
    if let Some(weights) = weights {
        page.line(4, &format!("  interleave weights {weights}").into());
    }
    if !boot.is_empty() {
        page.line(4, &format!("  boot parameters {}", boot.join(" ")).into());
    }
}

/// The settings under the kernel's names, with their meaning where the value is a code.
fn words(settings: &Settings) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(settings.numa_balancing.map(|bits| {
        // NUMA_BALANCING_NORMAL 1 and NUMA_BALANCING_MEMORY_TIERING 2, Linux 5.18.
        let meaning = match bits {
            0 => "off",
            1 => "on",
            2 => "tiering",
            3 => "on and tiering",
            _ => "unknown bits",
        };
        format!("numa_balancing {bits} ({meaning})")
    }));
    words.extend(settings.zone_reclaim_mode.map(|bits| {
        let meaning = if bits == 0 { "off" } else { "reclaims before it goes to other nodes" };
        format!("zone_reclaim_mode {bits} ({meaning})")
    }));
    words.extend(settings.transparent_hugepage.as_ref().map(|word| {
        let defrag = settings.transparent_hugepage_defrag.as_ref();
        let defrag = defrag.map(|word| format!(" (defrag {word})")).unwrap_or_default();
        format!("transparent_hugepage {word}{defrag}")
    }));
    words.extend(
        settings.demotion_enabled.map(|on| format!("demotion {}", if on { "enabled" } else { "disabled" })),
    );
    words.extend(settings.swappiness.map(|value| format!("swappiness {value}")));
    words.extend(governors(settings));
    words
}

/// The frequency governors, where they differ with their CPUs.
fn governors(settings: &Settings) -> Option<String> {
    match settings.governors.iter().collect::<Vec<_>>()[..] {
        [] => None,
        [(name, _)] => Some(format!("governor {name}")),
        ref several => {
            let words: Vec<String> =
                several.iter().map(|(name, cpus)| format!("{name} ({})", cpu_names(cpus))).collect();
            Some(format!("governors {}", words.join(" and ")))
        }
    }
}

/// Weights of weighted interleave by node, unless all are 1: `4 on nodes 0-1, 1 on node 2`.
fn weights(settings: &Settings) -> Option<String> {
    if settings.interleave_weights.values().all(|weight| *weight == 1) {
        return None;
    }
    let mut nodes: BTreeMap<u32, NodeSet> = BTreeMap::new();
    for (node, weight) in &settings.interleave_weights {
        nodes.entry(*weight).or_default().insert(*node);
    }
    let words: Vec<String> =
        nodes.iter().rev().map(|(weight, nodes)| format!("{weight} on {}", node_names(nodes))).collect();
    Some(words.join(", "))
}

/// Kernel parameters that shape memory and CPUs (admin-guide/kernel-parameters).
const PARAMETERS: [&str; 22] = [
    "numa",
    "numa_balancing",
    "numa_policy",
    "numa_zonelist_order",
    "mem",
    "memmap",
    "memory_hotplug.memmap_on_memory",
    "memhp_default_state",
    "movable_node",
    "kernelcore",
    "movablecore",
    "hugepages",
    "hugepagesz",
    "default_hugepagesz",
    "hugetlb_cma",
    "transparent_hugepage",
    "efi",
    "isolcpus",
    "nohz_full",
    "maxcpus",
    "nr_cpus",
    "nosmt",
];

/// The words of a kernel command line that are about memory and CPUs.
fn boot_words(line: &str) -> Vec<&str> {
    line.split_ascii_whitespace()
        .filter(|word| PARAMETERS.contains(&word.split('=').next().unwrap_or(word)))
        .collect()
}

/// Writes what keeps this process from a part of the machine, if anything does.
pub(super) fn limits(machine: &Machine, page: &mut Page) {
    let online = machine.online_cpus();
    let memory = machine.nodes_with_memory();
    let cpus = machine.allowed_cpus.as_ref().filter(|allowed| !online.is_subset(allowed));
    let nodes = machine.allowed_nodes.as_ref().filter(|allowed| !memory.is_subset(allowed));
    if cpus.is_none() && nodes.is_none() {
        return;
    }
    page.heading("Limits", "of the process that looked (cpuset or affinity)");
    if let Some(cpus) = cpus {
        let cpus = cpus.intersection(&online);
        let cpus = if cpus.is_empty() { "none".to_owned() } else { cpus.to_string() };
        page.line(
            4,
            &Line::from("  CPUs ").with(Ink::Notable, cpus).with(Ink::Plain, format!(" of {online}")),
        );
    }
    if let Some(nodes) = nodes {
        let nodes = nodes.intersection(&memory);
        let nodes = if nodes.is_empty() { "none".to_owned() } else { nodes.to_string() };
        page.line(
            4,
            &Line::from("  memory of nodes ")
                .with(Ink::Notable, nodes)
                .with(Ink::Plain, format!(" of {memory}")),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;

    #[test]
    fn only_parameters_about_memory_and_cpus_are_told() {
        assert_eq!(
            boot_words("root=UUID=1 quiet numa=fake=8 hugepagesz=1G hugepages=4 numactl=1 nosmt"),
            ["numa=fake=8", "hugepagesz=1G", "hugepages=4", "nosmt"]
        );
    }

    #[test]
    fn weights_of_one_are_not_told() {
        let mut settings = Settings::default();
        assert_eq!(weights(&settings), None);
        settings.interleave_weights = [(NodeId::new(0), 1), (NodeId::new(1), 1)].into();
        assert_eq!(weights(&settings), None);
        settings.interleave_weights.insert(NodeId::new(0), 5);
        assert_eq!(weights(&settings).as_deref(), Some("5 on node 0, 1 on node 1"));
    }

    #[test]
    fn governors_that_differ_come_with_their_cpus() {
        let mut settings = Settings::default();
        settings.governors.insert("performance".to_owned(), [0, 1].into());
        assert_eq!(words(&settings), ["governor performance"]);
        settings.governors.insert("powersave".to_owned(), [2].into());
        assert_eq!(words(&settings), ["governors performance (CPUs 0-1) and powersave (CPU 2)"]);
    }

    #[test]
    fn codes_are_told_with_their_meaning() {
        let settings = Settings {
            numa_balancing: Some(2),
            zone_reclaim_mode: Some(0),
            transparent_hugepage: Some("madvise".to_owned()),
            demotion_enabled: Some(true),
            ..Settings::default()
        };
        assert_eq!(
            words(&settings).join(", "),
            "numa_balancing 2 (tiering), zone_reclaim_mode 0 (off), transparent_hugepage madvise, demotion enabled"
        );
    }
}
