//! A large Java heap on several nodes, and the machine does not know of nodes.

use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

/// Collectors that UseNUMA does nothing for, or that are aware of nodes without it.
const OTHERS: [&str; 5] = [
    "-XX:+UseZGC",
    "-XX:+UseShenandoahGC",
    "-XX:+UseSerialGC",
    "-XX:+UseConcMarkSweepGC",
    "-XX:+UseEpsilonGC",
];
/// The first version whose G1 knows nodes.
const G1: u32 = 14;

pub static RULE: Rule = Rule {
    id: "jvm-numa-unused",
    title: "a large Java heap is used from several nodes, and UseNUMA is off",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Policies, Fact::Programs],
    sign: "java with at least 25 % of the smallest node, at least 10 % of its CPU time on each of two nodes, no policy, no \
           -XX:+UseNUMA among its options, and a collector that has it: Parallel, or G1 of version 14 and newer",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::AT_WORK,
        &thresholds::JVM_HEAP,
        &thresholds::JVM_CPU,
    ],
    traps: "ZGC, which knows nodes by itself; G1 before version 14, for which the option does nothing; options in a file that \
            the command line names (@FILE, -XX:Flags), which are not read",
    explains: &["first-touch-on-one"],
    sources: &["JEP 345: NUMA-aware memory allocation for G1", "JEP 163 (draft)"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let collector = collector(process)?;
    let options = options(process);
    let names_file = options.iter().any(|word| word.starts_with('@') || word.starts_with("-XX:Flags="));
    if names_file || options.iter().any(|word| word.ends_with("UseNUMA")) || !process.has_no_policy() {
        return None;
    }
    let runs = process.runs_with(situation.limit(&thresholds::JVM_CPU));
    let smallest = situation.smallest()?;
    let least = smallest.share(situation.limit(&thresholds::JVM_HEAP));
    if !process.is_at_work() || process.size() < least || runs.len() < 2 {
        return None;
    }
    let summary = format!(
        "{} runs on {} with {}, without UseNUMA",
        words::process(process),
        nodes(&runs),
        process.size()
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(process.size());
    finding.evidence = vec![
        Evidence::new("its memory", Value::Size(process.size()), shown::NUMA_MAPS).at_part(
            Value::Size(least),
            situation.thresholds(),
            &thresholds::JVM_HEAP,
        ),
        Evidence::new("runs on", Value::text(nodes(&runs)), shown::TASK_SCHED)
            .at(situation.thresholds(), &thresholds::JVM_CPU),
        Evidence::new("collector", Value::text(collector), shown::PROCESS_COMMAND),
    ];
    finding.mends = vec![Mend::words(
        "start it with -XX:+UseNUMA, and -Xlog:gc+init to see whether it is in force: NUMA Support: Enabled",
        Scope::Restart,
    )];
    finding.experiment = Some("nodewise tune -- COMMAND".to_owned());
    finding.nodes = runs;
    Some(finding)
}

/// Options up to the name of the class, and those of variables, which come last.
pub(super) fn options<'p>(process: &'p ProcessState<'_>) -> Vec<&'p str> {
    let words = process.program.and_then(|program| program.words.as_deref()).unwrap_or_default();
    words.iter().skip(1).map(String::as_str).filter(|word| word.starts_with(['-', '@'])).collect()
}

/// The collector, where UseNUMA does something for it; `None` for others, and where that is not known.
fn collector(process: &ProcessState<'_>) -> Option<&'static str> {
    let program = process.program?;
    let is_java = program.exe.as_deref().is_some_and(|exe| exe.ends_with("/bin/java"));
    let options = options(process);
    let has = |option: &str| options.contains(&option);
    match program.version? {
        _ if !is_java || OTHERS.iter().any(|option| has(option)) => None,
        _ if has("-XX:+UseParallelGC") => Some("Parallel"),
        // Parallel was the default of servers up to version 8; from 9 on it is G1.
        version if version <= 8 && !has("-XX:+UseG1GC") => Some("Parallel"),
        version if version >= G1 => Some("G1"),
        _ => None,
    }
}
