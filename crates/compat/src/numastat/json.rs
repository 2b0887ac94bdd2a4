//! The tables as JSON, under the schema `nodewise.numastat/1`.
//!
//! ```json
//! {"schema": "nodewise.numastat/1", "nodes": [0, 1],
//!  "processes": [{"pid": 180, "name": "holder", "nodes": [
//!    {"node": 0, "huge_bytes": 0, "heap_bytes": 0, "stack_bytes": 0, "private_bytes": 4096}]}],
//!  "unreadable_pids": [181],
//!  "meminfo": [{"node": 0, "MemTotal_bytes": 1}],
//!  "counters": [{"node": 0, "numa_hit": 1}]}
//! ```
//!
//! Sizes are in bytes, names fit for a terminal, counters in pages as the kernel counts them. What was not
//! asked for is missing, and what could not be read is missing or `null`, never 0.

use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, MeminfoField, MeminfoValue, NodeId};
use nodewise_source::parse::counters::Counters;
use nodewise_source::parse::numa_maps::sums::{OnNode, Sums, Use};
use serde_json::{Map, Value, json};

use super::options::Options;
use super::pools::Pools;
use super::process::{self, Process};
use super::session::{Session, Stop};
use super::system::{self, ByNode};

/// The name and version of what is written.
pub const SCHEMA: &str = "nodewise.numastat/1";

/// Reads what was asked for and writes it.
///
/// # Errors
/// A file that the imitated release cannot do without.
pub fn write(session: &mut Session<'_>, options: &Options, nodes: &[NodeId]) -> Result<(), Stop> {
    let mut report = Map::new();
    report.insert("schema".into(), SCHEMA.into());
    report.insert("nodes".into(), nodes.iter().map(|node| Value::from(node.number())).collect());
    let chosen = choose(session, options);
    if !options.processes.is_empty() {
        let processes: Vec<Process> = chosen.pids.iter().map(|pid| process::look(session, *pid)).collect();
        let readable =
            processes.iter().filter_map(|process| Some(of_process(process, process.sums.as_ref()?)));
        report.insert("processes".into(), readable.collect());
        let unreadable = processes.iter().filter(|process| process.sums.is_none());
        report.insert("unreadable_pids".into(), unreadable.map(|p| Value::from(p.pid.number())).collect());
    }
    if options.meminfo {
        let meminfo = system::meminfo(session, nodes)?;
        report.insert("meminfo".into(), of_meminfo(session, &meminfo));
    }
    if options.counters || options.plain || chosen.is_empty() && !options.meminfo {
        report.insert("counters".into(), of_counters(&system::counters(session, nodes)?));
    }
    let _ = serde_json::to_writer_pretty(&mut *session.out, &Value::Object(report));
    let _ = session.out.write_all(b"\n");
    Ok(())
}

/// Finds the processes. A pattern that fits none is reported on standard error: standard output is
/// JSON alone.
fn choose(session: &mut Session<'_>, options: &Options) -> process::Chosen {
    let Session { tree, settings, err, .. } = session;
    let mut told = Vec::new();
    let mut quiet = Session { tree, settings: *settings, out: &mut told, err: &mut **err, incomplete: false };
    let chosen = process::choose(&mut quiet, &options.processes);
    let incomplete = quiet.incomplete;
    session.incomplete |= incomplete;
    let _ = session.err.write_all(&told);
    chosen
}

fn of_process(process: &Process, sums: &Sums) -> Value {
    let on_node = |on: &OnNode| {
        let mut sizes = Map::new();
        sizes.insert("node".into(), on.node.number().into());
        for of in Use::ALL {
            sizes.insert(format!("{}_bytes", process::name(of).to_lowercase()), on.memory(of).get().into());
        }
        Value::Object(sizes)
    };
    let name = process.name.as_ref().map(|name| String::from_utf8_lossy(name));
    let name = name.map(|name| printable(&name).into_owned());
    let nodes: Vec<Value> = sums.nodes.iter().map(on_node).collect();
    json!({ "pid": process.pid.number(), "name": name, "nodes": nodes })
}

fn of_meminfo(session: &mut Session<'_>, meminfo: &ByNode<Vec<MeminfoField>>) -> Value {
    let mut pools = Pools::default();
    let mut nodes = Vec::new();
    for (node, fields) in meminfo {
        let mut values = Map::new();
        values.insert("node".into(), node.number().into());
        for MeminfoField { name, value } in fields {
            let size = match *value {
                MeminfoValue::Size(size) => Some(size),
                MeminfoValue::Count(count) => pools.size(session, *node, name, count),
            };
            values.insert(format!("{name}_bytes"), size.map(Bytes::get).into());
        }
        nodes.push(Value::Object(values));
    }
    nodes.into()
}

fn of_counters(counters: &ByNode<Counters>) -> Value {
    let of_node = |(node, counters): &(NodeId, Counters)| {
        let mut values = Map::new();
        values.insert("node".into(), node.number().into());
        values.extend(counters.iter().map(|(name, pages)| (name.to_owned(), pages.into())));
        Value::Object(values)
    };
    counters.iter().map(of_node).collect()
}
