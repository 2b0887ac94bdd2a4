//! Latency by size, beside the same chase in C: the same layout, the same pages.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use nodewise_machine::{Bytes, CpuId, NodeId};
use nodewise_measure::cell::facts::NoFacts;
use nodewise_measure::cell::{PageKind, PlacedMemory};
use nodewise_measure::kernel::cycle::Cycle;
use nodewise_measure::kernel::track::{Spacing, Track};
use nodewise_measure::latency;
use nodewise_measure::timer::Timer;
use nodewise_stats::median;
use nodewise_stats::random::Random;

use super::reference::{Question, Reference};
use super::{Goal, turns, verdict};

/// Loads of one of our samples, as in a block of the reference, and how long either goes on.
const LOADS: u64 = 1 << 16;
const TIME: Duration = Duration::from_millis(150);
/// The places of a window of 256 KiB.
const WINDOW: usize = 4096;

const HUGE: PageKind = PageKind::TransparentHuge;
const SMALL: PageKind = PageKind::Small;

/// Parameters of a chase.
struct Row {
    operation: &'static str,
    size: Bytes,
    pages: PageKind,
}

/// The sizes: all of them in both kinds of pages, but for the largest.
fn rows() -> Vec<Row> {
    let row = |operation, size, pages| Row { operation, size, pages };
    let sizes = [16, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10].map(Bytes::from_kib);
    let of = |pages| sizes.map(|size| row("chase", size, pages));
    let mut rows: Vec<Row> = of(HUGE).into_iter().chain(of(SMALL)).collect();
    rows.push(row("chase", Bytes::from_gib(2), HUGE));
    rows.extend([HUGE, SMALL].map(|pages| row("window", Bytes::from_mib(256), pages)));
    rows
}

impl Row {
    fn name(&self) -> String {
        let way = if self.operation == "window" { ", windows of 256 KiB" } else { "" };
        let pages = if self.pages == SMALL { "4 KiB pages" } else { "huge pages" };
        format!("{}{way}, {pages}", self.size)
    }

    fn goal(&self) -> Goal {
        let mib = self.size.get() >> 20;
        match (self.size <= Bytes::from_kib(16), self.operation, self.pages) {
            (true, _, _) => Goal::AtMost(1.0),
            (_, "window", _) => Goal::Within(0.02),
            (_, _, HUGE) if mib >= 256 => Goal::Within(0.02),
            _ => Goal::Within(0.05),
        }
    }

    fn cycle(&self) -> Option<Cycle> {
        let places = usize::try_from(self.size.get()).ok()? / Spacing::Line.bytes();
        let random = &mut Random::new(7);
        match self.operation {
            "window" => Cycle::windowed(places, WINDOW, random),
            _ => Cycle::random(places, random),
        }
    }
}

/// Prints a row for each size: one of ours and all of the references in each round.
pub fn table(rounds: usize, cpu: CpuId, references: &[Reference], timer: &Timer) -> Result<()> {
    println!("| chase | nodewise ns | best peer ns | ratio | goal | met |");
    println!("|---|---:|---|---|---:|---|");
    for row in rows() {
        let cycle = Arc::new(row.cycle().with_context(|| format!("no memory for {}", row.name()))?);
        let mut own = Vec::new();
        let mut peers = vec![Vec::new(); references.len()];
        for round in 0..rounds {
            for turn in turns(round, references.len() + 1) {
                let Some(at) = turn.checked_sub(1) else {
                    own.push(measure(&row, &cycle, cpu, timer)?);
                    continue;
                };
                let (operation, size, pages) = (row.operation, row.size, row.pages);
                let question = Question { operation, size, pages, time: TIME, cpus: &[cpu], seed: round };
                peers[at].push(references[at].ask(&question).context("the reference does not run")?);
            }
        }
        let rated = references.iter().zip(&peers).filter_map(|(peer, ns)| Some((median(ns)?, peer, ns)));
        let best = rated.min_by(|one, other| one.0.total_cmp(&other.0)).context("there is a reference")?;
        let (ns, peer, of_rounds) = best;
        let own_ns = median(&own).context("there is a round")?;
        let verdict = verdict(row.goal(), &own, of_rounds).context("there is a round")?;
        println!("| {} | {own_ns:.2} | {ns:.2} {} | {verdict} |", row.name(), peer.name);
    }
    Ok(())
}

/// The median of some samples in new memory.
fn measure(row: &Row, cycle: &Arc<Cycle>, cpu: CpuId, timer: &Timer) -> Result<f64> {
    let placed = PlacedMemory::new(row.size, NodeId::new(0), row.pages, &mut NoFacts)?;
    let track = Track::lay(placed.into_buffer(), Arc::clone(cycle), Spacing::Line);
    let mut track = track.context("the chain was not laid as drawn")?;
    let (begin, mut samples) = (timer.now(), Vec::new());
    while samples.len() < 5 || timer.now().since(begin) < TIME {
        samples.push(latency::sample(&mut track, cpu, LOADS, timer, &mut NoFacts)?.value);
    }
    median(&samples).context("there is a sample")
}
