//! Windows on the running system, as the controller sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nodewise_diagnose::balance::{Controller, Never, Observation, Plan, ProcessFacts};
use nodewise_diagnose::{Pid, Situation};
use nodewise_machine::Machine;
use nodewise_source::Detail;
use nodewise_source::mappings::{SMALLEST_PAGE, walk_price};
use nodewise_source::process::{claims, status};
use nodewise_source::sample::{
    Allowed, BandwidthScope, Identity, InterruptScope, Moment, PageOptions, ProcessScope, Sample,
    SampleOptions, Sampler, ThreadScope,
};
use nodewise_source::spare::{has_swap, limit_used};
use nodewise_source::tree::Tree;

use crate::command::doctor::mappings;
use crate::command::stat::{ONCE, WARM_UP, page_budget};
use crate::failure::Failure;
use crate::live_pages::LiveDrawer;
use crate::{input, measuring};

/// The share of a window that may go to finding the memory of processes.
const SHARE: f64 = 0.004;
/// The machine is read again after this number of windows: settings change, memory and CPUs come and go.
const READ_AGAIN: u32 = 20;

/// The share of a window that reading one process in full may take.
const FULL_SHARE: f64 = 0.02;

/// A window.
pub(super) enum Window {
    Seen(Plan),
    /// It was not to be seen, for this reason.
    Skipped(String),
    /// The user has ended it.
    Ended,
}

/// The running system, window after window.
pub(super) struct Watcher {
    tree: Tree,
    machine: Machine,
    sampler: Sampler,
    before: Sample,
    /// The process whose mappings are read in full in the next window, because the last had none of them.
    wanted: BTreeSet<Pid>,
    /// Processes that were read in full, and in which window.
    asked: BTreeMap<Identity, u32>,
    everyone: Allowed,
    windows: u32,
}

impl Watcher {
    /// Begins to watch.
    pub(super) fn begin(window: Duration, interrupt: &AtomicBool) -> Result<Self, Failure> {
        let machine = input::load("live", Detail::Full)?.machine;
        if machine.nodes.len() < 2 {
            return Err(Failure::cannot("this machine has one node: every process is beside its memory"));
        }
        let tree = Tree::live();
        let options = SampleOptions {
            processes: ProcessScope::All,
            threads: ThreadScope::Busy(BTreeSet::new()),
            groups: true,
            pages: Some(PageOptions { budget: ONCE, always: BTreeSet::new() }),
            interrupts: InterruptScope::None,
            bandwidth: BandwidthScope::None,
            controllers: BandwidthScope::None,
        };
        let drawer = Box::new(LiveDrawer::new(measuring::seed(None)));
        let mut sampler = Sampler::new(Tree::live(), options).drawing(drawer);
        // A first reading finds busy processes, whose threads are then read from the beginning, and the memory of all.
        sampler.sample(Moment::now());
        sampler.set_page_budget(page_budget(window, SHARE));
        measuring::wait(Instant::now() + WARM_UP, interrupt, || false);
        let before = sampler.sample(Moment::now());
        let everyone = first(&tree)?;
        Ok(Self {
            tree,
            machine,
            sampler,
            before,
            wanted: BTreeSet::new(),
            asked: BTreeMap::new(),
            everyone,
            windows: 0,
        })
    }

    /// The machine.
    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The moment of the last sample, and how long programs had waited for memory until then; `None` where the kernel does
    /// not count that.
    pub(super) fn stalled(&self) -> Option<(Duration, Duration)> {
        let some = self.before.pressure.memory.as_ref()?.some?;
        Some((self.before.moment.since_boot, Duration::from_micros(some.total_us)))
    }

    /// CPUs and nodes that processes have by default.
    pub(super) fn everyone(&self) -> &Allowed {
        &self.everyone
    }

    /// Waits for the end of a window, and shows it to the controller.
    pub(super) fn window(
        &mut self,
        length: Duration,
        controller: &mut Controller,
        interrupt: &AtomicBool,
    ) -> Result<Window, Failure> {
        let end = Instant::now().checked_add(length).ok_or_else(|| Failure::usage("--window is too long"))?;
        measuring::wait(end, interrupt, || false);
        if interrupt.load(Ordering::Relaxed) {
            return Ok(Window::Ended);
        }
        self.windows += 1;
        if self.windows % READ_AGAIN == 0 {
            // Memory or CPUs may come or go just now.
            match input::load("live", Detail::Full) {
                Ok(loaded) => self.machine = loaded.machine,
                Err(failure) => return Ok(Window::Skipped(failure.message)),
            }
            match first(&self.tree) {
                Ok(everyone) => self.everyone = everyone,
                Err(failure) => return Ok(Window::Skipped(failure.message)),
            }
        }
        let mut now = self.sampler.sample(Moment::now());
        mappings::add(&self.machine, &mut now, Some(&self.wanted), interrupt);
        let situation = match Situation::new(&self.machine, Some(&self.before), &now) {
            Ok(situation) => situation,
            Err(error) => return Ok(Window::Skipped(error.to_string())),
        };
        let least = controller.limits().least_size;
        let facts: BTreeMap<Identity, ProcessFacts> = situation
            .processes
            .iter()
            .filter(|process| process.size() >= least)
            .map(|process| (process.process.identity, facts(&self.tree, process.process.identity.pid)))
            .collect();
        let plan = controller.observe(&Observation {
            now: now.moment.since_boot,
            situation: &situation,
            facts: &facts,
            everyone: &self.everyone,
            has_swap: has_swap(&self.tree) == Some(true),
            own: Pid::new(std::process::id()),
        });
        // One at a time, in turn: reading it walks all of its pages.
        let unknown = plan.left_alone.iter().filter(|process| {
            process.why == Never::PolicyUnknown
                && walk_price(process.size, SMALLEST_PAGE) <= length.mul_f64(FULL_SHARE)
        });
        let next = unknown.map(|process| process.process.identity);
        let next = next.min_by_key(|identity| self.asked.get(identity).copied().unwrap_or(0));
        self.asked.extend(next.map(|identity| (identity, self.windows)));
        self.asked.retain(|identity, _| now.process(*identity).is_some());
        self.wanted = next.map(|identity| identity.pid).into_iter().collect();
        self.before = now;
        Ok(Window::Seen(plan))
    }
}

/// CPUs and nodes of the first process, which has what the system gives to all.
fn first(tree: &Tree) -> Result<Allowed, Failure> {
    let first = status(tree, Pid::new(1)).map_err(Failure::cannot)?.map(|parsed| parsed.value);
    let first = first.ok_or_else(|| {
        Failure::cannot(
            "process 1 cannot be examined: it shows the CPUs and nodes that processes have by default",
        )
    })?;
    Ok(Allowed { cpus: first.cpus_allowed, nodes: first.mems_allowed })
}

/// Facts of a process that samples do not hold.
pub(super) fn facts(tree: &Tree, pid: Pid) -> ProcessFacts {
    let claims = claims::claims(tree, pid);
    ProcessFacts {
        realtime: claims.realtime,
        locked: claims.locked,
        pinned: claims.pinned,
        traced: claims.traced,
        limit_used: limit_used(tree, pid),
        threads: claims.cpus,
        policies: claims.policies,
    }
}
