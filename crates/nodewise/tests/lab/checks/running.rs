//! The running system beside the kernel's own counts: drawn pages, balancing, counters of nodes, and rights.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use nodewise_machine::{Bytes, MemPolicy, NodeCounters, NodeId, Pid};
use nodewise_source::mappings::{PageError, PageSource, Run, RunState, Thoroughness, read};
use nodewise_source::tree::Tree;
use nodewise_syscall::pagemap::{self, PageState};
use nodewise_syscall::{NodeBuffer, PageKind, PageLocation, Task, pages};
use nodewise_view::digest::maps::Tally;
use serde_json::Value;

use super::counters::FIELDS;
use super::full::Ballast;
use super::same;
use super::ways::{Nodes, row};
use crate::cpuset::Cpuset;
use crate::filter::{self, ENOSYS, EPERM, POLICY_CALLS};
use crate::kernel;
use crate::nodewise::{Context, complaint};
use crate::observer::{Observed, by_node};
use crate::setting::{self, Setting};

/// Samples of one program, and pages of each.
const SAMPLES: u64 = 200;
const DRAWN: u64 = 2000;
/// The most of them whose interval may miss the true share. At 95 % the number of misses is binomial (200, 0.05) with a
/// mean of 10: more than 27 come with probability 9.6e-7, the sum of C(200, k) 0.05^k 0.95^(200-k) from 28 on.
/// Intervals that hold in 80 % of the cases miss 40 on average, and 27 or fewer with probability 0.011; those that hold
/// in 70 % with 4e-8. Runs of neighbouring pages hold 20 %.
const MOST_MISSES: u64 = 27;
/// The width of an interval, as a share: Wilson's at 0.7 is 0.045 wide for 1,600 pages, those of the 2,000 that are
/// not in other mappings.
const WIDTHS: std::ops::Range<f64> = 0.035..0.06;

/// The kernel's answers, for samples that cost no start of nodewise.
struct Pages {
    pagemap: fs::File,
    task: Task,
}

impl PageSource for Pages {
    fn page_size(&self) -> u64 {
        pages::page_size() as u64
    }

    fn huge_size(&self) -> u64 {
        2 << 20
    }

    fn runs(&mut self, range: (u64, u64), each: &mut dyn FnMut(Run)) -> Result<(), PageError> {
        let scanned = pagemap::scan(self.pagemap.as_fd(), range, |run| {
            let state = match run.state {
                PageState::Small => RunState::Small,
                PageState::Huge => RunState::Huge,
                PageState::Swapped => RunState::Swapped,
                PageState::Zero => return,
            };
            each(Run { start: run.start, end: run.end, state });
        });
        scanned.map_err(|_| PageError::Unsupported)
    }

    fn locate(&mut self, asked: &[u64], each: &mut dyn FnMut(u64, Option<NodeId>)) -> Result<(), PageError> {
        let asked = asked.iter().map(|address| *address as usize);
        let located = pages::locate(self.task, asked, |address, location| {
            let node = if let PageLocation::Node(node) = location { Some(node) } else { None };
            each(address as u64, node);
        });
        located.map_err(|error| PageError::Refused(error.to_string()))
    }

    fn cpu_time(&mut self) -> Option<Duration> {
        None
    }
}

/// Pages drawn again and again from memory that is on one node in 7 parts of 10.
pub fn drawn_pages(context: &Context) -> Result<(), String> {
    const SEED: u64 = 7;
    let Nodes { ids: [a, b, ..], .. } = Nodes::find(context)?;
    let _balancing = Setting::with("/proc/sys/kernel/numa_balancing", "0")?;
    let weights = "/sys/kernel/mm/mempolicy/weighted_interleave";
    let _weights = [(a, "7"), (b, "3")]
        .map(|(node, weight)| Setting::with(format!("{weights}/node{node}"), weight))
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let way = format!("kib=40000 policy=weighted_interleave:{a},{b}");
    let mut program = Observed::start("seven to three", &[], &way)?;
    let own = program.pages()?;
    let own = own.get(&program.address).ok_or("its memory is no mapping of its own")?;
    let truth = own.nodes.get(&a.number()).copied().unwrap_or_default();
    same("pages of the first node, in 1/10", truth * 10, program.length * 7)?;
    let pagemap =
        fs::File::open(format!("/proc/{}/pagemap", program.pid)).map_err(|error| error.to_string())?;
    let mut source = Pages { pagemap, task: Task::new(program.pid).ok_or("a number")? };
    let (mut missed, mut of_seed) = (0, None);
    for seed in 0..SAMPLES {
        let thoroughness = Thoroughness::Sample(DRAWN);
        let found = read(&Tree::live(), Pid::new(program.pid), thoroughness, seed, Some(&mut source));
        let found = found.map_err(|error| error.to_string())?;
        let drawn =
            found.mappings.iter().find(|mapping| mapping.start == program.address).ok_or("no mapping")?;
        let on = Tally::from_mappings([drawn]).on(a);
        let width = (on.high.get() - on.low.get()) as f64 / program.length as f64;
        same(&format!("whether a width of {width} is in {WIDTHS:?}"), WIDTHS.contains(&width), true)?;
        missed += u64::from(!(on.low.get()..=on.high.get()).contains(&truth));
        of_seed = if seed == SEED { Some((on.low.get(), on.high.get())) } else { of_seed };
    }
    if missed > MOST_MISSES {
        return Err(format!("{missed} of {SAMPLES} intervals do not hold the true share"));
    }
    // The same sample, as `maps` shows it.
    let words = [format!("--sample={DRAWN}"), format!("--seed={SEED}")];
    let maps = program.maps(context, &words.each_ref().map(String::as_str))?;
    same("method", maps["method"].as_str(), Some("sampled"))?;
    let start = format!("{:x}", program.address);
    let mut mappings = maps["mappings"].as_array().into_iter().flatten();
    let drawn = mappings.find(|mapping| mapping["start"] == start.as_str()).ok_or("no mapping")?;
    let on = drawn["nodes"].as_array().into_iter().flatten().find(|on| on["node"] == a.number());
    let shown = on.and_then(|on| Some((on["low_bytes"].as_u64()?, on["high_bytes"].as_u64()?)));
    same("the interval of maps", shown, of_seed)
}

/// `stat` that runs with an interval of a second, a document a line.
struct Watching {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    seen: Vec<Value>,
}

impl Watching {
    fn start(context: &Context, more: &[String]) -> Result<Self, String> {
        let mut command = Command::new(context.path());
        command.args(["stat", "--json", "--every=1s"]).args(more).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        Ok(Self { child, lines, seen: Vec::new() })
    }

    /// Reads documents until there are this many.
    fn wait_for(&mut self, documents: usize) -> Result<(), String> {
        while self.seen.len() < documents {
            let line = self.lines.next().ok_or("stat has ended")?.map_err(|error| error.to_string())?;
            self.seen.push(serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?);
        }
        Ok(())
    }

    /// All documents, when it has ended.
    fn end(mut self, documents: usize) -> Result<Vec<Value>, String> {
        self.wait_for(documents)?;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        same("exit code of stat", status.code(), Some(0))?;
        Ok(std::mem::take(&mut self.seen))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number of `/proc/vmstat`.
pub fn event(name: &str) -> Result<u64, String> {
    let text = fs::read_to_string("/proc/vmstat").map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|count| count.parse().ok()).ok_or_else(|| format!("no {name} in /proc/vmstat"))
}

/// Account of balancing for a thread, by `/proc/PID/task/TID/sched`: pages moved, preferred node, decayed faults as node,
/// private and shared.
type Balanced = (u64, i64, Vec<(u64, u64, u64)>);

fn balanced(pid: u32) -> Result<BTreeMap<u64, Balanced>, String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| error.to_string())?;
    let mut threads = BTreeMap::new();
    for task in tasks.flatten() {
        let text = fs::read_to_string(task.path().join("sched")).map_err(|error| error.to_string())?;
        let mut thread: Balanced = (0, -1, Vec::new());
        for line in text.lines() {
            let number = || line.rsplit(' ').next().and_then(|word| word.parse::<i64>().ok());
            if line.starts_with("numa_pages_migrated") {
                thread.0 = number().unwrap_or_default() as u64;
            } else if line.starts_with("numa_preferred_nid") {
                thread.1 = number().unwrap_or(-1);
            } else if let Some(faults) = line.strip_prefix("numa_faults ") {
                let value = |key: &str| -> Option<u64> {
                    faults.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
                };
                let faults = value("node").zip(value("task_private")).zip(value("task_shared"));
                thread.2.extend(faults.map(|((node, private), shared)| (node, private, shared)));
            }
        }
        let tid = task.file_name().to_string_lossy().parse().map_err(|_| "a thread has a number")?;
        threads.insert(tid, thread);
    }
    Ok(threads)
}

/// A thread reads memory of another node until balancing has moved it there, and rests: what `stat` says of it is what
/// the kernel says.
pub fn balancing(context: &Context) -> Result<(), String> {
    const DOCUMENTS: usize = 9;
    let Nodes { cpus: [on_a, on_b, ..], ids: [_, b, ..] } = Nodes::find(context)?;
    let _quick = quick_balancing();
    let way = format!("kib=16384 cpu={on_b} touched-on={on_a} reads");
    let mut program = Observed::start("remote", &[], &way)?;
    let _balancing = Setting::with("/proc/sys/kernel/numa_balancing", "1")?;
    let around = event("numa_pages_migrated")?;
    let words = ["--per-thread".to_owned(), format!("--pid={}", program.pid), format!("--count={DOCUMENTS}")];
    let mut watching = Watching::start(context, &words)?;
    watching.wait_for(1)?;
    let (before, inside) = (balanced(program.pid)?, event("numa_pages_migrated")?);
    program.ask("work")?;
    watching.wait_for(DOCUMENTS - 2)?;
    program.ask("rest")?;
    let worked = event("numa_pages_migrated")? - inside;
    let documents = watching.end(DOCUMENTS)?;
    let around = event("numa_pages_migrated")? - around;
    let after = balanced(program.pid)?;
    let sum = |of: &dyn Fn(&Value) -> Option<u64>| -> u64 { documents.iter().filter_map(of).sum() };
    let system = sum(&|stat| stat["balancing"]["migrated_pages"].as_u64());
    if !(worked..=around).contains(&system) || worked == 0 {
        return Err(format!("pages that balancing moved: got {system}, expected {worked} to {around}"));
    }
    let moved: u64 =
        after.iter().map(|(tid, thread)| thread.0 - before.get(tid).map_or(0, |thread| thread.0)).sum();
    let own = sum(&|stat| row(stat, program.pid).ok()?["migrated_pages"].as_u64());
    // The first document also has what was moved before the first look here.
    let all: u64 = after.values().map(|thread| thread.0).sum();
    if !(moved..=all).contains(&own) {
        return Err(format!(
            "pages of the program that balancing moved: got {own}, expected {moved} to {all}"
        ));
    }
    same("whether any was moved", moved > 0, true)?;
    let last = row(documents.last().ok_or("no document")?, program.pid)?;
    let mut preferring = false;
    for task in last["tasks"].as_array().into_iter().flatten() {
        let tid = task["tid"].as_u64().unwrap_or_default();
        let (_, preferred, faults) = after.get(&tid).ok_or_else(|| format!("no thread {tid}"))?;
        same("preferred node", task["preferred_node"].as_i64().unwrap_or(-1), *preferred)?;
        preferring |= *preferred == i64::from(b.number());
        let shown: Vec<(u64, u64, u64)> = task["hint_faults_decayed"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|on| Some((on["node"].as_u64()?, on["private"].as_u64()?, on["shared"].as_u64()?)))
            .collect();
        same("faults by node", &shown, faults)?;
    }
    same("threads", last["tasks"].as_array().map(Vec::len), Some(after.len()))?;
    same("whether a thread prefers the node where it runs", preferring, true)
}

/// Where the pace of scans is set.
pub(super) const PACE: &str = "/sys/kernel/debug/sched/numa_balancing";

/// Mounts the file system that has it, where that is missing.
pub(super) fn mount_debugfs() {
    if fs::metadata(PACE).is_err() {
        let words = ["-t", "debugfs", "none", "/sys/kernel/debug"];
        let _ = Command::new("mount").args(words).status();
    }
}

/// Passes over the memory of programs follow each other quickly, where the kernel lets them be set.
pub(super) fn quick_balancing() -> Vec<Setting> {
    mount_debugfs();
    let settings = [("scan_delay_ms", "100"), ("scan_period_min_ms", "200"), ("scan_period_max_ms", "400")];
    settings.iter().filter_map(|(name, value)| Setting::with(format!("{PACE}/{name}"), value).ok()).collect()
}

/// Pages of a node that is nearly full, and memory that is wanted from it: more than the kernel can make room for by dropping what
/// it has read since.
const ROOM: u64 = 2000;
const ASKED_KIB: u64 = 128_000;
/// Pages by which a sum of counters may be off: a reader takes the batches of other CPUs while they add to them.
const LOST: u64 = 64;

/// Pages are wanted from a full node while `stat` counts: what it counted lies between what the kernel counted while
/// they were given, and what it counted from before to after.
pub fn counters(context: &Context) -> Result<(), String> {
    const DOCUMENTS: usize = 4;
    let Nodes { ids: [a, ..], .. } = Nodes::find(context)?;
    let _balancing = Setting::with("/proc/sys/kernel/numa_balancing", "0")?;
    // kswapd would make room on the full node, more of it where memory is fragmented.
    setting::write("/proc/sys/vm/drop_caches", "3")?;
    let _boost = Setting::with("/proc/sys/vm/watermark_boost_factor", "0")?;
    let ballast = Ballast::leaving(a, ROOM)?;
    let around = kernel::numastat();
    let mut watching = Watching::start(context, &[format!("--count={DOCUMENTS}")])?;
    watching.wait_for(1)?;
    let inside = kernel::numastat();
    let policy: MemPolicy = format!("prefer:{a}").parse().map_err(|_| "prefer is a policy")?;
    let wanted = NodeBuffer::new(Bytes::from_kib(ASKED_KIB), PageKind::Small, Some(&policy));
    let given = kernel::numastat();
    let documents = watching.end(DOCUMENTS)?;
    let after = kernel::numastat();
    drop((wanted.map_err(|error| error.to_string())?, ballast));
    let mut foreign = 0;
    for node in context.seen.nodes_with_memory().iter().map(NodeId::number) {
        for (kernels, field) in FIELDS {
            let name = kernels.trim_start_matches("numa_").trim_end_matches("_node");
            let of = |counters: &BTreeMap<u32, NodeCounters>| counters.get(&node).map_or(0, field);
            let least = (of(&given) - of(&inside)).saturating_sub(LOST);
            let most = of(&after) - of(&around) + LOST;
            let counted: u64 = documents
                .iter()
                .flat_map(|stat| stat["nodes"].as_array().into_iter().flatten())
                .filter(|on| on["id"] == node)
                .filter_map(|on| on["allocations"][name].as_u64())
                .sum();
            if !(least..=most).contains(&counted) {
                return Err(format!("node {node} {name}: got {counted}, expected {least} to {most}"));
            }
            foreign += if name == "foreign" { least } else { 0 };
        }
    }
    same("whether other nodes gave pages", foreign > ROOM, true)
}

/// A command behind a filter of system calls.
fn behind_filter(errno: u32, words: &[&str]) -> Result<Output, String> {
    let path = std::env::temp_dir().join(format!("nodewise-filter-{errno}"));
    fs::write(&path, filter::program(&POLICY_CALLS, errno)).map_err(|error| error.to_string())?;
    let script = "exec 9<\"$0\"; exec bwrap --dev-bind / / --seccomp 9 \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(&path).args(words).output().map_err(|error| error.to_string())
}

fn says(what: &str, output: &Output, code: i32, words: &[&str]) -> Result<(), String> {
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), complaint(output));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    same(&format!("exit code of {what}: {said}"), output.status.code(), Some(code))?;
    let missing = words.iter().find(|words| !said.contains(**words));
    missing.map_or(Ok(()), |words| Err(format!("{what} does not say {words:?}: {said}")))
}

/// Another user's process, a filter such as container runtimes install, and a cpuset.
pub fn rights(context: &Context) -> Result<(), String> {
    let Nodes { ids: [a, b, ..], cpus: [_, on_b, ..] } = Nodes::find(context)?;
    let program = Observed::start("root's", &[], &format!("kib=4096 policy=bind:{a}"))?;
    let (nodewise, pid) = (context.path(), program.pid.to_string());
    let nobody = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", nodewise]);
        command.args(words).output().map_err(|error| error.to_string())
    };
    let others = format!("process {pid} is another user's: its mappings need root or CAP_SYS_PTRACE");
    says("maps as another user", &nobody(&["maps", &pid])?, 3, &[&others])?;
    let chosen = format!("--pid={pid}");
    let stat = nobody(&["stat", &chosen])?;
    says("stat as another user", &stat, 0, &["permission denied", "run as root"])?;
    let range = format!("--range={:x}-{:x}", program.address, program.address + program.length);
    let target = format!("--to={b}");
    for (errno, name) in [(EPERM, "EPERM"), (ENOSYS, "ENOSYS")] {
        let cause = format!("a seccomp filter answers move_pages with {name}");
        let mend = "seccomp=PROFILE.json";
        let run = |words: &[&str]| behind_filter(errno, &[&[nodewise], words].concat());
        let exact = run(&["maps", &pid, "--exact", "--json"])?;
        says("maps --exact behind a filter", &exact, 0, &[])?;
        let exact: Value = serde_json::from_slice(&exact.stdout).map_err(|error| error.to_string())?;
        same(
            "nodes behind a filter",
            by_node(&exact["nodes"]),
            by_node(&program.maps(context, &[])?["nodes"]),
        )?;
        let drawn = run(&["maps", &pid, "--sample=100"])?;
        says("maps --sample behind a filter", &drawn, 0, &[&cause, "all pages were counted instead"])?;
        says("maps --range behind a filter", &run(&["maps", &pid, &range])?, 3, &[&cause, mend])?;
        says("migrate behind a filter", &run(&["migrate", &pid, &target, &range])?, 3, &[&cause, mend])?;
        says("stat behind a filter", &run(&["stat", &chosen])?, 0, &[])?;
    }
    let group = Cpuset::new(&on_b.to_string(), &b.to_string())?;
    let inside = group.command(&[nodewise, "stat", "--json", &chosen]).output();
    says("stat in a cpuset", &inside.map_err(|error| error.to_string())?, 0, &[])?;
    let start = format!("echo $$ > {}; exec \"$@\"", group.tasks());
    let confined = Observed::start("confined", &["sh", "-c", &start, "sh"], "kib=1024")?;
    let stat = context.json(&["stat", "--json", &format!("--pid={}", confined.pid)])?;
    let row = row(&stat, confined.pid)?;
    same("nodes of its CPUs", row["may_run_on"].as_str(), Some(b.to_string().as_str()))?;
    let pid = confined.pid.to_string();
    let refused = context.output(&["migrate", &pid, &format!("--to={a}")])?;
    let outside = format!("node {a} is outside the cpuset of process {pid}, which allows node {b}");
    says("migrate out of a cpuset", &refused, 3, &[&outside, "cpuset.mems"])
}
