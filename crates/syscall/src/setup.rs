//! A placement for a program: prepared once, applied to a thread with nothing but system calls.

pub mod start;

use std::ffi::{c_int, c_ulong};
use std::fmt;

use nodewise_machine::{CpuSet, MemPolicy, ModeFlags};

use crate::affinity::cpu_words;
use crate::arguments::thp_words;
use crate::call::{Call, Task, these};
use crate::error::{CallError, Errno};
use crate::huge::{self, TransparentHuge};
use crate::mempolicy::{FLAG_CONSTANTS, mode_constant, mode_word, node_words};
use crate::raw;

pub use start::StartError;

/// The settings to start a program with: CPUs, huge pages and memory policy, each only where given.
///
/// The masks are computed when a part is set, so that applying costs the system calls and nothing
/// else: no memory is allocated and no lock taken, which is what the moment between `fork(2)` and
/// `execve(2)` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    cpus: Option<PreparedCpus>,
    transparent_huge: Option<TransparentHuge>,
    policy: Option<PreparedPolicy>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PreparedCpus {
    cpus: CpuSet,
    words: Vec<c_ulong>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PreparedPolicy {
    policy: MemPolicy,
    mode: c_int,
    words: Vec<c_ulong>,
}

/// The parts of a setup, in the order in which they are applied: CPUs first, so that what the
/// kernel allocates from then on already counts as near the right node; the policy last, so that it
/// rules nothing but the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Cpus = 1,
    TransparentHuge = 2,
    Policy = 3,
}

impl Step {
    const ALL: [Self; 3] = [Self::Cpus, Self::TransparentHuge, Self::Policy];
}

/// Which step failed, and how; without the arguments, for they need memory to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failure {
    step: Step,
    errno: Errno,
}

impl Setup {
    /// A setup that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// With these CPUs to run on.
    #[must_use]
    pub fn with_cpus(mut self, cpus: CpuSet) -> Self {
        self.cpus = Some(PreparedCpus { words: cpu_words(&cpus), cpus });
        self
    }

    /// With this setting for transparent huge pages.
    #[must_use]
    pub fn with_transparent_huge(mut self, setting: TransparentHuge) -> Self {
        self.transparent_huge = Some(setting);
        self
    }

    /// With this memory policy.
    #[must_use]
    pub fn with_policy(mut self, policy: MemPolicy) -> Self {
        let (mode, words) = (mode_word(&policy), node_words(&policy.nodes));
        self.policy = Some(PreparedPolicy { policy, mode, words });
        self
    }

    /// The CPUs, where given.
    pub fn cpus(&self) -> Option<&CpuSet> {
        self.cpus.as_ref().map(|prepared| &prepared.cpus)
    }

    /// The setting for transparent huge pages, where given.
    pub fn transparent_huge(&self) -> Option<TransparentHuge> {
        self.transparent_huge
    }

    /// The memory policy, where given.
    pub fn policy(&self) -> Option<&MemPolicy> {
        self.policy.as_ref().map(|prepared| &prepared.policy)
    }

    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies the setup: CPUs and policy to the calling thread, huge pages to its process. One
    /// system call per part; memory is allocated only for an error.
    ///
    /// # Errors
    /// The call that failed. Earlier parts stay applied, later ones are not tried.
    pub fn apply(&self) -> Result<(), CallError> {
        self.apply_steps(&Step::ALL).map_err(|failure| self.call_error(failure))
    }

    /// The system calls in words, in their order, for a person who asked what would be done:
    /// `set_mempolicy(MPOL_BIND, nodes 0-1)`.
    pub fn describe(&self) -> Vec<String> {
        Step::ALL.into_iter().filter_map(|step| self.describe_step(step)).collect()
    }

    /// Safe to call between `fork(2)` and `execve(2)`: system calls alone.
    fn apply_steps(&self, steps: &[Step]) -> Result<(), Failure> {
        steps.iter().try_for_each(|&step| self.apply_step(step).map_err(|errno| Failure { step, errno }))
    }

    fn apply_step(&self, step: Step) -> Result<(), Errno> {
        match step {
            Step::Cpus => self
                .cpus
                .as_ref()
                .map_or(Ok(()), |cpus| raw::sched_setaffinity(Task::CURRENT.number(), &cpus.words)),
            Step::TransparentHuge => self.transparent_huge.map_or(Ok(()), |setting| {
                let (disable, flags) = huge::numbers(setting);
                raw::set_thp_disable(disable, flags)
            }),
            Step::Policy => self
                .policy
                .as_ref()
                .map_or(Ok(()), |prepared| raw::set_mempolicy(prepared.mode, &prepared.words)),
        }
    }

    /// The failed call with its arguments.
    fn call_error(&self, failure: Failure) -> CallError {
        let call = match failure.step {
            Step::Cpus => {
                Call::SchedSetaffinity { task: Task::CURRENT, cpus: self.cpus().cloned().unwrap_or_default() }
            }
            Step::TransparentHuge => {
                Call::SetThpDisable { setting: self.transparent_huge.unwrap_or(TransparentHuge::Allowed) }
            }
            Step::Policy => {
                Call::SetMempolicy { policy: self.policy().cloned().unwrap_or(MemPolicy::DEFAULT) }
            }
        };
        CallError::new(call, failure.errno)
    }

    fn describe_step(&self, step: Step) -> Option<String> {
        match step {
            Step::Cpus => self.cpus().map(|cpus| format!("sched_setaffinity({})", these(cpus))),
            Step::TransparentHuge => self
                .transparent_huge
                .map(|setting| format!("prctl(PR_SET_THP_DISABLE, {})", thp_words(setting))),
            Step::Policy => self.policy().map(|policy| format!("set_mempolicy({})", constants(policy))),
        }
    }
}

impl fmt::Display for Setup {
    /// Writes the calls of [`Setup::describe`] in one line; nothing for an empty setup.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe().join("; "))
    }
}

/// A policy in the constants of the kernel's header: `MPOL_BIND | MPOL_F_STATIC_NODES, nodes 0-1`.
fn constants(policy: &MemPolicy) -> String {
    let mut text = mode_constant(policy.mode).to_owned();
    for (flag, name) in FLAG_CONSTANTS {
        if policy.flags != ModeFlags::NONE && policy.flags.contains(flag) {
            text.push_str(" | ");
            text.push_str(name);
        }
    }
    if !policy.nodes.is_empty() {
        text.push_str(", ");
        text.push_str(&these(&policy.nodes));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{NodeSet, PolicyMode};

    fn check(setup: &Setup, expected: &[&str]) {
        assert_eq!(setup.describe(), expected);
    }

    #[test]
    fn a_setup_is_described_in_the_order_of_its_calls() {
        check(&Setup::new(), &[]);
        let policy = MemPolicy::new(PolicyMode::Bind, NodeSet::from([0, 1]));
        let setup = Setup::new()
            .with_policy(policy)
            .with_transparent_huge(TransparentHuge::Never)
            .with_cpus(CpuSet::from([0, 1, 2, 3, 8]));
        check(
            &setup,
            &[
                "sched_setaffinity(CPUs 0-3,8)",
                "prctl(PR_SET_THP_DISABLE, 1)",
                "set_mempolicy(MPOL_BIND, nodes 0-1)",
            ],
        );
    }

    #[test]
    fn flags_are_described_by_their_names_in_the_header() {
        let flags = ModeFlags::STATIC_NODES.with(ModeFlags::NUMA_BALANCING);
        let policy = MemPolicy { mode: PolicyMode::Bind, flags, nodes: NodeSet::from([2]) };
        check(
            &Setup::new().with_policy(policy),
            &["set_mempolicy(MPOL_BIND | MPOL_F_STATIC_NODES | MPOL_F_NUMA_BALANCING, node 2)"],
        );
        check(&Setup::new().with_policy(MemPolicy::DEFAULT), &["set_mempolicy(MPOL_DEFAULT)"]);
        let only_advised = Setup::new().with_transparent_huge(TransparentHuge::OnlyAdvised);
        check(&only_advised, &["prctl(PR_SET_THP_DISABLE, 1, PR_THP_DISABLE_EXCEPT_ADVISED)"]);
    }
}
