//! Nodes that run short: swap, node reclaim, watermarks, compaction. Page cache comes from a disk in compressed memory,
//! whose empty blocks cost none.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nodewise_machine::{CpuId, NodeId};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::doctor::{Diagnosed, run};
use super::fragmented::Pieces;
use super::same;
use super::sick::{about_nodes, evidence, is_silent, restart};
use super::ways::Nodes;
use crate::nodewise::{Context, complaint};
use crate::observer::Observed;
use crate::setting::{self, Setting};

const RECLAIM_MODE: &str = "/proc/sys/vm/zone_reclaim_mode";
const MGLRU: &str = "/sys/kernel/mm/lru_gen/enabled";
const RESERVE: &str = "/proc/sys/vm/min_free_kbytes";
const SCALE: &str = "/proc/sys/vm/watermark_scale_factor";
pub(super) const HUGE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";
pub(super) const DISK: &str = "/dev/zram0";
/// More than a node has.
const DISK_SIZE: &str = "640M";
/// Long enough for a guest to reclaim, move and swap something.
pub(super) const WINDOW: &str = "--window=8s";

pub(super) fn shell(command: &str) -> Result<(), String> {
    let output = Command::new("sh").args(["-e", "-c", command]).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    same(&format!("{command}: {}", complaint(&output)), output.status.success(), true)
}

/// A disk in compressed memory; gone when dropped.
pub(super) struct Disk;

impl Disk {
    fn new() -> Result<Self, String> {
        Self::with(DISK_SIZE)
    }

    pub(super) fn with(size: &str) -> Result<Self, String> {
        shell(&format!("modprobe zram && echo {size} > /sys/block/zram0/disksize"))?;
        Ok(Self)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = shell(&format!("swapoff {DISK} 2> /dev/null || true"));
        // A reader that was killed may hold it a moment longer.
        for _ in 0..100 {
            if shell("echo 1 > /sys/block/zram0/reset").is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A command of a shell that runs until this is dropped, on one CPU and behind these words.
pub(super) struct Loop(Child);

impl Loop {
    pub(super) fn on(cpu: CpuId, before: &[&str], body: &str) -> Result<Self, String> {
        let mut words = vec!["taskset".to_owned(), "-c".to_owned(), cpu.to_string()];
        words.extend(before.iter().map(|word| (*word).to_owned()));
        words.extend(["sh", "-c", &format!("while :; do {body}; done")].map(str::to_owned));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
        // What it starts ends with it.
        let started = command.process_group(0).spawn();
        started.map(Self).map_err(|error| format!("{words:?}: {error}"))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // By the call: not every shell's kill takes a group.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Page cache of the whole disk, from one CPU.
pub(super) fn reading() -> String {
    format!("dd if={DISK} of=/dev/null bs=1M")
}

fn found(context: &Context, rule: &str) -> Result<Value, String> {
    Diagnosed::fires(context, &[WINDOW], rule)
}

/// The rule fires beside what goes on, the commands of its mend are run, and it is silent beside the same.
fn mended(context: &Context, rule: &str) -> Result<Value, String> {
    let finding = found(context, rule)?;
    run(context, &finding["mend"][0]["commands"]).map_err(|error| format!("mend of {rule}: {error}"))?;
    let left = Diagnosed::with(context, &[WINDOW])?;
    left.finding(rule).map_or(Ok(()), |left| Err(format!("{rule} still fires: {left}")))?;
    Ok(finding)
}

/// A program larger than the only node that it may use, with swap.
pub fn swapped(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], cpus: [_, on_b, ..] } = Nodes::find(context)?;
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let _disk = Disk::new()?;
    shell(&format!("mkswap {DISK} && swapon {DISK}"))?;
    let size = context.seen.nodes[&b].memory_total().ok_or("a node without a size")?;
    // It fills three quarters, and grows beyond the whole while it is looked at.
    let kib = size.get() >> 10;
    let way = format!("kib={} cpu={on_b} growth={}", kib * 3 / 4, (kib * 3 / 4) >> 10);
    let start = |words: &[String]| -> Result<Observed, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Observed::start("larger than its node", &words, &way)
    };
    let bound = [context.path(), "run", &format!("--membind={b}"), "--"].map(str::to_owned);
    let mut program = start(&bound)?;
    program.ask("grow")?;
    let finding = found(context, "swap-while-free")?;
    same("process", finding["subject"]["pid"].as_u64(), Some(u64::from(program.pid)))?;
    same("severity", finding["severity"].as_str(), Some("critical"))?;
    about_nodes(&finding, &[b])?;
    drop(program);
    let mut program = start(&restart(context, &finding)?)?;
    program.ask("grow")?;
    // The node is full again, and its kswapd swaps until the high watermarks are reached.
    let mut silent = Ok(());
    for _ in 0..10 {
        silent = is_silent(context, "swap-while-free");
        if silent.is_ok() {
            break;
        }
    }
    silent
}

/// A node that reclaims its page cache although others have memory, with the lists of pages that a kernel has: the rule
/// fires, and is silent after its mend.
fn reclaiming(context: &Context, mglru: &str, rule: &str) -> Result<Value, String> {
    let Nodes { ids: [_, b, ..], cpus: [_, on_b, ..] } = Nodes::find(context)?;
    let (_lru, _mode) = (Setting::with(MGLRU, mglru)?, Setting::with(RECLAIM_MODE, "1")?);
    let _disk = Disk::new()?;
    let _reader = Loop::on(on_b, &[], &reading())?;
    full_of_cache(context, b, 8)?;
    mended(context, rule)
}

/// Page cache that a node drops.
pub fn node_reclaim(context: &Context) -> Result<(), String> {
    let finding = reclaiming(context, "0", "zone-reclaim-on")?;
    same("whether any succeeded", evidence(&finding, "succeeded", "per_s")? > 0.0, true)?;
    same("mend", finding["mend"][0]["commands"][0].as_str(), Some("sysctl -w vm.zone_reclaim_mode=0"))
}

/// The same under the lists of MGLRU, which node reclaim does not empty.
pub fn void_reclaim(context: &Context) -> Result<(), String> {
    let finding = reclaiming(context, "y", "zone-reclaim-void")?;
    same("reclaims that succeeded", evidence(&finding, "succeeded", "count")?, 0.0)?;
    same("whether some failed", evidence(&finding, "failed", "count")? > 0.0, true)
}

/// Bursts of allocations on a node whose watermarks leave kswapd no time.
pub fn small_reserve(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], cpus: [_, on_b, ..] } = Nodes::find(context)?;
    let (_scale, _reserve) = (Setting::with(SCALE, "1")?, Setting::with(RESERVE, "256")?);
    let _disk = Disk::new()?;
    let bound = format!("--membind={b}");
    // The cache of a disk goes with the last that has it open.
    let burst = format!(
        "exec 3< {DISK}; for at in $(seq 0 79); do dd if={DISK} of=/dev/null bs=8M count=1 skip=$at; sleep 0.2; done"
    );
    let _reader = Loop::on(on_b, &[context.path(), "run", &bound, "--"], &burst)?;
    // The node is full of page cache after some seconds.
    full_of_cache(context, b, 50)?;
    let finding = mended(context, "reserve-too-small")?;
    same(
        &format!("subject of {finding}"),
        finding["subject"]["nodes"].as_str(),
        Some(b.to_string().as_str()),
    )?;
    same("whether allocations stalled", evidence(&finding, "stalled", "per_s")? >= 1.0, true)
}

/// Waits until at most one part in this many of a node is free.
pub(super) fn full_of_cache(context: &Context, node: NodeId, part: u64) -> Result<(), String> {
    let mut free = None;
    for _ in 0..120 {
        let machine = context.machine()?;
        let of_node = &machine.nodes[&node];
        free = of_node.memory_free();
        if free.zip(of_node.memory_total()).is_some_and(|(free, size)| free.get() < size.get() / part) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
    Err(format!("node {node} does not fill with page cache: {free:?} are free"))
}

/// Huge pages on a node whose free memory is in small pieces.
pub fn compaction(context: &Context) -> Result<(), String> {
    let Nodes { ids: [_, b, ..], cpus: [_, on_b, ..] } = Nodes::find(context)?;
    let (_huge, _defrag) = (Setting::with(HUGE, "always")?, Setting::with(DEFRAG, "always")?);
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    // A quarter of what is free stays in one piece: less than the program takes. No compaction joins the rest, and each is tried.
    let pieces = Pieces::fill(b)?;
    pieces.thin_out()?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let takes = format!("{} --observed kib=196608 pages=transparent < /dev/null", own.display());
    let _taker = Loop::on(on_b, &[], &takes)?;
    let finding = mended(context, "thp-remote-or-stalling").map_err(|error| {
        let counters = fs::read_to_string("/proc/vmstat").unwrap_or_default();
        let is_about_huge = |line: &&str| ["compact_", "thp_fault"].iter().any(|name| line.starts_with(name));
        format!("{:?}: {error}", counters.lines().filter(is_about_huge).collect::<Vec<_>>())
    })?;
    same("whether allocations stalled", evidence(&finding, "stalls", "per_s")? > 0.0, true)
}
