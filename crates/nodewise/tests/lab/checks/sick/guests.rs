//! Virtual machines, as their host sees them: a process with a known name whose threads run and whose memory lies
//! somewhere.

use std::fs;

use nodewise_machine::NodeId;

use super::super::doctor::run;
use super::super::same;
use super::super::ways::Nodes;
use super::impostor::{
    Impostor, before_command, concerns_memory_on, evidence, found, found_on_full, names, names_node, silent,
};
use super::{BALANCING, MEMORY, about_nodes};
use crate::nodewise::Context;
use crate::observer::Observed;
use crate::setting::{self, Setting};

/// The kernel cuts this name to fifteen characters.
const MACHINE: &str = "bin/qemu-system-x86_64";

/// A machine whose memory was taken on another node than its CPUs run on now.
pub fn stranded(context: &Context) -> Result<(), String> {
    let Nodes { ids: [a, _, c, _], cpus: [on_a, _, on_c, _] } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let (rule, machine) = ("vm-memory-stranded", Impostor::new(MACHINE)?);
    let way = format!("kib={MEMORY} cpu={on_a} touched-on={on_c} reads");
    let mut program = machine.at_work::<&str>(&[], &way)?;
    let _ = fs::remove_file(std::env::temp_dir().join(format!("nodewise-{}.moved", program.pid)));
    let finding = found(context, rule, &program)?;
    names_node(&finding, c)?;
    concerns_memory_on(&finding, &mut program, &[c])?;
    run(context, &finding["mend"][0]["commands"]).map_err(|error| format!("mend of {rule}: {error}"))?;
    let pages = program.pages()?;
    let moved = pages.get(&program.address).and_then(|pages| pages.nodes.get(&a.number())).copied();
    same("memory on the node of its CPUs", moved, Some(MEMORY << 10))?;
    silent(context, rule, &program)?;
    run(context, &finding["mend"][0]["undo"])?;
    found(context, rule, &program).map(drop)
}

/// A machine with memory and CPU time on two nodes, either of which could hold it.
pub fn spread(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, c, _], cpus: [_, on_b, on_c, _] } = Nodes::find(context)?;
    let _balancing = Setting::with(BALANCING, "0")?;
    let (rule, machine) = ("vm-spans", Impostor::new(MACHINE)?);
    let way = format!("kib={MEMORY} cpu={on_b} twin={on_c} workers={on_b}+{on_c} rests=120");
    let mut program = machine.at_work::<&str>(&[], &way)?;
    let finding = found(context, rule, &program)?;
    about_nodes(&finding, &[b, c])?;
    concerns_memory_on(&finding, &mut program, &context.seen.nodes_with_memory().iter().collect::<Vec<_>>())?;
    drop(program);
    let program = machine.at_work(&before_command(context, &finding)?, &way)?;
    silent(context, rule, &program)
}

/// A machine that is strictly bound to a node without room.
pub fn strict(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], cpus: [_, on_b, ..] } = Nodes::find(context)?;
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let (rule, machine) = ("libvirt-strict", Impostor::new(MACHINE)?);
    let way = |policy: &str| format!("kib={MEMORY} cpu={on_b} policy={policy}:{b}");
    let program = machine.at_work::<&str>(&[], &way("bind"))?;
    silent(context, rule, &program)?;
    let (_full, finding) = found_on_full(context, rule, &program, b)?;
    about_nodes(&finding, &[b])?;
    let left = evidence(&finding, &format!("available on node {b}"))?["size_bytes"].as_u64();
    let nodes = context.json(&["doctor", "--once", "--json"])?["nodes"].clone();
    let size = nodes.as_array().into_iter().flatten().find(|node| node["id"] == b.number());
    let size = size.and_then(|node| node["size_bytes"].as_u64()).ok_or("no size")?;
    same(&format!("whether {left:?} is little of {size}"), left.is_some_and(|left| left < size / 20), true)?;
    names(&finding, "policy=preferred in place of policy=bind")?;
    of_libvirt(context, rule, &program, b)?;
    drop(program);
    let program = machine.at_work::<&str>(&[], &way("prefer"))?;
    silent(context, rule, &program)
}

/// In a control group of libvirt's the same machine has its mend in libvirt's words.
fn of_libvirt(context: &Context, rule: &str, program: &Observed, node: NodeId) -> Result<(), String> {
    let slice = "/sys/fs/cgroup/machine.slice";
    let group = format!(r"{slice}/machine-qemu\x2d1\x2ddb.scope");
    fs::create_dir_all(&group).map_err(|error| format!("{group}: {error}"))?;
    setting::write(&format!("{group}/cgroup.procs"), &program.pid.to_string())?;
    let found = found_on_full(context, rule, program, node);
    setting::write("/sys/fs/cgroup/cgroup.procs", &program.pid.to_string())?;
    fs::remove_dir(&group)
        .and_then(|()| fs::remove_dir(slice))
        .map_err(|error| format!("{group}: {error}"))?;
    let (_full, finding) = found?;
    same("owner", finding["subject"]["owner"]["name"].as_str(), Some("db"))?;
    names(&finding, "<memory mode='preferred'/>").map(drop)
}
