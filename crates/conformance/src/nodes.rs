//! Nodes of pages one after the other, as runs.

use std::fmt;
use std::ops::Range;

use nodewise_machine::NodeId;
use nodewise_syscall::{PageLocation, Task, pages};

/// Bytes of a small page.
pub const PAGE: u64 = 4096;

/// The node of each page of a range; `None` for a page that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Nodes(pub Vec<Option<NodeId>>);

impl Nodes {
    /// Reads them from the kernel, for pages of a task.
    ///
    /// # Errors
    /// The kernel refuses to say.
    pub fn located(task: Task, pages: Range<u64>) -> Result<Self, String> {
        let mut nodes = Vec::new();
        let addresses = pages.map(|page| (page * PAGE) as usize);
        pages::locate(task, addresses, |_, location| {
            nodes.push(if let PageLocation::Node(node) = location { Some(node) } else { None });
        })
        .map_err(|error| error.to_string())?;
        Ok(Self(nodes))
    }

    /// Runs of pages on one node: first page, number of pages, node.
    pub fn runs(&self) -> Vec<(usize, usize, Option<NodeId>)> {
        let mut runs: Vec<(usize, usize, Option<NodeId>)> = Vec::new();
        for (page, node) in self.0.iter().enumerate() {
            match runs.last_mut() {
                Some((_, count, last)) if last == node => *count += 1,
                _ => runs.push((page, 1, *node)),
            }
        }
        runs
    }
}

impl fmt::Display for Nodes {
    /// Writes the pages that are present: `0-3 on node 1, 7 on node 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (first, count, node) in self.runs() {
            let Some(node) = node else { continue };
            write!(f, "{comma}{first}")?;
            if count > 1 {
                write!(f, "-{}", first + count - 1)?;
            }
            write!(f, " on node {node}")?;
            comma = ", ";
        }
        if comma.is_empty() { f.write_str("no pages") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_written_as_runs() {
        let check = |nodes: &[Option<u32>], expected: &str| {
            let nodes = Nodes(nodes.iter().map(|node| node.map(NodeId::new)).collect());
            assert_eq!(nodes.to_string(), expected);
        };
        check(&[], "no pages");
        check(&[None, None], "no pages");
        check(&[Some(1), Some(1), None, Some(0)], "0-1 on node 1, 3 on node 0");
    }
}
