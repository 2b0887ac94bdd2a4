//! Phases that a program marks, and the lines of each.

use std::fmt;

use nodewise_machine::printable::{printable, quote};

use super::{LineCounts, LocalShare, OWN};
use crate::digest::matrix::Matrix;

/// The lines of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseShare {
    /// Its place among the phases.
    pub phase: usize,
    pub share: LocalShare,
}

/// A phase that no program marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPhase {
    name: String,
    /// The names of those that were marked, printable.
    marked: Vec<String>,
}

impl fmt::Display for UnknownPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the program marked no phase {}: ", quote(&self.name))?;
        if self.marked.is_empty() {
            return write!(f, "it marked none");
        }
        write!(f, "expected one of {}", self.marked.join(", "))
    }
}

impl std::error::Error for UnknownPhase {}

impl LineCounts {
    /// The lines of each phase that has any, in the order in which the phases were first marked; nothing where none was.
    pub fn phase_shares(&self) -> Vec<PhaseShare> {
        if self.phases.len() < 2 {
            return Vec::new();
        }
        let share = |phase| PhaseShare { phase, share: self.share(OWN, |cell| cell.phase == phase) };
        (0..self.phases.len()).map(share).filter(|found| found.share.all > 0).collect()
    }

    /// Those of at most this many phases: the ones with most remote lines.
    pub fn worst_phases(&self, most: usize) -> Vec<PhaseShare> {
        let mut phases = self.phase_shares();
        phases.sort_by_key(|found| std::cmp::Reverse((found.share.remote(), found.share.all)));
        phases.truncate(most);
        phases.sort_by_key(|found| found.phase);
        phases
    }

    /// The lines of a phase by node of the CPUs and node of the memory; the matrix has the phase's name and `remark`.
    pub fn phase_matrix(&self, phase: usize, remark: &str) -> Matrix {
        self.matrix_of(&self.phase_name(phase), remark, |cell| cell.phase == phase)
    }

    /// A phase in words.
    pub fn phase_name(&self, phase: usize) -> String {
        match self.phases.get(phase).map(String::as_str) {
            None | Some("") => "outside of phases".to_owned(),
            Some(name) => printable(name).into_owned(),
        }
    }

    /// The counts of one phase alone.
    ///
    /// # Errors
    /// No program marked it.
    pub fn only_phase(self, name: &str) -> Result<Self, UnknownPhase> {
        let place = self.phases.iter().position(|phase| phase == name).filter(|place| *place > 0);
        let Some(place) = place else {
            let marked = (1..self.phases.len()).map(|phase| self.phase_name(phase)).collect();
            return Err(UnknownPhase { name: name.to_owned(), marked });
        };
        Ok(Self { chosen: Some(name.to_owned()), ..self.in_phase(place) })
    }

    /// The counts of the phase with this place, also of that outside of phases.
    #[must_use]
    pub fn in_phase(mut self, place: usize) -> Self {
        self.cells.retain(|cell| cell.phase == place);
        self.parts.retain(|part| part.phase == place);
        self.code.iter_mut().for_each(|code| code.reads.retain(|reads| reads.phase == place));
        self
    }

    /// Gives the phases the places that they have among `names`; the first is the time outside of phases, also of lines of a
    /// phase with another name.
    pub fn number_phases(&mut self, names: &[String]) {
        let place = |name: &String| names.iter().position(|other| other == name).unwrap_or_default();
        let places: Vec<usize> = self.phases.iter().map(place).collect();
        let number = |phase: &mut usize| *phase = places.get(*phase).copied().unwrap_or_default();
        self.cells.iter_mut().for_each(|cell| number(&mut cell.phase));
        self.parts.iter_mut().for_each(|part| number(&mut part.phase));
        let reads = self.code.iter_mut().flat_map(|code| &mut code.reads);
        reads.for_each(|reads| number(&mut reads.phase));
        self.phases = names.to_vec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::line_counts::tests::{phased, sample};

    #[test]
    fn each_phase_has_its_own_share() {
        assert_eq!(sample().phase_shares(), []);
        let shares: Vec<(usize, u64, u64)> = phased()
            .phase_shares()
            .iter()
            .map(|found| (found.phase, found.share.local, found.share.all))
            .collect();
        assert_eq!(shares, [(0, 1000, 1050), (1, 700, 954)]);
        let worst = phased().worst_phases(1);
        assert_eq!(worst.iter().map(|found| found.phase).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_phase_alone_has_its_own_lines_in_all_tables() {
        let counts = phased().only_phase("solve\u{1b}").unwrap();
        assert_eq!(counts.all(), LocalShare { local: 700, all: 954 });
        assert_eq!(counts.worst_threads().len(), 1);
        let mappings: Vec<(&str, u64)> =
            counts.worst_mappings().iter().map(|(mapping, share)| (mapping.kind.name(), share.all)).collect();
        assert_eq!(mappings, [("heap", 240), ("lib\u{1b}.so", 700)]);
        assert_eq!(phased().only_phase("idle").unwrap().all(), LocalShare::default());
    }

    #[test]
    fn phases_are_numbered_by_the_names_of_others() {
        let mut counts = phased();
        let names = ["", "load", "idle", "solve\u{1b}"].map(str::to_owned);
        counts.number_phases(&names);
        let shares: Vec<(usize, u64)> =
            counts.phase_shares().iter().map(|found| (found.phase, found.share.all)).collect();
        assert_eq!(shares, [(0, 1050), (3, 954)]);
        assert_eq!(counts.only_phase("solve\u{1b}").unwrap().worst_mappings().len(), 2);
    }

    #[test]
    fn a_phase_that_was_not_marked_is_an_error_with_those_that_were() {
        let say = |counts: LineCounts, name| counts.only_phase(name).unwrap_err().to_string();
        assert_eq!(
            say(phased(), "solv"),
            "the program marked no phase \"solv\": expected one of solve\\x1b, idle"
        );
        assert_eq!(say(phased(), ""), "the program marked no phase \"\": expected one of solve\\x1b, idle");
        assert_eq!(say(sample(), "a"), "the program marked no phase \"a\": it marked none");
    }
}
