//! Windows on the running system, as the controller sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nodewise_diagnose::balance::{Controller, Never, Observation, Plan, ProcessFacts};
use nodewise_diagnose::{Pid, Situation};
use nodewise_machine::Machine;
use nodewise_source::Detail;
use nodewise_source::process::{claims, status};
use nodewise_source::sample::{
    Allowed, BandwidthScope, Identity, Moment, PageOptions, ProcessScope, Sample, SampleOptions, Sampler,
    ThreadScope,
};
use nodewise_source::spare::limit_used;
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

/// The running system, window after window.
pub(super) struct Watcher {
    tree: Tree,
    machine: Machine,
    sampler: Sampler,
    before: Sample,
    /// Processes whose mappings come first, because the last window had none of them.
    wanted: BTreeSet<Pid>,
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
            interrupts: false,
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
        // The first process has what the system gives to all.
        let first = status(&tree, Pid::new(1)).map_err(Failure::cannot)?.map(|parsed| parsed.value);
        let first = first.ok_or_else(|| {
            Failure::cannot(
                "process 1 cannot be examined: it shows the CPUs and nodes that processes have by default",
            )
        })?;
        let everyone = Allowed { cpus: first.cpus_allowed, nodes: first.mems_allowed };
        Ok(Self { tree, machine, sampler, before, wanted: BTreeSet::new(), everyone, windows: 0 })
    }

    /// The machine.
    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// CPUs and nodes that processes have by default.
    pub(super) fn everyone(&self) -> &Allowed {
        &self.everyone
    }

    /// Waits for the end of a window, and shows it to the controller; `None` where the user has ended it.
    pub(super) fn window(
        &mut self,
        length: Duration,
        controller: &mut Controller,
        interrupt: &AtomicBool,
    ) -> Result<Option<Plan>, Failure> {
        let end = Instant::now().checked_add(length).ok_or_else(|| Failure::usage("--window is too long"))?;
        measuring::wait(end, interrupt, || false);
        if interrupt.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.windows += 1;
        if self.windows % READ_AGAIN == 0 {
            self.machine = input::load("live", Detail::Full)?.machine;
        }
        let mut now = self.sampler.sample(Moment::now());
        mappings::add(&self.machine, &mut now, Some(&self.wanted), interrupt);
        let situation = Situation::new(&self.machine, Some(&self.before), &now).map_err(Failure::cannot)?;
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
            own: Pid::new(std::process::id()),
        });
        let unknown = plan.left_alone.iter().filter(|process| process.why == Never::PolicyUnknown);
        self.wanted = unknown.map(|process| process.process.identity.pid).collect();
        self.before = now;
        Ok(Some(plan))
    }
}

/// Facts of a process that samples do not hold.
fn facts(tree: &Tree, pid: Pid) -> ProcessFacts {
    let claims = claims::claims(tree, pid);
    ProcessFacts {
        realtime: claims.realtime,
        locked: claims.locked,
        pinned: claims.pinned,
        traced: claims.traced,
        limit_used: limit_used(tree, pid),
        threads: claims.cpus,
    }
}
