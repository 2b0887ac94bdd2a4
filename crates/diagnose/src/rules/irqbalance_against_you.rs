//! irqbalance moves interrupts that someone pinned.

use std::collections::BTreeSet;

use nodewise_machine::printable::{printable, quote};
use nodewise_machine::{CpuSet, NodeSet};
use nodewise_source::paths::shown;
use nodewise_source::sample::ProcessSample;
use nodewise_source::site::PinningLine;

use super::words::nodes_of;
use crate::change::InterruptChange;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;
use crate::thresholds;

/// The name of the program.
pub const PROGRAM: &str = "irqbalance";
/// Lines whose commands are written out.
const MOST: usize = 64;
/// Files that are named.
const MOST_FILES: usize = 3;

pub static RULE: Rule = Rule {
    id: "irqbalance-against-you",
    title: "irqbalance moves interrupts that someone pinned",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Processes, Fact::Affinities],
    sign: "irqbalance runs, and in the window lines of a device with at least 100 interrupts a second went from CPUs of the \
           device's node to CPUs of other nodes only; or a unit, a udev rule or rc.local writes smp_affinity, and the daemon has \
           no --banirq, --banmod or --policyscript",
    thresholds: &[&thresholds::MOVED_RATE],
    traps: "lines that --banirq names: something else moved them; a script that only reads the lists, or stops irqbalance \
            first; a driver that sets its lines again",
    explains: &["irq-remote"],
    sources: &[
        "irqbalance(1) 1.9.2: --banirq, --banmod, --policyscript, --interval",
        "chef-bcpc#2115",
        "Intel's set_irq_affinity.sh: warns that irqbalance will likely override it",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    // Anybody can give a program this name; only root moves interrupts.
    let is_daemon = |process: &ProcessSample| {
        &*process.name == PROGRAM && !process.kernel_thread && process.user.is_none_or(|user| user == 0)
    };
    let daemon = situation.now.processes.iter().find(|process| is_daemon(process));
    let (Some(daemon), Some(delta)) = (daemon, &situation.delta) else {
        return Vec::new();
    };
    let program = situation.programs.and_then(|programs| programs.get(&daemon.identity));
    let words = program.and_then(|program| program.words.as_deref());
    let bans = words.map(Bans::read).unwrap_or_default();
    let site = situation.site.and_then(|site| site.pinning.known());
    let pinning = site.map(Vec::as_slice).unwrap_or_default();
    let moved = |device: &InterruptChange| moved(situation, device, daemon, &bans, pinning);
    let found: Vec<RuleFinding> = delta.interrupts.iter().filter_map(moved).collect();
    // Without its command line its bans are not known.
    let is_free = words.is_some() && !bans.is_configured;
    if found.is_empty() && is_free && !pinning.is_empty() { vec![expected(daemon, pinning)] } else { found }
}

/// Lines that a daemon leaves alone, by its command line.
#[derive(Debug, Default)]
struct Bans {
    lines: BTreeSet<u32>,
    /// It has a ban, or a script that decides.
    is_configured: bool,
}

impl Bans {
    fn read(words: &[String]) -> Self {
        let mut bans = Self::default();
        let mut words = words.iter().skip(1).map(String::as_str);
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ if word.starts_with('-') && !word.starts_with("--") && word.is_char_boundary(2) => {
                    let (name, value) = word.split_at(2);
                    (name, (!value.is_empty()).then_some(value))
                }
                _ => (word, None),
            };
            match name {
                "-i" | "--banirq" => {
                    bans.is_configured = true;
                    bans.lines
                        .extend(value.or_else(|| words.next()).and_then(|line| line.parse::<u32>().ok()));
                }
                "-m" | "--banmod" | "-l" | "--policyscript" => bans.is_configured = true,
                _ => {}
            }
        }
        bans
    }
}

/// Lines of a device that went away from its node in the window.
fn moved(
    situation: &Situation<'_>,
    device: &InterruptChange,
    daemon: &ProcessSample,
    bans: &Bans,
    pinning: &[PinningLine],
) -> Option<RuleFinding> {
    let node = device.node?;
    let near = &situation.now.node(node)?.cpus;
    let rate = situation.rate(device.count)?;
    let before = situation.before?.interrupts_of(&device.device)?;
    let now = situation.now.interrupts_of(&device.device)?;
    let was_near = |line: u32| {
        let (_, cpus) = before.allowed.iter().find(|(other, _)| *other == line)?;
        (!cpus.is_empty() && cpus.is_subset(near)).then_some(cpus)
    };
    let is_far = |cpus: &CpuSet| !cpus.is_empty() && cpus.is_disjoint(near);
    let gone = now.allowed.iter().filter(|(line, cpus)| is_far(cpus) && !bans.lines.contains(line));
    let gone: Vec<(u32, &CpuSet, &CpuSet)> =
        gone.filter_map(|(line, cpus)| Some((*line, was_near(*line)?, cpus))).collect();
    let (line, then, to) = gone.first()?;
    if rate < situation.limit(&thresholds::MOVED_RATE) {
        return None;
    }
    let far: CpuSet = gone.iter().flat_map(|(_, _, cpus)| cpus.iter()).collect();
    let summary = format!(
        "irqbalance runs, and {} of {} lines of {}, on node {node}, went to {} in the window",
        gone.len(),
        now.lines.len(),
        printable(&device.device),
        nodes_of(&far, situation.now),
    );
    let mut finding =
        RuleFinding::new(RULE.id, RULE.severity, Subject::Device(device.device.clone()), summary);
    finding.confidence = Confidence::Likely;
    let went = Value::text(format!("CPUs {then} before, CPUs {to} now"));
    finding.evidence = vec![
        Evidence::new(format!("line {line}"), went, shown::AFFINITY),
        Evidence::new("interrupts", Value::Rate(rate, "interrupts"), shown::INTERRUPTS)
            .at(situation.thresholds(), &thresholds::MOVED_RATE),
        running(daemon),
    ];
    finding.evidence.extend(pinning.iter().take(MOST_FILES).map(written));
    let lines: Vec<u32> = gone.iter().map(|(line, ..)| *line).take(MOST).collect();
    let back = gone.iter().take(MOST).map(|(line, then, _)| shown::affinity_command(*line, then));
    let again = gone.iter().take(MOST).map(|(line, _, now)| shown::affinity_command(*line, now));
    finding.mends = vec![
        ban(&lines),
        Mend {
            commands: back.collect(),
            undo: again.collect(),
            needs_root: true,
            ..Mend::words("then give the lines their CPUs back", Scope::Now)
        },
    ];
    finding.nodes = NodeSet::from_iter([node]);
    Some(finding)
}

/// Something pins interrupts at boot, and nothing keeps the daemon from them.
fn expected(daemon: &ProcessSample, pinning: &[PinningLine]) -> RuleFinding {
    let summary = "irqbalance runs without a ban, and interrupts are pinned at boot: it can move them";
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.confidence = Confidence::Possible;
    finding.evidence = vec![running(daemon)];
    finding.evidence.extend(pinning.iter().take(MOST_FILES).map(written));
    finding.mends = vec![ban(&[])];
    finding
}

fn running(daemon: &ProcessSample) -> Evidence {
    Evidence::new(PROGRAM, Value::text(format!("process {}", daemon.identity.pid)), shown::STAT)
}

fn written(line: &PinningLine) -> Evidence {
    let place = format!("{}:{}", quote(&line.path), line.line);
    Evidence::new("written at boot", Value::text(place), shown::BOOT_FILES)
}

/// Words that keep the daemon from lines: its own options, where distributions keep them.
fn ban(lines: &[u32]) -> Mend {
    let options: Vec<String> = lines.iter().map(|line| format!("--banirq={line}")).collect();
    let options = if options.is_empty() { "--banirq=LINE for each".to_owned() } else { options.join(" ") };
    Mend {
        commands: vec!["systemctl restart irqbalance".to_owned()],
        undo: vec!["systemctl restart irqbalance".to_owned()],
        needs_root: true,
        ..Mend::words(
            format!(
                "first let irqbalance leave the lines alone: in /etc/default/irqbalance (Debian, Ubuntu) or \
                 /etc/sysconfig/irqbalance (Red Hat, SUSE) IRQBALANCE_ARGS=\"{options}\". Lines can have other numbers after a \
                 reboot: --policyscript=FILE asks a script for each line, which prints ban=true, or numa_node=N to keep it on a \
                 node. The old IRQBALANCE_ARGS and a restart take it back"
            ),
            Scope::Now,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bans_are_read_as_the_daemon_reads_them() {
        let check = |line: &str, lines: &[u32], is_configured: bool| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let bans = Bans::read(&words);
            assert_eq!(
                (bans.lines, bans.is_configured),
                (lines.iter().copied().collect(), is_configured),
                "{line}"
            );
        };
        check("/usr/sbin/irqbalance --foreground", &[], false);
        check("irqbalance --banirq=40 --banirq 41 -i 42 -i43", &[40, 41, 42, 43], true);
        check("irqbalance --banmod=ice", &[], true);
        check("irqbalance -l /etc/irq", &[], true);
        check("irqbalance --policyscript=/etc/irq", &[], true);
        check("irqbalance --interval=5 -t 5 --pid=-i", &[], false);
        check("irqbalance --banirq=x --banirq", &[], true);
        check("--banirq=1", &[], false);
        check("irqbalance - -\u{e4}\u{f6} \u{e4} -- =", &[], false);
    }
}
