//! Passes over a program's memory: when each window is marked.

use std::ops::Range;

use nodewise_stats::random::Random;

use super::turns::{self, Seen, Turns};
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
    /// How much CPU time it takes, in seconds.
    pub takes: f64,
    /// Pages, the first of the memory being 0.
    pub pages: Range<u64>,
}

/// Pages that a scan finds and does not mark, as parts of its window; it marks the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub marked: f64,
    pub promoted: f64,
}

impl Found {
    /// As in a first pass.
    pub(super) const UNMARKED: Self = Self { marked: 0.0, promoted: 0.0 };
}

/// The kernel's clock of a thread's scans. Times are seconds of the thread's CPU time.
#[derive(Clone, Debug)]
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
#[derive(Clone, Debug)]
struct Cursor {
    /// Pages below that are not scanned yet.
    below: u64,
    /// The page number at which the memory begins, and the next page of it that is scanned.
    first: u64,
    next: u64,
    pages: u64,
}

impl Cursor {
    /// Whether the pass has come to the end of the memory.
    fn is_over(&self) -> bool {
        self.next >= self.pages
    }

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

/// The scans of a program, from the start of its thread. All times but those of the clock are seconds of CPU time since it began to
/// use the memory.
#[derive(Clone, Debug)]
pub(super) struct Scans {
    clock: Clock,
    cursor: Cursor,
    tick: f64,
    /// A tick comes at this CPU time, and at multiples of a tick after it.
    phase: f64,
    /// The part of the time that the thread has a CPU.
    share: f64,
    delay: f64,
    window: u64,
    /// The time between two scans of a process that was forked, once the first has been tried.
    first_period: f64,
    mark: [f64; 2],
    /// Time for a page that is marked already, and for a promoted one.
    passed_over: [f64; 2],
    turns: Option<Turns>,
    /// CPU time before the memory was used, and until now.
    before: f64,
    spent: f64,
}

impl Scans {
    pub(super) fn start(program: &Program, settings: Settings, costs: Costs, random: &mut Random) -> Self {
        let tick = costs.tick.as_secs_f64().max(1e-6);
        let delay = settings.delay.as_secs_f64();
        // The thread starts between two ticks.
        let phase = random.unit() * tick;
        let drawn = random.below(ALIGNED);
        let (pages, below) = (program.pages(), program.below.get() / PAGE);
        let resident = pages.saturating_add(below).max(program.resident.get() / PAGE);
        let first = program.first_page.unwrap_or(drawn) % ALIGNED;
        let before = program.before.as_secs_f64();
        Self {
            clock: match program.thread {
                Thread::Forked => Clock { stamp: 0.0, period: delay, next: None },
                Thread::Spawned => Clock { stamp: YIELDS * tick, period: delay, next: None },
                // Times in jiffies are those of the tick before.
                Thread::Started => {
                    Clock { stamp: YIELDS * tick, period: delay, next: Some(delay + phase - tick) }
                }
            },
            cursor: Cursor { below, first, next: 0, pages },
            tick,
            phase,
            share: program.cpu_share.clamp(1e-6, 1.0),
            delay,
            window: settings.window(),
            first_period: settings.first_period(resident).as_secs_f64(),
            mark: costs.mark.map(|mark| mark.as_secs_f64()),
            passed_over: [costs.passed_over.marked, costs.passed_over.promoted]
                .map(|page| page.as_secs_f64()),
            turns: costs.turns,
            before,
            spent: before,
        }
    }

    /// Whether all memory has been marked since the pass began.
    pub(super) fn is_over(&self) -> bool {
        self.cursor.is_over()
    }

    /// Pages of the memory that this pass has not come to.
    pub(super) fn ahead(&self) -> u64 {
        self.cursor.pages.saturating_sub(self.cursor.next)
    }

    /// Begins a pass: `below` is what is scanned before the memory.
    pub(super) fn begin_pass(&mut self, below: u64) {
        self.cursor.below = below;
        self.cursor.next = 0;
    }

    /// When the next scan begins, if that is before a time and in this pass.
    pub(super) fn due(&mut self, end: f64) -> Option<f64> {
        let tick = self.tick;
        while !self.cursor.is_over() {
            // The first tick at which more CPU time than a period has gone by.
            let due = (self.clock.stamp + self.clock.period).max(self.spent);
            let now = (((due - self.phase) / tick).floor() + 1.0).max(0.0) * tick + self.phase;
            // A tick whose time was rounded down would come again, and without end where the period is 0.
            let now = if now > due { now } else { now + tick };
            // The same difference is returned: a scan that was found is found again at its own time.
            if now - self.before > end {
                break;
            }
            let wall = now / self.share;
            match self.clock.next {
                // Half a tick for what is lost in adding.
                Some(next) if wall + tick / 2.0 >= next => return Some(now - self.before),
                Some(_) => {}
                None => self.clock.next = Some(wall + self.delay),
            }
            self.try_at(now);
        }
        None
    }

    /// A tick at which the time for a scan may have come.
    fn try_at(&mut self, now: f64) {
        self.spent = now;
        let period = self.clock.period;
        if self.clock.stamp == 0.0 {
            self.clock.period = self.first_period;
        }
        self.clock.stamp += period;
    }

    /// Begins the scan that is due at a time: one of a mapping that the thread does not use takes no time that counts.
    pub(super) fn begin(&mut self, at: f64) {
        let now = at + self.before;
        self.try_at(now);
        let clock = &mut self.clock;
        clock.next = Some(now / self.share + clock.period);
        clock.stamp += YIELDS * self.tick;
    }

    /// The scan that is due at a time. The last of a pass also takes time for `other_mappings`.
    pub(super) fn scan(&mut self, at: f64, found: Found, other_mappings: f64, random: &mut Random) -> Scan {
        let tick = self.tick;
        self.begin(at);
        let range = self.cursor.scan(self.window);
        let [least, most] = self.mark;
        let mark = least + random.unit() * (most - least).max(0.0);
        let [marked, promoted] = self.passed_over;
        let unmarked = (1.0 - found.marked - found.promoted).max(0.0);
        let page = unmarked * mark + found.marked * marked + found.promoted * promoted;
        let others = if self.cursor.is_over() { other_mappings } else { 0.0 };
        let work = (range.end - range.start) as f64 * page + others;
        let table_end = |work: f64| {
            let start = self.cursor.first + range.start;
            let here = start + (work / page) as u64;
            ((here / ALIGNED + 1) * ALIGNED - start) as f64 * page
        };
        let seen = match self.turns.filter(|_| page > 0.0) {
            Some(turns) => turns::draw(turns, work, tick, table_end, random),
            None => Seen::alone(work, tick),
        };
        self.clock.stamp += RESTS * seen.accounted;
        let takes = work - seen.lost;
        self.spent += takes;
        // Ticks go on while the thread has no CPU, or its time counts for another.
        self.phase = (self.phase - seen.away - seen.lost).rem_euclid(tick);
        Scan { at, takes, pages: range }
    }

    /// Doubles the time between scans, up to a most, and puts the next one off by it: after a pass in which no page was used by
    /// others or was local (`update_task_scan_period`).
    pub(super) fn slow_down(&mut self, at: f64, most: f64) {
        let tick = ((at + self.before - self.phase) / self.tick).floor() * self.tick + self.phase;
        self.clock.period = (self.clock.period * 2.0).min(most.max(self.clock.period));
        self.clock.next = Some(tick / self.share + self.clock.period);
    }
}
