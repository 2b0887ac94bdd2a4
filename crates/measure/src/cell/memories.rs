//! The memory of a round: a buffer on each node for each kind of pages, which the ways that reach for it
//! use in turn.

use std::collections::HashMap;

use nodewise_machine::{Bytes, NodeId};
use nodewise_syscall::PageKind;

use super::{Cell, Facts, Placed, PlacedMemory, Refusal};

/// Buffers of one size, by node and kind of pages.
#[derive(Debug)]
pub(crate) struct Memories {
    size: Bytes,
    by_place: HashMap<(NodeId, PageKind), PlacedMemory>,
}

impl Memories {
    /// None yet; each will have this size.
    pub(crate) fn new(size: Bytes) -> Self {
        Self { size, by_place: HashMap::new() }
    }

    /// Gives all of them back.
    pub(crate) fn clear(&mut self) {
        self.by_place.clear();
    }

    /// Makes the buffer that a cell reaches for, unless it is there.
    ///
    /// # Errors
    /// As [`PlacedMemory::new`].
    pub(crate) fn make(&mut self, cell: &Cell, facts: &mut dyn Facts) -> Result<(), Refusal> {
        let place = place(cell);
        if !self.by_place.contains_key(&place) {
            let memory = PlacedMemory::new(self.size, cell.memory, cell.pages, facts)?;
            self.by_place.insert(place, memory);
        }
        Ok(())
    }

    /// Where the pages of a cell's buffer are now; `None` where it has none.
    ///
    /// # Errors
    /// As [`PlacedMemory::now`].
    pub(crate) fn placed(&self, cell: &Cell, facts: &mut dyn Facts) -> Result<Option<Placed>, Refusal> {
        self.by_place.get(&place(cell)).map(|memory| memory.now(facts)).transpose()
    }

    /// The buffer of a cell.
    pub(crate) fn buffer(&mut self, cell: &Cell) -> Option<&mut PlacedMemory> {
        self.by_place.get_mut(&place(cell))
    }

    /// All buffers, each with its place, in no order.
    pub(crate) fn all(&mut self) -> impl Iterator<Item = ((NodeId, PageKind), &mut PlacedMemory)> {
        self.by_place.iter_mut().map(|(place, memory)| (*place, memory))
    }
}

/// The facts that distinguish buffers.
pub(crate) const fn place(cell: &Cell) -> (NodeId, PageKind) {
    (cell.memory, cell.pages)
}
