//! Automatic balancing moves pages of a process to and fro.

use nodewise_machine::Bytes;
use nodewise_source::paths::shown;

use super::words;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds::{self, STARTS};

pub static RULE: Rule = Rule {
    id: "balancing-ping-pong",
    title: "automatic balancing moves pages of a process to and fro",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages],
    sign: "balancing moved pages of a process of at least 1 % of its memory a minute, and at most a tenth of them are on other \
           nodes at the end of the window than at its beginning, or the rest is more than its memory: some moved twice",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::PING_PONG_MOVED,
        &thresholds::PING_PONG_NET,
    ],
    traps: "a process whose threads just moved: its pages follow once; the first minute of a process; a kernel that does not \
            count moved pages by thread (built without CONFIG_SCHED_DEBUG)",
    explains: &["balancing-costly"],
    sources: &["ompi#11357", "atop#155: moves hold the lock of the address space"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    if situation.age(process.process)? < STARTS {
        return None;
    }
    let change = process.change.as_ref()?;
    let page = situation.machine.page_size.unwrap_or(Bytes::from_kib(4));
    let moved = page.times(change.migrated_pages?);
    let minutes = change.window.length()?.as_secs_f64() / 60.0;
    let share = process.share(moved) / minutes;
    let stayed_away = process.shifted()?;
    let net = situation.limit(&thresholds::PING_PONG_NET);
    // A thread that changes nodes takes all of its pages with it, and may have come back or not when the window ends.
    let returned = Bytes::new(moved.get().saturating_sub(stayed_away.get()));
    let is_settling = stayed_away.get() as f64 > net * moved.get() as f64 && returned <= process.size();
    if moved.get() == 0 || share < situation.limit(&thresholds::PING_PONG_MOVED) || is_settling {
        return None;
    }
    let summary = format!(
        "balancing moved {moved} of {}, and {stayed_away} of its memory changed nodes",
        words::process(process)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(moved);
    finding.evidence = vec![
        Evidence::new("moved in a minute, of its memory", Value::Share(share), shown::TASK_SCHED)
            .at(situation.thresholds(), &thresholds::PING_PONG_MOVED),
        Evidence::new("changed nodes", Value::Size(stayed_away), shown::NUMA_MAPS).at_part(
            Value::Size(moved.share(net)),
            situation.thresholds(),
            &thresholds::PING_PONG_NET,
        ),
        Evidence::new("moved besides", Value::Size(returned), shown::TASK_SCHED)
            .against(Value::Size(process.size()), "its memory: more is some of it twice"),
    ];
    finding.cause =
        Some("threads of several nodes write to the same pages, or threads change nodes".to_owned());
    finding.mends = vec![Mend {
        commands: vec!["nodewise run --interleave=all -- COMMAND".to_owned()],
        ..Mend::words(
            "interleave what threads of all nodes share; or keep each thread on one node (--cpunodebind for the program)",
            Scope::Restart,
        )
    }];
    finding.experiment = Some("nodewise tune -- COMMAND compares both with balancing".to_owned());
    finding.nodes = process.memory.keys().copied().collect();
    Some(finding)
}
