//! Where the memory of processes is, within a budget.
//!
//! `numa_maps` walks the page tables: 84 ns for each small page, measured on Linux 6.18, so 21 ms for a GiB. A
//! sample has a purse of CPU time for it, and spends it where a look is expected to show most for its price.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeId};

use super::clock::thread_time;
use super::processes::{ProcessTable, Tracked};
use super::reading::Reading;
use super::refusal::DENIED;
use super::{Denied, Moment, PageMethod, PageSample, PageShare, Remedy};
use crate::mappings::{MOST_COST, walk_price};
use crate::parse::numa_maps::sums::Summing;
use crate::paths::{PROCESSES, numa_maps};
use crate::process::Pid;

/// The fact, in a missing one's line.
const FACT: &str = "memory of processes by node";
/// The price of a small process before it was read, measured on Linux 6.18; each resident page adds its part of [`walk_price`].
const FIRST: Duration = Duration::from_micros(36);
/// The price of a refusal, where it cannot be measured.
const REFUSED: Duration = Duration::from_micros(4);
/// Memory may be elsewhere after this time, also where none was allocated or freed.
const STALE: Duration = Duration::from_secs(60);
/// Processes that are compared exactly by what a look is worth; more than a purse pays for in a sample.
const BEST: usize = 256;

/// The search for the memory of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOptions {
    /// CPU time for it in a sample. One process may cost more than is left: the next samples pay for it.
    pub budget: Duration,
    /// Processes that are looked at in each sample, whatever they cost.
    pub always: BTreeSet<Pid>,
    /// Processes with less resident memory are not looked at.
    pub least: Bytes,
    /// The dearest reading of all pages that is not replaced by drawing some, where a drawer is at hand.
    pub most_cost: Duration,
}

impl Default for PageOptions {
    /// 3 ms, the larger half of what a sample a second may cost.
    fn default() -> Self {
        Self {
            budget: Duration::from_millis(3),
            always: BTreeSet::new(),
            least: Bytes::new(0),
            most_cost: MOST_COST,
        }
    }
}

/// Draws pages of processes that are too large to be read exactly.
pub trait PageDrawer: fmt::Debug + Send {
    /// Draws pages and asks the kernel where each is; `None` of a process that has ended.
    ///
    /// # Errors
    /// Why the kernel does not say it.
    fn draw(&mut self, pid: Pid) -> Result<Option<DrawnPages>, Denied>;
}

/// The memory of a process, as drawn pages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnPages {
    /// [`PageMethod::Exact`] where no page could be drawn and all were read.
    pub method: PageMethod,
    pub nodes: BTreeMap<NodeId, PageShare>,
}

/// The purse.
#[derive(Debug, Default)]
pub(super) struct Purse {
    options: PageOptions,
    drawer: Option<Box<dyn PageDrawer>>,
    /// Spent beyond the budget of the samples before.
    debt: Duration,
}

/// The last look at a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    at: Moment,
    resident: Bytes,
    price: Duration,
    /// Whether pages were drawn, or none were found: the price says nothing then of reading them all.
    drawn: bool,
}

/// The result of a look.
enum Seen {
    Pages(PageSample),
    Denied(Denied),
    /// It has ended, or is becoming another program.
    Nothing,
}

impl Purse {
    pub(super) fn new(options: PageOptions) -> Self {
        Self { options, ..Self::default() }
    }

    pub(super) fn draw_with(&mut self, drawer: Box<dyn PageDrawer>) {
        self.drawer = Some(drawer);
    }

    pub(super) fn set_budget(&mut self, budget: Duration) {
        self.options.budget = budget;
    }

    pub(super) fn set_always(&mut self, always: BTreeSet<Pid>) {
        self.options.always = always;
    }

    /// Spends the purse of one sample. A process that costs more than is left is a debt, which the next samples
    /// pay back before they look at another one like it.
    pub(super) fn spend(&mut self, reading: &mut Reading<'_>, processes: &mut ProcessTable, page: Bytes) {
        // Half of each purse pays a large debt back, so that one dear process does not keep all others from being
        // seen for many samples.
        let budget = self.options.budget;
        let repaid = if self.debt <= budget { self.debt } else { budget / 2 };
        self.debt -= repaid;
        let mut left = budget - repaid;
        let always = self.options.always.clone();
        for pid in &always {
            if let Some(tracked) = processes.get_mut(*pid) {
                self.pay(&mut left, tracked, reading, page);
            }
        }
        // While there is a debt, nothing adds to it.
        let most = if self.debt.is_zero() { Duration::MAX } else { left };
        let mut worth: Vec<(f64, Pid)> = processes
            .iter()
            .filter(|(pid, tracked)| !always.contains(pid) && self.is_wanted(tracked))
            .filter(|(_, tracked)| most == Duration::MAX || self.expected_price(tracked, page) <= most)
            .filter_map(|(pid, tracked)| Some((self.worth(tracked, reading.now, page)?, pid)))
            .collect();
        let best = BEST.min(worth.len());
        if best < worth.len() && self.options.budget < Duration::from_secs(1) {
            worth.select_nth_unstable_by(best, |a, b| b.0.total_cmp(&a.0));
            worth.truncate(best);
        }
        worth.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        for (_, pid) in worth {
            if left.is_zero() {
                break;
            }
            let Some(tracked) = processes.get_mut(pid) else { continue };
            if self.debt.is_zero() || self.expected_price(tracked, page) <= left {
                self.pay(&mut left, tracked, reading, page);
            }
        }
        self.name_missing(processes, reading);
    }

    /// Whether a process is large enough to be looked at.
    fn is_wanted(&self, tracked: &Tracked) -> bool {
        self.options.least.get() == 0
            || tracked.last.resident.is_some_and(|resident| resident >= self.options.least)
    }

    /// Looks at a process and pays for it.
    fn pay(&mut self, left: &mut Duration, tracked: &mut Tracked, reading: &mut Reading<'_>, page: Bytes) {
        let price = self.look(tracked, reading, page);
        self.debt += price.saturating_sub(*left);
        *left = left.saturating_sub(price);
    }

    /// Looks at a process; returns what it cost.
    fn look(&mut self, tracked: &mut Tracked, reading: &mut Reading<'_>, page: Bytes) -> Duration {
        let Some(resident) = tracked.last.resident else { return Duration::ZERO };
        let expected = exact_price(tracked, page);
        let drawer = self.drawer.as_mut().filter(|_| expected > self.options.most_cost);
        let has_drawer = drawer.is_some();
        let begun = thread_time();
        let pid = tracked.last.identity.pid;
        let seen = match drawer {
            Some(drawer) => match drawer.draw(pid) {
                Ok(Some(DrawnPages { method, nodes })) => {
                    Seen::Pages(PageSample { seen: reading.now, method, nodes })
                }
                Ok(None) => Seen::Nothing,
                Err(denied) => Seen::Denied(denied),
            },
            None => exact(reading, pid),
        };
        let price = if has_drawer || reading.tree.is_live() {
            thread_time().saturating_sub(begun)
        } else {
            // The files of a capture have no price of their own.
            if matches!(seen, Seen::Denied(_)) { REFUSED } else { expected }
        };
        let drawn = match &seen {
            Seen::Pages(pages) => has_drawer && pages.method != PageMethod::Exact,
            Seen::Denied(_) => has_drawer,
            Seen::Nothing => true,
        };
        let last = tracked.last_mut();
        match seen {
            Seen::Pages(pages) => (last.pages, last.denied) = (Some(pages), None),
            Seen::Denied(denied) => (last.pages, last.denied) = (None, Some(denied)),
            Seen::Nothing => {}
        }
        tracked.look = Some(Look { at: reading.now, resident, price, drawn });
        price
    }

    /// The expected price of the next look, which draws pages again where the last one did and reading them all is
    /// still dear.
    fn expected_price(&self, tracked: &Tracked, page: Bytes) -> Duration {
        let exact = exact_price(tracked, page);
        match &tracked.look {
            Some(look) if look.drawn && exact > self.options.most_cost => look.price,
            _ => exact,
        }
    }

    /// The expected change in bytes that a look would show, per second of its price; `None` for a process without
    /// memory.
    fn worth(&self, tracked: &Tracked, now: Moment, page: Bytes) -> Option<f64> {
        let resident = tracked.last.resident.filter(|resident| resident.get() > 0)?.get();
        let age = |look: &Look| now.since(look.at).unwrap_or(STALE).as_secs_f64() / STALE.as_secs_f64();
        let change = match &tracked.look {
            // A refusal is repeated after a while only: the process may have become another program.
            Some(look) if tracked.last.denied.is_some() && age(look) < 1.0 => return None,
            Some(look) => resident.abs_diff(look.resident.get()) as f64 + resident as f64 * age(look),
            // One that was never seen is worth more than any that was.
            None => resident as f64 * 60.0,
        };
        (change > 0.0).then(|| change / self.expected_price(tracked, page).as_secs_f64().max(1e-6))
    }

    /// Says why the memory of processes is not known.
    fn name_missing(&self, processes: &ProcessTable, reading: &mut Reading<'_>) {
        let (mut rights, mut no_file, mut unreadable, mut unseen) = (0, 0, 0, 0);
        for (_, tracked) in processes.iter().filter(|(_, tracked)| self.is_wanted(tracked)) {
            match tracked.last.denied {
                Some(Denied::Rights) => rights += 1,
                Some(Denied::NoFile) => no_file += 1,
                Some(Denied::Unreadable) => unreadable += 1,
                None => {
                    let has_memory = tracked.last.resident.is_some_and(|size| size.get() > 0);
                    unseen += usize::from(has_memory && tracked.last.pages.is_none());
                }
            }
        }
        let mut add = |reason, remedy, objects| reading.missing.add_all(FACT, reason, remedy, objects);
        add(DENIED, Some(Remedy::Root), rights);
        add("this kernel was built without NUMA", None, no_file);
        add("numa_maps cannot be read", None, unreadable);
        add("not looked at yet", None, unseen);
    }
}

/// The expected price of reading where every page is: as the last time, where every page was read then, and for
/// the pages that came since.
fn exact_price(tracked: &Tracked, page: Bytes) -> Duration {
    let resident = tracked.last.resident.unwrap_or_default().get();
    let pages = |bytes: u64| walk_price(Bytes::new(bytes), page);
    match tracked.look.as_ref().filter(|look| !look.drawn) {
        Some(look) => look.price + pages(resident.saturating_sub(look.resident.get())),
        None => FIRST + pages(resident),
    }
}

/// Reads where every page is.
fn exact(reading: &Reading<'_>, pid: Pid) -> Seen {
    let mut summing = Summing::default();
    match reading.tree.read_chunks(&numa_maps(pid), &mut |chunk| summing.push(chunk)) {
        Ok(true) => (),
        Ok(false) if reading.tree.exists(&format!("{PROCESSES}/{pid}/stat")) => {
            return Seen::Denied(Denied::NoFile);
        }
        Ok(false) => return Seen::Nothing,
        Err(error) if error.cause.is_permission() => return Seen::Denied(Denied::Rights),
        Err(_) => return Seen::Denied(Denied::Unreadable),
    }
    let parsed = summing.finish();
    // A part of the pages is not their sum.
    if !parsed.problems.is_empty() || parsed.value.pages_of_unknown_size > 0 {
        return Seen::Denied(Denied::Unreadable);
    }
    if parsed.value.nodes.is_empty() {
        return Seen::Nothing;
    }
    let share = |size: Bytes, own| PageShare { size, low: size, high: size, own: Some(own) };
    let nodes = parsed.value.nodes.iter().map(|on| (on.node, share(on.total(), on.own()))).collect_map();
    Seen::Pages(PageSample { seen: reading.now, method: PageMethod::Exact, nodes })
}
