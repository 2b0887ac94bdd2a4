//! A node whose free memory is in small pieces between pages that cannot move: a pool there, and page cache.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nodewise_conformance::kernel;
use nodewise_machine::{Bytes, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_model::Weights;
use nodewise_model::simulate::{Act, Backing, FilePart, Mapping, Simulation};
use nodewise_source::settings::Setting;
use nodewise_source::tree::Tree;
use nodewise_syscall::mempolicy::set_thread_policy;
use serde_json::Value;

use super::model::{memory, release};
use super::moving::{expect, file, free, run, two};
use super::running::event;
use super::same;
use super::short::{DISK, Disk, shell};
use crate::guest::FIGURE;
use crate::nodewise::{Context, complaint};
use crate::setting;
use crate::zoneinfo::{self, Zone};

/// The size of the pages of the pool.
const HUGE: Bytes = Bytes::from_mib(2);
/// Pieces of memory that stay and that go, in turn: eight to a huge page.
pub(super) const PIECE: Bytes = Bytes::from_kib(256);
/// One part in this many of the free memory is never filled, and is what the pool can get.
const LEFT: u64 = 4;

/// Memory in pieces, until this is dropped.
///
/// Files of ramfs: the kernel allocates their pages as unmovable ones, and has no way to move them.
pub(super) struct Pieces {
    folder: PathBuf,
    count: u64,
}

impl Pieces {
    /// Fills a node but for a part of it.
    pub(super) fn fill(node: NodeId) -> Result<Self, String> {
        let folder = std::env::temp_dir().join("nodewise-pieces");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let mounted = Command::new("mount").args(["-t", "ramfs", "none"]).arg(&folder).status();
        same("mount", mounted.map_err(|error| error.to_string())?.success(), true)?;
        let room = free(node)?.get();
        let pieces = Self { folder, count: (room - room / LEFT) / PIECE.get() };
        let piece = vec![1; PIECE.get() as usize];
        // Preferred: a page too many for the node is better on another one than the end of the guest.
        let policy =
            |mode, nodes| set_thread_policy(&MemPolicy::new(mode, nodes)).map_err(|error| error.to_string());
        policy(PolicyMode::Preferred, NodeSet::from_iter([node]))?;
        let filled = (0..pieces.count).try_for_each(|at| fs::write(pieces.path(at), &piece));
        policy(PolicyMode::Default, NodeSet::new())?;
        filled.map_err(|error| error.to_string())?;
        Ok(pieces)
    }

    fn path(&self, at: u64) -> PathBuf {
        self.folder.join(at.to_string())
    }

    /// Frees every other one.
    pub(super) fn thin_out(&self) -> Result<(), String> {
        let mut odd = (0..self.count).filter(|at| at % 2 == 1);
        odd.try_for_each(|at| fs::remove_file(self.path(at)).map_err(|error| error.to_string()))
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.folder).status();
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Most of the free memory of a node is in pieces that no compaction joins: the pool gets the rest, and nodewise says
/// so. Without the pages between them it gets all.
pub fn pool(context: &Context) -> Result<(), String> {
    let (_, node) = two(context)?;
    // Page cache would be an unknown reserve.
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let setting = Setting::HugePages { node, size: HUGE };
    let pool = || setting.read(&Tree::live()).map_err(|error| error.to_string())?.ok_or("no pool".to_owned());
    let before = pool()?;
    let pieces = Pieces::fill(node)?;
    pieces.thin_out()?;
    // A sixteenth is what the kernel keeps, and what its lists of free pages have not given back.
    let asked = before + free(node)?.get() / HUGE.get() * 15 / 16;
    let journal = format!("--journal={}", file("journal-of-pieces").display());
    let set =
        ["hugepages", "set", &format!("{node}={asked}"), "--size=2M", &journal, "--json"].map(str::to_owned);
    let scanned = event("compact_migrate_scanned")?;
    let (code, changed) = run(context, &set)?;
    let (got, free) = (pool()?, free(node)?);
    let shown = &changed["pools"][0];
    let number = |key: &str| shown[key].as_u64().ok_or_else(|| format!("no {key}: {changed}"));
    same("exit code", code, Some(1))?;
    same(
        "pages before, asked for and after",
        [number("before_pages")?, number("asked_pages")?, number("after_pages")?],
        [before, asked, got],
    )?;
    expect(before < got && got < asked, || format!("{got} of {asked} pages, {before} before"))?;
    // It is not memory that is missing.
    let short = HUGE.times(asked - got);
    expect(free.get() > short.get() / 2, || format!("{free} free, {short} short: {changed}"))?;
    let largest = Bytes::new(number("largest_free_block_bytes")?);
    expect(largest <= HUGE && largest.times(8) < free, || {
        format!("blocks of {largest} in {free}: {changed}")
    })?;
    // Each compaction is followed by a try, and the last one gains nothing or is the third.
    let tries: Vec<u64> =
        shown["after_each_try_pages"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let compactions = number("compactions")?;
    same("tries and compactions", tries.len() as u64, compactions + 1)?;
    same("the last try", tries.last(), Some(&got))?;
    expect((1..=3).contains(&compactions), || format!("{compactions} compactions: {changed}"))?;
    let scanned = event("compact_migrate_scanned")? - scanned;
    expect(scanned > 0, || format!("{compactions} compactions, and the kernel looked at no page"))?;
    let text = context.output(&["hugepages", "set", &format!("{node}={asked}"), "--size=2M", &journal])?;
    same("exit code as text", text.status.code(), Some(1))?;
    let text = String::from_utf8_lossy(&text.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let said = format!("node {node}: {} of {}", HUGE.times(pool()?), HUGE.times(asked));
    expect(text.contains(&said) && text.contains("largest free block"), || format!("no {said:?}: {text}"))?;
    drop(pieces);
    let (code, changed) = run(context, &set)?;
    same("exit code without the pages between", (code, pool()?), (Some(0), asked))
        .map_err(|why| format!("{why}: {changed}"))?;
    while pool()? != before {
        let undone = context.output(&["hugepages", "undo", &journal])?;
        same("exit code of undo", undone.status.code(), Some(0))
            .map_err(|why| format!("{why}: {}", complaint(&undone)))?;
    }
    Ok(())
}

/// The page cache of each node is in the interval of the model where one in pieces runs short, with `vm.watermark_boost_factor` as it
/// is and with 0: its watermarks are raised, and kswapd frees that much more for a program that is bound to it. Files of one that is not
/// may have pages from there again and again instead of the next node; memory of such a program takes the next node's.
pub fn page_cache(context: &Context) -> Result<(), String> {
    const FACTOR: &str = "/proc/sys/vm/watermark_boost_factor";
    const READ_AHEAD: &str = "/sys/block/zram0/queue/read_ahead_kb";
    let (_, node) = two(context)?;
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let _disk = Disk::with("1G")?;
    let pieces = Pieces::fill(node)?;
    pieces.thin_out()?;
    // 6.18 reads ahead in larger pages, which a node in pieces does not have: they come from the next one.
    let _single = setting::Setting::with(READ_AHEAD, "0")?;
    let own = kernel::line(FACTOR)?;
    for factor in ["0", own.as_str()] {
        let _factor = setting::Setting::with(FACTOR, factor)?;
        let boost = factor.parse().map_err(|_| format!("{FACTOR}: {factor}"))?;
        for whose in [Whose::Bound, Whose::Free, Whose::Memory] {
            beyond(context, node, boost, whose)
                .map_err(|why| format!("factor {factor}, {whose:?}: {why}"))?;
        }
    }
    Ok(())
}

/// Who uses more pages than a node has free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// A program that is bound to the node and reads.
    Bound,
    /// One that is not bound and reads.
    Free,
    /// The first, and then one that is not bound and has memory of its own.
    Memory,
}

/// Uses more pages than a node has free, and compares the page cache of each node.
fn beyond(context: &Context, node: NodeId, boost: u32, whose: Whose) -> Result<(), String> {
    /// Pages beyond the free ones that are read.
    const BEYOND: u64 = 16_384;
    /// MiB of memory.
    const MEMORY: u64 = 100;
    /// Pages by which those of the kernel itself may change meanwhile.
    const OWN: u64 = 4096;
    setting::write("/proc/sys/vm/drop_caches", "1")?;
    let memory = kernel::memory_now(&memory(context)?)?.with_boost(boost);
    let pages = memory.free_of(node) + BEYOND;
    // Free to one CPU alone, and not counted as free. What is freed at once, as the pieces are, stays in its lists, up to an eighth of
    // the node, as long as the CPU is idle.
    let kept: u64 = zoneinfo::zones()?.iter().filter(|zone| zone.state.node == node).map(Zone::kept).sum();
    let mut simulation = Simulation::new(memory, Weights::new(), context.nr_node_ids(), release(context));
    let bound = MemPolicy::new(PolicyMode::Bind, NodeSet::from_iter([node]));
    let is_free = whose == Whose::Free;
    let start =
        |policy: MemPolicy| Act::Start { cpu_node: node, policy, allowed: context.seen.nodes_with_memory() };
    let mut acts = vec![
        ("reader", start(if is_free { MemPolicy::DEFAULT } else { bound })),
        ("reader", Act::Read(FilePart { file: "disk".to_owned(), pages: 0..pages })),
    ];
    if whose == Whose::Memory {
        let mapping = Mapping {
            region: "memory".to_owned(),
            pages: MEMORY << 8,
            backing: Backing::NeverHuge,
            policy: None,
            first_page: None,
        };
        acts.extend([("taker", start(MemPolicy::DEFAULT)), ("taker", Act::Allocate(mapping))]);
    }
    for (name, act) in &acts {
        simulation.play(name, act).map_err(|refused| format!("{refused:?}"))?;
    }
    // The cache of a disk goes with the last that has it open.
    let _open = File::open(DISK).map_err(|error| format!("{DISK}: {error}"))?;
    let before = kernel::page_cache()?;
    let run = |membind: &str, dd: &str| {
        shell(&format!("{} run --cpunodebind={node} {membind} -- dd {dd} 2> /dev/null", context.path()))
    };
    let membind = if is_free { String::new() } else { format!("--membind={node}") };
    run(&membind, &format!("if={DISK} of=/dev/null bs=4k count={pages}"))?;
    // kswapd goes on for a moment.
    std::thread::sleep(Duration::from_secs(1));
    if whose == Whose::Memory {
        run("", &format!("if=/dev/zero of=/dev/null bs={MEMORY}M count=1"))?;
        std::thread::sleep(Duration::from_secs(1));
    }
    let after = kernel::page_cache()?;
    for own in &context.seen.nodes_with_memory() {
        let of = |pages: &BTreeMap<NodeId, u64>| pages.get(&own).copied().unwrap_or(0) as i64;
        let grown = of(&after) - of(&before);
        let foreseen = simulation.page_cache().get(&own).copied().unwrap_or_default();
        println!(
            "{FIGURE}factor {boost}, {whose:?}: {grown} of {pages} pages are in the cache of node {own}, foreseen {foreseen:?}"
        );
        // Pages in lists of the node's CPUs come from it, and not from the others.
        let (fewer, more) = if own == node { (OWN, OWN + kept) } else { (OWN + kept, OWN) };
        let allowed = foreseen.least as i64 - fewer as i64..=(foreseen.most + more) as i64;
        expect(allowed.contains(&grown), || {
            format!(
                "{grown} pages of page cache on node {own}, {foreseen:?} foreseen, {kept} in lists of CPUs"
            )
        })?;
    }
    Ok(())
}
