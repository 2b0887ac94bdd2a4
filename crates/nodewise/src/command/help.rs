//! `nodewise help` and `nodewise version`.

use std::ffi::OsString;

use clap::{Command, CommandFactory as _};
use nodewise_compat::Tool;
use nodewise_machine::nearest::nearest;
use nodewise_machine::printable::quote;

use crate::cli::help::{Help, Version};
use crate::cli::topics::{TOPICS, Topic};
use crate::cli::{Cli, Global};
use crate::failure::{Failure, Outcome};
use crate::personality::by_verb;
use crate::{output, version};

/// The widest text, as that of `--help`.
const WIDEST: usize = 80;

/// Runs `help`.
pub fn run(args: &Help, global: &Global) -> Outcome {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    if let [word] = words[..] {
        if let Some(topic) = TOPICS.iter().find(|topic| topic.names.contains(&word)) {
            let width = output::style(global.color).width().min(WIDEST);
            output::print(&lines(topic.text, width))?;
            return Ok(0);
        }
        if let Some(tool) = Tool::ALL.into_iter().find(|tool| tool.name() == word) {
            return by_verb(tool, &[OsString::from("--help")], global);
        }
    }
    let path = verbs(&words)?;
    let typed = ["nodewise"].into_iter().chain(path).chain(["--help"]);
    match Cli::command().try_get_matches_from(typed) {
        Err(help) if !help.use_stderr() => output::help(&help)?,
        _ => return Err(Failure::usage(format_args!("no help for {}", quote(&words.join(" "))))),
    }
    if words.is_empty() {
        output::print(&topics())?;
    }
    Ok(0)
}

/// Runs `version`.
pub fn version(_args: &Version, _global: &Global) -> Outcome {
    output::print(&version::text())?;
    Ok(0)
}

/// The words, if they are verbs, one below the other.
fn verbs<'w>(words: &[&'w str]) -> Result<Vec<&'w str>, Failure> {
    let mut at = Cli::command();
    at.build();
    let mut below = &at;
    for (depth, word) in words.iter().enumerate() {
        below = below.find_subcommand(word).ok_or_else(|| unknown(word, below, depth))?;
    }
    Ok(words.to_vec())
}

fn unknown(word: &str, parent: &Command, depth: usize) -> Failure {
    let verbs = parent.get_subcommands().map(Command::get_name);
    let topics = TOPICS.iter().flat_map(|topic| topic.names).copied().filter(|_| depth == 0);
    let words: Vec<&str> = verbs.chain(topics).collect();
    let meant = nearest(word, words).map_or(String::new(), |word| format!(": did you mean {word}?"));
    let kinds =
        if depth == 0 { "a verb or a topic".to_owned() } else { format!("a verb of {}", parent.get_name()) };
    Failure::usage(format_args!("{} is not {kinds}{meant}", quote(word)))
}

/// The list of topics, behind the help of nodewise itself.
fn topics() -> String {
    let row = |topic: &Topic| format!("  {:<13}{}\n", topic.names[0], topic.about);
    format!("\nTopics of nodewise help:\n{}", TOPICS.iter().map(row).collect::<String>())
}

/// A topic's lines, none wider than `width`; the explanation of an entry continues below itself.
fn lines(text: &str, width: usize) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let (head, rest) = line.split_at(explained_at(line));
        let mut written = head.to_owned();
        let mut is_first = true;
        for word in rest.split(' ').filter(|word| !word.is_empty()) {
            let blank = usize::from(!is_first);
            if !is_first && written.chars().count() + blank + word.chars().count() > width {
                lines.push_str(written.trim_end());
                lines.push('\n');
                written = " ".repeat(head.chars().count());
                is_first = true;
            }
            if !is_first {
                written.push(' ');
            }
            written.push_str(word);
            is_first = false;
        }
        lines.push_str(written.trim_end());
        lines.push('\n');
    }
    lines
}

/// Where the explanation of an entry begins: behind two blanks that follow its term. A paragraph begins at once,
/// and a line of blanks and words without an explanation behind its blanks.
fn explained_at(line: &str) -> usize {
    let indent = line.len() - line.trim_start().len();
    let term = &line[indent..];
    match term.find("  ").filter(|_| indent > 0) {
        Some(end) => indent + end + (term[end..].len() - term[end..].trim_start().len()),
        None => indent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_continue_below_their_explanation() {
        let text = "a paragraph of words\n\n  term  what it is in words\n  nodewise show\n";
        let expected =
            "a paragraph of\nwords\n\n  term  what it\n        is in\n        words\n  nodewise show\n";
        assert_eq!(lines(text, 15), expected);
        assert_eq!(lines(text, 80), text);
    }

    #[test]
    fn topics_are_not_verbs_and_have_one_name_each() {
        let command = Cli::command();
        let mut seen = std::collections::BTreeSet::new();
        for name in TOPICS.iter().flat_map(|topic| topic.names) {
            assert!(command.find_subcommand(name).is_none() && seen.insert(name), "{name}");
        }
    }
}
