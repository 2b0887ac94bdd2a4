//! Much memory moves while its program works on it: `cargo xtask migrate-soak`.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nodewise_machine::{Bytes, NodeId};
use serde_json::Value;

use super::same;
use crate::nodewise::{Context, complaint};
use crate::observer::Observed;
use crate::setting::Setting;

/// The share by which the time may differ from that of the rate that was asked for.
const OFF: f64 = 0.1;
/// Between two looks at a process whose pages move.
const PAUSE: Duration = Duration::from_millis(200);

/// Memory to move, and bytes a second.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub size: Bytes,
    pub rate: Bytes,
}

/// A program with memory on one node, at work on it, and another node with room for all of it.
struct Moving<'a> {
    context: &'a Context,
    load: Load,
    program: Observed,
    from: NodeId,
    to: NodeId,
    saved: PathBuf,
    _balancing: Setting,
}

impl<'a> Moving<'a> {
    fn start(context: &'a Context, name: &str) -> Result<Self, String> {
        let load = context.load.ok_or("expected a size and a rate")?;
        let nodes: Vec<NodeId> = context.seen.nodes_with_memory().iter().collect();
        let [from, to, ..] = nodes[..] else { return Err("expected two nodes".to_owned()) };
        let balancing = Setting::with("/proc/sys/kernel/numa_balancing", "0")?;
        let kib = load.size.get() >> 10;
        let way = format!("kib={kib} pages=transparent policy=bind:{from} reads");
        let mut program = Observed::start(name, &[], &way)?;
        program.ask("work")?;
        let saved = std::env::temp_dir().join(format!("nodewise-{name}.moved"));
        let _ = fs::remove_file(&saved);
        Ok(Self { context, load, program, from, to, saved, _balancing: balancing })
    }

    /// Starts to move it.
    fn migrate(&self) -> Result<Child, String> {
        let (pid, program) = (self.program.pid.to_string(), &self.program);
        let mut command = Command::new(self.context.path());
        command.args(["migrate", &pid, "--json", "--pause-psi=100"]);
        command.arg(format!("--to={}", self.to)).arg(format!("--rate={}/s", self.load.rate.exact()));
        command.arg(format!("--range={:x}-{:x}", program.address, program.address + program.length));
        command.arg(format!("--save={}", self.saved.display()));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(|error| error.to_string())
    }

    fn undo(&self) -> Result<Output, String> {
        let words = ["migrate", "--json", "--pause-psi=100", "--undo", &self.saved.display().to_string()];
        self.context.output(&words)
    }

    /// Bytes of its memory on a node, by its own count.
    fn on(&mut self, node: NodeId) -> Result<u64, String> {
        let pages = self.program.pages()?;
        let own = pages.get(&self.program.address).ok_or("its memory is no mapping of its own")?;
        Ok(own.nodes.get(&node.number()).copied().unwrap_or(0))
    }

    /// Waits until a part of it has moved, by the kernel's list, while the program that moves it runs.
    fn wait_for(&self, part: u64, mover: &mut Child) -> Result<(), String> {
        let start = format!("{:08x} ", self.program.address);
        let word = format!("N{}=", self.to);
        loop {
            let path = format!("/proc/{}/numa_maps", self.program.pid);
            let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
            let line = text.lines().find(|line| line.starts_with(&start)).ok_or("no line of its memory")?;
            let pages = line.split(' ').find_map(|text| text.strip_prefix(&word)?.parse::<u64>().ok());
            if pages.unwrap_or(0) * 4096 >= self.load.size.get() / part {
                return Ok(());
            }
            if let Some(status) = mover.try_wait().map_err(|error| error.to_string())? {
                let said = mover.stderr.take().map(std::io::read_to_string);
                let said = said.and_then(Result::ok).unwrap_or_default();
                return Err(format!("migrate ended before 1/{part} of it had moved: {status}: {said}"));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn document(output: &Output) -> Result<Value, String> {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).map_err(|error| format!("{error}: {text}{}", complaint(output)))
}

fn interrupt(child: &Child) -> Result<(), String> {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    same("kill", sent.map_err(|error| error.to_string())?.success(), true)
}

/// All of it moves, at the rate, and back as fast as it can.
pub fn at_a_rate(context: &Context) -> Result<(), String> {
    let mut moving = Moving::start(context, "rate")?;
    let size = moving.load.size.get();
    let output = moving.migrate()?.wait_with_output().map_err(|error| error.to_string())?;
    let moved = document(&output)?;
    same("exit code", output.status.code(), Some(0))?;
    same("bytes", moved["moved_bytes"].as_u64(), Some(size))?;
    same("bytes that are there", moving.on(moving.to)?, size)?;
    let number = |key: &str| moved[key].as_f64().unwrap_or_default();
    let (took, paused, listing) = (number("took_s"), number("paused_s"), number("listing_s"));
    let expected = size as f64 / moving.load.rate.get() as f64;
    // A pause counts only as far as it is longer than the wait that the rate asks for. The rate is one of moves, and
    // lists of pages come before.
    let spent = took - listing;
    if spent < expected * (1.0 - OFF) || expected * (1.0 + OFF) + paused < spent {
        return Err(format!(
            "{took:.1} s, {listing:.1} of them to list pages, {paused:.1} paused, expected {expected:.1}: {moved}"
        ));
    }
    let output = moving.undo()?;
    same(&format!("exit code of undo: {}", document(&output)?), output.status.code(), Some(0))?;
    same("bytes back", document(&output)?["moved_bytes"].as_u64(), Some(size))?;
    same("bytes that are back", moving.on(moving.from)?, size)
}

/// Ctrl-C in the middle: what has moved is reported, and goes back.
pub fn interrupted(context: &Context) -> Result<(), String> {
    let mut moving = Moving::start(context, "interrupted")?;
    let size = moving.load.size.get();
    let mut child = moving.migrate()?;
    moving.wait_for(2, &mut child)?;
    interrupt(&child)?;
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let ended = document(&output)?;
    same("exit code", output.status.code(), Some(1))?;
    same("ending", ended["ending"].as_str(), Some("interrupted"))?;
    let there = moving.on(moving.to)?;
    same("bytes", ended["moved_bytes"].as_u64(), Some(there))?;
    same("whether a part has moved", size / 2 <= there && there < size, true)?;
    let output = moving.undo()?;
    same(&format!("exit code of undo: {}", document(&output)?), output.status.code(), Some(0))?;
    same("bytes back", document(&output)?["moved_bytes"].as_u64(), Some(there))?;
    same("bytes that are back", moving.on(moving.from)?, size)
}

/// The program ends in the middle.
pub fn ended(context: &Context) -> Result<(), String> {
    let moving = Moving::start(context, "ended")?;
    let mut child = moving.migrate()?;
    moving.wait_for(4, &mut child)?;
    let least = moving.load.size.get() / 4;
    let Moving { program, saved, .. } = moving;
    let pid = program.pid;
    drop(program);
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let ended = document(&output)?;
    same("exit code", output.status.code(), Some(1))?;
    same("ending", ended["ending"].as_str(), Some("process_ended"))?;
    same("whether a part had moved", ended["moved_bytes"].as_u64() >= Some(least), true)?;
    let undo = context.output(&["migrate", "--undo", &saved.display().to_string()])?;
    same("exit code of undo", undo.status.code(), Some(3))?;
    let said = complaint(&undo);
    same(&format!("whether it names the process: {said}"), said.contains(&pid.to_string()), true)
}
