//! A program of a case that runs, and its run once it has ended.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use nodewise_machine::{Bytes, CpuId, NodeId};
use nodewise_model::balancing::course::{Costs, Pattern, Program, Thread};
use serde_json::Value;

use super::Case;
use crate::course::Words;

/// A run of a case: the model's program, with what is known of this run, and pages that were local at each time.
pub(super) struct Run {
    pub program: Program,
    pub begin: Duration,
    pub behind: u64,
    /// How long the program did nothing else since the first scan was due, in seconds: scans, in their order.
    pub scans: Vec<f64>,
    /// CPU time of the program that a tick takes, in seconds: the one with which a scan begins is not of the scan, and is in its time.
    pub tick: f64,
    pub others: Others,
    pub shares: Vec<f64>,
}

/// Other threads on the program's CPU.
#[derive(Clone, Copy)]
pub(super) struct Others {
    pub turns: u64,
    /// CPU time of the program, and time for which it waited for the CPU, in seconds.
    pub worked: f64,
    pub waited: f64,
}

/// A program that runs.
pub(super) struct Started {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The process, where its memory is, and the node of its CPU.
    pid: u32,
    address: usize,
    node: NodeId,
    local: Vec<u64>,
}

impl Started {
    pub(super) fn new(case: &Case, (memory, cpu): (NodeId, CpuId), seed: u64) -> Result<Self, String> {
        let words = Words {
            kib: case.mebibytes << 10,
            memory,
            cpu,
            is_started: case.thread == Thread::Started,
            sweeps: case.pattern == Pattern::Sweep,
            rate: case.touches_per_s,
            seed,
            times: case.times.map(Duration::from_secs).to_vec(),
        };
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = if case.thread == Thread::Forked {
            // A shell forks for what is in brackets.
            let mut shell = Command::new("sh");
            shell.args(["-c", "(exec \"$0\" \"$@\"); true"]).arg(own);
            shell
        } else {
            Command::new(own)
        };
        let piped = command.args(words.write()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().map_err(|error| error.to_string())?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut started = Self { child, output, pid: 0, address: 0, node: NodeId::new(0), local: Vec::new() };
        let line = started.line()?;
        let mut words = line.split_whitespace();
        let mut word =
            || words.next().ok_or_else(|| format!("not a process, an address and a node: {line:?}"));
        started.pid = word()?.parse().map_err(|error| format!("{error}: {line:?}"))?;
        started.address = usize::from_str_radix(word()?, 16).map_err(|error| format!("{error}: {line:?}"))?;
        started.node = NodeId::new(word()?.parse().map_err(|error| format!("{error}: {line:?}"))?);
        Ok(started)
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        self.output.read_line(&mut line).map_err(|error| error.to_string())?;
        Ok(line)
    }

    pub(super) fn go(&mut self) -> Result<(), String> {
        let input = self.child.stdin.as_mut().ok_or("no input")?;
        writeln!(input, "go").map_err(|error| error.to_string())
    }

    /// Counts the local pages of the memory while the program waits: a count of its own takes CPU time like a hundred touches, and
    /// a scan that is due meanwhile comes after it, between two ticks.
    pub(super) fn count(&mut self) -> Result<(), String> {
        self.line()?;
        let path = format!("/proc/{}/numa_maps", self.pid);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let start = |line: &str| line.split(' ').next().and_then(|word| usize::from_str_radix(word, 16).ok());
        let line =
            text.lines().take_while(|line| start(line).is_some_and(|start| start <= self.address)).last();
        let counts = line.ok_or_else(|| format!("{path}: nothing at {:x}", self.address))?.split(' ');
        let number = format!("N{}=", self.node);
        self.local.push(counts.filter_map(|word| word.strip_prefix(&number)?.parse::<u64>().ok()).sum());
        Ok(())
    }

    pub(super) fn end(mut self, case: &Case) -> Result<Run, String> {
        let line = self.line()?;
        self.child.wait().map_err(|error| error.to_string())?;
        let found: Value = serde_json::from_str(&line).map_err(|error| format!("{error}: {line:?}"))?;
        let number = |key: &str| found[key].as_f64().ok_or_else(|| format!("no {key}: {line}"));
        // A thread may be held up when it starts.
        let first = case.settings.delay.as_secs_f64() / 2.0;
        let gaps = found["gaps_s"].as_array().into_iter().flatten();
        let gaps = gaps.filter_map(|gap| Some([gap[0].as_f64()?, gap[1].as_f64()?]));
        let scans = gaps.filter(|[at, _]| *at > first).map(|[_, gap]| gap).collect();
        let [usual, mean] = [number("usual_s")?, number("mean_s")?];
        let tick = (mean - usual) * Costs::NONE.tick.as_secs_f64() / mean.max(1e-9);
        let memory = Bytes::from_mib(case.mebibytes);
        let pages = (memory.get() / 4096) as f64;
        let shares = self.local.iter().map(|local| *local as f64 / pages).collect();
        Ok(Run {
            program: Program {
                memory,
                first_page: Some(number("first_page")? as u64),
                below: Bytes::new(number("below_pages")? as u64 * 4096),
                resident: Bytes::new(number("resident_pages")? as u64 * 4096),
                thread: case.thread,
                before: Duration::from_secs_f64(number("before_s")?),
                pattern: case.pattern,
                sweep_from: Some(number("start")? as u64),
                touches_per_s: [case.touches_per_s; 2],
                cpu_share: 1.0,
                room: None,
                unused_above: [number("unused_above")? as u64; 2],
            },
            begin: Duration::from_secs_f64(number("begin_s")?),
            behind: number("behind")? as u64,
            scans,
            tick,
            others: Others {
                turns: number("turns")? as u64,
                worked: number("worked_s")?,
                waited: number("waited_s")?,
            },
            shares,
        })
    }
}
