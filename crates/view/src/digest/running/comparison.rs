//! The differences between two moments, or two recordings: facts of nodes, and processes that correspond.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_diagnose::matching::{Candidate, MatchedBy, ProcessMatch, matches};
use nodewise_diagnose::sample::{Moment, PageMethod, PageSample, PageShare};
use nodewise_diagnose::{Pid, Relation, Window};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, NodeId};
use nodewise_stats::share::wilson_interval;

use super::fact::{Fact, FactUnit, fact_words, facts};
use super::words::percent;
use super::{ProcessRow, Running};
use crate::digest::estimate::{Estimate, SizeChange, magnitude};

/// A change of less than this share of the machine's memory, or of its CPUs' time, is not worth a line of text.
const NOTABLE: f64 = 0.001;
/// A change of a process's memory of fewer bytes is not worth one either.
const NOTABLE_MEMORY: u128 = 1 << 20;

/// A value at both moments; `None`: not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BeforeAfter<T> {
    pub before: Option<T>,
    pub after: Option<T>,
}

impl BeforeAfter<f64> {
    /// How much more it is after than before, where both are known.
    pub fn change(&self) -> Option<f64> {
        Some(self.after? - self.before?)
    }
}

impl BeforeAfter<Bytes> {
    /// How many bytes more it is after than before, where both are known.
    pub fn change(&self) -> Option<i128> {
        Some(i128::from(self.after?.get()) - i128::from(self.before?.get()))
    }
}

impl BeforeAfter<Estimate> {
    /// The change between both, where both are known.
    pub fn change(&self) -> Option<SizeChange> {
        Some(SizeChange::between(self.before?, self.after?))
    }
}

/// A fact of a node or of the whole system, at both moments.
#[derive(Clone, Debug, PartialEq)]
pub struct FactRow {
    /// `None`: of the whole system.
    pub node: Option<NodeId>,
    /// As in CSV: `anon`, `cpu_busy`, `miss`.
    pub name: &'static str,
    pub unit: FactUnit,
    pub value: BeforeAfter<f64>,
}

impl FactRow {
    /// Its name in words.
    pub fn words(&self) -> &'static str {
        fact_words(self.name)
    }
}

/// One side of a comparison of processes: one process, or all of one name and service.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSide {
    pub pids: Vec<Pid>,
    /// CPU time as a share of one CPU.
    pub cpu_share: Option<f64>,
    pub resident: Option<Bytes>,
    /// Where its memory is; `None` where that was not looked at.
    pub by_node: Option<Placed>,
    /// Whether pages were drawn for it: sizes by node are then estimates.
    pub is_drawn: bool,
}

/// Memory by node.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Placed {
    nodes: BTreeMap<NodeId, Estimate>,
    /// On each other node: nothing, or as much as a sample may have missed.
    elsewhere: Estimate,
}

impl Placed {
    fn from_pages(pages: &PageSample) -> Self {
        let estimate = |share: &PageShare| Estimate { size: share.size, low: share.low, high: share.high };
        let all: Bytes = pages.nodes.values().map(|share| share.size).sum();
        let elsewhere = match pages.method {
            PageMethod::Exact => Bytes::new(0),
            PageMethod::Drawn(pages) => all.share(wilson_interval(0, u64::from(pages)).high),
        };
        Self {
            nodes: pages.nodes.iter().map(|(node, share)| (*node, estimate(share))).collect_map(),
            elsewhere: Estimate { high: elsewhere, ..Estimate::default() },
        }
    }

    /// The memory on a node.
    pub fn on(&self, node: NodeId) -> Estimate {
        self.nodes.get(&node).copied().unwrap_or(self.elsewhere)
    }

    fn and(&self, other: &Self) -> Self {
        let nodes = self.nodes.keys().chain(other.nodes.keys());
        let nodes = nodes.map(|node| (*node, self.on(*node) + other.on(*node))).collect();
        Self { nodes, elsewhere: self.elsewhere + other.elsewhere }
    }
}

impl ProcessSide {
    /// The processes together. A sum with an unknown part is unknown.
    fn from_rows(rows: &[&ProcessRow]) -> Option<Self> {
        if rows.is_empty() {
            return None;
        }
        let placed: Option<Vec<Placed>> =
            rows.iter().map(|row| row.pages.as_ref().map(Placed::from_pages)).collect();
        let by_node = placed.map(|all| all.iter().fold(Placed::default(), |sum, placed| sum.and(placed)));
        let is_drawn =
            |row: &&ProcessRow| row.pages.as_ref().is_some_and(|pages| pages.method != PageMethod::Exact);
        Some(Self {
            pids: rows.iter().map(|row| row.identity.pid).collect(),
            cpu_share: rows.iter().map(|row| row.cpu_share).sum(),
            resident: rows.iter().map(|row| row.resident).sum(),
            by_node,
            is_drawn: rows.iter().any(is_drawn),
        })
    }
}

/// Processes that correspond.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessComparison {
    /// As it was read: not fit for a terminal.
    pub name: String,
    /// As it was read: not fit for a terminal.
    pub group: Option<String>,
    pub by: MatchedBy,
    /// At least one side is there.
    pub before: Option<ProcessSide>,
    pub after: Option<ProcessSide>,
}

impl ProcessComparison {
    /// Its memory. A missing process has none, which is known.
    pub fn resident(&self) -> BeforeAfter<Bytes> {
        let of = |side: &Option<ProcessSide>| match side {
            Some(side) => side.resident,
            None => Some(Bytes::new(0)),
        };
        BeforeAfter { before: of(&self.before), after: of(&self.after) }
    }

    /// Its CPU time, as a share of one CPU.
    pub fn cpu(&self) -> BeforeAfter<f64> {
        let of = |side: &Option<ProcessSide>| match side {
            Some(side) => side.cpu_share,
            None => Some(0.0),
        };
        BeforeAfter { before: of(&self.before), after: of(&self.after) }
    }

    /// Its memory by node, the largest change first; `None` where the pages of one side were not looked at.
    pub fn nodes(&self) -> Option<Vec<(NodeId, BeforeAfter<Estimate>)>> {
        let of = |side: &'_ Option<ProcessSide>| match side {
            Some(side) => side.by_node.clone(),
            None => Some(Placed::default()),
        };
        let (before, after) = (of(&self.before)?, of(&self.after)?);
        let mut nodes: Vec<NodeId> = before.nodes.keys().chain(after.nodes.keys()).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut rows: Vec<(NodeId, BeforeAfter<Estimate>)> = nodes
            .into_iter()
            .map(|node| (node, BeforeAfter { before: Some(before.on(node)), after: Some(after.on(node)) }))
            .collect();
        let weight = |change: SizeChange| (change.weight(), change.change.unsigned_abs());
        rows.order_by_key(|(node, sizes)| (Reverse(sizes.change().map(weight)), *node));
        Some(rows)
    }

    /// The node with the largest change, if one has changed: sampling alone does not explain it.
    fn moved(&self) -> Option<(NodeId, SizeChange)> {
        let (node, sizes) = self.nodes()?.into_iter().next()?;
        Some((node, sizes.change().filter(|change| !change.may_be_none())?))
    }

    /// Its largest change in words, if one is worth a line: a mebibyte, or a tenth of a per cent of a CPU.
    fn notable(&self) -> Option<String> {
        let is_notable = |change: &i128| change.unsigned_abs() >= NOTABLE_MEMORY;
        if let Some(change) = self.resident().change().filter(is_notable) {
            return Some(more_or_less(change));
        }
        if let Some(change) = self.cpu().change().filter(|change| change.abs() >= NOTABLE) {
            let more = if change < 0.0 { "less" } else { "more" };
            return Some(format!("{} of a CPU {more}", percent(change.abs())));
        }
        let (node, change) = self.moved().filter(|(_, change)| is_notable(&change.change))?;
        Some(format!("{} on node {node}", more_or_less(change.change)))
    }
}

/// One of the two moments.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedMoment {
    /// The recording, in words: as it was typed.
    pub name: String,
    pub moment: Moment,
    /// The time since the beginning of the recording.
    pub at: Duration,
    /// The time in which rates arose.
    pub window: Window,
    pub process_count: usize,
}

/// Two moments.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningComparison {
    pub relation: Relation,
    /// The differences between the machines, in words.
    pub differences: Vec<String>,
    pub before: ComparedMoment,
    pub after: ComparedMoment,
    /// Facts of nodes and of the system, the largest change of each unit first; those that are known at neither
    /// moment are left out.
    pub facts: Vec<FactRow>,
    /// Processes of both moments, the largest change first.
    pub processes: Vec<ProcessComparison>,
    /// Processes of only one moment, the largest first.
    pub only_before: Vec<ProcessComparison>,
    pub only_after: Vec<ProcessComparison>,
    /// Entries of each of the three lists for which there was no room.
    pub left_out: [usize; 3],
}

/// A recording that is compared, as it is shown alone.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// As it was typed.
    pub name: &'a str,
    pub at: Duration,
    /// Every process of it.
    pub running: &'a Running,
}

impl RunningComparison {
    /// Compares two moments; each list of processes has at most `top`.
    pub fn new(
        before: Compared<'_>,
        after: Compared<'_>,
        relation: Relation,
        differences: Vec<String>,
        top: usize,
    ) -> Self {
        let scale = Scale::new(before.running, after.running);
        let (mut both, mut only_before, mut only_after) = (Vec::new(), Vec::new(), Vec::new());
        for row in processes(before.running, after.running, relation) {
            match (&row.before, &row.after) {
                (Some(_), Some(_)) => both.push(row),
                (Some(_), None) => only_before.push(row),
                _ => only_after.push(row),
            }
        }
        let mut left_out = [0; 3];
        for (rows, left) in [&mut both, &mut only_before, &mut only_after].into_iter().zip(&mut left_out) {
            rows.order_by(|one, other| {
                scale.of(other).total_cmp(&scale.of(one)).then_with(|| first_pid(one).cmp(&first_pid(other)))
            });
            *left = rows.len().saturating_sub(top);
            rows.truncate(top);
        }
        let moment = |compared: Compared<'_>| ComparedMoment {
            name: compared.name.to_owned(),
            moment: compared.running.moment,
            at: compared.at,
            window: compared.running.window,
            process_count: compared.running.process_count,
        };
        Self {
            relation,
            differences,
            before: moment(before),
            after: moment(after),
            facts: fact_rows(before.running, after.running),
            processes: both,
            only_before,
            only_after,
            left_out,
        }
    }

    /// The facts of a unit whose change is worth a line, the largest first. Rates and shares of time count
    /// where they differ by a tenth of a per cent of all, or one event a second; sizes by a thousandth of
    /// the largest one.
    pub fn notable(&self, unit: FactUnit) -> Vec<&FactRow> {
        let largest = self.facts.iter().filter(|fact| fact.unit == unit);
        let largest = largest.filter_map(|fact| fact.value.after.or(fact.value.before)).fold(0.0, f64::max);
        let least = match unit {
            FactUnit::Bytes => (largest * NOTABLE).max(1.0),
            FactUnit::Share => NOTABLE,
            FactUnit::PerSecond => 1.0,
        };
        let is_notable = |fact: &&FactRow| fact.value.change().is_none_or(|change| change.abs() >= least);
        self.facts.iter().filter(|fact| fact.unit == unit).filter(is_notable).collect()
    }

    /// Processes of both moments whose change is worth a line.
    pub fn notable_processes(&self) -> Vec<&ProcessComparison> {
        self.processes.iter().filter(|row| row.notable().is_some()).collect()
    }

    /// Whether the moment that is compared with is the later one, on the same start of a machine.
    pub fn is_backwards(&self) -> bool {
        self.relation == Relation::SameBoot && self.before.moment.since_boot > self.after.moment.since_boot
    }

    /// The conclusion in one sentence: the node and the process that changed most.
    pub fn headline(&self) -> String {
        let bytes = self.facts.iter().filter(|fact| fact.unit == FactUnit::Bytes);
        let node = bytes
            .filter(|fact| !matches!(fact.name, "free" | "size") && fact.node.is_some())
            .find_map(|fact| Some((fact, fact.value.change()?)))
            .filter(|(fact, _)| self.notable(FactUnit::Bytes).contains(fact));
        let node = node.map(|(fact, change)| {
            let node = fact.node.map(|node| node.to_string()).unwrap_or_default();
            format!("node {node}: {} {}", more_or_less(change as i128), fact.words())
        });
        let process = self.processes.iter().find_map(|row| Some(format!("{}: {}", row.name, row.notable()?)));
        let parts: Vec<String> = node.into_iter().chain(process).collect();
        if parts.is_empty() {
            "No notable change of memory by node, nor of a process that is in both".to_owned()
        } else {
            format!("Largest changes: {}", parts.join("; "))
        }
    }
}

fn more_or_less(change: i128) -> String {
    format!("{} {}", magnitude(change), if change < 0 { "less" } else { "more" })
}

fn first_pid(row: &ProcessComparison) -> Option<Pid> {
    row.after.as_ref().or(row.before.as_ref())?.pids.first().copied()
}

/// How changes of memory and of CPU time compare: as shares of what the larger of the two machines has.
struct Scale {
    memory: f64,
    cpus: f64,
}

impl Scale {
    fn new(before: &Running, after: &Running) -> Self {
        let memory = |running: &Running| {
            running.total(|row| Some(row.size?.size)).map_or(0.0, |size| size.get() as f64)
        };
        let cpus = |running: &Running| running.nodes.iter().map(|row| row.cpus.len()).sum::<usize>() as f64;
        Self {
            memory: memory(before).max(memory(after)).max(1.0),
            cpus: cpus(before).max(cpus(after)).max(1.0),
        }
    }

    /// The larger of both changes; memory that only moved between nodes counts as changed.
    fn of(&self, row: &ProcessComparison) -> f64 {
        let resident = row.resident().change().map_or(0, i128::unsigned_abs);
        let moved = row.moved().map_or(0, |(_, change)| change.weight());
        let memory = resident.max(moved) as f64 / self.memory;
        memory.max(row.cpu().change().map_or(0.0, f64::abs) / self.cpus)
    }
}

fn processes(before: &Running, after: &Running, relation: Relation) -> Vec<ProcessComparison> {
    fn candidate(row: &ProcessRow) -> Candidate<'_> {
        Candidate { identity: row.identity, name: &row.name, group: row.group.as_deref() }
    }
    fn candidates(running: &Running) -> Vec<Candidate<'_>> {
        running.processes.iter().map(candidate).collect()
    }
    fn rows<'r>(running: &'r Running, places: &[usize]) -> Vec<&'r ProcessRow> {
        places.iter().map(|at| &running.processes[*at]).collect()
    }
    let row = |found: ProcessMatch| {
        let (earlier, later) = (rows(before, &found.before), rows(after, &found.after));
        let any = later.first().or(earlier.first())?;
        Some(ProcessComparison {
            name: any.name.to_string(),
            group: any.group.as_deref().map(str::to_owned),
            by: found.by,
            before: ProcessSide::from_rows(&earlier),
            after: ProcessSide::from_rows(&later),
        })
    };
    matches(&candidates(before), &candidates(after), relation).into_iter().filter_map(row).collect()
}

fn fact_rows(before: &Running, after: &Running) -> Vec<FactRow> {
    let mut rows: BTreeMap<(Option<NodeId>, &'static str), FactRow> = BTreeMap::new();
    let mut add = |running: &Running, is_after: bool| {
        for Fact { node, name, unit, value } in facts(running) {
            let new = FactRow { node, name, unit, value: BeforeAfter::default() };
            let row = rows.entry((node, name)).or_insert(new);
            if is_after { row.value.after = value } else { row.value.before = value }
        }
    };
    add(before, false);
    add(after, true);
    let mut rows: Vec<FactRow> =
        rows.into_values().filter(|row| row.value.before.is_some() || row.value.after.is_some()).collect();
    let size = |row: &FactRow| row.value.change().map_or(f64::INFINITY, f64::abs);
    rows.order_by(|one, other| one.unit.cmp(&other.unit).then(size(other).total_cmp(&size(one))));
    rows
}
