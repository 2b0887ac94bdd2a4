//! Calls that never reached the kernel's own rules: taken away by a filter, or not there at all.

use super::circumstances::{Circumstances, Container, SeccompMode};
use super::{Finding, Limit, too_old};
use crate::arguments::PageScope;
use crate::call::{Call, Task};
use crate::error::{CallError, Errno};
use crate::support::Availability;

/// Whether, and why, the call did not get as far as its arguments.
pub(super) fn finding(error: &CallError, circumstances: &Circumstances) -> Option<Finding> {
    match error.errno {
        Errno::ENOSYS => Some(absent(&error.call, circumstances)),
        Errno::EPERM | Errno::EACCES => refused(error, circumstances),
        _ => None,
    }
}

/// `ENOSYS`: the kernel does not have the call, or a filter says so. Podman's profile answers it
/// for every call that it does not list.
fn absent(call: &Call, circumstances: &Circumstances) -> Finding {
    if let Call::SetHomeNode { .. } = call {
        let old = too_old("set_mempolicy_home_node", (5, 17), false, circumstances);
        if let Some(old) = old {
            return old.mend("leave the home node out: allocations then start at the CPU's node");
        }
    }
    match circumstances.seccomp {
        Some(SeccompMode::Filter | SeccompMode::Strict) => filtered(call, Errno::ENOSYS, circumstances),
        Some(SeccompMode::Off) => without_numa(call),
        None => {
            let either = format!(
                "this kernel was built without {}, or a seccomp filter says that it does not exist",
                feature(call)
            );
            Finding::new(Limit::Unknown, either).mend(mend(call, circumstances))
        }
    }
}

fn without_numa(call: &Call) -> Finding {
    let cause = format!("this kernel was built without {}", feature(call));
    Finding::new(Limit::KernelBuild, cause).mend("boot a kernel that has it")
}

/// Names the feature that a kernel without the call lacks. Memory policies come with `CONFIG_NUMA`; page
/// migration needs `CONFIG_MIGRATION` as well, which every NUMA configuration selects.
fn feature(call: &Call) -> &'static str {
    match call {
        Call::SetMempolicy { .. }
        | Call::GetMempolicy { .. }
        | Call::Mbind { .. }
        | Call::SetHomeNode { .. }
        | Call::MigratePages { .. }
        | Call::MovePages { .. } => "NUMA (CONFIG_NUMA)",
        _ => "this call",
    }
}

/// `EPERM` or `EACCES`: a filter, when the call is seen to be blocked, or when the kernel itself
/// has no reason to say so.
fn refused(error: &CallError, circumstances: &Circumstances) -> Option<Finding> {
    match circumstances.support.as_ref().and_then(|support| support.availability(&error.call)) {
        Some(Availability::Blocked(_)) => {}
        Some(Availability::Present) => return None,
        Some(Availability::Absent | Availability::Unclear) | None => {
            if kernel_may_refuse(error, circumstances) {
                return None;
            }
        }
    }
    if circumstances.seccomp == Some(SeccompMode::Off) {
        let cause = format!(
            "{} although Linux allows this call to everybody and no seccomp filter is active: \
             a sandbox or a security module refuses it",
            error.errno
        );
        return Some(Finding::new(Limit::Sandbox, cause).mend("run outside of the sandbox"));
    }
    Some(filtered(&error.call, error.errno, circumstances))
}

/// Whether the kernel gives this errno by its own rules: never for one's own policy, CPUs and pages.
fn kernel_may_refuse(error: &CallError, circumstances: &Circumstances) -> bool {
    match (&error.call, error.errno) {
        (Call::Mbind { options, .. }, _) => options.moving == Some(PageScope::All),
        (Call::MovePages { .. }, Errno::EACCES) => true,
        (Call::MovePages { task, targets, .. }, _) => {
            *task != Task::CURRENT || targets.as_ref().is_some_and(|(_, scope)| *scope == PageScope::All)
        }
        (Call::MigratePages { task, to, .. }, _) => {
            let allowed = circumstances.allowed_nodes.as_ref();
            *task != Task::CURRENT || !allowed.is_some_and(|allowed| to.is_subset(allowed))
        }
        (Call::SchedSetaffinity { task, .. } | Call::SchedGetaffinity { task }, _) => *task != Task::CURRENT,
        (Call::Mmap { .. } | Call::Madvise { .. } | Call::Wait4 { .. } | Call::Getcpu, _) => true,
        (
            Call::SetMempolicy { .. }
            | Call::GetMempolicy { .. }
            | Call::SetHomeNode { .. }
            | Call::SetThpDisable { .. }
            | Call::GetThpDisable,
            _,
        ) => false,
    }
}

fn filtered(call: &Call, errno: Errno, circumstances: &Circumstances) -> Finding {
    let answer = errno.name().unwrap_or("an error");
    let cause = format!("a seccomp filter answers {} with {answer}", call.name());
    Finding::new(Limit::Seccomp, cause).mend(mend(call, circumstances))
}

/// The condition under which a profile lets a call through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// Docker's and containerd's default profiles allow it with `CAP_SYS_NICE` (moby#37242,
    /// containerd#7167; the home node since moby#47341).
    SysNice,
    /// They never allow it: it is on no list of theirs.
    Closed,
}

fn gate(call: &Call, circumstances: &Circumstances) -> Gate {
    // Where the capability is there already, the profile is not the default one.
    if circumstances.sys_nice == Some(true) {
        return Gate::Closed;
    }
    match call {
        Call::SetMempolicy { .. }
        | Call::GetMempolicy { .. }
        | Call::Mbind { .. }
        | Call::SetHomeNode { .. } => Gate::SysNice,
        _ => Gate::Closed,
    }
}

/// The line that lets the call through.
fn mend(call: &Call, circumstances: &Circumstances) -> String {
    let name = call.name();
    match (circumstances.container, gate(call, circumstances)) {
        (Some(Container::Docker), Gate::SysNice) => {
            "start the container with: docker run --cap-add=SYS_NICE".to_owned()
        }
        (Some(Container::Docker), Gate::Closed) => format!(
            "start the container with: docker run --security-opt seccomp=PROFILE.json, \
             a copy of the default profile that allows {name} (or seccomp=unconfined)"
        ),
        (Some(Container::Kubernetes), Gate::SysNice) => {
            "add to the container: securityContext: {capabilities: {add: [\"SYS_NICE\"]}}".to_owned()
        }
        (Some(Container::Kubernetes), Gate::Closed) => format!(
            "add to the container: securityContext: {{seccompProfile: {{type: Localhost, \
             localhostProfile: PROFILE.json}}}}, a profile that allows {name} (or type: Unconfined)"
        ),
        // Podman's profile of today lists the policy calls for everybody, but neither
        // move_pages nor migrate_pages, and set_mempolicy_home_node in no release up to 0.50 of
        // containers-common (Debian 12); older ones gated the policy calls as docker does.
        (Some(Container::Podman), Gate::SysNice) => format!(
            "start the container with: podman run --cap-add=SYS_NICE, and where that is not enough \
             --security-opt seccomp=PROFILE.json, a profile that allows {name}"
        ),
        (Some(Container::Podman), Gate::Closed) => format!(
            "start the container with: podman run --security-opt seccomp=PROFILE.json, \
             a copy of its profile that allows {name} (or seccomp=unconfined)"
        ),
        (Some(Container::SystemdService), _) => {
            format!("add to the service: SystemCallFilter={}", systemd_group(name))
        }
        (Some(Container::Nspawn), _) => {
            format!("start the container with: systemd-nspawn --system-call-filter={}", systemd_group(name))
        }
        (Some(Container::Lxc), _) => {
            format!("allow {name} in the container's profile: lxc.seccomp.profile")
        }
        (None, Gate::SysNice) => "in a container add the capability SYS_NICE (docker or podman run \
             --cap-add=SYS_NICE; Kubernetes securityContext: {capabilities: {add: [\"SYS_NICE\"]}}); \
             in a systemd service set SystemCallFilter=@resources get_mempolicy"
            .to_owned(),
        (None, Gate::Closed) => format!(
            "allow {name} in the filter (docker or podman run --security-opt seccomp=PROFILE.json; \
             in a systemd service SystemCallFilter=@resources)"
        ),
    }
}

/// The name under which systemd lists a call (`systemd-analyze syscall-filter @resources`).
fn systemd_group(name: &str) -> &str {
    match name {
        "mbind"
        | "migrate_pages"
        | "move_pages"
        | "sched_setaffinity"
        | "set_mempolicy"
        | "set_mempolicy_home_node" => "@resources",
        other => other,
    }
}

#[cfg(test)]
mod tests;
