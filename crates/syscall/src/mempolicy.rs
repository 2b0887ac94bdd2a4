//! Memory policies: of the calling thread, of a range of addresses, and what they led to.

use std::ffi::{c_int, c_long, c_ulong};

use nodewise_machine::{Bytes, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};

use crate::arguments::{BindOptions, PageScope};
use crate::call::{Call, PolicyQuery};
use crate::error::{CallError, Errno, ReadError};
use crate::raw;

impl BindOptions {
    fn bits(self) -> c_int {
        let moving = self.moving.map_or(0, PageScope::bits);
        if self.strict { moving | raw::MPOL_MF_STRICT } else { moving }
    }
}

/// Sets the memory policy of the calling thread. Pages that are there stay where they are.
///
/// # Source
/// `set_mempolicy(2)`. Kept by `fork(2)` and `execve(2)`; other threads keep theirs.
///
/// # Errors
/// `EINVAL` for a mode that this kernel does not have, flags that do not fit the mode, or nodes that cannot
/// be used.
pub fn set_thread_policy(policy: &MemPolicy) -> Result<(), CallError> {
    raw::set_mempolicy(mode_word(policy), &node_words(&policy.nodes))
        .map_err(|errno| CallError::new(Call::SetMempolicy { policy: policy.clone() }, errno))
}

/// The memory policy of the calling thread. A `Preferred` policy without nodes comes back as
/// `Local`, and a policy without flags with the nodes that were left after the cpuset.
///
/// # Source
/// `get_mempolicy(2)`.
///
/// # Errors
/// A refused call, or a mode that is newer than nodewise.
pub fn thread_policy() -> Result<MemPolicy, ReadError> {
    read_policy(PolicyQuery::Thread, 0, 0)
}

/// The policy of the range of memory that an address lies in; `Default` where none was set, even
/// when the thread has one.
///
/// # Source
/// `get_mempolicy(2)`, `MPOL_F_ADDR`.
///
/// # Errors
/// `EFAULT` where nothing is mapped, or a mode that is newer than nodewise.
pub fn policy_at(address: usize) -> Result<MemPolicy, ReadError> {
    read_policy(PolicyQuery::At(address), address, raw::MPOL_F_ADDR)
}

/// The node of the page at an address. Reads the page, and so allocates it if it is missing: to
/// look without touching, ask [`crate::pages::locate`].
///
/// # Source
/// `get_mempolicy(2)`, `MPOL_F_NODE | MPOL_F_ADDR`.
///
/// # Errors
/// `EFAULT` where nothing is mapped.
pub fn node_at(address: usize) -> Result<NodeId, CallError> {
    let query = PolicyQuery::NodeAt(address);
    read_node(query, address, raw::MPOL_F_NODE | raw::MPOL_F_ADDR)
}

/// The node that the next page of the thread goes to, where its policy interleaves and no address
/// decides (page cache, kernel memory).
///
/// # Source
/// `get_mempolicy(2)`, `MPOL_F_NODE`.
///
/// # Errors
/// `EINVAL` unless the thread's policy interleaves.
pub fn next_interleaved_node() -> Result<NodeId, CallError> {
    read_node(PolicyQuery::NextInterleaved, 0, raw::MPOL_F_NODE)
}

/// The nodes that the thread's cpuset allows, with memory or without.
///
/// # Source
/// `get_mempolicy(2)`, `MPOL_F_MEMS_ALLOWED`, Linux 2.6.24; the same as `Mems_allowed` in
/// `/proc/PID/status`.
///
/// # Errors
/// A refused call.
pub fn allowed_nodes() -> Result<NodeSet, CallError> {
    let query = PolicyQuery::AllowedNodes;
    let (_, nodes) = read_mask(0, raw::MPOL_F_MEMS_ALLOWED).map_err(|errno| refused(query, errno))?;
    Ok(nodes)
}

/// Sets the policy of a range of memory; the address is a multiple of the page size.
///
/// # Source
/// `mbind(2)`. On a shared mapping of tmpfs the policy belongs to the file.
///
/// # Units
/// `address` and `length` in bytes; the length is rounded up to whole pages.
///
/// # Errors
/// As [`set_thread_policy`]; `EFAULT` where part of the range is not mapped, `EIO` where pages are
/// elsewhere and `strict` is asked, `EPERM` for [`PageScope::All`] without `CAP_SYS_NICE`.
pub fn bind_range(
    address: usize,
    length: usize,
    policy: &MemPolicy,
    options: BindOptions,
) -> Result<(), CallError> {
    raw::mbind(address, length, mode_word(policy), &node_words(&policy.nodes), options.bits()).map_err(
        |errno| {
            let (policy, length) = (policy.clone(), Bytes::new(length as u64));
            CallError::new(Call::Mbind { address, length, policy, options }, errno)
        },
    )
}

/// Sets the node from which allocations in a range start, inside or outside of its policy's nodes.
///
/// # Source
/// `set_mempolicy_home_node(2)`, Linux 5.17.
///
/// # Units
/// `address` and `length` in bytes.
///
/// # Errors
/// `ENOENT` where the range has no policy, `EOPNOTSUPP` where its mode is not `Bind` or
/// `PreferredMany`, `EINVAL` for a node that is not online, `ENOSYS` on an older kernel.
pub fn set_home_node(address: usize, length: usize, node: NodeId) -> Result<(), CallError> {
    raw::set_mempolicy_home_node(address, length, node.number()).map_err(|errno| {
        CallError::new(Call::SetHomeNode { address, length: Bytes::new(length as u64), node }, errno)
    })
}

/// Mode and flags as the one number that the kernel takes.
pub(crate) fn mode_word(policy: &MemPolicy) -> c_int {
    c_int::from(policy.mode.number()) | c_int::from(policy.flags.bits())
}

/// Nodes as a mask; no words for no nodes, which is what `Default` and `Local` ask for.
pub(crate) fn node_words(nodes: &NodeSet) -> Vec<c_ulong> {
    nodes.to_words(0)
}

/// The name of a mode in the kernel's header.
pub(crate) const fn mode_constant(mode: PolicyMode) -> &'static str {
    match mode {
        PolicyMode::Default => "MPOL_DEFAULT",
        PolicyMode::Preferred => "MPOL_PREFERRED",
        PolicyMode::Bind => "MPOL_BIND",
        PolicyMode::Interleave => "MPOL_INTERLEAVE",
        PolicyMode::Local => "MPOL_LOCAL",
        PolicyMode::PreferredMany => "MPOL_PREFERRED_MANY",
        PolicyMode::WeightedInterleave => "MPOL_WEIGHTED_INTERLEAVE",
    }
}

/// The mode flags with their names in the kernel's header.
pub(crate) const FLAG_CONSTANTS: [(ModeFlags, &str); 3] = [
    (ModeFlags::STATIC_NODES, "MPOL_F_STATIC_NODES"),
    (ModeFlags::RELATIVE_NODES, "MPOL_F_RELATIVE_NODES"),
    (ModeFlags::NUMA_BALANCING, "MPOL_F_NUMA_BALANCING"),
];

fn refused(query: PolicyQuery, errno: Errno) -> CallError {
    CallError::new(Call::GetMempolicy { query }, errno)
}

fn read_node(query: PolicyQuery, address: usize, flags: c_int) -> Result<NodeId, CallError> {
    let node = raw::get_mempolicy(&mut [], address, flags).map_err(|errno| refused(query, errno))?;
    u32::try_from(node).map(NodeId::new).map_err(|_| refused(query, Errno::EINVAL))
}

fn read_policy(query: PolicyQuery, address: usize, flags: c_int) -> Result<MemPolicy, ReadError> {
    let (mode, nodes) = read_mask(address, flags).map_err(|errno| refused(query, errno))?;
    policy_from(mode, nodes)
        .map_err(|number| ReadError::UnknownMode { call: Call::GetMempolicy { query }, number })
}

/// The policy that a mode word and a mask stand for; the bare mode where it is not known.
fn policy_from(word: c_int, nodes: NodeSet) -> Result<MemPolicy, u16> {
    // Modes and flags fit in 16 bits since Linux 2.6.26; more would be a mode of its own.
    let bits = u16::try_from(word).map_err(|_| u16::MAX)?;
    let flags = ModeFlags::from_bits(bits);
    let number = bits & !flags.bits();
    let mode = PolicyMode::from_number(number).ok_or(number)?;
    Ok(MemPolicy { mode, flags, nodes })
}

/// Longest mask that the kernel writes, in words: `get_mempolicy(2)` refuses more than a page.
const LONGEST_MASK: usize = 4096 / size_of::<c_long>();

/// Mode word and mask of a query.
///
/// The kernel refuses a mask that is shorter than its highest possible node (`nr_node_ids`), with
/// the same `EINVAL` as for everything else; so the mask grows until it is taken, from the 1,024
/// nodes that no architecture exceeds today.
fn read_mask(address: usize, flags: c_int) -> Result<(c_int, NodeSet), Errno> {
    let mut words = vec![0; 1024 / c_ulong::BITS as usize];
    loop {
        match raw::get_mempolicy(&mut words, address, flags) {
            Ok(mode) => return Ok((mode, NodeSet::from_native_words(&words))),
            Err(Errno::EINVAL) if words.len() < LONGEST_MASK => words = vec![0; words.len() * 2],
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn mode_and_flags_travel_in_one_word() {
        let flags = ModeFlags::STATIC_NODES.with(ModeFlags::NUMA_BALANCING);
        let policy = MemPolicy { mode: PolicyMode::Bind, flags, nodes: NodeSet::from([0]) };
        assert_eq!(mode_word(&policy), 0xa002);
        assert_eq!(policy_from(0xa002, NodeSet::from([0])), Ok(policy));
    }

    #[test]
    fn a_mode_of_a_newer_kernel_is_named_and_not_guessed() {
        assert_eq!(policy_from(7, NodeSet::new()), Err(7));
        assert_eq!(policy_from(0x8000 | 9, NodeSet::new()), Err(9));
        let error =
            ReadError::UnknownMode { call: Call::GetMempolicy { query: PolicyQuery::Thread }, number: 7 };
        assert_eq!(
            error.to_string(),
            "get_mempolicy(policy of this thread): mode 7 is not one of the modes nodewise knows (0 to 6)"
        );
    }

    #[test]
    fn no_nodes_are_no_mask() {
        assert!(node_words(&NodeSet::new()).is_empty());
        assert_eq!(node_words(&NodeSet::from([1, 3])), [0b1010]);
    }

    #[test]
    fn a_node_above_1024_gets_a_mask_that_holds_it() {
        let words = node_words(&NodeSet::from([1100]));
        assert_eq!(NodeSet::from_native_words(&words), NodeSet::from([1100]));
    }

    proptest! {
        #[test]
        fn any_word_of_the_kernel_is_a_policy_or_an_unknown_mode(word in any::<i32>()) {
            match policy_from(word, NodeSet::new()) {
                Ok(policy) => prop_assert_eq!(mode_word(&policy), word),
                Err(number) => prop_assert_eq!(PolicyMode::from_number(number), None),
            }
        }
    }
}
