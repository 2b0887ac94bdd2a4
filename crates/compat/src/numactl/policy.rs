//! The options that set a policy or an affinity.

use std::ffi::OsStr;

use nodewise_machine::printable::printable;
use nodewise_machine::{CpuSet, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};
use nodewise_notation::warning::NODE_CPUS_UNREADABLE;
use nodewise_syscall::{Call, Errno, PolicyQuery, Task};

use super::{Session, Step, Stop, strerror};
use crate::members::{self, Cpus, Nodes, Purpose, Scope};
use crate::nodestring::{self, Invalid, Members as _};
use crate::release::Release;

impl Session<'_> {
    /// `-i`, `-w`, `-m`, `-p`, `-P` and `-l`: a memory policy; there can be only one.
    pub(super) fn memory(&mut self, option: char, argument: &OsStr) -> Step {
        self.need_numa()?;
        // The originals look for another policy before they read nodes to bind to, and behind all others.
        if option == 'm' {
            self.no_other_policy()?;
        }
        let (mode, doing) = match option {
            'i' => (PolicyMode::Interleave, "setting interleave mask"),
            'w' => (PolicyMode::WeightedInterleave, "setting interleave mask"),
            'm' => (PolicyMode::Bind, "setting membind"),
            'p' => (PolicyMode::Preferred, "setting preferred node"),
            'P' => (PolicyMode::PreferredMany, "setting preferred node"),
            _ => (PolicyMode::Local, "local allocation"),
        };
        let nodes = match mode {
            PolicyMode::Local => NodeSet::new(),
            _ => self.parse_nodes(argument, Purpose::Memory)?,
        };
        let shared = self.shared.has_region();
        if mode == PolicyMode::Preferred && nodes.len() != 1 && !(shared && self.mbind_judges(&nodes)) {
            return Err(self.usage());
        }
        self.no_other_policy()?;
        self.policy_is_set = true;
        // A process interleaves over no nodes by the default policy; shared memory cannot.
        let interleaves = matches!(mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave);
        let resets = interleaves && nodes.is_empty() && !shared;
        let mode = if resets { PolicyMode::Default } else { mode };
        self.set_policy(&MemPolicy::new(mode, nodes), doing)
    }

    /// Whether the kernel is asked for a preferred node of shared memory that is not one: the originals count
    /// nodes for a process only.
    fn mbind_judges(&self, nodes: &NodeSet) -> bool {
        nodes.is_empty() || self.call.settings.strict
    }

    fn no_other_policy(&mut self) -> Step {
        if self.policy_is_set {
            return Err(self.mistake("Conflicting policies"));
        }
        Ok(())
    }

    fn set_policy(&mut self, policy: &MemPolicy, doing: &str) -> Step {
        if self.shared.has_region() {
            return self.bind_region(policy, doing);
        }
        if policy.mode == PolicyMode::PreferredMany && !policy.nodes.is_empty() && !self.old_probe_passes() {
            return Err(self.refuse("preferred-many requested without kernel support"));
        }
        let Err(errno) = self.set_process_policy(policy) else { return Ok(()) };
        let wants_many = policy.mode == PolicyMode::PreferredMany && !policy.nodes.is_empty();
        let stop = if wants_many && !self.kernel.has_mode(policy.mode) {
            self.refuse("preferred-many requested without kernel support")
        } else {
            self.failed("set_mempolicy", doing, errno)
        };
        self.explain(Call::SetMempolicy { policy: policy.clone() }, errno);
        Err(stop)
    }

    /// With `--balancing` automatic balancing is let in, where the kernel can.
    fn set_process_policy(&self, policy: &MemPolicy) -> Result<(), Errno> {
        if self.balancing && policy.mode == PolicyMode::Bind {
            let balanced = MemPolicy { flags: ModeFlags::NUMA_BALANCING, ..policy.clone() };
            match self.kernel.set_policy(&balanced) {
                Err(Errno::EINVAL) => (),
                answer => return answer,
            }
        }
        self.kernel.set_policy(policy)
    }

    /// 2.0.16 asks for node 0 to see whether the kernel has preferred-many, and so finds none in a
    /// cpuset without that node.
    fn old_probe_passes(&self) -> bool {
        let settings = self.call.settings;
        settings.release != Release::V2_0_16
            || !settings.strict
            || members::allowed_nodes(self.call.tree, self.kernel).contains(NodeId::new(0))
    }

    /// Reports a refused call on stderr.
    pub(super) fn failed(&mut self, call: &str, doing: &str, errno: Errno) -> Stop {
        let error = strerror(errno);
        let _ = writeln!(self.warnings.err(), "{call}: {error}");
        let _ = writeln!(self.warnings.err(), "{doing}: {error}");
        Stop(1)
    }

    /// `-N`: the CPUs of nodes.
    pub(super) fn run_on_nodes(&mut self, argument: &OsStr) -> Step {
        // Affinity needs none of the policy calls; the originals ask for them anyway.
        if self.call.settings.strict {
            self.need_numa()?;
        }
        self.no_shared_memory("-c/--cpubind/--cpunodebind")?;
        let nodes = self.parse_nodes(argument, Purpose::Cpus)?;
        let mut cpus = CpuSet::new();
        for node in &nodes {
            match self.node_cpus.cpus(node) {
                Some(theirs) => cpus = cpus.union(&theirs),
                None => self.warnings.warn(NODE_CPUS_UNREADABLE, &[]),
            }
        }
        self.cpus_are_set = true;
        self.kernel.set_cpus(&cpus).map_err(|errno| {
            let stop = self.failed("numa_sched_setaffinity_v2_int() failed", "sched_setaffinity", errno);
            self.explain(Call::SchedSetaffinity { task: Task::CURRENT, cpus }, errno);
            stop
        })
    }

    fn no_shared_memory(&mut self, option: &str) -> Step {
        match self.shared.named() {
            Some(named) => Err(self.mistake(&format!("{named} shm option is not allowed before {option}"))),
            None => Ok(()),
        }
    }

    /// `-C`: CPUs.
    pub(super) fn run_on_cpus(&mut self, argument: &OsStr) -> Step {
        self.no_shared_memory("-C/--physcpubind")?;
        self.named = true;
        let text = argument.to_string_lossy();
        let members = Cpus::new(self.call.tree, self.call.settings, self.scope, self.cpus_at_start());
        let cpus = nodestring::parse(&text, &members, &mut self.warnings)
            .map_err(|Invalid| self.invalid(argument, "CPUs", &members.all().to_string()))?;
        self.cpus_are_set = true;
        self.kernel.set_cpus(&cpus).map_err(|errno| {
            let _ = writeln!(self.warnings.err(), "sched_setaffinity: {}", strerror(errno));
            self.explain(Call::SchedSetaffinity { task: Task::CURRENT, cpus }, errno);
            Stop(1)
        })
    }

    /// A set of nodes, or `same` for the last one.
    fn parse_nodes(&mut self, argument: &OsStr, purpose: Purpose) -> Result<NodeSet, Stop> {
        self.named = true;
        if argument == "same" {
            return match &self.nodes {
                Some(nodes) => Ok(nodes.clone()),
                None => Err(self.mistake("same needs previous node specification")),
            };
        }
        let text = argument.to_string_lossy();
        let runs = purpose == Purpose::Cpus && self.scope == Scope::Allowed && !self.call.settings.strict;
        let cpus = if runs { self.cpus_at_start().clone() } else { CpuSet::new() };
        let settings = self.call.settings;
        let members = Nodes::new(&self.node_cpus, self.kernel, settings, self.scope, purpose, &cpus);
        let nodes = nodestring::parse(&text, &members, &mut self.warnings)
            .map_err(|Invalid| self.invalid(argument, "nodes", &members.all().to_string()))?;
        self.nodes = Some(nodes.clone());
        Ok(nodes)
    }

    /// A string that names no set. A person learns what can be named, below the usage text.
    fn invalid(&mut self, argument: &OsStr, what: &str, known: &str) -> Stop {
        let _ = writeln!(self.out, "<{}> is invalid", printable(&argument.to_string_lossy()));
        let stop = self.usage();
        if self.explains() {
            let here = match self.scope {
                Scope::Allowed => "this process may use",
                Scope::Everything => "this machine has",
            };
            let _ = writeln!(self.warnings.err(), "numactl: {here} {what} {known}");
        }
        stop
    }

    fn need_numa(&mut self) -> Step {
        if self.numa_is_available() {
            return Ok(());
        }
        let stop = self.refuse("This system does not support NUMA policy");
        if let Err(errno) = self.kernel.allowed_nodes() {
            self.explain(Call::GetMempolicy { query: PolicyQuery::AllowedNodes }, errno);
        }
        Err(stop)
    }

    fn cpus_at_start(&self) -> &CpuSet {
        self.cpus_at_start.get_or_init(|| self.kernel.cpus().unwrap_or_default())
    }
}
