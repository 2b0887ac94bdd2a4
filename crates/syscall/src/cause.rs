//! The explanation of an error: its cause, the limit behind it, and what would mend it.
//!
//! One number means many things: `EINVAL` from `set_mempolicy(2)` is an old kernel, a cpuset, a
//! node without memory or a wrong combination of arguments. [`explain`] distinguishes them by the
//! arguments of the call and by facts that the caller has gathered ([`Circumstances`]); it asks
//! nothing itself, so that every case is a test.

mod affinity;
mod circumstances;
mod filter;
mod memory;
mod pages;
mod policy;

use std::fmt;

use nodewise_machine::IdSet;
use nodewise_machine::id::Id;
use nodewise_machine::printable::printable;

pub use circumstances::{Circumstances, Container, SeccompMode};

use crate::call::Call;
use crate::error::{CallError, Errno};

/// The kind of limit that an error results from; the part of an [`Explanation`] for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// A seccomp filter takes the call away.
    Seccomp,
    /// Something that is neither the kernel nor a seccomp filter refuses.
    Sandbox,
    /// A capability, or the ownership of a process, is missing.
    Privilege,
    /// The cpuset leaves out the nodes or CPUs.
    Cpuset,
    /// The nodes do not exist.
    NoSuchNode,
    /// The nodes have no memory.
    NodeWithoutMemory,
    /// The CPUs do not exist or are offline.
    NoSuchCpu,
    /// The kernel is too old.
    KernelRelease,
    /// The kernel was built without the feature.
    KernelBuild,
    /// The arguments contradict each other.
    Arguments,
    /// The process, thread or child is gone.
    Gone,
    /// Nothing is mapped at the address, or nothing that the call is for.
    Address,
    /// Pages are, or stay, on other nodes.
    Misplaced,
    /// Memory, or a pool of huge pages, is exhausted.
    Memory,
    /// None of the known causes.
    Unknown,
}

/// Why a call failed, in three short texts for one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The call with its arguments.
    pub what: String,
    pub limit: Limit,
    /// Why it failed, with the limit in numbers where there is one.
    pub cause: String,
    /// Advice that would make it work; `None` where no such advice is known.
    pub mend: Option<String>,
}

impl fmt::Display for Explanation {
    /// Writes one line: `set_mempolicy(bind, node 7): node 7 does not exist: this machine has nodes
    /// 0-3`, then the advice after a semicolon.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)?;
        match &self.mend {
            Some(mend) => write!(f, "; {mend}"),
            None => Ok(()),
        }
    }
}

/// Says why a call failed.
pub fn explain(error: &CallError, circumstances: &Circumstances) -> Explanation {
    let finding = filter::finding(error, circumstances)
        .or_else(|| of_call(error, circumstances))
        .unwrap_or_else(|| unknown(error.errno));
    let Finding { limit, cause, mend } = finding;
    Explanation { what: error.call.to_string(), limit, cause, mend }
}

/// Result of a rule; the call is added by [`explain`].
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    limit: Limit,
    cause: String,
    mend: Option<String>,
}

impl Finding {
    fn new(limit: Limit, cause: impl Into<String>) -> Self {
        Self { limit, cause: cause.into(), mend: None }
    }

    fn mend(mut self, mend: impl Into<String>) -> Self {
        self.mend = Some(mend.into());
        self
    }
}

/// The kernel's own reasons, by call.
fn of_call(error: &CallError, circumstances: &Circumstances) -> Option<Finding> {
    let errno = error.errno;
    match &error.call {
        Call::SetMempolicy { policy } => policy::set(policy, errno, circumstances),
        Call::GetMempolicy { query } => policy::get(*query, errno),
        Call::Mbind { address, policy, options, .. } => {
            policy::bind(*address, policy, *options, errno, circumstances)
        }
        Call::SetHomeNode { address, node, .. } => policy::home(*address, *node, errno, circumstances),
        Call::MigratePages { task, to, .. } => pages::migrate(*task, to, errno, circumstances),
        Call::MovePages { task, targets, .. } => {
            pages::move_pages(*task, targets.as_ref(), errno, circumstances)
        }
        Call::SchedSetaffinity { task, cpus } => affinity::set(*task, cpus, errno, circumstances),
        Call::SchedGetaffinity { task } => affinity::get(*task, errno),
        Call::SetThpDisable { setting } => memory::thp(*setting, errno, circumstances),
        Call::GetThpDisable => memory::thp(crate::TransparentHuge::Allowed, errno, circumstances),
        Call::Mmap { pages, .. } => memory::map(*pages, errno),
        Call::Madvise { advice, .. } => memory::advise(*advice, errno, circumstances),
        Call::Wait4 { pid } => (errno == Errno::ECHILD).then(|| {
            Finding::new(Limit::Gone, format!("process {pid} is not a child, or was waited for already"))
        }),
        Call::Getcpu => None,
    }
}

fn unknown(errno: Errno) -> Finding {
    let name = errno.name().map_or_else(|| format!("errno {}", errno.number()), str::to_owned);
    Finding::new(Limit::Unknown, format!("{errno} ({name})"))
}

/// A feature that came with a release, and a kernel that is older, or that is known not to have it.
fn too_old(
    feature: &str,
    (major, minor): (u16, u16),
    absent: bool,
    circumstances: &Circumstances,
) -> Option<Finding> {
    let older = circumstances.release.as_ref().map(|release| !release.is_at_least(major, minor));
    let this = match (&circumstances.release, older) {
        (Some(release), Some(true)) => {
            format!(": this is {}", printable(release.text()))
        }
        // A release that should have it, on a kernel that says it has not.
        _ if absent => ": this kernel does not have it".to_owned(),
        _ => return None,
    };
    Some(Finding::new(Limit::KernelRelease, format!("{feature} needs Linux {major}.{minor} or newer{this}")))
}

/// The form of a verb that goes with a set: `is` for one member, `are` for several.
fn verb<I: Id>(set: &IdSet<I>, one: &'static str, several: &'static str) -> &'static str {
    if set.len() == 1 { one } else { several }
}

/// Whether an address cannot be the start of a page on any Linux system.
fn is_unaligned(address: usize) -> bool {
    address % 4096 != 0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Advice, BindOptions, PageKind, PageScope, PolicyQuery, Task, TransparentHuge};
    use nodewise_machine::{Bytes, CpuSet, KernelRelease, MemPolicy, NodeId, NodeSet, PolicyMode};
    use proptest::prelude::{any, prop_assert, proptest};

    /// Compares the explanation of a failed call, in one line, with the expected one.
    pub(crate) fn check(
        call: Call,
        errno: Errno,
        circumstances: &Circumstances,
        limit: Limit,
        expected: &str,
    ) {
        let explanation = explain(&CallError::new(call, errno), circumstances);
        assert_eq!(explanation.to_string(), expected);
        assert_eq!(explanation.limit, limit, "{expected}");
        let text = explanation.cause + explanation.mend.as_deref().unwrap_or("");
        assert!(!text.ends_with('.') && !text.contains('\n'), "{text}");
    }

    #[test]
    fn an_error_without_a_known_cause_is_named_and_nothing_is_made_up() {
        let nothing = Circumstances::default();
        check(Call::Getcpu, Errno::EFAULT, &nothing, Limit::Unknown, "getcpu(): bad address (EFAULT)");
        check(
            Call::Wait4 { pid: 7 },
            Errno::ECHILD,
            &nothing,
            Limit::Gone,
            "wait4(pid 7): process 7 is not a child, or was waited for already",
        );
    }

    /// One call of every kind.
    fn calls() -> Vec<Call> {
        let (address, length, nodes) = (0x1000, Bytes::MIB, NodeSet::from([0, 5]));
        let policy = MemPolicy::new(PolicyMode::Bind, nodes.clone());
        let (task, options) = (Task::CURRENT, BindOptions::default());
        vec![
            Call::SetMempolicy { policy: policy.clone() },
            Call::GetMempolicy { query: PolicyQuery::At(address) },
            Call::Mbind { address, length, policy, options },
            Call::SetHomeNode { address, length, node: NodeId::new(1) },
            Call::MigratePages { task, from: nodes.clone(), to: nodes.clone() },
            Call::MovePages { task, pages: 1, targets: None },
            Call::MovePages { task, pages: 1, targets: Some((nodes, PageScope::All)) },
            Call::SchedSetaffinity { task, cpus: CpuSet::from([3]) },
            Call::SchedGetaffinity { task },
            Call::Getcpu,
            Call::SetThpDisable { setting: TransparentHuge::OnlyAdvised },
            Call::GetThpDisable,
            Call::Mmap { length, pages: PageKind::Small },
            Call::Madvise { address, length, advice: Advice::Populate },
            Call::Wait4 { pid: 1 },
        ]
    }

    proptest! {
        #[test]
        fn any_error_of_any_call_is_explained_in_one_clean_line(
            errno in any::<i32>(),
            small in 0i32..140,
            seccomp in 0u32..4,
            release in "\\PC*",
        ) {
            let known = Circumstances {
                release: KernelRelease::new(&format!("6.1-{release}")),
                seccomp: SeccompMode::from_number(seccomp),
                online_nodes: Some(NodeSet::from([0, 1])),
                memory_nodes: Some(NodeSet::from([0])),
                allowed_nodes: Some(NodeSet::from([0, 1])),
                ..Circumstances::default()
            };
            for call in calls() {
                for errno in [errno, small] {
                    for here in [&known, &Circumstances::default()] {
                        let explanation = explain(&CallError::new(call.clone(), Errno::new(errno)), here);
                        let text = explanation.to_string();
                        prop_assert!(!explanation.cause.is_empty());
                        prop_assert!(!text.chars().any(char::is_control), "{}", text);
                    }
                }
            }
        }
    }
}
