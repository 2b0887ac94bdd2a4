//! The picture of cache lines by node, for machines of any size.

use nodewise_machine::{Bytes, NodeId};
use nodewise_view::digest::line_counts::{
    LineCell, LineCounts, LineMapping, LineMappingKind, LinePart, LineThread,
};
use nodewise_view::svg::line_counts::line_counts_page;
use nodewise_view::svg::{Theme, line_counts_svg};

use crate::picture::tidy;

/// Lines between all nodes; every third pair has none.
fn counts(nodes: u32, name: &str) -> LineCounts {
    let ids: Vec<NodeId> = (0..nodes).map(NodeId::new).collect();
    let pairs = || ids.iter().flat_map(|from| ids.iter().map(|to| (*from, *to)));
    let lines = |from: NodeId, to: NodeId| match (from.number() + 2 * to.number()) % 3 {
        _ if from == to => 123_456_789,
        0 => 0,
        rest => u64::from(rest) * 54_321,
    };
    let cell = |(cpu_node, node): (NodeId, NodeId)| {
        let read = [lines(cpu_node, node); 3];
        LineCell {
            phase: usize::from(cpu_node.number() % 2 == 1),
            thread: 0,
            in_kernel: cpu_node.number() % 3 == 1,
            cpu_node,
            node: Some(node),
            read,
            written: [1; 3],
            in_order: [0; 3],
        }
    };
    let part = |(at, (cpu_node, node)): (usize, (NodeId, NodeId))| LinePart {
        phase: 0,
        mapping: at % 7,
        cpu_node,
        node: Some(node),
        read: [lines(cpu_node, node); 3],
    };
    LineCounts {
        ways: 16,
        sizes: [512, 1024, 2048].map(Bytes::from_kib),
        is_assumed: true,
        with_kernel: name.len() > 10,
        cpu_nodes: ids.clone(),
        memory_nodes: ids.clone(),
        threads: vec![LineThread { parent: 0, ids: Some((7, 7)), name: None }],
        lost: 0,
        phases: vec![String::new(), name.to_owned()],
        lost_phases: 0,
        chosen: None,
        cells: pairs().map(cell).collect(),
        mappings: vec![
            LineMapping { process: Some(4_000_000), kind: LineMappingKind::File(name.to_owned()) };
            7
        ],
        parts: pairs().enumerate().map(part).collect(),
        shared: Vec::new(),
        lost_lines: 0,
        code: None,
    }
}

#[test]
fn pictures_of_counts_are_tidy_and_well_formed() {
    for nodes in [1, 2, 4, 16, 40, 300] {
        for text in ["", "a <b>&\"c\" \u{1b}[31m", &"long ".repeat(200)] {
            let counts = counts(nodes, text);
            tidy(&line_counts_page(&counts, text)).unwrap_or_else(|error| panic!("{nodes} nodes: {error}"));
            let svg = line_counts_svg(&counts, text, Theme::Auto);
            roxmltree::Document::parse(&svg).unwrap();
        }
    }
}
