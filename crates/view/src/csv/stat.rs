//! The running system, a line per fact.

use nodewise_machine::Bytes;

use super::quoted;
use crate::digest::running::{NodeRow, ProcessRow, Running};

/// The first line.
pub const HEAD: &str = "time_s,pid,process,node,name,value,unit\n";

/// Writes the facts of a window without the first line: those of the system have neither a process nor a node.
/// A fact that is not known has no line.
pub fn stat(running: &Running) -> String {
    let time = format!("{:.3}", running.moment.wall.as_secs_f64());
    let mut text = String::new();
    let mut add = |subject: &str, name: &str, value: Option<String>, unit: &str| {
        if let Some(value) = value {
            text.push_str(&format!("{time},{subject},{name},{value},{unit}\n"));
        }
    };
    let rate = |count: Option<u64>| running.rate(count).map(decimal);
    add(",,", "cpu_busy", running.cpus.map(|load| decimal(load.busy)), "share");
    add(",,", "hint_faults", rate(running.balancing.hint_faults), "per_s");
    add(",,", "hint_faults_local", running.balancing.local_share.map(decimal), "share");
    add(",,", "balancing_migrated_pages", rate(running.balancing.migrated_pages), "per_s");
    add(",,", "memory_some", running.pressure.memory_some.map(decimal), "share");
    add(",,", "cpu_some", running.pressure.cpu_some.map(decimal), "share");
    for row in &running.nodes {
        let subject = format!(",,{}", row.node);
        for (name, value, unit) in node(row, running) {
            add(&subject, &name, value, unit);
        }
    }
    for row in &running.services {
        let who = format!(",{},", quoted(&row.name));
        add(&who, "service_cpu", row.cpu_share.map(decimal), "share");
        add(&who, "service_memory", bytes(row.size()), "bytes");
        for (node, size) in row.memory.iter().flatten() {
            add(&format!("{who}{node}"), "service_memory", bytes(Some(*size)), "bytes");
        }
    }
    for row in &running.bandwidth {
        // Caches whose CPUs are on several nodes have no line of a node.
        let node = row.nodes.first().filter(|_| row.nodes.len() == 1);
        let subject = format!(",,{}", node.map(|node| node.to_string()).unwrap_or_default());
        let counts =
            [("all", row.total_bytes), ("own_node", row.local_bytes), ("other_nodes", row.other_bytes())];
        for (name, bytes) in counts {
            add(&subject, &format!("bandwidth_{name}_cache_{}", row.domain), rate(bytes), "bytes_per_s");
        }
    }
    for row in &running.processes {
        let who = format!("{},{}", row.identity.pid, quoted(&row.name));
        for (node, name, value, unit) in process(row) {
            add(&format!("{who},{node}"), name, value, unit);
        }
    }
    text
}

fn decimal(value: f64) -> String {
    format!("{value:.6}")
}

fn bytes(size: Option<Bytes>) -> Option<String> {
    size.map(|size| size.get().to_string())
}

fn node(row: &NodeRow, running: &Running) -> Vec<(String, Option<String>, &'static str)> {
    let mut facts = vec![
        ("cpu_busy".to_owned(), row.load.map(|load| decimal(load.busy)), "share"),
        ("cpu_busiest".to_owned(), row.load.map(|load| decimal(load.busiest.1)), "share"),
        ("size".to_owned(), bytes(row.size.map(|size| size.size)), "bytes"),
        ("free".to_owned(), bytes(row.size.and_then(|size| size.free)), "bytes"),
    ];
    if let Some(memory) = row.memory {
        let parts = memory.parts().into_iter().chain([("rest", Some(memory.rest))]);
        facts.extend(parts.map(|(name, size)| (name.to_owned(), bytes(size), "bytes")));
    }
    let counters = [
        ("hit", row.allocations.hit),
        ("miss", row.allocations.miss),
        ("foreign", row.allocations.foreign),
        ("local", row.allocations.local),
        ("other", row.allocations.other),
        ("promoted_pages", row.promoted),
        ("demoted_pages", row.demoted),
    ];
    facts.extend(counters.map(|(name, count)| (name.to_owned(), running.rate(count).map(decimal), "per_s")));
    facts
}

fn process(row: &ProcessRow) -> Vec<(String, &'static str, Option<String>, &'static str)> {
    let none = String::new;
    let stranded = row.stranded_share().map(decimal);
    let mut facts = vec![
        (none(), "cpu", row.cpu_share.map(decimal), "share"),
        (none(), "resident", bytes(row.resident), "bytes"),
        (none(), "stranded", stranded, "share"),
    ];
    for (node, share) in row.pages.iter().flat_map(|pages| &pages.nodes) {
        facts.push((node.to_string(), "memory", Some(share.size.get().to_string()), "bytes"));
    }
    facts
}
