//! The first pass over a program's memory: when each window is marked.

use std::ops::Range;

use nodewise_stats::random::Random;

use super::{Costs, PAGE, Program, Settings, Thread};

/// Pages of 2 MiB: a scan goes on to the next multiple of it.
const ALIGNED: u64 = 512;
/// A thread runs this many times as long as its last scan took before it scans again.
const RESTS: f64 = 32.0;
/// Ticks by which a scan is put off, so that another thread of the process does the next.
const YIELDS: f64 = 2.0;

/// A part of the memory that was marked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scan {
    /// CPU time of the thread when it begins, in seconds since it began to use the memory: until it is done the thread touches
    /// nothing, and what was due meanwhile finds the pages marked.
    pub at: f64,
    /// Pages, the first of the memory being 0.
    pub pages: Range<u64>,
}

/// The kernel's clock of a thread's scans. Times are seconds of the thread's CPU time.
struct Clock {
    /// CPU time that has been accounted for (`node_stamp`).
    stamp: f64,
    /// `numa_scan_period`
    period: f64,
    /// The earliest time of the next scan of the process, in seconds since the thread started (`numa_next_scan`). `None`:
    /// the first try sets it.
    next: Option<f64>,
}

/// Where scans are in the process's memory: below it, or in it.
struct Cursor {
    /// Pages below that are not scanned yet.
    below: u64,
    /// The page number at which the memory begins, and the next page of it that is scanned.
    first: u64,
    next: u64,
    pages: u64,
}

impl Cursor {
    /// Marks a window: in a first pass all pages are unmarked.
    fn scan(&mut self, window: u64) -> Range<u64> {
        let skipped = self.below.min(window);
        self.below -= skipped;
        let start = self.next;
        if skipped < window {
            let end = (self.first + self.next).saturating_add(window - skipped).next_multiple_of(ALIGNED);
            self.next = (end - self.first).min(self.pages);
        }
        start..self.next
    }
}

/// The scans of the first pass that begin before a time.
pub(super) fn first_pass(
    program: &Program,
    settings: Settings,
    costs: Costs,
    end: f64,
    random: &mut Random,
) -> Vec<Scan> {
    let tick = costs.tick.as_secs_f64().max(1e-6);
    let share = program.cpu_share.clamp(1e-6, 1.0);
    let delay = settings.delay.as_secs_f64();
    // The thread starts between two ticks.
    let phase = random.unit() * tick;
    let drawn = random.below(ALIGNED);
    let pages = program.pages();
    let below = program.below.get() / PAGE;
    let resident = pages.saturating_add(below).max(program.resident.get() / PAGE);
    let first = program.first_page.unwrap_or(drawn) % ALIGNED;
    let mut cursor = Cursor { below, first, next: 0, pages };
    let mut clock = match program.thread {
        Thread::Forked => Clock { stamp: 0.0, period: delay, next: None },
        Thread::Spawned => Clock { stamp: YIELDS * tick, period: delay, next: None },
        // Times in jiffies are those of the tick before.
        Thread::Started => Clock { stamp: YIELDS * tick, period: delay, next: Some(delay + phase - tick) },
    };
    let mut scans = Vec::new();
    let before = program.before.as_secs_f64();
    let end = before + end;
    let mut spent = before;
    while cursor.next < pages {
        // The first tick at which more CPU time than a period has gone by.
        let due = (clock.stamp + clock.period).max(spent);
        let now = (((due - phase) / tick).floor() + 1.0).max(0.0) * tick + phase;
        if now > end {
            break;
        }
        spent = now;
        let period = clock.period;
        if clock.stamp == 0.0 {
            clock.period = settings.first_period(resident).as_secs_f64();
        }
        clock.stamp += period;
        let wall = now / share;
        match clock.next {
            None => clock.next = Some(wall + delay),
            // Half a tick for what is lost in adding.
            Some(next) if wall + tick / 2.0 < next => {}
            Some(_) => {
                clock.next = Some(wall + clock.period);
                clock.stamp += YIELDS * tick;
                let range = cursor.scan(settings.window());
                let [least, most] = costs.mark.map(|mark| mark.as_secs_f64());
                let mark = least + random.unit() * (most - least).max(0.0);
                let cost = (range.end - range.start) as f64 * mark;
                // The kernel sees no more of its own time than whole ticks.
                clock.stamp += RESTS * (cost / tick).floor() * tick;
                spent += cost;
                scans.push(Scan { at: now - before, pages: range });
            }
        }
    }
    scans
}
