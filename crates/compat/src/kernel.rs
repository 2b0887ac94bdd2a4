//! Questions of the tools to the kernel about their own process.
//!
//! It is a trait, so that a test can say what a kernel of another machine would answer, and a
//! capture what it holds.

use nodewise_machine::{CpuSet, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_source::facts;
use nodewise_source::tree::Tree;
use nodewise_syscall::error::ReadError;
use nodewise_syscall::{Errno, Setup, Support, Task, affinity, mempolicy};

use crate::release::Release;

/// The kernel, as the calling process sees it.
pub trait Kernel {
    /// The nodes that its cpuset allows.
    ///
    /// # Errors
    /// A refused call.
    fn allowed_nodes(&self) -> Result<NodeSet, Errno>;

    /// The CPUs that it may run on now.
    ///
    /// # Errors
    /// A refused call.
    fn cpus(&self) -> Result<CpuSet, Errno>;

    /// Sets the CPUs that it may run on.
    ///
    /// # Errors
    /// A refused call.
    fn set_cpus(&self, cpus: &CpuSet) -> Result<(), Errno>;

    /// Its memory policy; `None` for a mode that is newer than this program.
    ///
    /// # Errors
    /// A refused call.
    fn policy(&self) -> Result<Option<MemPolicy>, Errno>;

    /// Sets its memory policy.
    ///
    /// # Errors
    /// A refused call.
    fn set_policy(&self, policy: &MemPolicy) -> Result<(), Errno>;

    /// The node of its next interleaved page.
    ///
    /// # Errors
    /// A refused call; `EINVAL` unless the policy interleaves.
    fn next_interleaved(&self) -> Result<NodeId, Errno>;

    /// Whether a mode can be set.
    fn has_mode(&self, mode: PolicyMode) -> bool;

    /// Becomes another program; comes back when that cannot be.
    fn execute(&self, program: &std::ffi::OsStr, args: &[std::ffi::OsString]) -> std::io::Error;
}

/// Whether the policy calls work, as a release understands it: 2.0.16 only looks whether the kernel has
/// them, and takes a filter's "not permitted" for a yes.
pub fn numa_is_available(kernel: &dyn Kernel, release: Release) -> bool {
    match kernel.allowed_nodes() {
        Ok(_) => true,
        Err(errno) => release == Release::V2_0_16 && errno != Errno::ENOSYS,
    }
}

/// The running kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Running;

impl Kernel for Running {
    fn allowed_nodes(&self) -> Result<NodeSet, Errno> {
        mempolicy::allowed_nodes().map_err(|error| error.errno)
    }

    fn cpus(&self) -> Result<CpuSet, Errno> {
        affinity::cpus(Task::CURRENT).map_err(|error| error.errno)
    }

    fn set_cpus(&self, cpus: &CpuSet) -> Result<(), Errno> {
        affinity::set_cpus(Task::CURRENT, cpus).map_err(|error| error.errno)
    }

    fn policy(&self) -> Result<Option<MemPolicy>, Errno> {
        match mempolicy::thread_policy() {
            Ok(policy) => Ok(Some(policy)),
            Err(ReadError::Call(error)) => Err(error.errno),
            Err(_) => Ok(None),
        }
    }

    fn set_policy(&self, policy: &MemPolicy) -> Result<(), Errno> {
        mempolicy::set_thread_policy(policy).map_err(|error| error.errno)
    }

    fn next_interleaved(&self) -> Result<NodeId, Errno> {
        mempolicy::next_interleaved_node().map_err(|error| error.errno)
    }

    fn has_mode(&self, mode: PolicyMode) -> bool {
        Support::probe().mode(mode).is_present()
    }

    fn execute(&self, program: &std::ffi::OsStr, args: &[std::ffi::OsString]) -> std::io::Error {
        let mut command = std::process::Command::new(program);
        command.args(args);
        Setup::new().exec(command).into()
    }
}

/// The facts in a capture about the process that made it. Nothing can be set there.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'t>(pub &'t Tree);

impl Kernel for Captured<'_> {
    /// Of a capture without the process's own status every node is allowed.
    fn allowed_nodes(&self) -> Result<NodeSet, Errno> {
        let own = facts::allowed(self.0).ok().and_then(|allowed| allowed.nodes);
        let there = facts::nodes(self.0).unwrap_or_default();
        Ok(own.map_or_else(|| there.clone(), |own| own.intersection(&there)))
    }

    fn cpus(&self) -> Result<CpuSet, Errno> {
        let own = facts::allowed(self.0).ok().and_then(|allowed| allowed.cpus);
        let there = facts::present_cpus(self.0).ok().flatten();
        Ok(match (own, there) {
            (Some(own), Some(there)) => own.intersection(&there),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => CpuSet::new(),
        })
    }

    fn set_cpus(&self, _: &CpuSet) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn policy(&self) -> Result<Option<MemPolicy>, Errno> {
        Ok(Some(MemPolicy::DEFAULT))
    }

    fn set_policy(&self, _: &MemPolicy) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn next_interleaved(&self) -> Result<NodeId, Errno> {
        Err(Errno::EINVAL)
    }

    fn has_mode(&self, _: PolicyMode) -> bool {
        true
    }

    fn execute(&self, _: &std::ffi::OsStr, _: &[std::ffi::OsString]) -> std::io::Error {
        std::io::Error::from(std::io::ErrorKind::Unsupported)
    }
}
