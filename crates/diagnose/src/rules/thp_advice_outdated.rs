//! The mode of transparent huge pages is the one that older MongoDB wanted, or newer.

use nodewise_source::paths::shown;

use super::words;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Severity, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::{ProcessState, Situation};

/// The first version whose allocator wants huge pages.
const WANTS: u32 = 8;

pub static RULE: Rule = Rule {
    id: "thp-advice-outdated",
    title: "transparent huge pages are set as another version of MongoDB wants them",
    severity: Severity::Note,
    on: any,
    needs: &[Fact::HugePageMode, Fact::Processes, Fact::Programs],
    sign: "mongod of version 8 or newer, and the mode is not always; or an older one, and the mode is always",
    thresholds: &[],
    traps: "a version that nothing names (silent); other programs of the machine that want the other mode",
    explains: &[],
    sources: &["MongoDB manual: TCMalloc performance optimization for a self-managed deployment"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let Some(mode) = situation.machine.settings.transparent_hugepage.as_deref() else { return Vec::new() };
    let servers = situation.processes.iter().filter(|process| &*process.process.name == "mongod");
    servers.filter_map(|process| find(process, mode)).collect()
}

fn find(process: &ProcessState<'_>, mode: &str) -> Option<RuleFinding> {
    let version = process.program?.version?;
    let wanted = if version >= WANTS { "always" } else { "never" };
    // Under madvise an older server has none, either.
    if mode == wanted || (version < WANTS && mode != "always") {
        return None;
    }
    let summary =
        format!("{} is of version {version}, and huge pages are at {mode}", words::process(process));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Possible;
    finding.evidence = vec![
        Evidence::new("mode", Value::text(mode.to_owned()), shown::THP_ENABLED)
            .against(Value::text(wanted), "the manual of MongoDB"),
        Evidence::new("version", Value::Count(version.into(), ""), shown::EXECUTABLE),
    ];
    finding.cause = Some(match version >= WANTS {
        true => "its allocator works by CPU and in huge pages; switching them off is advice for version 7 and older".to_owned(),
        false => "its allocator keeps more memory in huge pages; version 8 and newer want them".to_owned(),
    });
    finding.mends = vec![Mend::write(
        "the mode that its manual asks for, before the server starts; permanently by a unit that runs before it",
        shown::THP_ENABLED,
        wanted,
        mode,
    )];
    finding.experiment = Some(format!("nodewise tune compares {wanted} with {mode}"));
    Some(finding)
}
