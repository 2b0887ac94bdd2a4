//! Calls as numbers: what the kernel answers to any arguments, before it does anything.
//!
//! ```text
//! calls::check(&call, &caller) -> Ok(()), or the errno
//! ```
//!
//! A program that goes through a library has its arguments checked there; one that calls the kernel itself may
//! pass what it likes. What an accepted call does is in [`crate::policy::set`], [`crate::migrate`] and
//! [`super::task`].
//!
//! # Source
//! `kernel_set_mempolicy`, `kernel_mbind`, `do_get_mempolicy`, `sys_set_mempolicy_home_node` and
//! `kernel_migrate_pages` in `mm/mempolicy.c`, `kernel_move_pages` in `mm/migrate.c`; 5.15 to at least 7.2.
//! Seen on 6.12 and 6.18, but for cpusets of other processes.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use nodewise_machine::{NodeId, NodeSet, PolicyMode};

use crate::errno::Errno;
use crate::migrate::{check_migration, check_move};
use crate::policy::mask::Mask;
use crate::policy::set::{Policy, Scope, check_home, mode_of};
use crate::ram::{Architecture, PAGE};

/// `MPOL_MF_STRICT`, of `mbind(2)`.
pub const STRICT: u32 = 1;
/// `MPOL_MF_MOVE`, of `mbind(2)` and `move_pages(2)`.
pub const MOVE: u32 = 2;
/// `MPOL_MF_MOVE_ALL`, of both.
pub const MOVE_ALL: u32 = 4;
/// `MPOL_F_NODE`, of `get_mempolicy(2)`.
pub const NODE: u64 = 1;
/// `MPOL_F_ADDR`.
pub const ADDR: u64 = 2;
/// `MPOL_F_MEMS_ALLOWED`.
pub const MEMS_ALLOWED: u64 = 4;

/// The process that a call is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Process {
    Own,
    Missing,
    Other {
        /// The nodes that its cpuset allows.
        allowed: NodeSet,
        /// Whether the caller may look into it (`ptrace(2)`).
        is_open: bool,
    },
}

/// A call with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `set_mempolicy(2)`.
    SetPolicy { mode: u32, mask: Mask },
    /// `mbind(2)`. Of the mode the kernel looks at 32 bits only.
    Bind {
        address: u64,
        /// How many bytes.
        length: u64,
        /// Mode and flags of the policy.
        mode: u32,
        mask: Mask,
        /// Flags that say what is to happen to pages that are there.
        flags: u32,
    },
    /// `get_mempolicy(2)`, whose pointers may be written to.
    GetPolicy {
        /// Whether there is a pointer for a mask.
        has_mask: bool,
        maxnode: u64,
        address: u64,
        flags: u64,
    },
    /// `set_mempolicy_home_node(2)`.
    SetHome {
        address: u64,
        /// How many bytes.
        length: u64,
        node: u64,
        flags: u64,
    },
    /// `migrate_pages(2)`.
    Migrate {
        /// Whose pages.
        process: Process,
        old: Mask,
        new: Mask,
    },
    /// `move_pages(2)`, whose lists can be read and written to.
    Move {
        /// Whose pages.
        process: Process,
        /// The node of each page; `None` for a null pointer, which asks where they are.
        nodes: Option<Vec<i32>>,
        /// Which pages may move.
        flags: u32,
    },
}

/// Memory that the caller has mapped, as the kernel keeps it: what lies side by side and is alike is one, so that
/// there are as many as lines in `/proc/self/numa_maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its addresses; whole pages.
    pub bytes: Range<u64>,
    /// The policy of its own, if it has one.
    pub policy: Option<Policy>,
    /// The node of each page that is there, by its address.
    pub pages: BTreeMap<u64, NodeId>,
}

impl Mapping {
    /// Whether a page that is there and among these bytes is outside some nodes.
    fn has_outside(&self, bytes: &Range<u64>, nodes: &NodeSet) -> bool {
        self.pages.iter().any(|(address, node)| bytes.contains(address) && !nodes.contains(*node))
    }
}

/// Who calls, and where.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Its cpuset, and which kernel.
    pub scope: Scope<'a>,
    /// The architecture it is built for: addresses of arm64 may carry a tag.
    pub architecture: Architecture,
    pub online: &'a NodeSet,
    pub with_memory: &'a NodeSet,
    /// Nodes that can be: the number behind the highest of `/sys/devices/system/node/possible`.
    pub nr_node_ids: u32,
    /// Whether the caller has `CAP_SYS_NICE`.
    pub is_privileged: bool,
    pub policy: &'a Policy,
    /// Its mappings, in the order of the addresses.
    pub mappings: &'a [Mapping],
}

/// Whether the kernel takes a call.
///
/// # Errors
/// What it answers otherwise. A call that is refused on its way through several pages or mappings has changed
/// those before.
pub fn check(call: &Call, caller: &Caller<'_>) -> Result<(), Errno> {
    match call {
        Call::SetPolicy { mode, mask } => Policy::set(*mode, mask, caller.scope).map(|_| ()),
        Call::Bind { address, length, mode, mask, flags } => {
            caller.bind(*address, *length, *mode, mask, *flags)
        }
        Call::GetPolicy { has_mask, maxnode, address, flags } => {
            caller.get_policy(has_mask.then_some(*maxnode), *address, *flags)
        }
        Call::SetHome { address, length, node, flags } => caller.set_home(*address, *length, *node, *flags),
        Call::Migrate { process, old, new } => caller.migrate(process, old, new),
        Call::Move { process, nodes, flags } => caller.move_pages(process, nodes.as_deref(), *flags),
    }
}

/// The bytes of an address and a length, in whole pages; `None` where there are none.
///
/// # Errors
/// `EINVAL` for an address within a page, and for an end beyond all addresses.
fn bytes(address: u64, length: u64) -> Result<Option<Range<u64>>, Errno> {
    if address % PAGE != 0 {
        return Err(Errno::Einval);
    }
    // A length within a page of the largest number comes out as 0.
    let length = length.checked_next_multiple_of(PAGE).unwrap_or(0);
    let end = address.checked_add(length).ok_or(Errno::Einval)?;
    Ok((length > 0).then_some(address..end))
}

impl Caller<'_> {
    /// An address without its tag: arm64 passes over the highest byte of programs' addresses.
    ///
    /// # Source
    /// `untagged_addr` in `arch/arm64/include/asm/uaccess.h`; seen on 6.12.
    fn untagged(&self, address: u64) -> u64 {
        const KERNELS_HALF: u64 = 1 << 55;
        match self.architecture {
            Architecture::Arm if address & KERNELS_HALF == 0 => address & (u64::MAX >> 8),
            _ => address,
        }
    }

    fn bind(&self, address: u64, length: u64, mode: u32, mask: &Mask, flags: u32) -> Result<(), Errno> {
        let mode = mode_of(mode, self.scope.release)?;
        let asked = mask.read(self.scope.max_nodes)?;
        if flags & !(STRICT | MOVE | MOVE_ALL) != 0 {
            return Err(Errno::Einval);
        }
        self.may_move_all(flags)?;
        let Some(bytes) = bytes(self.untagged(address), length)? else { return Ok(()) };
        let policy = Policy::made(mode, asked.clone(), self.scope)?;
        let takes_away = policy.mode == PolicyMode::Default;
        if takes_away {
            // Holes do not matter, as long as anything is mapped, and nothing can be outside.
            return self.within(&bytes).next().map(|_| ()).ok_or(Errno::Efault);
        }
        let is_strict = flags & (STRICT | MOVE | MOVE_ALL) == STRICT;
        let mut mappings = self.within(&bytes).peekable();
        if mappings.peek().is_none_or(|first| first.bytes.start > bytes.start) {
            return Err(Errno::Efault);
        }
        // Mapping after mapping, each looked at for what is behind it and then for its pages.
        while let Some(mapping) = mappings.next() {
            let next = mappings.peek().map_or(bytes.end, |next| next.bytes.start);
            if mapping.bytes.end < next {
                return Err(Errno::Efault);
            }
            if is_strict && mapping.has_outside(&bytes, &asked) {
                return Err(Errno::Eio);
            }
        }
        Ok(())
    }

    fn get_policy(&self, maxnode: Option<u64>, address: u64, flags: u64) -> Result<(), Errno> {
        let address = self.untagged(address);
        if maxnode.is_some_and(|maxnode| maxnode < u64::from(self.nr_node_ids)) {
            return Err(Errno::Einval);
        }
        let combines = flags & MEMS_ALLOWED != 0 && flags & (NODE | ADDR) != 0;
        if flags & !(NODE | ADDR | MEMS_ALLOWED) != 0 || combines {
            return Err(Errno::Einval);
        }
        if flags & MEMS_ALLOWED == 0 {
            if flags & ADDR != 0 {
                let page = address..address.saturating_add(1);
                self.within(&page).next().ok_or(Errno::Efault)?;
            } else if address != 0 {
                return Err(Errno::Einval);
            } else if flags & NODE != 0 {
                // Whose turn is next.
                match self.policy.mode {
                    PolicyMode::Interleave | PolicyMode::WeightedInterleave => {}
                    _ => return Err(Errno::Einval),
                }
            }
        }
        // Bits behind the last node are written as zeros, no more than a page of them.
        // The largest number is rounded up to 0.
        let written = |maxnode: u64| maxnode.wrapping_sub(1).checked_next_multiple_of(64).unwrap_or(0) / 8;
        let known = u64::from(self.nr_node_ids).div_ceil(64) * 8;
        match maxnode.map(written) {
            Some(written) if written > known && written > PAGE => Err(Errno::Einval),
            _ => Ok(()),
        }
    }

    fn set_home(&self, address: u64, length: u64, node: u64, flags: u64) -> Result<(), Errno> {
        check_home(node, self.online, self.scope.release)?;
        if flags != 0 {
            return Err(Errno::Einval);
        }
        let Some(bytes) = bytes(self.untagged(address), length)? else { return Ok(()) };
        let mut answer = Err(Errno::Enoent);
        for policy in self.within(&bytes).filter_map(|mapping| mapping.policy.as_ref()) {
            if !policy.mode.has_home() {
                return Err(Errno::Eopnotsupp);
            }
            answer = Ok(());
        }
        answer
    }

    fn migrate(&self, process: &Process, old: &Mask, new: &Mask) -> Result<(), Errno> {
        old.read(self.scope.max_nodes)?;
        let new = new.read(self.scope.max_nodes)?;
        let allowed = self.mems_of(process)?;
        if !new.is_subset(allowed) && !self.is_privileged {
            return Err(Errno::Eperm);
        }
        check_migration(&new, self.scope.allowed)
    }

    fn move_pages(&self, process: &Process, nodes: Option<&[i32]>, flags: u32) -> Result<(), Errno> {
        if flags & !(MOVE | MOVE_ALL) != 0 {
            return Err(Errno::Einval);
        }
        self.may_move_all(flags)?;
        let allowed = self.mems_of(process)?;
        for node in nodes.unwrap_or_default() {
            let node = u32::try_from(*node).map_err(|_| Errno::Enodev)?;
            check_move(NodeId::new(node), self.with_memory, allowed)?;
        }
        Ok(())
    }

    fn may_move_all(&self, flags: u32) -> Result<(), Errno> {
        if flags & MOVE_ALL != 0 && !self.is_privileged { Err(Errno::Eperm) } else { Ok(()) }
    }

    /// The nodes that the cpuset of a process allows.
    fn mems_of<'a>(&'a self, process: &'a Process) -> Result<&'a NodeSet, Errno> {
        match process {
            Process::Own => Ok(self.scope.allowed),
            Process::Missing => Err(Errno::Esrch),
            Process::Other { is_open: false, .. } => Err(Errno::Eperm),
            Process::Other { allowed, .. } => Ok(allowed),
        }
    }

    /// Mappings that have any of these bytes.
    fn within<'a>(&'a self, bytes: &'a Range<u64>) -> impl Iterator<Item = &'a Mapping> {
        let meets = |mapping: &&Mapping| mapping.bytes.start < bytes.end && bytes.start < mapping.bytes.end;
        self.mappings.iter().filter(meets)
    }
}
