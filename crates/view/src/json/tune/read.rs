//! The placements of a study, read back from its document. Its samples, pages and counters stay there.

use std::time::Duration;

use nodewise_experiment::evidence::Counter;
use nodewise_experiment::metric::{Metric, Pattern};
use nodewise_machine::printable::quote;
use nodewise_stats::{Direction, Interval};
use serde::Deserialize;

use super::SCHEMA;
use crate::digest::change::direction_name;
use crate::digest::placements::{
    BASELINE_FAILED, KEEP, NOTHING_TO_COMPARE, PlacementChange, PlacementRow, Placements, VerdictKind,
    too_few_words, use_words,
};
use crate::json::conditions::ConditionsJson;
use crate::json::reading::{Saved, items, named};

/// The most placements that are read.
const MOST: usize = 10_000;

/// Reads the placements of a study that [`super::tune`] wrote.
///
/// # Errors
/// A document of another schema, and the first field that cannot be what its name says.
pub fn read(saved: &Saved<'_>) -> Result<Placements, String> {
    saved.contents::<Document>(SCHEMA)?.read()
}

#[derive(Deserialize)]
struct Document {
    conditions: ConditionsJson,
    metric: MetricRead,
    seed: u64,
    rounds: u32,
    took_s: f64,
    noise: Option<Noise>,
    arms: Vec<Arm>,
    advice: Advice,
}

#[derive(Deserialize)]
struct MetricRead {
    kind: String,
    pattern: Option<String>,
    better: Option<String>,
}

#[derive(Deserialize)]
struct Noise {
    ratio: f64,
    ratio_interval_95: [f64; 2],
}

#[derive(Deserialize)]
struct Arm {
    name: String,
    run_options: Option<Vec<String>>,
    threads: Option<u32>,
    failures: usize,
    summary: Option<Summary>,
    effect: Option<Effect>,
    verdict: String,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Summary {
    runs: usize,
    median: f64,
}

#[derive(Deserialize)]
struct Effect {
    ratio: f64,
    ratio_interval_95: Option<[f64; 2]>,
    p_adjusted: f64,
    smallest_detectable_share: Option<f64>,
}

#[derive(Deserialize)]
struct Advice {
    kind: String,
    arm: Option<usize>,
    #[serde(default)]
    command_lines: Vec<String>,
    rounds_needed: Option<u32>,
}

impl Document {
    fn read(self) -> Result<Placements, String> {
        let rows = items("arms", self.arms, MOST, Arm::read)?;
        if rows.is_empty() {
            return Err("arms has no items: expected the default at least".to_owned());
        }
        let noise = |noise: Noise| {
            Ok::<_, String>((positive("ratio", noise.ratio)?, interval(noise.ratio_interval_95)?))
        };
        Ok(Placements {
            conditions: self.conditions.read(),
            metric: self.metric.read().map_err(|error| format!("metric: {error}"))?,
            rounds: self.rounds,
            took: Duration::try_from_secs_f64(self.took_s)
                .map_err(|_| format!("took_s is {}: expected seconds", self.took_s))?,
            seed: self.seed,
            noise: self.noise.map(noise).transpose().map_err(|error| format!("noise: {error}"))?,
            best: self.advice.best(),
            conclusion: self.advice.read(&rows).map_err(|error| format!("advice: {error}"))?,
            rows,
        })
    }
}

impl MetricRead {
    fn read(self) -> Result<Metric, String> {
        match self.kind.as_str() {
            "wall" => Ok(Metric::Wall),
            "cpu" => Ok(Metric::CpuTime),
            "rss" => Ok(Metric::MaxRss),
            "printed" => {
                let text = self.pattern.ok_or("pattern is missing: expected a regular expression")?;
                let pattern = Pattern::new(&text).map_err(|error| error.to_string())?;
                let both = [Direction::LowerIsBetter, Direction::HigherIsBetter];
                let better = self.better.unwrap_or_default();
                Ok(Metric::Printed(pattern, named("better", &better, &both, direction_name)?))
            }
            name => Counter::ALL
                .into_iter()
                .find(|counter| counter.name() == name)
                .map(Metric::Counted)
                .ok_or_else(|| {
                    format!("kind is {}: expected wall, cpu, rss, printed or an event", quote(name))
                }),
        }
    }
}

impl Arm {
    fn read(self) -> Result<PlacementRow, String> {
        let change = |effect: Effect| {
            Ok::<_, String>(PlacementChange {
                ratio: positive("ratio", effect.ratio)?,
                interval: effect.ratio_interval_95.map(interval).transpose()?,
                adjusted_p: effect.p_adjusted,
                smallest_detectable: effect.smallest_detectable_share,
            })
        };
        let median = |summary: &Summary| positive("median", summary.median);
        let median = self.summary.as_ref().map(median).transpose()?;
        Ok(PlacementRow {
            name: self.name,
            options: self.run_options.map(|options| options.join(" ")),
            threads: self.threads,
            runs: self.summary.map_or(0, |summary| summary.runs),
            failures: self.failures,
            median,
            change: self.effect.map(change).transpose()?,
            verdict: named("verdict", &self.verdict, &VerdictKind::ALL, VerdictKind::name)?,
            reason: self.reason,
        })
    }
}

impl Advice {
    /// The arm to use: whether it exists is for [`Advice::read`] to say.
    fn best(&self) -> Option<usize> {
        match self.kind.as_str() {
            "use" => self.arm,
            "keep" => Some(0),
            _ => None,
        }
    }

    fn read(self, rows: &[PlacementRow]) -> Result<String, String> {
        Ok(match self.kind.as_str() {
            "use" => {
                let row = self.arm.and_then(|arm| rows.get(arm));
                let row = row.ok_or_else(|| format!("arm is missing or beyond {}", rows.len() - 1))?;
                use_words(self.command_lines.first().map(String::as_str), &row.name)
            }
            "keep" => KEEP.to_owned(),
            "too_few_rounds" => too_few_words(self.rounds_needed),
            "baseline_failed" => BASELINE_FAILED.to_owned(),
            "nothing_to_compare" => NOTHING_TO_COMPARE.to_owned(),
            other => {
                let kinds = "use, keep, too_few_rounds, baseline_failed or nothing_to_compare";
                return Err(format!("kind is {}: expected {kinds}", quote(other)));
            }
        })
    }
}

/// A value or a ratio of values: exactly as it was written, so that the same is printed of it.
fn positive(name: &str, value: f64) -> Result<f64, String> {
    let is_one = value.is_finite() && value > 0.0;
    is_one.then_some(value).ok_or_else(|| format!("{name} is {value}: expected a number above 0"))
}

fn interval([low, high]: [f64; 2]) -> Result<Interval, String> {
    let interval = Interval { low: positive("an interval", low)?, high: positive("an interval", high)? };
    (low <= high).then_some(interval).ok_or_else(|| format!("an interval from {low} to {high} is none"))
}
