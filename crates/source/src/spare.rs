//! Memory that can still be had: on a node, in its pools of huge pages, below the limit of a control
//! group.
//!
//! Who is about to take much memory of one node asks here first: a policy that allows no other node
//! ends in the OOM killer, not in an error.

mod groups;

use nodewise_machine::{Bytes, Machine, MeminfoField, MeminfoValue, Node, NodeId, Origin};

use crate::facts;
use crate::file::{self, FileError};
use crate::parse::mounts::Mount;
use crate::parse::zoneinfo::ZoneInfo;
use crate::parse::{cgroup, counters, cpu_max, meminfo, mounts, number, smaps};
use crate::paths;
use crate::process::Pid;
use crate::tree::{ReadError, Tree};

pub use groups::{GroupVersion, LimitedGroup, limited_groups};

/// The page that `/proc/zoneinfo` counts in, where that is unknown: that of x86.
const PAGE: Bytes = Bytes::from_kib(4);

/// Memory of a node that can be had without pushing out anybody's but caches of files: free memory
/// above the watermarks, and the part of the caches that the kernel counts as reclaimable. `None`
/// where the files do not say.
///
/// # Source
/// `/sys/devices/system/node/nodeN/meminfo` and the watermarks of `/proc/zoneinfo`, put together as
/// `MemAvailable` of `/proc/meminfo` is (`si_mem_available()`, Linux 3.14; documented in proc(5)),
/// for one node: caches down to their half or the low watermark do not count. Memory that is not initialised
/// yet is free: its size is that of [`nodewise_machine::Machine::uninitialised_of`].
///
/// # Errors
/// A file that cannot be read.
pub fn of_node(tree: &Tree, node: NodeId, page: Option<Bytes>) -> Result<Option<Bytes>, ReadError> {
    let Some(fields) = file::parsed(tree, &paths::of_node(node, "meminfo"), |t| meminfo::parse(t, node))?
    else {
        return Ok(None);
    };
    let zones = crate::system::zones(tree)?.map(|parsed| parsed.value).unwrap_or_default();
    let counted = available(&fields.value, &zones, node, page.unwrap_or(PAGE));
    let lagging = uninitialised(tree, &zones, node, page.unwrap_or(PAGE));
    Ok(counted.map(|counted| Bytes::new(counted.get().saturating_add(lagging.get()))))
}

/// Memory of a node that its kernel has not initialised yet; 0 where the files do not show any.
fn uninitialised(tree: &Tree, zones: &ZoneInfo, node: NodeId, page: Bytes) -> Bytes {
    let mut machine = Machine::new(Origin::Live);
    machine.system_memory = file::value(tree, paths::MEMINFO, meminfo::system_total).ok().flatten().flatten();
    for id in &facts::nodes(tree).unwrap_or_default() {
        let mut own = Node::new(id);
        let fields = file::parsed(tree, &paths::of_node(id, "meminfo"), |text| meminfo::parse(text, id));
        own.meminfo = fields.ok().flatten().map(|parsed| parsed.value).unwrap_or_default();
        let present = zones.zones.iter().filter(|zone| zone.node == id).filter_map(|zone| zone.present);
        own.present = present.reduce(u64::saturating_add).map(|pages| page.times(pages));
        machine.nodes.insert(id, own);
    }
    machine.uninitialised_of(node)
}

fn available(fields: &[MeminfoField], zones: &ZoneInfo, node: NodeId, page: Bytes) -> Option<Bytes> {
    let size = |name: &str| size_of(fields, name).map(Bytes::get);
    let marks = |mark: fn(&crate::parse::zoneinfo::Zone) -> Option<u64>| {
        let pages = zones.zones.iter().filter(|zone| zone.node == node).filter_map(mark);
        pages.fold(0, u64::saturating_add).saturating_mul(page.get())
    };
    let (low, high) = (marks(|zone| zone.low), marks(|zone| zone.high));
    let reclaimable = |size: u64| size - (size / 2).min(low);
    let files = size("Active(file)").unwrap_or(0).saturating_add(size("Inactive(file)").unwrap_or(0));
    let slab = size("SReclaimable").unwrap_or(0);
    let free = size("MemFree")?.saturating_sub(high);
    Some(Bytes::new(free.saturating_add(reclaimable(files)).saturating_add(reclaimable(slab))))
}

fn size_of(fields: &[MeminfoField], name: &str) -> Option<Bytes> {
    fields.iter().find(|field| field.name == name).and_then(|field| match field.value {
        MeminfoValue::Size(size) => Some(size),
        MeminfoValue::Count(_) => None,
    })
}

/// A node's memory, as room for pages is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRoom {
    pub size: Bytes,
    pub free: Bytes,
    /// Free memory and caches of files, less the high watermark.
    pub available: Bytes,
    /// The sum of the high watermarks of its zones.
    pub high: Bytes,
}

/// A node's memory now; `None` where the files do not say all of it.
///
/// # Source
/// `/sys/devices/system/node/nodeN/meminfo` and the watermarks of `/proc/zoneinfo`.
pub fn node_room(tree: &Tree, node: NodeId, page: Bytes) -> Option<NodeRoom> {
    let fields = file::parsed(tree, &paths::of_node(node, "meminfo"), |text| meminfo::parse(text, node));
    let fields = fields.ok()??.value;
    let size = |name: &str| size_of(&fields, name);
    let zones = crate::system::zones(tree).ok()??.value;
    let marks = zones.zones.iter().filter(|zone| zone.node == node).filter_map(|zone| zone.high);
    let high = page.times(marks.reduce(u64::saturating_add)?);
    let free = size("MemFree")?;
    let can = free + size("Active(file)")? + size("Inactive(file)")? + size("SReclaimable")?;
    let available = Bytes::new(can.get().saturating_sub(high.get()));
    Some(NodeRoom { size: size("MemTotal")?, free, available, high })
}

/// Whether pages can be swapped out; `None` where that is not known.
///
/// # Source
/// `/proc/meminfo`, `SwapTotal`.
pub fn has_swap(tree: &Tree) -> Option<bool> {
    let size = file::value(tree, paths::MEMINFO, meminfo::system_swap).ok()??;
    size.map(|size| size.get() > 0)
}

/// Free pages of a node's pool of huge pages; `None` where there is no such pool.
///
/// # Source
/// `/sys/devices/system/node/nodeN/hugepages/hugepages-<size>kB/free_hugepages`, Linux 2.6.32.
///
/// # Errors
/// A file that cannot be read or does not parse.
pub fn huge_pages(tree: &Tree, node: NodeId, size: Bytes) -> Result<Option<u64>, FileError> {
    file::value(tree, &paths::huge_pool(node, size, "free_hugepages"), number::number::<u64>)
}

/// Memory of this process in transparent huge pages, of mappings that touch a range of addresses.
///
/// # Source
/// `/proc/self/smaps`, Linux 2.6.38.
///
/// # Errors
/// A file that cannot be read.
pub fn transparent_huge(tree: &Tree, start: u64, end: u64) -> Result<Option<Bytes>, ReadError> {
    let mappings = file::parsed(tree, "/proc/self/smaps", smaps::parse)?;
    Ok(mappings.and_then(|mappings| smaps::anon_huge_within(&mappings.value, start, end)))
}

/// Memory that this process may take before it meets the nearest limit of its control groups;
/// caches of files count as free. `None` without a limit, and where that is unknown.
///
/// # Source
/// `memory.max`, `memory.current` and `memory.stat` of the group and those above it, Linux 4.5; with
/// version 1 `memory.limit_in_bytes` and `memory.usage_in_bytes`.
pub fn below_limit(tree: &Tree) -> Option<Bytes> {
    least(tree, &groups(tree, "self")?, room)
}

/// The part in use of the nearest limit of a process's control groups, from 0 to 1, caches of files apart; 0 without a
/// limit. `None` where its groups cannot be read.
///
/// # Source
/// As [`below_limit`], with `/proc/PID/cgroup`.
pub fn limit_used(tree: &Tree, pid: Pid) -> Option<f64> {
    let unused = |tree: &Tree, folder: &str| {
        let (limit, used) = limit_and_use(tree, folder)?;
        // In parts of a million, which have an order; a use that is not known may be all of it.
        let used = used.unwrap_or(limit);
        Some(if limit == 0 { 0 } else { 1_000_000 - (used as f64 / limit as f64 * 1e6).min(1e6) as u64 })
    };
    let groups = groups(tree, pid)?;
    if groups.iter().any(|(mount, group)| !tree.exists(&format!("{mount}/{group}"))) {
        return None;
    }
    Some(least(tree, &groups, unused).map_or(0.0, |unused| (1_000_000 - unused) as f64 / 1e6))
}

/// The least limit of a process's control groups and those above them; `None` inside where they have none, outside
/// where that is not known.
///
/// # Source
/// `memory.max`, Linux 4.5; with version 1 `memory.limit_in_bytes`.
pub fn limit(tree: &Tree, pid: Pid) -> Option<Option<Bytes>> {
    // Without a limit version 1 writes the largest number of whole pages.
    let limit = |tree: &Tree, folder: &str| {
        limit_and_use(tree, folder).map(|(limit, _)| limit).filter(|limit| *limit < NO_LIMIT)
    };
    Some(least(tree, &groups(tree, pid)?, limit).map(Bytes::new))
}

/// The least CPU time that a process's control groups and those above them allow, in thousandths of a CPU; `None` inside
/// where they allow all there is, outside where that is not known.
///
/// # Source
/// `cpu.max`, Linux 4.15; with version 1 `cpu.cfs_quota_us` and `cpu.cfs_period_us`.
pub fn cpu_quota(tree: &Tree, pid: Pid) -> Option<Option<u64>> {
    let quota = |tree: &Tree, folder: &str| {
        if let Some(quota) = file::value(tree, &format!("{folder}/cpu.max"), cpu_max::parse).ok().flatten() {
            return quota;
        }
        // Without a quota version 1 writes -1, which is not a number of microseconds.
        let number =
            |name: &str| file::value(tree, &format!("{folder}/{name}"), number::number::<u64>).ok().flatten();
        let period = number("cpu.cfs_period_us").filter(|period| *period > 0)?;
        Some(cpu_max::thousandths(number("cpu.cfs_quota_us")?, period))
    };
    Some(least(tree, &groups_of(tree, pid, "cpu")?, quota))
}

/// Memory of a process's own control group in transparent huge pages; `None` with version 1, and in the root group.
///
/// # Source
/// `anon_thp` of `memory.stat`, Linux 5.6.
pub fn anon_huge_of_group(tree: &Tree, pid: Pid) -> Option<Bytes> {
    groups(tree, pid)?.iter().find_map(|(mount, group)| {
        let stat = file::parsed(tree, &format!("{mount}/{group}/memory.stat"), counters::parse).ok()??;
        stat.value.get("anon_thp").map(Bytes::new)
    })
}

/// The control groups of a process that may limit its memory.
fn groups(tree: &Tree, process: impl std::fmt::Display) -> Option<Vec<(String, String)>> {
    groups_of(tree, process, "memory")
}

/// The control groups of a process with a controller: where their hierarchy is mounted, and the path there.
fn groups_of(
    tree: &Tree,
    process: impl std::fmt::Display,
    controller: &str,
) -> Option<Vec<(String, String)>> {
    let mounts = file::parsed(tree, "/proc/mounts", mounts::parse).ok()??.value;
    let path = format!("/proc/{process}/cgroup");
    let memberships = file::parsed(tree, &path, cgroup::parse).ok()??.value;
    let unified = |mount: &Mount| mount.kind == "cgroup2";
    let old = |mount: &Mount| mount.kind == "cgroup" && mount.has(controller);
    let mut groups = Vec::new();
    for mount in mounts.iter().filter(|mount| unified(mount) || old(mount)) {
        let is_there = |member: &&cgroup::Membership| {
            if unified(mount) {
                member.is_unified()
            } else {
                member.controllers.iter().any(|name| name == controller)
            }
        };
        let Some(member) = memberships.iter().find(is_there) else { continue };
        // A path that climbs belongs to a process outside of the namespace.
        if member.path.contains("..") {
            return None;
        }
        groups.push((mount.folder.clone(), member.path.trim_matches('/').to_owned()));
    }
    Some(groups)
}

/// The least value of some groups and those above them.
fn least<T: Ord>(
    tree: &Tree,
    groups: &[(String, String)],
    value: impl Fn(&Tree, &str) -> Option<T>,
) -> Option<T> {
    groups.iter().filter_map(|(mount, group)| nearest(tree, mount, group, &value)).min()
}

/// The least value of a group and those above it.
fn nearest<T: Ord>(
    tree: &Tree,
    mount: &str,
    group: &str,
    value: impl Fn(&Tree, &str) -> Option<T>,
) -> Option<T> {
    let mut folder = format!("{mount}/{group}");
    let mut least = None;
    loop {
        let folder_now = folder.trim_end_matches('/');
        if let Some(found) = value(tree, folder_now) {
            least = Some(match least {
                Some(least) => std::cmp::min(least, found),
                None => found,
            });
        }
        if folder_now.len() <= mount.len() {
            return least;
        }
        folder.truncate(folder_now.rfind('/')?);
    }
}

/// Names of the limit, the use, and the caches of files in the statistics; the last of version 1
/// count the groups below too.
const FILES: [(&str, &str, [&str; 2]); 2] = [
    ("memory.max", "memory.current", ["active_file", "inactive_file"]),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", ["total_active_file", "total_inactive_file"]),
];

fn room(tree: &Tree, folder: &str) -> Option<Bytes> {
    let (limit, used) = limit_and_use(tree, folder)?;
    Some(Bytes::new(limit.saturating_sub(used?)))
}

/// The limit of a group, and its use without caches of files; `None` without a limit.
fn limit_and_use(tree: &Tree, folder: &str) -> Option<(u64, Option<u64>)> {
    FILES.iter().find_map(|(limit, used, caches)| {
        let number =
            |name: &str| file::value(tree, &format!("{folder}/{name}"), number::number::<u64>).ok().flatten();
        // Without a limit the file says `max`, which is not a number.
        let limit = number(limit)?;
        let stat = file::parsed(tree, &format!("{folder}/memory.stat"), counters::parse).ok().flatten();
        let cached = |name: &&str| stat.as_ref().and_then(|stat| stat.value.get(name)).unwrap_or(0);
        let files = caches.iter().map(cached).fold(0, u64::saturating_add);
        Some((limit, number(used).map(|used| used.saturating_sub(files))))
    })
}

/// From here on a limit of version 1 is none.
const NO_LIMIT: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    const NODE: NodeId = NodeId::new(1);

    fn tree(meminfo: &str, zones: &str) -> Tree {
        let files = Memory::new().file("/sys/devices/system/node/node1/meminfo", meminfo);
        Tree::memory(if zones.is_empty() { files } else { files.file("/proc/zoneinfo", zones) })
    }

    fn check(meminfo: &str, zones: &str, expected: Option<u64>) {
        let found = of_node(&tree(meminfo, zones), NODE, None).unwrap();
        assert_eq!(found.map(|size| size.get() / 1024), expected);
    }

    #[test]
    fn what_is_available_is_free_memory_and_half_of_the_caches() {
        check("Node 1 MemTotal: 900 kB\n", "", None);
        check("Node 1 MemFree: 900 kB\n", "", Some(900));
        let zones = "Node 0, zone Normal\n  pages free 9\n        min 900\n        low 900\n        high 900\nNode 1, zone Normal\n  pages free 9\n        min 5\n        low 10\n        high 20\n";
        check("Node 1 MemFree: 900 kB\n", zones, Some(900 - 80));
        check("Node 1 MemFree: 70 kB\n", zones, Some(0));
        let files = "Node 1 MemFree: 900 kB\nNode 1 Active(file): 30 kB\nNode 1 Inactive(file): 30 kB\nNode 1 SReclaimable: 900 kB\n";
        check(files, zones, Some(900 - 80 + 60 - 30 + 900 - 40));
    }

    /// A machine that initialises page structures late: its node counts 1,000 kB of 2,000 kB, all of them present.
    #[test]
    fn memory_that_is_not_initialised_yet_can_be_had() {
        let available = |system: &str| {
            let files = Memory::new()
                .directory("/sys/devices/system/node/node1")
                .file("/sys/devices/system/node/online", "1\n")
                .file("/sys/devices/system/node/possible", "1\n")
                .file(
                    "/sys/devices/system/node/node1/meminfo",
                    "Node 1 MemTotal: 1000 kB\nNode 1 MemFree: 300 kB\n",
                )
                .file("/proc/meminfo", system)
                .file(
                    "/proc/zoneinfo",
                    "Node 1, zone Normal\n  pages free 75\n        high 5\n        present  525\n",
                );
            of_node(&Tree::memory(files), NODE, None).unwrap().map(|size| size.get() / 1024)
        };
        assert_eq!(available("MemTotal: 2000 kB\n"), Some(300 - 20 + 1000));
        assert_eq!(available("MemTotal: 1000 kB\n"), Some(300 - 20));
        // More than is present cannot be had.
        assert_eq!(available("MemTotal: 9000 kB\n"), Some(300 - 20 + 1100));
    }

    #[test]
    fn a_node_or_a_pool_that_is_not_there_is_not_known() {
        let tree = Tree::memory(
            Memory::new()
                .file("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "7\n"),
        );
        assert_eq!(of_node(&tree, NODE, None).unwrap(), None);
        assert_eq!(huge_pages(&tree, NODE, Bytes::from_mib(2)).unwrap(), Some(7));
        assert_eq!(huge_pages(&tree, NODE, Bytes::from_gib(1)).unwrap(), None);
        assert_eq!(transparent_huge(&tree, 0, u64::MAX).unwrap(), None);
        assert_eq!(below_limit(&tree), None);
    }

    #[test]
    fn the_nearest_limit_of_the_groups_above_counts() {
        let files = |job_limit: &str| {
            Memory::new()
                .file("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
                .file("/proc/self/cgroup", "0::/job/step\n")
                .file("/sys/fs/cgroup/job/memory.max", job_limit)
                .file("/sys/fs/cgroup/job/memory.current", "700\n")
                .file("/sys/fs/cgroup/job/memory.stat", "anon 100\nactive_file 100\ninactive_file 200\n")
                .file("/sys/fs/cgroup/job/step/memory.max", "5000\n")
                .file("/sys/fs/cgroup/job/step/memory.current", "600\n")
        };
        let check = |limit, expected| {
            assert_eq!(below_limit(&Tree::memory(files(limit))), Some(Bytes::new(expected)));
        };
        check("1000\n", 600);
        check("max\n", 4400);
        check("10\n", 0);
    }

    #[test]
    fn the_part_in_use_is_that_of_the_nearest_limit() {
        let check = |limit: &str, expected: Option<f64>| {
            let files = Memory::new()
                .file("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
                .file("/proc/7/cgroup", "0::/job\n")
                .file("/sys/fs/cgroup/job/memory.max", limit)
                .file("/sys/fs/cgroup/job/memory.current", "1000\n")
                .file("/sys/fs/cgroup/job/memory.stat", "active_file 100\n");
            assert_eq!(limit_used(&Tree::memory(files), Pid::new(7)), expected, "{limit}");
        };
        let outside = Memory::new()
            .file("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
            .file("/proc/7/cgroup", "0::/not/here\n");
        assert_eq!(limit_used(&Tree::memory(outside), Pid::new(7)), None, "its group is not to be seen");
        check("1000\n", Some(0.9));
        check("max\n", Some(0.0));
        check("100\n", Some(1.0));
        assert_eq!(limit_used(&Tree::memory(Memory::new()), Pid::new(7)), None, "unknown is not 0");
    }

    #[test]
    fn room_is_known_only_where_all_of_it_is() {
        let zones = "Node 1, zone Normal\n  pages free 9\n        min 5\n        low 10\n        high 20\n";
        let lines =
            ["MemTotal: 900", "MemFree: 300", "Active(file): 30", "Inactive(file): 30", "SReclaimable: 9"];
        let text =
            |lines: &[&str]| lines.iter().map(|line| format!("Node 1 {line} kB\n")).collect::<String>();
        let page = Bytes::from_kib(4);
        let expected = NodeRoom {
            size: Bytes::from_kib(900),
            free: Bytes::from_kib(300),
            available: Bytes::from_kib(369 - 80),
            high: Bytes::from_kib(80),
        };
        assert_eq!(node_room(&tree(&text(&lines), zones), NODE, page), Some(expected));
        assert_eq!(node_room(&tree(&text(&lines), ""), NODE, page), None);
        assert_eq!(node_room(&tree(&text(&lines[..4]), zones), NODE, page), None);
        let swap = |text: &str| has_swap(&Tree::memory(Memory::new().file(paths::MEMINFO, text)));
        assert_eq!(
            (swap("SwapTotal: 0 kB\n"), swap("SwapTotal: 8 kB\n"), swap("")),
            (Some(false), Some(true), None)
        );
    }

    #[test]
    fn the_old_hierarchy_has_other_names() {
        let tree = Tree::memory(
            Memory::new()
                .file("/proc/mounts", "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n")
                .file("/proc/self/cgroup", "4:memory:/a\n0::/\n")
                .file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n")
                .file("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "300\n")
                .file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
                .file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "900\n"),
        );
        assert_eq!(below_limit(&tree), Some(Bytes::new(700)));
    }
}
