//! Facts of a study that text and JSON share.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_experiment::command::environment::THREAD_VARIABLES;
use nodewise_experiment::executor::Residency;
use nodewise_experiment::fidelity::{Fidelity, percent};
use nodewise_experiment::metric::Metric;
use nodewise_experiment::schedule::ArmId;
use nodewise_experiment::shell;
use nodewise_experiment::study::Study;
use nodewise_experiment::verdict::ArmResult;
use nodewise_machine::conditions::Conditions;
use nodewise_machine::placement::Scope;
use nodewise_machine::{Bytes, NodeSet};
use nodewise_stats::median;

use super::evidence::count_words;

/// A length of time for people: `1m 42s`, `12.3 s`, `450 ms`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match time.as_secs() {
        0 => seconds_words(seconds),
        1..=99 => format!("{seconds:.1} s"),
        whole @ 100..=5999 => format!("{}m {:02}s", whole / 60, whole % 60),
        whole => format!("{}h {:02}m", whole / 3600, whole % 3600 / 60),
    }
}

pub(super) fn seconds_words(seconds: f64) -> String {
    match seconds {
        s if s >= 100.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.1} µs", s * 1e6),
    }
}

/// A value of the metric: a time in its best unit, anything else with about four digits.
pub fn metric_value(value: f64, metric: &Metric) -> String {
    match metric {
        Metric::Wall | Metric::CpuTime => seconds_words(value),
        Metric::MaxRss => Bytes::new(value as u64).to_string(),
        Metric::Counted(_) => count_words(value),
        Metric::Printed(..) if value >= 1000.0 => format!("{value:.0}"),
        Metric::Printed(..) if value >= 10.0 => format!("{value:.2}"),
        Metric::Printed(..) => format!("{value:.4}"),
    }
}

/// The unit of a metric's values, for programs; `None` for counts and for numbers that the program prints.
pub const fn metric_unit(metric: &Metric) -> Option<&'static str> {
    match metric {
        Metric::Wall | Metric::CpuTime => Some("s"),
        Metric::MaxRss => Some("bytes"),
        Metric::Counted(_) | Metric::Printed(..) => None,
    }
}

/// Names the metric that is compared or shown.
pub fn metric_name(metric: &Metric) -> String {
    match metric {
        Metric::Wall => "wall time".to_owned(),
        Metric::CpuTime => "time on CPUs".to_owned(),
        Metric::MaxRss => "most memory at once".to_owned(),
        Metric::Counted(counter) => counter.name().to_owned(),
        Metric::Printed(pattern, _) => pattern.text().to_owned(),
    }
}

/// Describes the load of other programs when a study began, where that is worth a word: a quarter of the CPUs
/// or more.
pub fn load_words(conditions: &Conditions) -> Option<String> {
    let load = conditions.load?;
    let cpus = conditions.allowed_cpus.as_ref()?.len();
    (load >= cpus as f64 / 4.0).then(|| {
        format!("other programs wanted {load:.1} CPUs when it began, of the {cpus} that may be used")
    })
}

/// How far an arm ran as it asks: the least of its shares; nothing when nothing is asked or was seen.
pub fn fidelity_words(result: &ArmResult) -> String {
    result.fidelity.as_ref().and_then(Fidelity::least).map_or_else(String::new, percent)
}

/// Where pages were by node, nodes with the same share together, the largest share first:
/// `0: 97 %, 1-3: 1 % each`. Less than half a percent is left out.
pub fn pages_words(residency: &Residency) -> String {
    let total = residency.total();
    if total == Bytes::new(0) {
        return String::new();
    }
    let mut shares: BTreeMap<u64, NodeSet> = BTreeMap::new();
    for node in residency.by_node.keys() {
        let share = residency.share(*node).unwrap_or(0.0);
        shares.entry((share * 100.0).round() as u64).or_default().insert(*node);
    }
    let told = shares.iter().rev().filter(|(share, _)| **share > 0);
    told.map(|(share, nodes)| match nodes.len() {
        1 => format!("{nodes}: {share} %"),
        _ => format!("{nodes}: {share} % each"),
    })
    .collect::<Vec<_>>()
    .join(", ")
}

/// How much memory of an arm's program was seen, and how much a process of it had at most; of a run in the
/// middle. What is missing is of files, or came after the last look. `None` when nothing was seen of any run.
pub fn seen(study: &Study, arm: ArmId) -> Option<(Bytes, Option<Bytes>)> {
    let done = || study.measured(arm).filter(|record| record.run.ending.is_done());
    let middle = |sizes: Vec<f64>| median(&sizes).map(|bytes| Bytes::new(bytes as u64));
    let seen = done().filter_map(|record| Some(record.run.residency.as_ref()?.total().get() as f64));
    let most = done().filter_map(|record| Some(record.run.usage.as_ref()?.max_rss.get() as f64));
    Some((middle(seen.collect())?, middle(most.collect())))
}

/// The same in words: `260 MiB of 262 MiB`.
pub fn seen_words(study: &Study, arm: ArmId) -> Option<String> {
    Some(match seen(study, arm)? {
        // Several processes together can have more than the largest of them.
        (seen, Some(most)) if most > seen => format!("{seen} of {most}"),
        (seen, _) => seen.to_string(),
    })
}

/// The command lines that start the study's program under an arm, ours first, then numactl's where
/// it has one.
pub fn command_lines(study: &Study, arm: ArmId, scope: &Scope) -> Vec<String> {
    let placement = &study.plan.arm(arm).placement;
    let program = shell::shown(study.program_of(arm));
    let variables = thread_variables(study, arm);
    let line = |tool: Vec<String>| {
        let words = variables.iter().cloned().chain(tool).chain([program.clone()]);
        words.collect::<Vec<_>>().join(" ")
    };
    let with = |tool: &str, options: Vec<String>, end: Option<&str>| {
        let words = std::iter::once(tool.to_owned()).chain(options);
        line(words.chain(end.map(str::to_owned)).collect())
    };
    let ours = placement.run_options(scope);
    // Without an option a tool has nothing to do: the number of threads is all that differs.
    if ours.as_ref().is_some_and(Vec::is_empty) {
        return vec![line(Vec::new())];
    }
    let theirs = placement.numactl(scope).map(|options| with("numactl", options, None));
    ours.map(|options| with("nodewise run", options, Some("--"))).into_iter().chain(theirs).collect()
}

/// The variables that show the program of an arm how many threads to use, as a shell sets them.
fn thread_variables(study: &Study, arm: ArmId) -> Vec<String> {
    let environment = &study.plan.arm(arm).environment;
    let told = |name: &&str| Some(format!("{name}={}", environment.get(*name)?));
    THREAD_VARIABLES.iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;

    #[test]
    fn times_are_told_in_their_best_unit() {
        for (seconds, words) in [
            (0.0000021, "2.1 µs"),
            (0.45, "450.0 ms"),
            (12.34, "12.3 s"),
            (102.0, "1m 42s"),
            (7260.0, "2h 01m"),
        ] {
            assert_eq!(duration(Duration::from_secs_f64(seconds)), words);
        }
        assert_eq!(metric_value(1.20349, &Metric::Wall), "1.203 s");
    }

    #[test]
    fn pages_are_told_by_share() {
        let residency = |pages: &[(u32, u64)]| Residency {
            by_node: pages.iter().map(|(node, mib)| (NodeId::new(*node), Bytes::from_mib(*mib))).collect(),
        };
        assert_eq!(pages_words(&residency(&[(0, 25), (1, 25), (2, 25), (3, 25)])), "0-3: 25 % each");
        assert_eq!(pages_words(&residency(&[(0, 970), (1, 29), (2, 1)])), "0: 97 %, 1: 3 %");
        assert_eq!(pages_words(&residency(&[])), "");
    }
}
