//! The survey of one machine.

use std::collections::BTreeMap;

use nodewise_machine::{NodeId, Severity};

use crate::structure::Structure;

/// The identity of a survey.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SurveyKey {
    /// The round of surveys that it belongs to; empty where none was named.
    pub run: String,
    pub host: String,
    /// How often it was begun before: 0 for the first time.
    pub attempt: u32,
}

/// Letters that the name of a host may have, and those of a run.
const MOST_HOST: usize = 253;
const MOST_RUN: usize = 64;

impl SurveyKey {
    /// Whether a text can be the name of a host: it becomes part of a file's name, and is shown as it is.
    pub fn is_host(text: &str) -> bool {
        let fits = |letter: u8| letter.is_ascii_alphanumeric() || b".-_".contains(&letter);
        (1..=MOST_HOST).contains(&text.len())
            && text.bytes().all(fits)
            && text.as_bytes()[0].is_ascii_alphanumeric()
    }

    /// Whether a text can be the name of a run, or no name.
    pub fn is_run(text: &str) -> bool {
        text.is_empty() || text.len() <= MOST_RUN && Self::is_host(text)
    }
}

/// The facts, figures and findings of one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSurvey {
    pub key: SurveyKey,
    /// When it began, in seconds since the beginning of 1970.
    pub began_unix_s: Option<u64>,
    /// Parts that are records of other measurements instead of measurements of this host: `machine`, `latency`.
    pub recorded: Vec<String>,
    /// The machine in a line. Foreign text.
    pub description: String,
    pub structure: Structure,
    pub cells: BTreeMap<CellKey, Cell>,
    pub findings: Vec<SurveyFinding>,
    /// Parts that are missing, and why.
    pub lacking: Vec<LackingPart>,
    /// A hash of the document, which distinguishes two surveys with the same key.
    pub contents: u64,
}

/// A part that a survey does not have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LackingPart {
    pub part: String,
    /// Foreign text.
    pub reason: String,
}

/// The kind of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    Latency,
    Bandwidth,
}

impl Quantity {
    pub const ALL: [Self; 2] = [Self::Latency, Self::Bandwidth];

    /// The word for scripts and people.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Bandwidth => "bandwidth",
        }
    }

    /// The unit of its figures.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Latency => "ns",
            Self::Bandwidth => "GB/s",
        }
    }

    /// How many times slower `value` is than `usual`: above 1 is worse, whichever way the figure counts.
    pub fn slowness(self, value: f64, usual: f64) -> f64 {
        match self {
            Self::Latency => value / usual,
            Self::Bandwidth => usual / value,
        }
    }
}

/// The pages that a figure was measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pages {
    Small,
    TransparentHuge,
    /// From a pool of this page size.
    Pool(u64),
}

/// A figure of a machine: from the CPUs of one node to the memory of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellKey {
    pub quantity: Quantity,
    pub from: NodeId,
    pub memory: NodeId,
    pub pages: Pages,
}

/// The value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// In the unit of its quantity; above 0.
    pub value: f64,
    /// The standard error of the value as a part of it, from the interval around it; 0 where that is not known.
    pub error_share: f64,
}

/// A finding of `doctor` on one host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SurveyFinding {
    /// The rule.
    pub id: String,
    pub severity: Severity,
    /// Foreign text.
    pub summary: String,
}

#[cfg(test)]
pub(crate) mod tests {
    use nodewise_machine::spec;

    use super::*;

    /// A survey of a small machine without figures.
    pub(crate) fn survey(host: &str) -> HostSurvey {
        HostSurvey {
            key: SurveyKey { run: String::new(), host: host.to_owned(), attempt: 0 },
            began_unix_s: Some(1_800_000_000),
            recorded: Vec::new(),
            description: "2 packages".to_owned(),
            structure: Structure::new(&spec::machine("2x(8c 64G)").unwrap()),
            cells: BTreeMap::new(),
            findings: Vec::new(),
            lacking: Vec::new(),
            contents: 0,
        }
    }

    /// The survey of a host of two nodes whose figures are this much slower than usual: of memory of node 0, of node 1.
    pub(crate) fn measured(host: &str, slowness: [f64; 2]) -> HostSurvey {
        let mut survey = survey(host);
        for from in 0..2 {
            for memory in 0..2 {
                let slow = slowness[memory as usize];
                let is_local = from == memory;
                for (quantity, value) in [
                    (Quantity::Latency, if is_local { 90.0 } else { 140.0 } * slow),
                    (Quantity::Bandwidth, if is_local { 100.0 } else { 60.0 } / slow),
                ] {
                    let (from, memory) = (NodeId::new(from), NodeId::new(memory));
                    let key = CellKey { quantity, from, memory, pages: Pages::Small };
                    survey.cells.insert(key, Cell { value, error_share: 0.0 });
                }
            }
        }
        survey
    }

    #[test]
    fn names_that_are_paths_or_options_are_not_hosts() {
        for (text, is_host) in [
            ("n1", true),
            ("web-7.example.org", true),
            ("n_1", true),
            ("", false),
            (".x", false),
            ("-x", false),
            ("a/b", false),
            ("a\u{1b}b", false),
            ("é", false),
        ] {
            assert_eq!(SurveyKey::is_host(text), is_host, "{text:?}");
        }
        assert!(
            SurveyKey::is_run("") && SurveyKey::is_run("2026-11-26") && !SurveyKey::is_run(&"x".repeat(65))
        );
    }

    #[test]
    fn a_slow_figure_is_above_one_whichever_way_it_counts() {
        assert_eq!(Quantity::Latency.slowness(130.0, 100.0), 1.3);
        assert_eq!(Quantity::Bandwidth.slowness(50.0, 100.0), 2.0);
    }
}
