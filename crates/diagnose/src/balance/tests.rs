//! The controller in a world made by hand: processes that run and hold memory, window after window.

mod drawn;
mod forbidden;
mod pace;
mod short_lived;
mod stages;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::{Bytes, CpuSet, MemPolicy};
use nodewise_source::parse::pressure::Pressure;
use nodewise_source::parse::proc_stat::CpuTimes;
use nodewise_source::process::Pid;
use nodewise_source::sample::{Allowed, Identity, ProcessSample, Sample};

use super::{Action, Awaited, Controller, Done, Limits, Observation, Plan, ProcessFacts};
use crate::situation::Situation;
use crate::situation::fixture::{Fixture, Work, seconds};

/// The number of nodewise in these worlds.
const OWN: Pid = Pid::new(900);
/// The time between two windows.
const WINDOW: Duration = Duration::from_secs(15);

const fn gib(count: u64) -> Bytes {
    Bytes::from_gib(count)
}

fn identity(pid: u32) -> Identity {
    Identity { pid: Pid::new(pid), started_ticks: 5 }
}

/// A process of a world.
#[derive(Clone, Debug)]
struct Program {
    pid: u32,
    memory: Vec<(u32, Bytes)>,
    /// CPUs with a busy thread each.
    runs: Vec<u32>,
    facts: ProcessFacts,
    /// The policy of its memory; `None` where it cannot be read.
    policy: Option<MemPolicy>,
    cpus: Option<String>,
    nodes: Option<String>,
}

impl Program {
    fn new(pid: u32, memory: &[(u32, Bytes)], runs: &[u32]) -> Self {
        let facts = ProcessFacts {
            realtime: Some(false),
            locked: Some(Bytes::new(0)),
            pinned: Some(Bytes::new(0)),
            traced: Some(false),
            limit_used: Some(0.0),
            threads: Some(Vec::new()),
            policies: Some(Vec::new()),
            mapping_policies: None,
        };
        Self {
            pid,
            memory: memory.to_vec(),
            runs: runs.to_vec(),
            facts,
            policy: Some(MemPolicy::DEFAULT),
            cpus: None,
            nodes: None,
        }
    }

    /// Policies of its mappings other than the default, as the kernel names them.
    fn read_policies(&mut self) {
        let words = |policy: &MemPolicy| {
            Some(policy.to_string()).filter(|_| *policy != MemPolicy::DEFAULT).into_iter().collect()
        };
        self.facts.mapping_policies = self.policy.as_ref().map(words);
    }
}

/// A machine, its programs, and the controller that looks at them.
struct World {
    spec: &'static str,
    programs: Vec<Program>,
    controller: Controller,
    windows: u64,
    /// CPUs of the first process; all without.
    first: Option<&'static str>,
    has_swap: bool,
    /// Processes that await an action and whose policies are read in a window, after those that were acted on; without a
    /// number the policies of all are known all the time.
    reads: Option<usize>,
    /// Changes the fixture of each window.
    more: fn(&mut Fixture),
}

impl World {
    fn new(spec: &'static str, programs: Vec<Program>) -> Self {
        Self::with(Limits::default(), spec, programs)
    }

    fn with(limits: Limits, spec: &'static str, programs: Vec<Program>) -> Self {
        Self {
            spec,
            programs,
            controller: Controller::new(limits),
            windows: 0,
            first: None,
            has_swap: true,
            reads: None,
            more: |_| {},
        }
    }

    fn now(&self) -> Duration {
        Duration::from_secs(10_000) + WINDOW * self.windows as u32
    }

    fn fixture(&self) -> Fixture {
        let mut fixture = Fixture::new(self.spec);
        for program in &self.programs {
            let cpu: Vec<(u32, Duration)> = program.runs.iter().map(|cpu| (*cpu, seconds(9))).collect();
            fixture.process(&Work {
                pid: program.pid,
                memory: &program.memory,
                cpu: &cpu,
                cpus: program.cpus.as_deref(),
                nodes: program.nodes.as_deref(),
            });
        }
        // CPUs without a thread of these programs are idle.
        let busy: Vec<u32> = self.programs.iter().flat_map(|program| program.runs.clone()).collect();
        for (cpu, times) in &mut fixture.now.cpus {
            let is_busy = busy.contains(&cpu.number());
            *times = CpuTimes {
                user: if is_busy { 900 } else { 0 },
                idle: if is_busy { 100 } else { 1000 },
                ..CpuTimes::default()
            };
        }
        each(&mut fixture, |process| process.group = Some("/user.slice".into()));
        fixture.happened(&[("oom_kill", 0)]);
        fixture.now.pressure.memory = Some(Pressure { some: None, full: None });
        fixture.machine.settings.numa_balancing = Some(0);
        (self.more)(&mut fixture);
        fixture
    }

    /// One window, for which the policies are read that the controller asks for.
    fn window(&mut self) -> Plan {
        let fixture = self.fixture();
        if self.reads.is_none() {
            self.programs.iter_mut().for_each(Program::read_policies);
        }
        let mut facts: BTreeMap<Identity, ProcessFacts> =
            self.programs.iter().map(|program| (identity(program.pid), program.facts.clone())).collect();
        let all = fixture.machine.online_cpus();
        let everyone =
            Allowed { cpus: Some(self.first.map_or(all, cpus)), nodes: Some(fixture.machine.node_ids()) };
        let situation =
            Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).expect("two samples");
        let known = facts.clone();
        let seen = Observation {
            now: self.now(),
            situation: &situation,
            facts: &known,
            everyone: &everyone,
            has_swap: self.has_swap,
            own: OWN,
        };
        let Awaited { changed, kept, needy } = self.controller.awaits(&seen);
        for asked in changed.into_iter().chain(kept).chain(needy.into_iter().take(self.reads.unwrap_or(0))) {
            let program = self.programs.iter_mut().find(|of| identity(of.pid) == asked).expect("it runs");
            program.read_policies();
            facts.insert(asked, program.facts.clone());
        }
        self.windows += 1;
        self.controller.observe(&Observation { facts: &facts, ..seen })
    }

    /// Windows up to the first with an action, at most this many.
    fn until_action(&mut self, most: u64) -> Option<Action> {
        (0..most).find_map(|_| self.window().actions.into_iter().next())
    }

    /// Carries an action out: pages go where it says, threads too.
    fn act(&mut self, action: &Action) {
        let now = self.now();
        self.controller.begin(action, now);
        let (spec, mut left) = (self.spec, action.most);
        let program = self.programs.iter_mut().find(|of| identity(of.pid) == action.process.identity);
        let program = program.expect("it runs");
        for pages in &action.means.pages {
            let moved = pages.size.min(left);
            left = Bytes::new(left.get() - moved.get());
            let from = program.memory.iter_mut().find(|(node, _)| *node == pages.from.number());
            let from = &mut from.expect("it has memory there").1;
            *from = Bytes::new(from.get() - moved.get());
            match program.memory.iter_mut().find(|(node, _)| *node == pages.to.number()) {
                Some((_, size)) => *size += moved,
                None => program.memory.push((pages.to.number(), moved)),
            }
        }
        program.memory.retain(|(_, size)| size.get() > 0);
        if let Some((cpus, _)) = &action.means.cpus {
            let machine = nodewise_machine::spec::machine(spec).expect("a spec");
            assert!(cpus.is_subset(&machine.online_cpus()));
            let first = cpus.first().expect("a CPU").number();
            program.runs = vec![first; program.runs.len()];
            program.cpus = Some(cpus.to_string());
            program.facts.threads = Some(vec![cpus.clone()]);
        }
        let moved = Bytes::new(action.most.get() - left.get());
        self.controller.end(
            action.process.identity,
            now,
            Done { narrowed: action.means.cpus.is_some(), moved, failed: Bytes::new(0) },
        );
    }
}

/// Changes every process of both samples.
fn each(fixture: &mut Fixture, change: impl Fn(&mut ProcessSample)) {
    let all = |sample: &mut Sample| {
        for process in &mut sample.processes {
            change(Arc::make_mut(process));
        }
    };
    all(&mut fixture.before);
    all(&mut fixture.now);
}

fn cpus(text: &str) -> CpuSet {
    text.parse().expect("CPUs")
}
