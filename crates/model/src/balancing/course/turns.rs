//! Other threads that have the program's CPU during a scan: how much of the scan the kernel has accounted for when it ends.
//!
//! ```text
//! ticks     |     |     |     |         scan: =, lost: x, another thread: o
//! alone     |=====|=====|===            two ticks
//! before    |oo===|=====|=====|=        three ticks less the other's turn
//! meanwhile |=====|xxoo=|===            a tick, and what follows the turn up to the next
//! ```
//!
//! # Source
//! `task_numa_work`, `update_curr` and `wakeup_preempt` in `kernel/sched`, `change_pmd_range` in `mm/mprotect.c`; traced in guests of
//! 6.12 and 6.18.

use std::time::Duration;

use nodewise_stats::random::Random;

/// Turns that other threads have on the program's CPU, such as those of the kernel whose timers expire at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// CPU time of the program between two of them, on average.
    pub every: Duration,
    pub takes: Duration,
    pub preemption: Preemption,
}

/// When a thread that wakes gets the CPU: between two page tables, for the lock of one keeps others away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// As soon as it can be (`voluntary`, `full`). The kernel does not read its clock again when the threads change, and counts the
    /// time since the last tick for the other one.
    Soon,
    /// After the next tick, if the scan still runs then (`lazy`, Linux 6.13).
    Lazy,
}

/// A scan, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// CPU time of it that the kernel has accounted for at its end.
    pub accounted: f64,
    /// CPU time that the kernel has accounted to another thread.
    pub lost: f64,
    /// Time in which others had the CPU.
    pub away: f64,
}

impl Seen {
    /// Of a scan that has the CPU to itself: whole ticks.
    pub(super) fn alone(takes: f64, tick: f64) -> Self {
        Self { accounted: (takes / tick).floor() * tick, ..Self::default() }
    }
}

/// Draws what is seen of a scan that takes so long, from a tick on. `table_end` says when it comes to the end of the page table at
/// which it is after a time of work.
pub(super) fn draw(
    turns: Turns,
    takes: f64,
    tick: f64,
    table_end: impl Fn(f64) -> f64,
    random: &mut Random,
) -> Seen {
    let chance = -(-tick / turns.every.as_secs_f64().max(1e-9)).exp_m1();
    let turn = turns.takes.as_secs_f64();
    let mut seen = Seen { away: if random.unit() < chance { turn } else { 0.0 }, ..Seen::default() };
    // Accounted for until here, and the time at which the next turn begins: time since the tick.
    let (mut since, mut switch) = (seen.away, f64::INFINITY);
    for number in 1_u64.. {
        let now = number as f64 * tick;
        if switch <= now {
            match turns.preemption {
                Preemption::Soon => seen.lost += switch - since,
                Preemption::Lazy => seen.accounted += switch - since,
            }
            since = switch + turn;
            seen.away += turn;
            switch = f64::INFINITY;
        }
        if now >= takes + seen.away {
            break;
        }
        if now < since {
            continue;
        }
        seen.accounted += now - since;
        since = now;
        if switch.is_infinite() && random.unit() < chance {
            let end = takes + seen.away;
            let from = if turns.preemption == Preemption::Lazy { now + tick } else { now };
            if from < end {
                switch = table_end(from - seen.away).min(takes) + seen.away;
            }
        }
    }
    seen
}
