//! The time of a command from start to end.

use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result};
use nodewise_stats::median;

use super::command;

/// The median time of each command line, in microseconds.
pub fn medians(lines: &[&[String]], rounds: usize) -> Result<Vec<f64>> {
    let mut times = vec![Vec::with_capacity(rounds); lines.len()];
    for round in 0..rounds {
        for turn in 0..lines.len() {
            // Each place in the order is taken by each command equally often.
            let which = (turn + round) % lines.len();
            times[which].push(once(lines[which])?);
        }
    }
    times.iter().map(|times| median(times).context("there is a round")).collect()
}

fn once(words: &[String]) -> Result<f64> {
    let mut command = command(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    command.status().with_context(|| format!("cannot start {}", words[0]))?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}
