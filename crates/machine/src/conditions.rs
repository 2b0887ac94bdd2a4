//! The circumstances of a study: what somebody needs to know to believe it or to repeat it.

use std::time::SystemTime;

use crate::{CpuSet, KernelRelease, Machine, NodeSet};

/// The circumstances of a study. Plain data; `None` and empty mean that it is not known.
///
/// What belongs to one run (load and steal while it ran) is with the run, and the seed with the
/// plan.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Conditions {
    /// The program and its arguments. As they were given: not fit for a terminal.
    pub command: Vec<String>,
    pub began: Option<SystemTime>,
    pub nodewise_version: Option<String>,
    pub kernel: Option<KernelRelease>,
    /// The architecture as `uname -m` names it.
    pub architecture: Option<String>,
    pub cpu_model: Option<String>,
    /// The hypervisor this machine runs on, where it says that it runs on one.
    pub hypervisor: Option<String>,
    /// Frequency governors in use: one, or several where CPUs differ.
    pub governors: Vec<String>,
    /// The chosen word of `/sys/kernel/mm/transparent_hugepage/enabled`.
    pub transparent_hugepage: Option<String>,
    /// `/proc/sys/kernel/numa_balancing`.
    pub numa_balancing: Option<u32>,
    /// CPUs that the program could use at most.
    pub allowed_cpus: Option<CpuSet>,
    /// Nodes whose memory it could use at most.
    pub allowed_nodes: Option<NodeSet>,
    /// Programs that ran or wanted to before the study began, on average over a minute.
    pub load: Option<f64>,
    /// The share of the CPUs' time that the hypervisor gave to others during the study, of 1.
    pub steal_share: Option<f64>,
}

impl Conditions {
    /// Takes those that a machine shows; the rest is left unknown.
    pub fn from_machine(machine: &Machine) -> Self {
        Self {
            kernel: machine.kernel.clone(),
            architecture: machine.architecture.clone(),
            transparent_hugepage: machine.settings.transparent_hugepage.clone(),
            numa_balancing: machine.settings.numa_balancing,
            allowed_cpus: machine.allowed_cpus.clone(),
            allowed_nodes: machine.allowed_nodes.clone(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_fills_what_it_knows_and_nothing_else() {
        let mut machine = crate::spec::machine("(4c 8G); kernel=6.12.1; arch=x86_64").unwrap();
        machine.settings.numa_balancing = Some(1);
        let conditions = Conditions::from_machine(&machine);
        assert_eq!(conditions.kernel.unwrap().version(), (6, 12));
        assert_eq!(conditions.architecture.as_deref(), Some("x86_64"));
        assert_eq!(conditions.numa_balancing, Some(1));
        assert_eq!((conditions.load, conditions.steal_share, conditions.began), (None, None, None));
    }
}
