//! Situations made by hand, for tests of rules: a machine from a spec, and samples that a test changes.

pub(crate) mod hostile;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::mapping::{MappedPages, Mapping, MappingKind, MappingPolicy, ProcessMappings};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, Machine, MemPolicy, NodeId, NodeSet, spec};
use nodewise_source::parse::counters::Counters;
use nodewise_source::parse::proc_stat::CpuTimes;
use nodewise_source::process::Pid;
use nodewise_source::program::running::RunningProgram;
use nodewise_source::sample::{
    Allowed, Identity, MappingsSample, NodeSample, PageMethod, PageSample, PageShare, ProcessSample, Sample,
    TaskSample,
};
use nodewise_source::site::Site;

use crate::example;
use crate::finding::RuleFinding;
use crate::rule::Rule;
use crate::situation::Situation;

/// The window of a fixture.
const WINDOW: u64 = 10;

/// A machine and two samples of it: healthy until a test changes it.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) machine: Machine,
    pub(crate) before: Sample,
    pub(crate) now: Sample,
    pub(crate) virtual_machine: Option<bool>,
    /// Programs of processes, by what a test knows of them.
    pub(crate) programs: Option<BTreeMap<Identity, RunningProgram>>,
    pub(crate) site: Option<Site>,
}

/// A process of a fixture.
pub(crate) struct Work<'a> {
    pub(crate) pid: u32,
    /// Own memory by node, the same at both ends.
    pub(crate) memory: &'a [(u32, Bytes)],
    /// CPU time in the window by CPU: one thread each, which stays there.
    pub(crate) cpu: &'a [(u32, Duration)],
    pub(crate) cpus: Option<&'a str>,
    pub(crate) nodes: Option<&'a str>,
}

impl Default for Work<'_> {
    fn default() -> Self {
        Self { pid: 100, memory: &[], cpu: &[], cpus: None, nodes: None }
    }
}

/// A mapping: its kind, its policy, and its memory by node.
pub(crate) type Mapped<'a> = (MappingKind, MemPolicy, &'a [(u32, Bytes)]);

impl Fixture {
    /// A healthy machine of a spec: half of each node is free, and nothing happens.
    pub(crate) fn new(text: &str) -> Self {
        let machine = spec::machine(text).expect("a spec");
        let node = |node: &nodewise_machine::Node| {
            let size = node.memory_total().unwrap_or_default();
            let mut sample = NodeSample::new(node.id);
            sample.cpus = node.cpus.clone();
            let half = Bytes::new(size.get() / 2);
            let field = |name: &str, size| example::size(name, size);
            let file = Bytes::new(size.get() / 8);
            sample.memory = vec![
                field("MemTotal", size),
                field("MemFree", half),
                field("Active(file)", file),
                field("Inactive(file)", file),
                field("SReclaimable", Bytes::default()),
            ];
            sample.high_watermark = Some(size.share(0.005));
            sample.allocations.hit = Some(1_000);
            sample
        };
        let cpus = machine.online_cpus().iter().map(|cpu| (cpu, CpuTimes::default())).collect();
        let events = [("pswpout", 0), ("zone_reclaim_failed", 0), ("zone_reclaim_success", 0)];
        let before = Sample {
            moment: example::moment(1_000),
            nodes: machine.nodes.values().map(node).collect(),
            cpus,
            events: counters(&events),
            ..Sample::default()
        };
        let now = Sample { moment: example::moment(1_000 + WINDOW), ..before.clone() };
        let mut fixture = Self { machine, before, now, virtual_machine: None, programs: None, site: None };
        for node in fixture.machine.nodes.keys().copied().collect::<Vec<_>>() {
            fixture.reclaimer(node.number(), Duration::ZERO);
        }
        fixture
    }

    /// Sets a field of a node's meminfo, in both samples.
    pub(crate) fn meminfo(&mut self, node: u32, name: &str, size: Bytes) {
        for sample in [&mut self.before, &mut self.now] {
            let node = sample.nodes.iter_mut().find(|of| of.node.number() == node).expect("a node");
            node.memory.retain(|field| field.name != name);
            node.memory.push(example::size(name, size));
        }
    }

    /// Sets counters of the system: what happened in the window.
    pub(crate) fn happened(&mut self, events: &[(&str, u64)]) {
        self.before.events = counters(&events.iter().map(|(name, _)| (*name, 7)).collect::<Vec<_>>());
        self.now.events =
            counters(&events.iter().map(|(name, count)| (*name, count + 7)).collect::<Vec<_>>());
    }

    /// Sets the CPU time of a node's kswapd in the window.
    pub(crate) fn reclaimer(&mut self, node: u32, used: Duration) {
        let identity = Identity { pid: Pid::new(50 + node), started_ticks: 5 };
        for (sample, ticks) in [(&mut self.before, 0), (&mut self.now, used.as_millis() as u64 / 10)] {
            sample.processes.retain(|process| process.identity != identity);
            let process = ProcessSample {
                name: format!("kswapd{node}").into(),
                kernel_thread: true,
                cpu_ticks: ticks,
                polled: sample.moment,
                ..ProcessSample::new(identity)
            };
            sample.processes.push(Arc::new(process));
            sample.processes.sort_by_key(|process| process.identity);
        }
    }

    /// Adds a process.
    pub(crate) fn process(&mut self, work: &Work<'_>) {
        let allowed = || {
            Some(Allowed {
                cpus: work.cpus.map_or_else(
                    || Some(self.machine.online_cpus()),
                    |cpus| Some(cpus.parse().expect("CPUs")),
                ),
                nodes: work.nodes.map_or_else(
                    || Some(self.machine.node_ids()),
                    |nodes| Some(nodes.parse().expect("nodes")),
                ),
            })
        };
        let (allowed_before, allowed_now) = (allowed(), allowed());
        for (sample, is_now, allowed) in
            [(&mut self.before, false, allowed_before), (&mut self.now, true, allowed_now)]
        {
            let time = |used: Duration| if is_now { used } else { Duration::ZERO };
            let tasks: Vec<TaskSample> = work
                .cpu
                .iter()
                .zip(work.pid..)
                .map(|((cpu, used), tid)| TaskSample {
                    processor: Some(nodewise_machine::CpuId::new(*cpu)),
                    cpu_changes: Some(3),
                    allowed: allowed.clone(),
                    ..example::task(tid, time(*used).as_millis() as u64 / 10)
                })
                .collect();
            let share = |size: Bytes| PageShare { size, low: size, high: size, own: Some(size) };
            let pages = PageSample {
                seen: sample.moment,
                method: PageMethod::Exact,
                nodes: work
                    .memory
                    .iter()
                    .map(|(node, size)| (NodeId::new(*node), share(*size)))
                    .collect_map(),
            };
            let ticks = tasks.iter().map(|task| task.cpu_ticks).sum();
            let process = ProcessSample {
                polled: sample.moment,
                threads: tasks.len().max(1) as u32,
                tasks: Some(tasks),
                pages: Some(pages),
                allowed,
                ..example::process(work.pid, ticks)
            };
            sample.processes.push(Arc::new(process));
            sample.processes.sort_by_key(|process| process.identity);
        }
        self.mappings(work.pid, &[(MappingKind::Anonymous, MemPolicy::DEFAULT, work.memory)]);
    }

    /// Sets the mappings of a process.
    pub(crate) fn mappings(&mut self, pid: u32, mappings: &[Mapped<'_>]) {
        let identity = Identity { pid: Pid::new(pid), started_ticks: 5 };
        self.now.mappings.retain(|read| read.identity != identity);
        let mapping = |(at, (kind, policy, memory)): (u64, &Mapped<'_>)| {
            let nodes: BTreeMap<NodeId, Bytes> =
                memory.iter().map(|(node, size)| (NodeId::new(*node), *size)).collect_map();
            Mapping {
                policy: Some(MappingPolicy { text: policy.to_string(), policy: Some(policy.clone()) }),
                pages: MappedPages::Counted(nodes),
                ..Mapping::new(at << 40..(at + 1) << 40, *kind)
            }
        };
        let mappings = (1..).zip(mappings).map(mapping).collect();
        let read = Arc::new(ProcessMappings::new(identity.pid, mappings));
        self.now.mappings.push(MappingsSample { identity, seen: self.now.moment, mappings: read });
    }

    /// Sets the program of a process.
    pub(crate) fn program(&mut self, pid: u32, program: RunningProgram) {
        let identity = Identity { pid: Pid::new(pid), started_ticks: 5 };
        self.programs.get_or_insert_default().insert(identity, program);
    }

    /// The situation between its two samples.
    pub(crate) fn situation(&self) -> Situation<'_> {
        let mut situation =
            Situation::new(&self.machine, Some(&self.before), &self.now).expect("two samples");
        situation.virtual_machine = self.virtual_machine;
        situation.site = self.site.as_ref();
        match &self.programs {
            Some(programs) => situation.with_programs(programs),
            None => situation,
        }
    }

    /// The findings of a rule, whose texts can be shown whatever names programs and files have.
    pub(crate) fn findings(&self, rule: &Rule) -> Vec<RuleFinding> {
        let situation = self.situation();
        assert_eq!(rule.lacks(&situation), [], "{} is not examined", rule.id);
        self.assert_printable(rule);
        (rule.check)(&situation)
    }

    /// The facts that a rule lacks where there is one moment only.
    pub(crate) fn lacks_at_once(&self, rule: &Rule) -> Vec<&'static str> {
        let situation = Situation::new(&self.machine, None, &self.now).expect("one sample");
        rule.lacks(&situation).into_iter().map(|lack| lack.fact).collect()
    }
}

/// Counters of the system.
pub(crate) fn counters(of: &[(&str, u64)]) -> Counters {
    let text: String = of.iter().map(|(name, count)| format!("{name} {count}\n")).collect();
    nodewise_source::parse::counters::parse(&text).value
}

/// Nodes by number.
pub(crate) fn nodes(text: &str) -> NodeSet {
    text.parse().expect("nodes")
}

/// Seconds.
pub(crate) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
