//! Values per ordered pair of nodes, addressed by id and tolerant of holes in the numbering.

use crate::id::NodeId;

/// A table with one row and one column per node. A cell may be missing.
///
/// # Shape
/// `matrix.get(from, to)`; rows and columns are the same nodes in ascending order. Nothing is
/// assumed symmetric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMatrix<T> {
    nodes: Vec<NodeId>,
    cells: Vec<Option<T>>,
}

impl<T> Default for NodeMatrix<T> {
    fn default() -> Self {
        Self { nodes: Vec::new(), cells: Vec::new() }
    }
}

impl<T> NodeMatrix<T> {
    /// A table of missing cells for these nodes; duplicates count once.
    pub fn new(nodes: impl IntoIterator<Item = NodeId>) -> Self {
        let mut nodes: Vec<NodeId> = nodes.into_iter().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut cells = Vec::new();
        cells.resize_with(nodes.len() * nodes.len(), || None);
        Self { nodes, cells }
    }

    /// The nodes of the rows and columns, ascending.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// Whether no cell has a value.
    pub fn is_empty(&self) -> bool {
        self.cells.iter().all(Option::is_none)
    }

    fn place(&self, from: NodeId, to: NodeId) -> Option<usize> {
        let row = self.nodes.binary_search(&from).ok()?;
        let column = self.nodes.binary_search(&to).ok()?;
        Some(row * self.nodes.len() + column)
    }

    /// The value from one node to another; `None` for a missing cell or an unknown node.
    pub fn get(&self, from: NodeId, to: NodeId) -> Option<&T> {
        self.cells[self.place(from, to)?].as_ref()
    }

    /// Sets a cell; says whether both nodes are in the table.
    pub fn set(&mut self, from: NodeId, to: NodeId, value: T) -> bool {
        let Some(place) = self.place(from, to) else { return false };
        self.cells[place] = Some(value);
        true
    }

    /// The rows in ascending order of their node, each with its cells in ascending order.
    pub fn rows(&self) -> impl Iterator<Item = (NodeId, &[Option<T>])> {
        self.nodes.iter().copied().zip(self.cells.chunks(self.nodes.len().max(1)))
    }

    /// All cells that have a value, as (from, to, value).
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, NodeId, &T)> {
        let width = self.nodes.len();
        self.cells.iter().enumerate().filter_map(move |(at, cell)| {
            Some((self.nodes[at / width], self.nodes[at % width], cell.as_ref()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(number: u32) -> NodeId {
        NodeId::new(number)
    }

    #[test]
    fn cells_are_addressed_by_id_and_not_by_position() {
        let mut matrix = NodeMatrix::new([n(72), n(0), n(33)]);
        assert!(matrix.set(n(33), n(72), 16));
        assert!(!matrix.set(n(33), n(1), 16));
        assert_eq!(matrix.get(n(33), n(72)), Some(&16));
        assert_eq!(matrix.get(n(72), n(33)), None);
        assert_eq!(matrix.get(n(1), n(2)), None);
        assert_eq!(matrix.iter().collect::<Vec<_>>(), [(n(33), n(72), &16)]);
    }

    #[test]
    fn an_empty_matrix_has_no_rows() {
        assert_eq!(NodeMatrix::<u32>::default().rows().count(), 0);
        assert!(NodeMatrix::<u32>::new([]).is_empty());
    }
}
