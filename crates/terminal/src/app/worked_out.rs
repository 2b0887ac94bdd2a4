//! Facts of a reading beyond its rows: worked out when it comes, and not each time it is drawn.

use std::cmp::Reverse;

use nodewise_machine::NodeId;
use nodewise_machine::mapping::ProcessMappings;
use nodewise_machine::order::Order as _;
use nodewise_view::digest::maps::{GroupBy, Maps, Tally};
use nodewise_view::digest::running::{Running, findings, words};

use crate::ink::Ink;
use crate::table::MOST_NODES;

/// The sentences below the nodes: what no column has, and findings.
pub(crate) fn notes(running: &Running) -> Vec<(Ink, String)> {
    let remarks = words::remarks(running).into_iter().map(|remark| (Ink::Plain, remark));
    let found = findings(running);
    let found = found.iter().map(|finding| (Ink::Notable, format!("! {}", finding.sentence())));
    remarks.chain(found).collect()
}

/// The mappings of a process as the screen shows them.
#[derive(Clone, Debug)]
pub(crate) struct MappingsTable {
    pub(crate) method: String,
    pub(crate) findings: Vec<String>,
    /// The nodes with a column each; none where they are too many.
    pub(crate) nodes: Vec<NodeId>,
    /// The memory by kind, and all of it.
    pub(crate) groups: Vec<(String, Tally)>,
    /// Places of the mappings, the largest first, as `maps` names them.
    pub(crate) order: Vec<usize>,
}

impl MappingsTable {
    pub(crate) fn new(process: &ProcessMappings) -> Self {
        let maps = Maps { process, by: GroupBy::Kind, shared_with: None };
        let nodes = maps.nodes();
        let mut groups = maps.groups();
        groups.push(("all".to_owned(), maps.all()));
        let mut order: Vec<usize> = (0..process.mappings.len()).collect();
        order.order_by_key(|at| {
            let mapping = &process.mappings[*at];
            (Reverse(mapping.resident()), mapping.start)
        });
        Self {
            method: maps.method(),
            findings: maps.findings(),
            nodes: if nodes.len() <= MOST_NODES { nodes } else { Vec::new() },
            groups,
            order,
        }
    }
}
