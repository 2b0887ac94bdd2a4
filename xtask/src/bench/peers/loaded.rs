//! Rate of traffic while another CPU chases, beside that of the same thread alone: the threads of
//! `nodewise latency --loaded` are to load memory as much as they can.

use anyhow::{Context, Result};
use nodewise_machine::{Bytes, CpuId, NodeId};
use nodewise_measure::cell::facts::NoFacts;
use nodewise_measure::cell::{PageKind, PlacedMemory, Refusal};
use nodewise_measure::kernel::bandwidth::Kernel;
use nodewise_measure::kernel::cycle::Cycle;
use nodewise_measure::kernel::track::{Spacing, Track};
use nodewise_measure::latency;
use nodewise_measure::latency::loaded::traffic::{Load, Meanwhile, during};
use nodewise_measure::stop::Stop;
use nodewise_measure::timer::Timer;
use nodewise_stats::median;
use nodewise_stats::random::Random;
use std::sync::Arc;

use super::{Goal, SAMPLE, fastest, members, rate, turns, verdict};

const SIZE: Bytes = Bytes::from_mib(256);
/// Loads between two looks at the clock.
const LOADS: u64 = 1 << 16;
const KERNELS: [Kernel; 4] = [Kernel::Read, Kernel::Mix2To1, Kernel::Mix1To1, Kernel::CopyNt];

/// Prints a row for each kernel; nothing with fewer than two CPUs.
pub fn table(rounds: usize, cpus: &[CpuId], timer: &Timer) -> Result<()> {
    let [mover, .., chaser] = cpus else {
        println!("latency under load needs two CPUs: this process has {}", cpus.len());
        return Ok(());
    };
    println!("| traffic of one thread, GB/s | during a chase | alone | ratio | goal | met | ns |");
    println!("|---|---:|---:|---|---:|---|---:|");
    let cycle = Cycle::random(SIZE.get() as usize / Spacing::Line.bytes(), &mut Random::new(7));
    let placed = PlacedMemory::new(SIZE, NodeId::new(0), PageKind::TransparentHuge, &mut NoFacts)?;
    let cycle = Arc::new(cycle.context("no memory for the chase")?);
    let mut track = Track::lay(placed.into_buffer(), cycle, Spacing::Line).context("no chain")?;
    let mut memory = PlacedMemory::new(SIZE, NodeId::new(0), PageKind::TransparentHuge, &mut NoFacts)?;
    for kernel in KERNELS {
        let (mut with, mut alone, mut ns) = (Vec::new(), Vec::new(), Vec::new());
        let variant = fastest(kernel, &mut memory, &[*mover], timer)?;
        for round in 0..rounds {
            for turn in turns(round, 2) {
                let members = members(&mut memory, &[*mover]);
                if turn == 0 {
                    alone.push(rate(kernel, variant, members, timer)?);
                    continue;
                }
                let load = Load { kernel, variant, pause_ns: 0 };
                let chased = || chase(&mut track, *chaser, timer);
                let (of_load, moved) = during(members, load, timer, &Stop::NEVER, chased)?;
                with.push(moved.program / 1e9);
                ns.push(of_load);
            }
        }
        let middle = |figures: &[f64]| median(figures).context("there is a round");
        let verdict = verdict(Goal::AtLeast(0.98), &with, &alone).context("there is a round")?;
        println!(
            "| {kernel} | {:.1} | {:.1} | {verdict} | {:.0} |",
            middle(&with)?,
            middle(&alone)?,
            middle(&ns)?
        );
    }
    Ok(())
}

/// Chases for the time: the median of ns per load.
fn chase(track: &mut Track, cpu: CpuId, timer: &Timer) -> Result<Meanwhile<f64>, Refusal> {
    let (begin, mut samples) = (timer.now(), Vec::new());
    while timer.now().since(begin) < SAMPLE {
        samples.push(latency::sample(track, cpu, LOADS, timer, &mut NoFacts)?.value);
    }
    let result = median(&samples).ok_or(Refusal::TooShort)?;
    Ok(Meanwhile { result, window: (begin, timer.now()) })
}
