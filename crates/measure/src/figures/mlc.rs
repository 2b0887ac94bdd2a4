//! Output of Intel Memory Latency Checker.
//!
//! # Source
//! What `mlc` prints, alone and with `--latency_matrix`, `--bandwidth_matrix`, `--peak_injection_bandwidth`,
//! `--max_bandwidth`, `--idle_latency`, `--loaded_latency` and `--c2c_latency`, releases 3.1 to 3.12. Releases to 3.5
//! head matrices with `Socket` and `Memory node`, later ones with `Numa node`. Bandwidths are in MB/s of 10^6 bytes.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;

use super::text::{MOST_FIGURES, MOST_NODES, Read, in_range, name, note, number, table, whole};
use super::{FigureTable, FigureUnit, LoadedFigure, MatrixSides};

/// The first line.
const BEGINNING: &str = "Intel(R) Memory Latency Checker";
/// A line that begins a section.
const SECTION: &str = "Measuring ";
/// A matrix within the section of caches.
const REMOTE: &str = "Remote Socket ";
const IDLE: &str = "Each iteration took ";
/// Lines that say how something is measured.
const NOTES: [&str; 4] = ["Using ", "***", "* ", "Command line parameters:"];

/// Whether an output can begin with this line.
pub(super) fn is_beginning(line: &str) -> bool {
    line.starts_with(BEGINNING)
        || (line.starts_with(SECTION) && Section::from_line(line).is_some())
        || line.starts_with(IDLE)
}

/// The contents of a section.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Matrix(MatrixSides, FigureUnit),
    List(FigureUnit),
    Loaded,
}

/// A section while it is read.
#[derive(Clone, Debug)]
struct Section {
    title: String,
    kind: Kind,
    notes: Vec<String>,
    /// The nodes of the columns.
    columns: Vec<NodeId>,
    cells: BTreeMap<(NodeId, NodeId), f64>,
    figures: Vec<(String, f64)>,
    points: Vec<LoadedFigure>,
}

impl Section {
    fn new(title: impl Into<String>, kind: Kind) -> Self {
        Self {
            title: title.into(),
            kind,
            notes: Vec::new(),
            columns: Vec::new(),
            cells: BTreeMap::new(),
            figures: Vec::new(),
            points: Vec::new(),
        }
    }

    /// The section that a line begins.
    fn from_line(line: &str) -> Option<Self> {
        if let Some(rest) = line.strip_prefix(REMOTE) {
            let title = format!("cache to cache, {}", name(&format!("remote socket {rest}")));
            return Some(Self::new(title, Kind::Matrix(MatrixSides::Caches, FigureUnit::Ns)));
        }
        let rest = line.strip_prefix(SECTION)?;
        if let Some(rest) = rest.strip_prefix("idle latencies") {
            let how = rest.split('(').next().unwrap_or("").trim();
            let how = how.strip_prefix("for ").map_or_else(String::new, |how| format!(", {}", name(how)));
            return Some(Self::new(
                format!("idle latency{how}"),
                Kind::Matrix(MatrixSides::Memory, FigureUnit::Ns),
            ));
        }
        if rest.starts_with("Memory Bandwidths between nodes") {
            let kind = Kind::Matrix(MatrixSides::Memory, FigureUnit::GbPerS);
            return Some(Self::new("bandwidth between nodes", kind));
        }
        if rest.starts_with("Loaded Latencies") {
            return Some(Self::new("latency under load", Kind::Loaded));
        }
        if rest.starts_with("cache-to-cache") {
            return Some(Self::new("cache to cache", Kind::List(FigureUnit::Ns)));
        }
        let which = rest.split(" Memory Bandwidths").next().filter(|which| *which != rest)?;
        Some(Self::new(format!("bandwidth, {}", name(which).to_lowercase()), Kind::List(FigureUnit::GbPerS)))
    }

    /// The table of it, if it has one.
    fn finish(self, read: &mut Read) {
        let Self { title, kind, notes, cells, figures, points, .. } = self;
        let of = match kind {
            Kind::Matrix(sides, unit) => FigureTable::Matrix { sides, unit, cells },
            Kind::List(unit) => FigureTable::List { unit, figures },
            Kind::Loaded => FigureTable::Loaded(points),
        };
        read.add(table(title, notes, of));
    }

    fn line(&mut self, at: usize, line: &str, read: &mut Read) {
        match self.kind {
            Kind::Matrix(_, unit) => self.matrix_line(at, line, unit, read),
            Kind::List(unit) => self.list_line(at, line, unit, read),
            Kind::Loaded => self.loaded_line(at, line, read),
        }
    }

    /// A line of heads, which begins with a word and ends with the nodes, or one of numbers.
    fn matrix_line(&mut self, at: usize, line: &str, unit: FigureUnit, read: &mut Read) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = words.first() else { return };
        if !first.starts_with(|first: char| first.is_ascii_digit()) {
            self.heads(at, &words, line, read);
            return;
        }
        if self.columns.is_empty() {
            read.problem(at, "a line with the nodes of the columns before", line);
            return;
        }
        let row = node(first);
        let values: Vec<Option<Option<f64>>> = words[1..].iter().map(|word| cell(word, unit)).collect();
        let values: Option<Vec<Option<f64>>> = values.into_iter().collect();
        let (Some(row), Some(values)) = (row, values) else {
            read.problem(at, "a node and numbers above 0", line);
            return;
        };
        if values.len() != self.columns.len() {
            let expected = format!("a node and {} numbers", self.columns.len());
            read.problem(at, &expected, line);
            return;
        }
        for (column, value) in self.columns.iter().zip(values) {
            if let Some(value) = value {
                self.cells.insert((row, *column), value);
            }
        }
    }

    fn heads(&mut self, at: usize, words: &[&str], line: &str, read: &mut Read) {
        const SIDES: [&str; 5] = ["numa", "socket", "memory", "writer", "reader"];
        let is_head = words.first().is_some_and(|first| SIDES.contains(&first.to_ascii_lowercase().as_str()));
        if !is_head {
            return;
        }
        if words[0].eq_ignore_ascii_case("socket")
            && matches!(self.kind, Kind::Matrix(MatrixSides::Memory, _))
        {
            note(&mut self.notes, "rows are sockets");
        }
        let numbers = words.iter().filter(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        let columns: Option<Vec<NodeId>> = numbers.map(|word| node(word)).collect();
        let Some(columns) = columns.filter(|columns| columns.len() <= MOST_NODES as usize) else {
            read.problem(at, "numbers of nodes", line);
            return;
        };
        let is_distinct =
            columns.iter().all(|column| columns.iter().filter(|one| *one == column).count() == 1);
        if !is_distinct {
            read.problem(at, "each node once", line);
        } else if !columns.is_empty() {
            self.columns = columns;
        }
    }

    /// `ALL Reads        : 225630.8`, or a latency behind the words.
    fn list_line(&mut self, at: usize, line: &str, unit: FigureUnit, read: &mut Read) {
        let (title, value) = match unit {
            FigureUnit::GbPerS => {
                let Some((title, value)) = line.rsplit_once(':') else { return };
                let words = title.to_ascii_lowercase();
                if !["read", "write", "stream"].iter().any(|word| words.contains(word)) {
                    return;
                }
                (title, value.trim())
            }
            FigureUnit::Ns => {
                let Some((title, value)) = line.rsplit_once(char::is_whitespace) else { return };
                if !title.contains("latency") {
                    return;
                }
                (title, value)
            }
        };
        match in_unit(value, unit) {
            Some(value) if self.figures.len() < MOST_FIGURES => self.figures.push((name(title), value)),
            Some(_) => read.problem(at, "fewer figures", line),
            None => read.problem(at, "a number above 0 behind the name", line),
        }
    }

    /// ` 00000 155.60  226127.7`: the delay, ns, MB/s.
    fn loaded_line(&mut self, at: usize, line: &str, read: &mut Read) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.first().is_some_and(|first| first.starts_with(|first: char| first.is_ascii_digit())) {
            return;
        }
        let point = match words[..] {
            [delay, latency, rate] => {
                whole(delay).zip(number(latency)).zip(in_unit(rate, FigureUnit::GbPerS))
            }
            _ => None,
        };
        match point {
            Some(((delay, latency_ns), gb_per_s)) if self.points.len() < MOST_FIGURES => {
                self.points.push(LoadedFigure { delay, latency_ns, gb_per_s });
            }
            Some(_) => read.problem(at, "fewer points", line),
            None => read.problem(at, "a delay, a latency and a bandwidth", line),
        }
    }
}

fn node(word: &str) -> Option<NodeId> {
    whole(word).filter(|number| *number < MOST_NODES).map(NodeId::new)
}

/// A value, or `-` for a pair that is not measured.
fn cell(word: &str, unit: FigureUnit) -> Option<Option<f64>> {
    if word == "-" { Some(None) } else { in_unit(word, unit).map(Some) }
}

/// A number in the tool's unit: ns, or MB/s of 10^6 bytes.
fn in_unit(word: &str, unit: FigureUnit) -> Option<f64> {
    let value = number(word)?;
    match unit {
        FigureUnit::Ns => Some(value),
        FigureUnit::GbPerS => in_range(value / 1e3),
    }
}

/// Reads a text with one output or several.
pub(super) fn parse(text: &str) -> Read {
    let mut read = Read::default();
    let mut section: Option<Section> = None;
    // What is printed before a section counts for it.
    let mut before: Vec<String> = Vec::new();
    for (at, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix(BEGINNING) {
            if let Some(version) = rest.rsplit_once(" - ").map(|(_, version)| version) {
                read.version(version.trim_start_matches('v'));
            }
            if let Some(section) = section.take() {
                section.finish(&mut read);
            }
            before.clear();
        } else if let Some(mut next) = Section::from_line(line) {
            if let Some(section) = section.take() {
                section.finish(&mut read);
            }
            next.notes.append(&mut before);
            section = Some(next);
        } else if let Some(rest) = line.strip_prefix(IDLE) {
            if let Some(section) = section.take() {
                section.finish(&mut read);
            }
            idle(at, rest, line, std::mem::take(&mut before), &mut read);
        } else if NOTES.iter().any(|beginning| line.starts_with(beginning)) {
            // Behind its figures a section has no more notes.
            let line = line.trim_start_matches(['*', ' ']);
            match section.as_mut().filter(|section| section.is_bare()) {
                Some(section) => note(&mut section.notes, line),
                None => note(&mut before, line),
            }
        } else if let Some(section) = &mut section {
            section.line(at, line, &mut read);
        }
    }
    if let Some(section) = section {
        section.finish(&mut read);
    }
    read
}

impl Section {
    fn is_bare(&self) -> bool {
        self.cells.is_empty() && self.figures.is_empty() && self.points.is_empty()
    }
}

/// `186.1 core clocks ( 80.9 ns)`
fn idle(at: usize, rest: &str, line: &str, notes: Vec<String>, read: &mut Read) {
    let ns = rest.split_once('(').and_then(|(_, rest)| rest.split_once("ns"));
    match ns.and_then(|(value, _)| number(value.trim())) {
        Some(value) => {
            let figures = vec![("one load".to_owned(), value)];
            read.add(table("idle latency", notes, FigureTable::List { unit: FigureUnit::Ns, figures }));
        }
        None => read.problem(at, "clocks, and ns in parentheses", line),
    }
}
