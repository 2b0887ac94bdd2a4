//! A Go program runs on several nodes, whose runtime knows none.

use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "go-across-nodes",
    title: "a Go program runs on several nodes, and its runtime knows none",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Variables],
    sign: "a program that Go built, at least 10 % of the smallest node large, with at least 10 % of its CPU time on each of two \
           nodes, CPUs of two nodes or more, and no GOMAXPROCS or one above the CPUs of a node",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::AT_WORK,
        &thresholds::GO_SIZE,
        &thresholds::GO_CPU,
    ],
    traps: "programs that need more CPUs than a node has and cannot be split; memory without pointers, which the collector \
            passes over",
    explains: &["thread-wanders"],
    sources: &[
        "golang/go#47831: TiDB is faster on one socket",
        "cockroachdb/docs#19086: at most 32 cores for each process",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let program = process.program?;
    let largest =
        situation.places.with_cpus().iter().map(|node| situation.machine.cpus_of(node).len()).max()?;
    let limit =
        program.variables.as_ref()?.get("GOMAXPROCS").and_then(|text| text.trim().parse::<usize>().ok());
    let is_limited = limit.is_some_and(|limit| limit > 0 && limit <= largest);
    let runs = process.runs_with(situation.limit(&thresholds::GO_CPU));
    let least = situation.smallest()?.share(situation.limit(&thresholds::GO_SIZE));
    if program.is_go != Some(true)
        || is_limited
        || !process.is_at_work()
        || process.size() < least
        || runs.len() < 2
    {
        return None;
    }
    let summary = format!("{} was built by Go, and runs on {}", words::process(process), nodes(&runs));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Possible;
    finding.concerns = Some(process.size());
    let used = process.cpu_share()?;
    finding.evidence = vec![
        Evidence::new("its memory", Value::Size(process.size()), shown::NUMA_MAPS).at_part(
            Value::Size(least),
            situation.thresholds(),
            &thresholds::GO_SIZE,
        ),
        Evidence::new("runs on", Value::text(nodes(&runs)), shown::TASK_SCHED)
            .at(situation.thresholds(), &thresholds::GO_CPU),
        Evidence::new("CPUs that it used", Value::text(format!("{used:.1}")), shown::STAT),
        Evidence::new(
            "GOMAXPROCS",
            limit.map_or_else(|| Value::text("not set"), |limit| Value::Count(limit as u64, "")),
            shown::VARIABLES,
        ),
    ];
    finding.cause =
        Some("its scheduler and its collector move work and memory between all CPUs alike".to_owned());
    let fits = used <= largest as f64;
    let what = match fits {
        true => "the CPU time of one node is enough: keep it there, GOMAXPROCS follows",
        false => "one process for each node, if its service can be split",
    };
    finding.mends = vec![Mend {
        commands: vec![
            "nodewise run --cpunodebind=0 --preferred=0 -- COMMAND".replace('0', &runs.first()?.to_string()),
        ],
        ..Mend::words(what, Scope::Restart)
    }];
    finding.experiment = Some("nodewise tune -- COMMAND".to_owned());
    finding.nodes = runs;
    Some(finding)
}
