//! Metrics of a sample made by hand.

use super::*;
use nodewise_diagnose::sample::{NodeSample, PoolSample};
use nodewise_machine::{Bytes, MeminfoField, NodeId, spec};

fn sample() -> Sample {
    let mut node = NodeSample::new(NodeId::new(1));
    node.memory = vec![MeminfoField::total(Bytes::from_mib(4))];
    node.allocations.hit = Some(7);
    node.pools = vec![PoolSample { page_size: Bytes::from_mib(2), total: 3, free: None, surplus: Some(0) }];
    Sample { nodes: vec![node], ..Sample::default() }
}

#[test]
fn values_have_units_and_what_is_not_known_is_left_out() {
    let machine = spec::machine("2x(1c 1G); dist=21; access=0>1:250ns/30G").unwrap();
    let text = metrics(&machine, &sample(), Exposition::Text);
    for line in [
        "# HELP nodewise_node_allocation_hit_total Pages that a node gave where they were wanted first (numa_hit).",
        "# TYPE nodewise_node_allocation_hit_total counter",
        "nodewise_node_allocation_hit_total{node=\"1\"} 7",
        "nodewise_node_memory_bytes{node=\"1\"} 4194304",
        "nodewise_node_huge_pages{node=\"1\",page_size_bytes=\"2097152\"} 3",
        "nodewise_node_distance{node=\"0\",to=\"1\"} 21",
        "nodewise_node_access_latency_seconds{node=\"1\",access=\"0\",direction=\"read\"} 0.00000025",
        "nodewise_node_access_bandwidth_bytes_per_second{node=\"1\",access=\"0\",direction=\"read\"} 30000000000",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    for name in ["allocation_miss", "memory_free", "huge_pages_free", "cpu_seconds"] {
        assert!(!text.contains(name), "{name} is not known\n{text}");
    }
}

#[test]
fn open_metrics_name_a_counter_without_total_and_mark_their_end() {
    let machine = spec::machine("(1c 1G)").unwrap();
    let text = metrics(&machine, &sample(), Exposition::OpenMetrics);
    assert!(
        text.contains("# TYPE nodewise_node_allocation_hit counter\nnodewise_node_allocation_hit_total{"),
        "{text}"
    );
    assert!(text.ends_with("\n# EOF\n"), "{text}");
}
