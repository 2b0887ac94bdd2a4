//! Matrices, rows and sentences of a report of core-to-core latencies.

use nodewise_machine::CpuId;
use nodewise_measure::c2c::report::{Group, Home};
use nodewise_measure::c2c::{C2cReport, PairReport, Relation, Transfer};
use nodewise_measure::survey::extent;
use nodewise_stats::Direction;

use crate::digest::counts::plural;
use crate::digest::matrix::{Entry, Matrix};
use crate::digest::survey::{Ending, FindingSentence, by_reason, missing, proof_sentence};

/// Describes a transfer in a line.
const fn transfer_words(transfer: Transfer) -> &'static str {
    match transfer {
        Transfer::HandOver => "a line both write: half a round trip",
        Transfer::Dirty => "a load of a line the other wrote",
        Transfer::Clean => "a load of a line the other only read",
    }
}

/// Where the memory of the lines is, in words.
pub const fn home_words(home: Home) -> &'static str {
    match home {
        Home::Near => "memory near the CPU that gets it",
        Home::Far => "memory near the CPU that has it",
        Home::Elsewhere => "memory near neither",
    }
}

/// The matrix of one transfer with the lines at one home.
fn matrix(report: &C2cReport, transfer: Transfer, home: Home) -> Matrix<CpuId> {
    let title = match report.homes()[..] {
        [_] => transfer.name().to_owned(),
        _ => format!("{}, {}", transfer.name(), home_words(home)),
    };
    let remark = format!("ns, {}", transfer_words(transfer));
    let mut matrix = Matrix::new(title, "ns", remark, Direction::LowerIsBetter);
    let pairs = report.pairs.iter().filter(|of| of.home == home && of.pair.transfer == transfer);
    for of in pairs {
        let entry = Entry { value: median(of), disturbed: of.disturbed };
        matrix.set(of.pair.to, of.pair.from, entry);
    }
    matrix
}

/// The matrices that are shown: every transfer, with the memory near.
pub fn matrices(report: &C2cReport) -> Vec<Matrix<CpuId>> {
    let home = report.homes().first().copied().unwrap_or(Home::Near);
    let of = |transfer| matrix(report, transfer, home);
    report.transfers().into_iter().map(of).filter(|matrix| !matrix.is_empty()).collect()
}

/// The median of a pair, ns.
fn median(report: &PairReport) -> Option<f64> {
    Some(report.figure.as_ref()?.median)
}

/// The result of the pairs of one relation, with the memory at one home.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// How the CPUs are related.
    pub relation: Relation,
    pub home: Home,
    /// The outcome of each transfer that was measured.
    pub groups: Vec<Option<Group>>,
    /// Pairs with a figure, of the transfer that has most.
    pub pairs: usize,
}

/// A row per relation and home, nearest first; a value per transfer of [`C2cReport::transfers`].
pub fn rows(report: &C2cReport) -> Vec<Row> {
    let groups = report.groups();
    let mut rows = Vec::new();
    for relation in Relation::ALL {
        for home in report.homes() {
            let of = |transfer| {
                let is_one = |group: &&Group| {
                    (group.relation, group.home, group.transfer) == (relation, home, transfer)
                };
                groups.iter().find(is_one).copied()
            };
            let groups: Vec<Option<Group>> = report.transfers().into_iter().map(of).collect();
            let pairs = groups.iter().flatten().map(|group| group.pairs).max();
            rows.extend(pairs.map(|pairs| Row { relation, home, groups, pairs }));
        }
    }
    rows
}

/// The pairs that have no figure, by reason: how many, why.
fn refusals(report: &C2cReport) -> Vec<(String, String)> {
    let reasons = by_reason(report.pairs.iter().filter_map(|of| Some((of.refused.as_deref()?, of))));
    reasons.into_iter().map(|(why, pairs)| (plural(pairs.len(), "pair"), why.to_owned())).collect()
}

/// How the report ends.
pub fn ending(report: &C2cReport) -> Ending {
    Ending {
        how: [method(report)].into_iter().chain(proof(report)).collect(),
        not_measured: refusals(report),
        findings: remarks(report),
    }
    .with_not_reached(missing("pair", report.pairs.iter().map(is_reached)))
}

/// Whether a pair has a result: a figure, or a reason why not.
fn is_reached(of: &PairReport) -> bool {
    of.figure.is_some() || of.refused.is_some()
}

/// How it was measured, in one line.
pub fn method(report: &C2cReport) -> String {
    let (rounds, samples) = extent(report.pairs.iter().filter_map(|of| of.figure.as_ref()));
    let cpus = report.cpus().len();
    let chosen = if cpus < report.candidates {
        format!("{cpus} of {} CPUs stand for all (--cpus chooses others); ", report.candidates)
    } else {
        String::new()
    };
    format!(
        "{chosen}{rounds} rounds, {samples} samples per pair, interleaved; seed {}; {:.0} s",
        report.account.seed,
        report.account.took.as_secs_f64()
    )
}

/// Describes the proof of the placement, in one line: the worst over all pairs with a figure.
fn proof(report: &C2cReport) -> Option<String> {
    let pairs = || report.pairs.iter().filter(|of| of.figure.is_some());
    let before = pairs().filter_map(|of| of.before.as_ref()?.share()).reduce(f64::min)?;
    let after = pairs().filter_map(|of| of.after.as_ref()?.share()).reduce(f64::min);
    Some(proof_sentence("lines", before, after))
}

/// Returns the remarks to read before the figures are believed.
pub fn remarks(report: &C2cReport) -> Vec<FindingSentence> {
    let around = report.account.stolen().into_iter().chain(report.account.others());
    let mut remarks: Vec<FindingSentence> = around.map(|noise| FindingSentence::from_noise(&noise)).collect();
    let disturbed = report.pairs.iter().filter(|of| of.figure.is_some() && of.disturbed).count();
    if disturbed > 0 {
        let of = report.pairs.iter().filter(|of| of.figure.is_some()).count();
        let sentence = format!("too noisy: {disturbed} of {of} pairs (marked !) were disturbed");
        remarks.push(FindingSentence { sentence, is_noise: true });
    }
    remarks.extend(report.account.shortened().map(|why| FindingSentence::from_noise(&why)));
    remarks
}
