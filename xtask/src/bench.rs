//! `bench`: nodewise beside its peers, both in one run.
//!
//! Times are taken in rounds: in each every command runs once, in an order that turns, so that what
//! slows the machine down for a while slows all alike. Instructions and system calls are exact counts
//! of one run.

pub mod count;
mod family;
mod fixture;
pub mod fleet;
mod peers;
mod sample;
mod start;
mod wall;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::dist;

/// A comparison: what it is about, our command line and the peer's.
struct Pair {
    what: &'static str,
    ours: Vec<String>,
    peer: Vec<String>,
    /// A command that does the least that could be done for it, timed in the same rounds.
    least: Option<Vec<String>>,
}

impl Pair {
    /// A pair of programs, each with its words separated by blanks.
    fn new(what: &'static str, own: &Path, ours: &str, other: &Path, peer: &str) -> Self {
        let line = |program: &Path, words: &str| {
            let program = program.to_string_lossy().into_owned();
            std::iter::once(program).chain(words.split_whitespace().map(str::to_owned)).collect()
        };
        Self { what, ours: line(own, ours), peer: line(other, peer), least: None }
    }

    /// With a command that does the least that could be done for it.
    fn beside(self, least: &[&str]) -> Self {
        Self { least: Some(least.iter().map(|word| (*word).to_owned()).collect()), ..self }
    }

    /// Fails unless both end alike: otherwise one would be timed at something else.
    fn agree(&self) -> Result<()> {
        let code = |words: &[String]| -> Result<Option<i32>> {
            let output = command(words).stdin(Stdio::null()).output();
            Ok(output.with_context(|| format!("cannot start {}", words[0]))?.status.code())
        };
        let (ours, peer) = (code(&self.ours)?, code(&self.peer)?);
        ensure!(ours == peer, "{}: ended with {ours:?}, the peer with {peer:?}", self.what);
        Ok(())
    }
}

/// The pairs that a suite compares.
struct Suite {
    pairs: Vec<Pair>,
    holders: Vec<fixture::Holder>,
}

/// Makes a suite, with the static command at this path.
type MakeSuite = fn(&Path) -> Result<Suite>;

/// The suites by name.
const SUITES: [(&str, MakeSuite); 2] = [("start", start::suite), ("family", family::suite)];

/// The comparison of bandwidths, which times no commands but reads what they print.
const PEERS: &str = "peers";
/// The cost of a sample, which counts CPU time instead of the time that passes.
const SAMPLE: &str = "sample";
/// Reports on fleets of different sizes, which have no peer.
const FLEET: &str = "fleet";
/// How many rounds there are by default: of commands that take a millisecond, and of
/// measurements that take a second.
const ROUNDS: usize = 1000;
const PEERS_ROUNDS: usize = 9;
const SAMPLE_ROUNDS: usize = 5;

/// Builds the peers of a suite that no package has.
pub fn install(suite: &str) -> Result<()> {
    ensure!(suite == SAMPLE, "{suite} has no peers that must be built: {SAMPLE} has");
    sample::install()
}

/// Runs a suite and prints its table.
pub fn run(root: &Path, suite: &str, rounds: Option<usize>, mappings: u32) -> Result<()> {
    if suite == PEERS {
        return peers::run(rounds.unwrap_or(PEERS_ROUNDS));
    }
    if suite == SAMPLE {
        return sample::run(root, rounds.unwrap_or(SAMPLE_ROUNDS), mappings);
    }
    if suite == FLEET {
        return fleet::run(root);
    }
    let rounds = rounds.unwrap_or(ROUNDS);
    let Some((_, suite)) = SUITES.iter().find(|(name, _)| *name == suite) else {
        let names: Vec<_> = SUITES.iter().map(|(name, _)| *name).chain([PEERS, SAMPLE, FLEET]).collect();
        bail!("{suite} is not a benchmark: expected one of {}", names.join(", "));
    };
    let nodewise = dist::build(root)?;
    let Suite { pairs, holders } = suite(&nodewise)?;
    for pair in &pairs {
        pair.agree()?;
    }
    let lines = pairs.iter().flat_map(|pair| [&pair.ours[..], &pair.peer[..]]);
    let mut yardsticks: Vec<&[String]> = Vec::new();
    for yardstick in pairs.iter().filter_map(|pair| pair.least.as_deref()) {
        if !yardsticks.contains(&yardstick) {
            yardsticks.push(yardstick);
        }
    }
    let lines: Vec<&[String]> = lines.chain(yardsticks.iter().copied()).collect();
    let times = wall::medians(&lines, rounds)?;
    println!("{rounds} rounds; times are medians of a command from start to end, in microseconds\n");
    println!("| what | | wall us | instructions | system calls |\n|---|---|---:|---:|---:|");
    for (pair, times) in pairs.iter().zip(times.chunks(2)) {
        let ours = Row { us: times[0], counts: count::count(&pair.ours)? };
        let peer = Row { us: times[1], counts: count::count(&pair.peer)? };
        println!("| {} | `{}` | {} |", pair.what, shown(&pair.ours), ours.text());
        println!("| | `{}` | {} |", shown(&pair.peer), peer.text());
        println!("| | ratio | {} |", ours.over(&peer));
    }
    for (line, least) in yardsticks.iter().zip(&times[2 * pairs.len()..]) {
        println!("\nbeside `{}`, {least:.0} us\n\n| | wall us | ratio |\n|---|---:|---:|", shown(line));
        let of_it = |(pair, _): &(&Pair, &[f64])| pair.least.as_deref() == Some(line);
        for (pair, times) in pairs.iter().zip(times.chunks(2)).filter(of_it) {
            println!("| `{}` | {:.0} | {:.2} |", shown(&pair.ours), times[0], times[0] / least);
        }
    }
    drop(holders);
    Ok(())
}

/// Measured values of one command.
struct Row {
    us: f64,
    counts: count::Counts,
}

impl Row {
    fn text(&self) -> String {
        format!("{:.0} | {} | {}", self.us, self.counts.instructions, self.counts.system_calls)
    }

    fn over(&self, peer: &Self) -> String {
        let ratio = |own: u64, other: u64| own as f64 / other as f64;
        let instructions = ratio(self.counts.instructions, peer.counts.instructions);
        let calls = ratio(self.counts.system_calls, peer.counts.system_calls);
        format!("{:.2} | {instructions:.2} | {calls:.2}", self.us / peer.us)
    }
}

/// A command line with the program's name instead of its path.
fn shown(words: &[String]) -> String {
    let name = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
    std::iter::once(name).chain(words[1..].iter().cloned()).collect::<Vec<_>>().join(" ")
}

/// A command of these words; the first is the program.
fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    plain(command.args(&words[1..]));
    command
}

/// Takes away what cargo sets for its children: the loader would look for every library of a peer in
/// more folders than it does for anybody else.
fn plain(command: &mut Command) -> &mut Command {
    command.env_remove("LD_LIBRARY_PATH")
}
