//! Processes that are never touched, each with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, CpuSet, NodeSet};
use nodewise_source::process::Pid;
use nodewise_source::sample::{Allowed, ProcessSample, Sample};

use super::limits::Limits;
use crate::finding::Owner;
use crate::rules::two_placers::PLACERS;
use crate::situation::{ProcessState, Situation};

/// The process that starts all others.
const FIRST: Pid = Pid::new(1);

/// Facts of a process that samples do not hold. `None`: not readable, which is never taken for the harmless value.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ProcessFacts {
    /// Whether a thread is in a real-time class.
    pub realtime: Option<bool>,
    /// Memory that it locked: `VmLck`.
    pub locked: Option<Bytes>,
    /// Memory that is pinned for devices: `VmPin`.
    pub pinned: Option<Bytes>,
    /// Whether another process traces it.
    pub traced: Option<bool>,
    /// The part of the nearest limit of its control groups that is in use; 0 without a limit.
    pub limit_used: Option<f64>,
    /// The CPUs of each of its threads.
    pub threads: Option<Vec<CpuSet>>,
    /// The memory policies of its threads that are not the default, in the kernel's words.
    pub policies: Option<Vec<String>>,
    /// Those of its mappings. Reading them walks its page tables, so they are read where an action depends on them:
    /// [`Controller::awaits`](super::Controller::awaits).
    pub mapping_policies: Option<Vec<String>>,
}

/// Why a process is never touched.
#[derive(Clone, Debug, PartialEq)]
pub enum Never {
    /// It has less memory than the limit.
    Small,
    /// It began less than the limit ago.
    Young,
    /// The process that starts all others.
    First,
    /// nodewise itself, or a process that started it.
    Ancestor,
    /// A program that places others.
    Placer,
    /// A program that places others started it.
    OfPlacer,
    /// An orchestrator places it.
    Orchestrator(&'static str),
    /// Some memory is under a policy that was set on purpose, in the kernel's words.
    Policy(String),
    /// The policies of its threads are not known.
    PolicyUnknown,
    /// Its cpuset has fewer CPUs or nodes than those of other processes.
    Cpuset,
    /// Another program set the CPUs of its threads.
    Affinity,
    Realtime,
    /// Memory that is locked or pinned, from 0 to 1.
    Locked(f64),
    Traced,
    /// It uses this part of its memory limit.
    NearLimit(f64),
    /// A fact that could not be read.
    Unreadable(&'static str),
    /// Two actions made it worse.
    Worse,
    /// Two actions on programs of this name made no difference.
    NoEffect,
}

impl Never {
    /// Whether a process may be harmless, and only was not readable now.
    pub(super) const fn is_ignorance(&self) -> bool {
        matches!(self, Self::PolicyUnknown | Self::Unreadable(_))
    }

    /// Its word, in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Young => "young",
            Self::First => "first_process",
            Self::Ancestor => "own_ancestor",
            Self::Placer => "placer",
            Self::OfPlacer => "child_of_placer",
            Self::Orchestrator(_) => "orchestrator",
            Self::Policy(_) => "policy",
            Self::PolicyUnknown => "policy_unknown",
            Self::Cpuset => "cpuset",
            Self::Affinity => "affinity",
            Self::Realtime => "realtime",
            Self::Locked(_) => "locked",
            Self::Traced => "traced",
            Self::NearLimit(_) => "near_limit",
            Self::Unreadable(_) => "unreadable",
            Self::Worse => "worse_twice",
            Self::NoEffect => "no_effect_twice",
        }
    }
}

impl fmt::Display for Never {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Small => f.write_str("has less memory than --min-size"),
            Self::Young => f.write_str("is younger than --min-age"),
            Self::First => f.write_str("starts all other processes"),
            Self::Ancestor => f.write_str("is nodewise, or started it"),
            Self::Placer => f.write_str("places other processes"),
            Self::OfPlacer => f.write_str("was started by a program that places processes"),
            Self::Orchestrator(name) => write!(f, "is placed by {name}"),
            Self::Policy(words) => write!(f, "has a memory policy ({})", quote(words)),
            Self::PolicyUnknown => f.write_str("has threads whose memory policy is unknown"),
            Self::Cpuset => f.write_str("is in a narrower cpuset"),
            Self::Affinity => f.write_str("has CPUs that another program set"),
            Self::Realtime => f.write_str("has real-time threads"),
            Self::Locked(share) => write!(f, "has {:.0} % of its memory locked or pinned", share * 100.0),
            Self::Traced => f.write_str("is traced by a debugger"),
            Self::NearLimit(share) => write!(f, "uses {:.0} % of its memory limit", share * 100.0),
            Self::Unreadable(fact) => write!(f, "cannot be examined: {fact} not readable"),
            Self::Worse => f.write_str("was made worse by two actions"),
            Self::NoEffect => f.write_str("is a program on which two actions made no difference"),
        }
    }
}

/// Facts of all processes together.
pub(super) struct Kin {
    parents: BTreeMap<Pid, Pid>,
    placers: BTreeSet<Pid>,
    /// nodewise and the processes that started it.
    own: BTreeSet<Pid>,
}

impl Kin {
    pub(super) fn new(sample: &Sample, own: Pid) -> Self {
        let parents: BTreeMap<Pid, Pid> =
            sample.processes.iter().filter_map(|p| Some((p.identity.pid, p.parent?))).collect_map();
        let placers = sample.processes.iter().filter(|process| is_placer(process));
        let mut kin = Self {
            placers: placers.map(|process| process.identity.pid).collect_set(),
            parents,
            own: BTreeSet::new(),
        };
        kin.own = std::iter::once(own).chain(kin.ancestors(own)).collect();
        kin
    }

    /// The processes above one, each once.
    fn ancestors(&self, pid: Pid) -> Vec<Pid> {
        let (mut above, mut seen, mut at) = (Vec::new(), BTreeSet::from([pid]), pid);
        while let Some(parent) = self.parents.get(&at).copied().filter(|parent| seen.insert(*parent)) {
            above.push(parent);
            at = parent;
        }
        above
    }
}

/// Whether a process places others.
pub(super) fn is_placer(process: &ProcessSample) -> bool {
    !process.kernel_thread && places_others(process.name.as_bytes())
}

/// Whether a program of this name places others.
pub fn places_others(name: &[u8]) -> bool {
    PLACERS.iter().any(|known| known.as_bytes() == name)
}

/// A process before the judgement.
pub(super) struct Examinee<'a> {
    pub(super) state: &'a ProcessState<'a>,
    pub(super) facts: Option<&'a ProcessFacts>,
    /// CPUs and nodes that processes have by default.
    pub(super) everyone: &'a Allowed,
    /// CPUs that this controller gave it.
    pub(super) ours: Option<&'a CpuSet>,
}

/// Why a process is never touched; `None` where it may be. The reasons that others decided come first: they are what
/// its owner wants to read.
pub(super) fn never(
    process: &Examinee<'_>,
    situation: &Situation<'_>,
    kin: &Kin,
    limits: &Limits,
) -> Option<Never> {
    let state = process.state;
    if state.size() < limits.least_size {
        return Some(Never::Small);
    }
    by_kin(state.process.identity.pid, kin)
        .or_else(|| by_group(state.process.group.as_deref()))
        .or_else(|| by_cpus(process, situation))
        .or_else(|| by_policy(process))
        .or_else(|| by_facts(process.facts, |locked| state.share(locked), limits))
        .or_else(|| {
            let age = situation.age(state.process);
            age.is_none_or(|age| age < limits.least_age).then_some(Never::Young)
        })
}

fn by_kin(pid: Pid, kin: &Kin) -> Option<Never> {
    if pid == FIRST {
        Some(Never::First)
    } else if kin.own.contains(&pid) {
        Some(Never::Ancestor)
    } else if kin.placers.contains(&pid) {
        Some(Never::Placer)
    } else {
        kin.ancestors(pid).iter().any(|above| kin.placers.contains(above)).then_some(Never::OfPlacer)
    }
}

/// Why a process of this size is not touched now, by its control group and these facts: those that can change between a
/// plan and its action.
pub fn claimed(
    group: Option<&str>,
    facts: &ProcessFacts,
    size: Option<Bytes>,
    limits: &Limits,
) -> Option<Never> {
    let Some(size) = size.filter(|size| size.get() > 0) else { return Some(Never::Unreadable("its size")) };
    let share = |locked: Bytes| locked.get() as f64 / size.get() as f64;
    by_group(group).or_else(|| by_facts(Some(facts), share, limits))
}

fn by_group(group: Option<&str>) -> Option<Never> {
    let Some(group) = group else {
        return Some(Never::Unreadable("its control group"));
    };
    let has_part = |name: &str| group.split('/').any(|part| part == name);
    match Owner::from_group(group) {
        Owner::Kubelet => Some(Never::Orchestrator("the kubelet")),
        Owner::Slurm => Some(Never::Orchestrator("Slurm")),
        Owner::Libvirt(_) => Some(Never::Orchestrator("libvirt")),
        _ if has_part("machine.slice") => Some(Never::Orchestrator("machine.slice")),
        _ if has_part("slurmstepd.scope") => Some(Never::Orchestrator("Slurm")),
        _ => None,
    }
}

fn by_cpus(process: &Examinee<'_>, situation: &Situation<'_>) -> Option<Never> {
    let unreadable = Some(Never::Unreadable("its CPUs and nodes"));
    let (Some(cpus), Some(nodes)) = (process.state.allowed_cpus(), process.state.allowed_nodes()) else {
        return unreadable;
    };
    let (Some(all), Some(all_nodes)) = (&process.everyone.cpus, &process.everyone.nodes) else {
        return unreadable;
    };
    let group = process.state.process.group.as_deref();
    let group = situation.now.groups.iter().find(|of| Some(&*of.path) == group).map(|of| &of.allowed);
    let online = situation.machine.online_cpus();
    let narrow = group.and_then(|group| group.cpus.as_ref());
    let narrow = narrow.is_some_and(|cpus| !all.intersection(&online).is_subset(cpus));
    let existing = situation.machine.node_ids();
    if narrow || nodes.intersection(&existing) != all_nodes.intersection(&existing) {
        return Some(Never::Cpuset);
    }
    let is_free = |cpus: &CpuSet| is_default(cpus, all, &online) || process.ours == Some(cpus);
    let tasks = process.state.process.tasks.iter().flatten();
    let mut seen = tasks.filter_map(|task| task.allowed.as_ref()?.cpus.as_ref());
    let Some(threads) = process.facts.and_then(|facts| facts.threads.as_ref()) else {
        return Some(Never::Unreadable("the CPUs of its threads"));
    };
    let all_free = is_free(cpus) && threads.iter().all(is_free);
    // Samples of threads can be older than what this controller did.
    let all_free = all_free && (process.ours.is_some() || seen.all(is_free));
    (!all_free).then_some(Never::Affinity)
}

/// Whether CPUs are those that every process has: more of them were set on purpose too.
pub fn is_default(cpus: &CpuSet, everyone: &CpuSet, online: &CpuSet) -> bool {
    cpus.intersection(online) == everyone.intersection(online)
}

/// Whether the first process has all CPUs and nodes, so that it shows what others have by default.
pub(super) fn shows_defaults(everyone: &Allowed, situation: &Situation<'_>) -> bool {
    let nodes: NodeSet = situation.memory_nodes().intersection(&situation.machine.node_ids());
    let cpus = situation.machine.online_cpus();
    everyone.cpus.as_ref().is_some_and(|all| cpus.is_subset(all))
        && everyone.nodes.as_ref().is_some_and(|all| nodes.is_subset(all))
}

/// A policy of its mappings or threads. Those of mappings that were not read do not count here: no action begins without.
fn by_policy(process: &Examinee<'_>) -> Option<Never> {
    let Some(facts) = process.facts else { return Some(Never::Unreadable("its state")) };
    if let Some(why) = explicit_policy(facts.mapping_policies.as_deref().unwrap_or_default()) {
        return Some(why);
    }
    facts.policies.as_deref().map_or(Some(Never::PolicyUnknown), explicit_policy)
}

/// Whether one of the policies other than the default forbids to touch a process. A policy over memory that is still empty
/// counts: it says where pages will be.
pub fn explicit_policy(policies: &[String]) -> Option<Never> {
    policies.first().cloned().map(Never::Policy)
}

/// `share` is the part of the memory that so much locked memory is.
fn by_facts(facts: Option<&ProcessFacts>, share: impl Fn(Bytes) -> f64, limits: &Limits) -> Option<Never> {
    let Some(facts) = facts else { return Some(Never::Unreadable("its state")) };
    match facts.realtime {
        None => return Some(Never::Unreadable("its scheduling class")),
        Some(true) => return Some(Never::Realtime),
        Some(false) => {}
    }
    let (Some(locked), Some(pinned)) = (facts.locked, facts.pinned) else {
        return Some(Never::Unreadable("its locked memory"));
    };
    let locked = share(locked.max(pinned));
    if locked > limits.locked {
        return Some(Never::Locked(locked.min(1.0)));
    }
    match facts.traced {
        None => return Some(Never::Unreadable("whether it is traced")),
        Some(true) => return Some(Never::Traced),
        Some(false) => {}
    }
    match facts.limit_used {
        None => Some(Never::Unreadable("its memory limit")),
        Some(used) => (used > 1.0 - limits.below_limit).then_some(Never::NearLimit(used)),
    }
}
