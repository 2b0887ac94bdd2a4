//! Facts about this process and this system that the libraries ask for as plain data.

use std::ffi::OsString;
use std::time::SystemTime;

use nodewise_machine::Machine;
use nodewise_machine::conditions::Conditions;
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

/// Whether this process may move pages that others map too: with `CAP_SYS_NICE`.
pub fn may_move_shared(tree: &Tree) -> bool {
    nodewise_compat::explain::of_process(tree).sys_nice == Some(true)
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
        ..Conditions::from_machine(machine)
    }
}
