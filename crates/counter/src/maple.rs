//! The mapping at an address, in the tree in which Linux keeps the mappings of an address space.
//!
//! # Source
//! Linux 6.1 and later keep them in a maple tree (`Documentation/core-api/maple_tree.rst`); members of its nodes are found by the
//! kernel's own description. A node has an upper end (a pivot) for each of its parts but the last, and what is in each part: another node,
//! whose address has its kind in bits 3 to 6, or in leaves the mapping itself. Walks were held against mappings of programs on 6.1,
//! 6.12 and 6.18; whoever asks must still check that the mapping holds the address, since the kernel may change the tree meanwhile.

/// Bits of a reference beside the address: nodes have 256 bytes.
const KIND_BITS: u64 = 0xff;
/// Kinds of nodes: leaves are below the first, nodes that also keep gaps have the second.
const FIRST_INNER: u64 = 2;
const WITH_GAPS: u64 = 3;
/// Parts of a node, and of one with gaps.
const PARTS: usize = 16;
const PARTS_WITH_GAPS: usize = 10;
/// How high a tree can be, with room: each node has five parts or more, and addresses have 47 bits.
const HIGHEST: usize = 24;

/// Where the members of a node are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLayout {
    pub pivots: u64,
    pub parts: u64,
}

/// Where the members of nodes are: of plain ones, and of those that keep gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLayout {
    pub plain: NodeLayout,
    pub with_gaps: NodeLayout,
}

/// The mapping that the tree has at an address; `read` gives words of the kernel's memory. `None` for nothing.
pub fn find(root: u64, address: u64, layout: TreeLayout, read: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    // Any other root is the only mapping, or none; no program has a single one.
    if root & 3 != 2 {
        return None;
    }
    let mut reference = root;
    for _ in 0..HIGHEST {
        let kind = reference >> 3 & 0xf;
        let (members, parts) =
            if kind == WITH_GAPS { (layout.with_gaps, PARTS_WITH_GAPS) } else { (layout.plain, PARTS) };
        let node = reference & !KIND_BITS;
        let part = part(address, parts, |at| read(node + members.pivots + 8 * at as u64))?;
        let found = read(node + members.parts + 8 * part as u64)?;
        if kind < FIRST_INNER {
            return Some(found).filter(|mapping| *mapping != 0);
        }
        reference = found;
    }
    None
}

/// The part of a node that has an address: the first with an upper end that is not below it. Behind the last that is in use
/// there is a zero, or what is left of former ones.
fn part(address: u64, parts: usize, pivot: impl Fn(usize) -> Option<u64>) -> Option<usize> {
    let mut former = 0;
    for at in 0..parts - 1 {
        let end = pivot(at)?;
        if end >= address || at > 0 && end <= former {
            return Some(at);
        }
        former = end;
    }
    Some(parts - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::collections::BTreeMap;

    const LAYOUT: TreeLayout = TreeLayout {
        plain: NodeLayout { pivots: 8, parts: 128 },
        with_gaps: NodeLayout { pivots: 8, parts: 80 },
    };

    /// Words of memory in which a tree is built.
    #[derive(Default)]
    struct Memory {
        words: BTreeMap<u64, u64>,
        next: u64,
    }

    impl Memory {
        /// A node of parts, each with its upper end; the last reaches to the end of the node.
        fn node(&mut self, kind: u64, parts: &[(u64, u64)]) -> u64 {
            self.next += 256;
            let node = 0xffff_8880_0000_0000 + self.next;
            let (members, most) =
                if kind == WITH_GAPS { (LAYOUT.with_gaps, PARTS_WITH_GAPS) } else { (LAYOUT.plain, PARTS) };
            for at in 0..most as u64 {
                let (end, part) = parts.get(at as usize).copied().unwrap_or_default();
                if at + 1 < most as u64 {
                    self.words.insert(node + members.pivots + 8 * at, end);
                }
                self.words.insert(node + members.parts + 8 * at, part);
            }
            node | kind << 3
        }

        fn find(&self, root: u64, address: u64) -> Option<u64> {
            find(root | 2, address, LAYOUT, |at| self.words.get(&at).copied())
        }
    }

    #[test]
    fn an_address_is_found_through_nodes_with_gaps_and_full_leaves() {
        let mut memory = Memory::default();
        // A full leaf has no upper end for its last part.
        let full: Vec<(u64, u64)> = (0..16).map(|at| (at * 10 + 9, 0x1000 + at)).collect();
        let first = memory.node(1, &full);
        let second = memory.node(1, &[(199, 0), (u64::MAX, 0x2000)]);
        let root = memory.node(WITH_GAPS, &[(159, first), (u64::MAX, second)]);
        let found = [0, 9, 10, 159, 160, 199, 200, u64::MAX].map(|address| memory.find(root, address));
        let one = |number: u64| Some(0x1000 + number);
        assert_eq!(found, [one(0), one(0), one(1), one(15), None, None, Some(0x2000), Some(0x2000)]);
        // The root has no node, memory cannot be read.
        assert_eq!(find(0, 5, LAYOUT, |_| Some(1)), None);
        assert_eq!(find(root | 2, 5, LAYOUT, |_| None), None);
    }

    #[test]
    fn a_circle_ends() {
        let circle = 0xffff_8880_0000_0000 | WITH_GAPS << 3 | 2;
        assert_eq!(find(circle, 5, LAYOUT, |_| Some(circle)), None);
    }

    proptest! {
        #[test]
        fn drawn_mappings_are_found(mut ends in proptest::collection::btree_set(1u64..1 << 47, 2..120), address in 0u64..1 << 47, kind in 0u64..2) {
            ends.insert(u64::MAX);
            let ends: Vec<u64> = ends.into_iter().collect();
            let mut memory = Memory::default();
            let parts: Vec<(u64, u64)> = ends.iter().map(|end| (*end, if end & 1 == 0 { *end } else { 0 })).collect();
            let leaves: Vec<(u64, u64)> =
                parts.chunks(12).map(|leaf| (leaf[leaf.len() - 1].0, memory.node(kind, leaf))).collect();
            let root = memory.node(if kind == 0 { WITH_GAPS } else { FIRST_INNER }, &leaves);
            let expected = parts.iter().find(|(end, _)| *end >= address).map(|(_, part)| *part).filter(|part| *part != 0);
            prop_assert_eq!(memory.find(root, address), expected);
        }

        #[test]
        fn any_memory_is_walked(root in any::<u64>(), address in any::<u64>(), words in proptest::collection::vec(any::<u64>(), 1..30)) {
            let read = |at: u64| words.get((at >> 3) as usize % (words.len() + 1)).copied();
            let _ = find(root, address, LAYOUT, read);
        }
    }
}
