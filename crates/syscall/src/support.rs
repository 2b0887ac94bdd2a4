//! Which of the calls and modes work here, found out without changing anything.
//!
//! Each call is made with arguments that do nothing: an empty range, no pages, a mode that cannot
//! be set because its mask cannot be read. The kernel's answer shows whether it has the call, and
//! whether something in between (a seccomp filter) took it away.

use std::fmt;

use nodewise_machine::{ModeFlags, PolicyMode};

use crate::call::Call;
use crate::error::Errno;
use crate::raw;

/// Whether a call or a mode can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Availability {
    Present,
    /// This kernel does not have it: it is too old, or was built without it; or a filter says so.
    Absent,
    /// Refused before the kernel looked at it, with this error: by a seccomp filter.
    Blocked(Errno),
    /// The answer was one that the kernel does not give here: a system that imitates Linux.
    Unclear,
}

impl Availability {
    /// The meaning of an answer when success and the `expected` error both mean that the call works.
    fn of_call<T>(answer: Result<T, Errno>, expected: Errno) -> Self {
        match answer {
            Ok(_) => Self::Present,
            Err(errno) if errno == expected => Self::Present,
            Err(Errno::ENOSYS) => Self::Absent,
            Err(errno @ (Errno::EPERM | Errno::EACCES)) => Self::Blocked(errno),
            Err(_) => Self::Unclear,
        }
    }

    /// Whether the call works.
    pub const fn is_present(self) -> bool {
        matches!(self, Self::Present)
    }
}

impl fmt::Display for Availability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present => f.write_str("present"),
            Self::Absent => f.write_str("absent"),
            Self::Blocked(errno) => write!(f, "blocked ({errno})"),
            Self::Unclear => f.write_str("unclear"),
        }
    }
}

/// The calls and features that this kernel offers this thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// `get_mempolicy(2)`.
    pub get_mempolicy: Availability,
    /// `set_mempolicy(2)`.
    pub set_mempolicy: Availability,
    /// `mbind(2)`.
    pub mbind: Availability,
    /// `set_mempolicy_home_node(2)`, Linux 5.17.
    pub home_node: Availability,
    /// `migrate_pages(2)`.
    pub migrate_pages: Availability,
    /// `move_pages(2)`.
    pub move_pages: Availability,
    /// `sched_setaffinity(2)`.
    pub set_affinity: Availability,
    /// `prctl(2)` with `PR_GET_THP_DISABLE`, Linux 3.15.
    pub transparent_huge: Availability,
    /// Every mode, in the order of [`PolicyMode::ALL`].
    pub modes: [Availability; PolicyMode::ALL.len()],
    /// The flag `MPOL_F_NUMA_BALANCING` on `Bind`, Linux 5.12.
    pub balancing_bind: Availability,
    /// The flag `MPOL_F_NUMA_BALANCING` on `PreferredMany`, Linux 6.10.
    pub balancing_preferred_many: Availability,
}

impl Support {
    /// Asks the kernel. Costs about twenty system calls; changes nothing; keeps nothing, because a
    /// filter may come later.
    pub fn probe() -> Self {
        let set_mempolicy = Availability::of_call(raw::set_mempolicy(NO_SUCH_MODE, &[]), Errno::EINVAL);
        let modes_can_be_asked = modes_can_be_asked(set_mempolicy);
        let mode = |mode: PolicyMode, flags: ModeFlags| match modes_can_be_asked {
            Availability::Present => policy_mode(i32::from(mode.number() | flags.bits())),
            reason => reason,
        };
        Self {
            get_mempolicy: Availability::of_call(raw::get_mempolicy(&mut [], 0, 0), Errno::EINVAL),
            set_mempolicy,
            mbind: Availability::of_call(raw::mbind(0, 0, 0, &[], 0), Errno::EINVAL),
            // An empty range: 0, or EINVAL where node 0 is not online.
            home_node: Availability::of_call(raw::set_mempolicy_home_node(0, 0, 0), Errno::EINVAL),
            // No targets: EINVAL.
            migrate_pages: Availability::of_call(raw::migrate_pages(0, &[], &[]), Errno::EINVAL),
            move_pages: Availability::of_call(raw::locate_pages(0, &[], &mut []), Errno::EINVAL),
            set_affinity: Availability::of_call(raw::sched_setaffinity(NO_SUCH_THREAD, &[0]), Errno::ESRCH),
            transparent_huge: transparent_huge(),
            modes: PolicyMode::ALL.map(|known| mode(known, ModeFlags::NONE)),
            balancing_bind: mode(PolicyMode::Bind, ModeFlags::NUMA_BALANCING),
            balancing_preferred_many: mode(PolicyMode::PreferredMany, ModeFlags::NUMA_BALANCING),
        }
    }

    /// Whether a mode can be set.
    pub fn mode(&self, mode: PolicyMode) -> Availability {
        self.modes[usize::from(mode.number())]
    }

    /// Whether the flag `MPOL_F_NUMA_BALANCING` can be set with a mode.
    pub fn balancing(&self, mode: PolicyMode) -> Availability {
        match mode {
            PolicyMode::Bind => self.balancing_bind,
            PolicyMode::PreferredMany => self.balancing_preferred_many,
            _ => Availability::Absent,
        }
    }

    /// Whether the system call of a failed call works at all; `None` for one that is not probed.
    pub fn availability(&self, call: &Call) -> Option<Availability> {
        match call {
            Call::SetMempolicy { .. } => Some(self.set_mempolicy),
            Call::GetMempolicy { .. } => Some(self.get_mempolicy),
            Call::Mbind { .. } => Some(self.mbind),
            Call::SetHomeNode { .. } => Some(self.home_node),
            Call::MigratePages { .. } => Some(self.migrate_pages),
            Call::MovePages { .. } => Some(self.move_pages),
            Call::SchedSetaffinity { .. } => Some(self.set_affinity),
            Call::SetThpDisable { .. } | Call::GetThpDisable => Some(self.transparent_huge),
            Call::SchedGetaffinity { .. }
            | Call::Getcpu
            | Call::Mmap { .. }
            | Call::Madvise { .. }
            | Call::Wait4 { .. } => None,
        }
    }
}

/// A mode that no kernel has: all twelve bits below the flags.
const NO_SUCH_MODE: i32 = 0xfff;

/// A thread id that no kernel gives out: the limit is 2^22 (`PID_MAX_LIMIT`).
const NO_SUCH_THREAD: i32 = i32::MAX;

/// Whether `set_mempolicy(2)` distinguishes modes that exist from others, or why not.
///
/// The kernel has always looked at the mode first (`EINVAL`) and then read the mask (`EFAULT`). A
/// system that answers `EFAULT` for a mode that does not exist reads the mask first, and then no
/// answer says anything about modes.
fn modes_can_be_asked(set_mempolicy: Availability) -> Availability {
    match (set_mempolicy, raw::set_mempolicy_without_a_mask(NO_SUCH_MODE)) {
        (Availability::Present, Err(Errno::EINVAL)) => Availability::Present,
        (Availability::Present, _) => Availability::Unclear,
        (reason, _) => reason,
    }
}

/// Whether `set_mempolicy(2)` knows a mode with its flags: a mask that cannot be read shows how far
/// the call got, and nothing is ever set.
fn policy_mode(mode: i32) -> Availability {
    match raw::set_mempolicy_without_a_mask(mode) {
        Err(Errno::EFAULT) => Availability::Present,
        Err(Errno::EINVAL) => Availability::Absent,
        _ => Availability::Unclear,
    }
}

fn transparent_huge() -> Availability {
    match raw::get_thp_disable() {
        // Kernels before 3.15 answer an unknown prctl with EINVAL.
        Err(Errno::EINVAL) => Availability::Absent,
        answer => Availability::of_call(answer, Errno::EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_absent_from_blocked() {
        for (answer, expected) in [
            (Ok(()), Availability::Present),
            (Err(Errno::EINVAL), Availability::Present),
            (Err(Errno::ENOSYS), Availability::Absent),
            (Err(Errno::EPERM), Availability::Blocked(Errno::EPERM)),
            (Err(Errno::EACCES), Availability::Blocked(Errno::EACCES)),
            (Err(Errno::ENOMEM), Availability::Unclear),
        ] {
            assert_eq!(Availability::of_call(answer, Errno::EINVAL), expected);
        }
        assert_eq!(Availability::Blocked(Errno::EPERM).to_string(), "blocked (operation not permitted)");
    }
}
