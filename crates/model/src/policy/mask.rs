//! Reading a node mask as the kernel does: `maxnode` counts one bit too many.
//!
//! # Source
//! `get_nodes` and `get_bitmap` in `mm/mempolicy.c`; 4.10 to at least 7.2.

use nodewise_machine::NodeSet;

use crate::errno::Errno;

/// More bits than a page's worth are refused.
const MOST_BITS: u64 = 8 * 4096;

/// Bits of a word.
const WORD: u64 = 64;

/// The memory that a pointer to a node mask points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bits {
    Null,
    /// Memory in which the bits of these nodes are set, and no others as far as it is read.
    Of(NodeSet),
    /// Memory that cannot be read.
    Unreadable,
}

/// A node mask as a program passes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    pub bits: Bits,
    /// The argument `maxnode`.
    pub maxnode: u64,
}

impl Mask {
    /// A mask that is wide enough for its nodes.
    pub fn from_nodes(nodes: &NodeSet) -> Self {
        let bits = nodes.last().map_or(0, |node| u64::from(node.number()) + 1);
        Self { bits: Bits::Of(nodes.clone()), maxnode: bits.next_multiple_of(64) + 1 }
    }

    /// The nodes that the kernel sees.
    ///
    /// `max_nodes` is the number of nodes the kernel is built for.
    ///
    /// # Errors
    /// `EINVAL` for a mask longer than a page, and for a bit that no node of this kernel can have; `EFAULT` for
    /// one that is looked at and cannot be read.
    pub fn read(&self, max_nodes: u32) -> Result<NodeSet, Errno> {
        // The kernel takes one off before it looks: of 0 become all ones.
        let bits = self.maxnode.wrapping_sub(1);
        if bits == 0 || self.bits == Bits::Null {
            return Ok(NodeSet::new());
        }
        if bits > MOST_BITS {
            return Err(Errno::Einval);
        }
        let Bits::Of(nodes) = &self.bits else { return Err(Errno::Efault) };
        if is_beyond(nodes, bits, u64::from(max_nodes)) {
            return Err(Errno::Einval);
        }
        Ok(nodes.iter().filter(|node| u64::from(node.number()) < bits.min(u64::from(max_nodes))).collect())
    }
}

/// Whether the kernel finds a bit that no node of its has. It looks from the end of the mask on, a word for every 64
/// bits that are counted; in the last of these it leaves out as many low bits as its nodes have in their last word,
/// though that word may be another. Seen on arm64, whose kernels are built for 16 nodes.
fn is_beyond(nodes: &NodeSet, mut bits: u64, max_nodes: u64) -> bool {
    while bits > max_nodes {
        let (word, counted) = ((bits - 1) / WORD, bits.min(WORD));
        let is_last = bits - counted < max_nodes;
        let left_out = if is_last { max_nodes % WORD } else { 0 };
        bits = if is_last { max_nodes } else { bits - counted };
        let seen = word * WORD + left_out..word * WORD + counted;
        if nodes.iter().any(|node| seen.contains(&u64::from(node.number()))) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bits: Bits, maxnode: u64, expected: Result<NodeSet, Errno>) {
        assert_eq!(Mask { bits, maxnode }.read(1024), expected, "maxnode {maxnode}");
    }

    #[test]
    fn the_last_bit_that_was_counted_is_not_read() {
        check(Bits::Of(NodeSet::from([0, 1, 2, 3])), 4, Ok(NodeSet::from([0, 1, 2])));
        check(Bits::Of(NodeSet::from([3])), 4, Ok(NodeSet::new()));
        check(Bits::Of(NodeSet::from([0])), 1, Ok(NodeSet::new()));
    }

    #[test]
    fn a_word_beyond_all_nodes_is_read_whole() {
        let mask = Mask { bits: Bits::Of(NodeSet::from([1, 3, 1023])), maxnode: 1024 };
        assert_eq!(mask.read(16), Err(Errno::Einval));
        assert_eq!(mask.read(1024), Ok(NodeSet::from([1, 3])));
    }

    #[test]
    fn low_bits_of_the_last_word_that_is_looked_at_are_left_out() {
        // The first of a guest of arm64: migrate_pages takes node 64 with a maxnode of 1026 there.
        let read = |node: u32, maxnode| Mask { bits: Bits::Of(NodeSet::from([node])), maxnode }.read(16);
        assert_eq!(read(64, 1026), Ok(NodeSet::new()));
        assert_eq!(read(80, 1026), Err(Errno::Einval));
        assert_eq!(read(64, 1042), Err(Errno::Einval));
        assert_eq!(read(16, 18), Err(Errno::Einval));
        assert_eq!(read(16, 17), Ok(NodeSet::new()));
    }

    #[test]
    fn no_mask_is_an_empty_one() {
        check(Bits::Null, 0, Ok(NodeSet::new()));
        check(Bits::Null, 1 << 40, Ok(NodeSet::new()));
        check(Bits::Of(NodeSet::new()), 0, Err(Errno::Einval));
    }

    #[test]
    fn impossible_bits_and_long_masks_are_refused() {
        check(Bits::Of(NodeSet::from([0, 1100])), 2048, Err(Errno::Einval));
        check(Bits::Of(NodeSet::from([0, 1100])), 1024, Ok(NodeSet::from([0])));
        check(Bits::Of(NodeSet::from([0])), 32_769, Ok(NodeSet::from([0])));
        check(Bits::Of(NodeSet::from([0])), 32_770, Err(Errno::Einval));
    }

    #[test]
    fn a_mask_of_a_set_reads_as_the_set() {
        for set in [NodeSet::new(), NodeSet::from([0]), NodeSet::from([63]), NodeSet::from([5, 64, 1023])] {
            assert_eq!(Mask::from_nodes(&set).read(1024), Ok(set));
        }
    }
}
