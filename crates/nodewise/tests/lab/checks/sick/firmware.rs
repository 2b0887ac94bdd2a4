//! Machines as their firmware describes them. Their mends are other firmware: the guest of `healthy` has it.

use serde_json::Value;

use crate::checks::doctor::Diagnosed;
use crate::checks::same;
use crate::kernel;
use crate::nodewise::Context;

use super::{evidence, fires, is_silent};

/// The firmware's own tables, as a machine.
const TABLES: &str = "--machine=acpi:/sys/firmware/acpi/tables";

fn is(finding: &Value, severity: &str, confidence: &str) -> Result<(), String> {
    let got = (finding["severity"].as_str(), finding["confidence"].as_str());
    same(&format!("severity and confidence of {finding}"), got, (Some(severity), Some(confidence)))
}

fn contains(finding: &Value, key: &str, part: &str) -> Result<(), String> {
    let has = finding[key].to_string().contains(part);
    same(&format!("whether {key} of {finding} contains {part}"), has, true)
}

/// The number of packages, by the kernel.
fn packages() -> Result<usize, String> {
    let online = kernel::list(&kernel::line("/sys/devices/system/cpu/online")?);
    let package =
        |cpu: &u32| kernel::line(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"));
    let packages: Result<std::collections::BTreeSet<String>, String> = online.iter().map(package).collect();
    Ok(packages?.len())
}

/// A virtual machine of two packages that has one node.
pub fn one_node(context: &Context) -> Result<(), String> {
    let finding = fires(context, "guest-one-node-of-many")?;
    is(&finding, "info", "possible")?;
    same("packages", evidence(&finding, "packages", "count")?, packages()? as f64)?;
    same("nodes", kernel::online_nodes().len(), 1)?;
    // A machine that is virtual has packages that are made up.
    is_silent(context, "nodes-hidden")
}

/// The same, where nothing says that it is a virtual one.
pub fn hidden(context: &Context) -> Result<(), String> {
    let finding = fires(context, "nodes-hidden")?;
    is(&finding, "warning", "likely")?;
    same("packages", evidence(&finding, "packages", "count")?, packages()? as f64)?;
    is_silent(context, "guest-one-node-of-many")
}

/// Modules of two packages, uneven, and all memory on one node.
pub fn misplaced(context: &Context) -> Result<(), String> {
    let finding = fires(context, "memory-on-one-node")?;
    is(&finding, "warning", "likely")?;
    same("modules", evidence(&finding, "modules there", "count")?, 1.0)?;
    let bare = kernel::online_nodes().into_iter().filter(|node| kernel::memory_of(*node) == 0);
    let bare: Vec<String> = bare.map(|node| node.to_string()).collect();
    same("nodes", finding["nodes"].as_str(), Some(bare.join(",").as_str()))
}

pub fn uneven_modules(context: &Context) -> Result<(), String> {
    let finding = fires(context, "dimms-uneven")?;
    is(&finding, "warning", "likely")?;
    contains(&finding, "summary", "32 GiB at node 0, 16 GiB at node 1")
}

/// Four nodes in two packages, all equally far apart.
pub fn flat(context: &Context) -> Result<(), String> {
    for node in kernel::online_nodes() {
        let remote = kernel::distances_of(node).into_iter().filter(|distance| *distance != 10);
        same("remote distances", remote.collect::<Vec<_>>(), vec![20; 3])?;
    }
    let finding = fires(context, "distances-flat")?;
    is(&finding, "info", "possible")?;
    contains(&finding, "summary", "4 nodes in 2 packages, all 20 apart")
}

pub fn flat_in_a_guest(context: &Context) -> Result<(), String> {
    let found = Diagnosed::new(context)?;
    let finding = found.finding("guest-distances-flat").ok_or("guest-distances-flat does not fire")?;
    is(finding, "info", "possible")?;
    contains(finding, "summary", "4 nodes, all 20 apart")?;
    contains(finding, "explains", "distances-flat")
}

/// A distance that means that there is no way.
pub fn unreachable(context: &Context) -> Result<(), String> {
    let finding = fires(context, "distances-invalid")?;
    is(&finding, "note", "certain")?;
    same("distances of node 0", kernel::distances_of(0), vec![10, 255])?;
    contains(&finding, "evidence", "from node 0 to node 1")?;
    contains(&finding, "evidence", "255")
}

/// A table that the kernel rejects: other distances are in force, and the tables show it, on the running system and alone.
pub fn rejected(context: &Context) -> Result<(), String> {
    same("distances of node 0", kernel::distances_of(0), vec![10, 20])?;
    for from in [&["--once"][..], &["--once", TABLES]] {
        let found = Diagnosed::with(context, from)?;
        let finding = found.finding("distances-invalid");
        let finding =
            finding.ok_or_else(|| format!("distances-invalid does not fire: {}", found.document))?;
        is(finding, "note", "certain")?;
        contains(finding, "evidence", "SLIT")?;
    }
    Ok(())
}

/// Emulated nodes that are larger than the machine.
pub fn too_large(context: &Context) -> Result<(), String> {
    same("nodes", kernel::online_nodes().len(), 1)?;
    let finding = fires(context, "fake-not-honoured")?;
    is(&finding, "note", "certain")?;
    contains(&finding, "cause", "one node of 8 GiB holds all memory")?;
    crate::checks::doctor::run(context, &finding["mend"][0]["commands"])
}

/// Emulated nodes of a number, which are there.
pub fn emulated(context: &Context) -> Result<(), String> {
    is_silent(context, "fake-not-honoured")
}

/// A server as it is meant to be: four nodes in two packages, modules in every channel.
pub fn healthy(context: &Context) -> Result<(), String> {
    let found = Diagnosed::new(context)?;
    let rules = [
        "distances-flat",
        "distances-invalid",
        "dimms-uneven",
        "guest-distances-flat",
        "guest-one-node-of-many",
        "memory-on-one-node",
        "nodes-hidden",
    ];
    let fires: Vec<&str> = rules.into_iter().filter(|rule| found.finding(rule).is_some()).collect();
    same(&format!("rules in {}", found.document), fires, Vec::new())?;
    let tables = Diagnosed::with(context, &["--once", TABLES])?;
    same("finding about the tables", tables.finding("distances-invalid"), None)
}
