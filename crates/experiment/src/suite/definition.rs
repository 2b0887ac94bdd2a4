//! Definition of a benchmark, kept with its figures: a comparison of two sessions is one of the machine
//! only where both have run the same.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::quote;

use super::Case;
use super::command::Command;
use super::input::{Content, Input};
use crate::metric::Metric;

/// The facts that decide the figures of a case besides its threads and the machine. Commands as they are
/// in the suite, with their places not filled in: not fit for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub command: String,
    /// The command before the first run.
    pub prepare: Option<String>,
    pub prepare_each: Option<String>,
    /// The compared quantity: `wall`, or the pattern of a number that is printed.
    pub metric: String,
    /// The inputs that its commands name, each with what it is generated from.
    pub inputs: BTreeMap<String, String>,
}

/// The longest command that a sentence repeats, in bytes.
const LONGEST: usize = 60;

impl Definition {
    /// Of a case.
    pub fn from_case(case: &Case<'_>) -> Self {
        let benchmark = case.benchmark;
        let text = |command: &Command| command.text().to_owned();
        let used = |input: &&Input| benchmark.commands().any(|command| command.names(&input.place()));
        let inputs = case.inputs.iter().filter(used);
        Self {
            command: text(&benchmark.command),
            prepare: benchmark.prepare.as_ref().map(text),
            prepare_each: benchmark.prepare_each.as_ref().map(text),
            metric: match &benchmark.metric.metric {
                Metric::Printed(pattern, _) => pattern.text().to_owned(),
                _ => "wall".to_owned(),
            },
            inputs: inputs.map(|input| (input.name.clone(), source(input))).collect_map(),
        }
    }

    /// How another differs from this one, as a sentence that is fit to be shown; `None` where it does not.
    pub fn change(&self, after: &Self) -> Option<String> {
        let optional = |text: &Option<String>| text.clone().unwrap_or_default();
        let parts = [
            ("command", self.command.clone(), after.command.clone()),
            ("prepare", optional(&self.prepare), optional(&after.prepare)),
            ("prepare-each", optional(&self.prepare_each), optional(&after.prepare_each)),
            ("metric", self.metric.clone(), after.metric.clone()),
            ("input", inputs_text(&self.inputs), inputs_text(&after.inputs)),
        ];
        let changed: Vec<String> = parts
            .into_iter()
            .filter(|(_, before, after)| before != after)
            .map(|(what, before, after)| match before.len().max(after.len()) > LONGEST {
                true => format!("its {what} has changed"),
                false => format!("its {what} was {} and is {}", quote(&before), quote(&after)),
            })
            .collect();
        (!changed.is_empty()).then(|| changed.join(", "))
    }
}

/// Describes what an input is generated from.
fn source(input: &Input) -> String {
    match input.content {
        Content::Text { size } => format!("text of {} bytes, seed {}", size.get(), input.seed),
        Content::C { files } => format!("C program of {files} files, seed {}", input.seed),
    }
}

fn inputs_text(inputs: &BTreeMap<String, String>) -> String {
    inputs.iter().map(|(name, source)| format!("{name}: {source}")).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::parse::parse;

    const SUITE: &str = "title = 't'\n[[input]]\nname = 'a'\nkind = 'text'\nsize = '1M'\nseed = 3\n\
        [[input]]\nname = 'b'\nkind = 'c'\nfiles = 2\n\
        [[benchmark]]\nname = 'x'\ncommand = 'xz {inputs}/a'\nmetric = 'v: ([0-9]+)'\nbetter = 'higher'\n";

    fn definition(text: &str) -> Definition {
        Definition::from_case(&parse(text).unwrap().cases(2)[0])
    }

    #[test]
    fn a_benchmark_is_defined_by_what_it_runs_and_the_inputs_it_names() {
        let expected = Definition {
            command: "xz {inputs}/a".to_owned(),
            prepare: None,
            prepare_each: None,
            metric: "v: ([0-9]+)".to_owned(),
            inputs: [("a".to_owned(), "text of 1048576 bytes, seed 3".to_owned())].into(),
        };
        assert_eq!(definition(SUITE), expected);
    }

    #[test]
    fn every_change_of_what_is_run_is_told() {
        let check = |old: &str, new: &str, expected: Option<&str>| {
            let change = definition(SUITE).change(&definition(&SUITE.replace(old, new)));
            assert_eq!(change.as_deref(), expected);
        };
        check("title = 't'", "title = 'u'", None);
        check("files = 2", "files = 3", None);
        check("'xz {", "'xz -9 {", Some("its command was \"xz {inputs}/a\" and is \"xz -9 {inputs}/a\""));
        check("'v: (", "'w: (", Some("its metric was \"v: ([0-9]+)\" and is \"w: ([0-9]+)\""));
        check(
            "seed = 3",
            "seed = 4",
            Some(
                "its input was \"a: text of 1048576 bytes, seed 3\" and is \"a: text of 1048576 bytes, seed 4\"",
            ),
        );
        check(
            "better =",
            "prepare-each = 'sync'\nbetter =",
            Some("its prepare-each was \"\" and is \"sync\""),
        );
        let long = format!("'xz {} {{", "-v".repeat(40));
        check("'xz {", &long, Some("its command has changed"));
    }
}
