//! The runs of present pages of each mapping.

use nodewise_machine::Bytes;
use nodewise_machine::mapping::MappingKind;

use super::{PageError, PageSource, Run, RunState};
use crate::parse::maps::Mapping;

/// Runs that are kept of one process: a hundred GiB in which every second page is present has twelve million. A
/// mapping for which there is no room counts as a whole.
const MOST_RUNS: usize = 1 << 20;
/// The lowest address that no program has: what is above is the kernel's.
const PROGRAMS_END: u64 = 1 << 63;

/// The pages of a mapping that can be drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Present {
    /// In order.
    pub(super) runs: Vec<Run>,
    pub(super) resident: Bytes,
    pub(super) huge: Bytes,
    pub(super) swapped: Bytes,
    /// Whether the runs are one over all of it, because there are too many, and not all its pages are present.
    pub(super) is_whole: bool,
}

impl Present {
    /// All pages of a mapping, whether they are present or not.
    pub(super) fn whole(mapping: &Mapping) -> Self {
        let mut present = Self::default();
        present.make_whole(mapping);
        present
    }

    fn make_whole(&mut self, mapping: &Mapping) {
        self.runs = vec![Run { start: mapping.start, end: mapping.end, state: RunState::Small }];
        self.is_whole = true;
    }

    fn add(&mut self, run: Run) {
        let length = Bytes::new(run.end - run.start);
        match run.state {
            RunState::Swapped => {
                self.swapped += length;
                return;
            }
            RunState::Huge => self.huge += length,
            RunState::Small => {}
        }
        self.resident += length;
        if !self.is_whole {
            self.runs.push(run);
        }
    }

    /// The memory that its runs cover.
    pub(super) fn candidates(&self) -> Bytes {
        self.runs.iter().map(|run| Bytes::new(run.end - run.start)).sum()
    }
}

/// Whether a scan finds swapped pages of such mappings: page tables have nothing for those of shared memory.
pub(super) const fn has_swapped(kind: MappingKind) -> bool {
    !matches!(kind, MappingKind::Shared)
}

/// Asks for the runs of all mappings.
pub(super) fn scan(listed: &[Mapping], pages: &mut dyn PageSource) -> Result<Vec<Present>, PageError> {
    let mut found = vec![Present::default(); listed.len()];
    let of_programs = || listed.iter().filter(|mapping| mapping.end <= PROGRAMS_END);
    let (Some(first), Some(last)) = (of_programs().next(), of_programs().next_back()) else {
        return Ok(found);
    };
    let (mut at, mut kept) = (0, 0);
    pages.runs((first.start, last.end), &mut |run| {
        let mut start = run.start;
        // Runs come in order, and one may reach over several mappings.
        while start < run.end {
            while listed.get(at).is_some_and(|mapping| mapping.end <= start) {
                at += 1;
            }
            let Some(mapping) = listed.get(at).filter(|mapping| mapping.start < run.end) else { return };
            let part = Run { start: start.max(mapping.start), end: run.end.min(mapping.end), ..run };
            kept += 1;
            if kept > MOST_RUNS && !found[at].is_whole {
                found[at].make_whole(mapping);
            }
            found[at].add(part);
            start = part.end;
        }
    })?;
    Ok(found)
}
