//! Memory that the kernel holds, that is offline, or that nothing of the kernel's can be in.

use std::collections::BTreeMap;
use std::fs;

use nodewise_machine::NodeId;

use crate::checks::doctor::{Diagnosed, run};
use crate::checks::same;
use crate::checks::ways::Nodes;
use crate::cpuset::Cpuset;
use crate::kernel;
use crate::nodewise::Context;
use crate::observer::Observed;
use crate::setting::{self, Setting};

use super::{about_nodes, evidence, fires, is_silent};

/// Memory of a program that may use one node only, in KiB: more than a twentieth of it.
const CONFINED: u64 = 32 << 10;
/// Page tables of a program, in MiB: more than three times of what the kernel holds on all other nodes.
const TABLES: u64 = 192;

/// Memory of the kernel's that cannot be reclaimed, by node, as it says itself.
fn held() -> Result<BTreeMap<u32, u64>, String> {
    let of = |node: u32| {
        let path = format!("/sys/devices/system/node/node{node}/meminfo");
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let kib = |field: &str| {
            let line = text.lines().find(|line| line.contains(&format!(" {field}:")));
            let kib = line.and_then(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
            kib.ok_or_else(|| format!("no {field}: {text}"))
        };
        Ok((node, kib("SUnreclaim")? + kib("PageTables")? + kib("KernelStack")?))
    };
    kernel::online_nodes().into_iter().map(of).collect()
}

/// Page tables of one program, which runs on one node.
pub fn of_the_kernel(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, _, c, _], cpus: [_, _, on_c, _] } = Nodes::find(context)?;
    let rule = "kernel-memory-lopsided";
    is_silent(context, rule)?;
    // The address space that needs so many tables is more than the guest has memory for.
    let overcommit = Setting::with("/proc/sys/vm/overcommit_memory", "1")?;
    let program = Observed::start("with page tables", &[], &format!("kib=1024 cpu={on_c} tables={TABLES}"))?;
    let before = held()?;
    let finding = fires(context, rule)?;
    about_nodes(&finding, &[c])?;
    let (on_it, all) = (before[&c.number()], before.values().sum::<u64>());
    let named = finding["concerns_bytes"].as_u64().unwrap_or_default() >> 10;
    same(&format!("whether {named} KiB are about {on_it}"), named.abs_diff(on_it) < on_it / 10, true)?;
    let share = evidence(&finding, "part of the kernel's", "share")?;
    let expected = on_it as f64 / all as f64;
    same(&format!("whether {share} is about {expected}"), (share - expected).abs() < 0.05, true)?;
    // No command takes such memory from a program.
    drop(program);
    drop(overcommit);
    is_silent(context, rule)
}

/// Blocks of a node that was plugged in, by their numbers.
fn blocks(node: NodeId) -> Result<Vec<u32>, String> {
    let folder = format!("/sys/devices/system/node/node{node}");
    let entries = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    let mut numbers: Vec<u32> = names.filter_map(|name| name.strip_prefix("memory")?.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

fn state(block: u32) -> String {
    format!("/sys/devices/system/memory/memory{block}/state")
}

/// The node whose memory was plugged in.
fn plugged(context: &Context) -> Result<NodeId, String> {
    let without = context.wanted.nodes.values().filter(|node| !node.has_memory()).map(|node| node.id);
    let mut plugged = without.filter(|node| context.seen.nodes_with_memory().contains(*node));
    plugged.next().ok_or_else(|| "no memory was plugged in".to_owned())
}

/// A block that is taken offline.
pub fn offline(context: &Context) -> Result<(), String> {
    let rule = "memory-offline";
    is_silent(context, rule)?;
    let node = plugged(context)?;
    let block = *blocks(node)?.last().ok_or("a node without blocks")?;
    setting::write(&state(block), "offline")?;
    let finding = fires(context, rule)?;
    about_nodes(&finding, &[node])?;
    let size = kernel::line("/sys/devices/system/memory/block_size_bytes")?;
    let size = u64::from_str_radix(&size, 16).map_err(|error| error.to_string())?;
    same("size", finding["concerns_bytes"].as_u64(), Some(size))?;
    let mend = &finding["mend"][0];
    run(context, &mend["commands"])?;
    same("state", kernel::line(&state(block))?.as_str(), "online")?;
    is_silent(context, rule)?;
    run(context, &mend["undo"])?;
    fires(context, rule)?;
    run(context, &mend["commands"])
}

/// A node whose memory came online as movable, and a program that may use it alone.
pub fn movable_only(context: &Context) -> Result<(), String> {
    let rule = "node-movable-only";
    let node = plugged(context)?;
    for block in blocks(node)? {
        let zones = format!("/sys/devices/system/memory/memory{block}/valid_zones");
        same(&zones, kernel::line(&zones)?.as_str(), "Movable")?;
    }
    let finding = fires(context, rule)?;
    about_nodes(&finding, &[node])?;
    same("severity", finding["severity"].as_str(), Some("info"))?;
    confined(context, rule, node)?;
    // As its mend says: another zone, which needs no reboot where its blocks can be taken offline.
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let blocks = blocks(node)?;
    let set = |state_of: &str| blocks.iter().try_for_each(|block| setting::write(&state(*block), state_of));
    set("offline")?;
    set("online_kernel")?;
    let silent = is_silent(context, rule);
    // Blocks that hold memory of the kernel's by now stay as they are.
    let _ = set("offline").and_then(|()| set("online_movable"));
    silent
}

/// A program in a cpuset of that node is named, and makes it a warning; with a second node it does not.
fn confined(context: &Context, rule: &str, node: NodeId) -> Result<(), String> {
    let cpus = context.seen.online_cpus().to_string();
    let program = Observed::start("confined", &[], &format!("kib={CONFINED}"))?;
    let group = Cpuset::new(&cpus, &node.to_string())?;
    // It could not start there: what the kernel needs for that has no room.
    setting::write(&group.tasks(), &program.pid.to_string())?;
    let checked = fires(context, rule).and_then(|finding| {
        same(&format!("severity of {finding}"), finding["severity"].as_str(), Some("warning"))?;
        let named = finding["evidence"].to_string().contains(&format!("({})", program.pid));
        same(&format!("whether {finding} names {}", program.pid), named, true)?;
        group.allow(&context.seen.nodes_with_memory().to_string())?;
        let finding = Diagnosed::new(context)?.finding(rule).cloned().ok_or("it is silent")?;
        same("severity beside other nodes", finding["severity"].as_str(), Some("info"))
    });
    drop(program);
    checked
}
