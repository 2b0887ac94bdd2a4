//! Comparison of two sessions of a suite, or of two placements in one: changes with intervals, their
//! geometric mean, and a word for each.
//!
//! A change is one of speed, so that up is better whatever the metric: half the time and twice the rate
//! are both +100 %. All of it is worked out in logarithms, where a gain and the loss that undoes it are
//! equally large.
//!
//! A difference is called one when three things agree, as in [`crate::verdict`]: the interval holds no
//! zero, the p value stays below 5 % with all rows of all tables taken into account (Holm), and the
//! estimate is beyond the noise of both sides. The noise is that of a thing against itself: the first
//! placement runs twice in every round. A row whose benchmark moves no memory has a higher bar: it must
//! be beyond everything by which two runs of the same have differed, for what is changed here is where
//! memory lies; and if it clears that bar, something else has changed too.

mod contrast;
pub mod differences;

use std::collections::BTreeSet;

use crate::detectable::Rules;
use crate::suite::session::{ArmRecord, CaseRecord, Session};
use crate::verdict::{ALPHA, SMALLEST_EFFECT};
use contrast::{Contrast, Resampling};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_stats::Direction;
use nodewise_stats::multiple::holm;
use nodewise_stats::{Interval, median};

/// How often the rounds of a row are drawn again for an interval.
const RESAMPLES: u32 = 4000;

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// A table for each thing that is compared with the first.
    pub tables: Vec<Table>,
}

/// One thing against another, benchmark by benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The side that is compared: a placement, or `after`.
    pub subject: String,
    /// The side it is compared with: a placement, or `before`.
    pub reference: String,
    /// Whether their runs were taken in pairs.
    pub paired: bool,
    /// A row for each benchmark and number of threads.
    pub rows: Vec<Row>,
    /// A geometric mean for each number of threads.
    pub means: Vec<Mean>,
}

/// A benchmark with a number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name of the benchmark.
    pub benchmark: String,
    pub threads: u32,
    /// The unit of its values.
    pub unit: String,
    pub direction: Direction,
    /// Whether the benchmark moves more memory than the caches hold.
    pub memory_traffic: bool,
    /// The median of the reference; `None` where it has no value.
    pub before: Option<f64>,
    /// The median of the subject.
    pub after: Option<f64>,
    /// The change; `None` where one side has no value.
    pub change: Option<Change>,
    pub verdict: Verdict,
}

/// A change of speed, as a ratio: 1.08 is 8 % faster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub ratio: f64,
    /// The range that holds the true ratio with 95 % confidence; `None` where there are too few rounds for
    /// one.
    pub interval: Option<Interval>,
    /// The p value, with all rows of all tables taken into account.
    pub adjusted_p: Option<f64>,
    /// By how much the same thing differs from itself, as a share: changes below it are noise.
    pub noise: f64,
    /// The smallest true change that would be found with 80 % power, as a share.
    pub smallest_detectable: Option<f64>,
}

/// The conclusion about a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Better,
    Worse,
    /// No difference was shown; which is not that there is none.
    NoDifference,
    /// Figures without repeats, or too few of them to show anything.
    TooFewRounds {
        /// The rounds of the side that has fewer.
        rounds: usize,
        needed: usize,
    },
    /// The two sides have run different things under one name, so nothing can be concluded; how they differ.
    Changed(String),
    /// One side has no figure, or neither; why.
    Missing(String),
}

/// The geometric mean of the rows with one number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    pub threads: u32,
    /// How many rows it is of.
    pub rows: usize,
    /// The mean ratio of speed.
    pub ratio: f64,
    /// The range that holds the true one with 95 % confidence.
    pub interval: Option<Interval>,
    /// The row with the smallest ratio.
    pub least: (String, f64),
    /// The row with the largest.
    pub most: (String, f64),
}

impl Comparison {
    /// A session before a change and one after it. Their runs are not paired: rank-sum test, and the
    /// estimate that belongs to it ([`nodewise_stats::rank_sum`]).
    ///
    /// What a session has of placements besides its first is not compared.
    pub fn between(before: &Session, after: &Session) -> Self {
        Self::between_with(before, after, RESAMPLES)
    }

    /// As [`Comparison::between`], with another number of resamples.
    pub(crate) fn between_with(before: &Session, after: &Session, resamples: u32) -> Self {
        let mut names: Vec<(&str, u32)> = Vec::new();
        for session in [before, after] {
            let skipped = session.skipped.iter();
            let skipped = skipped.filter_map(|one| Some((one.benchmark.as_str(), one.threads?)));
            let cases = session.cases.iter().map(|case| (case.benchmark.as_str(), case.threads));
            for name in cases.chain(skipped) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let pair = |(benchmark, threads): (&str, u32)| {
            let sides = [before, after].map(|session| side(session, benchmark, threads, 0));
            Pair { benchmark: benchmark.to_owned(), threads, sides, paired: false }
        };
        let seed = before.seed ^ after.seed.rotate_left(1);
        let pairs = in_order(names.into_iter().map(pair).collect());
        Self {
            tables: tables(vec![Draft::new("after", "before", pairs, Resampling { draws: resamples, seed })]),
        }
    }

    /// The placements of a session with its first, round by round: aligned rank test, and the estimate that
    /// belongs to it ([`nodewise_stats::aligned`]).
    pub fn from_placements(session: &Session) -> Self {
        Self::from_placements_with(session, RESAMPLES)
    }

    /// As [`Comparison::from_placements`], with another number of resamples.
    pub(crate) fn from_placements_with(session: &Session, resamples: u32) -> Self {
        let draft = |(arm, name): (usize, &String)| {
            let pair = |case: &CaseRecord| {
                let sides = [0, arm].map(|arm| side(session, &case.benchmark, case.threads, arm));
                Pair { benchmark: case.benchmark.clone(), threads: case.threads, sides, paired: true }
            };
            let reference = session.placements.first().map_or("default", String::as_str);
            let pairs = session.cases.iter().map(pair).collect();
            let seed = session.seed.wrapping_add(arm as u64);
            Draft::new(name, reference, pairs, Resampling { draws: resamples, seed })
        };
        Self { tables: tables(session.placements.iter().enumerate().skip(1).map(draft).collect()) }
    }

    /// Whether something is slower beyond doubt.
    pub fn is_lost(&self) -> bool {
        let mut rows = self.tables.iter().flat_map(|table| &table.rows);
        rows.any(|row| row.verdict == Verdict::Worse)
    }
}

/// Rows of one benchmark together, in the order in which they came first.
fn in_order(pairs: Vec<Pair<'_>>) -> Vec<Pair<'_>> {
    let mut order: Vec<String> = Vec::new();
    for pair in &pairs {
        if !order.contains(&pair.benchmark) {
            order.push(pair.benchmark.clone());
        }
    }
    let mut pairs = pairs;
    pairs.order_by_key(|pair| (order.iter().position(|name| *name == pair.benchmark), pair.threads));
    pairs
}

/// A case on one side.
struct Side<'a> {
    case: Option<&'a CaseRecord>,
    arm: Option<&'a ArmRecord>,
    why: String,
}

fn side<'a>(session: &'a Session, benchmark: &str, threads: u32, arm: usize) -> Side<'a> {
    let case = session.case(benchmark, threads);
    let arm = case.and_then(|case| case.arms.get(arm));
    let failed = arm.and_then(|arm| arm.failed.as_deref());
    let reference = case.and_then(|case| case.arms.first()?.failed.as_deref());
    let why = failed.or(reference).or_else(|| session.why_skipped(benchmark, threads));
    Side { case, arm: arm.filter(|arm| !arm.samples.is_empty()), why: why.unwrap_or("not run").to_owned() }
}

/// How the benchmark itself differs between two sides, where that is known.
fn changed(before: &CaseRecord, after: &CaseRecord) -> Option<String> {
    let defined = before.definition.as_ref().zip(after.definition.as_ref());
    let how = defined.and_then(|(before, after)| before.change(after));
    let metric = (before.direction, &before.unit) != (after.direction, &after.unit);
    how.or_else(|| metric.then(|| "the two are of different metrics".to_owned()))
}

/// A case on both sides.
struct Pair<'a> {
    benchmark: String,
    threads: u32,
    /// The reference, and what is compared with it.
    sides: [Side<'a>; 2],
    paired: bool,
}

impl Pair<'_> {
    /// Contrasts the two sides by themselves; says why that is impossible, where it is.
    fn contrast(&self) -> Result<Contrast, Verdict> {
        let [before, after] = &self.sides;
        let missing = |why: String| Err(Verdict::Missing(why));
        match (before.case.zip(before.arm), after.case.zip(after.arm)) {
            (Some((case, before)), Some((other, after))) => {
                if let Some(how) = changed(case, other) {
                    return Err(Verdict::Changed(how));
                }
                let contrast = if self.paired { Contrast::paired } else { Contrast::apart };
                contrast(case.direction, before, after)
                    .ok_or_else(|| Verdict::Missing("no round has a value of both".to_owned()))
            }
            (None, None) if before.why == after.why => missing(before.why.clone()),
            (None, None) => missing(format!("before: {}; after: {}", before.why, after.why)),
            (None, Some(_)) => missing(format!("before: {}", before.why)),
            (Some(_), None) if self.paired => missing(after.why.clone()),
            (Some(_), None) => missing(format!("after: {}", after.why)),
        }
    }

    fn row(&self, change: Option<Change>, verdict: Verdict) -> Row {
        let case = self.sides.iter().find_map(|side| side.case);
        let of = |side: &Side<'_>| side.arm.and_then(|arm| median(&arm.values()));
        Row {
            benchmark: self.benchmark.clone(),
            threads: self.threads,
            unit: case.map_or_else(String::new, |case| case.unit.clone()),
            direction: case.map_or(Direction::HigherIsBetter, |case| case.direction),
            memory_traffic: case.is_none_or(|case| case.memory_traffic),
            before: of(&self.sides[0]),
            after: of(&self.sides[1]),
            change,
            verdict,
        }
    }
}

/// A table before anything is concluded: that takes the rows of all tables.
struct Draft<'a> {
    subject: String,
    reference: String,
    pairs: Vec<Pair<'a>>,
    /// The contrast of each row by itself, or why it has none.
    contrasts: Vec<Result<Contrast, Verdict>>,
    /// For the intervals of its rows.
    with: Resampling,
}

impl<'a> Draft<'a> {
    fn new(subject: &str, reference: &str, pairs: Vec<Pair<'a>>, with: Resampling) -> Self {
        let contrasts = pairs.iter().map(Pair::contrast).collect();
        Self { subject: subject.to_owned(), reference: reference.to_owned(), pairs, contrasts, with }
    }

    /// The table; `adjusted` holds the p values of the rows that have one, `compared` how many there are in
    /// all tables.
    fn finish(self, adjusted: &mut impl Iterator<Item = f64>, compared: usize) -> Table {
        let Self { subject, reference, pairs, contrasts, with } = self;
        let rows = pairs.iter().zip(&contrasts).zip(0..).map(|((pair, contrast), at)| match contrast {
            Err(verdict) => pair.row(None, verdict.clone()),
            Ok(contrast) => {
                let p = adjusted.next().unwrap_or(1.0);
                judge(pair, contrast, p, compared, with.of_row(at))
            }
        });
        let rows: Vec<Row> = rows.collect();
        let threads: BTreeSet<u32> = rows.iter().map(|row| row.threads).collect_set();
        let mean = |threads: u32| {
            let of: Vec<(&Row, &Contrast)> = rows
                .iter()
                .zip(&contrasts)
                .filter(|(row, _)| row.threads == threads)
                .filter_map(|(row, contrast)| Some((row, contrast.as_ref().ok()?)))
                .collect();
            Mean::from_rows(threads, &of, with.of_means())
        };
        let means = threads.into_iter().filter_map(mean).collect();
        let paired = pairs.first().is_some_and(|pair| pair.paired);
        Table { subject, reference, paired, rows, means }
    }
}

/// Concludes, with the p values of all rows of all tables adjusted for each other.
fn tables(drafts: Vec<Draft<'_>>) -> Vec<Table> {
    let known = drafts.iter().flat_map(|draft| draft.contrasts.iter().flatten());
    let p: Vec<f64> = known.map(|contrast| contrast.p().unwrap_or(1.0)).collect();
    let mut adjusted = holm(&p).into_iter();
    drafts.into_iter().map(|draft| draft.finish(&mut adjusted, p.len())).collect()
}

fn judge(pair: &Pair<'_>, contrast: &Contrast, p: f64, compared: usize, with: Resampling) -> Row {
    let interval = contrast.interval(with);
    let moves_memory = pair.sides[0].case.is_none_or(|case| case.memory_traffic);
    let noise = if moves_memory { contrast.noise(with) } else { contrast.widest() };
    let floor = SMALLEST_EFFECT.ln_1p().max(noise);
    let estimate = contrast.estimate();
    let detectable = interval.and_then(|_| {
        let rules = Rules {
            level: ALPHA / compared.max(1) as f64,
            least: SMALLEST_EFFECT.ln_1p(),
            noise,
            is_widest: !moves_memory,
            interval,
        };
        Some(contrast.smallest_detectable(&rules, with)?.exp_m1())
    });
    let needed = contrast.rounds_needed(compared);
    let verdict = match interval {
        _ if contrast.rounds() < needed => Verdict::TooFewRounds { rounds: contrast.rounds(), needed },
        Some(interval) if !interval.contains(0.0) && p < ALPHA && estimate.abs() > floor => {
            if estimate > 0.0 { Verdict::Better } else { Verdict::Worse }
        }
        _ => Verdict::NoDifference,
    };
    let change = Change {
        ratio: estimate.exp(),
        interval: interval.map(|interval| interval.map(f64::exp)),
        adjusted_p: contrast.p().map(|_| p),
        noise: noise.exp_m1(),
        smallest_detectable: detectable,
    };
    pair.row(Some(change), verdict)
}

impl Mean {
    /// The mean of some rows; `None` of none. One row has no real mean, but still a value.
    fn from_rows(threads: u32, rows: &[(&Row, &Contrast)], with: Resampling) -> Option<Self> {
        let contrasts: Vec<&Contrast> = rows.iter().map(|(_, contrast)| *contrast).collect();
        let named = rows.iter().map(|(row, contrast)| (row.benchmark.clone(), contrast.estimate().exp()));
        let named: Vec<(String, f64)> = named.collect();
        let least = named.iter().min_by(|a, b| a.1.total_cmp(&b.1))?.clone();
        let most = named.iter().max_by(|a, b| a.1.total_cmp(&b.1))?.clone();
        Some(Self {
            threads,
            rows: rows.len(),
            ratio: contrast::mean_estimate(&contrasts).exp(),
            interval: contrast::interval_of_mean(&contrasts, with).map(|interval| interval.map(f64::exp)),
            least,
            most,
        })
    }
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
