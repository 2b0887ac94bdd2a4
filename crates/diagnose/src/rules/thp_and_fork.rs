//! A store that forks for snapshots has memory in transparent huge pages.

use nodewise_machine::Bytes;
use nodewise_source::paths::shown;
use nodewise_source::program::running::SNAPSHOTS;

use super::words;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::{ProcessState, Situation};

/// The first kernel that copies small pages: of a huge page that is shared after a fork, the one that is written to.
const COPIES_SMALL: (u16, u16) = (5, 8);

pub static RULE: Rule = Rule {
    id: "thp-and-fork",
    title: "a store that forks for snapshots has its memory in transparent huge pages",
    severity: Severity::Warning,
    on: any,
    needs: &[Fact::HugePageMode, Fact::Processes, Fact::Programs, Fact::Release],
    sign: "Linux before 5.8, redis-server, valkey-server or keydb-server has memory in transparent huge pages, the mode is \
           always, and a child of it runs, or ran at the beginning of the window; without a child a note",
    thresholds: &[],
    traps: "Linux 5.8 and newer, which copies 4 KiB at a write after a fork and not the huge page; the mode madvise, at which the servers' own warning was wrong; Redis 6.2 and newer, which switches huge pages off \
            for itself (THP_enabled of /proc/PID/status); a server that never saves",
    explains: &[],
    sources: &[
        "redis#2844: copies of 2 MiB at each first write after a fork",
        "redis#3895 and #7771: the warning at madvise was wrong",
        "redis#7381: disable-thp",
        "torvalds/linux 3917c80280c9 (5.8): thp: change CoW semantics for anon-THP",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let (major, minor) = COPIES_SMALL;
    let copies_huge =
        situation.machine.kernel.as_ref().is_some_and(|kernel| !kernel.is_at_least(major, minor));
    if !copies_huge || situation.machine.settings.transparent_hugepage.as_deref() != Some("always") {
        return Vec::new();
    }
    let stores = situation.processes.iter().filter(|process| SNAPSHOTS.contains(&&*process.process.name));
    stores.filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let program = process.program?;
    let huge = program.anon_huge.filter(|size| *size > Bytes::default())?;
    // A child that saves a snapshot is not another server.
    let own = Some(process.process.identity.pid);
    let is_child = situation.now.processes.iter().any(|other| {
        process.process.parent == Some(other.identity.pid) && other.name == process.process.name
    });
    if program.has_huge_pages == Some(false) || is_child {
        return None;
    }
    let samples = situation.before.into_iter().chain([situation.now]);
    let forks = samples.flat_map(|sample| &sample.processes).any(|other| other.parent == own);
    let severity = if forks { RULE.severity } else { Severity::Note };
    let summary = format!(
        "{huge} of {} are in huge pages: after a fork the first write to each copies 2 MiB",
        words::process(process)
    );
    let mut finding = RuleFinding::new(RULE.id, severity, process.subject(), summary);
    finding.confidence = if forks { Confidence::Certain } else { Confidence::Possible };
    finding.concerns = Some(huge);
    finding.evidence = vec![
        Evidence::new("in transparent huge pages", Value::Size(huge), shown::SMAPS_ROLLUP),
        Evidence::new("mode", Value::text("always"), shown::THP_ENABLED),
        Evidence::new(
            "forked in the window",
            Value::text(if forks { "yes" } else { "not seen" }),
            shown::STAT,
        ),
    ];
    let what =
        "huge pages only for programs that ask for them. Pages that it has stay huge until it starts again";
    finding.mends = vec![
        Mend::write(what, shown::THP_ENABLED, "madvise", "always"),
        Mend::words(
            "or for this server alone: disable-thp yes in its configuration (Redis 6.2 and newer)",
            Scope::Restart,
        ),
    ];
    Some(finding)
}
