//! The facts that distinguish causes, as the caller has gathered them.

use nodewise_machine::{CpuSet, KernelRelease, NodeSet};

use crate::support::Support;

/// Known facts about this process and this machine. `None`: not known; then no conclusion is drawn from it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Circumstances {
    /// `uname -r`.
    pub release: Option<KernelRelease>,
    /// Nodes that are online: `/sys/devices/system/node/online`.
    pub online_nodes: Option<NodeSet>,
    /// Nodes that have memory: `/sys/devices/system/node/has_memory`.
    pub memory_nodes: Option<NodeSet>,
    /// Nodes that the cpuset allows: `Mems_allowed_list` in `/proc/self/status`.
    pub allowed_nodes: Option<NodeSet>,
    /// CPUs that are online: `/sys/devices/system/cpu/online`.
    pub online_cpus: Option<CpuSet>,
    /// CPUs that the cpuset allows: `cpuset.cpus.effective` of the process's cgroup. (The line
    /// `Cpus_allowed_list` in `/proc/self/status` is narrower: it is what the thread is bound to.)
    pub allowed_cpus: Option<CpuSet>,
    /// `Seccomp` in `/proc/self/status`.
    pub seccomp: Option<SeccompMode>,
    /// Whether `CapEff` in `/proc/self/status` has `CAP_SYS_NICE`, bit 23.
    pub sys_nice: Option<bool>,
    /// Whether `NoNewPrivs` in `/proc/self/status` is 1.
    pub no_new_privileges: Option<bool>,
    /// Whether the process is in a user namespace other than the first: `/proc/self/uid_map` is
    /// not the one line that maps every user to itself.
    pub user_namespace: Option<bool>,
    /// The container that the process is in, where something shows it.
    pub container: Option<Container>,
    /// Which calls work here at all: [`Support::probe`].
    pub support: Option<Support>,
}

/// The kind of filter on a process's system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SeccompMode {
    Off,
    /// `read`, `write`, `_exit` and `sigreturn` alone.
    Strict,
    /// A program that decides per call.
    Filter,
}

impl SeccompMode {
    /// The mode with this number in `/proc/PID/status`.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Off, Self::Strict, Self::Filter].into_iter().nth(usize::try_from(number).ok()?)
    }
}

/// The manager that starts the process and gives it its filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Container {
    /// `docker`, and `containerd` by hand (`nerdctl`).
    Docker,
    /// `podman`, and others that use its profile (`buildah`, CRI-O).
    Podman,
    Kubernetes,
    SystemdService,
    /// `systemd-nspawn`.
    Nspawn,
    Lxc,
}

impl Container {
    /// The container with this name in the environment variable `container` of its first process,
    /// as systemd's container interface defines it; `None` for one that is not known here.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "docker" => Some(Self::Docker),
            "podman" => Some(Self::Podman),
            "kube" | "kubernetes" => Some(Self::Kubernetes),
            "systemd-nspawn" => Some(Self::Nspawn),
            "lxc" | "lxc-libvirt" => Some(Self::Lxc),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_containers_are_read_as_the_kernel_and_systemd_write_them() {
        assert_eq!(SeccompMode::from_number(2), Some(SeccompMode::Filter));
        assert_eq!(SeccompMode::from_number(3), None);
        assert_eq!(Container::from_word("systemd-nspawn"), Some(Container::Nspawn));
        assert_eq!(Container::from_word("wsl"), None);
    }
}
