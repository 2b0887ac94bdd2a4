//! The program at work: which marked pages it touches, and so moves.

use std::ops::Range;

use nodewise_stats::random::Random;

use super::{Costs, Pattern, Program};

/// Up to this many touches are drawn one by one.
const ONE_BY_ONE: u64 = 512;
/// From this variance on a count is drawn from the normal distribution.
const NORMAL: f64 = 25.0;

/// A program that touches its pages.
pub(super) struct Touching {
    pages: u64,
    /// Touches in a second without faults.
    rate: f64,
    /// Seconds for a fault.
    fault: f64,
    /// CPU time until now, in seconds.
    now: f64,
    moved: u64,
    order: Order,
}

enum Order {
    /// Marked pages, and the part of a touch that is left over.
    Uniform { marked: u64, left: f64 },
    /// The page that is touched next, and marked pages in ascending order.
    Sweep { next: f64, marked: Vec<Range<f64>> },
}

impl Touching {
    pub(super) fn start(program: &Program, costs: Costs, random: &mut Random) -> Self {
        let pages = program.pages();
        let order = match (program.pattern, program.sweep_from) {
            (Pattern::Uniform, _) => Order::Uniform { marked: 0, left: 0.0 },
            (Pattern::Sweep, from) => {
                let next = from.map_or_else(|| random.unit() * pages as f64, |from| (from % pages) as f64);
                Order::Sweep { next, marked: Vec::new() }
            }
        };
        let [least, most] =
            program.touches_per_s.map(|rate| if rate.is_finite() { rate.max(0.0) } else { 0.0 });
        let rate = least + random.unit() * (most - least);
        Self { pages, rate, fault: costs.fault.as_secs_f64(), now: 0.0, moved: 0, order }
    }

    /// Pages that have been moved.
    pub(super) fn moved(&self) -> u64 {
        match &self.order {
            Order::Uniform { .. } => self.moved,
            Order::Sweep { marked, .. } => {
                let left: f64 = marked.iter().map(|range| range.end - range.start).sum();
                self.moved.saturating_sub(left.round() as u64)
            }
        }
    }

    /// Pages that have been marked: all of them are still far.
    pub(super) fn mark(&mut self, pages: Range<u64>) {
        let count = pages.end - pages.start;
        match &mut self.order {
            Order::Uniform { marked, .. } => *marked += count,
            Order::Sweep { marked, .. } => {
                // Counted as moved until then, less those that are left.
                self.moved += count;
                if count > 0 {
                    marked.push(pages.start as f64..pages.end as f64);
                }
            }
        }
    }

    /// Works until a time.
    pub(super) fn until(&mut self, time: f64, random: &mut Random) {
        let spent = (time - self.now).max(0.0);
        self.now = self.now.max(time);
        match &mut self.order {
            Order::Uniform { marked, left } => {
                let (touches, rest) = touches(spent, self.rate, self.fault, *marked, self.pages, *left);
                *left = rest;
                let untouched = untouched(*marked, self.pages, touches, random);
                self.moved += *marked - untouched;
                *marked = untouched;
            }
            Order::Sweep { next, marked } => {
                *next = sweep(*next, marked, self.pages as f64, spent, self.rate, self.fault);
            }
        }
    }
}

/// The number of touches in a time, with what is left over of one: each takes its time, and longer where it moves a page.
fn touches(spent: f64, rate: f64, fault: f64, marked: u64, pages: u64, left: f64) -> (u64, f64) {
    let most = spent * rate + left;
    let mut count = most;
    if fault > 0.0 && rate > 0.0 && marked > 0 {
        let time = |count: f64| count / rate + fault * marked as f64 * (1.0 - kept(pages, count));
        let (mut low, mut high) = (0.0, most);
        for _ in 0..50 {
            count = f64::midpoint(low, high);
            if time(count) > spent { high = count } else { low = count }
        }
    }
    (count as u64, count.fract())
}

/// The part of pages that a number of touches of any page leaves untouched.
fn kept(pages: u64, touches: f64) -> f64 {
    (touches * (-1.0 / pages as f64).ln_1p()).exp()
}

/// Draws how many marked pages are untouched after a number of touches of any of all pages.
///
/// # Source
/// The occupancy problem: the mean and variance of the number of empty urns (Feller, "An Introduction to Probability
/// Theory", volume 1, IV.2).
pub(super) fn untouched(marked: u64, pages: u64, touches: u64, random: &mut Random) -> u64 {
    if touches <= ONE_BY_ONE {
        return (0..touches).fold(marked, |left, _| left - u64::from(random.below(pages) < left));
    }
    if pages == 1 {
        return 0;
    }
    let (count, times) = (marked as f64, touches as f64);
    let one = kept(pages, times);
    let both = (times * (-2.0 / pages as f64).ln_1p()).exp();
    let mean = count * one;
    let variance = count * (count - 1.0) * (both - one * one) + mean * (1.0 - one);
    if variance >= NORMAL {
        let drawn = mean + variance.sqrt() * random.normal();
        return (drawn.round().max(0.0) as u64).min(marked);
    }
    // Few are left, or few are touched, one independently of the others.
    if one <= 0.5 { some(marked, one, random) } else { marked - some(marked, 1.0 - one, random) }
}

/// Draws how many of a count have something of a small probability, by the gaps between them.
fn some(count: u64, probability: f64, random: &mut Random) -> u64 {
    let log = (-probability).ln_1p();
    if log >= 0.0 {
        return 0;
    }
    let (mut at, mut found) = (0.0, 0);
    loop {
        at += ((1.0 - random.unit()).ln() / log).floor() + 1.0;
        if at > count as f64 {
            return found;
        }
        found += 1;
    }
}

/// Sweeps over pages for a time from a place on, and takes marked ones out; the next place.
fn sweep(from: f64, marked: &mut Vec<Range<f64>>, pages: f64, spent: f64, rate: f64, fault: f64) -> f64 {
    if rate <= 0.0 {
        return from;
    }
    let (plain, slow) = (1.0 / rate, 1.0 / rate + fault);
    let (mut at, mut left) = (from, spent);
    while left > 0.0 {
        let ahead = marked.iter().position(|range| range.end > at);
        let Some(found) = ahead else {
            if marked.is_empty() {
                return (at + left / plain) % pages;
            }
            // Nothing more up to the end: round again.
            let time = (pages - at) * plain;
            if time > left {
                return at + left / plain;
            }
            left -= time;
            at = 0.0;
            continue;
        };
        let range = marked[found].clone();
        let gap = (range.start - at).max(0.0);
        if gap * plain >= left {
            return at + left / plain;
        }
        left -= gap * plain;
        at += gap;
        let reached = (at + left / slow).min(range.end);
        left -= (reached - at) * slow;
        let rest = [range.start..at, reached..range.end];
        marked.splice(found..=found, rest.into_iter().filter(|part| part.end > part.start));
        at = reached;
        if reached < range.end {
            return at;
        }
    }
    at
}
