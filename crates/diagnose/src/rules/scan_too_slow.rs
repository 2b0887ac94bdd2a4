//! A process is so large that balancing takes minutes to look at all of it once.

use nodewise_machine::Bytes;
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

/// The most that the kernel scans of a process in a second, unless the scan size is larger: `MAX_SCAN_WINDOW` (in MB) and
/// `task_scan_min` of kernel/sched/fair.c.
const SCAN: Bytes = Bytes::from_mib(2560);

pub static RULE: Rule = Rule {
    id: "scan-too-slow",
    title: "a process is so large that balancing takes minutes to look at all of it",
    severity: Severity::Info,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Policies, Fact::Balancing],
    sign: "balancing is on, a process without a policy has at least 10 % of its memory on nodes where it does not run, and at \
           2,560 MiB a second one pass over its memory takes at least five minutes",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::SCAN_PASS,
        &thresholds::SCAN_STRANDED,
    ],
    traps: "a larger scan_size_mb, which lifts that limit, and which only root can read; memory in pools of huge pages is not \
            scanned at all",
    explains: &["memory-stranded"],
    sources: &["kernel/sched/fair.c, Linux 6.12: at most 2,560 MiB are scanned in a second"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    if situation.machine.settings.numa_balancing.is_none_or(|mode| mode & 1 == 0) {
        return Vec::new();
    }
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    if !process.has_no_policy() {
        return None;
    }
    let (size, away) = process.stranded(&situation.places.with_cpus())?;
    let scanned = Bytes::new(process.size().get().saturating_sub(process.in_pools()?.get()));
    let pass = scanned.get() as f64 / SCAN.get() as f64;
    let is_stranded = process.share(size) >= situation.limit(&thresholds::SCAN_STRANDED);
    if pass < situation.limit(&thresholds::SCAN_PASS) || !is_stranded {
        return None;
    }
    let minutes = (pass / 60.0).floor();
    let summary = format!(
        "balancing looks at all {scanned} of {} once in {minutes} min at best",
        words::process(process)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("one pass", Value::text(format!("{pass:.0} s")), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::SCAN_PASS),
        Evidence::new(
            format!("memory on {}", nodes(&away)),
            Value::Share(process.share(size)),
            shown::NUMA_MAPS,
        )
        .at(situation.thresholds(), &thresholds::SCAN_STRANDED),
    ];
    let what = "let it scan more at a time: 8,192 MiB lift the limit to as much in a second. Note the old value first: cat the \
                same file";
    finding.mends = vec![Mend {
        commands: vec![format!("echo 8192 > {}", shown::SCAN_SIZE)],
        needs_root: true,
        ..Mend::words(what, Scope::Now)
    }];
    finding.nodes = away;
    Some(finding)
}
