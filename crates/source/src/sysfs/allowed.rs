//! The CPUs and nodes that the process that looked may use.

use nodewise_machine::{CpuSet, Machine, NodeSet};

use super::Reader;
use crate::limits::bound_cpus;
use crate::parse::cgroup::{self, Membership};
use crate::parse::mounts::{self, Mount};
use crate::parse::{ParseError, proc_status};

/// Fills the allowed CPUs and nodes: from the process's own status, else, in captures that were made
/// without it, from the cpuset that their process was in.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    if let Some(status) = reader.parsed("/proc/self/status", proc_status::parse) {
        machine.allowed_cpus = status.cpus_allowed.map(|mut cpus| {
            bound_cpus(&mut cpus);
            cpus
        });
        machine.allowed_nodes = status.mems_allowed;
    } else if let Some((cpus, nodes)) = from_cpuset(reader) {
        machine.allowed_cpus = cpus;
        machine.allowed_nodes = nodes;
    }
}

/// Files of a cpuset for CPUs and nodes, the effective set first: a group may be allowed more than
/// its parents.
const FILES: [(&str, &str); 4] = [
    ("cpuset.cpus.effective", "cpuset.mems.effective"),
    ("cpuset.effective_cpus", "cpuset.effective_mems"),
    ("cpuset.cpus", "cpuset.mems"),
    ("cpus", "mems"),
];

/// CPUs and nodes of the cpuset that the process is in; `None` where no cpuset is mounted.
pub(crate) fn from_cpuset(reader: &mut Reader<'_>) -> Option<(Option<CpuSet>, Option<NodeSet>)> {
    let mounts: Vec<Mount> = reader.parsed("/proc/mounts", mounts::parse)?;
    let memberships: Vec<Membership> = reader.parsed("/proc/self/cgroup", cgroup::parse).unwrap_or_default();
    let cpuset = reader.value("/proc/self/cpuset", cpuset_path).flatten();
    for mount in &mounts {
        if !holds_cpusets(reader, mount) {
            continue;
        }
        let group = cpuset.clone().or_else(|| {
            let member = memberships.iter().find(|member| {
                if mount.kind == "cgroup2" {
                    member.is_unified()
                } else {
                    member.controllers.iter().any(|name| name == "cpuset")
                }
            });
            member.map(|member| member.path.clone())
        });
        // A path that climbs belongs to a process outside of the namespace.
        let Some(group) = group.filter(|group| !group.contains("..")) else { continue };
        let root = format!("{}/{}", mount.folder, group.trim_matches('/'));
        let cpus = FILES.iter().find_map(|(file, _)| reader.cpu_list(&format!("{root}/{file}")));
        let nodes = FILES.iter().find_map(|(_, file)| reader.node_list(&format!("{root}/{file}")));
        if cpus.is_some() || nodes.is_some() {
            // An empty list in a cpuset means that of its parent.
            return Some((cpus.filter(|cpus| !cpus.is_empty()), nodes.filter(|nodes| !nodes.is_empty())));
        }
    }
    None
}

/// The path of a cpuset; `None` when the file is empty, as that of a kernel without them.
fn cpuset_path(text: &str) -> Result<Option<String>, ParseError> {
    match text.trim_end_matches('\n') {
        "" => Ok(None),
        path if path.starts_with('/') => Ok(Some(path.to_owned())),
        other => Err(ParseError::new(1, "a path", other)),
    }
}

/// Whether a mounted file system shows cpusets: the old one of its own, a version 1 hierarchy with
/// this controller, or the unified hierarchy when it has the controller.
fn holds_cpusets(reader: &mut Reader<'_>, mount: &Mount) -> bool {
    match mount.kind.as_str() {
        "cpuset" => true,
        "cgroup" => mount.has("cpuset"),
        "cgroup2" => {
            let path = format!("{}/cgroup.controllers", mount.folder);
            reader.text(&path, |text| text.split_ascii_whitespace().any(|word| word == "cpuset"))
                == Some(true)
        }
        _ => false,
    }
}
