//! Pages of slower memory that are promoted because they are hot.
//!
//! ```text
//! pass:  windows are marked, and each page remembers when     next pass: period doubled after the first promotion
//! touch: sooner than `hot` after the mark -> promoted, up to the rate limit
//!        later, or beyond the limit       -> unmarked, until the next pass
//! ```
//!
//! A scan takes time for the pages that it passes over, too: those that are promoted, or marked still, and in the first two passes for
//! other mappings. The thread rests 32 times as long after it, so that they decide when the third pass comes.
//!
//! So it is where the fast node has no room to spare ([`room_to_spare`](crate::balancing)); where it has, every touch
//! promotes, as in [`forecast`](super::forecast).
//!
//! # Source
//! `should_numa_migrate_memory`, `numa_promotion_rate_limit`, `numa_promotion_adjust_threshold` and `update_task_scan_period` in
//! `kernel/sched/fair.c`, 6.1 to 6.18; `vma_is_accessed` and `task_numa_work` for mappings that are not used. Faults of slow memory are
//! not counted for the time between scans, so that what is promoted counts as far, and a pass without promotions changes nothing.

use std::time::Duration;

use nodewise_stats::random::Random;

use super::scan::{Found, Scans};
use super::touch::untouched;
use super::{Costs, Draws, PAGE, Pattern, Program, Settings, ShareLocal, Turns, bands};

/// From this pass on mappings that the thread does not use come last.
const SELECTIVE: u64 = 3;
/// Parts of a scan that are kept apart by when their pages were marked.
const PARTS: u64 = 8;
/// The time after which a counter has all of a CPU: `vm.stat_interval`, in seconds.
const FOLD: f64 = 1.0;
/// The longest time that is played at once where there is a limit and no second of it has begun: the next begins with a candidate.
const STEP: f64 = 1.0 / 16.0;
/// Pages that were marked within such a part of the threshold are played as if at once.
const TOGETHER: f64 = 1.0 / 256.0;
/// Up to this many pages are drawn one by one.
const ONE_BY_ONE: u64 = 64;

/// How the kernel decides which pages of slower memory are promoted, `kernel.numa_balancing` being 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// Pages that are touched sooner after they are marked are hot: the least, and the most that the kernel may have come to;
    /// each draw has one. It is `hot_threshold_ms` when promotion is switched on, and moves by an eighth of that each
    /// `scan_period_max_ms`, at most to twice as much where fewer pages are hot than may be promoted. Latencies are of wall time, in
    /// whole ticks.
    pub hot: [Duration; 2],
    /// Pages that may be promoted to a node in a second: `kernel.numa_balancing_promote_rate_limit_MBps`.
    pub pages_per_s: u64,
    /// Candidates that the counter of the fast node may lack: `vm stats threshold` of `/proc/zoneinfo`, the largest of its zones.
    pub lag: u64,
    /// `scan_period_max_ms`: the longest time in which all memory is scanned.
    pub period_max: Duration,
}

impl Promotion {
    /// Settings that the kernel starts with, at any time since it was booted.
    pub const KERNEL: Self = Self {
        hot: [Duration::from_millis(1000), Duration::from_millis(2000)],
        pages_per_s: 65536 << 8,
        lag: 125,
        period_max: Duration::from_secs(60),
    };
}

/// The share of the memory that is promoted at each of these times, over draws, of a program that touches any page as often as any
/// other; `None` for a sweep.
pub fn forecast_promotion(
    program: &Program,
    promotion: Promotion,
    settings: Settings,
    costs: Costs,
    times: &[Duration],
    draws: Draws,
) -> Option<Vec<ShareLocal>> {
    (program.pattern == Pattern::Uniform).then(|| {
        bands(times, draws, |times, random| play(program, promotion, settings, costs, times, random))
    })
}

/// Pages that were marked at about the same time and have not been touched since.
#[derive(Debug)]
struct Cohort {
    /// When, in seconds.
    since: f64,
    pages: u64,
}

/// Memory and its pages.
struct Memory {
    pages: u64,
    rate: f64,
    fault: f64,
    hot: f64,
    /// The part of a touch that is left over.
    left: f64,
    marked: Vec<Cohort>,
    promoted: u64,
}

/// The pages that may be promoted within a second, and the counter of candidates that decides it.
///
/// # Source
/// `mod_node_page_state` and `vmstat_update` in `mm/vmstat.c`.
struct Limit {
    pages_per_s: u64,
    /// From the end of this second on the next candidate begins another.
    end: f64,
    /// The counter at the begin of this second.
    begin: u64,
    counter: u64,
    /// Candidates that the counter lacks, fewer than `all`: as many are added at once.
    lacks: u64,
    all: u64,
    /// When what it lacks is added in any case.
    fold: f64,
}

impl Limit {
    fn start(promotion: Promotion, random: &mut Random) -> Self {
        let Promotion { pages_per_s, lag, .. } = promotion;
        let all = lag.saturating_add(1);
        Self { pages_per_s, end: 0.0, begin: 0, counter: 0, lacks: 0, all, fold: random.unit() * FOLD }
    }

    /// The time until which nothing changes but by candidates.
    fn until(&self, now: f64) -> f64 {
        let end = if self.end > now { self.end } else { now + STEP };
        if self.fold > now { end.min(self.fold) } else { end }
    }

    /// Takes of a number of candidates those that may be promoted, from a time on.
    fn take(&mut self, candidates: u64, now: f64, tick: f64) -> u64 {
        if now >= self.fold {
            self.counter += self.lacks;
            self.lacks = 0;
            self.fold = now + FOLD;
        }
        let is_first = candidates > 0 && now >= self.end;
        if is_first {
            // Times are whole ticks, and more than a second has to go by. The first candidate counts for the second before.
            self.end = now + 1.0 + tick;
            self.count(1);
            self.begin = self.counter;
        }
        let first = u64::from(is_first);
        let left = self.pages_per_s.saturating_sub(self.counter - self.begin);
        let pass = left.div_ceil(self.all).saturating_mul(self.all).saturating_sub(self.lacks + 1);
        self.count(candidates - first);
        first.min(self.pages_per_s) + (candidates - first).min(pass)
    }

    /// Counts candidates, whether they are promoted or not.
    fn count(&mut self, candidates: u64) {
        let lacks = self.lacks + candidates;
        self.lacks = lacks % self.all;
        self.counter += lacks - self.lacks;
    }
}

impl Memory {
    /// Far pages that are not marked.
    fn unmarked(&self) -> u64 {
        self.pages - self.promoted - self.marked()
    }

    /// Parts of the pages ahead that are marked already, and promoted: promoted ones are as likely there as elsewhere.
    fn found(&self, unmarked: u64, ahead: u64) -> Found {
        let (passed_over, ahead) = ((ahead - unmarked) as f64, ahead.max(1) as f64);
        let promoted = (self.promoted as f64 / self.pages as f64 * ahead).min(passed_over);
        Found { marked: (passed_over - promoted) / ahead, promoted: promoted / ahead }
    }

    fn marked(&self) -> u64 {
        self.marked.iter().map(|cohort| cohort.pages).sum()
    }

    /// Marks pages; those that are not hot any more are put together.
    fn mark(&mut self, since: f64, pages: u64, now: f64) {
        let hot = self.hot;
        let cold = self.marked.iter().take_while(|cohort| cohort.since + hot <= now).count();
        if cold > 1 {
            let pages = self.marked.drain(1..cold).map(|cohort| cohort.pages).sum::<u64>();
            self.marked[0].pages += pages;
        }
        match self.marked.last_mut().filter(|last| since - last.since < hot * TOGETHER) {
            Some(last) => last.pages += pages,
            None => self.marked.push(Cohort { since, pages }),
        }
    }

    /// Touches for a time; candidates for promotion among the pages that were touched.
    fn touch(&mut self, from: f64, to: f64, random: &mut Random) -> u64 {
        let mut marked = self.marked();
        // A fault takes its time from the touches; at most all marked pages have one.
        let most = (to - from) * self.rate + self.left;
        let slowed = most / (1.0 + self.fault * self.rate * marked as f64 / self.pages as f64);
        let touches = slowed as u64;
        self.left = slowed - touches as f64;
        if marked == 0 {
            return 0;
        }
        let mut touched = marked - untouched(marked, self.pages, touches, random);
        let mut candidates = 0;
        for cohort in &mut self.marked {
            let here = some_of(touched, cohort.pages, marked, random);
            marked -= cohort.pages;
            touched -= here;
            cohort.pages -= here;
            if from < cohort.since + self.hot {
                candidates += here;
            }
        }
        self.marked.retain(|cohort| cohort.pages > 0);
        candidates
    }
}

/// Draws how many of a number of pages are in a part of all (the hypergeometric distribution).
fn some_of(drawn: u64, part: u64, all: u64, random: &mut Random) -> u64 {
    if part >= all || drawn == 0 {
        return drawn.min(part);
    }
    if drawn <= ONE_BY_ONE {
        let (mut found, mut left) = (0, all);
        for _ in 0..drawn {
            found += u64::from(random.below(left) < part - found);
            left -= 1;
        }
        return found;
    }
    let (n, share) = (drawn as f64, part as f64 / all as f64);
    let variance = n * share * (1.0 - share) * (all - drawn) as f64 / (all - 1) as f64;
    let number = (n * share + variance.sqrt() * random.normal()).round().max(0.0) as u64;
    number.clamp(drawn.saturating_sub(all - part), part.min(drawn))
}

/// The CPU time within which a page is hot: the kernel compares wall time in whole ticks, and for part of it others have the CPU.
fn hot_time(threshold: f64, tick: f64, program: &Program, turns: Option<Turns>) -> f64 {
    let [every, takes] =
        turns.map_or([1.0, 0.0], |turns| [turns.every, turns.takes].map(|time| time.as_secs_f64()));
    let share = program.cpu_share.clamp(1e-6, 1.0) * every / (every + takes).max(1e-9);
    // A product of ticks is not one tick more.
    (threshold / tick - 1e-6).ceil() * tick * share
}

/// Shares at ascending times, in seconds of CPU time.
fn play(
    program: &Program,
    promotion: Promotion,
    settings: Settings,
    costs: Costs,
    times: &[f64],
    random: &mut Random,
) -> Vec<f64> {
    let pages = program.pages();
    if pages == 0 {
        return vec![1.0; times.len()];
    }
    let mut scans = Scans::start(program, settings, costs, random);
    let drawn = |[least, most]: [f64; 2], random: &mut Random| least + random.unit() * (most - least);
    let rate = drawn(
        program.touches_per_s.map(|rate| if rate.is_finite() { rate.clamp(0.0, 1e15) } else { 0.0 }),
        random,
    );
    let tick = costs.tick.as_secs_f64().max(1e-6);
    let hot = hot_time(drawn(promotion.hot.map(|hot| hot.as_secs_f64()), random), tick, program, costs.turns);
    let mut memory = Memory {
        pages,
        rate,
        fault: costs.fault.as_secs_f64(),
        hot,
        left: 0.0,
        marked: Vec::new(),
        promoted: 0,
    };
    let other_mappings = costs.passed_over.other_mappings.as_secs_f64();
    let room = program.room.map_or(pages, |room| room.get() / PAGE).min(pages);
    let mut limit = Limit::start(promotion, random);
    let is_limited = promotion.pages_per_s < pages;
    let windows =
        program.resident.get().max(program.memory.get()).div_ceil(settings.size.get().max(1)).max(1);
    let slowest = promotion.period_max.as_secs_f64() / windows as f64;
    let (mut now, mut scanned, mut is_new_pass) = (0.0_f64, 0.0_f64, false);
    let [least, most] = program.unused_above;
    let unused = if most > least { least + random.below((most - least).saturating_add(1)) } else { least };
    // Mappings that this pass has left for last, and the number of passes over the memory.
    let (mut left, mut passes) = (0, 0);
    let mut shares = Vec::with_capacity(times.len());
    for time in times {
        while now < *time {
            let cold = memory.marked.iter().map(|cohort| cohort.since + hot).filter(|end| *end > now);
            let mut end = cold.fold(*time, f64::min);
            if is_limited {
                end = end.min(limit.until(now));
            }
            let scan = scans.clone().due(end);
            let end = scan.unwrap_or(end).max(now);
            let candidates = memory.touch(now, end, random);
            let promoted = limit.take(candidates, now, tick).min(room - memory.promoted);
            memory.promoted += promoted;
            if promoted > 0 && is_new_pass {
                is_new_pass = false;
                // The first of them in this time; what was due during a scan comes after it.
                let part = 1.0 - (random.unit().ln() / promoted as f64).exp();
                let first = (now + (end - now) * part).max(scanned).min(end);
                // Until then tries have found that the time has not come.
                if scans.due(first).is_none() {
                    scans.slow_down(first, slowest);
                }
            }
            now = end;
            // A period that has become longer puts the scan off.
            let Some(at) = scan.and_then(|_| scans.due(end)) else { continue };
            if left > 0 {
                scans.begin(at);
                left -= 1;
                is_new_pass = left == 0;
                continue;
            }
            // Those behind were marked in this pass, so that the others lie ahead: in the first pass all that is there.
            let ahead = scans.ahead();
            let unmarked = memory.unmarked().min(ahead);
            let others = if passes + 1 < SELECTIVE { other_mappings } else { 0.0 };
            let scan = scans.scan(at, memory.found(unmarked, ahead), others, random);
            scanned = at + scan.takes;
            let window = scan.pages.end - scan.pages.start;
            let found = some_of(unmarked, window, ahead, random);
            let parts = if scan.takes < tick { 1 } else { PARTS };
            for part in 0..parts {
                // Pages remember the tick. A scan begins with one.
                let since = at + (scan.takes * (part as f64 + 0.5) / parts as f64 / tick).floor() * tick;
                let count = found * (part + 1) / parts - found * part / parts;
                memory.mark(since, count, now);
            }
            if scans.is_over() {
                scans.begin_pass(program.below.get() / PAGE);
                passes += 1;
                left = if passes < SELECTIVE { 0 } else { unused };
                is_new_pass = left == 0;
            }
        }
        shares.push(memory.promoted as f64 / pages as f64);
    }
    shares
}
