//! Parts of the documents of every survey and of every cell of one, whatever was measured.

use std::time::Duration;

use nodewise_machine::conditions::Conditions;
use nodewise_machine::{Bytes, NodeSet};
use nodewise_measure::cell::{Glance, PageKind, Placed};
use nodewise_measure::latency::cache::LastLevel;
use nodewise_measure::survey::figure::rounded;
use nodewise_measure::survey::{Account, CellReport, Figure, LeftOut, Marks};
use serde::{Deserialize, Serialize};

use super::reading::{Fields, node, pages, set};

/// The course of a survey; its circumstances are separate.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    last_level_cache: Option<LastLevelJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOutJson>,
}

/// The parts that a limit of time has left out.
#[derive(Serialize, Deserialize)]
struct LeftOutJson {
    rounds: u32,
    of_rounds: u32,
    cells: usize,
    of_cells: usize,
    repetitions: usize,
}

impl LeftOutJson {
    fn from_left_out(left_out: LeftOut) -> Self {
        let LeftOut { rounds, of_rounds, cells, of_cells, disturbed } = left_out;
        Self { rounds: of_rounds.saturating_sub(rounds), of_rounds, cells, of_cells, repetitions: disturbed }
    }

    fn read(self) -> Result<LeftOut, String> {
        let Self { rounds, of_rounds, cells, of_cells, repetitions } = self;
        if rounds > of_rounds || cells > of_cells || repetitions > of_cells {
            return Err("left_out: more is left out than there is".to_owned());
        }
        Ok(LeftOut { rounds: of_rounds - rounds, of_rounds, cells, of_cells, disturbed: repetitions })
    }
}

/// The cache that decided sizes.
#[derive(Serialize, Deserialize)]
struct LastLevelJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    claimed_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held_together_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut_short: bool,
}

impl AccountJson {
    pub(super) fn from_account(account: &Account) -> Self {
        let seconds = |time: Option<Duration>| time.map(|time| rounded(time.as_secs_f64()));
        Self {
            seed: account.seed,
            clock: account.clock.clone(),
            took_s: rounded(account.took.as_secs_f64()),
            interrupted: account.interrupted,
            stolen_s: seconds(account.meanwhile.stolen),
            other_programs_s: seconds(account.meanwhile.others),
            last_level_cache: account.last_level.map(|cache| LastLevelJson {
                claimed_bytes: cache.claimed.map(Bytes::get),
                found_bytes: cache.found.map(Bytes::get),
                held_together_bytes: cache.together.map(Bytes::get),
                cut_short: cache.is_cut_short,
            }),
            left_out: account.left_out.map(LeftOutJson::from_left_out),
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
            last_level: self.last_level_cache.map(|cache| LastLevel {
                claimed: cache.claimed_bytes.map(Bytes::new),
                found: cache.found_bytes.map(Bytes::new),
                together: cache.held_together_bytes.map(Bytes::new),
                is_cut_short: cache.cut_short,
            }),
            left_out: self.left_out.map(LeftOutJson::read).transpose()?,
        })
    }
}

/// Some thirty years: a time that is written with nine digits and read back the same.
const MOST_SECONDS: f64 = 1e9;

fn seconds(name: &str, value: f64) -> Result<Duration, String> {
    let time = Duration::try_from_secs_f64(value).ok().filter(|_| value <= MOST_SECONDS);
    time.ok_or_else(|| format!("{name} is {value}: expected a time in seconds"))
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
    pub(super) fn from_placed(placed: &Placed) -> Self {
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

/// How many samples were disturbed, by cause and in all.
#[derive(Serialize, Deserialize)]
pub(super) struct MarksJson {
    stolen: usize,
    switched: usize,
    faulted: usize,
    slower: usize,
    any: usize,
    of: usize,
}

impl MarksJson {
    pub(super) const fn from_marks(marks: &Marks) -> Self {
        let Marks { stolen, switched, faulted, slower, disturbed, samples } = *marks;
        Self { stolen, switched, faulted, slower, any: disturbed, of: samples }
    }

    pub(super) const fn read(self) -> Marks {
        let Self { stolen, switched, faulted, slower, any, of } = self;
        Marks { stolen, switched, faulted, slower, disturbed: any, samples: of }
    }
}

/// Disturbed samples as documents of version 1 of other schemas than `nodewise.latency` had them, too: their
/// number, without the causes.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "disturbed_samples is neither an object nor, as in version 1, a number")]
enum DisturbedJson {
    Marks(MarksJson),
    Number(usize),
}

impl DisturbedJson {
    /// The marks of this many samples.
    fn read(self, samples: usize) -> Marks {
        match self {
            Self::Marks(marks) => marks.read(),
            Self::Number(disturbed) => Marks { disturbed, samples, ..Marks::default() },
        }
    }
}

/// Who reached for what.
#[derive(Serialize, Deserialize)]
pub(super) struct ReachJson {
    from_node: u32,
    cpus: String,
    memory_node: u32,
    pages: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    huge_page_bytes: Option<u64>,
}

/// The fields behind a figure: how often it was measured, where that was, and how quietly.
#[derive(Serialize, Deserialize)]
pub(super) struct BackingJson {
    pub(super) rounds: usize,
    pub(super) samples: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed_before: Option<PlacedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed_after: Option<PlacedJson>,
    disturbed: bool,
    measured_again: bool,
    disturbed_samples: DisturbedJson,
}

impl ReachJson {
    pub(super) fn from_cell(cell: &CellReport) -> Self {
        let (pages, huge_page_bytes) = page_kind(cell.pages);
        Self {
            from_node: cell.from.number(),
            cpus: cell.cpus.to_string(),
            memory_node: cell.memory.number(),
            pages: pages.to_owned(),
            huge_page_bytes,
        }
    }

    /// The cell that this is, with what it gave and what follows that.
    pub(super) fn read(self, rate: &GbPerSJson, backing: BackingJson) -> Result<CellReport, String> {
        let figure = rate.read(backing.rounds, backing.samples)?;
        self.read_with(figure, backing)
    }

    /// The cell that this is, with a figure that is read already.
    pub(super) fn read_with(
        self,
        figure: Option<Figure>,
        backing: BackingJson,
    ) -> Result<CellReport, String> {
        let marks = backing.disturbed_samples.read(backing.samples);
        Ok(CellReport {
            from: node(self.from_node)?,
            cpus: set("cpus", &self.cpus)?,
            memory: node(self.memory_node)?,
            pages: pages(&self.pages, self.huge_page_bytes)?,
            figure,
            refused: backing.refused,
            before: backing.placed_before.map(PlacedJson::read).transpose()?,
            after: backing.placed_after.map(PlacedJson::read).transpose()?,
            marks,
            disturbed: backing.disturbed,
            again: backing.measured_again,
        })
    }
}

impl BackingJson {
    pub(super) fn from_cell(cell: &CellReport) -> Self {
        Self {
            rounds: cell.figure.map_or(0, |figure| figure.rounds),
            samples: cell.figure.map_or(0, |figure| figure.samples),
            refused: cell.refused.clone(),
            placed_before: cell.before.as_ref().map(PlacedJson::from_placed),
            placed_after: cell.after.as_ref().map(PlacedJson::from_placed),
            disturbed: cell.disturbed,
            measured_again: cell.again,
            disturbed_samples: DisturbedJson::Marks(MarksJson::from_marks(&cell.marks)),
        }
    }
}

/// A figure in GB/s (10^9 bytes per second).
#[derive(Serialize, Deserialize)]
pub(super) struct GbPerSJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    median_gb_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    median_interval_95_gb_per_s: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best_gb_per_s: Option<f64>,
}

impl GbPerSJson {
    pub(super) fn from_figure(figure: Option<Figure>) -> Self {
        let interval = figure.and_then(|figure| figure.interval);
        Self {
            median_gb_per_s: figure.map(|figure| rounded(figure.median)),
            median_interval_95_gb_per_s: interval
                .map(|interval| [rounded(interval.low), rounded(interval.high)]),
            best_gb_per_s: figure.map(|figure| rounded(figure.best)),
        }
    }

    /// The figure, of this many rounds and samples; `None` where there is none.
    pub(super) fn read(&self, rounds: usize, samples: usize) -> Result<Option<Figure>, String> {
        let (median, interval) = (self.median_gb_per_s, self.median_interval_95_gb_per_s);
        Fields { unit: "gb_per_s", median, interval, best: self.best_gb_per_s, rounds, samples }.read()
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
