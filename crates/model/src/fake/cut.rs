//! Where one piece ends and the next begins.

use nodewise_machine::NodeId;

use super::{Piece, STEP};
use crate::ram::{Architecture, Range};

/// The memory that is left to cut.
pub(super) struct Cutter<'a> {
    ram: &'a [Range],
    page: u64,
    blocks: Vec<Range>,
    max_nodes: u32,
    /// Where 32 bits end: a piece does not leave a crumb below it.
    end_of_32_bits: u64,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(architecture: Architecture, page: u64, ram: &'a [Range], blocks: &[Range]) -> Self {
        let base = match architecture {
            Architecture::X86 => 0,
            _ => ram.iter().map(|range| range.start).min().unwrap_or(0),
        };
        let mut blocks = blocks.to_vec();
        blocks.sort_unstable();
        let end_of_32_bits = base.saturating_add(4 << 30);
        Self { ram, page, blocks, max_nodes: architecture.max_nodes(), end_of_32_bits }
    }

    /// Bytes of RAM in whole pages between two addresses.
    fn ram_between(&self, start: u64, end: u64) -> u64 {
        let (start, end) = (start.div_ceil(self.page) * self.page, end / self.page * self.page);
        let part = |range: &Range| range.end.min(end).saturating_sub(range.start.max(start));
        self.ram.iter().map(part).sum()
    }

    fn all_ram(&self) -> u64 {
        self.ram_between(0, self.ram.iter().map(|range| range.end).max().unwrap_or(0))
    }

    /// The rest of a node's first block; `None` when nothing is left of it.
    fn first_block(&self, node: NodeId) -> Option<usize> {
        self.blocks.iter().position(|block| block.node == node)
    }

    fn nodes_left(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.blocks.iter().map(|block| block.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Cuts a piece off the beginning of a block.
    fn cut(&mut self, at: usize, end: u64, node: u32, pieces: &mut Vec<Piece>) {
        let block = &mut self.blocks[at];
        let end = end.min(block.end);
        pieces.push(Piece { node: NodeId::new(node), physical: block.node, start: block.start, end });
        block.start = end;
        if block.start >= block.end {
            self.blocks.remove(at);
        }
    }

    /// Does not leave less than a step below 4 GiB, nor less than a piece behind the end.
    fn settle(&self, mut end: u64, limit: u64, size: u64) -> u64 {
        if end < self.end_of_32_bits && self.ram_between(end, self.end_of_32_bits) < STEP {
            end = self.end_of_32_bits;
        }
        if self.ram_between(end, limit) < size { limit } else { end }
    }

    /// Where a piece with `size` bytes of RAM ends; `first` is the length that is tried first.
    fn end_of_piece(&self, block: Range, first: u64, size: u64) -> u64 {
        let mut end = block.start.saturating_add(first);
        while self.ram_between(block.start, end) < size {
            end = end.saturating_add(STEP);
            if end > block.end {
                end = block.end;
                break;
            }
        }
        self.settle(end, block.end, size)
    }

    /// A number of nodes over all memory. The first `big` pieces are a step larger, so that the sizes
    /// come out even; numbers begin again when they run out.
    pub(super) fn by_count(mut self, count: u32) -> Option<Vec<Piece>> {
        let count = count.min(self.max_nodes);
        let even = self.all_ram() / self.page / u64::from(count) * self.page;
        let big = even % STEP * u64::from(count) / STEP;
        let size = even / STEP * STEP;
        if size == 0 {
            return None;
        }
        let mut pieces = Vec::new();
        while !self.blocks.is_empty() {
            for node in self.nodes_left() {
                let Some(at) = self.first_block(node) else { continue };
                let extra = if (pieces.len() as u64) < big { STEP } else { 0 };
                let end = self.end_of_piece(self.blocks[at], size + extra, size);
                let number = pieces.len() as u32 % count;
                self.cut(at, end, number, &mut pieces);
            }
        }
        Some(pieces)
    }

    /// Nodes of a size, but never more than the kernel has room for.
    pub(super) fn by_size(mut self, size: u64) -> Option<Vec<Piece>> {
        let least = (self.all_ram() / u64::from(self.max_nodes)).div_ceil(STEP) * STEP;
        let size = (size / STEP * STEP).max(least).max(STEP);
        let mut pieces = Vec::new();
        while !self.blocks.is_empty() {
            for node in self.nodes_left() {
                let Some(at) = self.first_block(node) else { continue };
                let end = self.end_of_piece(self.blocks[at], size, size);
                let number = pieces.len() as u32 % self.max_nodes;
                self.cut(at, end, number, &mut pieces);
            }
        }
        Some(pieces)
    }

    /// As many nodes of every physical one. Holes count as memory here.
    pub(super) fn per_node(mut self, count: u32) -> Option<Vec<Piece>> {
        let mut pieces: Vec<Piece> = Vec::new();
        for node in self.nodes_left() {
            let first = self.first_block(node)?;
            let length = self.blocks[first].end - self.blocks[first].start;
            let size = (length / u64::from(count)).max(STEP).div_ceil(STEP) * STEP;
            let before = pieces.len();
            while let Some(at) = self.first_block(node) {
                let block = self.blocks[at];
                let mut end = block.start.saturating_add(size);
                if end < self.end_of_32_bits && self.ram_between(end, self.end_of_32_bits) < STEP {
                    end = self.end_of_32_bits;
                }
                let number = u32::try_from(pieces.len()).ok().filter(|number| *number < self.max_nodes)?;
                self.cut(at, end, number, &mut pieces);
            }
            if pieces.len() - before < count as usize {
                return None;
            }
        }
        Some(pieces)
    }
}
