//! CPU time of a sample of this machine: `cargo bench -p nodewise-source --bench sample -- TICKS`. `cargo xtask bench
//! sample` runs it among many processes, beside its peers.
//!
//! The clock that the sampler sees goes a second forward with each sample, and less time than that passes: what is
//! idle for seconds is read no more often than it would be.

#![expect(clippy::print_stdout, reason = "a benchmark tells its figures")]

use std::time::Duration;

use nodewise_source::sample::{
    BandwidthScope, InterruptScope, Moment, PageOptions, ProcessScope, SampleOptions, Sampler, ThreadScope,
};
use nodewise_source::tree::Tree;
use rustix::time::{ClockId, clock_gettime};

/// Samples that are taken before those that count: by then idle processes are read every 8 samples.
const WARM: u32 = 16;
/// Time between two samples.
const PAUSE: Duration = Duration::from_millis(200);

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn main() {
    // `cargo bench` adds a word of its own.
    let ticks = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(32u32).max(1);
    let without_pages = std::env::args().any(|word| word == "--without-pages");
    let options = SampleOptions {
        processes: ProcessScope::All,
        threads: ThreadScope::Busy([].into()),
        groups: true,
        interrupts: InterruptScope::None,
        bandwidth: BandwidthScope::None,
        controllers: BandwidthScope::None,
        pages: (!without_pages).then(PageOptions::default),
    };
    let mut sampler = Sampler::new(Tree::live(), options);
    let begun = Moment::now();
    let mut sample = |tick: u32| {
        let passed = Duration::from_secs(tick.into());
        let now = Moment { since_boot: begun.since_boot + passed, wall: begun.wall + passed };
        let before = cpu_time();
        let sample = sampler.sample(now);
        let spent = cpu_time() - before;
        let polled = sample.processes.iter().filter(|process| process.polled == now).count();
        let seen = |process: &nodewise_source::sample::ProcessSample| {
            process.pages.as_ref().is_some_and(|pages| pages.seen == now)
        };
        let located = sample.processes.iter().filter(|process| seen(process)).count();
        (spent, sample.processes.len(), polled, located)
    };
    let (first, ..) = sample(0);
    let mut sum = (Duration::ZERO, 0, 0, 0);
    for tick in 1..=WARM + ticks {
        std::thread::sleep(PAUSE);
        let (spent, processes, polled, located) = sample(tick);
        if tick > WARM {
            sum = (sum.0 + spent, sum.1 + processes, sum.2 + polled, sum.3 + located);
        }
    }
    let each = |sum: usize| sum as f64 / f64::from(ticks);
    println!(
        "first_us={} tick_us={} processes={:.0} polled={:.1} located={:.1}",
        first.as_micros(),
        (sum.0 / ticks).as_micros(),
        each(sum.1),
        each(sum.2),
        each(sum.3)
    );
}
