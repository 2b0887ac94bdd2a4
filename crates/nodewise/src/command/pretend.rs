//! `nodewise pretend`: puts the machine's files over the kernel's, and becomes the program.

use std::process::Command;

use nodewise_pretend::{CallsError, FAKED, Fact, PretendError, REAL};
use nodewise_source::tree::Tree;
use nodewise_source::written::picture::picture;
use nodewise_source::{Detail, user_namespaces};
use nodewise_syscall::{Setup, StartError};

use super::run::not_executed;
use crate::cli::Global;
use crate::cli::pretend::Pretend;
use crate::failure::{Failure, Outcome};
use crate::{input, output};

/// The components that hwloc uses, a list; `-NAME` leaves one out.
const HWLOC_COMPONENTS: &str = "HWLOC_COMPONENTS";

/// Runs the verb. Returns only when the program was not started.
pub fn run(args: &Pretend, global: &Global) -> Outcome {
    let Some((program, arguments)) = args.command.split_first() else {
        if args.explain {
            output::print(&explanation())?;
            return Ok(0);
        }
        return Err(Failure::usage(
            "no program to run: nodewise pretend --machine M -- PROGRAM [ARGUMENT]...",
        ));
    };
    if input::is_live(&global.machine) {
        return Err(Failure::usage(
            "no machine to pretend: --machine takes a capture, a machine file or a spec",
        ));
    }
    let input = input::load(&global.machine, Detail::Full)?;
    if args.explain {
        output::narrate(&explanation());
    }
    let here = Tree::live();
    let picture = picture(&input.machine, input.tree(), &here);
    nodewise_pretend::enter(&picture).map_err(|error| refused(&error, &here))?;
    if !args.files_only {
        nodewise_pretend::answer_calls(&input.machine, &picture).map_err(|error| unanswered(&error))?;
    }
    let mut command = Command::new(program);
    command.args(arguments);
    // hwloc's component for x86 asks each CPU for its caches, and the real ones contradict the files.
    if std::env::var_os(HWLOC_COMPONENTS).is_none() {
        command.env(HWLOC_COMPONENTS, "-x86");
    }
    Err(match Setup::new().exec(command) {
        StartError::Setup(error) => Failure::cannot(error),
        StartError::Start(error) => not_executed(program, &error),
    })
}

/// The two lists in columns.
fn explanation() -> String {
    let width = FAKED.iter().chain(REAL).map(|fact| fact.name.len()).max().unwrap_or_default();
    let list = |title: &str, facts: &[Fact]| {
        let lines = facts.iter().map(|fact| format!("  {:width$}  {}\n", fact.name, fact.shown));
        format!("{title}\n{}", lines.collect::<String>())
    };
    format!("{}\n{}", list("The machine's", FAKED), list("Real", REAL))
}

/// Why calls cannot be answered, and what helps.
fn unanswered(error: &CallsError) -> Failure {
    Failure::cannot(format_args!(
        "memory policies and affinity cannot be answered: {error}; --files-only shows the machine's files alone"
    ))
}

/// The cause, and what helps against it.
fn refused(error: &PretendError, here: &Tree) -> Failure {
    if matches!(error, PretendError::Nested) {
        return Failure::cannot(error);
    }
    let help = match user_namespaces::switched_off(here) {
        Some(switch) => format!(
            "{name} is {forbids} here; root can change it: sysctl {name}={permits}",
            name = switch.name,
            forbids = switch.forbids,
            permits = switch.permits
        ),
        None => {
            "a container may forbid it, which docker run --security-opt seccomp=unconfined changes".to_owned()
        }
    };
    Failure::cannot(format_args!("{error}; {help}; nodewise lab needs no namespace"))
}
