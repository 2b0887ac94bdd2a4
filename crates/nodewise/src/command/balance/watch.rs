//! Windows on the running system, as the controller sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nodewise_diagnose::attribution::Places;
use nodewise_diagnose::balance::{Action, Awaited, Controller, Observation, Plan, ProcessFacts};
use nodewise_diagnose::{Pid, Situation};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, Machine, NodeId};
use nodewise_source::Detail;
use nodewise_source::mappings::{SMALLEST_PAGE, walk_price};
use nodewise_source::process::{claims, status};
use nodewise_source::sample::{
    Allowed, BandwidthScope, Identity, InterruptScope, Moment, PageOptions, ProcessScope, Sample,
    SampleOptions, Sampler, ThreadScope,
};
use nodewise_source::spare::{has_swap, limit_used};
use nodewise_source::tree::Tree;

use super::steps::{STEPS, Steps};
use crate::command::stat::{ONCE, WARM_UP, page_budget};
use crate::failure::Failure;
use crate::live_pages::LiveDrawer;
use crate::{input, measuring};

/// The share of a window that may go to finding the memory of processes.
const SHARE: f64 = 0.01;
/// The dearest process whose pages are all looked at to find out where they are: 48 MiB of small ones. Of others a thousand
/// are drawn, whatever their size.
const ALL_PAGES: Duration = Duration::from_millis(1);
/// Processes in need, or judged soon, whose pages are looked at in each window.
const MOST_IN_NEED: usize = 16;
/// The machine is read again after this number of windows: settings change, memory and CPUs come and go.
const READ_AGAIN: u32 = 20;

/// The share of a window that reading the policies of processes that await an action may take where they forbid it, and
/// where they do not: that costs a twentieth of moving their pages. One is read in any case.
const POLICIES_IN_VAIN: f64 = 0.02;
const POLICIES_ALL: f64 = 0.1;
/// The dearest such reading: 100 GB of small pages. It holds the memory map of the process.
const MOST_POLICIES: Duration = Duration::from_secs(2);
/// How long policies count that were read. Before its pages move they are read again.
const POLICIES_COUNT: Duration = Duration::from_secs(120);
/// A reading counts for at least this number of times as long as it took: 1 % of a CPU.
const PRICES: u32 = 100;

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
    /// Where processes run since that sample: actions are within the next window.
    steps: Steps,
    policies: PolicyCache,
    everyone: Allowed,
    windows: u32,
}

impl Watcher {
    /// Begins to watch.
    pub(super) fn begin(window: Duration, least: Bytes, interrupt: &AtomicBool) -> Result<Self, Failure> {
        let machine = input::load("live", Detail::Full)?.machine;
        if machine.nodes.len() < 2 {
            return Err(Failure::cannot("this machine has one node: every process is beside its memory"));
        }
        let tree = Tree::live();
        let options = SampleOptions {
            processes: ProcessScope::All,
            threads: ThreadScope::Busy(BTreeSet::new()),
            groups: true,
            pages: Some(PageOptions { budget: ONCE, least, most_cost: ALL_PAGES, always: BTreeSet::new() }),
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
            steps: Steps::begin(&before, least, &tree),
            tree,
            machine,
            sampler,
            before,
            policies: PolicyCache::default(),
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

    /// Whether a process has run since the last sample, and not on nodes that its pages are to leave.
    pub(super) fn is_still_away(&mut self, action: &Action) -> bool {
        self.steps.look(&self.tree, &Places::new([&self.before]));
        let left: Vec<NodeId> = action.means.pages.iter().map(|pages| pages.from).collect();
        self.steps.runs_off(action.process.identity, &left)
    }

    /// Waits for the end of a window, and shows it to the controller.
    pub(super) fn window(
        &mut self,
        length: Duration,
        controller: &mut Controller,
        interrupt: &AtomicBool,
    ) -> Result<Window, Failure> {
        let end = Instant::now().checked_add(length).ok_or_else(|| Failure::usage("--window is too long"))?;
        let places = Places::new([&self.before]);
        self.steps.look(&self.tree, &places);
        for left in (0..STEPS).rev() {
            let step = end.checked_sub(length / STEPS * left).unwrap_or(end);
            measuring::wait(step, interrupt, || false);
            self.steps.look(&self.tree, &places);
        }
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
        let now = self.sampler.sample(Moment::now());
        let mut situation = match Situation::new(&self.machine, Some(&self.before), &now) {
            Ok(situation) => situation,
            Err(error) => return Ok(Window::Skipped(error.to_string())),
        };
        for process in &mut situation.processes {
            let cpu = process.change.as_mut().and_then(|change| change.cpu.as_mut());
            if let Some((cpu, seen)) = cpu.zip(self.steps.seen(process.process.identity)) {
                cpu.attribute(seen);
            }
        }
        let least = controller.limits().least_size;
        let large = situation.processes.iter().filter(|process| process.size() >= least);
        let known = large.map(|process| process.process.identity).map(|identity| {
            let mapping_policies = self.policies.get(identity);
            (identity, ProcessFacts { mapping_policies, ..facts(&self.tree, identity.pid) })
        });
        let mut facts: BTreeMap<Identity, ProcessFacts> = known.collect_map();
        let seen = Observation {
            now: now.moment.since_boot,
            situation: &situation,
            facts: &facts.clone(),
            everyone: &self.everyone,
            has_swap: has_swap(&self.tree) == Some(true),
            own: Pid::new(std::process::id()),
        };
        let awaited = controller.awaits(&seen);
        self.policies.read(&self.tree, &awaited, &mut facts, length, interrupt);
        let plan = controller.observe(&Observation { facts: &facts, ..seen });
        self.policies.retain(|identity| now.process(identity).is_some());
        self.sampler.always_locate(in_need(&plan));
        self.steps = Steps::begin(&now, least, &self.tree);
        self.before = now;
        Ok(Window::Seen(plan))
    }
}

/// Processes whose pages the next windows have to know.
fn in_need(plan: &Plan) -> BTreeSet<Pid> {
    let acted_on = plan.actions.iter().map(|action| &action.process);
    let all = acted_on.chain(plan.waiting.iter().map(|waiting| &waiting.process));
    all.map(|process| process.identity.pid).take(MOST_IN_NEED).collect_set()
}

/// Policies of the mappings of processes, as they were read.
#[derive(Default)]
struct PolicyCache(BTreeMap<Identity, ReadPolicies>);

struct ReadPolicies {
    at: Instant,
    took: Duration,
    policies: Vec<String>,
}

impl PolicyCache {
    /// The policies of a process, where they were read a short time ago.
    fn get(&self, identity: Identity) -> Option<Vec<String>> {
        let read = self.0.get(&identity)?;
        let counts = POLICIES_COUNT.max(read.took.saturating_mul(PRICES));
        (read.at.elapsed() < counts).then(|| read.policies.clone())
    }

    fn retain(&mut self, is_there: impl Fn(Identity) -> bool) {
        self.0.retain(|identity, _| is_there(*identity));
    }

    /// Reads those that a window asks for: of one process in need, and of more while that takes little of the window.
    fn read(
        &mut self,
        tree: &Tree,
        awaited: &Awaited,
        facts: &mut BTreeMap<Identity, ProcessFacts>,
        window: Duration,
        interrupt: &AtomicBool,
    ) {
        let unknown: Vec<Identity> =
            awaited.kept.iter().copied().filter(|identity| self.get(*identity).is_none()).collect();
        for identity in awaited.changed.iter().copied().chain(unknown) {
            self.read_one(tree, identity, facts);
        }
        let (begun, mut in_vain) = (Instant::now(), Duration::ZERO);
        for (count, identity) in awaited.needy.iter().enumerate() {
            let is_enough = in_vain >= window.mul_f64(POLICIES_IN_VAIN)
                || begun.elapsed() >= window.mul_f64(POLICIES_ALL);
            if interrupt.load(Ordering::Relaxed) || count > 0 && is_enough {
                break;
            }
            let since = Instant::now();
            self.read_one(tree, *identity, facts);
            if !facts.get(identity).and_then(|of| of.mapping_policies.as_ref()).is_some_and(Vec::is_empty) {
                in_vain += since.elapsed();
            }
        }
    }

    fn read_one(&mut self, tree: &Tree, identity: Identity, facts: &mut BTreeMap<Identity, ProcessFacts>) {
        let Some(of) = facts.get_mut(&identity) else { return };
        of.mapping_policies = None;
        self.0.remove(&identity);
        let pid = identity.pid;
        let resident = status(tree, pid).ok().flatten().and_then(|parsed| parsed.value.resident);
        if resident.is_none_or(|size| walk_price(size, SMALLEST_PAGE) > MOST_POLICIES) {
            return;
        }
        let at = Instant::now();
        let policies = claims::mapping_policies(tree, pid);
        let took = at.elapsed();
        if let Some(policies) = policies.filter(|_| Identity::read(tree, pid) == Some(identity)) {
            of.mapping_policies = Some(policies.clone());
            self.0.insert(identity, ReadPolicies { at, took, policies });
        }
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
        mapping_policies: None,
    }
}
