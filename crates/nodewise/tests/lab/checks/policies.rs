//! Every policy of `nodewise run`: the pages of a program lie where the policy says, page by page.

use std::fs;

use nodewise_machine::{NodeId, NodeSet};
use nodewise_model::{BuiltAt, FallbackOrders};

use super::same;
use crate::kernel;
use crate::nodewise::{Context, Probed};

/// Memory of a probe: 1,024 small pages.
const KIB: u64 = 4096;

fn all_on(what: &str, probed: &Probed, node: u32) -> Result<(), String> {
    match probed.nodes.iter().position(|page| *page != i64::from(node)) {
        None => Ok(()),
        Some(page) => Err(format!("{what}: page {page} is on {}, expected node {node}", probed.nodes[page])),
    }
}

fn memory_nodes(context: &Context) -> Vec<u32> {
    context.seen.nodes_with_memory().iter().map(NodeId::number).collect()
}

/// The first of these nodes in the kernel's order from a node.
fn nearest(context: &Context, from: u32, nodes: &[u32]) -> u32 {
    let orders = FallbackOrders::from_machine(&context.seen, BuiltAt::Boot);
    let first = orders.from(NodeId::new(from)).iter().find(|node| nodes.contains(&node.number()));
    first.expect("the order has every node with memory").number()
}

/// Nodes as an option takes them: `0,2`.
fn join(nodes: &[u32]) -> String {
    nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

pub fn membind(context: &Context) -> Result<(), String> {
    let nodes = memory_nodes(context);
    for node in &nodes {
        let probed = context.probe(&format!("--membind={node}"), KIB, "small")?;
        same("policy", probed.policy.as_str(), format!("bind:{node}").as_str())?;
        all_on(&format!("membind={node}"), &probed, *node)?;
    }
    // Several nodes are not spread: the nearest to the CPU is filled first.
    let last_two = &nodes[nodes.len() - 2..];
    let probed = context.probe(&format!("--membind={} --physcpubind=0", join(last_two)), KIB, "small")?;
    all_on("membind of two", &probed, nearest(context, 0, last_two))
}

/// Every page against the node whose turn it is: page number modulo the number of nodes.
fn in_turn(probed: &Probed, nodes: &[u32], pages_per_turn: u64) -> Result<(), String> {
    for (at, node) in probed.nodes.iter().enumerate() {
        let turn = (probed.first_page + at as u64) / pages_per_turn;
        let expected = nodes[(turn % nodes.len() as u64) as usize];
        if *node != i64::from(expected) {
            return Err(format!("page {at} is on {node}, expected node {expected}"));
        }
    }
    Ok(())
}

pub fn interleave(context: &Context) -> Result<(), String> {
    let nodes = memory_nodes(context);
    let probed = context.probe("--interleave=all", KIB, "small")?;
    same("pages", probed.nodes.len(), 1024)?;
    in_turn(&probed, &nodes, 1)?;
    let some: Vec<u32> = nodes.iter().copied().skip(1).collect();
    let probed = context.probe(&format!("--interleave={}", join(&some)), KIB, "small")?;
    in_turn(&probed, &some, 1)
}

pub fn interleave_huge(context: &Context) -> Result<(), String> {
    let probed = context.probe("--interleave=all", 16 * 1024, "huge")?;
    in_turn(&probed, &memory_nodes(context), 512)
}

/// Sets the weights of nodes while something runs, and puts them back.
fn with_weights<T>(weights: &[(u32, u32)], run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let set = |weights: &[(u32, u32)]| -> Result<(), String> {
        for (node, weight) in weights {
            let path = format!("/sys/kernel/mm/mempolicy/weighted_interleave/node{node}");
            fs::write(&path, format!("{weight}\n")).map_err(|error| format!("{path}: {error}"))?;
        }
        Ok(())
    };
    set(weights)?;
    let result = run();
    set(&weights.iter().map(|(node, _)| (*node, 1)).collect::<Vec<_>>())?;
    result
}

pub fn weighted_interleave(context: &Context) -> Result<(), String> {
    let weights: Vec<(u32, u32)> = memory_nodes(context).into_iter().zip([3, 1, 2, 1, 1, 4, 1, 1]).collect();
    let probed = with_weights(&weights, || context.probe("--weighted-interleave=all", KIB, "small"))?;
    let cycle: Vec<u32> = weights.iter().flat_map(|(node, weight)| vec![*node; *weight as usize]).collect();
    in_turn(&probed, &cycle, 1)
}

pub fn preferred(context: &Context) -> Result<(), String> {
    for node in memory_nodes(context) {
        let probed = context.probe(&format!("--preferred={node}"), KIB, "small")?;
        same("policy", probed.policy.as_str(), format!("prefer:{node}").as_str())?;
        all_on(&format!("preferred={node}"), &probed, node)?;
    }
    Ok(())
}

pub fn preferred_many(context: &Context) -> Result<(), String> {
    let nodes = memory_nodes(context);
    let some = &nodes[1..];
    let options = format!("--preferred-many={} --physcpubind=0", join(some));
    let probed = context.probe(&options, KIB, "small")?;
    all_on("preferred-many", &probed, nearest(context, 0, some))
}

pub fn localalloc(context: &Context) -> Result<(), String> {
    for node in context.seen.nodes_with_cpus().iter().map(NodeId::number) {
        for options in [format!("--localalloc --cpunodebind={node}"), format!("--cpunodebind={node}")] {
            let probed = context.probe(&options, KIB, "small")?;
            same("node of the CPU", probed.cpu_node, node)?;
            all_on(&options, &probed, node)?;
        }
    }
    Ok(())
}

pub fn cpu_binding(context: &Context) -> Result<(), String> {
    for node in &context.seen.nodes_with_cpus() {
        let probed = context.probe(&format!("--cpunodebind={node}"), 64, "small")?;
        same("CPUs", kernel::list(&probed.cpus), kernel::cpus_of(node.number()))?;
    }
    for cpu in &context.seen.online_cpus() {
        let probed = context.probe(&format!("--physcpubind={cpu}"), 64, "small")?;
        same("CPUs", probed.cpus, cpu.to_string())?;
    }
    Ok(())
}

pub fn node_words(context: &Context) -> Result<(), String> {
    let nodes: NodeSet = context.seen.nodes_with_memory();
    let first = nodes.first().expect("there is memory");
    let others = nodes.difference(&NodeSet::from_iter([first]));
    for (options, policy) in [
        ("--interleave=all".to_owned(), format!("interleave:{nodes}")),
        (format!("--interleave=!{first}"), format!("interleave:{others}")),
        ("--membind=+1".to_owned(), format!("bind:{}", nodes.nth(1).expect("there are two nodes"))),
        ("--cpunodebind=0 --membind=same".to_owned(), "bind:0".to_owned()),
        ("--membind=0 --cpunodebind=same".to_owned(), "bind:0".to_owned()),
    ] {
        same(&options, context.probe(&options, 64, "small")?.policy, policy)?;
    }
    let all = context.probe("--physcpubind=!0", 64, "small")?.cpus;
    let cpus = context.seen.online_cpus();
    let rest: Vec<u32> = cpus.iter().map(|cpu| cpu.number()).filter(|cpu| *cpu != 0).collect();
    same("--physcpubind=!0", kernel::list(&all), rest)
}

pub fn balancing(context: &Context) -> Result<(), String> {
    let probed = context.probe("--membind=0-1 --balancing", 64, "small")?;
    same("policy", probed.policy.as_str(), "bind=balancing:0-1")
}

/// The guest's devices have no node; one is given one, and loses it again.
pub fn near_device(context: &Context) -> Result<(), String> {
    let folder = "/sys/bus/pci/devices";
    let mut names: Vec<String> = fs::read_dir(folder)
        .map_err(|error| format!("{folder}: {error}"))?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    names.sort_unstable();
    let device = names.last().ok_or("the guest has no PCI device")?;
    let path = format!("{folder}/{device}/numa_node");
    let node = *memory_nodes(context).last().expect("there is memory");
    let set = |value: &str| fs::write(&path, value).map_err(|error| format!("{path}: {error}"));
    set(&node.to_string())?;
    let near = context.probe(&format!("--near=pci:{device}"), KIB, "small");
    let bound = context.probe(&format!("--membind=pci:{device}"), KIB, "small");
    set("-1")?;
    let near = near?;
    all_on("--near", &near, node)?;
    all_on("--membind=pci:", &bound?, node)?;
    // Where its node has no CPUs, those of the nearest that has some are used.
    let home = context.seen.nearest_with_cpus(NodeId::new(node)).expect("there are CPUs");
    same("CPUs", kernel::list(&near.cpus), kernel::cpus_of(home.number()))
}

pub fn huge_never(context: &Context) -> Result<(), String> {
    // Under interleave small pages alternate and huge ones do not: the placement distinguishes them,
    // although the probe asks for huge pages.
    let probed = context.probe("--huge=never --interleave=all", 4 * 1024, "huge")?;
    in_turn(&probed, &memory_nodes(context), 1)
}
