//! Memory of several speeds.

use nodewise_machine::{NodeId, NodeSet};
use serde_json::Value;

use crate::checks::doctor::{fill, run};
use crate::checks::same;
use crate::kernel;
use crate::nodewise::Context;
use crate::observer::Observed;
use crate::setting::{self, Setting};

use super::{about_nodes, fires, is_about, is_silent, mended, restart, started_by};

const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";
const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
/// Memory of a program, in KiB: of three nodes each has more than a twentieth of a node.
const MEMORY: u64 = 96 << 10;

/// The node without CPUs, and the first one with some.
fn slow_and_fast(context: &Context) -> Result<(NodeId, NodeId), String> {
    let with_cpus = context.seen.nodes_with_cpus();
    let slow = context.seen.nodes_with_memory().difference(&with_cpus).first();
    slow.zip(with_cpus.first()).ok_or_else(|| "expected a node without CPUs".to_owned())
}

/// Memory of a program on a node, in bytes by its own count.
fn on_node(program: &mut Observed, node: NodeId) -> Result<u64, String> {
    let mappings = program.pages()?;
    Ok(mappings.values().filter_map(|pages| pages.nodes.get(&node.number())).sum())
}

/// Bytes that a finding is about, against a count of ours: other pages of the program are few.
fn concerns(finding: &Value, expected: u64) -> Result<(), String> {
    let named = finding["concerns_bytes"].as_u64().unwrap_or_default();
    let is_near = named.abs_diff(expected) <= expected / 10;
    same(&format!("whether {named} bytes are about {expected}: {finding}"), is_near, true)
}

/// A kernel that puts all nodes into one tier.
pub fn flat(context: &Context) -> Result<(), String> {
    let (slow, _) = slow_and_fast(context)?;
    let finding = fires(context, "tiers-flat")?;
    about_nodes(&finding, &[slow])?;
    // 250 ns against 80, and 30 GB/s against 100.
    let summary = finding["summary"].to_string();
    same(&format!("whether {summary} has the ratio"), summary.contains("3.3 times"), true)
}

/// A kernel that reads the firmware's tables into tiers.
pub fn apart(context: &Context) -> Result<(), String> {
    same("tiers", context.seen.tiers.len(), 2)?;
    is_silent(context, "tiers-flat")
}

/// Interleaving over all nodes.
pub fn interleaved(context: &Context) -> Result<(), String> {
    let (slow, fast) = slow_and_fast(context)?;
    let cpu = context.seen.cpus_of(fast).first().ok_or("a node without CPUs")?;
    let way = format!("kib={MEMORY} cpu={cpu}");
    let all = [context.path(), "run", "--interleave=all", "--"];
    let mut program = Observed::start("interleaved", &all, &way)?;
    let rule = "slow-node-in-interleave";
    let finding = fires(context, rule)?;
    is_about(&finding, &program)?;
    about_nodes(&finding, &[slow])?;
    concerns(&finding, on_node(&mut program, slow)?)?;
    drop(program);
    let words = restart(context, &finding)?;
    let mut program = started_by(&words, &way)?;
    is_silent(context, rule)?;
    same("memory on the slow node", on_node(&mut program, slow)? < 1 << 20, true)
}

/// A way down without a way up, and the reverse.
pub fn half(context: &Context) -> Result<(), String> {
    let (balancing, demotion) = (Setting::with(BALANCING, "1")?, Setting::with(DEMOTION, "1")?);
    let rule = "half-tiering";
    let finding = mended(context, rule)?;
    same("balancing", kernel::line(BALANCING)?.as_str(), "3")?;
    run(context, &finding["mend"][0]["undo"])?;
    fires(context, rule)?;
    balancing.set("2")?;
    is_silent(context, rule)?;
    demotion.set("0")?;
    let finding = mended(context, rule)?;
    same("demotion", kernel::line(DEMOTION)?.as_str(), "true")?;
    run(context, &finding["mend"][0]["undo"])?;
    fires(context, rule)?;
    balancing.set("1")?;
    is_silent(context, rule)
}

/// Pages of programs that are bound to a node, after the kernel needed room there.
pub fn past_a_binding(context: &Context) -> Result<(), String> {
    let (slow, fast) = slow_and_fast(context)?;
    let rule = "demotion-breaks-binding";
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let _demotion = Setting::with(DEMOTION, "1")?;
    let mut programs = vec![Observed::start("bound", &[], &format!("kib={MEMORY} policy=bind:{fast}"))?];
    is_silent(context, rule)?;
    programs.extend(fill(context, fast, &format!(" policy=bind:{fast}"))?);
    // The node is full: what comes now pushes out what was there.
    programs.push(Observed::start("needs room", &[], &format!("kib={MEMORY} policy=bind:{fast}"))?);
    let finding = fires(context, rule)?;
    let found = programs
        .iter_mut()
        .find(|program| Some(u64::from(program.pid)) == finding["subject"]["pid"].as_u64());
    let found = found.ok_or_else(|| format!("expected a bound program: {finding}"))?;
    about_nodes(&finding, &[slow])?;
    concerns(&finding, on_node(found, slow)?)?;
    run(context, &finding["mend"][0]["commands"])?;
    same("demotion", kernel::line(DEMOTION)?.as_str(), "false")?;
    is_silent(context, rule)
}

/// The same weight for all nodes, on a kernel that would work out others.
pub fn weights(context: &Context) -> Result<(), String> {
    let (slow, fast) = slow_and_fast(context)?;
    let nodes: NodeSet = context.seen.nodes_with_memory();
    let weight = |node: NodeId| kernel::line(&format!("{WEIGHTS}/node{node}"));
    let automatic = (weight(fast)?, weight(slow)?);
    nodes.iter().try_for_each(|node| setting::write(&format!("{WEIGHTS}/node{node}"), "1"))?;
    let weighted = [context.path(), "run", "--weighted-interleave=all", "--"];
    let program = Observed::start("weighted", &weighted, &format!("kib={MEMORY}"))?;
    let rule = "weights-not-set";
    let finding = fires(context, rule)?;
    is_about(&finding, &program)?;
    let ratio = finding["evidence"].to_string();
    same(&format!("whether {ratio} has the ratio"), ratio.contains("\"3.3\""), true)?;
    let mend = &finding["mend"][0];
    run(context, &mend["commands"])?;
    same("weights that the kernel works out", (weight(fast)?, weight(slow)?), automatic)?;
    is_silent(context, rule)?;
    run(context, &mend["undo"])?;
    same("weight, undone", weight(fast)?.as_str(), "1")?;
    fires(context, rule)?;
    run(context, &mend["commands"])
}
