//! The record of `nodewise bandwidth --file`, and what it shows.

use nodewise_machine::{Bytes, NodeId};

use super::{FileTransfer, Operation, TmpfsLocation};
use crate::cell::Refusal;
use crate::latency::best_cpu;
use crate::survey::{Account, CellReport, Figure, Outcome, SurveyFinding};
use nodewise_stats::Direction;

/// Two nodes differ when one gives this much more than the other and their intervals are apart.
const DIFFERENT: f64 = 1.05;

/// One way and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct FileTransferReport {
    pub operation: Operation,
    /// Its figure in GB/s of the program, and where the file's pages were.
    pub cell: CellReport,
}

impl FileTransferReport {
    /// The outcome of a way; `explain` makes a sentence of a refusal.
    pub fn new(way: &FileTransfer, outcome: &Outcome, explain: &dyn Fn(&Refusal) -> String) -> Self {
        let cpus = best_cpu(&way.cell.cpus).into_iter().collect();
        let cell = CellReport::new(&way.cell, cpus, outcome, Direction::HigherIsBetter, explain);
        Self { operation: way.operation, cell }
    }
}

/// All of it and how it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct FileReport {
    /// The survey as a whole.
    pub account: Account,
    /// The size of each file.
    pub size: Bytes,
    pub place: TmpfsLocation,
    /// Every operation for each pair of a node with CPUs and a node with memory.
    pub ways: Vec<FileTransferReport>,
}

impl FileReport {
    /// The ways of an operation.
    pub fn by_operation(&self, operation: Operation) -> impl Iterator<Item = &FileTransferReport> {
        self.ways.iter().filter(move |way| way.operation == operation)
    }

    /// The cells of all ways.
    pub fn cells(&self) -> impl Iterator<Item = &CellReport> {
        self.ways.iter().map(|way| &way.cell)
    }
}

/// Something that these figures show.
#[derive(Clone, Debug, PartialEq)]
pub enum FileFinding {
    /// From one node, files on one node are faster than files on another.
    Far {
        operation: Operation,
        /// The node of the CPUs.
        from: NodeId,
        /// The best node for the file, and the worst.
        nodes: (NodeId, NodeId),
        /// How many times the best is better than the worst: above 1.
        times: f64,
    },
}

/// Findings of a report: for each operation the row with the largest difference.
pub fn file_findings(report: &FileReport) -> Vec<SurveyFinding<FileFinding>> {
    let mut findings: Vec<SurveyFinding<FileFinding>> = Operation::ALL
        .into_iter()
        .filter_map(|operation| far(report, operation))
        .map(SurveyFinding::Shown)
        .collect();
    findings.extend(report.account.noise(report.cells()).into_iter().map(SurveyFinding::Noise));
    findings
}

fn far(report: &FileReport, operation: Operation) -> Option<FileFinding> {
    let measured = |way: &FileTransferReport| Some((way.cell.from, way.cell.memory, way.cell.figure?));
    let cells: Vec<(NodeId, NodeId, Figure)> = report.by_operation(operation).filter_map(measured).collect();
    let pairs = cells.iter().flat_map(|best| cells.iter().map(move |worst| (best, worst)));
    let times = |best: &Figure, worst: &Figure| best.median / worst.median;
    let apart = |best: &Figure, worst: &Figure| {
        let apart = best.interval.zip(worst.interval).is_some_and(|(best, worst)| best.low > worst.high);
        apart && times(best, worst) > DIFFERENT
    };
    let different = pairs.filter(|(best, worst)| best.0 == worst.0 && apart(&best.2, &worst.2));
    let (best, worst) =
        different.max_by(|one, other| times(&one.0.2, &one.1.2).total_cmp(&times(&other.0.2, &other.1.2)))?;
    Some(FileFinding::Far {
        operation,
        from: best.0,
        nodes: (best.1, worst.1),
        times: times(&best.2, &worst.2),
    })
}
