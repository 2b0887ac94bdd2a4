//! Page cache: a disk that fills it, and a node that runs short of memory because of it: what `nodewise explain`
//! says becomes of it, and what the kernel does.

use std::fs::{self, File};

use nodewise_machine::NodeId;
use serde_json::Value;

use super::same;
use super::short::{DISK, Disk, shell};
use crate::guest::FIGURE;
use crate::kernel;
use crate::nodewise::Context;
use crate::observer::Observed;
use crate::setting::{self, Setting};

/// Where a file system is mounted.
const MOUNT: &str = "/run/nodewise-ext4";
/// Files in memory, in a folder of their own.
const FILES: &str = "/run/nodewise-files";
/// Beyond the end of what there is, in KiB: more than a kernel takes and gives meanwhile.
const BEYOND: u64 = 64 << 10;

/// A field of a node's meminfo, in KiB.
fn field(node: NodeId, name: &str) -> Result<u64, String> {
    let path = format!("/sys/devices/system/node/node{node}/meminfo");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find(|line| line.split_whitespace().nth(2) == Some(&format!("{name}:")));
    let number = line.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    number.ok_or_else(|| format!("{path}: no {name}"))
}

/// The guest's disk, whose pages are in the page cache of the node that reads them.
pub fn disk(context: &Context) -> Result<(), String> {
    const VIRTIO: &str = "/dev/vda";
    let node = context.seen.nodes_with_memory().last().ok_or("no node has memory")?;
    // The cache of a disk goes with the last that has it open.
    let _open = File::open(VIRTIO).map_err(|error| format!("{VIRTIO}: {error}"))?;
    let files = || Ok::<u64, String>(field(node, "Active(file)")? + field(node, "Inactive(file)")?);
    let before = files()?;
    let read = format!("dd if={VIRTIO} of=/dev/null bs=1M count=48 2> /dev/null");
    shell(&format!("{} run --membind={node} -- {read}", context.path()))?;
    let grown = files()?.saturating_sub(before) >> 10;
    same(&format!("whether {grown} MiB of page cache came to node {node}"), (44..60).contains(&grown), true)
}

/// The last node, to which programs are bound here, with a CPU of its own.
pub(super) struct Last<'a> {
    pub context: &'a Context,
    pub node: NodeId,
}

impl Last<'_> {
    /// Takes all that is free for page cache of a disk, which stays as long as the file is open.
    fn fill_with_cache(&self) -> Result<File, String> {
        let disk = File::open(DISK).map_err(|error| format!("{DISK}: {error}"))?;
        let nodewise = self.context.path();
        shell(&format!(
            "{nodewise} run --membind={} -- dd if={DISK} of=/dev/null bs=1M 2> /dev/null",
            self.node
        ))?;
        let (free, size) = (field(self.node, "MemFree")?, field(self.node, "MemTotal")?);
        same(&format!("whether the node is full of page cache, with {free} kB free"), free < size / 8, true)?;
        Ok(disk)
    }

    /// A bound request of a number of KiB, by explain.
    pub fn explained(&self, kib: u64) -> Result<Value, String> {
        let policy = format!("bind:{}", self.node);
        let size = format!("--size={kib}K");
        self.context.json(&["explain", &policy, &size, "--thp=never", "--json"])
    }

    /// Its end.
    fn foreseen(&self, kib: u64) -> Result<Value, String> {
        Ok(self.explained(kib)?["out_of_memory"]["relief"].clone())
    }

    /// More KiB than the node has and can make free.
    pub fn too_much(&self) -> Result<u64, String> {
        let free = field(self.node, "MemFree")?;
        let (_, caches) = Self::caches(&self.foreseen(free + BEYOND)?)?;
        Ok(free + caches + BEYOND)
    }

    /// Takes it; an error where the kernel kills the program before it has all of it.
    pub fn taken(&self, kib: u64) -> Result<Observed, String> {
        Observed::start("a bound program", &[], &format!("kib={kib} policy=bind:{}", self.node))
    }

    /// The caches of its node, in KiB, at least and at most.
    fn caches(relief: &Value) -> Result<(u64, u64), String> {
        let of = |end: &str| relief["caches_pages"][end].as_u64().map(|pages| pages * 4);
        of("least").zip(of("most")).ok_or_else(|| format!("no caches: {relief}"))
    }
}

/// A node that is full of a disk's page cache gives it to a bound program, and kills it where that is not enough; files in
/// memory it keeps.
pub fn bound(context: &Context) -> Result<(), String> {
    let node = context.seen.nodes_with_memory().last().ok_or("no node has memory")?;
    let last = Last { context, node };
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let _disk = Disk::with("1G")?;
    let disk = last.fill_with_cache()?;
    let (free, before) =
        (field(node, "MemFree")?, field(node, "Inactive(file)")? + field(node, "Active(file)")?);
    let kib = free + before / 2;
    let relief = last.foreseen(kib)?;
    same(&format!("verdict of {relief}"), relief["verdict"].as_str(), Some("survives"))?;
    let mut program = last.taken(kib)?;
    let nodes: Vec<u32> = program.sampled()?.into_keys().collect();
    same("nodes of its pages", nodes, vec![node.number()])?;
    let after = field(node, "Inactive(file)")? + field(node, "Active(file)")?;
    let dropped = relief["dropped_pages"]["least"].as_u64().map(|pages| pages * 4);
    let dropped = dropped.ok_or_else(|| format!("no pages are dropped: {relief}"))?;
    // What kswapd frees beside, up to the high watermarks.
    let given = before.saturating_sub(after);
    same(
        &format!("whether {given} kB of page cache are dropped for {dropped}"),
        (dropped.saturating_sub(BEYOND)..dropped + BEYOND).contains(&given),
        true,
    )?;
    drop(program);
    drop(disk);

    let disk = last.fill_with_cache()?;
    let kib = last.too_much()?;
    let relief = last.foreseen(kib)?;
    same(&format!("verdict of {relief}"), relief["verdict"].as_str(), Some("killed"))?;
    same("whether a program that is too large is killed", last.taken(kib).is_err(), true)?;
    drop(disk);

    files_in_memory(&last)
}

/// The page cache of a file on ext4 that a bound program has written, some of it not on the disk yet: it makes room for another
/// program, too.
pub fn dirty(context: &Context) -> Result<(), String> {
    let node = context.seen.nodes_with_memory().last().ok_or("no node has memory")?;
    let last = Last { context, node };
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    // Little is written back before it has to be. The timer would write all that is dirty on a disk that has not yet shown how
    // fast it is (`wb_over_bg_thresh`).
    let _late = [
        Setting::with("/proc/sys/vm/dirty_ratio", "95")?,
        Setting::with("/proc/sys/vm/dirty_background_ratio", "90")?,
        Setting::with("/proc/sys/vm/dirty_writeback_centisecs", "0")?,
    ];
    let _disk = Disk::with("1G")?;
    shell(&format!("mkfs.ext4 -q {DISK} && mkdir -p {MOUNT}"))?;
    if let Err(error) = shell(&format!("mount -t ext4 {DISK} {MOUNT}")) {
        let is_old = kernel::log().iter().any(|line| line.contains("Cannot load crc32c driver"));
        same(&format!("whether ext4 lacks a module of this kernel: {error}"), is_old, true)?;
        println!(
            "{FIGURE}skipped: no crc32c, which ext4 needs: cargo xtask lab-setup fetches this kernel with it"
        );
        return Ok(());
    }
    let checked = written(&last);
    shell(&format!("umount {MOUNT} && rmdir {MOUNT}"))?;
    checked
}

fn written(last: &Last<'_>) -> Result<(), String> {
    let node = last.node;
    // More would wake kswapd, which has dirty pages written.
    let mebibytes = (field(node, "MemFree")? >> 10) * 2 / 3;
    shell(&format!(
        "{} run --membind={node} -- dd if=/dev/zero of={MOUNT}/file bs=1M count={mebibytes} 2> /dev/null",
        last.context.path()
    ))?;
    let files = || Ok::<u64, String>(field(node, "Inactive(file)")? + field(node, "Active(file)")?);
    let (before, dirty, free) = (files()?, field(node, "Dirty")?, field(node, "MemFree")?);
    println!("{FIGURE}{dirty} of {before} kB of page cache are dirty, {free} kB are free");
    same(&format!("whether {dirty} of {before} kB are dirty"), dirty > 32 << 10, true)?;
    let kib = free + before / 2;
    let relief = last.foreseen(kib)?;
    same(&format!("verdict of {relief}"), relief["verdict"].as_str(), Some("survives"))?;
    let mut program = last.taken(kib)?;
    let nodes: Vec<u32> = program.sampled()?.into_keys().collect();
    same("nodes of its pages", nodes, vec![node.number()])?;
    let (after, left) = (files()?, field(node, "Dirty")?);
    println!("{FIGURE}{after} kB of page cache are left, {left} kB of them dirty");
    let dropped = relief["dropped_pages"]["least"].as_u64().map(|pages| pages * 4);
    let dropped = dropped.ok_or_else(|| format!("no pages are dropped: {relief}"))?;
    let given = before.saturating_sub(after);
    same(&format!("whether {given} kB are dropped for {dropped}"), given + BEYOND >= dropped, true)?;
    drop(program);
    let kib = last.too_much()?;
    let relief = last.foreseen(kib)?;
    same(&format!("verdict of {relief}"), relief["verdict"].as_str(), Some("killed"))?;
    same("whether a program that is too large is killed", last.taken(kib).is_err(), true)?;
    let left = files()?;
    println!("{FIGURE}{left} kB of page cache are left when it is killed");
    Ok(())
}

fn files_in_memory(last: &Last<'_>) -> Result<(), String> {
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let mebibytes = (field(last.node, "MemFree")? >> 10) / 2;
    let before = field(last.node, "FilePages")?;
    shell(&format!(
        "mkdir -p {FILES} && mount -t tmpfs -o size=100%,mpol=bind:{} files {FILES} && \
         dd if=/dev/zero of={FILES}/file bs=1M count={mebibytes} 2> /dev/null",
        last.node
    ))?;
    let checked = (|| {
        // Each CPU keeps half a megabyte of a counter to itself.
        let grown = (field(last.node, "FilePages")?.saturating_sub(before) >> 10) + 4;
        same(&format!("whether {grown} of {mebibytes} MiB are pages of files"), grown >= mebibytes, true)?;
        let kib = field(last.node, "MemFree")? + BEYOND;
        let relief = last.foreseen(kib)?;
        same(&format!("verdict of {relief}"), relief["verdict"].as_str(), Some("killed"))?;
        same("whether the program is killed", last.taken(kib).is_err(), true)
    })();
    shell(&format!("umount {FILES} && rmdir {FILES}"))?;
    checked
}
