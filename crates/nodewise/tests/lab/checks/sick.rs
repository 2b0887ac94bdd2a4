//! Rules of `doctor` one by one: a system is made sick, the rule fires with its subject, what it prints as a mend is
//! done, and it is silent. They take minutes: `cargo xtask doctor-soak` runs them.

pub mod balancing;
pub mod devices;
pub mod firmware;
pub(super) mod group;
pub mod guests;
mod impostor;
pub mod locality;
pub mod memory;
pub mod orchestrators;
pub mod policies;
pub mod runtimes;
pub mod servers;
pub mod tiers;

use std::fs;
use std::time::Duration;

use nodewise_machine::{NodeId, NodeSet};
use serde_json::Value;

use super::doctor::{Diagnosed, fill, run};
use super::moving::file;
use super::same;
use super::short::shell;
use super::ways::Nodes;
use crate::cpuset::Cpuset;
use crate::nodewise::Context;
use crate::observer::{Observed, allow};
use crate::setting::{self, Setting};

/// Memory of a program, in KiB: more than a twentieth of a node.
const MEMORY: u64 = 64 << 10;
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
const RESERVE: &str = "/proc/sys/vm/min_free_kbytes";
const COUNTERS: &str = "/proc/sys/vm/numa_stat";
/// The placeholder of a program in a mend, behind the words that place it.
const COMMAND: &str = " -- COMMAND";

/// Whether a rule fires, and about what.
pub(super) fn fires(context: &Context, rule: &str) -> Result<Value, String> {
    Diagnosed::fires(context, &["--window=2s"], rule)
}

pub(super) fn is_silent(context: &Context, rule: &str) -> Result<(), String> {
    let found = Diagnosed::new(context)?;
    found.finding(rule).map_or(Ok(()), |finding| Err(format!("{rule} still fires: {finding}")))
}

/// The same of processes that are named: an emulated CPU reads the mappings of one process in the time for all.
fn fires_about(context: &Context, rule: &str, pids: &[u32]) -> Result<Value, String> {
    with_options_for(pids, |options| Diagnosed::fires(context, options, rule))
}

/// A rule's finding about them in one window.
fn left_about(context: &Context, rule: &str, pids: &[u32]) -> Result<Option<Value>, String> {
    with_options_for(pids, |options| Ok(Diagnosed::with(context, options)?.finding(rule).cloned()))
}

fn with_options_for<T>(pids: &[u32], look: impl Fn(&[&str]) -> T) -> T {
    let named: Vec<String> = pids.iter().map(|pid| format!("--pid={pid}")).collect();
    look(&["--window=2s"].into_iter().chain(named.iter().map(String::as_str)).collect::<Vec<_>>())
}

/// The rule fires about this process.
fn about(context: &Context, rule: &str, program: &Observed) -> Result<Value, String> {
    let finding = fires_about(context, rule, &[program.pid])?;
    is_about(&finding, program)?;
    Ok(finding)
}

fn is_silent_about(context: &Context, rule: &str, program: &Observed) -> Result<(), String> {
    let left = left_about(context, rule, &[program.pid])?;
    left.map_or(Ok(()), |finding| Err(format!("{rule} still fires: {finding}")))
}

/// A number of a finding's evidence lies where this check puts it.
fn within(
    finding: &Value,
    fact: &str,
    key: &str,
    range: std::ops::RangeInclusive<f64>,
) -> Result<(), String> {
    let value = evidence(finding, fact, key)?;
    if range.contains(&value) {
        return Ok(());
    }
    Err(format!("{fact}: got {value}, expected {range:?}: {finding}"))
}

fn parent(pid: u32) -> Result<u32, String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.and_then(|number| number.trim().parse().ok()).ok_or_else(|| format!("no parent: {status}"))
}

/// The rule fires, the commands of its first mend are run, and it is silent.
pub(super) fn mended(context: &Context, rule: &str) -> Result<Value, String> {
    let finding = fires(context, rule)?;
    run(context, &finding["mend"][0]["commands"]).map_err(|error| format!("mend of {rule}: {error}"))?;
    is_silent(context, rule)?;
    Ok(finding)
}

/// The words before a program in the first mend that starts it again.
pub(super) fn restart(context: &Context, finding: &Value) -> Result<Vec<String>, String> {
    let mends = finding["mend"].as_array().into_iter().flatten();
    let commands = mends.flat_map(|mend| mend["commands"].as_array().into_iter().flatten());
    let words = commands.filter_map(Value::as_str).find_map(|command| command.strip_suffix(COMMAND));
    let words = words.ok_or_else(|| format!("no mend starts the program again: {finding}"))?;
    let words = words.split(' ').chain(["--"]);
    Ok(words.map(|word| if word == "nodewise" { context.path() } else { word }.to_owned()).collect())
}

/// Starts a program behind the words of a mend, and lets it work.
pub(super) fn started_by(words: &[String], way: &str) -> Result<Observed, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    at_work("mended", &words, way)
}

pub(super) fn at_work(name: &str, before: &[&str], way: &str) -> Result<Observed, String> {
    let mut program = Observed::start(name, before, way)?;
    program.ask("work")?;
    Ok(program)
}

pub(super) fn is_about(finding: &Value, program: &Observed) -> Result<(), String> {
    same(&format!("process of {finding}"), finding["subject"]["pid"].as_u64(), Some(u64::from(program.pid)))
}

pub(super) fn about_nodes(finding: &Value, nodes: &[NodeId]) -> Result<(), String> {
    let names: NodeSet = nodes.iter().copied().collect();
    same(&format!("nodes of {finding}"), finding["nodes"].as_str(), Some(names.to_string().as_str()))
}

/// A finding is about this node, among others: a program has pages of its own where it began.
fn names(finding: &Value, node: NodeId) -> Result<(), String> {
    let nodes = finding["nodes"].as_str().and_then(|nodes| nodes.parse::<NodeSet>().ok());
    same(
        &format!("whether {finding} names node {node}"),
        nodes.is_some_and(|nodes| nodes.contains(node)),
        true,
    )
}

/// A number of a finding's evidence.
pub(super) fn evidence(finding: &Value, fact: &str, key: &str) -> Result<f64, String> {
    let all = finding["evidence"].as_array().into_iter().flatten();
    let mut of_fact = all.filter(|evidence| evidence["fact"].as_str() == Some(fact));
    let value = of_fact.find_map(|evidence| evidence["value"][key].as_f64());
    value.ok_or_else(|| format!("no {key} of {fact}: {finding}"))
}

/// Counters of allocations that are switched off.
pub fn counters(context: &Context) -> Result<(), String> {
    let _counters = Setting::with(COUNTERS, "0")?;
    // A system that took few pages since its start may have none on a node.
    for taken in 0..3 {
        drop(Observed::start(&format!("takes pages {taken}"), &[], &format!("kib={}", 160 << 10))?);
    }
    mended(context, "counters-off").map(drop)
}

/// A reserve of an eighth of the machine.
pub fn large_reserve(context: &Context) -> Result<(), String> {
    let reserve = Setting::with(RESERVE, "262144")?;
    let finding = fires(context, "reserve-too-large")?;
    let names = finding["mend"][0]["what"].as_str().is_some_and(|what| what.contains("vm.min_free_kbytes"));
    same(&format!("whether the mend of {finding} names the setting"), names, true)?;
    drop(reserve);
    is_silent(context, "reserve-too-large")
}

/// Memory that nothing moves to its program, which may run anywhere.
pub fn nobody_places(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, _, c, _], cpus } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let way = format!("kib={MEMORY} cpu={} touched-on={} reads", cpus[0], cpus[2]);
    let program = at_work("away", &[], &way)?;
    allow(program.pid, &cpus.into_iter().collect())?;
    let finding = mended(context, "balancing-off-nobody-places")?;
    let named = finding["nodes"].as_str().is_some_and(|nodes| nodes.contains(&c.to_string()));
    same(&format!("whether {finding} names node {c}"), named, true)
}

/// A small program under interleaving.
pub fn interleaved(context: &Context) -> Result<(), String> {
    let Nodes { ids: [a, ..], cpus: [on_a, ..] } = Nodes::find(context)?;
    let way = format!("kib={MEMORY} cpu={on_a} reads");
    let all = [context.path(), "run", "--interleave=all", "--"];
    let program = at_work("interleaved", &all, &way)?;
    let finding = fires(context, "interleaved-but-small")?;
    is_about(&finding, &program)?;
    // Whether it is faster on one node is for an experiment: its second placement.
    let experiment = finding["experiment"].as_str().unwrap_or_default();
    let other = format!("'cpunodebind={a} membind={a}'");
    same(&format!("whether {experiment} names {other}"), experiment.contains(&other), true)?;
    drop(program);
    let (cpus, memory) = (format!("--cpunodebind={a}"), format!("--membind={a}"));
    let _program = at_work("on one node", &[context.path(), "run", &cpus, &memory, "--"], &way)?;
    is_silent(context, "interleaved-but-small")
}

/// A program under a policy that its shell was given.
pub fn inherited(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, _, c, _], cpus: [on_a, ..] } = Nodes::find(context)?;
    let way = format!("kib={MEMORY} cpu={on_a} reads");
    let bound = format!("--membind={c}");
    // A shell that has more to do stays, and the program is its child.
    let shell = [context.path(), "run", &bound, "--", "sh", "-c", "\"$@\"; true", "sh"];
    let program = at_work("under the policy of its shell", &shell, &way)?;
    let rule = "inherited-policy";
    let both = |program: &Observed| Ok::<_, String>([program.pid, parent(program.pid)?]);
    let finding = fires_about(context, rule, &both(&program)?)?;
    is_about(&finding, &program)?;
    drop(program);
    let words = restart(context, &finding)?;
    let words: Vec<&str> = shell.into_iter().chain(words.iter().map(String::as_str)).collect();
    let program = at_work("under a policy of its own", &words, &way)?;
    let left = left_about(context, rule, &both(&program)?)?;
    left.map_or(Ok(()), |finding| Err(format!("{rule} still fires: {finding}")))
}

/// A policy that is set over pages that are there already.
pub fn too_late(context: &Context) -> Result<(), String> {
    let Nodes { cpus: [on_a, ..], .. } = Nodes::find(context)?;
    let nodes = context.seen.nodes_with_memory();
    let way = format!("kib={MEMORY} cpu={on_a} late=interleave:{nodes} reads");
    let program = at_work("a late policy", &[], &way)?;
    let _ = fs::remove_file(std::env::temp_dir().join(format!("nodewise-{}.moved", program.pid)));
    let finding = mended(context, "policy-too-late")?;
    is_about(&finding, &program)
}

/// A segment that one process filled and others use from another node.
pub fn shared_segment(context: &Context) -> Result<(), String> {
    let Nodes { cpus: [on_a, _, on_c, _], .. } = Nodes::find(context)?;
    let key = 0x7369_636b;
    let first = format!("kib={MEMORY} cpu={on_a} segment={key}");
    let second = format!("kib={MEMORY} cpu={on_c} segment={key} sees");
    let both = (at_work("fills it", &[], &first)?, at_work("uses it", &[], &second)?);
    let rule = "shared-segment-on-one";
    let pids = |both: &(Observed, Observed)| [both.0.pid, both.1.pid];
    let finding = fires_about(context, rule, &pids(&both))?;
    same("severity", finding["severity"].as_str(), Some("warning"))?;
    drop(both);
    // As the mend says: interleaved before it is filled. A segment outlives those who use it.
    shell(&format!("ipcrm -M {key}"))?;
    let all = [context.path(), "run", "--interleave=all", "--"];
    let both = (at_work("fills it", &all, &first)?, at_work("uses it", &all, &second)?);
    let left = left_about(context, rule, &pids(&both))?;
    left.map_or(Ok(()), |finding| Err(format!("{rule} still fires: {finding}")))
}

/// Memory in one node by a cpuset, and CPUs of two.
pub fn memory_confined(context: &Context) -> Result<(), String> {
    let Nodes { ids: [a, ..], cpus: [on_a, _, on_c, _] } = Nodes::find(context)?;
    let group = Cpuset::new(&format!("{on_a},{on_c}"), &a.to_string())?;
    let way = format!("kib={MEMORY} reads");
    // The program's own node is busy.
    let _busy = at_work("keeps a CPU busy", &[], &format!("kib=1024 cpu={on_a}"))?;
    let enter = format!("echo $$ > {} && exec \"$@\"", group.tasks());
    let program = at_work("in a cpuset", &["sh", "-c", &enter, "sh"], &way)?;
    let found = fires(context, "mems-without-cpus");
    let checked = found.and_then(|finding| {
        is_about(&finding, &program)?;
        about_nodes(&finding, &[a])?;
        restart(context, &finding)
    });
    drop(program);
    let program = checked.and_then(|words| {
        let enter: Vec<String> = ["sh", "-c", &enter, "sh"].map(str::to_owned).to_vec();
        started_by(&[enter, words].concat(), &way)
    });
    let silent = program.as_ref().map_err(Clone::clone).and_then(|_| is_silent(context, "mems-without-cpus"));
    drop(program);
    silent
}

fn pool(context: &Context, pages: [u64; 4]) -> Result<(), String> {
    let Nodes { ids, .. } = Nodes::find(context)?;
    for (node, pages) in ids.into_iter().zip(pages) {
        let path = format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages");
        setting::write(&path, &pages.to_string())?;
    }
    Ok(())
}

/// Pages of a pool on another node than their program.
pub fn pool_elsewhere(context: &Context) -> Result<(), String> {
    let Nodes { ids: [a, ..], cpus: [on_a, ..] } = Nodes::find(context)?;
    pool(context, [0, 0, 20, 20])?;
    // More than a twentieth of a node, from which on a process matters.
    let way = format!("kib={} pages=pool cpu={on_a} reads", 32 << 10);
    let checked = at_work("with pages of a pool", &[], &way).and_then(|program| {
        let finding = fires(context, "hugepages-wrong-node")?;
        is_about(&finding, &program)?;
        about_nodes(&finding, &[a])?;
        run(context, &finding["mend"][0]["commands"])?;
        drop(program);
        let _again = at_work("started again", &[], &way)?;
        is_silent(context, "hugepages-wrong-node")
    });
    pool(context, [0; 4])?;
    checked
}

/// A pool that no program uses, on a node that is full.
pub fn idle_pool(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], .. } = Nodes::find(context)?;
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    pool(context, [0, 40, 0, 0])?;
    let checked = fill(context, b, "").and_then(|_full| {
        let finding = mended(context, "hugepages-idle")?;
        about_nodes(&finding, &[b])
    });
    pool(context, [0; 4])?;
    checked
}

/// Fewer pages than the boot line of this guest asks for.
pub fn pool_cut(context: &Context) -> Result<(), String> {
    is_silent(context, "hugepages-cut")?;
    pool(context, [0; 4])?;
    let found = fires(context, "hugepages-cut");
    pool(context, [2; 4])?;
    let finding = found?;
    same("pages that were asked for", finding["evidence"][0]["value"]["count"].as_u64(), Some(8))?;
    is_silent(context, "hugepages-cut")
}

/// A word of the boot line of this guest that its kernel does not know; a guest without it is healthy.
pub fn unknown_setting(context: &Context) -> Result<(), String> {
    let finding = fires(context, "setting-does-not-exist")?;
    let summary = finding["summary"].as_str().unwrap_or_default();
    same(&format!("whether {summary} names it"), summary.contains("numa_policy=interleave"), true)
}

/// A program that grows on the only node that it may use.
pub fn grows(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], cpus: [_, on_b, ..] } = Nodes::find(context)?;
    let thresholds = file("sick.toml");
    fs::write(&thresholds, "[bind-too-small]\nage_s = 0\n").map_err(|error| error.to_string())?;
    let path = thresholds.display().to_string();
    let way = format!("kib={MEMORY} cpu={on_b}");
    let diagnosed = |words: &[String]| -> Result<(Option<Value>, u32), String> {
        let mut program = started_by(words, &way)?;
        program.ask("grow")?;
        let found = Diagnosed::with(context, &["--thresholds", &path])?;
        Ok((found.finding("bind-too-small").cloned(), program.pid))
    };
    let bound = [context.path(), "run", &format!("--membind={b}"), "--"].map(str::to_owned);
    let (finding, pid) = diagnosed(&bound)?;
    let finding = finding.ok_or("bind-too-small does not fire")?;
    same("process", finding["subject"]["pid"].as_u64(), Some(u64::from(pid)))?;
    about_nodes(&finding, &[b])?;
    let (left, _) = diagnosed(&restart(context, &finding)?)?;
    left.map_or(Ok(()), |finding| Err(format!("bind-too-small still fires: {finding}")))
}

/// A bound program that is killed on a full node, while others have memory.
pub fn killed(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], .. } = Nodes::find(context)?;
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let mut full = fill(context, b, &format!(" policy=bind:{b}"))?;
    let mut last = full.pop().ok_or("the node was full before")?;
    let pids: Vec<u32> = full.iter().map(|program| program.pid).chain([last.pid]).collect();
    let found = std::thread::scope(|scope| {
        let grows = scope.spawn(move || {
            std::thread::sleep(Duration::from_secs(4));
            // It is killed while it grows, or a moment later.
            let _ = last.ask("exhaust");
            last
        });
        let found = Diagnosed::with(context, &["--window=15s"]);
        drop(grows.join());
        found
    })?;
    let finding = found.finding("oom-while-free").ok_or_else(|| format!("no finding: {}", found.document))?;
    // The kernel takes the largest, which need not be the one that asked for more.
    let killed = pids.iter().find(|pid| finding["subject"]["pid"].as_u64() == Some(u64::from(**pid)));
    let killed = killed.ok_or_else(|| format!("expected one of {pids:?}: {finding}"))?;
    let stat = fs::read_to_string(format!("/proc/{killed}/stat")).unwrap_or_default();
    let is_gone = stat.is_empty() || stat.contains(") Z ");
    same(&format!("whether {killed} was killed: {stat}"), is_gone, true)?;
    drop(full);
    is_silent(context, "oom-while-free")
}

/// A node with CPUs and no memory.
pub fn bare_node(context: &Context) -> Result<(), String> {
    let finding = fires(context, "node-without-memory")?;
    let bare = context.seen.nodes.values().find(|node| !node.cpus.is_empty() && !node.has_memory());
    let bare = bare.ok_or("every node has memory")?.id.to_string();
    same(&format!("nodes of {finding}"), finding["subject"]["nodes"].as_str(), Some(bare.as_str()))
}

/// The same node, with memory.
pub fn filled_node(context: &Context) -> Result<(), String> {
    is_silent(context, "node-without-memory")
}

/// Nodes that the boot line switches off.
pub fn switched_off(context: &Context) -> Result<(), String> {
    let finding = fires(context, "numa-off")?;
    same("severity", finding["severity"].as_str(), Some("warning"))?;
    same("confidence", finding["confidence"].as_str(), Some("certain"))
}

/// Emulated nodes, and a program on one of them.
pub fn emulated(context: &Context) -> Result<(), String> {
    fires(context, "fake-nodes-local")?;
    let way = format!("kib={MEMORY}");
    let first = context.seen.nodes_with_memory().first().ok_or("no node has memory")?;
    let bound = [context.path(), "run", &format!("--membind={first}"), "--"].map(str::to_owned);
    let program = started_by(&bound, &way)?;
    let finding = fires(context, "fake-nodes-bound")?;
    is_about(&finding, &program)?;
    drop(program);
    let _program = started_by(&restart(context, &finding)?, &way)?;
    is_silent(context, "fake-nodes-bound")
}
