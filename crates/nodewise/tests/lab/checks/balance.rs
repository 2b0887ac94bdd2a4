//! `balance` on programs that are away from their memory: planned, moved, taken back, and left alone.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nodewise_machine::{CpuId, CpuSet, NodeId};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::moving::{expect, file};
use super::same;
use super::ways::Nodes;
use crate::cpuset::Cpuset;
use crate::guest::FIGURE;
use crate::nodewise::{Context, complaint};
use crate::observer::{Observed, allow, threads};
use crate::setting::Setting;

/// Memory of a program, in KiB.
const MEMORY: u64 = 64 << 10;
/// Pages of a program beside its memory, in bytes: its stack and its heap.
const OTHER: u64 = 1 << 20;
/// Dry runs in which an action must be planned.
const DRY_RUNS: usize = 8;
/// The time between two looks at whether the scheduler took a program to its memory.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
const BALANCING: &str = "/proc/sys/kernel/numa_balancing";
/// Short windows and low thresholds: nodes of these guests are small.
const LIMITS: [&str; 8] = [
    "--window=2s",
    "--windows=2",
    "--min-size=32M",
    "--min-age=0s",
    "--min-cpu=20",
    "--settle=2s",
    "--keep-available=1",
    "--pause-psi=100",
];

/// Lets the threads of a program run everywhere; they stay where they are on an idle system.
pub(super) fn free(context: &Context, program: &Observed) -> Result<(), String> {
    allow(program.pid, &context.seen.online_cpus())
}

/// Keeps a program away from its memory while it is there: the scheduler may take it there, to a CPU that has less to
/// do, and then nothing is left to be moved. It is put back on the first node then, and may run everywhere again.
struct Away {
    stop: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl Away {
    fn keep(context: &Context, program: &Observed) -> Result<Self, String> {
        let Nodes { ids: [a, _, c, _], .. } = Nodes::find(context)?;
        let [first, memory] = [a, c].map(|node| context.seen.cpus_of(node));
        let (pid, all) = (program.pid, context.seen.online_cpus());
        let put_back = move || allow(pid, &first).and_then(|()| allow(pid, &all));
        put_back()?;
        let (stop, stopped) = mpsc::channel();
        let keeper = thread::spawn(move || {
            while stopped.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
                if is_on(pid, &memory) && put_back().is_err() {
                    // It has ended.
                    return;
                }
            }
        });
        Ok(Self { stop: Some(stop), keeper: Some(keeper) })
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

/// Whether any thread of a process runs on one of these CPUs, or ran there last.
fn is_on(pid: u32, cpus: &CpuSet) -> bool {
    let last_cpu = |thread: &u32| -> Option<CpuId> {
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
        // The fields behind the name, which may have spaces, begin with the third.
        stat.rsplit_once(") ")?.1.split(' ').nth(39 - 3)?.parse().ok().map(CpuId::new)
    };
    threads(pid).is_ok_and(|threads| threads.iter().filter_map(last_cpu).any(|cpu| cpus.contains(cpu)))
}

/// A program on the first node with its memory on the third.
pub(super) fn start(context: &Context, more: &str) -> Result<(Observed, NodeId), String> {
    let Nodes { ids: [_, _, c, _], cpus: [on_a, _, on_c, _] } = Nodes::find(context)?;
    let way = format!("kib={MEMORY} cpu={on_a} touched-on={on_c} reads{more}");
    let mut program = Observed::start("away from its memory", &[], &way)?;
    free(context, &program)?;
    program.ask("work")?;
    Ok((program, c))
}

/// Its memory on a node, in bytes, by its own count.
pub(super) fn on(program: &mut Observed, node: NodeId) -> Result<u64, String> {
    let start = program.address;
    let pages = program.pages()?;
    let of_node = pages.get(&start).and_then(|pages| pages.nodes.get(&node.number()).copied());
    Ok(of_node.unwrap_or(0))
}

/// Lines of JSON.
fn lines(context: &Context, words: &[&str]) -> Result<(Option<i32>, Vec<Value>), String> {
    let output = context.output(words)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines =
        text.lines().map(|line| serde_json::from_str(line).map_err(|error| format!("{error}: {line}")));
    let lines: Vec<Value> = lines.collect::<Result<_, String>>()?;
    if lines.is_empty() {
        return Err(format!("no line: {}", complaint(&output)));
    }
    Ok((output.status.code(), lines))
}

/// Lines of JSON until one is of this entry; then Ctrl-C. A busy host gives a guest little time, so none is set for it.
fn lines_until(context: &Context, words: &[&str], entry: &str) -> Result<(Option<i32>, Vec<Value>), String> {
    let said = |error: std::io::Error| format!("balance: {error}");
    let mut running =
        Command::new(context.path()).args(words).stdout(Stdio::piped()).spawn().map_err(said)?;
    let stdout = running.stdout.take().ok_or("no output")?;
    let mut lines = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(said)?;
        let value: Value = serde_json::from_str(&line).map_err(|error| format!("{error}: {line}"))?;
        if value["entry"] == entry {
            kill_process(Pid::from_child(&running), Signal::INT).map_err(|error| error.to_string())?;
        }
        lines.push(value);
    }
    Ok((running.wait().map_err(said)?.code(), lines))
}

/// The plan of a dry run.
fn plan(context: &Context) -> Result<Value, String> {
    let words = [&["balance", "--json"][..], &LIMITS].concat();
    let (code, mut lines) = lines(context, &words)?;
    same("exit code of a dry run", code, Some(0))?;
    same("lines", lines.len(), 1)?;
    lines.pop().ok_or_else(|| "no plan".to_owned())
}

fn of_process<'v>(list: &'v Value, program: &Observed) -> Option<&'v Value> {
    let pid = u64::from(program.pid);
    list.as_array()?.iter().find(|of| of["process"]["pid"].as_u64() == Some(pid))
}

/// The planned action of a program. A dry run watches as many windows as an action needs, and while a program begins to
/// work, or where its CPU went to another program, one of them can lack the need: then it waits.
fn planned(context: &Context, program: &Observed) -> Result<Value, String> {
    let mut last = Value::Null;
    let _away = Away::keep(context, program)?;
    for _ in 0..DRY_RUNS {
        last = plan(context)?;
        if let Some(action) = of_process(&last["actions"], program) {
            return Ok(action.clone());
        }
        let waits = of_process(&last["waiting"], program).is_some();
        println!("{FIGURE}a dry run without an action; the program waits: {waits}");
    }
    Err(format!("no action: {last}"))
}

/// Planned, moved, judged, and taken back.
pub fn stranded(context: &Context) -> Result<(), String> {
    let _balancing = Setting::with(BALANCING, "0")?;
    let (mut program, node) = start(context, "")?;
    let all = MEMORY << 10;
    let action = planned(context, &program)?;
    same("from", action["pages"][0]["from"].as_u64(), Some(u64::from(node.number())))?;
    same("need", action["need"].as_str(), Some("stranded"))?;
    same("pages after a dry run", on(&mut program, node)?, all)?;
    let journal = format!("--journal={}", file("balance").display());
    let words = [&["balance", "--apply", "--for=5m", "--json", &journal][..], &LIMITS].concat();
    let away = Away::keep(context, &program)?;
    let (code, lines) = lines_until(context, &words, "judged")?;
    drop(away);
    let entry = |name: &str| lines.iter().find(|line| line["entry"] == name);
    let (began, ended) = (entry("began"), entry("ended"));
    let moved = ended.and_then(|ended| ended["moved_bytes"].as_u64());
    same("exit code", code, Some(0))?;
    // The plan has a size that was estimated from drawn pages: it ends when as much has moved, or when the program has no more.
    let planned =
        began.and_then(|began| began["pages"][0]["size_bytes"].as_u64()).ok_or("no planned size")?;
    expect(planned.abs_diff(all) < all / 8, || format!("{planned} of {all} bytes planned: {lines:?}"))?;
    let least = planned.min(all);
    expect(moved >= Some(least), || format!("{moved:?} of {least} bytes moved: {lines:?}"))?;
    // Other pages of the program that moved before its memory count, too.
    let most = if planned >= all { 0 } else { all - planned + OTHER };
    let left = on(&mut program, node)?;
    expect(left <= most, || format!("{left} bytes left behind, expected at most {most}"))?;
    let judged = entry("judged").ok_or_else(|| format!("no verdict: {lines:?}"))?;
    same("verdict", judged["verdict"].as_str(), Some("as planned"))?;
    let shares = (judged["before_share"].as_f64(), judged["after_share"].as_f64());
    eprintln!("remote share before and after: {shares:?}");
    // A tenth of its memory are pages of its file, which stay, and the shares are those of drawn pages.
    expect(shares.0 > Some(0.5) && shares.1 < Some(0.2), || format!("{shares:?}"))?;
    let id = began.and_then(|began| began["id"].as_u64()).ok_or("no number")?.to_string();
    let undone = context.output(&["balance", "undo", &id, &journal])?;
    same(&format!("exit code of undo: {}", complaint(&undone)), undone.status.code(), Some(0))?;
    same("memory that is back", on(&mut program, node)?, all)?;
    let again = context.output(&["balance", "undo", "--all", &journal])?;
    same("exit code of a second undo", again.status.code(), Some(3))
}

/// Balance switches itself on and off beside a program that is away from its memory: the blocks with it have a lower
/// remote share, and at the end the memory is where it was.
pub fn evaluated(context: &Context) -> Result<(), String> {
    let _balancing = Setting::with(BALANCING, "0")?;
    let (mut program, node) = start(context, "")?;
    let journal = format!("--journal={}", file("balance-evaluated").display());
    // Seven pairs of 60 s and more. Without balance, on and off are alike, and no pair of blocks says anything.
    let time = format!("--time={}s", context.length.ok_or("expected a length")?.as_secs() * 4);
    let blocks = ["--evaluate", &time, "--block=30s", "--wash-out=20s", "--seed=4", "--json", &journal];
    let away = Away::keep(context, &program)?;
    let (code, lines) = lines(context, &[&["balance"][..], &blocks, &LIMITS].concat())?;
    drop(away);
    same("exit code", code, Some(0))?;
    let found = lines.iter().find(|line| line["entry"] == "evaluated").ok_or("no end")?;
    println!("{FIGURE}evaluation: {found}");
    same(&format!("verdict of {lines:?}"), found["verdict"].as_str(), Some("helps"))?;
    let shares = (found["off"].as_f64(), found["on"].as_f64());
    expect(shares.0 > Some(0.7) && shares.1 < Some(0.3), || format!("{shares:?} of {found}"))?;
    let moved = (found["moved_bytes"].as_u64(), found["moved_back_bytes"].as_u64());
    let is_back = moved.0.zip(moved.1).is_some_and(|(moved, back)| back * 10 >= moved * 9);
    expect(is_back && moved.0 > Some(MEMORY << 10), || format!("moved and back: {moved:?}"))?;
    same("memory that is back", on(&mut program, node)?, MEMORY << 10)
}

/// Programs that others have placed.
pub fn left_alone(context: &Context) -> Result<(), String> {
    let _balancing = Setting::with(BALANCING, "0")?;
    let Nodes { ids: [a, _, c, _], cpus: [on_a, ..] } = Nodes::find(context)?;
    let (bound, _) = start(context, &format!(" policy=bind:{c}"))?;
    let (pinned, _) = {
        let way = format!("kib={MEMORY} cpu={on_a} reads");
        let mut program = Observed::start("on a CPU of its own", &[], &way)?;
        program.ask("work")?;
        (program, c)
    };
    let (inside, _) = start(context, "")?;
    let cpus = context.seen.cpus_of(a).to_string();
    let group = Cpuset::new(&cpus, &format!("{a},{c}"))?;
    fs::write(group.tasks(), inside.pid.to_string()).map_err(|error| error.to_string())?;
    let reason = |planned: &Value, program: &Observed| {
        of_process(&planned["left_alone"], program)
            .and_then(|left| left["reason"].as_str())
            .map(str::to_owned)
    };
    let planned = {
        // Policies are read of a process that needs an action: one that the scheduler took to its memory needs none.
        let _away = Away::keep(context, &bound)?;
        let says_nothing = |plan: &Value| {
            reason(plan, &bound).is_none() && plan["actions"].as_array().is_some_and(Vec::is_empty)
        };
        let mut planned = plan(context);
        for _ in 1..DRY_RUNS {
            if !planned.as_ref().is_ok_and(says_nothing) {
                break;
            }
            planned = plan(context);
        }
        planned
    };
    let found = planned.and_then(|planned| {
        let reasons = [&bound, &pinned, &inside].map(|program| reason(&planned, program));
        let expected = ["policy", "affinity", "cpuset"].map(|reason| Some(reason.to_owned()));
        same(&format!("reasons of {planned}"), reasons, expected)?;
        same("actions", planned["actions"].as_array().map(Vec::len), Some(0))
    });
    fs::write("/sys/fs/cgroup/cgroup.procs", inside.pid.to_string()).map_err(|error| error.to_string())?;
    drop(group);
    found
}

/// Ends a process with `kill -9` when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The middle of a slow action, a second balance meanwhile, the end of the first, and the way back.
pub fn killed(context: &Context) -> Result<(), String> {
    let _balancing = Setting::with(BALANCING, "0")?;
    let (mut program, node) = start(context, "")?;
    let all = MEMORY << 10;
    let journal = format!("--journal={}", file("balance-killed").display());
    let words = [&["balance", "--apply", "--rate=2M/s", &journal][..], &LIMITS].concat();
    let mut command = Command::new(context.path());
    let child = command.args(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let balance = Killed(child.map_err(|error| error.to_string())?);
    let away = Away::keep(context, &program)?;
    while on(&mut program, node)? == all {
        // All CPUs of the guest are one thread of the host: each look takes time from what it waits for.
        thread::sleep(Duration::from_secs(1));
    }
    drop(away);
    let second = context.output(&["balance", "--apply", &journal])?;
    let why = complaint(&second);
    same("exit code of a second balance", second.status.code(), Some(3))?;
    let holder = format!("already running: process {}", balance.0.id());
    expect(why.contains(&holder), || why.clone())?;
    drop(balance);
    let left = on(&mut program, node)?;
    expect(left > 0 && left < all, || format!("{left} of {all} bytes left"))?;
    let undone = context.output(&["balance", "undo", "--all", &journal])?;
    same(&format!("exit code of undo: {}", complaint(&undone)), undone.status.code(), Some(0))?;
    same("memory that is back", on(&mut program, node)?, all)
}
