//! A kernel that answers as that of the recording machine did.

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::io;

use nodewise_compat::kernel::Kernel;
use nodewise_machine::{CpuSet, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_syscall::Errno;

/// A process on a machine: what it may use, and what it has set.
pub struct Scripted {
    pub nodes: NodeSet,
    pub cpus: RefCell<CpuSet>,
    pub policy: RefCell<MemPolicy>,
    /// The answer of the policy calls under a filter.
    pub blocked: Option<Errno>,
    /// The command that was to be executed.
    pub executed: Cell<Option<Vec<OsString>>>,
}

impl Scripted {
    pub fn new(nodes: NodeSet, cpus: CpuSet) -> Self {
        Self {
            nodes,
            cpus: RefCell::new(cpus),
            policy: RefCell::new(MemPolicy::DEFAULT),
            blocked: None,
            executed: Cell::new(None),
        }
    }

    fn open(&self) -> Result<(), Errno> {
        self.blocked.map_or(Ok(()), Err)
    }
}

impl Kernel for Scripted {
    fn allowed_nodes(&self) -> Result<NodeSet, Errno> {
        self.open().map(|()| self.nodes.clone())
    }

    fn cpus(&self) -> Result<CpuSet, Errno> {
        Ok(self.cpus.borrow().clone())
    }

    fn set_cpus(&self, cpus: &CpuSet) -> Result<(), Errno> {
        let left = cpus.intersection(&self.cpus.borrow());
        if left.is_empty() {
            return Err(Errno::EINVAL);
        }
        *self.cpus.borrow_mut() = left;
        Ok(())
    }

    fn policy(&self) -> Result<Option<MemPolicy>, Errno> {
        self.open().map(|()| Some(self.policy.borrow().clone()))
    }

    fn set_policy(&self, policy: &MemPolicy) -> Result<(), Errno> {
        self.open()?;
        let nodes = policy.nodes.intersection(&self.nodes);
        let needs_nodes = !matches!(policy.mode, PolicyMode::Default | PolicyMode::Local);
        if needs_nodes && nodes.is_empty() {
            return Err(Errno::EINVAL);
        }
        *self.policy.borrow_mut() = MemPolicy { nodes, ..policy.clone() };
        Ok(())
    }

    fn next_interleaved(&self) -> Result<NodeId, Errno> {
        self.policy.borrow().nodes.first().ok_or(Errno::EINVAL)
    }

    fn has_mode(&self, _: PolicyMode) -> bool {
        self.blocked.is_none()
    }

    fn execute(&self, program: &OsStr, args: &[OsString]) -> io::Error {
        let words = std::iter::once(program.to_owned()).chain(args.iter().cloned()).collect();
        self.executed.set(Some(words));
        io::Error::from_raw_os_error(Errno::ENOENT.number())
    }
}
