//! A `NodeResourceTopology` object of Kubernetes: a zone for each node, with costs and resources.
//!
//! # Source
//! kubernetes-sigs/noderesourcetopology-api, `topology.node.k8s.io/v1alpha2`. Texts are quoted as JSON, which YAML reads.

use std::fmt::Write as _;

use nodewise_machine::{Bytes, Machine, Node};

use super::NotExpressible;

/// Writes the object of the cluster's node of this name, as it is before a pod runs on it: what is allocatable and
/// available is the capacity, as a machine does not say what a kubelet reserves.
///
/// # Errors
/// A machine that describes no node.
pub fn kubernetes(machine: &Machine, host: &str) -> Result<String, NotExpressible> {
    if machine.nodes.is_empty() {
        return Err(NotExpressible { format: "NodeResourceTopology", needs: "NUMA nodes" });
    }
    let mut text =
        String::from("apiVersion: topology.node.k8s.io/v1alpha2\nkind: NodeResourceTopology\nmetadata:\n");
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  name: {}\nzones:", quoted(host));
    for node in machine.nodes.values() {
        let _ = writeln!(text, "  - name: {}\n    type: Node", zone(node));
        costs(machine, node, &mut text);
        resources(machine, node, &mut text);
    }
    Ok(text)
}

fn zone(node: &Node) -> String {
    quoted(&format!("node-{}", node.id))
}

fn costs(machine: &Machine, from: &Node, text: &mut String) {
    let known = machine.nodes.values().filter_map(|to| Some((to, machine.distance(from.id, to.id)?)));
    for (at, (to, distance)) in known.enumerate() {
        if at == 0 {
            text.push_str("    costs:\n");
        }
        let _ = writeln!(text, "      - name: {}\n        value: {distance}", zone(to));
    }
}

fn resources(machine: &Machine, node: &Node, text: &mut String) {
    let cpus = machine.cpus_of(node.id).len();
    let mut resources = Vec::new();
    resources.extend((cpus > 0).then(|| ("cpu".to_owned(), cpus.to_string())));
    let huge = node.huge_pools.iter().filter_map(|pool| Some((pool, pool.total?)));
    let huge: Vec<(String, Bytes)> = huge
        .filter(|(_, total)| *total > 0)
        .map(|(pool, total)| (format!("hugepages-{}", quantity(pool.page_size)), pool.page_size.times(total)))
        .collect();
    // A kubelet counts huge pages apart from memory.
    let taken: u64 = huge.iter().fold(0, |sum, (_, size)| sum.saturating_add(size.get()));
    let memory = machine.memory_of(node.id).map(|memory| memory.get().saturating_sub(taken));
    resources.extend(memory.map(|memory| ("memory".to_owned(), memory.to_string())));
    resources.extend(huge.into_iter().map(|(name, size)| (name, size.get().to_string())));
    for (at, (name, amount)) in resources.into_iter().enumerate() {
        if at == 0 {
            text.push_str("    resources:\n");
        }
        let (name, amount) = (quoted(&name), quoted(&amount));
        let _ = writeln!(
            text,
            "      - name: {name}\n        capacity: {amount}\n        allocatable: {amount}\n        available: {amount}"
        );
    }
}

/// A size as Kubernetes names it: `2Mi`.
fn quantity(size: Bytes) -> String {
    let units = [("Gi", 30), ("Mi", 20), ("Ki", 10)];
    let whole = units.into_iter().find(|(_, power)| size.get() > 0 && size.get() % (1 << power) == 0);
    whole.map_or_else(|| size.get().to_string(), |(unit, power)| format!("{}{unit}", size.get() >> power))
}

/// A text as JSON writes it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{HugePool, NodeId, spec};

    #[test]
    fn every_zone_has_what_its_schema_requires() {
        let mut machine = spec::machine("(2c 4G) (8G); dist=10,17/28,10").unwrap();
        let pool = HugePool { page_size: Bytes::from_mib(2), total: Some(512), free: None, surplus: None };
        machine.nodes.get_mut(&NodeId::new(1)).unwrap().huge_pools.push(pool);
        let text = kubernetes(&machine, "web7").unwrap();
        let resource = |name: &str, amount: &str| {
            format!(
                "      - name: \"{name}\"\n        capacity: \"{amount}\"\n        allocatable: \"{amount}\"\n        available: \"{amount}\"\n"
            )
        };
        let cost = |node: u32, value: u32| format!("      - name: \"node-{node}\"\n        value: {value}\n");
        let zone = |node: u32| format!("  - name: \"node-{node}\"\n    type: Node\n    costs:\n");
        let expected = [
            "apiVersion: topology.node.k8s.io/v1alpha2\nkind: NodeResourceTopology\nmetadata:\n  name: \"web7\"\nzones:\n".to_owned(),
            zone(0) + &cost(0, 10) + &cost(1, 17) + "    resources:\n",
            resource("cpu", "2") + &resource("memory", "4294967296"),
            zone(1) + &cost(0, 28) + &cost(1, 10) + "    resources:\n",
            resource("memory", "7516192768") + &resource("hugepages-2Mi", "1073741824"),
        ];
        assert_eq!(text, expected.concat());
    }

    #[test]
    fn sizes_have_the_names_of_kubernetes() {
        for (size, name) in
            [(2 << 20, "2Mi"), (1 << 30, "1Gi"), (65536, "64Ki"), (1 << 19, "512Ki"), (7, "7")]
        {
            assert_eq!(quantity(Bytes::new(size)), name);
        }
    }
}
