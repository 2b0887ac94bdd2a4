//! The running system, a line per fact.

use nodewise_machine::Bytes;

use super::{decimal, fact_value, known, quoted};
use crate::digest::running::fact::facts;
use crate::digest::running::{ProcessRow, Running};

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
    for fact in facts(running) {
        let subject = format!(",,{}", known(fact.node));
        add(&subject, fact.name, fact.value.map(|value| fact_value(fact.unit, value)), fact.unit.word());
    }
    for row in running.services.iter().flatten() {
        let who = format!(",{},", quoted(&row.name));
        add(&who, "service_cpu", row.cpu_share.map(decimal), "share");
        add(&who, "service_memory", bytes(row.size()), "bytes");
        for (node, size) in row.memory.iter().flatten() {
            add(&format!("{who}{node}"), "service_memory", bytes(Some(*size)), "bytes");
        }
    }
    for row in &running.bandwidth {
        // Those whose CPUs are on several nodes have no line of a node.
        let node = row.nodes.first().filter(|_| row.nodes.len() == 1);
        let subject = format!(",,{}", known(node));
        let counts =
            [("all", row.total_bytes), ("own_node", row.local_bytes), ("other_nodes", row.other_bytes())];
        for (name, bytes) in counts {
            add(
                &subject,
                &format!("bandwidth_{name}_cache_{}", row.domain),
                running.rate(bytes).map(decimal),
                "bytes_per_s",
            );
        }
    }
    for row in &running.controllers {
        let subject = format!(",,{}", known(row.nodes.first().filter(|_| row.nodes.len() == 1)));
        for (name, bytes) in [("read", row.read_bytes), ("written", row.written_bytes)] {
            let name = format!("traffic_{name}_die_of_cpu_{}", known(row.cpus.first()));
            add(&subject, &name, running.rate(bytes).map(decimal), "bytes_per_s");
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

fn bytes(size: Option<Bytes>) -> Option<String> {
    size.map(|size| size.get().to_string())
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
        facts.push((node.to_string(), "memory", bytes(Some(share.size)), "bytes"));
        // The ends of an estimate; what was counted has none.
        let end = |end| bytes(Some(end).filter(|_| share.low != share.high));
        facts.push((node.to_string(), "memory_low", end(share.low), "bytes"));
        facts.push((node.to_string(), "memory_high", end(share.high), "bytes"));
    }
    facts
}
