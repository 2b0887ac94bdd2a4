//! Zones: free pages, watermarks, sizes, reserves.
//!
//! # Source
//! `/proc/zoneinfo`. One block per zone, begun by `Node 0, zone   Normal`. The first block of a
//! node also holds its counters under `per-node stats` (Linux 4.8). Empty zones have short blocks.
//!
//! # Units
//! Everything counts pages.

use nodewise_machine::NodeId;
use nodewise_machine::id::Id as _;

use super::counters::{Counters, is_name};
use super::{Parsed, digits, lines};

/// More zones than 1,024 nodes can have.
const MOST_ZONES: usize = 8192;

/// Zones and the counters of their nodes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ZoneInfo {
    /// Zones in the kernel's order: by node, then from the lowest.
    pub zones: Vec<Zone>,
    /// Counters per node; empty before Linux 4.8.
    pub nodes: Vec<(NodeId, Counters)>,
}

/// One zone, in pages. `None`: this release does not print it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    pub node: NodeId,
    /// Its name: `DMA`, `DMA32`, `Normal`, `Movable`, `Device`.
    pub name: String,
    /// Free pages, without those in the lists of the CPUs.
    pub free: Option<u64>,
    /// The addition to every watermark for a while after fragmentation. Linux 5.19.
    pub boost: Option<u64>,
    /// Below this, allocations reclaim by themselves.
    pub min: Option<u64>,
    /// Below this, the kernel starts to reclaim in the background.
    pub low: Option<u64>,
    /// Up to this, it goes on.
    pub high: Option<u64>,
    /// Above this, promotion to this zone needs no reclaim. Linux 6.13.
    pub promo: Option<u64>,
    /// From the first page to the last, holes included.
    pub spanned: Option<u64>,
    /// Pages that exist.
    pub present: Option<u64>,
    /// Pages that the allocator manages. Linux 3.8.
    pub managed: Option<u64>,
    /// Pages of the contiguous allocator.
    pub cma: Option<u64>,
    /// Reserve against allocations that may use higher zones, by zone: `protection: (0, 3019)`.
    pub protection: Vec<u64>,
    /// The number of its first page.
    pub start_pfn: Option<u64>,
    /// Its counters (`nr_free_pages`, `numa_hit`).
    pub counters: Counters,
}

impl Zone {
    fn new(node: NodeId, name: &str) -> Self {
        Self {
            node,
            name: name.to_owned(),
            free: None,
            boost: None,
            min: None,
            low: None,
            high: None,
            promo: None,
            spanned: None,
            present: None,
            managed: None,
            cma: None,
            protection: Vec::new(),
            start_pfn: None,
            counters: Counters::default(),
        }
    }

    /// The field that a line `name value` between `pages free` and the counters sets.
    fn size(&mut self, name: &str) -> Option<&mut Option<u64>> {
        Some(match name {
            "boost" => &mut self.boost,
            "min" => &mut self.min,
            "low" => &mut self.low,
            "high" => &mut self.high,
            "promo" => &mut self.promo,
            "spanned" => &mut self.spanned,
            "present" => &mut self.present,
            "managed" => &mut self.managed,
            "cma" => &mut self.cma,
            _ => return None,
        })
    }
}

/// Which part of a block a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Sizes,
    NodeCounters,
    ZoneCounters,
    PageSets,
}

/// Reads every block.
pub fn parse(text: &str) -> Parsed<ZoneInfo> {
    let mut parsed = Parsed::<ZoneInfo>::default();
    let mut part = Part::Sizes;
    for (number, line) in lines(text) {
        let result = if line.starts_with("Node") {
            part = Part::Sizes;
            header(line, &mut parsed.value)
        } else {
            body(line.trim(), &mut part, &mut parsed.value)
        };
        if let Err(expected) = result {
            parsed.problems.add(number, expected, line.trim());
        }
    }
    parsed
}

fn header(line: &str, info: &mut ZoneInfo) -> Result<(), &'static str> {
    let expected = "\"Node\", a number, \", zone\" and a name";
    let (node, name) =
        line.strip_prefix("Node").and_then(|rest| rest.split_once(", zone")).ok_or(expected)?;
    let node = digits(node.trim()).filter(|node| *node < NodeId::LIMIT).map(NodeId::new).ok_or(expected)?;
    let name = Some(name.trim()).filter(|name| is_name(name)).ok_or(expected)?;
    if info.zones.len() >= MOST_ZONES {
        return Err("fewer zones");
    }
    info.zones.push(Zone::new(node, name));
    Ok(())
}

fn body(line: &str, part: &mut Part, info: &mut ZoneInfo) -> Result<(), &'static str> {
    let Some(zone) = info.zones.last_mut() else {
        return if line.is_empty() { Ok(()) } else { Err("\"Node\" before anything else") };
    };
    let expected = "a name and a number of pages";
    match line {
        "" => return Ok(()),
        "per-node stats" => *part = Part::NodeCounters,
        "pagesets" => *part = Part::PageSets,
        _ => {
            let (name, value) = line.split_once([' ', ':']).ok_or(expected)?;
            let value = value.trim();
            match name {
                "pages" => {
                    *part = Part::Sizes;
                    let free = value.strip_prefix("free").map(str::trim).and_then(digits);
                    zone.free = Some(free.ok_or("\"pages free\" and a number")?);
                }
                "protection" => {
                    zone.protection = protection(value).ok_or("numbers in parentheses")?;
                    *part = Part::ZoneCounters;
                }
                "start_pfn" => zone.start_pfn = Some(digits(value).ok_or(expected)?),
                _ => return count(name, value, *part, info).ok_or(expected),
            }
        }
    }
    Ok(())
}

/// Files a line of a name and a number where its part of the block says.
fn count(name: &str, value: &str, part: Part, info: &mut ZoneInfo) -> Option<()> {
    let zone = info.zones.last_mut()?;
    if part == Part::PageSets {
        // Lists of the CPUs, and a few thresholds behind them: of no use here, and much text.
        return Some(());
    }
    if part == Part::Sizes {
        if let Some(field) = zone.size(name) {
            *field = Some(digits(value)?);
            return Some(());
        }
    }
    let value = digits(value).filter(|_| is_name(name))?;
    if part != Part::NodeCounters {
        return zone.counters.push(name, value).then_some(());
    }
    let node = zone.node;
    if info.nodes.last().is_none_or(|(last, _)| *last != node) {
        info.nodes.push((node, Counters::default()));
    }
    info.nodes.last_mut()?.1.push(name, value).then_some(())
}

fn protection(text: &str) -> Option<Vec<u64>> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?;
    inner.split(',').take(16).map(|number| digits(number.trim())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    /// Linux 6.18, shortened.
    const NEW: &str = "\
Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 2134
      nr_kernel_file_pages 0
  pages free     3840
        boost    0
        min      46
        low      57
        high     68
        promo    79
        spanned  4095
        present  3998
        managed  3840
        cma      0
        protection: (0, 3019, 5451, 5451, 5451)
      nr_free_pages 3840
      numa_hit     7
  pagesets
    cpu: 0
              count:    0
              high:     99
              batch:    1
  vm stats threshold: 4
  node_unreclaimable:  0
  start_pfn:           1
Node 1, zone  Movable
  pages free     0
        min      32
        protection: (0, 0, 0, 0)
";

    /// Linux 2.6.32, shortened: no per-node part, `scanned`, no `managed`.
    const OLD: &str = "\
Node 2, zone   Normal
  pages free     1000
        min      10
        low      12
        high     15
        scanned  0
        spanned  4096
        present  4000
    nr_free_pages 1000
        protection: (0, 0)
  pagesets
    cpu: 0
              count: 5
  all_unreclaimable: 0
  prev_priority:     12
  start_pfn:         1048576
  inactive_ratio:    1
";

    #[test]
    fn zones_of_a_new_release_are_read() {
        let parsed = parse(NEW);
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        let [dma, movable] = &parsed.value.zones[..] else { panic!("two zones") };
        assert_eq!((dma.node, dma.name.as_str()), (NodeId::new(0), "DMA"));
        assert_eq!(
            (dma.free, dma.min, dma.low, dma.high, dma.promo),
            (Some(3840), Some(46), Some(57), Some(68), Some(79))
        );
        assert_eq!(
            (dma.spanned, dma.present, dma.managed, dma.cma),
            (Some(4095), Some(3998), Some(3840), Some(0))
        );
        assert_eq!(dma.protection, [0, 3019, 5451, 5451, 5451]);
        assert_eq!((dma.start_pfn, dma.counters.get("numa_hit")), (Some(1), Some(7)));
        assert_eq!(dma.counters.get("high"), None, "the list of a CPU is no counter of the zone");
        assert_eq!(parsed.value.nodes.len(), 1);
        assert_eq!(parsed.value.nodes[0].1.get("nr_inactive_anon"), Some(2134));
        assert_eq!((movable.node, movable.min, movable.managed), (NodeId::new(1), Some(32), None));
    }

    #[test]
    fn zones_of_an_old_release_are_read() {
        let parsed = parse(OLD);
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        let zone = &parsed.value.zones[0];
        assert_eq!((zone.high, zone.present, zone.managed, zone.promo), (Some(15), Some(4000), None, None));
        assert_eq!((zone.start_pfn, zone.counters.get("nr_free_pages")), (Some(1_048_576), Some(1000)));
    }

    #[test]
    fn a_bad_line_costs_one_line() {
        let text = "  pages free 1\nNode x, zone DMA\nNode 0, zone DMA\n  pages free -1\n  min 5\n  protection: 0, 1\n  nr_x 99999999999999999999\n  :  0\n";
        let parsed = parse(text);
        assert_eq!(parsed.value.zones.len(), 1);
        assert_eq!((parsed.value.zones[0].free, parsed.value.zones[0].min), (None, Some(5)));
        assert_eq!(
            parsed
                .problems
                .first
                .iter()
                .map(|problem| (problem.line, problem.expected.as_str()))
                .collect::<Vec<_>>(),
            [
                (1, "\"Node\" before anything else"),
                (2, "\"Node\", a number, \", zone\" and a name"),
                (4, "\"pages free\" and a number"),
                (6, "numbers in parentheses"),
                (7, "a name and a number of pages"),
                (8, "a name and a number of pages"),
            ]
        );
    }

    #[test]
    fn every_prefix_of_a_file_is_survived() {
        for end in 0..NEW.len() {
            let parsed = parse(&NEW[..end]);
            assert!(parsed.problems.count() <= 2, "{end}: {:?}", parsed.problems);
        }
    }

    proptest! {
        #[test]
        fn sizes_are_read_back(node in 0u32..1024, values in any::<[u64; 5]>()) {
            let [free, min, spanned, managed, pfn] = values;
            let text = format!(
                "Node {node}, zone   Normal\n  pages free     {free}\n        min      {min}\n        spanned  {spanned}\n        managed  {managed}\n        protection: ({free}, {min})\n  pagesets\n  start_pfn: {pfn}\n"
            );
            let parsed = parse(&text);
            prop_assert!(parsed.problems.is_empty());
            let zone = &parsed.value.zones[0];
            prop_assert_eq!([zone.free, zone.min, zone.spanned, zone.managed, zone.start_pfn], values.map(Some));
            prop_assert_eq!(&zone.protection, &[free, min]);
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in r"(Node [0-9]{1,6}, zone [A-Za-z]{0,3}\n|  pages free [0-9]{1,21}\n|  (min|high|protection:|per-node stats|nr_a) ?[(0-9,) ]{0,6}\n){0,8}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
