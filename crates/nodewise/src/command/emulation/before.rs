//! State that `verify --against` compares with: a machine as it was, or figures that were saved then.

use std::path::Path;

use nodewise_experiment::suite::SHIPPED;
use nodewise_experiment::suite::parse::parse;
use nodewise_experiment::suite::session::Session;
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, KernelRelease, Machine, NodeSet};
use nodewise_model::Release;
use nodewise_model::policy::system;
use nodewise_source::Detail;
use nodewise_view::digest::emulation::{Brought, Figures};

use super::facts::Facts;
use crate::command::compare::{self, circumstances};
use crate::failure::Failure;
use crate::measuring;

/// How a saved session begins to differ from any machine.
const SESSION: &str = "\"schema\": \"nodewise.suite/";
/// The bytes of a file that are read for it.
const HEAD: usize = 200;

/// A time before the emulation.
pub(super) enum Before {
    Machine(Box<Machine>),
    /// A session of `nodewise compare`, with the path of its file.
    Figures(Box<Session>, String),
}

impl Before {
    /// Reads a machine file, a capture, or a session.
    ///
    /// # Errors
    /// What is none of them.
    pub(super) fn read(path: &str) -> Result<Self, Failure> {
        let file = Path::new(path);
        let text = if file.is_file() { measuring::read_saved("--against", file).ok() } else { None };
        if let Some(text) = text.filter(|text| text.chars().take(HEAD).collect::<String>().contains(SESSION))
        {
            let session = compare::session("--against", file, &text)?;
            return Ok(Self::Figures(Box::new(session), path.to_owned()));
        }
        let machine = nodewise_source::input::load(path, Detail::Full);
        let machine = machine.map_err(|error| Failure::usage(format_args!("--against: {error}")))?;
        Ok(Self::Machine(Box::new(machine)))
    }

    /// Compares that time with now.
    pub(super) fn brought(&self, now: &Machine, facts: &Facts) -> Brought {
        let policy = self.policy().zip(facts.policy.clone());
        let kernels = self.kernel().zip(now.kernel.as_ref().map(|kernel| kernel.text().to_owned()));
        let memory = match self {
            Self::Machine(before) => total(before).zip(total(now)),
            Self::Figures(..) => None,
        };
        Brought {
            nodes: (self.nodes(), now.nodes.len()),
            memory,
            kernel: kernels.filter(|(before, now)| before != now),
            policy,
            figures: self.figures(),
        }
    }

    fn nodes(&self) -> Option<usize> {
        match self {
            Self::Machine(before) => Some(before.nodes.len()),
            Self::Figures(before, _) => {
                Some(before.settings.get(circumstances::NODES)?.parse::<NodeSet>().ok()?.len())
            }
        }
    }

    fn kernel(&self) -> Option<String> {
        let kernel = match self {
            Self::Machine(before) => before.kernel.as_ref(),
            Self::Figures(before, _) => before.conditions.kernel.as_ref(),
        };
        kernel.map(|kernel: &KernelRelease| kernel.text().to_owned())
    }

    /// The policy of a new process: of a machine the one that its kernel makes of what it was asked for.
    fn policy(&self) -> Option<String> {
        match self {
            Self::Machine(before) => {
                let kernel = before.kernel.as_ref().filter(|_| before.settings.command_line.is_some())?;
                let policy = system::initial_policy(before, Release::from_kernel(Some(kernel)));
                Some(policy.effective().to_string())
            }
            Self::Figures(before, _) => before.settings.get(circumstances::POLICY).cloned(),
        }
    }

    fn figures(&self) -> Figures {
        match self {
            Self::Figures(before, path) => {
                let is_it = |source: &str| parse(source).is_ok_and(|suite| suite.title == before.suite);
                let shipped = SHIPPED.iter().find(|(_, source)| is_it(source));
                let suite = shipped.map_or("FILE.toml", |(name, _)| *name);
                let against = printable(path);
                Figures::Command(format!("nodewise compare --suite {suite} --against {against}"))
            }
            Self::Machine(_) => Figures::NotSaved(
                "not saved then: nodewise compare --suite board --save figures.json does, and verify --against figures.json names the command that compares them",
            ),
        }
    }
}

/// The memory of all nodes.
fn total(machine: &Machine) -> Option<Bytes> {
    let sizes: Option<Vec<u64>> =
        machine.nodes.keys().map(|node| machine.memory_of(*node).map(Bytes::get)).collect();
    sizes.map(|sizes| Bytes::new(sizes.iter().sum()))
}
