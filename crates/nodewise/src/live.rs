//! Facts about this process and this system that the libraries ask for as plain data.

use std::ffi::OsString;
use std::time::SystemTime;

use nodewise_machine::Machine;
use nodewise_measure::conditions::Conditions;
use nodewise_measure::executor::{Residency, Surroundings, Witness};
use nodewise_source::process::{self, Pid};
use nodewise_source::system;
use nodewise_source::tree::Tree;
use nodewise_syscall::{CallError, Circumstances, Explanation};

/// Why a call failed here. The facts are gathered only now: calls that work need none.
pub fn explain(error: &CallError, machine: &Machine) -> Explanation {
    nodewise_syscall::explain(error, &circumstances(machine))
}

fn circumstances(machine: &Machine) -> Circumstances {
    let process = nodewise_compat::explain::of_process(&Tree::live());
    // A verb that needed no machine for its work has none.
    let known = !machine.nodes.is_empty();
    Circumstances {
        release: machine.kernel.clone().or_else(|| process.release.clone()),
        online_nodes: known.then(|| machine.node_ids()),
        memory_nodes: known.then(|| machine.memory_nodes()),
        online_cpus: known.then(|| machine.online_cpus()),
        ..process
    }
}

/// The circumstances of a study.
pub fn conditions(machine: &Machine, command: &[OsString]) -> Conditions {
    let tree = Tree::live();
    Conditions {
        command: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        began: Some(SystemTime::now()),
        nodewise_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        cpu_model: system::cpu_model(&tree),
        hypervisor: system::hypervisor(&tree),
        governors: system::frequencies(&tree).governors.into_keys().collect(),
        load: system::load_average(&tree).ok().flatten().map(|load| load.one_minute),
        ..Conditions::of(machine)
    }
}

/// The share of the CPUs' time that a hypervisor gives to others, between two moments.
pub struct Steal {
    before: Option<(u64, u64)>,
}

impl Steal {
    /// From now on.
    pub fn begin() -> Self {
        Self { before: stolen_and_all() }
    }

    /// Until now, of 1; `None` where the kernel does not say, or too little time has passed.
    pub fn end(&self) -> Option<f64> {
        let ((stolen, all), (stolen_now, all_now)) = (self.before?, stolen_and_all()?);
        let passed = all_now.checked_sub(all).filter(|passed| *passed > 0)?;
        Some(stolen_now.saturating_sub(stolen) as f64 / passed as f64)
    }
}

/// Time that was stolen and all time, in ticks, since boot.
fn stolen_and_all() -> Option<(u64, u64)> {
    let times = system::cpu_times(&Tree::live()).ok().flatten()?.value.total?;
    Some((times.steal?, times.total()))
}

/// Sees what a run cannot see of itself.
pub struct SystemWitness {
    tree: Tree,
    steal: Option<Steal>,
}

impl SystemWitness {
    /// A witness of the running system.
    pub fn new() -> Self {
        Self { tree: Tree::live(), steal: None }
    }
}

impl Witness for SystemWitness {
    fn before(&mut self) {
        self.steal = Some(Steal::begin());
    }

    fn residency(&mut self, process: u32) -> Option<Residency> {
        let family = process::family(&self.tree, Pid::new(process));
        let seen = process::residency(&self.tree, &family);
        (!seen.by_node.is_empty()).then_some(Residency { by_node: seen.by_node })
    }

    fn after(&mut self) -> Surroundings {
        Surroundings {
            steal_share: self.steal.as_ref().and_then(Steal::end),
            load: system::load_average(&self.tree).ok().flatten().map(|load| load.one_minute),
        }
    }
}
