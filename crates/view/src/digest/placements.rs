//! A study as a table: a row for each placement, with what is concluded about it. It is made of a study, or of
//! the document that one left.

use std::time::Duration;

use nodewise_experiment::metric::Metric;
use nodewise_experiment::shell;
use nodewise_experiment::study::Study;
use nodewise_experiment::verdict::{Advice, Analysis, ArmResult, Verdict};
use nodewise_machine::conditions::Conditions;
use nodewise_machine::placement::Scope;
use nodewise_stats::{Direction, Interval};

use crate::digest::counts::plural;
use crate::digest::study::{command_lines, duration, metric_name};

/// The placements of a study, the default first.
#[derive(Clone, Debug)]
pub struct Placements {
    pub conditions: Conditions,
    pub metric: Metric,
    pub rounds: u32,
    pub took: Duration,
    pub seed: u64,
    pub rows: Vec<PlacementRow>,
    /// The default against itself, with its 95 % interval; `None` with fewer than two rounds.
    pub noise: Option<(f64, Interval)>,
    /// The conclusion, a line. Not fit for a terminal.
    pub conclusion: String,
    /// The row to use, which is that of the default where no placement helps; `None` where the study does not decide.
    pub best: Option<usize>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementRow {
    pub name: String,
    /// Options of `nodewise run`; `None` where it has none for this.
    pub options: Option<String>,
    pub threads: Option<u32>,
    pub runs: usize,
    pub failures: usize,
    /// The median of its runs, in the unit of the metric.
    pub median: Option<f64>,
    pub change: Option<PlacementChange>,
    pub verdict: VerdictKind,
    /// Why it is that, where the verdict does not say so by itself. Not fit for a terminal.
    pub reason: Option<String>,
}

/// The difference between a placement and the default, as a ratio of the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacementChange {
    pub ratio: f64,
    pub interval: Option<Interval>,
    pub adjusted_p: f64,
    pub smallest_detectable: Option<f64>,
}

/// A verdict without its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerdictKind {
    Baseline,
    Better,
    Worse,
    NoDifference,
    TooFewRounds,
    Out,
    NotAsAsked,
    Failed,
}

impl VerdictKind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Baseline,
        Self::Better,
        Self::Worse,
        Self::NoDifference,
        Self::TooFewRounds,
        Self::Out,
        Self::NotAsAsked,
        Self::Failed,
    ];

    /// The kind of a verdict.
    pub const fn from_verdict(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Baseline => Self::Baseline,
            Verdict::Better => Self::Better,
            Verdict::Worse => Self::Worse,
            Verdict::NoDifference => Self::NoDifference,
            Verdict::TooFewRounds { .. } => Self::TooFewRounds,
            Verdict::Out(_) => Self::Out,
            Verdict::NotAsAsked(_) => Self::NotAsAsked,
            Verdict::Failed(_) => Self::Failed,
        }
    }

    /// The word for it in a table.
    pub const fn word(self, metric: &Metric) -> &'static str {
        match (self, metric) {
            (Self::Baseline, _) => "baseline",
            (Self::Better, Metric::Wall) => "faster",
            (Self::Better, _) => "better",
            (Self::Worse, Metric::Wall) => "slower",
            (Self::Worse, _) => "worse",
            (Self::NoDifference, _) => "no difference",
            (Self::TooFewRounds, _) => "too few rounds",
            (Self::Out, _) => "out",
            (Self::NotAsAsked, _) => "not as asked",
            (Self::Failed, _) => "failed",
        }
    }

    /// Its name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifference => "no_difference_shown",
            Self::TooFewRounds => "too_few_rounds",
            Self::Out => "out_of_the_race",
            Self::NotAsAsked => "not_as_asked",
            Self::Failed => "failed",
        }
    }
}

impl PlacementRow {
    fn from_result(study: &Study, result: &ArmResult, scope: &Scope) -> Self {
        let arm = study.plan.arm(result.arm);
        Self {
            name: arm.name.clone(),
            options: arm.placement.run_options(scope).map(|options| options.join(" ")),
            threads: arm.threads,
            runs: result.summary.map_or(0, |summary| summary.runs),
            failures: result.failures,
            median: result.summary.map(|summary| summary.median),
            change: result.effect.map(|effect| PlacementChange {
                ratio: effect.ratio,
                interval: effect.interval,
                adjusted_p: effect.adjusted_p,
                smallest_detectable: effect.smallest_detectable,
            }),
            verdict: VerdictKind::from_verdict(&result.verdict),
            reason: reason(study, result),
        }
    }

    /// The verdict in words. Not fit for a terminal.
    pub fn verdict_words(&self, metric: &Metric) -> String {
        let word = self.verdict.word(metric);
        match (&self.reason, self.verdict) {
            (Some(reason), VerdictKind::Out) => format!("{word} {reason}"),
            (Some(reason), VerdictKind::TooFewRounds | VerdictKind::Failed) => format!("{word}: {reason}"),
            _ => word.to_owned(),
        }
    }
}

/// The reason of a verdict. As a program wrote it: not fit for a terminal.
pub fn reason(study: &Study, result: &ArmResult) -> Option<String> {
    match &result.verdict {
        Verdict::Failed(dropped) => Some(dropped.ending.to_string()),
        Verdict::NotAsAsked(fidelity) => fidelity.why(&study.plan.arm(result.arm).placement),
        Verdict::Out(out) => Some(format!("after {}", out.block)),
        Verdict::TooFewRounds { blocks, needed } => Some(format!("{blocks} rounds of the {needed} it takes")),
        Verdict::Baseline | Verdict::Better | Verdict::Worse | Verdict::NoDifference => None,
    }
}

impl Placements {
    /// Those of a study.
    pub fn from_study(study: &Study, analysis: &Analysis, scope: &Scope) -> Self {
        Self {
            conditions: study.conditions.clone(),
            metric: study.plan.metric.clone(),
            rounds: study.blocks_begun(),
            took: study.took,
            seed: study.plan.seed,
            rows: analysis
                .arms
                .iter()
                .map(|result| PlacementRow::from_result(study, result, scope))
                .collect(),
            noise: analysis.control.map(|control| (control.ratio, control.interval)),
            best: match &analysis.advice {
                Advice::Use { best, .. } => analysis.arms.iter().position(|result| result.arm == *best),
                Advice::Keep { .. } => Some(0),
                _ => None,
            },
            conclusion: match &analysis.advice {
                Advice::Use { best, .. } => {
                    let line = command_lines(study, *best, scope).into_iter().next();
                    use_words(line.as_deref(), &study.plan.arm(*best).name)
                }
                Advice::Keep { .. } => KEEP.to_owned(),
                Advice::TooFewRounds { needed, .. } => too_few_words(Some(*needed)),
                Advice::BaselineFailed(_) => BASELINE_FAILED.to_owned(),
                Advice::NothingToCompare => NOTHING_TO_COMPARE.to_owned(),
            },
        }
    }

    /// How much was run, and which way is better: as below the conclusion of a study.
    pub fn words(&self) -> String {
        let better = match self.metric.direction() {
            Direction::LowerIsBetter => "less",
            Direction::HigherIsBetter => "more",
        };
        let (placements, rounds) = (plural(self.rows.len(), "placement"), plural(self.rounds, "round"));
        let (took, metric) = (duration(self.took), metric_name(&self.metric));
        format!("{placements}, {rounds} in {took}, seed {}: {metric}, {better} is better", self.seed)
    }

    /// The program as a shell takes it, without what a terminal would obey.
    pub fn program(&self) -> String {
        shell::shown(self.conditions.command.clone())
    }

    /// Whether anything was measured.
    pub fn is_measured(&self) -> bool {
        self.rows.iter().any(|row| row.median.is_some())
    }
}

pub(crate) const KEEP: &str = "no placement helps";
pub(crate) const BASELINE_FAILED: &str = "the program fails without any placement too";
pub(crate) const NOTHING_TO_COMPARE: &str = "nothing to compare: only the default placement could be run";

/// Names the placement to use: by its command line, where it has one.
pub(crate) fn use_words(line: Option<&str>, name: &str) -> String {
    format!("use: {}", line.unwrap_or(name))
}

/// Says that the rounds show nothing yet.
pub(crate) fn too_few_words(needed: Option<u32>) -> String {
    let needed = needed.map_or(String::new(), |needed| format!(": {needed} are needed"));
    format!("too few rounds to say which placement is best{needed}")
}
