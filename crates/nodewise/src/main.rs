//! The `nodewise` command.
#![forbid(unsafe_code)]

mod cli;
mod command;
mod failure;
mod huge;
mod input;
mod live;
mod output;
mod personality;
mod placement;
mod progress;
mod usage;
mod zones;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use cli::{Cli, Verb};
use failure::{Failure, NOT_STARTED, Outcome};
use nodewise_compat::Tool;

fn main() -> ExitCode {
    if let Some(code) = personality::by_name() {
        return code;
    }
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
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    output::tell(&failure.message);
    ExitCode::from(failure.code)
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
        Some(Verb::Numactl(args)) => personality::by_verb(Tool::Numactl, &args.words, global),
        Some(Verb::Numastat(args)) => personality::by_verb(Tool::Numastat, &args.words, global),
        Some(Verb::Migratepages(args)) => personality::by_verb(Tool::Migratepages, &args.words, global),
        Some(Verb::Migspeed(args)) => personality::by_verb(Tool::Migspeed, &args.words, global),
        Some(Verb::Memhog(args)) => personality::by_verb(Tool::Memhog, &args.words, global),
        Some(Verb::Links(args)) => command::links::run(args),
        Some(Verb::Explain(args)) => command::explain::run(args, global),
        Some(Verb::Zonelist(args)) => command::explain::zonelist(args, global),
        Some(Verb::Zones(args)) => command::explain::zones(args, global),
    }
}

/// What was typed for the verb itself.
fn own(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, own)| own)
}

/// Prints help, version or what is wrong with the words. `run` and `lab` have their own code for
/// failing, so that their callers can tell it from the program's.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return match output::help(error) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.into()),
        };
    }
    let verbs = usage::typed_verbs(Cli::command());
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
    } else {
        let verb = verbs.join(" ");
        output::tell(&usage::sentence(error, &verb));
        output::tell(&format!("{verb} --help tells what can be typed"));
    }
    match verbs.get(1).map(String::as_str) {
        Some("run" | "lab") => ExitCode::from(NOT_STARTED),
        _ => ExitCode::from(failure::USAGE),
    }
}
