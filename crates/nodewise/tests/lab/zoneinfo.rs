//! How full each zone is, and what it holds back for CPUs: `/proc/zoneinfo`, in the kernel's own words.

use std::fs;

use nodewise_machine::NodeId;
use nodewise_model::{Watermarks, ZoneKind, ZoneState};

use crate::kernel;

/// Makes the kernel add up what its CPUs have counted on their own.
const ADD_UP: &str = "/proc/sys/vm/stat_refresh";

/// A zone that has pages.
#[derive(Clone, Debug)]
pub struct Zone {
    /// With its free pages, and the reserve of programs in place of all.
    pub state: ZoneState,
    lists: Vec<List>,
    /// How far the free pages may be from the truth for each CPU.
    drift: u64,
    /// Pages by which the watermarks are raised for a while.
    raised: u64,
}

/// Free pages that are kept for one CPU.
#[derive(Clone, Debug)]
struct List {
    cpu: u32,
    pages: u64,
    most: u64,
}

impl Zone {
    /// The pages that are kept for CPUs. Those that a CPU does not need are given back after a while.
    pub fn kept(&self) -> u64 {
        self.lists.iter().map(|list| list.pages).sum()
    }

    /// The pages by which the watermarks are raised at the moment.
    pub const fn raised(&self) -> u64 {
        self.raised
    }

    /// The most pages that may be kept for a CPU.
    pub fn most_kept_for(&self, cpu: u32) -> u64 {
        self.lists.iter().filter(|list| list.cpu == cpu).map(|list| list.most).sum()
    }

    /// Events that a CPU may keep to itself before a counter of the zone or its node has them.
    pub const fn drift_of_cpu(&self) -> u64 {
        self.drift
    }

    /// How far the free pages may be from what the watermarks are compared with.
    pub fn drift(&self) -> u64 {
        self.drift * self.lists.len() as u64
    }
}

/// The zones as they are now, by node and then lowest first.
pub fn zones() -> Result<Vec<Zone>, String> {
    // Reading it is enough.
    kernel::line(ADD_UP)?;
    let text = fs::read_to_string("/proc/zoneinfo").map_err(|error| format!("/proc/zoneinfo: {error}"))?;
    let blocks = text.split("\nNode ").map(|block| block.trim_start_matches("Node "));
    blocks.filter(|block| find(block, "managed ").is_some_and(|pages| pages > 0)).map(zone).collect()
}

/// The number behind a name that a line starts with.
fn find(lines: &str, name: &str) -> Option<u64> {
    let rest = lines.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    rest.trim_start_matches([':', ' ']).split(' ').next()?.parse().ok()
}

/// `0, zone    DMA32`, and lines of it.
fn zone(block: &str) -> Result<Zone, String> {
    let (head, rest) = block.split_once('\n').ok_or("a zone without lines")?;
    let (node, kind) = head.split_once(", zone").ok_or_else(|| format!("{head}: not a zone"))?;
    let number = |name: &str| find(rest, name).ok_or_else(|| format!("{head} has no {name}"));
    let protection = rest.lines().find_map(|line| line.trim().strip_prefix("protection: ("));
    let reserve = protection.and_then(|line| line.trim_end_matches(')').rsplit(", ").next()?.parse().ok());
    let state = ZoneState {
        node: NodeId::new(node.parse().map_err(|_| format!("{head}: no node"))?),
        kind: ZoneKind::from_name(kind.trim()).ok_or_else(|| format!("{head}: no kind"))?,
        managed: number("managed ")?,
        free: number("pages free ")?,
        marks: Watermarks {
            min: number("min ")?,
            low: number("low ")?,
            high: number("high ")?,
            // 6.1 does not report it, and no walk asks for it.
            promo: find(rest, "promo ").unwrap_or_default(),
        },
        reserves: [reserve.ok_or_else(|| format!("{head} has no protection"))?; 4],
    };
    let drift = find(rest, "vm stats threshold").unwrap_or_default();
    Ok(Zone { state, lists: lists(rest), drift, raised: number("boost ")? })
}

/// Each with a line for its CPU and lines for what is in it.
fn lists(rest: &str) -> Vec<List> {
    let mut lists: Vec<List> = Vec::new();
    for line in rest.lines() {
        let Some((name, number)) = line.trim().split_once(':') else { continue };
        let Ok(number) = number.trim().parse::<u64>() else { continue };
        match (name, lists.last_mut()) {
            ("cpu", _) => lists.push(List { cpu: number as u32, pages: 0, most: 0 }),
            ("count", Some(list)) => list.pages = number,
            ("high" | "high_max", Some(list)) => list.most = list.most.max(number),
            _ => {}
        }
    }
    lists
}

/// Pages that were reclaimed since the start, those that a node's caches of objects have, which shrink
/// besides, and those that compaction took out of their lists.
#[derive(Clone, Copy)]
pub struct Reclaim {
    stolen: u64,
    slabs: u64,
    isolated: u64,
}

impl Reclaim {
    pub fn on(node: NodeId) -> Result<Self, String> {
        // Each page is counted by who reclaimed it, too.
        let stolen = sum("/proc/vmstat", &["pgsteal_anon ", "pgsteal_file "])?;
        let of_node = format!("/sys/devices/system/node/node{node}/vmstat");
        let slabs = sum(&of_node, &["nr_slab_reclaimable ", "nr_slab_unreclaimable "])?;
        let isolated = sum("/proc/vmstat", &["compact_isolated "])?;
        Ok(Self { stolen, slabs, isolated })
    }

    /// Pages that were reclaimed since an earlier look, and free ones that compaction may have kept or given
    /// back.
    pub fn since(self, before: Self) -> u64 {
        self.stolen - before.stolen
            + before.slabs.saturating_sub(self.slabs)
            + (self.isolated - before.isolated)
    }
}

/// The sum of the numbers behind these names.
fn sum(path: &str, names: &[&str]) -> Result<u64, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let numbers = text.lines().filter_map(|line| names.iter().find_map(|name| line.strip_prefix(name)));
    numbers.map(|number| number.parse::<u64>().map_err(|_| format!("{path}: {number}"))).sum()
}
