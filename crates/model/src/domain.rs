//! From the firmware's proximity domains to nodes and their distances.
//!
//! # Source
//! `acpi_map_pxm_to_node` and `acpi_parse_memory_affinity` in `drivers/acpi/numa/srat.c`; 5.10 to at
//! least 7.2. Seen on 6.12.

use nodewise_machine::NodeId;

/// An entry of the firmware's table of affinities (SRAT), enabled ones only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// A CPU, or an initiator that is none, of this domain.
    Initiator(u32),
    /// Memory of this domain.
    Memory(u32),
}

/// The node of each domain that gets one, in order of node: CPUs and other initiators are read
/// first, then memory, each in the order of the table; nodes are numbered as domains are met.
///
/// `None` when there are more domains than the kernel has room for: then the kernel uses one node.
pub fn nodes(table: &[Affinity], max_nodes: u32) -> Option<Vec<(u32, NodeId)>> {
    let initiators = table.iter().filter_map(|entry| match entry {
        Affinity::Initiator(domain) => Some(*domain),
        Affinity::Memory(_) => None,
    });
    let memory = table.iter().filter_map(|entry| match entry {
        Affinity::Memory(domain) => Some(*domain),
        Affinity::Initiator(_) => None,
    });
    let mut nodes: Vec<(u32, NodeId)> = Vec::new();
    for domain in initiators.chain(memory) {
        if nodes.iter().any(|(known, _)| *known == domain) {
            continue;
        }
        let next = u32::try_from(nodes.len()).ok().filter(|next| *next < max_nodes && domain < max_nodes)?;
        nodes.push((domain, NodeId::new(next)));
    }
    Some(nodes)
}

/// The distance between two nodes by the firmware's table of distances (SLIT), whose rows and columns
/// are domains: those it does not reach are 10 from themselves and 20 from others.
pub fn distance(slit: &[Vec<u8>], nodes: &[(u32, NodeId)], from: NodeId, to: NodeId) -> u8 {
    let domain = |node: NodeId| nodes.iter().find(|(_, n)| *n == node).map(|(domain, _)| *domain as usize);
    let cell = || slit.get(domain(from)?)?.get(domain(to)?).copied();
    cell().unwrap_or(if from == to { 10 } else { 20 })
}

/// Whether the kernel takes a table of distances: 10 on the diagonal, more everywhere else. It takes
/// all of it or nothing.
pub fn is_valid(slit: &[Vec<u8>]) -> bool {
    let cells = slit
        .iter()
        .enumerate()
        .flat_map(|(row, cells)| cells.iter().enumerate().map(move |(column, cell)| (row == column, *cell)));
    let square = slit.iter().all(|row| row.len() == slit.len());
    square && cells.into_iter().all(|(own, cell)| if own { cell == 10 } else { cell > 10 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_distances_is_taken_whole_or_not() {
        assert!(is_valid(&[vec![10, 255], vec![11, 10]]));
        for wrong in [vec![vec![10, 10], vec![11, 10]], vec![vec![11]], vec![vec![10, 20]]] {
            assert!(!is_valid(&wrong), "{wrong:?}");
        }
    }

    #[test]
    fn too_many_domains_are_refused() {
        let table: Vec<Affinity> = (0..17).map(Affinity::Memory).collect();
        assert_eq!(nodes(&table, 16), None);
        assert_eq!(nodes(&[Affinity::Initiator(4096)], 1024), None);
    }
}
