//! The kernel's own words, read without any of nodewise's parsers, so that the two can differ.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use nodewise_machine::{NodeCounters, NodeId};
use nodewise_model::{Memory, ZoneKind};
use rustix::fs::OFlags;

use crate::setting;

const NODES: &str = "/sys/devices/system/node";
const LOG: &str = "/dev/kmsg";
/// Counters in `/proc/vmstat` of the work of kswapds.
const WORK: [&str; 2] = ["pgscan_kswapd ", "pageoutrun "];
/// Longer than a kswapd naps twice, and how often to wait for it.
const TWO_NAPS: Duration = Duration::from_millis(250);
const WAITS: u32 = 100;

/// The text of a file without its line end.
///
/// # Errors
/// It cannot be read; the message names it.
pub fn line(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(|error| format!("{path}: {error}"))
}

/// Numbers of a list such as `0-3,8`.
///
/// # Panics
/// The kernel prints something else.
pub fn list(text: &str) -> Vec<u32> {
    let number = |text: &str| text.parse::<u32>().expect("the kernel prints numbers");
    text.split(',')
        .filter(|item| !item.is_empty())
        .flat_map(|item| match item.split_once('-') {
            Some((first, last)) => number(first)..=number(last),
            None => number(item)..=number(item),
        })
        .collect()
}

/// The nodes that are online.
///
/// # Panics
/// The kernel has no nodes.
pub fn online_nodes() -> Vec<u32> {
    list(&line(&format!("{NODES}/online")).expect("the guest has nodes"))
}

/// Free blocks of a node of at least 2^`order` pages, by `/proc/buddyinfo`.
///
/// # Errors
/// It cannot be read.
pub fn free_blocks(node: NodeId, order: u32) -> Result<u64, String> {
    let head = format!("Node {node}, zone");
    let text = line("/proc/buddyinfo")?;
    // The zone's name comes first, then the blocks of order 0, 1, ...
    let blocks = |line: &str| {
        let counts = line.strip_prefix(&head)?.split_ascii_whitespace().skip(1 + order as usize);
        Some(
            (0..)
                .zip(counts.filter_map(|count| count.parse::<u64>().ok()))
                .map(|(more, count)| count << more)
                .sum::<u64>(),
        )
    };
    Ok(text.lines().filter_map(blocks).sum())
}

/// Pages of files in the page cache of each node, those of files in memory left out.
///
/// # Errors
/// A node does not say.
pub fn page_cache() -> Result<BTreeMap<NodeId, u64>, String> {
    // Each CPU counts for itself, and this adds it up.
    line("/proc/sys/vm/stat_refresh")?;
    let read = |node: u32| {
        let path = format!("{NODES}/node{node}/meminfo");
        let text = line(&path)?;
        let kib = |name: &str| {
            let named = text.lines().find_map(|line| line.split_once(name)).map(|(_, rest)| rest);
            let number = named.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
            number.ok_or_else(|| format!("{path}: no {name}"))
        };
        Ok((NodeId::new(node), kib(" FilePages:")?.saturating_sub(kib(" Shmem:")?) / 4))
    };
    online_nodes().into_iter().map(read).collect()
}

/// Gives up the page cache of files that are on their disks. A small node may be full of it, which the kernel drops for programs and the
/// model does not know.
///
/// # Errors
/// The setting cannot be written.
pub fn drop_page_cache() -> Result<(), String> {
    setting::write("/proc/sys/vm/drop_caches", "1")
}

/// Lowers watermarks that were raised where memory was fragmented, while a guest was booted say. With `vm.watermark_boost_factor` 0 they
/// stay raised until kswapd works: until then a node has that many pages fewer for programs, and kswapd drops page cache for them.
///
/// # Source
/// Each write to the scale factor works out the watermarks again (`__setup_per_zone_wmarks` in `mm/page_alloc.c`).
///
/// # Errors
/// The setting cannot be read or written.
pub fn lower_watermarks() -> Result<(), String> {
    const SCALE: &str = "/proc/sys/vm/watermark_scale_factor";
    setting::write(SCALE, &line(SCALE)?)
}

/// Memory with the zones' free pages as they are now.
///
/// # Errors
/// The kernel does not say.
pub fn memory_now(memory: &Memory) -> Result<Memory, String> {
    let free = free_pages(&line("/proc/zoneinfo")?);
    match memory.zones().iter().find(|zone| !free.contains_key(&(zone.node, zone.kind))) {
        Some(zone) => Err(format!("/proc/zoneinfo: no zone {} of node {}", zone.kind.name(), zone.node)),
        None => Ok(memory.clone().with_free(&free)),
    }
}

fn free_pages(text: &str) -> BTreeMap<(NodeId, ZoneKind), u64> {
    let mut free = BTreeMap::new();
    let mut zone = None;
    for line in text.lines() {
        if let Some((node, kind)) = line.strip_prefix("Node ").and_then(|rest| rest.split_once(", zone")) {
            let node = node.parse().ok().map(NodeId::new);
            zone = node.zip(ZoneKind::from_name(kind.trim()));
        } else if let (Some(zone), Some(rest)) = (zone, line.trim_start().strip_prefix("pages free")) {
            free.extend(rest.trim().parse().ok().map(|pages: u64| (zone, pages)));
        }
    }
    free
}

/// Waits until no kswapd works. After its node is balanced one naps for a tenth of a second and looks again: a program that prefers the
/// node and runs meanwhile takes what was freed down to the low watermark each time, and how much that is goes by its speed. One that
/// sleeps is not woken as long as another node has memory.
///
/// # Source
/// `kswapd_try_to_sleep` in `mm/vmscan.c`.
///
/// # Errors
/// The counters cannot be read.
pub fn wait_for_kswapd() -> Result<(), String> {
    let work = || -> Result<Vec<String>, String> {
        let counts = |line: &&str| WORK.iter().any(|name| line.starts_with(name));
        Ok(line("/proc/vmstat")?.lines().filter(counts).map(str::to_owned).collect())
    };
    let mut before = work()?;
    for _ in 0..WAITS {
        std::thread::sleep(TWO_NAPS);
        let now = work()?;
        if now == before {
            break;
        }
        before = now;
    }
    Ok(())
}

/// Huge pages that khugepaged has begun to make of small ones since the kernel started. It counts one before it changes the first
/// small page; a kernel without huge pages counts none.
///
/// # Errors
/// The counters cannot be read.
pub fn collapses() -> Result<u64, String> {
    line("/proc/vmstat").map(|text| collapses_in(&text))
}

fn collapses_in(text: &str) -> u64 {
    text.lines().find_map(|line| line.strip_prefix("thp_collapse_alloc ")?.parse().ok()).unwrap_or(0)
}

/// The lines of the kernel's log that it still has.
///
/// Each read of the file gives a record, `LEVEL,NUMBER,TIME,FLAGS;TEXT` and lines that say more of it.
///
/// # Errors
/// The log cannot be read.
pub fn log() -> Result<Vec<String>, String> {
    let say = |error: io::Error| format!("{LOG}: {error}");
    let mut options = fs::File::options();
    let options = options.read(true).custom_flags(OFlags::NONBLOCK.bits() as i32);
    let mut file = options.open(LOG).map_err(say)?;
    let mut lines = Vec::new();
    let mut record = [0; 8192];
    loop {
        match file.read(&mut record) {
            Ok(length) => {
                let text = String::from_utf8_lossy(&record[..length]).into_owned();
                let line = text.lines().next().and_then(|line| line.split_once(';'));
                lines.extend(line.map(|(_, text)| text.to_owned()));
            }
            // Older lines made room for new ones; the next read continues after them.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(lines),
            Err(error) => return Err(say(error)),
        }
    }
}

/// Processes that the kernel has killed for want of memory, by number, and the pages in memory that each had then.
///
/// # Errors
/// The log cannot be read.
pub fn killed() -> Result<BTreeMap<u32, u64>, String> {
    Ok(log()?.iter().filter_map(|line| killed_in(line)).collect())
}

/// `Killed process 7 (name) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB`, after other words.
fn killed_in(line: &str) -> Option<(u32, u64)> {
    let (_, rest) = line.split_once("Killed process ")?;
    let pid = rest.split(' ').next()?.parse().ok()?;
    let kib = |name: &str| rest.split_once(name)?.1.split_once("kB")?.0.parse::<u64>().ok();
    Some((pid, (kib("anon-rss:")? + kib("file-rss:")? + kib("shmem-rss:")?) / 4))
}

/// The counters of every node.
///
/// # Panics
/// A node lacks one of them.
pub fn numastat() -> BTreeMap<u32, NodeCounters> {
    let read = |node: u32| {
        let text = fs::read_to_string(format!("{NODES}/node{node}/numastat")).expect("a node has a numastat");
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("numastat has the field");
            line.trim().parse().expect("a counter is a number")
        };
        let counters = NodeCounters::from_names(field);
        (node, counters)
    };
    online_nodes().into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_that_could_not_be_had_are_not_counted() {
        let text = "thp_collapse_alloc_failed 7\nthp_collapse_alloc 3\nthp_split_page 5";
        assert_eq!((collapses_in(text), collapses_in("thp_collapse_alloc_failed 7")), (3, 0));
    }

    #[test]
    fn processes_that_are_killed_are_read_from_lines_of_the_log() {
        let line = "Memory cgroup out of memory: Killed process 175 (lab (2)) total-vm:99796kB, anon-rss:6728kB, file-rss:0kB, \
                    shmem-rss:712kB, UID:0 pgtables:64kB oom_score_adj:0";
        assert_eq!(killed_in(line), Some((175, 1860)));
        for other in ["Killed process", "Killed process 7 (a) total-vm:1kB, anon-rss:kB", "memory: usage 8kB"]
        {
            assert_eq!(killed_in(other), None, "{other}");
        }
    }

    #[test]
    fn free_pages_are_those_of_the_zone_above_them() {
        let text = "Node 0, zone      DMA\n  per-node stats\n      nr_inactive_anon 7\n  pages free     3808\n        boost    0\n\
                    Node 1, zone   Normal\n  pages free     12\n";
        let free: Vec<_> = free_pages(text).into_iter().collect();
        let [first, second] = [0, 1].map(NodeId::new);
        assert_eq!(free, [((first, ZoneKind::Dma), 3808), ((second, ZoneKind::Normal), 12)]);
    }
}
