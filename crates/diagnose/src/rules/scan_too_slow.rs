//! A process is so large that balancing takes minutes to look at all of it once.

use nodewise_machine::Bytes;
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

/// The most that the kernel scans of a process in a second, unless it scans more at a time: `MAX_SCAN_WINDOW` (in MB) and
/// `task_scan_min` of kernel/sched/fair.c.
pub(super) const WINDOW: Bytes = Bytes::from_mib(2560);

/// The scan size that is advised at least, in MiB.
const LARGE: u64 = 8192;

pub static RULE: Rule = Rule {
    id: "scan-too-slow",
    title: "a process is so large that balancing takes minutes to look at all of it",
    severity: Severity::Info,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Policies, Fact::Balancing],
    sign: "balancing is on, a process without a policy has at least 10 % of its memory on nodes where it does not run, and at \
           2,560 MiB a second, or scan_size_mb where that is more, one pass over its memory takes at least five minutes",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::SCAN_PASS,
        &thresholds::SCAN_STRANDED,
    ],
    traps: "only root can read scan_size_mb, and without it 256 is taken for granted; memory in pools of huge pages is not \
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
    let at_a_time = situation.site.and_then(|site| site.scan_size.known()).copied();
    let scan = at_a_time.unwrap_or_default().max(WINDOW);
    let pass = scanned.get() as f64 / scan.get() as f64;
    let is_stranded = process.share(size) >= situation.limit(&thresholds::SCAN_STRANDED);
    if pass < situation.limit(&thresholds::SCAN_PASS) || !is_stranded {
        return None;
    }
    let once = if pass < 60.0 { format!("{pass:.2} s") } else { format!("{:.0} min", (pass / 60.0).floor()) };
    let summary =
        format!("balancing looks at all {scanned} of {} once in {once} at best", words::process(process));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new("one pass", Value::text(format!("{pass:.2} s")), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::SCAN_PASS),
        Evidence::new(
            format!("memory on {}", nodes(&away)),
            Value::Share(process.share(size)),
            shown::NUMA_MAPS,
        )
        .at(situation.thresholds(), &thresholds::SCAN_STRANDED),
    ];
    let enough = wanted(scanned, situation.limit(&thresholds::SCAN_PASS));
    let what = format!("let it scan more at a time: {enough} MiB lift the limit to as much in a second");
    finding.mends = vec![match at_a_time {
        Some(old) => Mend::write(what, shown::SCAN_SIZE, &enough.to_string(), &old.mib().to_string()),
        None => Mend {
            commands: vec![format!("echo {enough} > {}", shown::SCAN_SIZE)],
            needs_root: true,
            ..Mend::words(format!("{what}. Note the old value first: cat the same file"), Scope::Now)
        },
    }];
    finding.nodes = away;
    Some(finding)
}

/// The scan size in MiB with which a pass is shorter than this many seconds.
fn wanted(scanned: Bytes, seconds: f64) -> u64 {
    let least = (scanned.mib() as f64 / seconds.max(1e-3)) as u64;
    least.saturating_add(1).min(u64::from(u32::MAX / 2)).next_power_of_two().max(LARGE)
}
