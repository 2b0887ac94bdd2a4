//! Matrices and sentences of a report of files in memory.

use nodewise_measure::bandwidth::file::{
    BLOCK, FileFinding, FileReport, Operation, TmpfsLocation, file_findings,
};
use nodewise_measure::survey::{CellReport, extent};
use nodewise_stats::Direction;

use crate::digest::matrix::{Entry, Matrix};
use crate::digest::survey::{Ending, FindingSentence, missing};

/// Names an operation, as a title.
const fn operation_words(operation: Operation) -> &'static str {
    match operation {
        Operation::Write => "write, a new file",
        Operation::Rewrite => "write, a file that has its pages",
        Operation::Read => "read",
    }
}

/// A matrix for each operation.
pub fn matrices(report: &FileReport) -> Vec<Matrix> {
    let matrix = |operation| {
        let remark = "GB/s, median of the rounds";
        let mut matrix = Matrix::new(operation_words(operation), "GB/s", remark, Direction::HigherIsBetter);
        for way in report.by_operation(operation) {
            let value = way.cell.figure.map(|figure| figure.median);
            let entry = Entry { value, disturbed: way.cell.disturbed };
            matrix.set(way.cell.from, way.cell.memory, entry);
        }
        matrix
    };
    Operation::ALL.map(matrix).to_vec()
}

/// A finding as a sentence.
fn sentence(finding: &FileFinding) -> String {
    match finding {
        FileFinding::Far { operation, from, nodes: (best, worst), times } => format!(
            "{}: CPUs of node {from} get {times:.2} times more from a file on node {best} than on node {worst}",
            operation_words(*operation)
        ),
    }
}

/// Returns the findings of the report, and how far they can be believed.
pub fn finding_sentences(report: &FileReport) -> Vec<FindingSentence> {
    file_findings(report).iter().map(|finding| FindingSentence::from_finding(finding, sentence)).collect()
}

/// How the report ends.
pub fn ending(report: &FileReport) -> Ending {
    let how = [method(report), COUNTED.to_owned()];
    Ending::of_cells(how, &report.account, report.cells(), report.size, finding_sentences(report).into_iter())
        .with_not_reached(missing("cell", report.cells().map(CellReport::is_reached)))
}

/// How it was measured, in one line.
pub fn method(report: &FileReport) -> String {
    let (rounds, samples) = extent(report.cells().filter_map(|cell| cell.figure.as_ref()));
    let place = match &report.place {
        TmpfsLocation::Kernel => "memfd_create".to_owned(),
        TmpfsLocation::Folder(folder) => format!("without a name in {}", folder.display()),
    };
    format!(
        "a file of {} on each node ({place}), its pages bound by a policy of its own; one thread, write(2) and \
         read(2) of {BLOCK}; {rounds} rounds, {samples} samples per way, interleaved; seed {}; {:.0} s",
        report.size,
        report.account.seed,
        report.account.took.as_secs_f64()
    )
}

/// How bytes are counted, in one line.
const COUNTED: &str = "GB/s are 10^9 bytes that the program writes or reads, each counted once; the kernel copies \
                           them, so at least twice as much moves, and clears or fills new pages besides: this is not \
                           bandwidth of memory";
