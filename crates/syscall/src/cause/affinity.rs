//! Why a thread could not be bound to CPUs.

use nodewise_machine::CpuSet;

use super::circumstances::Circumstances;
use super::pages::gone;
use super::{Finding, Limit, verb};
use crate::call::{Task, these};
use crate::error::Errno;

/// `sched_setaffinity(2)`.
pub(super) fn set(task: Task, cpus: &CpuSet, errno: Errno, circumstances: &Circumstances) -> Option<Finding> {
    match errno {
        Errno::EINVAL => none_usable(task, cpus, circumstances),
        Errno::EPERM => Some(
            Finding::new(Limit::Privilege, format!("{task} belongs to another user"))
                .mend("run as its user, or as root (CAP_SYS_NICE)"),
        ),
        Errno::ESRCH => Some(gone(task)),
        Errno::ENOMEM => Some(Finding::new(Limit::Memory, "the kernel has no memory left for itself")),
        _ => None,
    }
}

/// `sched_getaffinity(2)`.
pub(super) fn get(task: Task, errno: Errno) -> Option<Finding> {
    (errno == Errno::ESRCH).then(|| gone(task))
}

/// The kernel takes away what is offline and what the cpuset leaves out; nothing was left.
fn none_usable(task: Task, cpus: &CpuSet, circumstances: &Circumstances) -> Option<Finding> {
    if cpus.is_empty() {
        return Some(Finding::new(Limit::Arguments, "a thread needs at least one CPU"));
    }
    let mut left = cpus.clone();
    if let Some(online) = &circumstances.online_cpus {
        left = cpus.intersection(online);
        if left.is_empty() {
            let cause =
                format!("{} {} not online: {} are", these(cpus), verb(cpus, "is", "are"), these(online));
            return Some(Finding::new(Limit::NoSuchCpu, cause));
        }
    }
    // The cpuset is that of the thread, which is known only for this process.
    let allowed = circumstances.allowed_cpus.as_ref().filter(|_| task == Task::CURRENT)?;
    left.is_disjoint(allowed).then(|| {
        let are = verb(&left, "is", "are");
        let cause = format!("{} {are} outside this cpuset's {}", these(&left), these(allowed));
        Finding::new(Limit::Cpuset, cause)
            .mend("choose among these, or widen cpuset.cpus of the cgroup (containers: --cpuset-cpus)")
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;
    use crate::call::Call;

    fn eight_cpus() -> Circumstances {
        Circumstances {
            online_cpus: Some(CpuSet::from([0, 1, 2, 3, 4, 5, 6, 7])),
            allowed_cpus: Some(CpuSet::from([0, 1, 2, 3])),
            ..Circumstances::default()
        }
    }

    fn bind(cpus: CpuSet) -> Call {
        Call::SchedSetaffinity { task: Task::CURRENT, cpus }
    }

    #[test]
    fn cpus_of_which_none_can_be_used_are_named_with_their_reason() {
        let here = eight_cpus();
        check(
            bind(CpuSet::new()),
            Errno::EINVAL,
            &here,
            Limit::Arguments,
            "sched_setaffinity(self, no CPUs): a thread needs at least one CPU",
        );
        check(
            bind(CpuSet::from([8, 9])),
            Errno::EINVAL,
            &here,
            Limit::NoSuchCpu,
            "sched_setaffinity(self, CPUs 8-9): CPUs 8-9 are not online: CPUs 0-7 are",
        );
        check(
            bind(CpuSet::from([5, 9])),
            Errno::EINVAL,
            &here,
            Limit::Cpuset,
            "sched_setaffinity(self, CPUs 5,9): CPU 5 is outside this cpuset's CPUs 0-3; choose among \
             these, or widen cpuset.cpus of the cgroup (containers: --cpuset-cpus)",
        );
        check(
            bind(CpuSet::from([5])),
            Errno::EINVAL,
            &Circumstances::default(),
            Limit::Unknown,
            "sched_setaffinity(self, CPU 5): invalid argument (EINVAL)",
        );
    }

    #[test]
    fn a_foreign_thread_and_one_that_is_gone_are_told_apart() {
        let here = eight_cpus();
        let task = Task::new(42).unwrap();
        let call = || Call::SchedSetaffinity { task, cpus: CpuSet::from([0]) };
        check(
            call(),
            Errno::EPERM,
            &here,
            Limit::Privilege,
            "sched_setaffinity(pid 42, CPU 0): pid 42 belongs to another user; run as its user, or as \
             root (CAP_SYS_NICE)",
        );
        check(
            call(),
            Errno::ESRCH,
            &here,
            Limit::Gone,
            "sched_setaffinity(pid 42, CPU 0): pid 42 has ended, or is not visible from here",
        );
        check(
            Call::SchedGetaffinity { task },
            Errno::ESRCH,
            &here,
            Limit::Gone,
            "sched_getaffinity(pid 42): pid 42 has ended, or is not visible from here",
        );
        check(
            call(),
            Errno::ENOMEM,
            &here,
            Limit::Memory,
            "sched_setaffinity(pid 42, CPU 0): the kernel has no memory left for itself",
        );
    }
}
