//! Wrong usage, reported like every other message: what is wrong, where, and what would be right.
//!
//! clap finds out what is wrong. Its own words repeat what was typed as it is, which must not reach
//! a terminal, and look like nothing else that nodewise says.

use std::ffi::OsString;
use std::fmt;
use std::num::ParseIntError;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory as _};
use nodewise_machine::nearest::nearest;
use nodewise_machine::printable::{printable, quote};

use crate::cli::Cli;

/// The verbs that were typed, as far as they are any: `nodewise workload stream`. Verbs are where
/// clap sees them, not at the first word without a dash: that one may be the value of an option.
pub fn typed_verbs(command: Command) -> Vec<String> {
    let matches = command.ignore_errors(true).try_get_matches();
    let mut verbs = vec!["nodewise".to_owned()];
    let mut at: Option<&ArgMatches> = matches.as_ref().ok();
    while let Some((verb, below)) = at.and_then(ArgMatches::subcommand) {
        verbs.push(verb.to_owned());
        at = Some(below);
    }
    verbs
}

/// Says in one sentence why the words that followed a verb are wrong.
pub fn sentence(error: &clap::Error, verbs: &[impl AsRef<str>]) -> String {
    let verb = verbs.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ");
    let all = |kind| texts(error, kind);
    let first = |kind| all(kind).into_iter().next();
    let argument = first(ContextKind::InvalidArg).map(|text| option(&text)).unwrap_or_default();
    let value = first(ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = first(ContextKind::InvalidSubcommand).unwrap_or_default();
            let known = command_of(verbs);
            let near = nearest(&typed, known.get_subcommands().map(Command::get_name));
            // clap lists the most alike last.
            let alike = || all(ContextKind::SuggestedSubcommand).pop();
            let meant = meant(near.map(str::to_owned).or_else(alike));
            format!("{} is not a verb of {verb}{meant}", quote(&typed))
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            let known = command_of(verbs);
            let name = argument.trim_start_matches('-');
            let options = known.get_arguments().filter(|option| !option.is_hide_set());
            let near = nearest(name, options.filter_map(Arg::get_long)).map(|name| format!("--{name}"));
            let meant = meant(near.or_else(|| first(ContextKind::SuggestedArg)));
            format!("{} is not an option of {verb}{meant}", printable(&argument))
        }
        ErrorKind::UnknownArgument => format!("{verb} has no use for {}", quote(&argument)),
        ErrorKind::InvalidValue if value.is_empty() => {
            let whole = first(ContextKind::InvalidArg).unwrap_or_default();
            format!("{argument} needs a value: {}", whole.replace(['<', '>'], ""))
        }
        ErrorKind::InvalidValue => {
            let valid = all(ContextKind::ValidValue);
            let meant = meant(nearest(&value, valid.iter().map(String::as_str)));
            format!("{argument}: {} is not one of {}{meant}", quote(&value), valid.join(", "))
        }
        ErrorKind::ValueValidation => format!("{argument}: {}", why_not(error, &value)),
        ErrorKind::TooManyValues => format!("{argument} takes no value: got {}", quote(&value)),
        ErrorKind::MissingRequiredArgument => {
            let needed = all(ContextKind::InvalidArg);
            let who = asking(verbs, &needed).unwrap_or(verb);
            format!("{who} needs {}", needed.join(" and ").replace(['<', '>'], "").replace("|--", " or --"))
        }
        ErrorKind::ArgumentConflict => match first(ContextKind::PriorArg).map(|text| option(&text)) {
            // An option of a verb beside a verb below it.
            Some(prior) if argument.is_empty() => {
                let below = first(ContextKind::InvalidSubcommand).unwrap_or_default();
                format!("{prior} and {} cannot be used together", printable(&below))
            }
            Some(prior) if prior != argument => format!("{argument} and {prior} cannot be used together"),
            _ => format!("{argument} is given twice"),
        },
        ErrorKind::InvalidUtf8 => {
            format!("a word for {verb} is not UTF-8: names of files and programs alone can be anything else")
        }
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            printable(line.strip_prefix("error: ").unwrap_or(line)).into_owned()
        }
    }
}

/// The verb that was typed, with its options and the verbs below it.
fn command_of(verbs: &[impl AsRef<str>]) -> Command {
    let mut at = Cli::command();
    at.build();
    for verb in verbs.iter().skip(1) {
        match at.find_subcommand(verb.as_ref()) {
            Some(below) => at = below.clone(),
            None => break,
        }
    }
    at
}

/// The option that cannot do without others, which clap does not say: the first that asks for them when it is
/// typed alone, where the verb alone does not.
fn asking(verbs: &[impl AsRef<str>], needed: &[String]) -> Option<String> {
    let needs = |option: &[OsString]| {
        let words = verbs.iter().map(|verb| OsString::from(verb.as_ref())).chain(option.iter().cloned());
        let error = Cli::command().try_get_matches_from(words).err()?;
        let is_missing = error.kind() == ErrorKind::MissingRequiredArgument;
        is_missing.then(|| texts(&error, ContextKind::InvalidArg))
    };
    if needs(&[]).is_some_and(|alone| alone == needed) {
        return None;
    }
    let matches = Cli::command().ignore_errors(true).try_get_matches().ok()?;
    let own = verbs.iter().skip(1).try_fold(&matches, |at, verb| at.subcommand_matches(verb.as_ref()))?;
    let known = command_of(verbs);
    known.get_arguments().find_map(|option| {
        let long = option.get_long()?;
        let id = option.get_id().as_str();
        let is_typed = own.value_source(id) == Some(ValueSource::CommandLine);
        let takes_value = option.get_action().takes_values();
        let value = is_typed.then(|| own.get_raw(id).and_then(|mut values| values.next()))?;
        let mut word = OsString::from(format!("--{long}"));
        if let Some(value) = value.filter(|_| takes_value) {
            word.push("=");
            word.push(value);
        }
        (needs(&[word])? == needed).then(|| format!("--{long}"))
    })
}

/// A guess at what was meant, as the end of a sentence.
fn meant(guess: Option<impl fmt::Display>) -> String {
    guess.map_or(String::new(), |guess| format!(": did you mean {guess}?"))
}

/// Why a value was not taken. Parsers of ours speak for themselves; the standard library's leaves
/// out what it read.
fn why_not(error: &clap::Error, value: &str) -> String {
    match std::error::Error::source(error) {
        Some(source) if source.is::<ParseIntError>() => format!("{} is not a whole number", quote(value)),
        Some(source) => in_range(&printable(&source.to_string())),
        None => format!("{} cannot be used", quote(value)),
    }
}

/// clap's `0 is not in 1..=9` in words; other sentences stay as they are.
fn in_range(sentence: &str) -> String {
    let parts =
        sentence.split_once(" is not in ").and_then(|(value, range)| Some((value, range.split_once("..=")?)));
    match parts {
        Some((value, (least, most))) => format!("{value} is out of range: expected {least} to {most}"),
        None => sentence.to_owned(),
    }
}

/// An option without the name of its value: `--runs` of `--runs <N>`, `--file` of `--file[=<FOLDER>]`.
fn option(text: &str) -> String {
    let end = if text.starts_with('-') { text.find([' ', '=']) } else { None };
    let name = &text[..end.unwrap_or(text.len())];
    // A value that may be left out has a bracket in front of its `=`.
    name.strip_suffix('[').filter(|_| text[name.len()..].starts_with('=')).unwrap_or(name).to_owned()
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn check(typed: &str, expected: &str) {
        let words: Vec<&str> = typed.split(' ').collect();
        let error = Cli::command().try_get_matches_from(words).unwrap_err();
        let verbs = ["nodewise", "show"];
        assert_eq!(sentence(&error, &verbs), expected, "{typed}");
    }

    #[test]
    fn each_kind_of_wrong_usage_has_its_sentence() {
        check("nodewise shw", "\"shw\" is not a verb of nodewise show: did you mean show?");
        check("nodewise show --jsn", "--jsn is not an option of nodewise show: did you mean --json?");
        check("nodewise show --jsn=1", "--jsn is not an option of nodewise show: did you mean --json?");
        check("nodewise show there", "nodewise show has no use for \"there\"");
        check("nodewise show --svg", "--svg needs a value: --svg FILE");
        check("nodewise --color red", "--color: \"red\" is not one of auto, always, never");
        check("nodewise show --svg a --json", "--svg and --json cannot be used together");
        check(
            "nodewise bandwidth --file --huge-pages=never",
            "--file and --huge-pages cannot be used together",
        );
        check("nodewise bandwidth --huge=never --file", "--huge-pages and --file cannot be used together");
        check("nodewise run -m 0 -m 1 x", "--membind is given twice");
        check("nodewise run --localalloc=1 x", "--localalloc takes no value: got \"1\"");
        check("nodewise capture", "nodewise show needs --output FILE");
        check("nodewise tune --runs x", "--runs: \"x\" is not a whole number");
        check("nodewise doctor --once rules", "--once and rules cannot be used together");
        check(
            "nodewise tune --runs 4294967296",
            "--runs: 4294967296 is out of range: expected 1 to 4294967295",
        );
        check(
            "nodewise workload chase --size 1Z",
            "--size: \"1Z\" is not a size: expected a number of bytes, or one with K, M, G or T as in 512M",
        );
    }

    #[test]
    fn nothing_that_was_typed_reaches_a_terminal_as_it_is() {
        check("nodewise \u{1b}[2J", "\"\\x1b[2J\" is not a verb of nodewise show");
        check("nodewise show --\u{1b}[2J", "--\\x1b[2J is not an option of nodewise show");
        check("nodewise show \u{1b}[2J", "nodewise show has no use for \"\\x1b[2J\"");
        check("nodewise tune --runs \u{1b}[2J", "--runs: \"\\x1b[2J\" is not a whole number");
    }
}
