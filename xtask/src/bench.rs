//! `bench`: nodewise beside its peers, both in one run.
//!
//! Times are taken in rounds: in each every command runs once, in an order that turns, so that what
//! slows the machine down for a while slows all alike. Instructions and system calls are exact counts
//! of one run.

mod count;
mod start;
mod wall;

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::{dist, program};

/// A comparison: what it is about, our command line and the peer's.
struct Pair {
    what: &'static str,
    ours: Vec<String>,
    peer: Vec<String>,
}

/// The comparisons of a suite, with the static command at this path.
type Pairs = fn(&str) -> Vec<Pair>;

/// The suites by name.
const SUITES: [(&str, Pairs); 1] = [("start", start::pairs)];

/// Runs a suite and prints its table.
pub fn run(root: &Path, suite: &str, rounds: usize) -> Result<()> {
    let Some((_, pairs)) = SUITES.iter().find(|(name, _)| *name == suite) else {
        let names: Vec<_> = SUITES.iter().map(|(name, _)| *name).collect();
        bail!("{suite} is no benchmark: expected one of {}", names.join(", "));
    };
    let nodewise = dist::build(root)?;
    let pairs = pairs(&nodewise.to_string_lossy());
    for pair in &pairs {
        for words in [&pair.ours, &pair.peer] {
            program::quiet(&mut command(words))?;
        }
    }
    let lines: Vec<&[String]> = pairs.iter().flat_map(|pair| [&pair.ours[..], &pair.peer[..]]).collect();
    let times = wall::medians(&lines, rounds)?;
    println!("{rounds} rounds; times are medians of a command from start to end, in microseconds\n");
    println!("| what | | wall us | instructions | system calls |\n|---|---|---:|---:|---:|");
    for (pair, times) in pairs.iter().zip(times.chunks(2)) {
        let ours = Row { us: times[0], counts: count::count(&pair.ours)? };
        let peer = Row { us: times[1], counts: count::count(&pair.peer)? };
        println!("| {} | `{}` | {} |", pair.what, shown(&pair.ours, &nodewise), ours.text());
        println!("| | `{}` | {} |", pair.peer.join(" "), peer.text());
        println!("| | ratio | {} |", ours.over(&peer));
    }
    Ok(())
}

/// What was found of one command.
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

/// A command line with the name instead of the path.
fn shown(words: &[String], nodewise: &Path) -> String {
    words.join(" ").replace(&*nodewise.to_string_lossy(), "nodewise")
}

/// A command of these words; the first is the program.
fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}
