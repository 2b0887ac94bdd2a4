//! The tables about nodes: their counters and their memory.

use nodewise_machine::id::Id as _;
use nodewise_machine::{MeminfoField, MeminfoValue, NodeId};
use nodewise_source::parse::counters::Counters;
use nodewise_source::parse::{Parsed, counters, meminfo};
use nodewise_source::{file, paths};

use super::pools::Pools;
use super::session::{Session, Stop};
use super::table::{Table, mib};
use crate::Release;

/// Counters are in pages of this size, whatever pages the machine has, as the originals count.
const PAGES_PER_MIB: f64 = 256.0;

/// The counters that 2.0.16 knows.
const OLD_COUNTERS: &[&str] =
    &["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"];

/// The fields of meminfo that 2.0.16 knows, in its order.
const OLD_FIELDS: &[&str] = &[
    "MemTotal",
    "MemFree",
    "MemUsed",
    "HighTotal",
    "HighFree",
    "LowTotal",
    "LowFree",
    "Active",
    "Inactive",
    "Active(anon)",
    "Inactive(anon)",
    "Active(file)",
    "Inactive(file)",
    "Unevictable",
    "Mlocked",
    "Dirty",
    "Writeback",
    "FilePages",
    "Mapped",
    "AnonPages",
    "Shmem",
    "KernelStack",
    "PageTables",
    "NFS_Unstable",
    "Bounce",
    "WritebackTmp",
    "Slab",
    "SReclaimable",
    "SUnreclaim",
    "AnonHugePages",
    "ShmemHugePages",
    "ShmemPmdMapped",
    "HugePages_Total",
    "HugePages_Free",
    "HugePages_Surp",
    "KReclaimable",
];

/// The contents of the files of one name, by node. One whose file cannot be read is left out.
pub type ByNode<T> = Vec<(NodeId, T)>;

/// The numbers of a directory's nodes, ascending.
pub fn node_ids(names: &[String]) -> Vec<NodeId> {
    let numbers = names.iter().filter_map(|name| name.strip_prefix("node")?.parse::<u32>().ok());
    let mut nodes: Vec<NodeId> = numbers.filter(|number| *number < NodeId::LIMIT).map(NodeId::new).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Reads the file of this name of every node.
fn read<T>(
    session: &mut Session<'_>,
    nodes: &[NodeId],
    name: &str,
    parse: impl Fn(&str, NodeId) -> Parsed<T>,
) -> Result<ByNode<T>, Stop> {
    // 2.0.19 learns the names of the rows from node 0, and does not do without it.
    let needs_0 = session.settings.strict && session.settings.release > Release::V2_0_16;
    if needs_0 && nodes.first() != Some(&NodeId::new(0)) {
        return Err(session.cannot_open(&paths::of_node(NodeId::new(0), name), None));
    }
    let mut by_node = Vec::new();
    for node in nodes {
        let path = paths::of_node(*node, name);
        match file::parsed(session.tree, &path, |text| parse(text, *node)) {
            Ok(Some(parsed)) => {
                session.report_problems(&path, &parsed.problems);
                by_node.push((*node, parsed.value));
            }
            missing => {
                let stop = session.cannot_open(&path, missing.err().map(|error| error.cause));
                if session.settings.strict {
                    return Err(stop);
                }
            }
        }
    }
    Ok(by_node)
}

/// The counters of every node, in pages.
///
/// # Source
/// `/sys/devices/system/node/nodeN/numastat`.
///
/// # Errors
/// A file that the imitated release cannot do without.
pub fn counters(session: &mut Session<'_>, nodes: &[NodeId]) -> Result<ByNode<Counters>, Stop> {
    read(session, nodes, "numastat", |text, _| counters::parse(text))
}

/// The memory of every node.
///
/// # Source
/// `/sys/devices/system/node/nodeN/meminfo`.
///
/// # Errors
/// A file that the imitated release cannot do without.
pub fn meminfo(session: &mut Session<'_>, nodes: &[NodeId]) -> Result<ByNode<Vec<MeminfoField>>, Stop> {
    read(session, nodes, "meminfo", meminfo::parse)
}

/// The table of counters, plain as they were read.
pub fn plain_table(session: &mut Session<'_>, nodes: &[NodeId], counters: &ByNode<Counters>) -> Table {
    let mut table = Table::plain(nodes);
    fill(session, &mut table, counters, str::to_owned, 1.0);
    table
}

/// The table of counters in MiB, with capital names and a total.
pub fn counter_table(session: &mut Session<'_>, nodes: &[NodeId], counters: &ByNode<Counters>) -> Table {
    let mut table = Table::with_total(nodes);
    fill(session, &mut table, counters, capital_words, PAGES_PER_MIB);
    table.add_totals();
    table
}

fn fill(
    session: &mut Session<'_>,
    table: &mut Table,
    counters: &ByNode<Counters>,
    named: impl Fn(&str) -> String,
    divisor: f64,
) {
    let old = session.settings.release == Release::V2_0_16;
    if old {
        for name in OLD_COUNTERS {
            table.row(&named(name));
        }
    }
    for (node, counters) in counters {
        for (name, pages) in counters.iter() {
            if old && !OLD_COUNTERS.contains(&name) {
                session.unknown_token(name);
            } else {
                table.set(&named(name), *node, pages as f64 / divisor);
            }
        }
    }
}

/// The table of memory, in MiB.
pub fn meminfo_table(
    session: &mut Session<'_>,
    nodes: &[NodeId],
    meminfo: &ByNode<Vec<MeminfoField>>,
) -> Table {
    let mut table = Table::with_total(nodes);
    let old = session.settings.release == Release::V2_0_16;
    if old {
        for name in OLD_FIELDS {
            table.row(name);
        }
    }
    let mut pools = Pools::default();
    for (node, fields) in meminfo {
        for MeminfoField { name, value } in fields {
            if old && !OLD_FIELDS.contains(&name.as_str()) {
                session.unknown_token(name);
                continue;
            }
            let size = match *value {
                MeminfoValue::Size(size) => Some(size),
                MeminfoValue::Count(count) => pools.size(session, *node, name, count),
            };
            match size {
                Some(size) => table.set(name, *node, mib(size)),
                None => {
                    table.row(name);
                }
            }
        }
    }
    table.add_totals();
    table
}

/// `numa_hit` as `Numa_Hit`.
fn capital_words(name: &str) -> String {
    let mut begins = true;
    name.chars()
        .map(|c| {
            let c = if begins { c.to_ascii_uppercase() } else { c };
            begins = c == '_';
            c
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_in_capital_words() {
        assert_eq!(capital_words("numa_hit"), "Numa_Hit");
        assert_eq!(capital_words("interleave_hit"), "Interleave_Hit");
        assert_eq!(capital_words(""), "");
    }

    #[test]
    fn only_folders_of_nodes_are_nodes() {
        let names = ["node10", "node9", "node3x", "nodefoo", "node", "has_cpu", "node99999999"];
        let names: Vec<String> = names.map(str::to_owned).into();
        assert_eq!(node_ids(&names), [NodeId::new(9), NodeId::new(10)]);
    }
}
