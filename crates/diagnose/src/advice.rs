//! The placement that a program should have, by evidence: a decision table whose first row that holds decides.

mod apply;
mod decision;
mod evidence;
mod flip;
mod in_force;
mod known;
mod now;
mod process;
mod profile;
mod rows;

use std::time::Duration;

use nodewise_machine::placement::Placement;
use nodewise_machine::{Bytes, PolicyMode};

use crate::finding::{Mend, Owner};
use crate::knowledge::{Application, ProgramKind};

pub use apply::{MovablePages, Undoable};
pub use decision::{Condition, Edge, Holds, Quantity, Row, UndecidedRow};
pub use evidence::AdviceEvidence;
pub use flip::Flip;
pub use in_force::InForce;
pub use known::{Known, Quality};
pub use process::{ProgramReading, from_process, unstarted};
pub use profile::{NodeRoom, Profile, Sharing};
pub use rows::{MEASURED, ROWS};

/// The time over which growth is counted, unless another one is typed.
pub const HORIZON: Duration = Duration::from_secs(600);
/// The most placements that `tune` is asked to compare.
const MOST_CANDIDATES: usize = 4;
/// The part of a node from which an unknown need for bandwidth is worth an experiment.
const WORTH_MEASURING: f64 = 0.25;

/// The placement that a program should have, and why.
#[derive(Clone, Debug)]
pub struct Advice {
    pub row: &'static Row,
    pub kind: ProgramKind,
    /// One, or one for each instance; empty where nothing is to be changed.
    pub placements: Vec<Placement>,
    /// The conditions that chose the row, with their values.
    pub conditions: Vec<Condition>,
    /// Rows before it that might hold, if more were known.
    pub undecided: Vec<UndecidedRow>,
    /// Values that would lead to another row, the nearest first.
    pub flips: Vec<Flip>,
    /// Placements that `tune` should compare; empty where evidence decides.
    pub ask: Vec<Placement>,
}

impl Advice {
    /// Decides.
    pub fn new(profile: &Profile, application: Option<&Application>) -> Self {
        let decided = decision::decide(profile);
        let placements = (decided.row.place)(profile);
        let flips = flip::flips(profile, decided.row);
        let ask = candidates(profile, &decided, &placements);
        Self {
            row: decided.row,
            kind: kind(profile, decided.row, application),
            placements,
            conditions: decided.conditions,
            undecided: decided.undecided,
            flips,
            ask,
        }
    }

    /// The advice of a study of this program, which overrides the table. `words` say what was measured.
    pub fn from_measurement(
        profile: &Profile,
        application: Option<&Application>,
        best: &Placement,
        words: &str,
    ) -> Self {
        let row = &MEASURED;
        let best = best.within(&profile.scope);
        Self {
            row,
            kind: kind(profile, row, application),
            placements: if best == Placement::DEFAULT { Vec::new() } else { vec![best] },
            conditions: vec![Condition::fact(words, Some(true), "study")],
            undecided: Vec::new(),
            flips: Vec::new(),
            ask: Vec::new(),
        }
    }

    /// Whether the process has this placement already.
    pub fn in_force(&self, profile: &Profile) -> InForce {
        in_force::in_force(profile, self.row, &self.placements)
    }

    /// Commands that bring a running process there at once, each with the way back. Several instances need a restart.
    pub fn at_once(&self, profile: &Profile, pid: u32, owner: &Owner) -> Vec<Mend> {
        let [placement] = &self.placements[..] else { return Vec::new() };
        now::at_once(profile, placement, pid, owner)
    }

    /// The part of it that a running process can be given, and given back.
    pub fn undoable(&self, profile: &Profile, owner: &Owner, movable: MovablePages) -> Undoable {
        apply::undoable(profile, &self.placements, owner, movable)
    }
}

/// The kind of the program: the row's, else the most important one of its entry.
fn kind(profile: &Profile, row: &Row, application: Option<&Application>) -> ProgramKind {
    let own = application.and_then(|application| application.kinds.first()).copied();
    let by_growth = || match profile.is_growing() {
        Some(true) => ProgramKind::Growing,
        _ => ProgramKind::Mixed,
    };
    row.kind.or(own).unwrap_or_else(by_growth)
}

/// Placements to compare where evidence cannot decide: the default, the advised one, those of rows that might hold.
fn candidates(profile: &Profile, decided: &decision::Decided, advised: &[Placement]) -> Vec<Placement> {
    let has_choice = profile.scope.memory_nodes.len() > 1 && profile.class.has_distance();
    let is_placed = decided.row.number == "3";
    if !has_choice || is_placed {
        return Vec::new();
    }
    let large = |need: &Bytes| {
        let smallest = profile.nodes.values().map(|node| node.size).min();
        smallest.is_some_and(|size| need.get() as f64 > WORTH_MEASURING * size.get() as f64)
    };
    let is_open = profile.sharing.value().is_none() || profile.bandwidth.value().is_none();
    let matters = profile.need.value().is_none_or(large);
    if decided.row.number != "8" && !(is_open && matters) {
        return Vec::new();
    }
    let mut all = vec![Placement::DEFAULT];
    all.extend(advised.first().cloned());
    if decided.row.number == "8" || advised.is_empty() {
        all.extend(profile.home().map(|home| profile.on_node(home, PolicyMode::Bind)));
    }
    all.push(profile.interleaved());
    // A row that lacks a fact may have no placement without it; of instances, one is enough.
    all.extend(decided.undecided.iter().filter_map(|open| (open.row.place)(profile).into_iter().next()));
    let mut different: Vec<Placement> = Vec::new();
    for placement in all.iter().map(|placement| placement.within(&profile.scope)) {
        if different.len() < MOST_CANDIDATES && !different.contains(&placement) {
            different.push(placement);
        }
    }
    if different.len() < 2 { Vec::new() } else { different }
}

#[cfg(test)]
mod tests;
