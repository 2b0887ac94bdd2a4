//! Completion of a command line that is being typed: `nodewise __complete`, which the completions of shells call.
//!
//! Shells give the words up to the one that is being typed, or the line as it was typed. The answer is a
//! line with the [kind](CompletionKind) of what else fits, then a line for each word that fits, with its meaning behind a tab.
//! Verbs and options come from the command line's own definition; nodes, devices and processes from the machine, the
//! one behind `--machine` where that was typed. All of it is best effort: what cannot be read is not offered, and
//! nothing is printed about it.

mod typed;
mod values;

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory as _};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::printable;

use crate::cli::Cli;
use crate::output;

/// The word that asks for an answer. It is outside of the table of verbs, so that it costs other starts nothing.
const WORD: &str = "__complete";

/// Everything that fits in addition to the words of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompletionKind {
    /// Nothing else.
    #[default]
    Words,
    /// Names of files.
    Files,
    /// Names of directories.
    Directories,
    /// Names of programs.
    Programs,
}

impl CompletionKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Files => "files",
            Self::Directories => "directories",
            Self::Programs => "programs",
        }
    }
}

/// All that fits: words with their meanings, and a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    kind: CompletionKind,
    /// In alphabetical order.
    words: BTreeMap<String, String>,
}

impl Answer {
    const fn of_kind(kind: CompletionKind) -> Self {
        Self { kind, words: BTreeMap::new() }
    }

    fn offer(&mut self, word: impl Into<String>, meaning: impl Into<String>) {
        self.words.insert(word.into(), meaning.into());
    }

    fn offer_verbs(&mut self, command: &Command) {
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            self.offer(verb.get_name(), verb.get_about().map(ToString::to_string).unwrap_or_default());
        }
    }

    /// The lines for the shell, for words that begin with `begun`; its first `behind` bytes are left out, which the
    /// shell keeps.
    fn lines(&self, begun: &str, behind: usize) -> String {
        let kept = begun.get(behind..).unwrap_or_default();
        let mut lines = format!("{}\t{kept}\n", self.kind.word());
        for (word, meaning) in self.words.iter().filter(|(word, _)| word.starts_with(begun)) {
            let meaning = printable(meaning.lines().next().unwrap_or_default());
            lines += &format!("{}\t{meaning}\n", printable(&word[behind..]));
        }
        lines
    }
}

/// Answers, when that is what the program was started for.
pub fn by_word() -> Option<u8> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != WORD {
        return None;
    }
    let _ = output::print(&reply(words.collect()));
    Some(0)
}

/// The lines for what follows `__complete`: `--line LINE [BREAKS]`, or `--` and words.
fn reply(arguments: Vec<OsString>) -> String {
    let arguments: Vec<String> =
        arguments.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match &arguments[..] {
        [form, line, rest @ ..] if form == "--line" => {
            let words = typed::words(line);
            let breaks = rest.first().map_or("", String::as_str);
            let begun = words.last().map_or("", String::as_str);
            // Readline replaces only what is behind the last of its breaks.
            let behind = begun.rfind(|c| "=:".contains(c) && breaks.contains(c)).map_or(0, |at| at + 1);
            answer(words.get(1..).unwrap_or_default()).lines(begun, behind)
        }
        [form, words @ ..] if form == "--" => answer(words).lines(words.last().map_or("", String::as_str), 0),
        _ => Answer::default().lines("", 0),
    }
}

/// Completions of the last of the words.
fn answer(words: &[String]) -> Answer {
    let mut root = Cli::command();
    root.build();
    let Some((begun, whole)) = words.split_last() else { return Answer::default() };
    let mut at = Position::new(&root);
    for word in whole {
        at.pass(word);
    }
    at.offer(begun)
}

/// Where in a command line the next word is.
struct Position<'c> {
    command: &'c Command,
    /// Words that were neither verbs nor options.
    positional: usize,
    /// An option whose value comes next.
    waiting: Option<&'c Arg>,
    /// All that follows belongs to a program.
    is_program: bool,
    /// Words of that program.
    of_program: usize,
    /// Only positional words follow.
    is_past_options: bool,
    /// The machine that was named.
    machine: Option<String>,
}

impl<'c> Position<'c> {
    const fn new(command: &'c Command) -> Self {
        Self {
            command,
            positional: 0,
            waiting: None,
            is_program: false,
            of_program: 0,
            is_past_options: false,
            machine: None,
        }
    }

    /// Goes past a whole word.
    fn pass(&mut self, word: &str) {
        if self.is_program {
            self.of_program += 1;
        } else if let Some(option) = self.waiting.take() {
            self.note(option, word);
        } else if word == "--" && !self.is_past_options {
            self.is_past_options = true;
            self.is_program = self.program().is_some();
        } else if word.starts_with('-') && word.len() > 1 && !self.is_past_options {
            self.pass_option(word);
        } else if let Some(verb) = self.command.find_subcommand(word).filter(|_| self.positional == 0) {
            self.command = verb;
        } else {
            self.is_program = self.next_positional().is_some_and(Arg::is_trailing_var_arg_set);
            self.of_program = usize::from(self.is_program);
            self.positional += 1;
        }
    }

    fn pass_option(&mut self, word: &str) {
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let Some(option) = self.option(name) else { return };
        match value {
            Some(value) => self.note(option, value),
            None if option.get_action().takes_values() => {
                let is_optional = option.get_num_args().is_some_and(|count| count.min_values() == 0);
                self.waiting = (!is_optional).then_some(option);
            }
            None => {}
        }
    }

    fn note(&mut self, option: &Arg, value: &str) {
        if option.get_id() == "machine" {
            self.machine = Some(value.to_owned());
        }
    }

    fn option(&self, name: &str) -> Option<&'c Arg> {
        let long = name.strip_prefix("--");
        let short = name.strip_prefix('-').filter(|_| long.is_none()).and_then(|rest| rest.chars().last());
        self.command.get_arguments().find(|option| match long {
            Some(long) => option.get_long_and_visible_aliases().unwrap_or_default().contains(&long),
            None => short.is_some() && option.get_short() == short,
        })
    }

    /// The argument that takes a program and its own words.
    fn program(&self) -> Option<&'c Arg> {
        let mut positionals = self.command.get_positionals();
        positionals.find(|argument| argument.is_trailing_var_arg_set() || argument.is_last_set())
    }

    /// The argument that takes the next word that is neither verb nor option.
    fn next_positional(&self) -> Option<&'c Arg> {
        let positionals = || self.command.get_positionals().filter(|argument| !argument.is_last_set());
        let last =
            || positionals().last().filter(|last| last.get_num_args().is_some_and(|n| n.max_values() > 1));
        positionals().nth(self.positional).or_else(last)
    }

    /// Completions of a word with this beginning.
    fn offer(&self, begun: &str) -> Answer {
        if self.is_program {
            return Answer::of_kind(if self.of_program == 0 {
                CompletionKind::Programs
            } else {
                CompletionKind::Files
            });
        }
        if let Some(option) = self.waiting {
            return values::values(option, begun, self.machine.as_deref());
        }
        if let Some((name, value)) = begun.split_once('=').filter(|_| begun.starts_with("--")) {
            let Some(option) = self.option(name) else { return Answer::default() };
            let mut answer = values::values(option, value, self.machine.as_deref());
            let words = std::mem::take(&mut answer.words);
            answer.words =
                words.into_iter().map(|(word, meaning)| (format!("{name}={word}"), meaning)).collect_map();
            return answer;
        }
        if begun.starts_with('-') && !self.is_past_options {
            return self.options();
        }
        let mut answer = match self.next_positional() {
            Some(argument) if argument.is_trailing_var_arg_set() => Answer::of_kind(CompletionKind::Programs),
            Some(argument) => values::values(argument, begun, self.machine.as_deref()),
            None => Answer::default(),
        };
        if self.positional == 0 {
            answer.offer_verbs(self.command);
        }
        answer
    }

    fn options(&self) -> Answer {
        let mut answer = Answer::default();
        for option in self.command.get_arguments().filter(|option| !option.is_hide_set()) {
            let meaning = option.get_help().map(ToString::to_string).unwrap_or_default();
            if let Some(long) = option.get_long() {
                answer.offer(format!("--{long}"), &meaning);
            }
            if let Some(short) = option.get_short() {
                answer.offer(format!("-{short}"), meaning);
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests;
