//! The number of files that this process may hold open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that are left to the rest of the program.
const LEFT: u64 = 256;

/// Raises the soft limit of open files to the hard one; returns how many the sampler may hold open.
pub(super) fn raise() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let soft = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    soft.map_or(usize::MAX, |soft| usize::try_from(soft.saturating_sub(LEFT)).unwrap_or(usize::MAX))
}
