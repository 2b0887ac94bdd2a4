//! Bandwidth and latency beside the programs that Debian packages for them, and beside plain code in C.
//!
//! All in one run: in each round everything is measured once, in an order that turns, and what counts
//! is the median over rounds of the ratio of two figures of the same round. Everything runs where this
//! process may: on a machine with several nodes it is to be bound to one of them.

mod chases;
mod loaded;
mod passes;
mod programs;
mod reference;

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nodewise_lab::tools::find_program;
use nodewise_machine::CpuId;
use nodewise_measure::bandwidth::contest::{self, Contest};
use nodewise_measure::cell::facts::NoFacts;
use nodewise_measure::cell::{PlacedMemory, Seat};
use nodewise_measure::kernel::bandwidth::{Kernel, Variant};
use nodewise_measure::stop::Stop;
use nodewise_measure::team::{self, Member, Task};
use nodewise_measure::timer::Timer;
use nodewise_stats::{Interval, median, median_interval};

use crate::program;
use programs::{PACKAGES, PROGRAMS};
use reference::Reference;

/// How long what is measured runs in a round.
const SAMPLE: Duration = Duration::from_millis(300);

/// How far beyond the goal the far end of the interval may be.
const TOLERANCE: f64 = 0.02;

/// Runs all and prints tables.
pub fn run(rounds: usize) -> Result<()> {
    install()?;
    let references = Reference::build()?;
    let timer = Timer::choose();
    let cpus = cpus(&timer);
    println!("{}\n", caption(rounds)?);
    passes::table(rounds, &cpus, &references, &timer)?;
    println!();
    chases::table(rounds, *cpus.last().context("there is a CPU")?, &references, &timer)?;
    println!();
    loaded::table(rounds, &cpus, &timer)?;
    println!("\npeers: {}", versions().join(", "));
    Ok(())
}

/// Under which circumstances, without the name of the machine.
fn caption(rounds: usize) -> Result<String> {
    let kernel = program::read(Command::new("uname").args(["-srm"]))?;
    let load = program::read(&mut Command::new("uptime"))?;
    let load = load.split_once("load average:").map_or("", |(_, load)| load.trim());
    let before = load.split(',').next().unwrap_or("");
    Ok(format!(
        "{}, load {before} before; {rounds} rounds; ratio: median over rounds of nodewise to the best peer of the \
         same round, with a 95 % interval",
        kernel.trim()
    ))
}

/// Installs what is missing, where that is allowed.
fn install() -> Result<()> {
    let missing = || PROGRAMS.iter().any(|name| find_program(name).is_none());
    if missing() && rustix::process::geteuid().is_root() {
        program::install_packages(&PACKAGES)?;
    }
    if missing() {
        bail!("the peers are not installed: apt-get install {} as root", PACKAGES.join(" "))
    } else {
        Ok(())
    }
}

/// A thread on each of these CPUs, each with its part of the memory: whole pages.
fn members<'a>(memory: &'a mut PlacedMemory, cpus: &[CpuId]) -> Vec<Member<'a>> {
    let words = memory.buffer_mut().as_mut_words();
    let part = words.len() / cpus.len() / team::work::PAGE * team::work::PAGE;
    cpus.iter().zip(words.chunks_exact_mut(part)).map(|(cpu, part)| Member { cpu: *cpu, part }).collect()
}

/// The variant of a kernel that is fastest there.
fn fastest(kernel: Kernel, memory: &mut PlacedMemory, cpus: &[CpuId], timer: &Timer) -> Result<Variant> {
    let facts = &mut NoFacts;
    Ok(contest::of_team(kernel, Contest::Whole, timer, facts, memory, |memory| Ok(members(memory, cpus)))?)
}

/// Measures the rate of these threads in a sample, GB/s.
fn rate(kernel: Kernel, variant: Variant, members: Vec<Member<'_>>, timer: &Timer) -> Result<f64> {
    let task = Task { kernel, variants: &[variant], time: SAMPLE, stop: &Stop::NEVER };
    let results = team::run(members, task, timer)?;
    Ok(results.into_iter().next().context("one variant has one result")??.program / 1e9)
}

/// The CPUs that this process may use.
fn cpus(timer: &Timer) -> Vec<CpuId> {
    let numbers = 0..4096;
    numbers.map(CpuId::new).filter(|cpu| Seat::take(*cpu, Duration::ZERO, timer).is_ok()).collect()
}

/// Lists the packages with their versions.
fn versions() -> Vec<String> {
    let version = |package: &&str| {
        let output = Command::new("dpkg-query").args(["-W", "-f=${Version}", package]).output().ok()?;
        Some(format!("{package} {}", String::from_utf8_lossy(&output.stdout).trim()))
    };
    PACKAGES.iter().filter_map(version).collect()
}

/// The goal for a ratio. Goals are given with two decimals, and so ratios are compared with them.
#[derive(Clone, Copy, Debug)]
enum Goal {
    /// As much as this or more.
    AtLeast(f64),
    /// As much as this or less.
    AtMost(f64),
    /// Not farther from 1 than this, and never so far below it that something must be wrong.
    Within(f64),
}

/// A lower latency than this part of an honest peer's is a mistake.
const TOO_GOOD: f64 = 0.97;

impl Goal {
    /// Whether a ratio with its interval is what it should be. Without an interval nothing is proven.
    fn is_met(self, ratio: f64, interval: Option<Interval>) -> bool {
        let ratio = (ratio * 100.0).round() / 100.0;
        interval.is_some_and(|Interval { low, high }| match self {
            Self::AtLeast(goal) => ratio >= goal && low >= goal - TOLERANCE,
            Self::AtMost(goal) => ratio <= goal && high <= goal + TOLERANCE,
            Self::Within(share) => (ratio - 1.0).abs() <= share + 1e-9 && ratio >= TOO_GOOD,
        })
    }

    fn words(self) -> String {
        match self {
            Self::AtLeast(goal) => format!(">= {goal:.2}"),
            Self::AtMost(goal) => format!("<= {goal:.2}"),
            Self::Within(share) => format!("1 +- {share:.2}"),
        }
    }
}

/// The ratio column, the goal column, and whether it is met, of figures of the same rounds.
fn verdict(goal: Goal, own: &[f64], peer: &[f64]) -> Option<String> {
    let ratios: Vec<f64> = own.iter().zip(peer).map(|(own, peer)| own / peer).collect();
    let ratio = median(&ratios)?;
    let interval = median_interval(&ratios);
    let words = interval.map_or_else(String::new, |of| format!(" ({:.3}-{:.3})", of.low, of.high));
    let met = if goal.is_met(ratio, interval) { "yes" } else { "no" };
    Some(format!("{ratio:.3}{words} | {} | {met}", goal.words()))
}

/// Calls each of this many once, beginning with another one in each round.
fn turns(round: usize, all: usize) -> impl Iterator<Item = usize> {
    (0..all).map(move |turn| (turn + round) % all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_by_the_ratio_and_its_interval() {
        let check = |goal: Goal, ratio, low, high, expected| {
            assert_eq!(goal.is_met(ratio, Some(Interval { low, high })), expected, "{goal:?} {ratio}");
        };
        check(Goal::AtLeast(1.0), 1.01, 0.99, 1.03, true);
        check(Goal::AtLeast(1.0), 0.996, 0.99, 1.03, true);
        check(Goal::AtLeast(1.0), 0.99, 0.985, 1.03, false);
        check(Goal::AtLeast(1.0), 1.01, 0.97, 1.03, false);
        check(Goal::AtMost(1.0), 1.004, 0.99, 1.01, true);
        check(Goal::AtMost(1.0), 1.0, 0.99, 1.03, false);
        check(Goal::Within(0.05), 1.04, 1.0, 1.2, true);
        check(Goal::Within(0.05), 0.96, 0.95, 1.0, false);
        check(Goal::Within(0.02), 1.03, 1.0, 1.2, false);
        assert!(!Goal::AtLeast(1.0).is_met(2.0, None), "nothing is proven without an interval");
    }

    #[test]
    fn every_round_has_every_turn_once() {
        for round in 0..7 {
            let mut turns: Vec<usize> = turns(round, 5).collect();
            assert_eq!(turns[0], round % 5);
            turns.sort_unstable();
            assert_eq!(turns, [0, 1, 2, 3, 4]);
        }
    }
}
