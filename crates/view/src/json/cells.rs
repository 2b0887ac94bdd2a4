//! What every survey and every cell of one has in its document, whatever was measured.

use std::time::Duration;

use nodewise_machine::{Bytes, NodeSet};
use nodewise_measure::cell::{Glance, PageKind, Placed};
use nodewise_measure::conditions::Conditions;
use nodewise_measure::survey::{Account, CellReport, Figure};
use serde::{Deserialize, Serialize};

/// How a survey went; its circumstances stand apart.
#[derive(Serialize, Deserialize)]
pub(super) struct AccountJson {
    seed: u64,
    clock: String,
    took_s: f64,
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stolen_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_programs_s: Option<f64>,
}

impl AccountJson {
    pub(super) fn of(account: &Account) -> Self {
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        Self {
            seed: account.seed,
            clock: account.clock.clone(),
            took_s: account.took.as_secs_f64(),
            interrupted: account.interrupted,
            stolen_s: seconds(account.meanwhile.stolen),
            other_programs_s: seconds(account.meanwhile.others),
        }
    }

    pub(super) fn read(self, conditions: Conditions) -> Result<Account, String> {
        Ok(Account {
            conditions,
            seed: self.seed,
            clock: self.clock,
            took: seconds("took_s", self.took_s)?,
            interrupted: self.interrupted,
            meanwhile: Glance {
                stolen: self.stolen_s.map(|time| seconds("stolen_s", time)).transpose()?,
                others: self.other_programs_s.map(|time| seconds("other_programs_s", time)).transpose()?,
                ..Glance::default()
            },
        })
    }
}

fn seconds(name: &str, value: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(value).map_err(|_| format!("{name} is {value}: expected a time in seconds"))
}

/// Where pages were.
#[derive(Serialize, Deserialize)]
pub(super) struct PlacedJson {
    pages_on_node: u64,
    pages: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    other_nodes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    huge_bytes: Option<u64>,
}

impl PlacedJson {
    pub(super) fn of(placed: &Placed) -> Self {
        Self {
            pages_on_node: placed.on_node,
            pages: placed.pages,
            other_nodes: placed.elsewhere.to_string(),
            huge_bytes: placed.huge.map(Bytes::get),
        }
    }

    pub(super) fn read(self) -> Result<Placed, String> {
        let elsewhere: NodeSet = match self.other_nodes.as_str() {
            "" => NodeSet::new(),
            text => text.parse().map_err(|error| format!("other_nodes: {error}"))?,
        };
        let huge = self.huge_bytes.map(Bytes::new);
        Ok(Placed { on_node: self.pages_on_node, pages: self.pages, elsewhere, huge })
    }
}

/// Who reached for what.
#[derive(Serialize)]
pub(super) struct ReachJson {
    from_node: u32,
    cpus: String,
    memory_node: u32,
    pages: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    huge_page_bytes: Option<u64>,
}

/// What stands behind a figure: how often it was measured, where that was, and how quietly.
#[derive(Serialize)]
pub(super) struct BackingJson {
    rounds: usize,
    samples: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed_before: Option<PlacedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed_after: Option<PlacedJson>,
    disturbed: bool,
    measured_again: bool,
    disturbed_samples: usize,
}

impl ReachJson {
    pub(super) fn of(cell: &CellReport) -> Self {
        let (pages, huge_page_bytes) = page_kind(cell.pages);
        Self {
            from_node: cell.from.number(),
            cpus: cell.cpus.to_string(),
            memory_node: cell.memory.number(),
            pages,
            huge_page_bytes,
        }
    }
}

impl BackingJson {
    pub(super) fn of(cell: &CellReport) -> Self {
        Self {
            rounds: cell.figure.map_or(0, |figure| figure.rounds),
            samples: cell.figure.map_or(0, |figure| figure.samples),
            refused: cell.refused.clone(),
            placed_before: cell.before.as_ref().map(PlacedJson::of),
            placed_after: cell.after.as_ref().map(PlacedJson::of),
            disturbed: cell.disturbed,
            measured_again: cell.again,
            disturbed_samples: cell.marks.disturbed,
        }
    }
}

/// A figure in GB/s (10^9 bytes per second).
#[derive(Serialize)]
pub(super) struct GbPerSJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    median_gb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_interval_95_gb_per_s: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best_gb_per_s: Option<f64>,
}

impl GbPerSJson {
    pub(super) fn of(figure: Option<Figure>) -> Self {
        let interval = figure.and_then(|figure| figure.interval);
        Self {
            median_gb_per_s: figure.map(|figure| figure.median),
            median_interval_95_gb_per_s: interval.map(|interval| [interval.low, interval.high]),
            best_gb_per_s: figure.map(|figure| figure.best),
        }
    }
}

/// The word for a kind of pages, and the size of those from a pool.
pub(super) fn page_kind(pages: PageKind) -> (&'static str, Option<u64>) {
    match pages {
        PageKind::Small => ("small", None),
        PageKind::TransparentHuge => ("transparent_huge", None),
        PageKind::Hugetlb(size) => ("hugetlb", Some(size.bytes().get())),
    }
}
