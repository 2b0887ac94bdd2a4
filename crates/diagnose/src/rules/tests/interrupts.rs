//! Rules about programs that move interrupts.

use std::sync::Arc;

use nodewise_machine::{CpuId, CpuSet, NodeId};
use nodewise_source::process::Pid;
use nodewise_source::program::running::RunningProgram;
use nodewise_source::sample::{Identity, InterruptSample, ProcessSample};
use nodewise_source::site::{PinningLine, Site, SiteFact};

use super::*;

const DAEMON: u32 = 77;

/// A device on node 0 with this many interrupts in ten seconds, whose line 41 went from CPU 1 to CPU 6 on node 3 while
/// irqbalance ran.
pub(super) fn moved(count: u64) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    let sample = |count: u64, cpus: &str| InterruptSample {
        device: "net:eth0".to_owned(),
        node: Some(NodeId::new(0)),
        lines: vec![40, 41],
        by_cpu: vec![(CpuId::new(0), count)],
        allowed: vec![(40, CpuSet::from([0])), (41, cpus.parse().expect("CPUs"))],
        ..InterruptSample::default()
    };
    fixture.before.interrupts = vec![sample(0, "1")];
    fixture.now.interrupts = vec![sample(count, "6")];
    daemon(&mut fixture, "/usr/sbin/irqbalance --foreground");
    fixture
}

/// Runs irqbalance with this command line.
fn daemon(fixture: &mut Fixture, line: &str) {
    let identity = Identity { pid: Pid::new(DAEMON), started_ticks: 5 };
    for sample in [&mut fixture.before, &mut fixture.now] {
        sample.processes.retain(|process| process.identity != identity);
        let process = ProcessSample {
            name: "irqbalance".into(),
            user: Some(0),
            polled: sample.moment,
            ..ProcessSample::new(identity)
        };
        sample.processes.push(Arc::new(process));
        sample.processes.sort_by_key(|process| process.identity);
    }
    let words = Some(line.split(' ').map(str::to_owned).collect());
    fixture.program(DAEMON, RunningProgram { words, ..RunningProgram::default() });
}

fn pinned(mut fixture: Fixture) -> Fixture {
    let line = PinningLine { path: "/etc/rc.local".to_owned(), line: 3 };
    fixture.site = Some(Site { pinning: SiteFact::Known(vec![line]), ..Site::default() });
    fixture
}

/// The same with other CPUs of line 41 at the two ends of the window.
fn went(from: &str, to: &str) -> Fixture {
    let mut fixture = moved(2_000);
    for (sample, cpus) in [(&mut fixture.before, from), (&mut fixture.now, to)] {
        sample.interrupts[0].allowed[1].1 = cpus.parse().expect("CPUs");
    }
    fixture
}

#[test]
fn lines_that_irqbalance_took_away_from_their_node() {
    let rule = &irqbalance_against_you::RULE;
    let found = one(&moved(2_000), rule);
    assert_eq!((found.severity, found.confidence), (Severity::Note, Confidence::Likely));
    assert_eq!(
        found.summary,
        "irqbalance runs, and 1 of 2 lines of net:eth0, on node 0, went to node 3 in the window"
    );
    assert!(found.mends[0].what.contains("IRQBALANCE_ARGS=\"--banirq=41\""), "{found:#?}");
    assert_eq!(found.mends[1].commands, ["echo 1 > /proc/irq/41/smp_affinity_list"]);
    assert_eq!(found.mends[1].undo, ["echo 6 > /proc/irq/41/smp_affinity_list"]);
    // A script at boot is named beside it.
    let beside = one(&pinned(moved(2_000)), rule);
    assert_eq!(beside.evidence.len(), found.evidence.len() + 1);
    assert_eq!(beside.subject, Subject::Device("net:eth0".to_owned()));
    // Neighbours, what was no hand's work, lines that came home, and lines that stayed in part.
    for (from, to) in [("1", "0"), ("0-7", "6"), ("4", "6"), ("6", "1"), ("0-1", "1,6"), ("", "6"), ("1", "")]
    {
        silent(&went(from, to), rule);
    }
    one(&went("0-1", "4-7"), rule);
    // From 100 interrupts a second on.
    one(&moved(1_000), rule);
    silent(&moved(999), rule);
}

#[test]
fn irqbalance_that_moves_nothing_or_was_not_the_one() {
    let rule = &irqbalance_against_you::RULE;
    // Not running, or a ban of this line: something else moved it.
    let mut fixture = moved(2_000);
    fixture.now.processes.retain(|process| &*process.name != "irqbalance");
    silent(&fixture, rule);
    let mut fixture = moved(2_000);
    let process = fixture.now.processes.iter_mut().find(|process| &*process.name == "irqbalance").unwrap();
    Arc::make_mut(process).user = Some(1000);
    silent(&fixture, rule);
    let mut banned = moved(2_000);
    daemon(&mut banned, "/usr/sbin/irqbalance --banirq=41");
    silent(&banned, rule);
    daemon(&mut banned, "/usr/sbin/irqbalance --banirq=40");
    one(&banned, rule);
    // The device has no node, or an unknown one.
    for node in [None, Some(NodeId::new(9))] {
        let mut fixture = moved(2_000);
        for sample in [&mut fixture.before, &mut fixture.now] {
            sample.interrupts[0].node = node;
        }
        silent(&fixture, rule);
    }
    // A device that came in the window.
    let mut fixture = moved(2_000);
    fixture.before.interrupts.clear();
    silent(&fixture, rule);
    assert_eq!(moved(2_000).lacks_at_once(rule), ["rates"]);
    let mut recorded = moved(2_000);
    recorded.now.interrupts[0].allowed.clear();
    let lacks = rule.lacks(&recorded.situation());
    assert_eq!(lacks.iter().map(|lack| lack.fact).collect::<Vec<_>>(), ["CPUs that may serve interrupts"]);
}

#[test]
fn lines_that_a_script_pins_under_an_irqbalance_without_a_ban() {
    let rule = &irqbalance_against_you::RULE;
    let quiet = || went("1", "1");
    silent(&quiet(), rule);
    let mut fixture = pinned(quiet());
    let found = one(&fixture, rule);
    assert_eq!((found.severity, found.confidence), (Severity::Note, Confidence::Possible));
    assert_eq!(found.subject, Subject::Machine);
    assert!(found.mends[0].what.contains("/etc/default/irqbalance"), "{found:#?}");
    for line in ["irqbalance --policyscript=/etc/irq", "irqbalance -i 3", "irqbalance -m ice"] {
        daemon(&mut fixture, line);
        silent(&fixture, rule);
    }
    fixture.programs = None;
    silent(&fixture, rule);
}

#[test]
fn irqbalance_is_the_cause_of_interrupts_on_another_node() {
    let mut fixture = moved(20_000);
    // All of them were taken by CPU 6.
    for (sample, count) in [(&mut fixture.before, 0), (&mut fixture.now, 20_000)] {
        sample.interrupts[0].by_cpu = vec![(CpuId::new(6), count)];
    }
    one(&fixture, &irq_remote::RULE);
    let found = crate::Diagnosis::new(&fixture.situation(), &[]);
    let ids = |findings: &[RuleFinding]| findings.iter().map(|found| found.rule).collect::<Vec<_>>();
    assert_eq!(ids(&found.findings), ["irqbalance-against-you"]);
    assert_eq!(ids(&found.findings[0].explains), ["irq-remote"]);
    assert_eq!(
        found.findings[0].severity,
        Severity::Warning,
        "a note has the severity of the warning that it explains"
    );
}
