//! A diagnosis in words and counts: what the text of `doctor` and its JSON share.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nodewise_diagnose::finding::{Mend, Owner, RuleFinding, Severity, Subject, Value};
use nodewise_diagnose::rule::Lack;
use nodewise_diagnose::sample::Unread;
use nodewise_diagnose::situation::Class;
use nodewise_diagnose::thresholds::{ReplacedThreshold, RuleThreshold};
use nodewise_diagnose::{Diagnosis, Rule};
use nodewise_machine::check::node_names;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, Machine};

use super::counts::plural;
use super::running::words::{duration, grouped, percent};

/// Findings that the text shows at most, unless all are wanted.
pub const MOST: usize = 10;

/// A diagnosis, and what a reader has to know beside it.
#[derive(Clone, Copy)]
pub struct DoctorReport<'a> {
    pub diagnosis: &'a Diagnosis,
    pub machine: &'a Machine,
    /// The end of the window, since the beginning of 1970; `None` where it is not known.
    pub taken_at: Option<Duration>,
    /// The file in place of the running system.
    pub source: Option<&'a str>,
    /// Facts that could not be read.
    pub unread: &'a [Unread],
    /// Findings that the user does not want to see.
    pub ignored: &'a [RuleFinding],
    /// Findings about other processes than those that were asked for.
    pub others: usize,
    /// Whether the text shows all findings.
    pub all: bool,
    /// The file of thresholds, as a shell takes its name.
    pub thresholds: Option<&'a str>,
}

/// A fact that rules lack, and those rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LackingRules<'a> {
    pub lack: &'a Lack,
    pub rules: Vec<&'static str>,
}

/// A fact that rules lack about some processes, while they know it about others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LackingProcesses<'a> {
    pub lacking: LackingRules<'a>,
    pub processes: Vec<&'a Subject>,
}

impl<'a> DoctorReport<'a> {
    /// The findings by severity, the worst first; a severity without any is left out.
    pub fn counts(&self) -> Vec<(Severity, usize)> {
        let count = |severity| {
            let of_it = self.diagnosis.findings.iter().filter(|finding| finding.severity == severity);
            (severity, of_it.count())
        };
        Severity::ALL.into_iter().rev().map(count).filter(|(_, count)| *count > 0).collect()
    }

    /// The conclusion: what was found.
    pub fn conclusion(&self) -> String {
        let diagnosis = self.diagnosis;
        let counts = self.counts();
        if !counts.is_empty() {
            let words = counts.into_iter().map(|(severity, count)| match severity {
                Severity::Critical | Severity::Info => format!("{count} {}", severity.word()),
                Severity::Warning | Severity::Note => plural(count, severity.word()),
            });
            return words.collect::<Vec<_>>().join(", ");
        }
        if !diagnosis.examined.is_empty() {
            let nothing = match self.ignored.len() + self.others {
                0 => "nothing wrong was found",
                _ => "nothing else wrong was found",
            };
            let examined = diagnosis.examined.len();
            return match examined + diagnosis.not_examined.len() {
                all if all == examined => nothing.to_owned(),
                all => format!("{nothing} ({examined} of {all} rules examined)"),
            };
        }
        if diagnosis.not_examined.is_empty() && diagnosis.class != Class::NoNodes {
            return "no rule applies to this machine".to_owned();
        }
        "nothing could be examined".to_owned()
    }

    /// Whether no rule could speak, though some should.
    pub fn is_void(&self) -> bool {
        let diagnosis = self.diagnosis;
        diagnosis.examined.is_empty()
            && (diagnosis.class == Class::NoNodes || !diagnosis.not_examined.is_empty())
    }

    /// The machine and the window: `4 nodes (real, 2 packages), Linux 6.12, 10 s watched`.
    pub fn scene(&self) -> String {
        let mut parts = vec![match (self.diagnosis.class, self.machine.nodes.len()) {
            (Class::NoNodes, _) => "no NUMA node is described".to_owned(),
            (Class::One, _) => "1 node".to_owned(),
            (class, nodes) => {
                let packages = match self.machine.packages().len() {
                    0 => String::new(),
                    packages => format!(", {}", plural(packages, "package")),
                };
                format!("{} ({}{packages})", plural(nodes, "node"), class.word())
            }
        }];
        parts.extend(self.machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
        parts.push(match self.diagnosis.window {
            Some(window) if window < Duration::from_secs(60) => {
                format!("{:.1} s watched", window.as_secs_f64())
            }
            Some(window) => format!("{} watched", duration(window)),
            None => "one moment".to_owned(),
        });
        parts.extend(self.source.map(|source| format!("from {source}")));
        parts.join(", ")
    }

    /// The findings that the text shows.
    pub fn shown(&self) -> &'a [RuleFinding] {
        let findings = &self.diagnosis.findings;
        if self.all { findings } else { &findings[..findings.len().min(MOST)] }
    }

    /// The facts that rules lack, that of the most rules first.
    pub fn lacking(&self) -> Vec<LackingRules<'a>> {
        let mut lacks: BTreeMap<&Lack, Vec<&'static str>> = BTreeMap::new();
        for (rule, of_rule) in &self.diagnosis.not_examined {
            for lack in of_rule.iter().collect_set() {
                lacks.entry(lack).or_default().push(rule.id);
            }
        }
        let mut lacking: Vec<_> =
            lacks.into_iter().map(|(lack, rules)| LackingRules { lack, rules }).collect();
        lacking.order_by_key(|lacking| Reverse(lacking.rules.len()));
        lacking
    }

    /// The facts that rules lack about single processes, that of the most processes first.
    pub fn lacking_about_processes(&self) -> Vec<LackingProcesses<'a>> {
        let mut lacks: BTreeMap<&Lack, (BTreeSet<&'static str>, BTreeSet<&Subject>)> = BTreeMap::new();
        for left_out in &self.diagnosis.left_out {
            let (rules, processes) = lacks.entry(&left_out.lack).or_default();
            rules.insert(left_out.rule);
            processes.insert(&left_out.process);
        }
        let of = |(lack, (rules, processes)): (_, (BTreeSet<_>, BTreeSet<_>))| LackingProcesses {
            lacking: LackingRules { lack, rules: rules.into_iter().collect() },
            processes: processes.into_iter().collect(),
        };
        let mut lacking: Vec<_> = lacks.into_iter().map(of).collect();
        lacking.order_by_key(|lacking| Reverse(lacking.processes.len()));
        lacking
    }

    /// The line of `--brief`, without its end.
    pub fn brief(&self) -> String {
        let mut text = format!("nodewise: {}", self.conclusion());
        let shown = self.shown();
        let findings: Vec<String> =
            shown.iter().map(|finding| format!("{} {}", finding.rule, subject(&finding.subject))).collect();
        if !findings.is_empty() {
            text.push_str(": ");
            text.push_str(&findings.join("; "));
        }
        match self.diagnosis.findings.len() - shown.len() {
            0 => {}
            left => text.push_str(&format!("; {left} more")),
        }
        text
    }
}

/// A subject in words: `node 1`, `"mysqld" (2417)`.
pub fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Machine => "this machine".to_owned(),
        Subject::Nodes(nodes) => node_names(nodes.iter()),
        Subject::Process { identity, name, .. } => format!("{} ({})", quote(name), identity.pid),
        Subject::Device(name) => name.clone(),
    }
}

/// The owner of a process's placement, where that is not the process.
pub fn owner(subject: &Subject) -> Option<String> {
    let Subject::Process { owner, .. } = subject else { return None };
    match owner {
        Owner::Itself => None,
        Owner::Service(name) => Some(name.clone()),
        Owner::Container(program, id) => {
            let short: String = id.chars().take(12).collect();
            Some(format!("{program} container {short}"))
        }
        Owner::Kubelet => Some("a pod of the kubelet".to_owned()),
        Owner::Slurm => Some("a step of Slurm".to_owned()),
        Owner::Libvirt(name) => Some(format!("virtual machine {name}")),
    }
}

/// A value with its unit.
pub fn value(value: &Value) -> String {
    let counted = |number: String, unit: &str| {
        if unit.is_empty() { number } else { format!("{number} {unit}") }
    };
    match value {
        Value::Size(size) => size.to_string(),
        Value::Share(share) => percent(*share),
        Value::Rate(rate, unit) => format!("{}/s", counted(grouped(*rate), unit)),
        // Counts are whole; `grouped` gives small numbers a decimal.
        Value::Count(count, unit) if *count < 1000 => counted(count.to_string(), unit),
        Value::Count(count, unit) => counted(grouped(*count as f64), unit),
        Value::Text(words) => words.clone(),
    }
}

/// A threshold that a file replaced: `stranded_share 30 %, by default 10 %`.
pub fn replaced(of: &ReplacedThreshold) -> String {
    let unit = of.threshold.unit;
    let words = |number| value(&Value::in_unit(number, unit));
    format!("{} {}, by default {}", of.threshold.name(), words(of.value), words(of.threshold.default))
}

/// A threshold of the catalogue, as a file would set it, with its meaning.
pub fn threshold(of: &RuleThreshold) -> String {
    let RuleThreshold { default, least, most, about, origin, .. } = of;
    let unit = of.unit.word();
    format!("{} = {default} ({unit}, {least} to {most}): {about}; {origin}", of.name())
}

/// When a mend works, who may run it, and what it moves.
pub fn price(mend: &Mend) -> String {
    let mut parts = vec![mend.scope.words().to_owned()];
    if mend.needs_root {
        parts.push("needs root".to_owned());
    }
    parts.extend(mend.moves.filter(|size| size.get() > 0).map(|size: Bytes| format!("moves {size}")));
    parts.join(", ")
}

/// The rule of a finding, for its sources.
pub fn rule_of(finding: &RuleFinding) -> Option<&'static Rule> {
    nodewise_diagnose::rules::ALL.iter().copied().find(|rule| rule.id == finding.rule)
}

/// The command that shows whether a mend worked, with the same file of thresholds.
pub fn check_of(finding: &RuleFinding, thresholds: Option<&str>) -> String {
    let thresholds = thresholds.map(|file| format!(" --thresholds {file}")).unwrap_or_default();
    format!("nodewise doctor --rule {}{thresholds}", finding.rule)
}

/// The classes of machines on which a rule can speak; `None`: on every one.
pub fn classes(rule: &Rule) -> Option<Vec<&'static str>> {
    let all = [Class::NoNodes, Class::One, Class::Emulated, Class::Real, Class::Tiered];
    let on: Vec<_> = all.into_iter().filter(|class| (rule.on)(*class)).map(Class::word).collect();
    (on.len() < all.len()).then_some(on)
}
