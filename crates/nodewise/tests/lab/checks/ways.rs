//! Ten ways to take memory, and what nodewise says of programs that took it so.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use nodewise_machine::{CpuId, NodeId};
use serde_json::Value;

use super::same;
use crate::nodewise::Context;
use crate::observer::{ByNode, Mappings, Observed, by_node};
use crate::setting::{self, Setting};

/// Pages of a pool that a program takes, 2 MiB each.
const POOLED: u64 = 4;
/// Memory that is away from its program, in KiB: more than any other program has.
const AWAY: u64 = 48 << 10;
const KEY: i32 = 0x6e6f_6465;
/// Sizes of a file that is mapped: large enough to be seen beside the program's own.
const FILE: std::ops::Range<u64> = 2 << 20..4 << 20;
/// Where such a file is looked for.
const FOLDERS: [&str; 3] = ["/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/lib/git-core"];
/// The interval of `stat`, in seconds.
const INTERVAL: f64 = 2.0;
/// The share by which an account of CPU time may be off: the emulated guest reads the files of a sample one after the
/// other for tenths of a second, so windows do not agree.
const SLACK: f64 = 0.15;

/// Four nodes with a CPU and memory each.
#[derive(Clone, Copy)]
pub struct Nodes {
    pub ids: [NodeId; 4],
    pub cpus: [CpuId; 4],
}

impl Nodes {
    pub fn find(context: &Context) -> Result<Self, String> {
        let nodes = context.seen.nodes_with_cpus().intersection(&context.seen.nodes_with_memory());
        let ids: Vec<NodeId> = nodes.iter().take(4).collect();
        let cpus: Vec<CpuId> = ids.iter().filter_map(|node| context.seen.cpus_of(*node).first()).collect();
        let few = || "expected four nodes with CPUs and memory".to_owned();
        Ok(Self { ids: ids.try_into().map_err(|_| few())?, cpus: cpus.try_into().map_err(|_| few())? })
    }
}

/// A way with what nodewise is expected to say of its memory.
struct Placed {
    program: Observed,
    kind: &'static str,
    policy: Option<String>,
    /// Bytes of its memory by node; `None` where only the program itself knows.
    nodes: Option<ByNode>,
}

/// Programs in every way, while the settings that they need last.
pub struct Ten {
    placed: Vec<Placed>,
    _reader: Observed,
    _settings: [Setting; 2],
}

/// The places of programs in the list.
const LOCAL: usize = 0;
const FAR: usize = 1;
const WANDERS: usize = 2;
/// Those that work while CPU time is looked at.
const BUSY: [usize; 2] = [LOCAL, WANDERS];

impl Ten {
    pub fn start(context: &Context, at: Nodes) -> Result<Self, String> {
        let Nodes { ids: [a, b, c, d], cpus: [on_a, on_b, _, on_d] } = at;
        let pool = format!("/sys/devices/system/node/node{c}/hugepages/hugepages-2048kB/nr_hugepages");
        let settings = [
            Setting::with("/proc/sys/kernel/numa_balancing", "0")?,
            Setting::with(pool, &POOLED.to_string())?,
        ];
        let file = file()?;
        let nodewise = context.path();
        let (on_c, on_node_d) = (format!("--membind={c}"), format!("--membind={d}"));
        let all = at.cpus.map(|cpu| cpu.to_string()).join("+");
        let alone = |kib: u64, node: NodeId| Some(ByNode::from([(node.number(), kib << 10)]));
        let mut placed = Vec::new();
        let mut add = |name: &str, before: &[&str], way: String, kind, policy: Option<&str>, nodes| {
            let program = Observed::start(name, before, &way)?;
            placed.push(Placed { program, kind, policy: policy.map(str::to_owned), nodes });
            Ok::<(), String>(())
        };
        let bound = |node: NodeId| format!("bind:{node}");
        add("local", &[], format!("kib=8192 cpu={on_a}"), "anonymous", Some("default"), alone(8192, a))?;
        let way = format!("kib={AWAY} cpu={on_b} policy=bind:{c}");
        add("bound away", &[], way, "anonymous", Some(&bound(c)), alone(AWAY, c))?;
        add("wandering", &[], format!("kib=4096 wanders={all}"), "anonymous", Some("default"), None)?;
        let nodes = at.ids.map(|node| node.to_string()).join(",");
        let way = format!("kib=16384 cpu={on_a} policy=interleave:{nodes}");
        let quarter = at.ids.map(|node| (node.number(), 4096 << 10)).into();
        let interleaved = format!("interleave:{}", at.ids.into_iter().collect::<nodewise_machine::NodeSet>());
        add("interleaved", &[], way, "anonymous", Some(&interleaved), Some(quarter))?;
        let way = format!("kib=8192 cpu={on_a} touched-on={on_d}");
        add("touched by one thread", &[], way, "anonymous", Some("default"), alone(8192, d))?;
        let (way, run) = (format!("kib=8192 segment={KEY}"), [nodewise, "run", &on_c, "--"]);
        add("shared", &run, way, "shared", Some(&bound(c)), alone(8192, c))?;
        let way = format!("kib=8192 segment={KEY} sees cpu={on_b}");
        add("sharing", &[], way, "shared", None, alone(8192, c))?;
        // Its first reader decides where its pages are, and stays as long as they are looked at.
        let way = format!("file={}", file.display());
        let reader = Observed::start("reader", &[nodewise, "run", &on_node_d, "--"], &way)?;
        add("file", &[], format!("{way} cpu={on_a}"), "file", Some("default"), None)?;
        let way = format!("kib=16384 pages=transparent cpu={on_a} policy=bind:{b}");
        add("transparent", &[], way, "anonymous", Some(&bound(b)), alone(16384, b))?;
        let way = format!("kib={} pages=pool cpu={on_a} policy=bind:{c}", POOLED * 2048);
        add("pool", &[], way, "hugetlb", Some(&bound(c)), alone(POOLED * 2048, c))?;
        let shell = [nodewise, "run", &on_node_d, "--", "sh", "-c", "\"$@\"; true", "sh"];
        add("child", &shell, "kib=8192".to_owned(), "anonymous", Some(&bound(d)), alone(8192, d))?;
        Ok(Self { placed, _reader: reader, _settings: settings })
    }

    /// The one with the most stranded memory.
    pub fn far(&mut self) -> &mut Observed {
        &mut self.placed[FAR].program
    }

    /// Those that are to work.
    pub fn busy(&mut self) -> impl Iterator<Item = &mut Observed> {
        self.placed[..]
            .iter_mut()
            .enumerate()
            .filter(|(at, _)| BUSY.contains(at))
            .map(|(_, placed)| &mut placed.program)
    }
}

/// A file that no program maps, out of the page cache.
pub fn file() -> Result<PathBuf, String> {
    let files = FOLDERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let is_right = |path: &PathBuf| {
        fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && FILE.contains(&found.len()))
            && !path.to_string_lossy().contains(char::is_whitespace)
    };
    let path = files.map(|entry| entry.path()).find(is_right);
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    path.ok_or_else(|| format!("no file of {FILE:?} bytes in {FOLDERS:?}"))
}

/// Where memory is, by `maps` and `stat`, and by each program's own count; the program with the most stranded memory is
/// first; and where CPU time was spent.
pub fn ten_programs(context: &Context) -> Result<(), String> {
    let at = Nodes::find(context)?;
    let mut ten = Ten::start(context, at)?;
    let mut before = Vec::new();
    for Placed { program, .. } in &mut ten.placed {
        // The first answer takes memory for itself.
        program.pages()?;
        before.push((program.pages()?, program.maps(context, &["--exact"])?));
    }
    let pids: Vec<String> = ten.placed.iter().map(|placed| format!("--pid={}", placed.program.pid)).collect();
    let words: Vec<&str> = ["stat", "--json"].into_iter().chain(pids.iter().map(String::as_str)).collect();
    let stat = context.json(&words)?;
    for (placed, (before, maps)) in ten.placed.iter_mut().zip(&before) {
        let after = placed.program.pages()?;
        let agrees =
            mappings(placed, before, maps, &after, at).and_then(|()| sums(placed, before, &stat, &after));
        agrees.map_err(|why| format!("{}: {why}", placed.program.name))?;
    }
    let (far, first) = (&ten.placed[FAR].program, &stat["processes"][0]);
    same("the first process", first["pid"].as_u64(), Some(far.pid.into()))?;
    let own = by_node(&first["memory"]["by_node"]);
    let away: u64 = own.iter().filter(|(node, _)| **node != at.ids[1].number()).map(|(_, size)| *size).sum();
    same("stranded memory", first["stranded_bytes"].as_u64(), Some(away))?;
    cpu_time(context, &mut ten, at)
}

/// `maps` beside the program's own count, mapping by mapping: those that did not change meanwhile.
fn mappings(
    placed: &Placed,
    before: &Mappings,
    maps: &Value,
    after: &Mappings,
    at: Nodes,
) -> Result<(), String> {
    let program = &placed.program;
    same("method", maps["method"].as_str(), Some("exact"))?;
    let (mut all, mut found) = (ByNode::new(), BTreeMap::new());
    for mapping in maps["mappings"].as_array().into_iter().flatten() {
        let start = mapping["start"].as_str().and_then(|text| u64::from_str_radix(text, 16).ok());
        let start = start.ok_or_else(|| format!("no start: {mapping}"))?;
        by_node(&mapping["nodes"]).into_iter().for_each(|(node, size)| *all.entry(node).or_default() += size);
        found.insert(start, mapping);
    }
    same("nodes of all mappings", by_node(&maps["nodes"]), all)?;
    let still = before.iter().filter(|(start, pages)| after.get(start) == Some(pages));
    for (start, pages) in still.filter(|(_, pages)| !is_kernels(&pages.name)) {
        let mapping = found.get(start).ok_or_else(|| format!("no mapping {start:x} {}", pages.name))?;
        same(&format!("pages of {start:x} {}", pages.name), &by_node(&mapping["nodes"]), &pages.nodes)?;
        let huge = mapping["transparent_huge_bytes"].as_u64().unwrap_or_default();
        if mapping["kind"] == "anonymous" {
            same(&format!("huge pages of {start:x}"), huge, pages.huge)?;
        }
    }
    let own = found.get(&program.address).ok_or("its memory is no mapping of its own")?;
    let pages = before.get(&program.address).ok_or("its memory has no pages")?;
    same("its memory afterwards", after.get(&program.address), Some(pages))?;
    if let Some(nodes) = &placed.nodes {
        same("its memory", &pages.nodes, nodes)?;
    } else if placed.kind == "file" {
        let cached = pages.nodes.get(&at.ids[3].number()).copied().unwrap_or(0);
        if cached * 10 < program.length * 9 {
            let all = program.length;
            return Err(format!("of {all} bytes only {cached} are cached on another node: {pages:?}"));
        }
    }
    same("kind", own["kind"].as_str(), Some(placed.kind))?;
    if let Some(policy) = &placed.policy {
        same("policy", own["policy"].as_str(), Some(policy.as_str()))?;
    }
    Ok(())
}

/// Whether the kernel made this mapping: its pages are in no `numa_maps`.
fn is_kernels(name: &str) -> bool {
    name.starts_with("[v")
}

/// `stat` beside the program's own count: no less and no more than what it had before and afterwards.
fn sums(placed: &Placed, before: &Mappings, stat: &Value, after: &Mappings) -> Result<(), String> {
    let process = row(stat, placed.program.pid)?;
    same("method of stat", process["memory"]["method"].as_str(), Some("exact"))?;
    let counted = by_node(&process["memory"]["by_node"]);
    let (mut least, mut most) = (ByNode::new(), ByNode::new());
    for (start, pages) in after.iter().filter(|(_, pages)| !is_kernels(&pages.name)) {
        for (node, size) in &pages.nodes {
            let then = before.get(start).and_then(|pages| pages.nodes.get(node)).copied().unwrap_or(0);
            *least.entry(*node).or_default() += then.min(*size);
            *most.entry(*node).or_default() += then.max(*size);
        }
    }
    for node in counted.keys().chain(most.keys()) {
        let of = |sizes: &ByNode| sizes.get(node).copied().unwrap_or(0);
        let (got, least, most) = (of(&counted), of(&least), of(&most));
        if !(least..=most).contains(&got) {
            return Err(format!("stat of node {node}: got {got}, expected {least} to {most}"));
        }
    }
    Ok(())
}

/// The row of a process in what `stat` printed.
pub fn row(stat: &Value, pid: u32) -> Result<&Value, String> {
    let mut rows = stat["processes"].as_array().into_iter().flatten();
    rows.find(|row| row["pid"] == pid).ok_or_else(|| format!("no process {pid}: {stat}"))
}

/// CPU time by node: programs that stay on a node have all of theirs there, and that of one that wanders lies between
/// what is certain and that with what is unsure.
fn cpu_time(context: &Context, ten: &mut Ten, at: Nodes) -> Result<(), String> {
    let pids = BUSY.map(|busy| format!("--pid={}", ten.placed[busy].program.pid));
    ten.busy().try_for_each(|program| program.ask("work").map(drop))?;
    let every = format!("--every={INTERVAL}s");
    let stat = context.json(&["stat", "--json", "--count=1", &every, &pids[0], &pids[1]]);
    ten.busy().try_for_each(|program| program.ask("rest").map(drop))?;
    let stat = stat?;
    let number = |of: &Value, key: &str| of[key].as_f64().ok_or_else(|| format!("no {key}: {of}"));
    let (until, interval) = (number(&stat, "since_boot_s")?, number(&stat, "interval_s")?);
    for busy in BUSY {
        let program = &mut ten.placed[busy].program;
        let row = row(&stat, program.pid)?;
        let truth = program.time(until - interval, until)?;
        let all: f64 = truth.values().sum();
        let unsure = number(row, "cpu_unsure_share")?;
        if all < interval / 10.0 || number(row, "cpu_share")? < 0.1 {
            return Err(format!("{} worked for {all:.2} s: {row}", program.name));
        }
        let certain = |node: u32| {
            let mut nodes = row["cpu_by_node"].as_array().into_iter().flatten();
            let on = nodes.find(|on| on["node"] == node);
            on.and_then(|on| on["certain_share"].as_f64()).unwrap_or(0.0)
        };
        for node in at.ids.map(NodeId::number) {
            let low = certain(node);
            let share = truth.get(&node).copied().unwrap_or(0.0) / all;
            if share < low - SLACK || low + unsure + SLACK < share {
                return Err(format!(
                    "CPU time of {} on node {node}: a share of {share:.2}, and stat says {low:.2} to {:.2}\n{row}",
                    program.name,
                    low + unsure
                ));
            }
        }
        if busy != WANDERS && unsure > SLACK {
            return Err(format!("{} never left its node, and {unsure:.2} are unsure: {row}", program.name));
        }
    }
    Ok(())
}
