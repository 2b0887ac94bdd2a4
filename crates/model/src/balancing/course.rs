//! Balancing over time: how much of a program's far memory is local after a while, as a band over draws.
//!
//! ```text
//! forecast(program, settings, costs, times, draws) -> ShareLocal { at, low, median, high }   one for each time
//! ```
//!
//! A program runs on one node, and all its memory is on another. The kernel marks the memory in windows
//! ([`Settings::size`]), and the first touch of a marked page moves it. When a window is marked follows from the CPU
//! time of the program's thread; what is left to chance is the phase of the tick, turns of other threads during a scan, which pages are
//! touched, and where in its memory a sweep begins unless the program says. Each draw decides these once and plays the program from the start of its thread.
//!
//! Pages that several threads on different nodes use, and transparent huge pages, are not modelled.
//!
//! # Source
//! `task_tick_numa`, `task_numa_work`, `init_numa_balancing`, `task_scan_min` and `should_numa_migrate_memory` in
//! `kernel/sched/fair.c`, compared with guests of 6.1, 6.12 and 6.18. From 6.4 on the kernel skips mappings that a thread has not
//! used, but not in the first two passes.

mod promotion;
mod scan;
mod touch;
mod turns;

#[cfg(test)]
mod tests;

use std::iter::from_fn;
use std::time::Duration;

use nodewise_machine::Bytes;
use nodewise_stats::quantile;
use nodewise_stats::random::Random;

pub use promotion::{Promotion, forecast_promotion};
use scan::{Found, Scan, Scans};
use touch::Touching;
pub use turns::{Preemption, Turns};

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Parts of the draws that are below, around and above the band.
const QUANTILES: [f64; 3] = [0.05, 0.5, 0.95];

/// The pace of scans.
///
/// # Source
/// `/sys/kernel/debug/sched/numa_balancing/scan_*`, Linux 5.13; sysctls `kernel.numa_balancing_scan_*` before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `scan_delay_ms`: CPU time before the first scan.
    pub delay: Duration,
    /// `scan_period_min_ms`: the shortest time in which all memory is scanned.
    pub period_min: Duration,
    /// `scan_size_mb`: memory that one scan marks.
    pub size: Bytes,
}

impl Settings {
    /// Settings that the kernel starts with.
    pub const KERNEL: Self = Self {
        delay: Duration::from_secs(1),
        period_min: Duration::from_secs(1),
        size: Bytes::from_mib(256),
    };

    /// Pages that one scan marks.
    fn window(self) -> u64 {
        (self.size.get() / PAGE).max(1)
    }

    /// The time between two scans of a process that starts with this much memory (`task_scan_min`): never more than
    /// 2,560 MiB are scanned in a second.
    fn first_period(self, resident: u64) -> Duration {
        let floor = 1000 / (2560 / self.size.mib().max(1)).max(1);
        let windows = resident.div_ceil(self.window()).max(1);
        let whole = self.period_min.as_millis() as u64 / windows;
        Duration::from_millis(whole.max(floor))
    }
}

/// The thread that uses the memory. Until its first pass is over, the time between its scans is that with which the
/// kernel's clock of its scans started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// The only thread of a process that was forked, as by a shell: all its memory is scanned in
    /// [`Settings::period_min`].
    Forked,
    /// The only thread of a process that was started by `vfork` or `posix_spawn`: one window in [`Settings::delay`].
    Spawned,
    /// A thread that its process has started: the same, and the first window sooner.
    Started,
}

/// The order in which pages are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Any page is as likely as another.
    Uniform,
    /// One after the other, round and round.
    Sweep,
}

/// A program with far memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Program {
    /// Memory on another node.
    pub memory: Bytes,
    /// The page number at which it begins, as far as it matters: scans end at multiples of 2 MiB. `None`: any.
    pub first_page: Option<u64>,
    /// Other memory of the process, at lower addresses: what is scanned before.
    pub below: Bytes,
    /// All memory of the process, pages of files included: the more it is, the sooner a window follows the last in a forked
    /// process. At least what is above. Near a multiple of the window it takes the kernel's own count, which may lack pages of each
    /// CPU, to know.
    pub resident: Bytes,
    pub thread: Thread,
    /// CPU time of the thread before balancing was switched on or the memory was there.
    pub before: Duration,
    pub pattern: Pattern,
    /// The page of the memory with which a sweep begins, the first being 0. `None`: any.
    pub sweep_from: Option<u64>,
    /// Pages that it touches in a second of its CPU time: at least, and at most. Each draw has one rate from the first page
    /// to the last.
    pub touches_per_s: [f64; 2],
    /// The part of the time that it has a CPU, from 0 to 1.
    pub cpu_share: f64,
    /// Memory that the node has room for; `None`: all.
    pub room: Option<Bytes>,
    /// Mappings of the process at higher addresses that the thread does not use: at least, and at most. From the third pass on
    /// each takes a scan of its own before the next pass begins ([`Change::UnusedMappingsLast`](crate::release::Change)).
    pub unused_above: [u64; 2],
}

impl Program {
    fn pages(&self) -> u64 {
        self.memory.get().div_ceil(PAGE)
    }
}

/// The time that the kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Between two ticks: 1 / `CONFIG_HZ`.
    pub tick: Duration,
    /// For marking a page: at least, and at most; each scan has its own.
    pub mark: [Duration; 2],
    pub passed_over: PassedOver,
    /// For the fault that moves a page, taken from the time in which the program touches others.
    pub fault: Duration,
    /// Other threads on the program's CPU; `None`: there are none.
    pub turns: Option<Turns>,
}

/// The time that a scan takes for pages that it does not mark, and for other mappings.
///
/// # Source
/// `change_pte_range` in `mm/mprotect.c`: 6.12 finds a mark before it looks at the page, 6.18 after it. `task_numa_work` in
/// `kernel/sched/fair.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedOver {
    /// A page that is marked already.
    pub marked: Duration,
    /// A page of the fast node, where slower memory is promoted.
    pub promoted: Duration,
    /// All other mappings of the process, in each of the first two passes: from the third on a scan of the memory leaves them out
    /// ([`Program::unused_above`]).
    pub other_mappings: Duration,
}

impl PassedOver {
    /// No time.
    pub const NONE: Self =
        Self { marked: Duration::ZERO, promoted: Duration::ZERO, other_mappings: Duration::ZERO };
}

impl Costs {
    /// Of a kernel of Debian, on a machine that needs no time for pages.
    pub const NONE: Self = Self {
        tick: Duration::from_millis(4),
        mark: [Duration::ZERO; 2],
        passed_over: PassedOver::NONE,
        fault: Duration::ZERO,
        turns: None,
    };

    /// The same on a server: 1 µs for a fault and 3 µs for a move, by which `doctor` judges as well, and 20 ns for a mark. A page that
    /// is passed over takes the same part of a mark as in emulated guests of 6.18. All of these are assumptions.
    pub const ASSUMED: Self = Self {
        mark: [Duration::from_nanos(20); 2],
        passed_over: PassedOver {
            marked: Duration::from_nanos(4),
            promoted: Duration::from_nanos(7),
            ..PassedOver::NONE
        },
        fault: Duration::from_micros(4),
        ..Self::NONE
    };
}

/// How often the program is played, and from which seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    pub count: u32,
    pub seed: u64,
}

/// The share of the memory that is local at a moment, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareLocal {
    /// CPU time of the thread since it began to use the memory.
    pub at: Duration,
    /// One draw in twenty has less.
    pub low: f64,
    pub median: f64,
    /// One draw in twenty has more.
    pub high: f64,
}

impl ShareLocal {
    /// Whether a share is inside the band.
    pub fn has(&self, share: f64) -> bool {
        (self.low..=self.high).contains(&share)
    }
}

/// The share of the memory that is local at each of these times, over draws; times in any order.
pub fn forecast(
    program: &Program,
    settings: Settings,
    costs: Costs,
    times: &[Duration],
    draws: Draws,
) -> Vec<ShareLocal> {
    bands(times, draws, |times, random| play(program, settings, costs, times, random))
}

/// Plays at ascending times, in seconds, for each draw.
fn bands(
    times: &[Duration],
    draws: Draws,
    play: impl Fn(&[f64], &mut Random) -> Vec<f64>,
) -> Vec<ShareLocal> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_unstable_by_key(|at| times[*at]);
    let sorted: Vec<f64> = order.iter().map(|at| times[*at].as_secs_f64()).collect();
    let mut shares = vec![Vec::with_capacity(draws.count as usize); times.len()];
    for draw in 0..draws.count.max(1) {
        let mut random = Random::stream(draws.seed, u64::from(draw));
        for (at, share) in order.iter().zip(play(&sorted, &mut random)) {
            shares[*at].push(share);
        }
    }
    let band = |(at, shares): (&Duration, &Vec<f64>)| {
        let [low, median, high] = QUANTILES.map(|part| quantile(shares, part).unwrap_or_default());
        ShareLocal { at: *at, low, median, high }
    };
    times.iter().zip(&shares).map(band).collect()
}

/// Shares at ascending times, in seconds of CPU time.
fn play(program: &Program, settings: Settings, costs: Costs, times: &[f64], random: &mut Random) -> Vec<f64> {
    let pages = program.pages();
    if pages == 0 {
        return vec![1.0; times.len()];
    }
    let end = times.last().copied().unwrap_or_default();
    let mut scans = Scans::start(program, settings, costs, random);
    let first_pass: Vec<Scan> =
        from_fn(|| scans.due(end).map(|at| scans.scan(at, Found::UNMARKED, 0.0, random))).collect();
    let mut first_pass = first_pass.into_iter().peekable();
    let mut touching = Touching::start(program, costs, random);
    let room = program.room.map_or(pages, |room| room.get() / PAGE).min(pages);
    let mut shares = Vec::with_capacity(times.len());
    for time in times {
        while let Some(scan) = first_pass.next_if(|scan| scan.at <= *time) {
            touching.until(scan.at, random);
            touching.mark(scan.pages);
        }
        touching.until(*time, random);
        shares.push(touching.moved().min(room) as f64 / pages as f64);
    }
    shares
}
