//! `nodewise.tune/2`: a study with every raw sample, the circumstances and the conclusions.

use std::collections::BTreeMap;

use nodewise_experiment::candidates::LeftOut;
use nodewise_experiment::cooling::CoolDown;
use nodewise_experiment::emit::{self, Emitted, Paths, Target};
use nodewise_experiment::executor::Residency;
use nodewise_experiment::metric::Metric;
use nodewise_experiment::race::{Out, Rules};
use nodewise_experiment::schedule::ArmId;
use nodewise_experiment::study::{End, Study};
use nodewise_experiment::verdict::{Advice, Analysis, ArmResult};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::placement::{HugePages, Placement, Scope};
use serde::Serialize;

use super::conditions::ConditionsJson;
use super::{ends, pretty};
use crate::digest::change::direction_name;
use crate::digest::evidence::Counted;
use crate::digest::example::Predicted;
use crate::digest::placements::{VerdictKind, reason};
use crate::digest::study::{command_lines, metric_unit, seen};
use also::{AlsoJson, FidelityJson};
use example::ExampleJson;
use sample::SampleJson;
use why::WhyJson;

mod also;
mod evidence;
mod example;
mod read;
mod sample;
mod why;

pub use read::read;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.tune/2";

/// Writes a study as JSON, indented, with a line end.
///
/// With a `target` it holds the best placement in the words of that tool too; with an `example`, what placements are
/// worth on a server with nodes.
pub fn tune(
    study: &Study,
    analysis: &Analysis,
    scope: &Scope,
    left_out: &[LeftOut],
    target: Option<(Target, &Paths)>,
    example: &[Predicted],
) -> String {
    let document = Document {
        schema: SCHEMA,
        conditions: ConditionsJson::from_conditions(&study.conditions),
        metric: MetricJson::from_metric(&study.plan.metric),
        also: study.plan.also.iter().map(|metric| MetricJson::from_metric(metric).shown()).collect(),
        seed: study.plan.seed,
        rounds: study.blocks_begun(),
        end: end_word(&study.end),
        race: study.plan.race.map(|rules| RaceJson::from_rules(study, &rules)),
        took_s: study.took.as_secs_f64(),
        noise: analysis.control.map(|control| NoiseJson {
            ratio: control.ratio,
            ratio_interval_95: ends(control.interval),
            noise_share: control.noise,
            rounds: control.blocks,
        }),
        arms: analysis.arms.iter().map(|result| ArmJson::from_result(study, result, scope)).collect(),
        advice: AdviceJson {
            why: WhyJson::from_study(study, analysis),
            ..AdviceJson::from_advice(study, &analysis.advice, scope)
        },
        emitted: target
            .and_then(|(target, paths)| EmittedJson::from_target(target, study, analysis, scope, paths)),
        left_out: left_out.iter().map(|one| LeftOutJson { name: &one.name, why: &one.why }).collect(),
        service: study
            .service
            .as_ref()
            .map(|service| ServiceJson { ready: &service.ready, client: &service.client }),
        prepare: study.prepare.as_deref().map(|command| PrepareJson { command, failed: failure(&study.end) }),
        cool_down: study.cool_down.as_ref().map(CoolDownJson::from_cool_down),
        not_counted: study
            .not_counted
            .iter()
            .map(|(event, why)| NotCountedJson { event: event.name(), why })
            .collect(),
        example: (!example.is_empty()).then(|| ExampleJson::from_predicted(example)),
        samples: study.records.iter().map(|record| SampleJson::from_record(record, &study.plan)).collect(),
    };
    pretty(&document)
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    conditions: ConditionsJson,
    metric: MetricJson<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<MetricJson<'a>>,
    seed: u64,
    rounds: u32,
    end: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    race: Option<RaceJson>,
    took_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<NoiseJson>,
    arms: Vec<ArmJson<'a>>,
    advice: AdviceJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    emitted: Option<EmittedJson>,
    left_out: Vec<LeftOutJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<ServiceJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prepare: Option<PrepareJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cool_down: Option<CoolDownJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_counted: Vec<NotCountedJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<ExampleJson>,
    samples: Vec<SampleJson>,
}

/// A variable that an arm adds to the environment.
#[derive(Serialize)]
struct VariableJson<'a> {
    name: &'a str,
    value: &'a str,
}

/// An event that cannot be counted.
#[derive(Serialize)]
struct NotCountedJson<'a> {
    event: &'static str,
    why: &'a str,
}

#[derive(Serialize)]
struct ServiceJson<'a> {
    ready: &'a str,
    client: &'a [String],
}

/// The command before every run.
#[derive(Serialize)]
struct PrepareJson<'a> {
    command: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

/// Waiting for the CPUs to cool down.
#[derive(Serialize)]
struct CoolDownJson {
    most_s: f64,
    began_celsius: Option<f64>,
    waited_s: f64,
    still_hot: u32,
}

impl CoolDownJson {
    fn from_cool_down(cool_down: &CoolDown) -> Self {
        Self {
            most_s: cool_down.most.as_secs_f64(),
            began_celsius: cool_down.began_millicelsius.map(|milli| f64::from(milli) / 1000.0),
            waited_s: cool_down.waited.as_secs_f64(),
            still_hot: cool_down.still_hot,
        }
    }
}

/// Why the preparation of a run failed, where that ended the study.
fn failure(end: &End) -> Option<String> {
    match end {
        End::PreparationFailed(why) => Some(why.to_string()),
        _ => None,
    }
}

/// The metric that is compared; also that of a benchmark.
#[derive(Serialize)]
pub(super) struct MetricJson<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    better: Option<&'static str>,
}

impl<'a> MetricJson<'a> {
    /// With another unit than the metric has by itself.
    pub(super) const fn with_unit(self, unit: Option<&'a str>) -> Self {
        Self { unit, ..self }
    }

    /// As one that decides nothing: which way is better is not known.
    const fn shown(self) -> Self {
        Self { better: None, ..self }
    }

    pub(super) fn from_metric(metric: &'a Metric) -> Self {
        let better = Some(direction_name(metric.direction()));
        let unit = metric_unit(metric);
        match metric {
            Metric::Wall => Self { kind: "wall", unit, pattern: None, better },
            Metric::CpuTime => Self { kind: "cpu", unit, pattern: None, better },
            Metric::MaxRss => Self { kind: "rss", unit, pattern: None, better },
            Metric::Counted(counter) => Self { kind: counter.name(), unit, pattern: None, better },
            Metric::Printed(pattern, _) => {
                Self { kind: "printed", unit, pattern: Some(pattern.text()), better }
            }
        }
    }
}

#[derive(Serialize)]
struct NoiseJson {
    ratio: f64,
    ratio_interval_95: [f64; 2],
    noise_share: f64,
    rounds: usize,
}

#[derive(Serialize)]
struct PlacementJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transparent_huge: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    huge_pool: bool,
}

impl PlacementJson {
    fn from_placement(placement: &Placement) -> Self {
        Self {
            policy: placement.policy.as_ref().map(ToString::to_string),
            cpus: placement.cpus.as_ref().map(ToString::to_string),
            transparent_huge: placement.huge.and_then(|huge| match huge {
                HugePages::ALWAYS => Some("allowed"),
                HugePages::NEVER => Some("never"),
                HugePages::Transparent(_) => Some("only_advised"),
                HugePages::Pool => None,
            }),
            huge_pool: placement.huge == Some(HugePages::Pool),
        }
    }
}

#[derive(Serialize)]
struct ArmJson<'a> {
    arm: u32,
    name: &'a str,
    placement: PlacementJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_options: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numactl_options: Option<Vec<String>>,
    failures: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<SummaryJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<EffectJson>,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<Vec<PagesJson>>,
    /// How much of its memory `pages` is of; its run in the middle.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fidelity: Option<FidelityJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<Option<AlsoJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    environment: Vec<VariableJson<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    counted: BTreeMap<&'static str, f64>,
    /// Runs that others spoilt: made again, and not.
    repeated: usize,
    spoilt: usize,
}

#[derive(Serialize)]
struct SummaryJson {
    runs: usize,
    median: f64,
    median_absolute_deviation: f64,
    least: f64,
    most: f64,
}

#[derive(Serialize)]
struct EffectJson {
    ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_interval_95: Option<[f64; 2]>,
    p: f64,
    p_adjusted: f64,
    rounds: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    smallest_detectable_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds_for_margin: Option<u64>,
    shown: bool,
}

#[derive(Serialize)]
struct PagesJson {
    node: u32,
    share: f64,
    size_bytes: u64,
}

fn pages(residency: &Residency) -> Vec<PagesJson> {
    let page = |(node, size): (&nodewise_machine::NodeId, &nodewise_machine::Bytes)| PagesJson {
        node: node.number(),
        share: residency.share(*node).unwrap_or(0.0),
        size_bytes: size.get(),
    };
    residency.by_node.iter().map(page).collect()
}

impl<'a> ArmJson<'a> {
    fn from_result(study: &'a Study, result: &ArmResult, scope: &Scope) -> Self {
        let arm = study.plan.arm(result.arm);
        let (repeated, spoilt) = study.spoilt(result.arm);
        Self {
            arm: result.arm.number(),
            name: &arm.name,
            placement: PlacementJson::from_placement(&arm.placement),
            run_options: arm.placement.run_options(scope),
            numactl_options: arm.placement.numactl(scope),
            failures: result.failures,
            summary: result.summary.map(|summary| SummaryJson {
                runs: summary.runs,
                median: summary.median,
                median_absolute_deviation: summary.deviation,
                least: summary.least,
                most: summary.most,
            }),
            effect: result.effect.map(|effect| EffectJson {
                ratio: effect.ratio,
                ratio_interval_95: effect.interval.map(ends),
                p: effect.p,
                p_adjusted: effect.adjusted_p,
                rounds: effect.blocks,
                smallest_detectable_share: effect.smallest_detectable,
                rounds_for_margin: effect.blocks_for_target,
                shown: effect.is_shown,
            }),
            verdict: VerdictKind::from_verdict(&result.verdict).name(),
            reason: reason(study, result),
            pages: study.residency(result.arm).as_ref().map(pages),
            seen_bytes: seen(study, result.arm).map(|(seen, _)| seen.get()),
            fidelity: FidelityJson::of_arm(arm, result),
            also: AlsoJson::from_arm_result(result),
            threads: arm.threads,
            environment: arm.environment.iter().map(|(name, value)| VariableJson { name, value }).collect(),
            counted: Counted::ALL
                .into_iter()
                .filter_map(|counted| Some((counted.field(), counted.median(study, result.arm)?)))
                .collect_map(),
            repeated,
            spoilt,
        }
    }
}

#[derive(Serialize)]
struct RaceJson {
    margin_share: f64,
    error: f64,
    /// The arm that is within the margin of the best; null while that is open.
    settled: Option<u32>,
    out: Vec<OutJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    crossed: Option<CrossedJson>,
}

/// The race went on with crosses of the arm that was best alone.
#[derive(Serialize)]
struct CrossedJson {
    best: u32,
    round: u32,
    arms: Vec<u32>,
}

#[derive(Serialize)]
struct OutJson {
    arm: u32,
    round: u32,
    by: u32,
}

impl RaceJson {
    fn from_rules(study: &Study, rules: &Rules) -> Self {
        let out =
            |out: &Out| OutJson { arm: out.arm.number(), round: out.block.number(), by: out.by.number() };
        Self {
            margin_share: rules.margin,
            error: rules.error,
            settled: study.race.settled.map(ArmId::number),
            out: study.race.out.iter().map(out).collect(),
            crossed: study.race.crossed.as_ref().map(|crossed| CrossedJson {
                best: crossed.best.number(),
                round: crossed.block.number(),
                arms: crossed.arms.iter().copied().map(ArmId::number).collect(),
            }),
        }
    }
}

fn end_word(end: &End) -> &'static str {
    match end {
        End::Completed => "completed",
        End::Settled => "settled",
        End::Interrupted => "interrupted",
        End::BudgetSpent => "budget_spent",
        End::BudgetTooShort(_) => "budget_too_short",
        End::BaselineFailed(_) => "baseline_failed",
        End::AllDropped => "all_dropped",
        End::PreparationFailed(_) => "preparation_failed",
    }
}

#[derive(Serialize)]
struct AdviceJson {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arm: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    as_good: Vec<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    command_lines: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smallest_detectable_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rounds_needed: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<WhyJson>,
}

impl AdviceJson {
    fn from_advice(study: &Study, advice: &Advice, scope: &Scope) -> Self {
        let plain = |kind| Self {
            kind,
            arm: None,
            as_good: Vec::new(),
            command_lines: Vec::new(),
            smallest_detectable_share: None,
            rounds_needed: None,
            why: None,
        };
        match advice {
            Advice::Use { best, as_good } => Self {
                arm: Some(best.number()),
                as_good: as_good.iter().copied().map(ArmId::number).collect(),
                command_lines: command_lines(study, *best, scope),
                ..plain("use")
            },
            Advice::Keep { smallest_detectable, .. } => {
                Self { smallest_detectable_share: *smallest_detectable, ..plain("keep") }
            }
            Advice::TooFewRounds { needed, .. } => {
                Self { rounds_needed: Some(*needed), ..plain("too_few_rounds") }
            }
            Advice::BaselineFailed(_) => plain("baseline_failed"),
            Advice::NothingToCompare => plain("nothing_to_compare"),
        }
    }
}

/// The best placement for another tool: a text with notes, or why there is none.
#[derive(Serialize)]
struct EmittedJson {
    tool: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl EmittedJson {
    fn from_target(
        target: Target,
        study: &Study,
        analysis: &Analysis,
        scope: &Scope,
        paths: &Paths,
    ) -> Option<Self> {
        let tool = target.name();
        Some(match emit::best(target, study, &analysis.advice, scope, paths)? {
            Ok(Emitted { text, notes }) => Self { tool, text: Some(text), notes, reason: None },
            Err(why) => Self { tool, text: None, notes: Vec::new(), reason: Some(why.to_string()) },
        })
    }
}

#[derive(Serialize)]
struct LeftOutJson<'a> {
    name: &'a str,
    why: &'a str,
}
