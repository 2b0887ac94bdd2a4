//! Rows and conditions of the decision table.

use nodewise_machine::placement::Placement;

use super::profile::Profile;
use super::rows::ROWS;
use crate::finding::Value;
use crate::knowledge::ProgramKind;

/// Whether a condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holds {
    Yes,
    No,
    /// The fact that would say so is not known.
    Unknown(&'static str),
}

impl Holds {
    /// From a fact that may be missing.
    pub fn from_fact(fact: Option<bool>, name: &'static str) -> Self {
        match fact {
            Some(true) => Self::Yes,
            Some(false) => Self::No,
            None => Self::Unknown(name),
        }
    }
}

/// A number of the profile that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Memory that the program will need.
    Need,
    /// CPUs that it keeps busy.
    Parallelism,
    /// Bytes per second.
    Growth,
    /// A part of one node's bandwidth.
    Bandwidth,
}

impl Quantity {
    /// Its name, as evidence has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Need => "memory needed",
            Self::Parallelism => "parallelism",
            Self::Growth => "growth",
            Self::Bandwidth => "bandwidth",
        }
    }

    /// A value of it with its unit.
    pub fn value(self, number: f64) -> Value {
        match self {
            Self::Need => Value::Size(nodewise_machine::Bytes::new(number.max(0.0) as u64)),
            Self::Parallelism => Value::Text(format!("{number:.1} CPUs")),
            Self::Growth => Value::Text(format!("{:.1} MiB/s", number / f64::from(1 << 20))),
            Self::Bandwidth => Value::Share(number),
        }
    }
}

/// A number against its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    pub quantity: Quantity,
    pub value: f64,
    pub at: f64,
}

/// A condition of a row, with the value that was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The condition in words: `fits node 2`.
    pub words: String,
    pub holds: Holds,
    pub edge: Option<Edge>,
}

impl Condition {
    /// A condition that has no number.
    pub(super) fn fact(words: impl Into<String>, fact: Option<bool>, name: &'static str) -> Self {
        Self { words: words.into(), holds: Holds::from_fact(fact, name), edge: None }
    }

    /// A number that must not be above a limit, or must be.
    pub(super) fn limit(
        words: impl Into<String>,
        quantity: Quantity,
        value: Option<f64>,
        at: Option<f64>,
        is_at_most: bool,
    ) -> Self {
        let edge = value.zip(at).map(|(value, at)| Edge { quantity, value, at });
        let fact = edge.map(|edge| (edge.value <= edge.at) == is_at_most);
        Self { words: words.into(), holds: Holds::from_fact(fact, quantity.name()), edge }
    }
}

/// A row of the decision table.
pub struct Row {
    /// Its number in the documentation: `7a`.
    pub number: &'static str,
    /// The placement in words.
    pub title: &'static str,
    /// Why it is right for such programs, as a sentence.
    pub because: &'static str,
    /// The kind of program, where the row says that.
    pub kind: Option<ProgramKind>,
    /// All of them must hold.
    pub conditions: fn(&Profile) -> Vec<Condition>,
    /// One placement, one for each instance, or none.
    pub place: fn(&Profile) -> Vec<Placement>,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "row {}", self.number)
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

/// A row that might hold, and the facts that would say so.
#[derive(Clone, Debug, PartialEq)]
pub struct UndecidedRow {
    pub row: &'static Row,
    pub lacks: Vec<&'static str>,
}

/// The first row that holds.
pub(super) struct Decided {
    pub(super) row: &'static Row,
    pub(super) conditions: Vec<Condition>,
    pub(super) undecided: Vec<UndecidedRow>,
}

/// Asks the rows in their order. The last one has no condition, so one of them decides.
pub(super) fn decide(profile: &Profile) -> Decided {
    let mut undecided = Vec::new();
    for row in ROWS {
        let conditions = (row.conditions)(profile);
        if conditions.iter().any(|condition| condition.holds == Holds::No) {
            continue;
        }
        let lacks = conditions.iter().filter_map(|condition| match condition.holds {
            Holds::Unknown(lack) => Some(lack),
            Holds::Yes | Holds::No => None,
        });
        let mut lacks: Vec<&'static str> = lacks.collect();
        if lacks.is_empty() {
            return Decided { row, conditions, undecided };
        }
        lacks.dedup();
        undecided.push(UndecidedRow { row, lacks });
    }
    let last = ROWS.last().expect("the table has rows");
    Decided { row: last, conditions: Vec::new(), undecided }
}
