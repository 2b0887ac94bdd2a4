//! Rules to findings: those that can speak are asked, causes take their effects under them, the worst comes first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, NodeId};

use crate::finding::{Confidence, RuleFinding, Severity, Subject};
use crate::rule::{Fact, Lack, Rule};
use crate::rules;
use crate::situation::{Class, NodeState, Situation};
use crate::thresholds::ReplacedThreshold;

/// A smaller part of the machine's memory is a note at most.
const SMALL: f64 = 0.01;

/// The findings of rules, and the rules that could not speak.
pub struct Diagnosis {
    pub class: Class,
    pub window: Option<Duration>,
    /// The worst first.
    pub findings: Vec<RuleFinding>,
    /// Rules that spoke or were silent.
    pub examined: Vec<&'static Rule>,
    /// Rules that lacked a fact.
    pub not_examined: Vec<(&'static Rule, Vec<Lack>)>,
    /// Processes that matter, about which rules that were examined lacked a fact.
    pub left_out: Vec<LeftOut>,
    /// Rules about other machines.
    pub elsewhere: usize,
    /// Processes that were there, those whose pages are known, and those that matter.
    pub processes: [usize; 3],
    /// Memory of nodes, for those who want to know what nothing was found about.
    pub nodes: BTreeMap<NodeId, NodeState>,
    pub interrupts: usize,
    pub devices: usize,
    /// Thresholds that a file replaced.
    pub replaced: Vec<ReplacedThreshold>,
}

/// A process about which a rule lacks a fact.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    pub rule: &'static str,
    pub process: Subject,
    pub lack: Lack,
}

impl Diagnosis {
    /// Asks every rule, or those that are named.
    pub fn new(situation: &Situation<'_>, only: &[String]) -> Self {
        let wanted =
            rules::ALL.iter().copied().filter(|rule| only.is_empty() || only.iter().any(|id| id == rule.id));
        let (mut examined, mut not_examined, mut elsewhere) = (Vec::new(), Vec::new(), 0);
        let (mut findings, mut left_out) = (Vec::new(), Vec::new());
        for rule in wanted {
            if !(rule.on)(situation.class) {
                elsewhere += 1;
                continue;
            }
            let lacks = rule.lacks(situation);
            if lacks.is_empty() {
                examined.push(rule);
                let replaced: Vec<_> = situation.thresholds().replaced().collect();
                let found = (rule.check)(situation).into_iter().map(|mut finding| {
                    let is_its = |of: &&ReplacedThreshold| rule.thresholds.contains(&of.threshold);
                    finding.replaced = replaced.iter().filter(is_its).copied().collect();
                    hedge(finding, rule, situation)
                });
                findings.extend(found);
                left_out.extend(situation.significant().flat_map(|process| {
                    let of = |lack| LeftOut { rule: rule.id, process: process.subject(), lack };
                    rule.lacks_of(process).into_iter().map(of)
                }));
            } else {
                not_examined.push((rule, lacks));
            }
        }
        for finding in &mut findings {
            weigh(finding, situation.total());
        }
        let users = situation.now.processes.iter().filter(|process| !process.kernel_thread).count();
        Self {
            class: situation.class,
            window: situation.window(),
            findings: fold(findings),
            examined,
            not_examined,
            left_out,
            elsewhere,
            processes: [users, situation.processes.len(), situation.significant().count()],
            nodes: situation.nodes.clone(),
            interrupts: situation.now.interrupts.len(),
            devices: situation.machine.devices.len(),
            replaced: situation.thresholds().replaced().collect(),
        }
    }

    /// Findings of at least a severity, those that others explain not counted.
    pub fn at_least(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity >= severity).count()
    }
}

/// A finding that rests on a policy which is known from the first thread only is not certain.
fn hedge(mut finding: RuleFinding, rule: &Rule, situation: &Situation<'_>) -> RuleFinding {
    let Subject::Process { identity, .. } = &finding.subject else { return finding };
    let found = situation.processes.iter().find(|process| process.process.identity == *identity);
    if rule.needs.contains(&Fact::Policies) && found.is_some_and(|process| process.infers_policies()) {
        finding.confidence = finding.confidence.min(Confidence::Likely);
    }
    finding
}

/// A warning about a small part of the machine's memory is a note.
fn weigh(finding: &mut RuleFinding, total: Bytes) {
    let is_small = finding.concerns.is_some_and(|size| (size.get() as f64) < SMALL * total.get() as f64);
    if is_small && finding.severity == Severity::Warning {
        finding.severity = Severity::Note;
    }
}

/// Puts the worst first; of equal ones, the one about the most memory.
pub fn sort(findings: &mut [RuleFinding]) {
    findings.order_by_key(|finding| Reverse((finding.severity, finding.confidence, finding.concerns)));
}

/// Whether two findings are about the same process or the same nodes, or one of them names no node.
fn touch(one: &RuleFinding, other: &RuleFinding) -> bool {
    match (&one.subject, &other.subject) {
        (Subject::Process { identity: one, .. }, Subject::Process { identity: other, .. }) => one == other,
        _ if one.nodes.is_empty() || other.nodes.is_empty() => true,
        _ => !one.nodes.is_disjoint(&other.nodes),
    }
}

/// Puts findings below those that explain them, and the worst first.
fn fold(findings: Vec<RuleFinding>) -> Vec<RuleFinding> {
    let explains = |one: &RuleFinding, other: &RuleFinding| {
        let rule = rules::ALL.iter().find(|rule| rule.id == one.rule);
        rule.is_some_and(|rule| rule.explains.contains(&other.rule)) && touch(one, other)
    };
    // A root is explained by none; each other goes to the first root that explains it or what explains it.
    let root_of = |at: usize| {
        let mut at = at;
        for _ in 0..findings.len() {
            match (0..findings.len()).find(|other| *other != at && explains(&findings[*other], &findings[at]))
            {
                Some(above) => at = above,
                None => break,
            }
        }
        at
    };
    let roots: Vec<usize> = (0..findings.len()).map(root_of).collect();
    let mut folded: Vec<Option<RuleFinding>> = findings.into_iter().map(Some).collect();
    for (at, root) in roots.into_iter().enumerate().filter(|(at, root)| at != root) {
        let Some(explained) = folded[at].take() else { continue };
        if let Some(root) = folded[root].as_mut() {
            // A note that explains a warning is no less a matter than that.
            root.severity = root.severity.max(explained.severity);
            root.explains.push(explained);
        }
    }
    let mut roots: Vec<RuleFinding> = folded.into_iter().flatten().collect();
    sort(&mut roots);
    roots
}

#[cfg(test)]
mod any;
#[cfg(test)]
mod tests;
