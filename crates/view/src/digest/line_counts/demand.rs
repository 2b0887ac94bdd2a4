//! Demands for local lines, of all memory or of one mapping, and whether counts meet them.

use std::fmt;

use nodewise_machine::NodeId;
use nodewise_machine::printable::{printable, quote};

use super::{LineCounts, LineMappingKind, LocalShare, OWN, SIZES, remote_pairs};

/// At least this percentage of lines is to be local.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalDemand {
    /// The mapping by name, the same in all processes; `None` for all lines.
    pub mapping: Option<String>,
    pub percent: f64,
}

/// The result of a demand.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalVerdict {
    pub demand: LocalDemand,
    /// By size of the cache: lines read and written back; those read where the demand names a mapping.
    pub shares: [LocalShare; SIZES],
    /// Nodes of CPUs and of memory between which remote lines moved, the busiest pair first.
    pub worst_pairs: Vec<(NodeId, NodeId, u64)>,
}

impl LocalVerdict {
    /// Lines for the machine's size of the cache.
    pub const fn share(&self) -> LocalShare {
        self.shares[OWN]
    }

    /// Whether the demand is met. A program that moved no line moved none that is remote.
    pub fn holds(&self) -> bool {
        self.holds_with(OWN)
    }

    fn holds_with(&self, size: usize) -> bool {
        self.shares[size].percent().is_none_or(|percent| percent >= self.demand.percent)
    }

    /// Whether half of the cache, or twice the cache, gives the other answer.
    pub fn is_unsure(&self) -> bool {
        [0, 2].into_iter().any(|size| self.holds_with(size) != self.holds())
    }
}

/// A demand names a mapping that was not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMapping {
    name: String,
    /// The names of those that were, printable.
    counted: Vec<String>,
}

impl fmt::Display for UnknownMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no mapping named {} was counted: ", quote(&self.name))?;
        if self.counted.is_empty() {
            return write!(f, "there is none");
        }
        write!(f, "expected one of {}", self.counted.join(", "))
    }
}

impl std::error::Error for UnknownMapping {}

impl LineMappingKind {
    /// The name by which a demand calls it.
    pub fn name(&self) -> &str {
        match self {
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Unknown | Self::Anonymous | Self::File(_) | Self::Kernel => self.word(),
        }
    }
}

impl LineCounts {
    /// Judges a demand.
    ///
    /// # Errors
    /// It names a mapping that was not counted.
    pub fn verdict(&self, demand: &LocalDemand) -> Result<LocalVerdict, UnknownMapping> {
        let Some(name) = &demand.mapping else {
            return Ok(LocalVerdict {
                demand: demand.clone(),
                shares: std::array::from_fn(|size| self.share(size, |_| true)),
                worst_pairs: self.worst_pairs(),
            });
        };
        let is_named = |mapping: usize| self.mappings.get(mapping).is_some_and(|it| it.kind.name() == name);
        if !(0..self.mappings.len()).any(is_named) {
            return Err(self.unknown_mapping(name));
        }
        let parts = || self.parts.iter().filter(|part| is_named(part.mapping));
        let share = |size: usize| {
            let mut share = LocalShare::default();
            parts().for_each(|part| share.add(part.read[size], part.is_local()));
            share
        };
        Ok(LocalVerdict {
            demand: demand.clone(),
            shares: std::array::from_fn(share),
            worst_pairs: remote_pairs(parts().map(|part| (part.cpu_node, part.node, part.read[OWN]))),
        })
    }

    fn unknown_mapping(&self, name: &str) -> UnknownMapping {
        let mut counted: Vec<String> = Vec::new();
        for mapping in &self.mappings {
            let name = printable(mapping.kind.name()).into_owned();
            if !counted.contains(&name) {
                counted.push(name);
            }
        }
        UnknownMapping { name: name.to_owned(), counted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::line_counts::tests::sample;
    use crate::digest::line_counts::{LineMapping, LinePart};

    fn demand(mapping: Option<&str>, percent: f64) -> LocalDemand {
        LocalDemand { mapping: mapping.map(str::to_owned), percent }
    }

    #[test]
    fn a_verdict_that_another_cache_would_turn_is_unsure() {
        // 1700 of 2004 lines are local; 1900 of 2204 with half the cache, 1040 of 1344 with twice.
        let verdict = |percent| {
            let verdict = sample().verdict(&demand(None, percent)).unwrap();
            (verdict.holds(), verdict.is_unsure())
        };
        assert_eq!(verdict(50.0), (true, false));
        assert_eq!(verdict(80.0), (true, true));
        assert_eq!(verdict(86.0), (false, true));
        assert_eq!(verdict(95.0), (false, false));
        let mut nothing = sample();
        nothing.cells.clear();
        assert!(nothing.verdict(&demand(None, 100.0)).unwrap().holds());
    }

    #[test]
    fn a_mapping_is_judged_by_its_own_lines_in_all_processes() {
        let mut counts = sample();
        let verdict = |counts: &LineCounts, percent| counts.verdict(&demand(Some("heap"), percent)).unwrap();
        // 900 of 1140 lines are local.
        let heap = verdict(&counts, 79.0);
        assert_eq!((heap.share(), heap.holds()), (LocalShare { local: 900, all: 1140 }, false));
        assert_eq!(heap.worst_pairs, [(NodeId::new(1), NodeId::new(2), 240)]);
        assert!(verdict(&counts, 78.9).holds());
        let other = counts.mappings[1].clone();
        counts.mappings[3] = LineMapping { process: Some(301), ..other };
        let part = counts.parts[1];
        counts.parts.push(LinePart { mapping: 3, ..part });
        assert_eq!(verdict(&counts, 0.0).share(), LocalShare { local: 1800, all: 2040 });
    }

    #[test]
    fn a_mapping_without_lines_meets_each_demand() {
        let verdict = sample().verdict(&demand(Some("stack"), 100.0)).unwrap();
        assert_eq!(
            (verdict.share(), verdict.holds(), verdict.is_unsure()),
            (LocalShare::default(), true, false)
        );
    }

    #[test]
    fn an_unknown_mapping_is_an_error_with_those_that_were_counted() {
        let say = |counts: &LineCounts| counts.verdict(&demand(Some("haep\n"), 1.0)).unwrap_err().to_string();
        let mut counts = sample();
        counts.mappings.push(counts.mappings[1].clone());
        assert_eq!(
            say(&counts),
            "no mapping named \"haep\\n\" was counted: expected one of unknown, heap, lib\\x1b.so, stack"
        );
        counts.mappings.clear();
        assert_eq!(say(&counts), "no mapping named \"haep\\n\" was counted: there is none");
    }
}
