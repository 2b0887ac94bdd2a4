//! `docs/options.md`: all options, from clap's own data.
//!
//! `SNAPSHOTS=overwrite cargo test -p nodewise --bin nodewise options` writes the page; without the variable
//! the test compares it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;

/// An option as one or several verbs take it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    long: String,
    value: String,
    default: String,
    meaning: String,
}

impl Row {
    fn new(option: &Arg) -> Option<Self> {
        let long = option.get_long().filter(|long| !option.is_hide_set() && *long != "help")?;
        let takes_value = option.get_action().takes_values();
        let names = option.get_value_names().filter(|_| takes_value).unwrap_or_default();
        let value = names.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(" ");
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        let (meaning, written) = match help.split_once(" [default: ") {
            Some((meaning, default)) => (meaning.to_owned(), default.trim_end_matches(']').to_owned()),
            None => (help, String::new()),
        };
        let values = option.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
        let default = values.collect::<Vec<_>>().join(" ");
        let default = if default.is_empty() || !takes_value { written } else { default };
        Some(Self { long: long.to_owned(), value, default, meaning })
    }
}

/// Every option with the verbs that take it in this form.
fn rows() -> BTreeMap<Row, BTreeSet<String>> {
    let mut command = Cli::command();
    command.build();
    let mut rows = BTreeMap::new();
    collect(&command, "", &mut rows);
    rows
}

fn collect(command: &Command, name: &str, rows: &mut BTreeMap<Row, BTreeSet<String>>) {
    for row in command.get_arguments().filter_map(Row::new) {
        rows.entry(row).or_default().insert(name.to_owned());
    }
    for verb in command.get_subcommands() {
        collect(verb, format!("{name} {}", verb.get_name()).trim(), rows);
    }
}

fn page() -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;").replace('\n', " ");
    let rows = rows();
    let all = rows.values().map(BTreeSet::len).max();
    let mut page = "# Options\n\nAll options of all verbs in alphabetical order, generated from the definition of the command line. With few \
                    exceptions, an option means the same for every verb that has it; one that verbs describe differently \
                    has several rows. \
                    `nodewise help TOPIC` explains the forms of values. `--from` reads back a saved measurement or a \
                    recording. Predictions (`explain`, `simulate`, `zones`, `zonelist`, `acpi`) have \
                    no `--from`: save the machine with `capture`, and `--machine` computes them again, by the rules \
                    of any kernel.\n\n\
                    | option | verbs | value | default | meaning |\n|---|---|---|---|---|\n"
        .to_owned();
    for (row, verbs) in &rows {
        let names: Vec<String> = verbs
            .iter()
            .map(|verb| format!("`{}`", if verb.is_empty() { "nodewise" } else { verb }))
            .collect();
        let verbs = if Some(verbs.len()) == all { "every verb".to_owned() } else { names.join(", ") };
        let (long, value, default, meaning) =
            (&row.long, cell(&row.value), cell(&row.default), cell(&row.meaning));
        page += &format!("| `--{long}` | {verbs} | {value} | {default} | {meaning} |\n");
    }
    page
}

#[test]
fn the_page_of_options_is_that_of_the_command_line() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/options.md");
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let wrong =
        page().lines().zip(written.lines()).find(|(now, then)| now != then).map(|(now, _)| now.to_owned());
    assert!(page() == written, "docs/options.md differs (SNAPSHOTS=overwrite writes it): {wrong:?}");
}

/// Options whose values differ between verbs, with the reason.
const FORMS: [(&str, &str); 4] = [
    ("kernel", "a release for the model, which the lab boots, or an image of it"),
    ("from", "io compares several files, each with a label, and migrate names nodes"),
    ("only", "compare names benchmarks, migrate kinds of memory"),
    ("threads", "tune tries several numbers, and stat lists the threads of processes"),
];

#[test]
fn an_option_takes_one_form_of_value_in_all_verbs() {
    let mut forms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows().into_keys() {
        forms.entry(row.long).or_default().insert(row.value);
    }
    forms.retain(|long, values| values.len() > 1 && FORMS.iter().all(|(known, _)| known != long));
    assert!(forms.is_empty(), "{forms:?}");
}
