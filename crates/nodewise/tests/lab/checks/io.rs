//! Devices and files: the buffers, and the pages of files in memory, are on the node that a way names. How
//! long anything takes means nothing in an emulated machine.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::measure::nodes;
use super::same;
use crate::nodewise::{Context, complaint};

fn rows<'a>(document: &'a Value, name: &str) -> Result<&'a Vec<Value>, String> {
    document[name].as_array().ok_or_else(|| format!("no {name}: {document}"))
}

fn node_of(row: &Value, name: &str) -> u32 {
    row[name].as_u64().and_then(|node| u32::try_from(node).ok()).unwrap_or(u32::MAX)
}

/// A row has a figure, and all of its pages on its node.
fn in_place(row: &Value, median: &str, pages: u64) -> Result<(), String> {
    if !row[median].is_number() {
        return Err(format!("no figure: {row}"));
    }
    for moment in ["placed_before", "placed_after"] {
        let placed = &row[moment];
        same(&format!("{moment} of {row}"), placed["pages_on_node"].as_u64(), Some(pages))?;
        same(&format!("{moment} of {row}"), placed["pages"].as_u64(), Some(pages))?;
    }
    Ok(())
}

/// Files in memory: first written, then written again and read, for every pair of nodes, in the kernel's own
/// tmpfs and in a folder, which is empty afterwards.
pub fn files(context: &Context) -> Result<(), String> {
    let (memory, cpus) = nodes();
    let expected: BTreeSet<(u32, u32)> =
        cpus.iter().flat_map(|from| memory.iter().map(move |node| (*from, *node))).collect();
    let folder = std::path::Path::new("/dev/shm");
    let before = fs::read_dir(folder).map_err(|error| format!("/dev/shm: {error}"))?.count();
    for place in ["--file", "--file=/dev/shm"] {
        let document = context.json(&["bandwidth", place, "--quick", "--rounds=2", "--json", "--size=4M"])?;
        for operation in ["write", "rewrite", "read"] {
            let of_operation = || {
                rows(&document, "files").map(|rows| rows.iter().filter(|row| row["operation"] == operation))
            };
            let seen: BTreeSet<(u32, u32)> =
                of_operation()?.map(|row| (node_of(row, "from_node"), node_of(row, "memory_node"))).collect();
            same(&format!("pairs of nodes of {operation}, {place}"), &seen, &expected)?;
            for row in of_operation()? {
                in_place(row, "median_gb_per_s", 1024)?;
            }
        }
    }
    let after = fs::read_dir(folder).map_err(|error| format!("/dev/shm: {error}"))?.count();
    same("files in /dev/shm", after, before)
}

/// A file is refused where its file system has no room, with the figure, and nothing is killed.
pub fn no_room(context: &Context) -> Result<(), String> {
    let folder = "/tmp/nodewise-small";
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let mount = |words: &[&str]| Command::new(words[0]).args(&words[1..]).status();
    let mounted = mount(&["mount", "-t", "tmpfs", "-o", "size=1M", "none", folder]);
    if !mounted.is_ok_and(|status| status.success()) {
        return Err("a tmpfs of 1 MiB cannot be mounted".to_owned());
    }
    let output = context.output(&[
        "bandwidth",
        "--file=/tmp/nodewise-small",
        "--quick",
        "--rounds=2",
        "--size=4M",
        "--csv",
    ]);
    let unmounted = mount(&["umount", folder]);
    let output = output?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    same(&format!("the exit code: {}", complaint(&output)), output.status.code(), Some(3))?;
    same("whether it is unmounted", unmounted.is_ok_and(|status| status.success()), true)?;
    let said = "/tmp/nodewise-small has 1 MiB free, 4 MiB are needed: try a smaller --size";
    same(&format!("whether the room is named: {text}"), text.contains(said), true)
}

/// A block device, made of memory, is read into buffers on each node.
pub fn block_device(context: &Context) -> Result<(), String> {
    let made = Command::new("modprobe").args(["brd", "rd_nr=1", "rd_size=8192"]).output();
    let made = made.map_err(|error| format!("modprobe: {error}"))?;
    let device = "/dev/ram0";
    if !made.status.success() || fs::metadata(device).is_err() {
        return Err(format!("the kernel's disk in memory cannot be had: {}", complaint(&made)));
    }
    let document =
        context.json(&["io", device, "/no/such", "--quick", "--rounds=2", "--json", "--size=1M"])?;
    let (memory, cpus) = nodes();
    let disk = &rows(&document, "devices")?[0];
    same("the kind", disk["kind"].as_str(), Some("block"))?;
    same("its size", disk["size_bytes"].as_u64(), Some(8192 << 10))?;
    // It is made by software, so it has no node.
    let why = disk["node_unknown"].as_str().unwrap_or_default();
    same(&format!("whether its node is known: {disk}"), why.contains("has no node"), true)?;
    for (access, median) in [("sequential", "median_gb_per_s"), ("random", "median_us")] {
        let of_access =
            || disk["reads"].as_array().into_iter().flatten().filter(|row| row["access"] == access);
        let seen: BTreeSet<u32> = of_access().map(|row| node_of(row, "memory_node")).collect();
        same(&format!("nodes of buffers, {access}"), &seen, &memory)?;
        for row in of_access() {
            in_place(row, median, 256)?;
            same("whether the CPUs' node has CPUs", cpus.contains(&node_of(row, "from_node")), true)?;
        }
    }
    let other = &rows(&document, "devices")?[1];
    let why = other["refused"].as_str();
    same("what is said of another", why, Some("/no/such cannot be opened: no such file or directory"))?;
    let _ = Command::new("modprobe").args(["-r", "brd"]).status();
    Ok(())
}
