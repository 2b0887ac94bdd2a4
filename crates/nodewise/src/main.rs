//! The `nodewise` command.
#![forbid(unsafe_code)]

mod cli;
mod command;
mod failure;
mod huge;
mod input;
mod live;
mod output;
mod placement;
mod progress;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};

use cli::{Cli, Verb};
use failure::{NOT_STARTED, Outcome};

fn main() -> ExitCode {
    let matches = match Cli::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return usage(&error),
    };
    let parsed = match Cli::from_arg_matches(&matches) {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error),
    };
    match dispatch(&parsed, &matches) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            output::tell(&failure.message);
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(parsed: &Cli, matches: &ArgMatches) -> Outcome {
    let global = &parsed.global;
    match &parsed.verb {
        None => command::show::overview(global),
        Some(Verb::Show(args)) => command::show::run(args, global),
        Some(Verb::Capture(args)) => command::capture::run(args, global),
        Some(Verb::Run(args)) => command::run::run(args, global, own(matches)),
        Some(Verb::Tune(args)) => command::tune::run(args, global),
        Some(Verb::Workload(args)) => command::workload::run(args, global),
        Some(Verb::Lab(args)) => command::lab::run(args, global),
    }
}

/// What was typed for the verb itself.
fn own(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, own)| own)
}

/// Prints help, version or a usage error. `run` and `lab` have their own code for failing, so that
/// their callers can tell it from the program's.
fn usage(error: &clap::Error) -> ExitCode {
    let verb = std::env::args_os().skip(1).find(|word| !word.to_string_lossy().starts_with('-'));
    let _ = error.print();
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        _ if verb.is_some_and(|verb| verb == "run" || verb == "lab") => ExitCode::from(NOT_STARTED),
        _ => ExitCode::from(failure::USAGE),
    }
}
