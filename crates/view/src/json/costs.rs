//! Ways to memory in results of `nodewise latency` and `nodewise bandwidth`, for the costs of a placement.

use nodewise_machine::NodeId;
use nodewise_machine::order::Order as _;
use nodewise_measure::cell::PageKind;
use nodewise_model::cost::{Costs, PathCost};
use serde::Deserialize;

use super::reading::{Saved, node, positive};
use super::{bandwidth, latency};

/// Takes the latency of each way from a result of `nodewise latency`: that of huge pages where they were
/// measured, which the translation of addresses has no part in, and the median of it.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn add_latencies(text: &str, costs: &mut Costs) -> Result<(), String> {
    let mut cells = latency::read(&Saved::from_json(text)?)?.cells;
    // The last one counts, so small pages come first.
    cells.order_by_key(|cell| cell.pages != PageKind::Small);
    for cell in cells {
        let Some(figure) = cell.figure else { continue };
        let bandwidth = costs.paths.get(cell.from, cell.memory).and_then(|way| way.bandwidth);
        let way = PathCost { latency_ns: figure.median, bandwidth };
        set(costs, cell.from, cell.memory, way)?;
    }
    Ok(())
}

/// Takes bandwidths from a result of `nodewise bandwidth`: of each way the median, and of each node's
/// memory the best way to it. Ways without a latency are left out.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn add_bandwidths(text: &str, costs: &mut Costs) -> Result<(), String> {
    let read: Document = Saved::from_json(text)?.contents_of(&bandwidth::READ)?;
    costs.controllers.clear();
    for cell in read.matrix {
        let Some(rate) = cell.median_gb_per_s else { continue };
        let rate = positive("median_gb_per_s", rate)? * 1e9;
        let (from, to) = (node(cell.from_node)?, node(cell.memory_node)?);
        let best = costs.controllers.entry(to).or_insert(rate);
        *best = best.max(rate);
        if let Some(way) = costs.paths.get(from, to).copied() {
            set(costs, from, to, PathCost { bandwidth: Some(rate), ..way })?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Document {
    matrix: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    from_node: u32,
    memory_node: u32,
    median_gb_per_s: Option<f64>,
}

fn set(costs: &mut Costs, from: NodeId, to: NodeId, way: PathCost) -> Result<(), String> {
    if costs.paths.set(from, to, way) {
        return Ok(());
    }
    let nodes: Vec<String> = costs.paths.nodes().iter().map(ToString::to_string).collect();
    Err(format!("it has the way from node {from} to node {to}, this machine has nodes {}", nodes.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeMatrix;
    use proptest::prelude::{any, prop_assert, proptest};

    fn costs() -> Costs {
        let nodes = [NodeId::new(0), NodeId::new(1)];
        let mut ways = NodeMatrix::new(nodes);
        ways.set(nodes[0], nodes[0], PathCost { latency_ns: 90.0, bandwidth: None });
        ways.set(nodes[0], nodes[1], PathCost { latency_ns: 140.0, bandwidth: None });
        Costs { paths: ways, ..Costs::default() }
    }

    fn bandwidths(cells: &[(u32, u32, Option<f64>)]) -> String {
        let cell = |(from, to, rate): &(u32, u32, Option<f64>)| {
            let rate = rate.map_or("null".to_owned(), |rate| rate.to_string());
            format!(r#"{{"from_node": {from}, "memory_node": {to}, "median_gb_per_s": {rate}}}"#)
        };
        let cells: Vec<String> = cells.iter().map(cell).collect();
        format!(r#"{{"schema": "nodewise.bandwidth/1", "matrix": [{}]}}"#, cells.join(","))
    }

    #[test]
    fn a_nodes_memory_gives_what_the_best_way_to_it_carries() {
        let mut costs = costs();
        let text = bandwidths(&[(0, 0, Some(100.0)), (0, 1, Some(40.0)), (1, 1, Some(90.0)), (1, 0, None)]);
        add_bandwidths(&text, &mut costs).unwrap();
        let (zero, one) = (NodeId::new(0), NodeId::new(1));
        assert_eq!(costs.paths.get(zero, one), Some(&PathCost { latency_ns: 140.0, bandwidth: Some(40e9) }));
        assert_eq!(costs.controllers, [(zero, 100e9), (one, 90e9)].into());
        // Its latency is not known.
        assert_eq!(costs.paths.get(one, one), None);
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        let check = |text: &str, expected: &str| {
            assert_eq!(add_bandwidths(text, &mut costs()).unwrap_err(), expected);
        };
        check(&bandwidths(&[(0, 0, Some(-1.0))]), "median_gb_per_s is -1: expected a number above 0");
        check(
            r#"{"schema": "nodewise.latency/1"}"#,
            "its schema is \"nodewise.latency/1\": expected nodewise.bandwidth/2 or nodewise.bandwidth/1",
        );
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), from in any::<u32>(), rate in any::<f64>()) {
            let _ = add_latencies(&text, &mut costs());
            let mut costs = costs();
            let _ = add_bandwidths(&bandwidths(&[(from, 0, Some(rate))]), &mut costs);
            prop_assert!(costs.controllers.values().all(|rate| *rate > 0.0 && rate.is_finite()));
        }
    }
}
