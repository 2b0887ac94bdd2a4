//! The differences between the circumstances of two sessions, besides what was changed on purpose.

use std::collections::BTreeSet;

use crate::suite::session::Session;
use nodewise_machine::conditions::Conditions;
use nodewise_machine::order::CollectOrdered as _;

/// A circumstance that is not the same before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name: `kernel`, `governor`.
    pub what: String,
    /// Before; `None` where it is not known.
    pub before: Option<String>,
    pub after: Option<String>,
}

/// The circumstances that differ, those of [`Conditions`] first. What is known of neither side does not
/// count; what is known of one side only does.
pub fn differences(before: &Session, after: &Session) -> Vec<Difference> {
    let own = known(&before.conditions).into_iter().zip(known(&after.conditions));
    let own = own.map(|((what, before), (_, after))| (what.to_owned(), before, after));
    let mut names: Vec<&String> = before.settings.keys().chain(after.settings.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let others = names
        .into_iter()
        .map(|name| (name.clone(), before.settings.get(name).cloned(), after.settings.get(name).cloned()));
    own.chain(others)
        .chain(tools(before, after))
        .filter(|(_, before, after)| before != after)
        .map(|(what, before, after)| Difference { what, before, after })
        .collect()
}

/// The programs that both sessions needed, with their versions: another version is another benchmark as
/// far as its figures go. What only one session noted of all of them is reported at once.
fn tools(before: &Session, after: &Session) -> Vec<(String, Option<String>, Option<String>)> {
    // A program that the other session did not run has no version there to differ from.
    let all = |session: &Session, other: &Session| {
        let known = session.tools.iter().filter(|(program, _)| may_run(other, program));
        let known: BTreeSet<&str> = known.filter_map(|(_, version)| version.as_deref()).collect_set();
        (!known.is_empty()).then(|| known.into_iter().collect::<Vec<_>>().join(", "))
    };
    if before.tools.is_empty() || after.tools.is_empty() {
        return vec![("programs".to_owned(), all(before, after), all(after, before))];
    }
    let both = before.tools.iter().filter_map(|(program, version)| {
        Some((program.clone(), version.clone(), after.tools.get(program)?.clone()))
    });
    both.collect()
}

/// Whether a program is in a command of a session; that may be where it was not kept what was run.
fn may_run(session: &Session, program: &str) -> bool {
    let is_in = |text: &String| {
        text.split(|c: char| !c.is_ascii_alphanumeric() && !"-_+.".contains(c)).any(|word| word == program)
    };
    session.cases.iter().any(|case| {
        case.definition.as_ref().is_none_or(|definition| {
            let before = definition.prepare.iter().chain(&definition.prepare_each);
            before.chain([&definition.command]).any(is_in)
        })
    })
}

/// The circumstances by name, always the same names. When a session began and how busy the machine was
/// are not among them: they differ every time.
fn known(conditions: &Conditions) -> [(&'static str, Option<String>); 10] {
    let set = |text: String| (!text.is_empty()).then_some(text);
    [
        ("kernel", conditions.kernel.as_ref().map(|kernel| kernel.text().to_owned())),
        ("architecture", conditions.architecture.clone()),
        ("CPU", conditions.cpu_model.clone()),
        ("hypervisor", conditions.hypervisor.clone()),
        ("governor", set(conditions.governors.join(", "))),
        ("transparent huge pages", conditions.transparent_hugepage.clone()),
        ("numa_balancing", conditions.numa_balancing.map(|value| value.to_string())),
        ("CPUs that may be used", conditions.allowed_cpus.as_ref().map(ToString::to_string)),
        ("nodes that may be used", conditions.allowed_nodes.as_ref().map(ToString::to_string)),
        ("nodewise", conditions.nodewise_version.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::{record, session};
    use crate::suite::definition::Definition;

    #[test]
    fn what_differs_is_named_and_what_is_the_same_is_not() {
        let mut before = session(&[], 1);
        let mut after = before.clone();
        before.conditions.governors = vec!["powersave".to_owned()];
        after.conditions.governors = vec!["performance".to_owned()];
        after.conditions.numa_balancing = Some(0);
        before.conditions.load = Some(0.1);
        before.settings.insert("nodes".to_owned(), "1".to_owned());
        after.settings.insert("nodes".to_owned(), "8".to_owned());
        before.settings.insert("microcode".to_owned(), "0x1".to_owned());
        after.settings.insert("microcode".to_owned(), "0x1".to_owned());
        let found: Vec<(String, Option<String>, Option<String>)> =
            differences(&before, &after).into_iter().map(|one| (one.what, one.before, one.after)).collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                ("governor".to_owned(), text("powersave"), text("performance")),
                ("numa_balancing".to_owned(), None, text("0")),
                ("nodes".to_owned(), text("1"), text("8")),
            ]
        );
        assert_eq!(differences(&before, &before), []);
    }

    #[test]
    fn other_versions_of_the_programs_are_told_and_those_of_one_session_only_at_once() {
        let text = |text: &str| Some(text.to_owned());
        let with = |tools: &[(&str, Option<&str>)]| {
            let tool = |(program, version): &(&str, Option<&str>)| {
                ((*program).to_owned(), version.map(str::to_owned))
            };
            Session { tools: tools.iter().map(tool).collect(), ..session(&[], 1) }
        };
        let check = |before: &Session,
                     after: &Session,
                     expected: &[(&str, Option<String>, Option<String>)]| {
            let found = differences(before, after);
            let found: Vec<(&str, Option<String>, Option<String>)> =
                found.iter().map(|one| (one.what.as_str(), one.before.clone(), one.after.clone())).collect();
            assert_eq!(found, expected);
        };
        let old = with(&[("gcc", Some("gcc 12")), ("pigz", Some("pigz 2.6")), ("xz", Some("xz-utils 5.4"))]);
        let new = with(&[("gcc", None), ("xz", Some("xz-utils 5.6")), ("zstd", Some("zstd 1.5"))]);
        check(
            &old,
            &new,
            &[("gcc", text("gcc 12"), None), ("xz", text("xz-utils 5.4"), text("xz-utils 5.6"))],
        );
        let ran = |commands: &[&str], tools: &[(&str, Option<&str>)]| {
            let cases = ["a", "b"].map(|name| record(name, 1, &[&[&[1.0, 1.0]]]));
            let mut session = session(&cases, 1);
            session.tools = with(tools).tools;
            session.cases.truncate(commands.len());
            for (case, command) in session.cases.iter_mut().zip(commands) {
                case.definition = Some(definition(command));
            }
            session
        };
        let versions = [("xz", Some("xz-utils 5.6")), ("zstd", Some("zstd 1.5"))];
        let both = ran(&["xz -T{threads} in", "sh -c 'cat in | zstd'"], &versions);
        check(
            &ran(&["/usr/bin/xz -9 in", "zstd in"], &[]),
            &both,
            &[("programs", None, text("xz-utils 5.6, zstd 1.5"))],
        );
        // One benchmark alone, which needs no program: nothing has changed.
        check(&both, &ran(&["nodewise workload stream"], &[]), &[]);
        check(&both, &ran(&["xz in"], &[]), &[("programs", text("xz-utils 5.6"), None)]);
        check(&with(&[]), &with(&[]), &[]);
    }

    fn definition(command: &str) -> Definition {
        Definition {
            command: command.to_owned(),
            prepare: None,
            prepare_each: None,
            metric: "wall".to_owned(),
            inputs: std::collections::BTreeMap::new(),
        }
    }
}
