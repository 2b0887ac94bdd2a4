//! Memory of several speeds.

use std::fs;

use nodewise_machine::{NodeId, NodeSet};
use serde_json::Value;

use crate::checks::doctor::{Diagnosed, fill, run};
use crate::checks::moving::file;
use crate::checks::running::quick_balancing;
use crate::checks::same;
use crate::cpuset::Cpuset;
use crate::kernel;
use crate::nodewise::{Context, complaint};
use crate::observer::Observed;
use crate::setting::{self, Setting};

use super::{
    about_nodes, at_work, evidence, fires, fires_about, is_about, is_silent, mended, restart, started_by,
};

const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";
const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
const LIMIT: &str = "/proc/sys/kernel/numa_balancing_promote_rate_limit_MBps";
const UNLIMITED: &str = "promotion-unlimited";
/// Memory of a program on the slow node, in bytes, that is worth a finding.
const HOT: u64 = 16 << 20;
/// The most programs whose memory fits neither the fast node nor both.
const MOST_BOUND: usize = 8;
/// Windows in which pages are to move.
const WINDOWS: usize = 4;
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
    let mut programs = Vec::new();
    // With demotion the node never stays full: what comes pushes out what was there.
    loop {
        programs.push(Observed::start("bound", &[], &format!("kib={MEMORY} policy=bind:{fast}"))?);
        if programs.len() == 1 {
            is_silent(context, rule)?;
        }
        let places = programs.iter_mut().map(|program| on_node(program, slow));
        let places = places.collect::<Result<Vec<u64>, String>>()?;
        if places.iter().any(|size| *size >= HOT) {
            break;
        }
        if programs.len() == MOST_BOUND {
            return Err(format!(
                "{MOST_BOUND} programs are bound, and {places:?} bytes of them were demoted"
            ));
        }
    }
    let pids: Vec<u32> = programs.iter().map(|program| program.pid).collect();
    let finding = fires_about(context, rule, &pids).map_err(|_| {
        let demoted = fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let demoted = demoted.lines().filter(|line| line.starts_with("pgdemote")).collect::<Vec<_>>();
        let places = programs.iter_mut().map(|program| on_node(program, slow)).collect::<Vec<_>>();
        format!("{rule} does not fire: {demoted:?}, bytes on the slow node {places:?}")
    })?;
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

/// Hot programs on the slow node, and cold ones that fill a fast one: pages go both ways.
pub fn unlimited(context: &Context) -> Result<(), String> {
    let (slow, fast) = slow_and_fast(context)?;
    // An emulated guest moves less than a real machine in each second.
    let thresholds = file("tiers.toml");
    fs::write(&thresholds, format!("[{UNLIMITED}]\nmib_per_s = 0.1\n")).map_err(|error| error.to_string())?;
    let thresholds = format!("--thresholds={}", thresholds.display());
    let watched = || Diagnosed::with(context, &["--window=15s", &thresholds]);
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let limit = Setting::keep(LIMIT)?;
    let cpu = context.seen.cpus_of(fast).first().ok_or("a node without CPUs")?;
    let group = Cpuset::new(&cpu.to_string(), &NodeSet::from_iter([slow, fast]).to_string())?;
    let enter = format!("echo $$ > {} && exec \"$@\"", group.tasks());
    let hot_on_slow = |name| {
        let program = at_work(name, &["sh", "-c", &enter, "sh"], &format!("kib={MEMORY} cpu={cpu} reads"))?;
        let moved = context.output(&["migrate", &program.pid.to_string(), &format!("--to={slow}")])?;
        same(&format!("migrate: {}", complaint(&moved)), moved.status.success(), true).map(|()| program)
    };
    let checked = hot_on_slow("hot").and_then(|first| {
        // While pages are demoted the node does not stay full.
        let _cold = fill(context, fast, "")?;
        let _settings = [Setting::with(DEMOTION, "1")?, Setting::with(BALANCING, "2")?];
        let _pace = quick_balancing();
        moves(&watched)?;
        // As the mend says, down to the lowest limit, which allows none; more is hot by now.
        limit.set("0")?;
        let mut second = hot_on_slow("hot, too")?;
        // Pages that were isolated before may be on their way still.
        drop(watched()?);
        let found = watched()?;
        let left = on_node(&mut second, slow)?;
        same(&format!("whether {left} bytes are left to be promoted"), left > HOT, true)?;
        drop((first, second));
        found.finding(UNLIMITED).map_or(Ok(()), |left| Err(format!("{UNLIMITED} still fires: {left}")))
    });
    drop(group);
    checked
}

/// The rule fires in one of some windows: the kernel looks for hot pages from time to time.
fn moves(watched: &dyn Fn() -> Result<Diagnosed, String>) -> Result<(), String> {
    let mut last = None;
    for _ in 0..WINDOWS {
        let found = watched()?;
        if let Some(finding) = found.finding(UNLIMITED) {
            let [up, down] = ["promoted", "demoted"].map(|fact| evidence(finding, fact, "per_s"));
            return same(&format!("whether both ways count: {finding}"), up? > 0.0 && down? > 0.0, true);
        }
        last = Some(fs::read_to_string("/proc/vmstat").unwrap_or_default());
    }
    let counts = last.unwrap_or_default();
    let moved: Vec<&str> =
        counts.lines().filter(|line| line.starts_with("pgpromote") || line.starts_with("pgdemote")).collect();
    Err(format!("{UNLIMITED} does not fire: {moved:?}"))
}
