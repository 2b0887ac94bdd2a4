//! An advice in words: what the text of `advise` and its JSON share.

use std::time::Duration;

use nodewise_diagnose::advice::{Advice, Condition, Flip, InForce, Profile};
use nodewise_diagnose::finding::{Mend, Subject};
use nodewise_diagnose::knowledge::{Application, OwnOption};
use nodewise_machine::placement::Placement;
use nodewise_machine::printable::quote;

use super::doctor::{subject, value};

/// The program that the advice is for.
#[derive(Clone, Debug)]
pub enum AdvisedProgram<'a> {
    /// A process that was watched.
    Process(&'a Subject),
    /// A program that was not started: the path of its file.
    File(&'a str),
}

/// The placement in the words of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// `run` is the command line of nodewise; the others are tools of `run --emit`.
    pub tool: &'static str,
    pub text: String,
    pub notes: Vec<String>,
}

/// An advice, and what a reader has to know beside it.
#[derive(Clone, Debug)]
pub struct AdviceReport<'a> {
    pub program: AdvisedProgram<'a>,
    /// Other processes of the same name or unit: the largest one was chosen.
    pub others: usize,
    /// The time watched; `None`: one moment.
    pub window: Option<Duration>,
    /// The end of the window, since the beginning of 1970; `None` where it is not known.
    pub taken_at: Option<Duration>,
    pub profile: &'a Profile,
    pub advice: &'a Advice,
    pub application: Option<&'a Application>,
    /// `None` for a program that does not run.
    pub in_force: Option<InForce>,
    pub recipes: &'a [Recipe],
    pub at_once: &'a [Mend],
    /// The command that decides between placements.
    pub ask: Option<String>,
    /// The command that would watch a program which was not started.
    pub trial: Option<String>,
}

impl AdviceReport<'_> {
    /// The program in words: `"mysqld" (2417)`.
    pub fn name(&self) -> String {
        match self.program {
            AdvisedProgram::Process(process) => subject(process),
            AdvisedProgram::File(path) => quote(path),
        }
    }

    /// The placement in words.
    pub fn placement(&self) -> String {
        let name = |placement: &Placement| placement.name(&self.profile.scope);
        match &self.advice.placements[..] {
            [] => self.advice.row.title.to_owned(),
            [only] => name(only),
            several => {
                let names: Vec<String> = several.iter().map(name).collect();
                format!("{} instances: {}", several.len(), names.join("; "))
            }
        }
    }

    /// The conclusion: the program, and the placement that it should have.
    pub fn conclusion(&self) -> String {
        match self.program {
            AdvisedProgram::Process(_) => format!("{}: {}", self.name(), self.placement()),
            AdvisedProgram::File(_) => {
                format!("{}: not started; until it was watched: {}", self.name(), self.placement())
            }
        }
    }

    /// The reason in two sentences: the row's, and that of the program.
    pub fn reason(&self) -> String {
        match self.application {
            Some(application) => {
                format!("{} {}: {}", self.advice.row.because, application.name, application.reason)
            }
            None => self.advice.row.because.to_owned(),
        }
    }

    /// The settings of the program itself that go with the placement.
    pub fn options(&self) -> Vec<&OwnOption> {
        let policy = self.advice.placements.first().and_then(|placement| placement.policy.as_ref());
        let options = self.application.iter().flat_map(|application| &application.options);
        options.filter(|option| policy.is_some_and(|policy| option.when.suits(policy.mode))).collect()
    }

    /// Rows that might hold, and the facts that would say so.
    pub fn undecided(&self) -> Vec<String> {
        let open = self.advice.undecided.iter();
        open.map(|open| {
            format!("row {} ({}): {} not known", open.row.number, open.row.title, open.lacks.join(", "))
        })
        .collect()
    }
}

/// A value that would lead to another row, in words.
pub fn flip(flip: &Flip) -> String {
    let way = if flip.is_above { "above" } else { "below" };
    let at = value(&flip.quantity.value(flip.at));
    format!("row {} ({}) with {} {way} {at}", flip.row.number, flip.row.title, flip.quantity.name())
}

/// A condition with its value: `its memory fits node 2 (4 GiB, limit 51.2 GiB)`.
pub fn condition(condition: &Condition) -> String {
    match condition.edge {
        Some(edge) => {
            let show = |number| value(&edge.quantity.value(number));
            format!("{} ({}, limit {})", condition.words, show(edge.value), show(edge.at))
        }
        None => condition.words.clone(),
    }
}
