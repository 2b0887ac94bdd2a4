//! The node of a physical address.

/// Most ranges of memory: twice as many as QEMU has nodes, and some for the hole below 4 GiB.
const MOST_RANGES: usize = 260;

/// Memory of a node, in lines.
#[derive(Clone, Copy)]
struct Range {
    first: u64,
    end: u64,
    node: u32,
}

/// Which memory is which node's.
pub struct Nodes {
    ranges: [Range; MOST_RANGES],
    known: usize,
    /// One more than the highest node.
    count: usize,
}

impl Nodes {
    /// No node.
    pub const fn new() -> Self {
        Self { ranges: [Range { first: 0, end: 0, node: 0 }; MOST_RANGES], known: 0, count: 0 }
    }

    /// Adds memory of a node, by addresses; `false` if there is no room for it.
    pub fn add(&mut self, start: u64, end: u64, node: u32) -> bool {
        let Some(range) = self.ranges.get_mut(self.known) else { return false };
        *range = Range { first: start >> 6, end: end >> 6, node };
        self.known += 1;
        self.count = self.count.max(node as usize + 1);
        true
    }

    /// One more than the highest node: the column of memory that is no node's.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The column of a line: its node, or [`Nodes::count`].
    #[inline]
    pub fn column(&self, line: u64) -> usize {
        let ranges = &self.ranges[..self.known];
        let found = ranges.iter().find(|range| range.first <= line && line < range.end);
        found.map_or(self.count, |range| range.node as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_on_both_sides_of_the_hole_is_found_by_both_ranges() {
        let mut nodes = Nodes::new();
        for (start, end, node) in
            [(0, 0x4000_0000, 0), (0x4000_0000, 0x8000_0000, 1), (1 << 32, 0x1_6000_0000, 1)]
        {
            assert!(nodes.add(start, end, node));
        }
        let column = |address: u64| nodes.column(address >> 6);
        assert_eq!([0, 0x3fff_ffff, 0x4000_0000, 0x1_0000_0000].map(column), [0, 0, 1, 1]);
        assert_eq!([0x8000_0000, 0x1_6000_0000].map(column), [2, 2]);
    }

    #[test]
    fn more_ranges_than_there_is_room_for_are_refused() {
        let mut nodes = Nodes::new();
        let added =
            (0..MOST_RANGES as u64 + 5).filter(|number| nodes.add(number << 12, (number + 1) << 12, 0));
        assert_eq!(added.count(), MOST_RANGES);
    }
}
