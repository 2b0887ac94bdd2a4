//! This process: what it may do, and what contains it.

use nodewise_machine::{CpuSet, KernelRelease};

use crate::parse::proc_status::{self, ProcessStatus};
use crate::sysfs::{Detail, Reader, allowed};
use crate::tree::Tree;

/// The known facts about the process that looks. `None`: nothing says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Own {
    pub status: ProcessStatus,
    /// Whether the process is in a user namespace other than the first.
    pub user_namespace: Option<bool>,
    /// The word for what contains it, as in the container interface of systemd: `docker`, `podman`,
    /// `kubernetes`, `lxc`, `systemd-nspawn`.
    pub container: Option<String>,
    /// The CPUs that its cpuset allows, which can be more than it is bound to.
    pub cpuset_cpus: Option<CpuSet>,
}

/// Looks at the process that calls.
///
/// # Source
/// `/proc/self/status`, `/proc/self/uid_map`, `/run/systemd/container`, the files that docker and
/// podman leave at the root of a container, and the files of the cpuset.
pub fn look(tree: &Tree) -> Own {
    let mut reader = Reader::new(tree, Detail::Full);
    Own {
        status: reader.parsed("/proc/self/status", proc_status::parse).unwrap_or_default(),
        user_namespace: reader.text("/proc/self/uid_map", |text| !is_first_namespace(text)),
        container: container(tree),
        cpuset_cpus: allowed::from_cpuset(&mut reader).and_then(|(cpus, _)| cpus),
    }
}

/// The release of the running kernel.
pub fn kernel_release() -> Option<KernelRelease> {
    KernelRelease::new(&rustix::system::uname().release().to_string_lossy())
}

/// The first user namespace maps every user to itself.
fn is_first_namespace(text: &str) -> bool {
    text.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

/// Returns the word for what contains the process, by the traces that it leaves.
fn container(tree: &Tree) -> Option<String> {
    if let Ok(Some(word)) = tree.read_text("/run/systemd/container") {
        let word = word.trim();
        if !word.is_empty() {
            return Some(word.to_owned());
        }
    }
    // Kubernetes mounts this into every pod that may talk to it; its pods have docker's file too.
    let traces = [
        ("/run/secrets/kubernetes.io", "kubernetes"),
        ("/run/.containerenv", "podman"),
        ("/.dockerenv", "docker"),
    ];
    traces.into_iter().find(|(path, _)| tree.exists(path)).map(|(_, word)| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    #[test]
    fn a_user_namespace_is_told_by_its_map() {
        let namespace =
            |map: &str| look(&Tree::memory(Memory::new().file("/proc/self/uid_map", map))).user_namespace;
        assert_eq!(namespace("         0          0 4294967295\n"), Some(false));
        assert_eq!(namespace("         0       1000          1\n"), Some(true));
        assert_eq!(look(&Tree::memory(Memory::new())).user_namespace, None);
    }

    #[test]
    fn containers_are_told_by_their_traces() {
        let container = |files: Memory| look(&Tree::memory(files)).container;
        assert_eq!(container(Memory::new()), None);
        assert_eq!(container(Memory::new().file("/.dockerenv", "")).as_deref(), Some("docker"));
        assert_eq!(
            container(Memory::new().file("/.dockerenv", "").directory("/run/secrets/kubernetes.io"))
                .as_deref(),
            Some("kubernetes")
        );
        assert_eq!(container(Memory::new().file("/run/systemd/container", "lxc\n")).as_deref(), Some("lxc"));
    }

    #[test]
    fn the_cpuset_can_allow_more_than_the_binding() {
        let files = Memory::new()
            .file("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t1\n")
            .file("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
            .file("/proc/self/cgroup", "0::/job\n")
            .file("/sys/fs/cgroup/cgroup.controllers", "cpuset memory\n")
            .file("/sys/fs/cgroup/job/cpuset.cpus.effective", "0-3\n");
        let own = look(&Tree::memory(files));
        assert_eq!(own.status.cpus_allowed, Some(CpuSet::from([1])));
        assert_eq!(own.cpuset_cpus, Some(CpuSet::from([0, 1, 2, 3])));
    }
}
