//! `docs/options.md`: all options, from clap's own data.
//!
//! `SNAPSHOTS=overwrite cargo test -p nodewise --bin nodewise options` writes the page; without the variable
//! the test compares it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};
use nodewise_machine::order::CollectOrdered as _;

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
    let mut page = "# Options\n\nAll options of all verbs in alphabetical order, generated from the definition of the command line. \
                    An option means the same for every verb that has it: the words before the first punctuation mark \
                    are the same everywhere, and what follows is about the verb. Exceptions:\n\n"
        .to_owned();
    for (long, reason) in MEANINGS {
        page += &format!("- `--{long}`: {reason}\n");
    }
    page += "\n`nodewise help TOPIC` explains the forms of values.\n\n\
             ## Forms of results\n\n\
             `--json` has everything, `--csv` the rows. `--svg` and `--png` are for results with a shape: a matrix, a curve, a \
             machine, memory by node; lists of zones, orders, findings and tables of the firmware have none. `--from` reads \
             back a saved measurement or a recording. Predictions (`explain`, `simulate`, `zones`, `zonelist`, `acpi`) have \
             no `--from`: save the machine with `capture`, and `--machine` computes them again, by the rules of any kernel. \
             Advice (`advise`) and changes (`migrate`, `balance`, `shm`, `emulation`) have parts of many kinds and no \
             `--csv`. Verbs without a row print texts alone, or write files of other formats.\n\n";
    page += &forms();
    page += "\n## All options\n\n\
             | option | verbs | value | default | meaning |\n|---|---|---|---|---|\n";
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

/// A table of the forms that the result of each verb has; verbs without any have no row.
fn forms() -> String {
    const FORMS: [&str; 5] = ["json", "csv", "svg", "png", "from"];
    let mut verbs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (row, of) in rows() {
        for verb in of {
            verbs
                .entry(verb)
                .or_default()
                .extend(Some(row.long.clone()).filter(|long| FORMS.contains(&&**long)));
        }
    }
    let mut table = "| verb | text | `--json` | `--csv` | `--svg` | `--png` | `--from` |\n|---|---|---|---|---|---|---|\n".to_owned();
    for (verb, has) in verbs.iter().filter(|(_, has)| !has.is_empty()) {
        let cells = FORMS.map(|form| if has.contains(form) { "yes" } else { "-" });
        table += &format!("| `{verb}` | yes | {} |\n", cells.join(" | "));
    }
    table
}

#[test]
fn a_result_with_rows_has_csv_and_one_with_csv_has_json() {
    let table = forms();
    let row = |verb: &str| -> Vec<String> {
        let line = table.lines().find(|line| line.starts_with(&format!("| `{verb}` |")));
        line.unwrap_or_else(|| panic!("{verb}:\n{table}")).split(" | ").map(str::to_owned).collect()
    };
    for verb in
        ["show", "diff", "doctor", "explain", "zones", "zonelist", "simulate", "acpi", "latency", "tune"]
    {
        assert_eq!(row(verb)[2..4], ["yes", "yes"], "{verb}");
    }
    let mut with_csv = table.lines().filter(|line| line.split(" | ").nth(3) == Some("yes"));
    assert!(with_csv.all(|line| line.split(" | ").nth(2) == Some("yes")), "{table}");
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

/// Options whose values have several forms, with the reason.
const FORMS: [(&str, &str); 8] = [
    ("against", "`fleet report` compares directories"),
    ("count", "`lab` counts cache lines, where others take a number"),
    ("from", "io compares several files, each with a label"),
    ("kernel", "the lab boots an image as well, where others need only the rules of a release"),
    ("kind", "`lab --check` plays several kinds of scripts, memory is of one kind"),
    ("output", "`fleet plan` writes a directory of scripts"),
    ("pid", "`explain` takes a name as well, where others take several numbers"),
    ("threads", "tune tries several numbers"),
];

/// Options with more than one meaning, with the reason.
const MEANINGS: [(&str, &str); 9] = [
    ("against", "`fleet report` compares directories"),
    ("all", "`balance undo` acts on everything, the other verbs show everything"),
    ("count", "the number of what the verb makes: nodes, or intervals; `lab` counts cache lines"),
    ("explain", "`run` explains a placement, `pretend` what the program sees"),
    ("force", "`hugepages undo` overwrites settings, the other verbs overwrite files"),
    ("kernel", "`lab` boots the release, the other verbs model it"),
    ("kind", "`lab --check` has kinds of scripts, `explain` kinds of memory"),
    ("output", "`fleet plan` writes a directory of scripts"),
    ("pid", "`explain` is about one process, the other verbs leave all others out"),
];

/// The part of a help text that must be the same for all verbs: up to the first punctuation mark.
fn meaning(help: &str) -> &str {
    help.split([',', ':', ';', '(']).next().unwrap_or_default().trim_end()
}

/// Compares one property of each option over all verbs. `exceptions` must be exactly the options that differ.
fn check_same(property: impl Fn(&Row) -> String, exceptions: &[(&str, &str)]) {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows().into_keys() {
        found.entry(row.long.clone()).or_default().insert(property(&row));
    }
    found.retain(|_, values| values.len() > 1);
    let known: BTreeSet<&str> = exceptions.iter().map(|(long, _)| *long).collect_set();
    let differing: BTreeSet<&str> = found.keys().map(String::as_str).collect_set();
    assert_eq!(differing, known, "{found:#?}");
}

#[test]
fn an_option_takes_one_form_of_value_in_all_verbs() {
    check_same(|row| row.value.clone(), &FORMS);
}

#[test]
fn an_option_means_the_same_in_all_verbs() {
    check_same(|row| meaning(&row.meaning).to_owned(), &MEANINGS);
}
