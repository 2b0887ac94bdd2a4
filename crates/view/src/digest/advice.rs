//! An advice in words: what the text of `advise` and its JSON share.

use std::time::Duration;

use nodewise_diagnose::advice::{Advice, Condition, Flip, InForce, Profile};
use nodewise_diagnose::balance::Means;
use nodewise_diagnose::finding::{Mend, Subject};
use nodewise_diagnose::knowledge::{Application, OwnOption};
use nodewise_machine::check::node_names;
use nodewise_machine::placement::Placement;
use nodewise_machine::plural::plural;
use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, CpuSet};

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

/// The undoable part of an advice: planned, or applied.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedAdvice {
    /// Whether the steps were only planned.
    pub is_dry: bool,
    pub means: Means,
    /// The CPUs that the process has before.
    pub cpus: Option<CpuSet>,
    /// Bytes per second at most.
    pub rate: Bytes,
    /// The rest, each with the reason.
    pub left: Vec<String>,
    /// Why this user could not apply it.
    pub missing_rights: Option<String>,
    /// `None`: nothing was done to the process.
    pub end: Option<AppliedEnd>,
    /// The file for its unit's next start.
    pub drop_in: Option<AppliedDropIn>,
    /// Commands that take it back.
    pub undo: Vec<String>,
}

/// The end of an applied advice.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedEnd {
    /// Its number in the journal of `balance`.
    pub id: u64,
    pub ending: String,
    pub moved: Bytes,
    pub failed: Bytes,
    /// Threads whose CPUs were set.
    pub threads: usize,
    pub took: Duration,
    /// Whether all of it was done.
    pub is_whole: bool,
}

/// A drop-in of systemd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedDropIn {
    pub path: String,
    /// The difference, as `patch` reads it.
    pub diff: String,
    pub is_written: bool,
    /// Commands for a person, which are not run.
    pub next: Vec<String>,
}

impl AppliedAdvice {
    /// The steps for the running process, in words.
    pub fn steps(&self) -> Vec<String> {
        let seconds = |size: Bytes| {
            let seconds = size.get() as f64 / self.rate.get().max(1) as f64;
            format!("{size} at most, at {}/s: about {:.0} s", self.rate, seconds.ceil())
        };
        let pages = self.means.pages.iter().map(|pages| {
            format!("move pages of node {} to node {}: {}", pages.from, pages.to, seconds(pages.size))
        });
        let spread = self.means.spread.iter().map(|spread| {
            format!("spread its pages over {}: {}", node_names(&spread.over), seconds(spread.size))
        });
        let cpus = self.means.cpus.iter().map(|(cpus, nodes)| {
            let held = self.cpus.as_ref().map_or_else(String::new, |held| format!(", instead of {held}"));
            format!("keep its threads on CPUs {cpus} ({}){held}", node_names(nodes))
        });
        pages.chain(spread).chain(cpus).collect()
    }

    /// The result in one line.
    pub fn result(&self) -> String {
        if self.is_dry {
            return "dry run: nothing was changed".to_owned();
        }
        let Some(end) = &self.end else { return "nothing to do to the running process".to_owned() };
        let mut words = format!("{} moved", end.moved);
        if end.threads > 0 {
            words.push_str(&format!(", {} bound", plural(end.threads, "thread")));
        }
        if end.took > Duration::ZERO {
            words.push_str(&format!(", in {:.1} s", end.took.as_secs_f64()));
        }
        if end.failed > Bytes::new(0) {
            words.push_str(&format!("; {} could not be moved", end.failed));
        }
        if !end.is_whole {
            words.push_str(&format!("; ended early: {}", end.ending));
        }
        words
    }
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
    /// With `--apply`.
    pub applied: Option<&'a AppliedAdvice>,
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
