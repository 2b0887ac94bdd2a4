//! Pools of huge pages. A node's meminfo counts pages of one size only, the default one, and says
//! nothing of the others: their pools are looked up beside it.

use nodewise_machine::{Bytes, NodeId};
use nodewise_source::parse::number;
use nodewise_source::{file, paths};

use super::session::Session;
use crate::Release;

/// The known facts about the pools of the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Known {
    /// The default size of huge pages.
    default: Option<Bytes>,
    /// Whether there are no pages but of the default size.
    only_default: bool,
}

/// The sizes of pools, looked up when the first is asked for.
#[derive(Clone, Debug, Default)]
pub struct Pools {
    known: Option<Known>,
}

impl Pools {
    /// The size of a pool of a node that its meminfo counts `count` pages of the default size in;
    /// `None`, with a word of it, when the size of those pages is not known.
    pub fn size(
        &mut self,
        session: &mut Session<'_>,
        node: NodeId,
        field: &str,
        count: u64,
    ) -> Option<Bytes> {
        let known = *self.known.get_or_insert_with(|| look(session));
        let every = session.settings.release > Release::V2_0_16 && !known.only_default;
        let pools = every.then(|| of_every_size(session, node, file_of(field)?)).flatten();
        let size = pools.or_else(|| known.default.map(|size| size.times(count)));
        if size.is_none() && count == 0 {
            return Some(Bytes::new(0));
        }
        if size.is_none() {
            let line = "the size of huge pages is not known: no Hugepagesize in /proc/meminfo";
            let _ = writeln!(session.err, "numastat: {field} of node {node}: {line}");
            session.incomplete = true;
        }
        size
    }
}

/// The file of a pool that a field of meminfo is about.
fn file_of(field: &str) -> Option<&'static str> {
    match field {
        "HugePages_Total" => Some("nr_hugepages"),
        "HugePages_Free" => Some("free_hugepages"),
        "HugePages_Surp" => Some("surplus_hugepages"),
        _ => None,
    }
}

/// Looks at the sum of all pools.
///
/// # Source
/// `/proc/meminfo`: `Hugetlb` (Linux 4.16) is the memory in huge pages of all sizes.
fn look(session: &Session<'_>) -> Known {
    let text = session.tree.read_text(paths::MEMINFO).ok().flatten().unwrap_or_default();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    let default = value("Hugepagesize").map(Bytes::from_kib);
    let of_default = default.zip(value("HugePages_Total")).map(|(size, count)| size.times(count));
    let of_all = value("Hugetlb").map(Bytes::from_kib);
    Known { default, only_default: of_all.is_some() && of_all == of_default }
}

/// The sum of the pools of a node over all page sizes; `None` where it has none to look into.
///
/// # Source
/// `/sys/devices/system/node/nodeN/hugepages/hugepages-SIZEkB/`, Linux 2.6.33.
fn of_every_size(session: &mut Session<'_>, node: NodeId, name: &str) -> Option<Bytes> {
    let folder = paths::of_node(node, "hugepages");
    let pools = session.tree.list(&folder).ok().flatten()?;
    let mut sum = None;
    for pool in pools {
        let kib = pool.strip_prefix("hugepages-").and_then(|pool| pool.strip_suffix("kB"));
        let Some(size) = kib.and_then(|kib| kib.parse().ok()).map(Bytes::from_kib) else { continue };
        let path = format!("{folder}/{pool}/{name}");
        match file::value(session.tree, &path, number::number::<u64>) {
            Ok(Some(count)) => *sum.get_or_insert(Bytes::new(0)) += size.times(count),
            Ok(None) => drop(session.cannot_open(&path, None)),
            Err(error) => {
                let _ = writeln!(session.err, "numastat: {error}");
                session.incomplete = true;
            }
        }
    }
    sum
}
