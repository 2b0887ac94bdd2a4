//! A machine that prints what was recorded: numbers that round to the recorded texts, sums included.
//!
//! The originals ran on machines whose files were not kept. A table of numastat says nearly all of
//! them: what lies between the rounded numbers is chosen here so that sums and orders are right, and
//! the layout, the rounding, the order and the sums of the output are then compared to the byte.

use std::collections::BTreeMap;

use nodewise_source::tree::{Memory, ReadCause, Tree};

use super::printed::{Head, Printed, tables};
use super::record::Record;

/// Pages of 4 KiB, the kernel's unit of counters, in a MiB.
const PAGES: f64 = 256.0;
/// KiB in a MiB.
const KIB: f64 = 1024.0;
/// Huge pages of 2 MiB.
const HUGE_PAGES: f64 = 0.5;

type Counts = BTreeMap<u32, i64>;

/// A process that was seen.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: Option<String>,
    pages: Option<Vec<(String, Counts)>>,
}

/// How rows that print alike are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// By what was known of them.
    AsKnown,
    /// By the order in which they were printed: rows of zeros get a few KiB.
    AsPrinted,
}

/// The known facts about a machine from what was printed last.
#[derive(Clone, Debug, Default)]
pub struct Known {
    nodes: Vec<u32>,
    counters: Vec<(String, Counts)>,
    meminfo: Vec<(String, Counts)>,
    /// Pages of processes by table and row.
    solved: BTreeMap<String, Vec<(String, Counts)>>,
    /// The processes that were seen: their names, and their pages by use.
    processes: BTreeMap<u32, Seen>,
}

/// The counts that print as a text.
fn range(shown: &str, per_mib: f64) -> (i64, i64) {
    let decimals = shown.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let middle = (shown.parse::<f64>().expect("a number stands in a cell") * per_mib).round() as i64;
    let reach = (per_mib / 10f64.powi(decimals as i32) / 2.0).ceil() as i64 + 1;
    let fits = |count: &i64| *count >= 0 && format!("{:.*}", decimals, *count as f64 / per_mib) == shown;
    let low =
        (middle - reach..=middle + reach).find(fits).unwrap_or_else(|| panic!("nothing prints {shown}"));
    let high = (low..=middle + reach).rev().find(fits).expect("low itself fits");
    (low, high)
}

/// Counts of a row that print as recorded and whose sum does; near the known ones.
fn row(table: &Printed, cells: &[String], per_mib: f64, known: &Counts) -> Counts {
    let ranges: Vec<(u32, (i64, i64))> =
        table.nodes(cells).map(|(node, shown)| (node, range(shown, per_mib))).collect();
    let near = |(node, (low, high)): &(u32, (i64, i64))| {
        let wanted = known.get(node).copied().unwrap_or(if *low == 0 { 0 } else { (low + high) / 2 });
        (*node, wanted.clamp(*low, *high))
    };
    let mut counts: Counts = ranges.iter().map(near).collect();
    if let Some((low, high)) = table.total(cells).map(|shown| range(shown, per_mib)) {
        let sum: i64 = counts.values().sum();
        let mut missing = sum.clamp(low, high) - sum;
        for (node, (low, high)) in ranges {
            let count = counts.get_mut(&node).expect("made of the same nodes");
            let step = (*count + missing).clamp(low, high) - *count;
            *count += step;
            missing -= step;
        }
    }
    counts
}

/// A cell of a table with sums in both directions.
struct Cell {
    row: usize,
    node: u32,
    /// The counts that it may have, the likeliest first.
    candidates: Vec<i64>,
}

/// The range of the sum of some cells: those of a row, of a node, or all.
struct Sum {
    row: Option<usize>,
    node: Option<u32>,
    range: (i64, i64),
}

/// Page counts of a table with sums in both directions. Every cell has few candidates, or where
/// only whole MiB were printed the known one.
fn both_ways(table: &Printed, known: &[(String, Counts)]) -> Vec<(String, Counts)> {
    let (below, rows): (Vec<_>, Vec<_>) = table.rows.iter().partition(|(name, _)| name == "Total");
    let (mut cells, mut sums) = (Vec::new(), Vec::new());
    for (row, (name, texts)) in rows.iter().enumerate() {
        let before = known.iter().find(|(other, _)| other == name).map(|(_, counts)| counts);
        for (node, shown) in table.nodes(texts) {
            let (low, high) = range(shown, PAGES);
            let likely =
                before.and_then(|counts| counts.get(&node)).map_or((low + high) / 2, |c| *c).clamp(low, high);
            let others = (low..=high).filter(|count| *count != likely && high - low < 8);
            cells.push(Cell { row, node, candidates: std::iter::once(likely).chain(others).collect() });
        }
        sums.extend(table.total(texts).map(|shown| Sum {
            row: Some(row),
            node: None,
            range: range(shown, PAGES),
        }));
    }
    for (_, texts) in &below {
        sums.extend(table.nodes(texts).map(|(node, shown)| Sum {
            row: None,
            node: Some(node),
            range: range(shown, PAGES),
        }));
        sums.extend(table.total(texts).map(|shown| Sum {
            row: None,
            node: None,
            range: range(shown, PAGES),
        }));
    }
    let counts = search(&cells, &sums, &mut Vec::new()).unwrap_or_else(|| panic!("nothing prints {table:?}"));
    let mut found: Vec<(String, Counts)> =
        rows.iter().map(|(name, _)| (name.clone(), Counts::new())).collect();
    for (cell, count) in cells.iter().zip(counts) {
        found[cell.row].1.insert(cell.node, count);
    }
    found
}

/// Tries every combination; sums whose last cell is chosen are compared at once.
fn search(cells: &[Cell], sums: &[Sum], chosen: &mut Vec<i64>) -> Option<Vec<i64>> {
    let at = chosen.len();
    let concerns = |sum: &Sum, cell: &Cell| {
        sum.row.is_none_or(|row| row == cell.row) && sum.node.is_none_or(|node| node == cell.node)
    };
    let right = sums.iter().all(|sum| {
        let complete = !cells[at..].iter().any(|cell| concerns(sum, cell));
        let value: i64 =
            cells.iter().zip(&*chosen).filter(|(cell, _)| concerns(sum, cell)).map(|(_, count)| count).sum();
        value <= sum.range.1 && (!complete || value >= sum.range.0)
    });
    if !right {
        return None;
    }
    let Some(cell) = cells.get(at) else { return Some(chosen.clone()) };
    cell.candidates.iter().find_map(|count| {
        chosen.push(*count);
        let found = search(cells, sums, chosen);
        chosen.pop();
        found
    })
}

/// Replaces the counts of rows by what was printed; rows that were left out hold only zeros.
fn learn(
    known: &mut [(String, Counts)],
    table: &Printed,
    per_mib: impl Fn(&str) -> f64,
    same: impl Fn(&str, &str) -> bool,
) {
    for (name, counts) in known.iter_mut() {
        let Some((_, cells)) = table.rows.iter().find(|(shown, _)| same(shown, name)) else {
            counts.values_mut().for_each(|count| *count = 0);
            continue;
        };
        *counts = row(table, cells, per_mib(name), counts);
    }
}

impl Known {
    /// A machine with these fields of meminfo and these counters.
    pub fn new(fields: &[String]) -> Self {
        let empty = |name: &String| (name.clone(), Counts::new());
        let counters =
            ["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"];
        Self {
            counters: counters.map(|name| empty(&name.to_owned())).to_vec(),
            meminfo: fields.iter().map(empty).collect(),
            ..Self::default()
        }
    }

    /// Adds a node that nothing was printed of.
    pub fn with_node(mut self, node: u32) -> Self {
        self.nodes.push(node);
        self
    }

    /// Takes in what a record printed, and makes the machine that prints it.
    pub fn machine(&mut self, record: &Record, ties: Ties) -> Tree {
        for table in tables(&record.stdout) {
            self.nodes.extend(table.heads.iter().filter_map(|head| match head {
                Head::Node(node) => Some(*node),
                Head::Total => None,
            }));
            self.nodes.sort_unstable();
            self.nodes.dedup();
            self.take(&table);
            if ties == Ties::AsPrinted {
                self.spread(&table);
            }
        }
        let mut files = self.system(Memory::new());
        for (pid, seen) in &self.processes {
            let Some(name) = &seen.name else { continue };
            files = files.file(&format!("/proc/{pid}/comm"), format!("{name}\n"));
            files = files.file(&format!("/proc/{pid}/cmdline"), format!("/bin/{name}\0"));
            let path = format!("/proc/{pid}/numa_maps");
            let refused = record.stderr.contains(&format!("{path}: Permission denied"));
            files = match &seen.pages {
                _ if refused => files.unreadable(&path, ReadCause::System(13)),
                Some(rows) => files.file(&path, maps(rows)),
                None => files,
            };
        }
        Tree::memory(files)
    }

    fn take(&mut self, table: &Printed) {
        let title = table.title.as_str();
        if title.is_empty() {
            learn(&mut self.counters, table, |_| 1.0, |shown, name| shown == name);
        } else if title.contains("numastat info") {
            learn(&mut self.counters, table, |_| PAGES, |shown, name| shown.to_lowercase() == name);
        } else if title.contains("system memory") {
            let per_mib = |name: &str| if name.starts_with("HugePages") { HUGE_PAGES } else { KIB };
            learn(&mut self.meminfo, table, per_mib, |shown, name| shown == name);
        } else if let Some(label) = title.split_once("for PID ").map(|(_, label)| label) {
            let (pid, name) = labelled(label);
            let rows = self.solve(&pid.to_string(), table);
            let seen = self.processes.entry(pid).or_default();
            seen.name = name;
            if !rows.is_empty() {
                seen.pages = Some(rows);
            }
        } else {
            for (label, pages) in self.solve("", table) {
                let (pid, name) = labelled(&label);
                let pages = Some(vec![("Private".to_owned(), pages)]);
                self.processes.insert(pid, Seen { name, pages });
            }
        }
    }

    /// Gives rows that print only zeros a few KiB each, the first the most.
    fn spread(&mut self, table: &Printed) {
        for (at, (shown, cells)) in table.rows.iter().enumerate() {
            let Some((name, counts)) = self.meminfo.iter_mut().find(|(name, _)| name == shown) else {
                continue;
            };
            for (node, text) in table.nodes(cells) {
                let count = counts.entry(node).or_default();
                // Up to 5 KiB two decimals show nothing either.
                if text == "0" && *count <= 5 && !name.starts_with("HugePages") {
                    *count = (table.rows.len() - at) as i64;
                }
            }
        }
    }

    fn solve(&mut self, key: &str, table: &Printed) -> Vec<(String, Counts)> {
        let known = self.solved.entry(key.to_owned()).or_default();
        let rows = both_ways(table, known);
        for (name, counts) in &rows {
            known.retain(|(other, _)| other != name);
            known.push((name.clone(), counts.clone()));
        }
        rows
    }

    fn system(&self, mut files: Memory) -> Memory {
        let folder = "/sys/devices/system/node";
        let mut huge_pages = 0;
        for node in &self.nodes {
            let of = |counts: &Counts| counts.get(node).copied().unwrap_or(0);
            let counters: String =
                self.counters.iter().map(|(name, counts)| format!("{name} {}\n", of(counts))).collect();
            let field = |(name, counts): &(String, Counts)| {
                let unit = if name.starts_with("HugePages") { "" } else { " kB" };
                if name == "HugePages_Total" {
                    huge_pages += of(counts);
                }
                format!("Node {node} {name}: {:8}{unit}\n", of(counts))
            };
            let meminfo: String = self.meminfo.iter().map(field).collect();
            files = files.file(&format!("{folder}/node{node}/numastat"), counters);
            files = files.file(&format!("{folder}/node{node}/meminfo"), meminfo);
        }
        let meminfo = format!(
            "HugePages_Total: {huge_pages}\nHugepagesize: 2048 kB\nHugetlb: {} kB\n",
            huge_pages * 2048
        );
        files.file("/proc/meminfo", meminfo)
    }
}

/// The number and the name in `180 (holder)`.
fn labelled(label: &str) -> (u32, Option<String>) {
    let (pid, name) = label.split_once(" (").unwrap_or((label, "(null)"));
    let name = name.strip_suffix(')').unwrap_or(name);
    let pid = pid.parse().expect("a process has a number");
    (pid, (name != "(null)" && name != "(null").then(|| name.to_owned()))
}

/// A `numa_maps` with these pages.
fn maps(rows: &[(String, Counts)]) -> String {
    let mut text = "00400000 default file=/bin/holder\n".to_owned();
    for (name, counts) in rows {
        let kind = match name.as_str() {
            "Huge" => " huge",
            "Heap" => " heap",
            "Stack" => " stack",
            _ => "",
        };
        let pages: String = counts
            .iter()
            .filter(|(_, pages)| **pages > 0)
            .map(|(node, pages)| format!(" N{node}={pages}"))
            .collect();
        if !pages.is_empty() {
            text.push_str(&format!("7f0000000000 default{kind} anon=1{pages} kernelpagesize_kB=4\n"));
        }
    }
    text
}
