//! `--ignore ID[:SUBJECT]`: findings that the user knows.

use nodewise_diagnose::diagnosis;
use nodewise_diagnose::finding::{RuleFinding, Subject};
use nodewise_machine::NodeSet;

use super::catalogue;
use crate::failure::Failure;

/// A rule, or its findings about one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ignored {
    rule: &'static str,
    subject: Option<String>,
}

impl Ignored {
    /// Reads what was typed. Subjects hold colons (`net:eth0`), rules do not.
    ///
    /// # Errors
    /// A rule that does not exist, and no subject behind the colon.
    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        let (id, subject) = match text.split_once(':') {
            Some((_, "")) => {
                return Err(Failure::usage(
                    "--ignore: expected a subject after the colon, such as 0, 4121 or net:eth0",
                ));
            }
            Some((id, subject)) => (id, Some(subject.to_owned())),
            None => (text, None),
        };
        Ok(Self { rule: catalogue::rule(id)?.id, subject })
    }

    fn is(&self, finding: &RuleFinding) -> bool {
        self.rule == finding.rule
            && self.subject.as_ref().is_none_or(|wanted| is_about(&finding.subject, wanted))
    }
}

fn is_about(subject: &Subject, wanted: &str) -> bool {
    match subject {
        Subject::Machine => wanted == "machine",
        Subject::Nodes(nodes) => wanted.parse::<NodeSet>().is_ok_and(|wanted| wanted == *nodes),
        Subject::Device(name) => name == wanted,
        Subject::Process { identity, name, owner } => {
            let is_owner = owner.name().is_some_and(|owner| {
                owner == wanted || owner.strip_suffix(".service").is_some_and(|owner| owner == wanted)
            });
            is_owner || name == wanted || wanted.parse() == Ok(identity.pid.number())
        }
    }
}

/// Takes the findings that are ignored out of the others. Those that one of them explains are findings of their own
/// then.
pub(super) fn take(findings: &mut Vec<RuleFinding>, ignored: &[Ignored]) -> Vec<RuleFinding> {
    let (mut kept, mut taken) = (Vec::new(), Vec::new());
    for mut finding in findings.drain(..) {
        taken.extend(take(&mut finding.explains, ignored));
        if ignored.iter().any(|ignored| ignored.is(&finding)) {
            kept.append(&mut finding.explains);
            taken.push(finding);
        } else {
            kept.push(finding);
        }
    }
    diagnosis::sort(&mut kept);
    *findings = kept;
    taken
}

#[cfg(test)]
mod tests {
    use nodewise_diagnose::Pid;
    use nodewise_diagnose::finding::{Owner, Severity};
    use nodewise_diagnose::sample::Identity;

    use super::*;

    fn about(rule: &'static str, subject: Subject) -> RuleFinding {
        RuleFinding::new(rule, Severity::Warning, subject, "x")
    }

    fn process() -> Subject {
        let identity = Identity { pid: Pid::new(733), started_ticks: 1 };
        Subject::Process { identity, name: "java".into(), owner: Owner::Service("app.service".into()) }
    }

    fn rules_left(findings: &[RuleFinding], ignored: &[&str]) -> (Vec<&'static str>, usize) {
        let ignored: Vec<Ignored> = ignored.iter().map(|text| Ignored::read(text).unwrap()).collect();
        let mut findings = findings.to_vec();
        let taken = take(&mut findings, &ignored).len();
        (findings.iter().map(|finding| finding.rule).collect(), taken)
    }

    #[test]
    fn a_subject_is_named_as_its_users_name_it() {
        let nodes = Subject::Nodes("1,3".parse().unwrap());
        for (subject, right, wrong) in [
            (process(), vec!["733", "java", "app", "app.service"], vec!["73", "jav", "machine", "0"]),
            (nodes, vec!["1,3"], vec!["1", "1-3", "3,x"]),
            (Subject::Device("net:eth0".into()), vec!["net:eth0"], vec!["eth0", "net"]),
            (Subject::Machine, vec!["machine"], vec!["0", "this machine"]),
        ] {
            for (words, expected) in [(right, true), (wrong, false)] {
                for word in words {
                    assert_eq!(is_about(&subject, word), expected, "{word}: {subject:?}");
                }
            }
        }
    }

    #[test]
    fn ignored_findings_are_taken_also_from_below_others() {
        let mut stranded = about("memory-stranded", process());
        stranded.explains = vec![about("bound-away", process())];
        let full = about("node-at-watermark", Subject::Nodes("1".parse().unwrap()));
        let found = [stranded, full];
        let both = vec!["memory-stranded", "node-at-watermark"];
        assert_eq!(rules_left(&found, &[]), (both.clone(), 0));
        assert_eq!(rules_left(&found, &["bound-away"]), (both.clone(), 1));
        let lifted = vec!["bound-away", "node-at-watermark"];
        assert_eq!(rules_left(&found, &["memory-stranded:java"]), (lifted, 1));
        assert_eq!(rules_left(&found, &["memory-stranded:python"]), (both, 0));
        let all = ["node-at-watermark:1", "memory-stranded", "bound-away"];
        assert_eq!(rules_left(&found, &all), (vec![], 3));
    }

    #[test]
    fn what_is_no_rule_is_refused_with_the_nearest() {
        let message = |text: &str| Ignored::read(text).unwrap_err().message;
        assert!(message("swap-while-fre").contains("did you mean swap-while-free?"));
        assert!(message("swap-while-free:").contains("after the colon"));
        assert!(message("\u{1b}[2J").contains("\\x1b[2J"));
    }
}
