//! Every page counted: `numa_maps` joined with `maps`, and sizes that neither has.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::mapping::{MappedPages, Mapping, MappingKind, MappingPolicy, MappingsMethod};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::plural::plural;
use nodewise_machine::{Bytes, NodeId};

use super::{Found, MappingsError, PageError, PageSource, Process, lines_of, runs};
use crate::parse::numa_maps::{self, Mapping as Numa};
use crate::parse::{Problems, smaps};
use crate::paths;

/// Reads everything.
pub(super) fn read(
    process: &mut Process<'_>,
    pages: Option<&mut dyn PageSource>,
) -> Result<Found, MappingsError> {
    let mut numa = placed(process)?;
    // They are two readings: a mapping may come or go between them. Most do not do so twice.
    if numa.as_ref().is_some_and(|numa| !agree(process, numa)) {
        process.list()?;
        numa = placed(process)?;
    }
    let sizes = sizes(process, pages)?;
    let Some(mut numa) = numa else {
        process.notes.push(
            "this kernel has no numa_maps (it was built without NUMA): the nodes are not known".to_owned(),
        );
        let mappings = (0..process.listed.len())
            .map(|at| Mapping { unsure: false, ..mapping(process, at, None, &sizes) })
            .collect();
        return Ok(Found { mappings, method: MappingsMethod::NoNodes, thread_policy: None });
    };
    let mut mappings = Vec::with_capacity(process.listed.len());
    for at in 0..process.listed.len() {
        let line = numa.remove(&process.listed[at].start);
        mappings.push(mapping(process, at, line.as_ref(), &sizes));
    }
    let unsure = mappings.iter().filter(|mapping| mapping.unsure).count();
    if unsure + numa.len() > 0 {
        let count = plural(unsure + numa.len(), "mapping");
        process.notes.push(format!(
            "{count} came, went or changed twice while they were read: their pages are not counted"
        ));
    }
    Ok(Found { mappings, method: MappingsMethod::Exact, thread_policy: None })
}

/// `numa_maps` by address; `None` where the kernel does not have it.
fn placed(process: &mut Process<'_>) -> Result<Option<BTreeMap<u64, Numa>>, MappingsError> {
    let path = paths::numa_maps(process.pid);
    let (mut placed, mut problems, mut number) = (BTreeMap::new(), Problems::default(), 0u32);
    let read = process.tree.read_lines(&path, &mut |line| {
        number = number.saturating_add(1);
        if let Some(mapping) = Some(line)
            .filter(|line| !line.is_empty())
            .and_then(|line| numa_maps::parse_line(line, number, &mut problems))
        {
            placed.insert(mapping.start, mapping);
        }
    });
    if !process.found(read)? {
        let has_ended = !process.tree.exists(&process.path("maps"));
        return if has_ended { Err(MappingsError::Ended(process.pid)) } else { Ok(None) };
    }
    process.complain(&path, &problems);
    Ok(Some(placed))
}

/// Whether both files have the same mappings. The page that old programs call instead of the kernel is in no
/// `numa_maps`.
fn agree(process: &Process<'_>, numa: &BTreeMap<u64, Numa>) -> bool {
    let starts: BTreeSet<u64> = process.listed.iter().map(|mapping| mapping.start).collect_set();
    let is_missing = |at: &usize| !numa.contains_key(&process.listed[*at].start) && !is_special(process, *at);
    numa.keys().all(|start| starts.contains(start)) && !(0..process.listed.len()).any(|at| is_missing(&at))
}

fn is_special(process: &Process<'_>, at: usize) -> bool {
    process.kinds.kind(&process.listed[at]) == MappingKind::Special
}

/// Sizes of a mapping that `numa_maps` does not have.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    resident: Option<Bytes>,
    transparent: Option<Bytes>,
    swapped: Option<Bytes>,
}

/// The sizes of every mapping, in order: from the page tables, or where the kernel does not give them from
/// `smaps`, which is as dear as `numa_maps`.
fn sizes(process: &mut Process<'_>, pages: Option<&mut dyn PageSource>) -> Result<Vec<Sizes>, MappingsError> {
    let scanned = pages.map(|pages| runs::scan(&process.listed, pages));
    match scanned {
        Some(Ok(found)) => {
            let sizes = process.listed.iter().zip(&found).map(|(listed, present)| Sizes {
                resident: Some(present.resident),
                transparent: Some(present.huge),
                swapped: Some(present.swapped).filter(|_| runs::has_swapped(process.kinds.kind(listed))),
            });
            return Ok(sizes.collect());
        }
        Some(Err(PageError::Gone)) => return Err(MappingsError::Ended(process.pid)),
        Some(Err(PageError::Unsupported | PageError::Refused(_))) | None => {}
    }
    let path = process.path("smaps");
    let read = lines_of(process.tree, &path, smaps::Reading::push, smaps::Reading::finish);
    let Ok(Some(parsed)) = read else { return Ok(vec![Sizes::default(); process.listed.len()]) };
    process.complain(&path, &parsed.problems);
    let of_start: BTreeMap<u64, &smaps::Mapping> =
        parsed.value.iter().map(|mapping| (mapping.start, mapping)).collect_map();
    let sizes = process.listed.iter().map(|listed| {
        let same = of_start.get(&listed.start).filter(|mapping| mapping.end == listed.end);
        same.map_or_else(Sizes::default, |mapping| Sizes {
            resident: mapping.resident,
            transparent: mapping.transparent(),
            swapped: mapping.swapped,
        })
    });
    Ok(sizes.collect())
}

fn mapping(process: &Process<'_>, at: usize, numa: Option<&Numa>, sizes: &[Sizes]) -> Mapping {
    let (listed, sizes) = (&process.listed[at], sizes.get(at).copied().unwrap_or_default());
    let kind = match process.kinds.kind(listed) {
        _ if numa.is_some_and(|numa| numa.huge) => MappingKind::HugePool,
        kind => kind,
    };
    let is_pool = kind == MappingKind::HugePool;
    let pages = numa.and_then(counted).map(MappedPages::Counted);
    let in_bytes = |pages: Option<u64>| Some(numa?.page_size?.times(pages?));
    Mapping {
        start: listed.start,
        end: listed.end,
        permissions: listed.permissions,
        kind,
        file: listed.file,
        name: listed.name.clone(),
        policy: numa
            .map(|numa| MappingPolicy { text: numa.policy_text.clone(), policy: numa.policy.clone() }),
        page_size: numa.and_then(|numa| numa.page_size),
        pages: pages.unwrap_or(MappedPages::Unknown { resident: sizes.resident }),
        // Pages of a pool are huge in the page tables as well.
        transparent: sizes.transparent.filter(|_| !is_pool),
        swapped: sizes.swapped,
        dirty: in_bytes(numa.and_then(|numa| numa.dirty)),
        most_mapped: numa.and_then(|numa| numa.mapmax),
        unsure: numa.is_none() && kind != MappingKind::Special,
    }
}

/// Bytes by node; `None` of pages whose size the line does not say, as before Linux 3.8.
fn counted(numa: &Numa) -> Option<BTreeMap<NodeId, Bytes>> {
    if numa.pages.is_empty() {
        return Some(BTreeMap::new());
    }
    let mut nodes = BTreeMap::new();
    for (node, size) in numa.bytes()? {
        *nodes.entry(node).or_default() += size;
    }
    Some(nodes)
}
