//! Devices and their nodes. The guest has a network card, a disk and a graphics processor behind a bridge of one node, and a
//! card that no node is known of, which shares its network with the other.

use std::fs;
use std::io::Write as _;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nodewise_machine::{CpuId, CpuSet, NodeId};
use nodewise_syscall::{Task, affinity};
use serde_json::Value;

use crate::checks::doctor::{Diagnosed, run};
use crate::checks::moving::file;
use crate::checks::same;
use crate::checks::short::shell;
use crate::checks::ways::Nodes;
use crate::kernel;
use crate::nodewise::Context;
use crate::setting::{self, Setting};

use super::{about_nodes, at_work, evidence, is_about, restart};

/// Memory of a program, in KiB: more than a twentieth of a node.
const MEMORY: u64 = 96 << 10;
/// Interrupts in a second from which on they count here: an emulated card raises fewer than a real one.
const RATE: f64 = 50.0;
const DISK: &str = "/dev/nvme0n1";
const GRAPHICS: &str = "/dev/dri/renderD128";
/// How often the moment is tried at which a line moves while it is watched.
const TRIES: u64 = 4;

/// The cards: the one behind the bridge with its PCI function, its node and a CPU there; the other; a CPU elsewhere.
struct Cards {
    near: String,
    function: PathBuf,
    node: NodeId,
    own: CpuId,
    other: String,
    other_function: PathBuf,
    far: CpuId,
}

impl Cards {
    fn find(context: &Context) -> Result<Self, String> {
        let mut cards = Vec::new();
        let folder = fs::read_dir("/sys/class/net").map_err(|error| error.to_string())?;
        for entry in folder.filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            // A virtio device is a part of its PCI function.
            let Ok(device) = fs::canonicalize(entry.path().join("device")) else { continue };
            let function = device.parent().ok_or("a device without a function")?.to_owned();
            let node = kernel::line(&function.join("numa_node").display().to_string())?;
            cards.push((node.parse::<u32>().ok(), name, function));
        }
        let with_node = cards.iter().position(|(node, ..)| node.is_some()).ok_or("no card has a node")?;
        let (node, near, function) = cards.swap_remove(with_node);
        let (_, other, other_function) = cards.pop().ok_or("one card only")?;
        let node = NodeId::new(node.ok_or("a card without a node")?);
        let own = context.seen.cpus_of(node).first().ok_or("its node has no CPU")?;
        let far = context.seen.online_cpus().last().filter(|cpu| *cpu != own);
        Ok(Self { near, function, node, own, other, other_function, far: far.ok_or("one CPU only")? })
    }

    /// The lines of its interrupts.
    fn lines(&self) -> Result<Vec<u32>, String> {
        let folder = self.function.join("msi_irqs");
        let entries = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mut lines: Vec<u32> = names.collect();
        lines.sort_unstable();
        Ok(lines)
    }

    /// Lets one CPU serve all of them.
    fn pin(&self, cpu: CpuId) -> Result<(), String> {
        self.lines()?.iter().try_for_each(|line| setting::write(&affinity_of(*line), &cpu.to_string()))
    }

    /// Gives them back to all CPUs.
    fn free(&self, context: &Context) {
        let all = context.seen.online_cpus().to_string();
        let _ = self
            .lines()
            .map(|lines| lines.iter().for_each(|line| drop(setting::write(&affinity_of(*line), &all))));
    }

    /// The device as doctor names it.
    fn device(&self) -> String {
        format!("net:{}", self.near)
    }
}

fn affinity_of(line: u32) -> String {
    format!("/proc/irq/{line}/smp_affinity_list")
}

/// Packets from one card to the other, until this is dropped.
struct Traffic {
    stop: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
    from: String,
}

impl Traffic {
    fn start(cards: &Cards) -> Result<Self, String> {
        let (near, from) = (&cards.near, &cards.other);
        shell(&format!(
            "ip link set {near} up && ip link set {from} up && ip addr add 10.77.0.1/24 dev {from}"
        ))?;
        let socket = UdpSocket::bind("10.77.0.1:7777").map_err(|error| error.to_string())?;
        socket.set_broadcast(true).map_err(|error| error.to_string())?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, own) = (Arc::clone(&stop), cards.own);
        let send = move || {
            // Where the card's own node is, so that no other is busy because of it.
            let _ = affinity::set_cpus(Task::CURRENT, &CpuSet::from_iter([own]));
            while !stopped.load(Ordering::Relaxed) {
                let _ = socket.send_to(&[0; 64], "10.77.0.255:7777");
                thread::sleep(Duration::from_micros(500));
            }
        };
        Ok(Self { stop, sender: Some(thread::spawn(send)), from: from.clone() })
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(sender) = self.sender.take() {
            let _ = sender.join();
        }
        let _ = shell(&format!("ip addr del 10.77.0.1/24 dev {}", self.from));
    }
}

/// A file of thresholds with the rate of a rule.
fn rate_of(rule: &str) -> Result<String, String> {
    let path = file("devices.toml");
    fs::write(&path, format!("[{rule}]\ninterrupts_per_s = {RATE}\n")).map_err(|error| error.to_string())?;
    Ok(format!("--thresholds={}", path.display()))
}

fn found(context: &Context, rule: &str, options: &[&str]) -> Result<Value, String> {
    Diagnosed::fires(context, options, rule)
}

fn silent(context: &Context, rule: &str, options: &[&str]) -> Result<(), String> {
    let found = Diagnosed::with(context, options)?;
    found.finding(rule).map_or(Ok(()), |finding| Err(format!("{rule} still fires: {finding}")))
}

fn is_about_device(finding: &Value, cards: &Cards) -> Result<(), String> {
    same(
        &format!("device of {finding}"),
        finding["subject"]["name"].as_str(),
        Some(cards.device().as_str()),
    )?;
    about_nodes(finding, &[cards.node])
}

/// Interrupts of a card on a CPU of another node.
pub fn interrupts(context: &Context) -> Result<(), String> {
    let cards = Cards::find(context)?;
    let rule = "irq-remote";
    let options = ["--window=4s", &rate_of(rule)?];
    let traffic = Traffic::start(&cards)?;
    cards.pin(cards.far)?;
    let finding = found(context, rule, &options)?;
    is_about_device(&finding, &cards)?;
    let share = evidence(&finding, "on other nodes", "share")?;
    same(&format!("whether {share} is nearly all"), share > 0.95, true)?;
    let rate = evidence(&finding, "interrupts", "per_s")?;
    same(&format!("whether {rate}/s are enough"), rate >= RATE, true)?;
    run(context, &finding["mend"][0]["commands"])?;
    for line in cards.lines()? {
        same("CPUs of a line", kernel::line(&affinity_of(line))?, cards.own.to_string())?;
    }
    let checked = silent(context, rule, &options);
    drop(traffic);
    cards.free(context);
    checked
}

/// Queues of the card that hand packets to another node.
pub fn queues(context: &Context) -> Result<(), String> {
    let cards = Cards::find(context)?;
    let rule = "rps-xps-remote";
    let options = ["--window=4s"];
    let queue = format!("/sys/class/net/{}/queues/rx-0/rps_cpus", cards.near);
    let steering = Setting::with(&queue, &format!("{:x}", 1u64 << cards.far.number()))?;
    let traffic = Traffic::start(&cards)?;
    cards.pin(cards.own)?;
    let finding = found(context, rule, &options)?;
    is_about_device(&finding, &cards)?;
    let summary = finding["summary"].to_string();
    same(&format!("whether {summary} counts queues"), summary.contains("1 of 2 queues"), true)?;
    let mend = &finding["mend"][0];
    run(context, &mend["commands"])?;
    let mask = kernel::line(&queue)?;
    same("mask", u64::from_str_radix(&mask, 16).ok(), Some(1 << cards.own.number()))?;
    silent(context, rule, &options)?;
    run(context, &mend["undo"])?;
    found(context, rule, &options)?;
    drop(traffic);
    drop(steering);
    cards.free(context);
    silent(context, rule, &options)
}

/// A program that is called irqbalance, with these options.
struct Daemon {
    child: Child,
    input: Option<ChildStdin>,
}

impl Daemon {
    fn start(options: &str) -> Result<Self, String> {
        let path = std::env::temp_dir().join("irqbalance");
        let write = || -> std::io::Result<()> {
            // It waits until its input ends.
            fs::File::create(&path)?.write_all(b"#!/bin/sh\nread line\n")
        };
        write().map_err(|error| error.to_string())?;
        shell(&format!("chmod +x {}", path.display()))?;
        let mut command = Command::new(&path);
        command.args(options.split_whitespace()).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", path.display()))?;
        let input = child.stdin.take();
        Ok(Self { child, input })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// A diagnosis while the lines go from the card's CPU to another one, as late as this.
fn moved_after(
    context: &Context,
    cards: &Cards,
    options: &[&str],
    seconds: u64,
) -> Result<Diagnosed, String> {
    cards.pin(cards.own)?;
    thread::scope(|scope| {
        let moves = scope.spawn(|| {
            thread::sleep(Duration::from_secs(seconds));
            cards.pin(cards.far)
        });
        let found = Diagnosed::with(context, options);
        moves.join().map_err(|_| "the mover panicked".to_owned())??;
        found
    })
}

/// Lines of the card that something moves while irqbalance runs.
pub fn daemon(context: &Context) -> Result<(), String> {
    let cards = Cards::find(context)?;
    let rule = "irqbalance-against-you";
    let options = ["--window=8s", &rate_of(rule)?];
    let traffic = Traffic::start(&cards)?;
    let daemon = Daemon::start("--foreground")?;
    // How long the first sample takes is not known: the window must begin before the lines move, and end behind that.
    let mut tries = (1..=TRIES).map(|time| {
        let found = moved_after(context, &cards, &options, 3 * time)?;
        Ok::<_, String>(found.finding(rule).cloned())
    });
    let finding = tries.find_map(Result::transpose).ok_or_else(|| format!("{rule} does not fire"))??;
    is_about_device(&finding, &cards)?;
    let named = finding["evidence"].to_string().contains(&format!("process {}", daemon.child.id()));
    same(&format!("whether {finding} names the daemon"), named, true)?;
    drop(daemon);
    // As its first mend says, with its own options; then the lines get their CPUs back.
    let words = finding["mend"][0]["what"].as_str().unwrap_or_default();
    let words = words.split("IRQBALANCE_ARGS=\"").nth(1).and_then(|rest| rest.split('"').next());
    let words = words.ok_or_else(|| format!("no options: {finding}"))?;
    for line in cards.lines()? {
        same(&format!("whether {words} names {line}"), words.contains(&format!("--banirq={line}")), true)?;
    }
    let _daemon = Daemon::start(words)?;
    run(context, &finding["mend"][1]["commands"])?;
    for line in cards.lines()? {
        same("CPUs of a line", kernel::line(&affinity_of(line))?, cards.own.to_string())?;
    }
    // Whoever moves lines now, it is not the daemon.
    let after = (1..=TRIES).try_for_each(|time| {
        let found = moved_after(context, &cards, &options, 3 * time)?;
        found.finding(rule).map_or(Ok(()), |finding| Err(format!("{rule} still fires: {finding}")))
    });
    drop(traffic);
    cards.free(context);
    after
}

/// A shell that holds a file open for the program behind it.
fn holding(path: &str) -> Vec<String> {
    let words = ["sh", "-c", &format!("exec 9< {path}; exec \"$@\""), "sh"];
    words.map(str::to_owned).to_vec()
}

fn words(of: &[String]) -> Vec<&str> {
    of.iter().map(String::as_str).collect()
}

/// A program at work on another node than the disk that it has open.
pub fn user(context: &Context) -> Result<(), String> {
    let cards = Cards::find(context)?;
    let rule = "device-user-remote";
    let program = at_work("drives a disk", &words(&holding(DISK)), &format!("kib=1024 cpu={}", cards.far))?;
    // By name: reading the programs of others takes more time here than doctor gives it.
    let finding = found(context, rule, &["--window=4s", &format!("--pid={}", program.pid)])?;
    is_about(&finding, &program)?;
    about_nodes(&finding, &[cards.node])?;
    let share = evidence(&finding, &format!("CPU time on node {}", cards.node), "share")?;
    same(&format!("whether {share} is nearly none"), share < 0.05, true)?;
    drop(program);
    let again = [holding(DISK), restart(context, &finding)?].concat();
    let program = at_work("on the disk's node", &words(&again), "kib=1024")?;
    silent(context, rule, &["--window=4s", &format!("--pid={}", program.pid)])
}

/// Interleaved memory that a program locked for a graphics processor.
pub fn staging(context: &Context) -> Result<(), String> {
    let cards = Cards::find(context)?;
    let rule = "gpu-staging-interleaved";
    let options = ["--window=2s"];
    let way = format!("kib={MEMORY} locked");
    let all = [context.path(), "run", "--interleave=all", "--"].map(str::to_owned).to_vec();
    let program = at_work("interleaved", &words(&[holding(GRAPHICS), all].concat()), &way)?;
    let finding = found(context, rule, &options)?;
    is_about(&finding, &program)?;
    let status =
        fs::read_to_string(format!("/proc/{}/status", program.pid)).map_err(|error| error.to_string())?;
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:")?.split_whitespace().next());
    let locked = locked.and_then(|kib| kib.parse::<u64>().ok()).map(|kib| kib << 10);
    same("locked memory", finding["concerns_bytes"].as_u64(), locked)?;
    let command = finding["mend"][0]["commands"][0].as_str().unwrap_or_default();
    let near = command.contains(&format!("--cpunodebind={} ", cards.node));
    same(&format!("whether {command} names its node"), near, true)?;
    drop(program);
    let again = [holding(GRAPHICS), restart(context, &finding)?].concat();
    let _program = at_work("on its node", &words(&again), &way)?;
    silent(context, rule, &options)
}

/// A card whose node the firmware does not name.
pub fn unknown(context: &Context) -> Result<(), String> {
    let cards = Cards::find(context)?;
    let rule = "device-node-unknown";
    let options = ["--window=2s"];
    let finding = found(context, rule, &options)?;
    same("devices", evidence(&finding, "devices without a node", "count")?, 1.0)?;
    let address = cards.other_function.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let summary = finding["summary"].to_string();
    same(&format!("whether {summary} names {address}"), summary.contains(&address), true)?;
    // What other firmware would say, an administrator can.
    let path = Path::new(&cards.other_function).join("numa_node").display().to_string();
    setting::write(&path, &Nodes::find(context)?.ids[0].to_string())?;
    let checked = silent(context, rule, &options);
    setting::write(&path, "-1")?;
    checked
}
