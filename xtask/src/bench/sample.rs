//! CPU time of a sample of the running system, beside programs that read the same files.

mod below;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use nodewise_source::parse::schedstat;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::fixture;
use below::Below;
use nodewise_stats::median;

/// Sleeping processes, in the order in which they are added.
const SIZES: [usize; 3] = [100, 1000, 5000];
/// CPU time that a sample may take with the most processes, in microseconds: 1 % of a CPU at one sample a second.
const GOAL_US: f64 = 10_000.0;
/// Peers that are part of every Linux or of numactl, with the words that they are started with.
const COMMANDS: [&[&str]; 3] = [&["numastat", "-p", "sleep"], &["ps", "-e"], &["ps", "-eL"]];
/// Samples that are averaged in a round.
const TICKS: &str = "24";

/// Figures of the sampler: what `benches/sample.rs` prints.
struct Ours {
    first_us: f64,
    tick_us: f64,
    processes: f64,
    polled: f64,
    located: f64,
}

/// A program that reads the same files.
enum Peer {
    /// It looks once: its whole CPU time counts.
    Command(&'static [&'static str]),
    /// It looks again and again, as the sampler does.
    Below(Below),
}

impl Peer {
    fn name(&self) -> String {
        match self {
            Self::Command(words) => words.join(" "),
            Self::Below(_) => Below::name(),
        }
    }

    /// CPU time in microseconds.
    fn cpu_us(&self) -> Result<f64> {
        match self {
            Self::Command(words) => cpu_us(words),
            Self::Below(below) => below.cpu_us(),
        }
    }
}

/// The peers of this machine, and a sentence about those that cannot be measured here.
fn peers() -> (Vec<Peer>, Vec<String>) {
    let mut peers: Vec<Peer> = COMMANDS.map(Peer::Command).into();
    let mut left_out = Vec::new();
    match Below::find() {
        Ok(below) => peers.push(Peer::Below(below)),
        Err(reason) => left_out.push(format!("not measured: {}: {reason:#}", Below::name())),
    }
    (peers, left_out)
}

/// Builds peers that no package has.
pub fn install() -> Result<()> {
    Below::install()
}

/// Prints the table. A process with many mappings is among the others.
pub fn run(root: &Path, rounds: usize, mappings: u32) -> Result<()> {
    ensure!(rounds > 0, "no rounds: expected at least 1");
    build(root)?;
    let (peers, left_out) = peers();
    let large = fixture::mappings(mappings)?;
    let mut sleepers = Vec::new();
    println!(
        "medians of {rounds} rounds; CPU time of a process in ms; one process has {mappings} mappings\n"
    );
    let names: Vec<String> = peers.iter().map(|peer| format!("`{}`", peer.name())).collect();
    println!("| processes | sample | read | located | first sample | {} |", names.join(" | "));
    println!("|---:|---:|---:|---:|---:|{}", "---:|".repeat(names.len()));
    let mut worst = 0.0;
    for size in SIZES {
        sleepers.extend(fixture::sleepers(size - sleepers.len())?);
        let mut ours = Vec::new();
        let mut times = vec![Vec::new(); peers.len()];
        for _ in 0..rounds {
            ours.push(sampler(root)?);
            for (times, peer) in times.iter_mut().zip(&peers) {
                times.push(peer.cpu_us()?);
            }
        }
        let of =
            |field: fn(&Ours) -> f64| median(&ours.iter().map(field).collect::<Vec<_>>()).unwrap_or(f64::NAN);
        let tick = of(|ours| ours.tick_us);
        let cells: Vec<String> = times
            .iter()
            .filter_map(|times| median(times))
            .map(|peer| format!("{:.1} ({:.2})", peer / 1e3, tick / peer))
            .collect();
        println!(
            "| {:.0} | {:.1} | {:.0} | {:.0} | {:.1} | {} |",
            of(|ours| ours.processes),
            tick / 1e3,
            of(|ours| ours.polled),
            of(|ours| ours.located),
            of(|ours| ours.first_us) / 1e3,
            cells.join(" | ")
        );
        worst = tick;
    }
    println!("\nin parentheses: a sample over the peer");
    for sentence in left_out {
        println!("{sentence}");
    }
    let met = if worst < GOAL_US { "met" } else { "missed" };
    println!("goal: a sample below {:.0} ms with the most processes: {met}", GOAL_US / 1e3);
    drop(large);
    Ok(())
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["bench", "--quiet", "--package", "nodewise-source", "--bench", "sample"]);
    command
}

fn build(root: &Path) -> Result<()> {
    let status = cargo(root).arg("--no-run").status().context("cannot start cargo")?;
    ensure!(status.success(), "the benchmark of the sampler does not build");
    Ok(())
}

/// Runs the sampler for a while.
fn sampler(root: &Path) -> Result<Ours> {
    let output =
        cargo(root).args(["--", TICKS]).stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let value = |name: &str| {
        let mut words = text.split_ascii_whitespace();
        let word = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let value = word.and_then(|word| word.parse().ok());
        value.with_context(|| format!("the benchmark of the sampler printed no {name}: {text}"))
    };
    Ok(Ours {
        first_us: value("first_us")?,
        tick_us: value("tick_us")?,
        processes: value("processes")?,
        polled: value("polled")?,
        located: value("located")?,
    })
}

/// CPU time of a command in microseconds: the kernel keeps it until the process is waited for.
fn cpu_us(words: &[&str]) -> Result<f64> {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot start {}", words[0]))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a child has a number")?;
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let text = std::fs::read_to_string(format!("/proc/{}/schedstat", child.id()))?;
    let status = child.wait()?;
    // numastat ends with an error when a process ended while it looked.
    if !status.success() && status.code() != Some(1) {
        bail!("{} ended with {status}", words.join(" "));
    }
    Ok(schedstat::parse(&text)?.run.as_secs_f64() * 1e6)
}
