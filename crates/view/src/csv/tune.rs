//! A study, a line per placement.

use nodewise_experiment::study::Study;
use nodewise_experiment::verdict::{Analysis, ArmResult};
use nodewise_machine::placement::Scope;

use super::{known, optional, quoted};
use crate::digest::study::{metric_name, metric_unit, verdict_name};

/// Writes a study; a value that is not known is empty. Changes are against the default, in percent: below 0 is
/// less of the metric. `unit` is that of the median, empty for counts and for numbers that the program prints.
pub fn tune(study: &Study, analysis: &Analysis, scope: &Scope) -> String {
    let mut text = String::from(
        "placement,run_options,threads,metric,unit,runs,failures,median,change_percent,interval_low_percent,\
         interval_high_percent,adjusted_p,smallest_detectable_percent,verdict\n",
    );
    analysis.arms.iter().for_each(|result| text.push_str(&line(study, result, scope)));
    text
}

fn line(study: &Study, result: &ArmResult, scope: &Scope) -> String {
    let arm = study.plan.arm(result.arm);
    let options = arm.placement.run_options(scope).map(|options| options.join(" "));
    let effect = result.effect;
    let interval = effect.and_then(|effect| effect.interval);
    let fields = [
        quoted(&arm.name),
        optional(options.as_deref()),
        known(arm.threads),
        quoted(&metric_name(&study.plan.metric)),
        optional(metric_unit(&study.plan.metric)),
        result.summary.map_or(0, |summary| summary.runs).to_string(),
        result.failures.to_string(),
        known(result.summary.map(|summary| summary.median)),
        known(effect.map(|effect| percent(effect.ratio - 1.0))),
        known(interval.map(|interval| percent(interval.low - 1.0))),
        known(interval.map(|interval| percent(interval.high - 1.0))),
        known(effect.map(|effect| effect.adjusted_p)),
        known(effect.and_then(|effect| effect.smallest_detectable).map(percent)),
        verdict_name(&result.verdict).to_owned(),
    ];
    fields.join(",") + "\n"
}

/// A share in percent, to a ten-thousandth of one: the digits behind that are those of the subtraction.
fn percent(share: f64) -> f64 {
    let percent = (share * 1e6).round() / 1e4;
    // What rounds to nothing has no sign.
    if percent == 0.0 { 0.0 } else { percent }
}
