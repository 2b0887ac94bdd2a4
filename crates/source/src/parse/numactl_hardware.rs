//! The text of `numactl --hardware`, as people save it and paste it into reports.
//!
//! # Source
//! numactl 2.0.9 to 2.0.19, `numactl --hardware` (`-H`): CPUs, size and free memory of each node in MiB, and distances.

use std::collections::BTreeMap;

use nodewise_machine::id::Id as _;
use nodewise_machine::{Bytes, CpuSet, NodeId, NodeSet};

use super::{ParseError, digits, lines};

/// The words behind `size:` and `free:` where the kernel does not say them.
const NOT_AVAILABLE: &str = "<not available>";
/// The limit for the memory of a node: 2^63 bytes.
const MOST_MIB: u64 = 1 << 43;

/// A machine in the words of numactl.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Hardware {
    pub nodes: BTreeMap<NodeId, HardwareNode>,
    /// By row and column in the order of the nodes; empty where numactl had none.
    pub distances: Vec<Vec<u32>>,
}

/// A node. `None`: not available.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HardwareNode {
    pub cpus: CpuSet,
    pub size: Option<Bytes>,
    pub free: Option<Bytes>,
}

/// Whether a text is one: its first line after prompts says how many nodes are available.
pub fn is_numactl_hardware(text: &str) -> bool {
    lines(text)
        .map(|(_, line)| line.trim())
        .find(|line| !is_aside(line))
        .is_some_and(|line| header(line).is_some())
}

/// Reads it.
///
/// # Errors
/// The first line that is not as numactl prints it, and what is missing at the end.
pub fn parse(text: &str) -> Result<Hardware, ParseError> {
    let mut hardware = Hardware::default();
    let mut expected = NodeSet::new();
    let mut columns: Option<Vec<NodeId>> = None;
    let (mut last, mut rows) = (0, Vec::new());
    for (number, line) in lines(text) {
        let line = line.trim();
        let error = |expected: String| ParseError::new(number, expected, line);
        last = number;
        if is_aside(line) || line == "node distances:" || line == "No distance information available." {
            continue;
        }
        if let Some(rest) = header(line) {
            if !expected.is_empty() {
                return Err(error("one machine in the file".to_owned()));
            }
            expected = rest.parse().map_err(|_| error("a list of nodes such as (0-3)".to_owned()))?;
        } else if let Some(columns) = &columns {
            rows.push(row(line, columns, rows.len()).map_err(error)?);
        } else if let Some(heads) = line.strip_prefix("node ").and_then(ids) {
            if !heads.iter().copied().eq(expected.iter()) {
                return Err(error(format!("the nodes {expected}, one column each")));
            }
            columns = Some(heads);
        } else {
            node(line, &expected, &mut hardware).map_err(error)?;
        }
    }
    if expected.is_empty() {
        return Err(ParseError::new(
            1,
            "a line such as \"available: 2 nodes (0-1)\"",
            text.lines().next().unwrap_or(""),
        ));
    }
    if let Some(missing) = expected.iter().find(|node| !hardware.nodes.contains_key(node)) {
        return Err(ParseError::new(
            last,
            format!("the lines of node {missing}, which the first one announces"),
            "",
        ));
    }
    if columns.is_some_and(|columns| columns.len() != rows.len()) {
        return Err(ParseError::new(last, format!("{} rows of distances", expected.len()), ""));
    }
    hardware.distances = rows;
    Ok(hardware)
}

/// Whether a line is not numactl's: blank, or the prompt of whoever saved the text.
fn is_aside(line: &str) -> bool {
    line.is_empty()
        || ((line.starts_with(['$', '#', '[']) || line.contains("$ ")) && line.contains("numactl"))
}

/// The nodes of `available: 2 nodes (0-1)`.
fn header(line: &str) -> Option<&str> {
    let (count, nodes) = line.strip_prefix("available: ")?.split_once(" node")?;
    digits::<u32>(count)?;
    nodes.trim_start_matches('s').trim().strip_prefix('(')?.strip_suffix(')')
}

fn ids(words: &str) -> Option<Vec<NodeId>> {
    words.split_ascii_whitespace().map(node_id).collect()
}

fn node_id(word: &str) -> Option<NodeId> {
    digits::<u32>(word).filter(|number| *number < NodeId::LIMIT).map(NodeId::new)
}

/// Takes a line of a node: `node 0 cpus: 0 1`, `node 0 size: 128835 MB`.
fn node(line: &str, expected: &NodeSet, hardware: &mut Hardware) -> Result<(), String> {
    let form = || "\"node N cpus:\", \"node N size:\", \"node N free:\" or \"node distances:\"".to_owned();
    let (name, value) = line.split_once(':').ok_or_else(form)?;
    let mut words = name.split_ascii_whitespace();
    let (Some("node"), Some(id), Some(fact), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(form());
    };
    let id = node_id(id)
        .filter(|id| expected.contains(*id))
        .ok_or_else(|| format!("one of the nodes {expected}"))?;
    let node = hardware.nodes.entry(id).or_default();
    match fact {
        "cpus" => {
            // `0-3 (4)` with --cpu-compress, which counts them.
            let list = value.split_once('(').map_or(value, |(list, _)| list);
            for word in list.split_ascii_whitespace() {
                let cpus: CpuSet = word.parse().map_err(|_| "numbers of CPUs".to_owned())?;
                node.cpus = node.cpus.union(&cpus);
            }
        }
        "size" => node.size = size(value)?,
        "free" => node.free = size(value)?,
        _ => return Err(form()),
    }
    Ok(())
}

fn size(value: &str) -> Result<Option<Bytes>, String> {
    let value = value.trim();
    if value == NOT_AVAILABLE {
        return Ok(None);
    }
    let mib = value.strip_suffix("MB").map(str::trim).and_then(digits).filter(|mib| *mib < MOST_MIB);
    Ok(Some(Bytes::from_mib(mib.ok_or_else(|| format!("a number of MB, or {NOT_AVAILABLE}"))?)))
}

/// Reads `0:  10  21`.
fn row(line: &str, columns: &[NodeId], at: usize) -> Result<Vec<u32>, String> {
    let node = columns.get(at).ok_or_else(|| format!("no row behind that of node {}", columns.len()))?;
    let form = || format!("node {node}, a colon and {} distances", columns.len());
    let (id, distances) = line.split_once(':').ok_or_else(form)?;
    let distances: Option<Vec<u32>> = distances.split_ascii_whitespace().map(digits).collect();
    let is_whole = |row: &Vec<u32>| row.len() == columns.len() && node_id(id.trim()) == Some(*node);
    distances.filter(is_whole).ok_or_else(form)
}

#[cfg(test)]
mod tests;
