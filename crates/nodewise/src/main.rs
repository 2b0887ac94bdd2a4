//! The `nodewise` command.
//!
//! # Modules
//!
//! - `cli.rs` the command line, with the table of verbs; in `cli/` a file per verb, and the options that `run` and
//!   `tune --placement` share (`cli/place.rs`), or the measuring verbs (`cli/measure_options.rs`); `usage.rs` wrong
//!   usage in words
//! - `command.rs` the verbs' work: in `command/` a file per verb, from what was typed to an exit code; a
//!   policy as it is typed is `command/explain/policy.rs`, limits of control groups are `command/explain/groups.rs`
//! - `input.rs` the machine that `--machine` names, and files that an option names; `placement.rs` typed
//!   options to a placement
//! - `firmware.rs` the machine of firmware tables: `--machine acpi:DIR`, `dtb:FILE`
//! - `completion.rs` words that can follow in a shell: a line as it was typed (`completion/typed.rs`), values of options
//!   (`completion/values.rs`)
//! - `personality.rs` this program's behaviour when it is called numactl, or numactl is its verb
//! - `scenario.rs` the files of `simulate`, and those that come with nodewise, `scenario/event.rs` what an
//!   event can say
//! - `zones.rs` the zones of a machine: the kernel's own where it was asked, else the model's
//! - `supplied.rs` facts that options supply where a machine does not give them; `node_memory.rs` sizes of
//!   nodes
//! - `symbols.rs` functions and source lines of instructions, from the files of programs
//! - `live_pages.rs` the pages of a running process, `live_counters.rs` counters of devices
//! - `live.rs`, `huge.rs` facts about this process and system that the libraries ask for; `witness.rs` what
//!   is around a program while it runs: its pages, other programs, the hypervisor, what the kernel counts
//! - in `command/tune/` what is compared (`command/tune/options.rs`), the placements, a space of them as TOML
//!   (`command/tune/space.rs`), numbers of threads (`command/tune/threads.rs`), a command line in one text as
//!   words (`command/tune/words.rs`), the sensors of this machine (`command/tune/climate.rs`), the first
//!   contact, without a program (`command/tune/first.rs`)
//! - `measuring.rs` what the measuring verbs share: options to cells and a pace, a survey with its line of
//!   progress (`measuring/line.rs`), a result in the form that is wanted; `facts.rs` what measuring asks of
//!   the running system
//! - in `command/compare/` what a suite needs (`command/compare/needs.rs`), in which versions
//!   (`command/compare/versions.rs`), the placements of a list, its run, and what is noted of the system
//! - in `command/bandwidth/` files in memory, and setting the weights of weighted interleaving and taking
//!   that back (`command/bandwidth/weights.rs`); in `command/latency/` sweeps and load; in `command/io/` what
//!   is measured (`command/io/subject.rs`), perftest, and saved results; in `command/emulation/` what this
//!   machine is (`command/emulation/facts.rs`), what an image is (`command/emulation/image.rs`), what it was
//!   before (`command/emulation/before.rs`), a change of its files, and the verbs that only look
//! - in `command/hugepages/` setting pools (`command/hugepages/set.rs`), and keeping them over a boot
//!   (`command/hugepages/persist.rs`); `boot_files.rs` changes of boot files; `journal.rs` the old values of settings
//! - in `command/lab/` counting cache lines (`command/lab/count.rs`), and what `lab --count` starts in the guest
//!   (`command/lab/marks.rs`)
//! - `command/subject.rs` processes that a verb was asked for; in `command/doctor/` the system at the ends of a window
//!   (`command/doctor/watch.rs`), mappings, findings that are ignored, and the catalogue of rules
//! - in `command/advise/` facts of one process (`command/advise/reading.rs`), a program that is started to be watched
//!   (`command/advise/trial.rs`), and placements for other tools (`command/advise/recipes.rs`)
//! - in `command/top/` the readings behind the live view: of this machine (`command/top/live.rs`), of a recording
//!   (`command/top/replay.rs`), their messages (`command/top/message.rs`), and the loop (`command/top/screens.rs`)
//! - in `command/lab/` the check of a kernel (`command/lab/check.rs`), and its part in the guest (`command/lab/play.rs`)
//! - `migration.rs` moving the pages of a process: in `migration/` the engine (`migration/engine.rs`), where pages
//!   are to go (`migration/goal.rs`), a process and a system for it (`migration/live.rs`)
//! - `version.rs` the text of `--version`
//! - `output.rs` the only place that writes to standard output and error, `output/destination.rs` files that
//!   options name to be written, `output/picture.rs` pictures among them (`output/png.rs`); `progress.rs` the line between runs; `failure.rs` a message and an exit code
#![cfg_attr(not(test), no_main)]
#![forbid(unsafe_code)]

mod boot_files;
mod cli;
mod command;
mod completion;
mod facts;
mod failure;
mod firmware;
mod huge;
mod input;
mod journal;
mod live;
mod live_counters;
mod live_pages;
mod measuring;
mod migration;
mod node_memory;
mod output;
mod personality;
mod placement;
mod progress;
mod scenario;
mod supplied;
mod symbols;
mod usage;
mod version;
mod witness;
mod zones;

use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use cli::{Cli, Verb};
use failure::{Failure, NOT_STARTED};

#[cfg(not(test))]
mod entry {
    nodewise_syscall::entry!(super::start);
}

/// The harness of the unit tests has a start of its own, which wants one of this form to replace.
#[cfg(test)]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(start())
}

/// Everything, from the words to the exit code.
fn start() -> u8 {
    let code = personality::by_name()
        .or_else(completion::by_word)
        .or_else(command::lab::marks::by_word)
        .unwrap_or_else(command);
    // What could not be written was reported where it was written; an end of a line that is left fails
    // for the same reason.
    let _ = io::stdout().flush();
    code
}

/// nodewise under its own name.
fn command() -> u8 {
    let mut matches = match typed(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(matches) => matches,
        Err(error) => return usage(&error),
    };
    let Cli { global, verb } = match Cli::from_arg_matches_mut(&mut matches) {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error),
    };
    command::run(verb.as_ref(), &global).unwrap_or_else(|failure| fail(&failure))
}

/// Reads the words. Most name a verb and are right: then the other verbs, whose definitions take longer than the rest of
/// a short start, are not needed. What is wrong, and help, is for the whole command line to say.
fn typed(words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let verb = words.iter().skip(1).find_map(|word| Verb::definition(word.to_str()?));
    let matches = verb.and_then(|verb| Cli::with_verb(verb).try_get_matches_from(words).ok());
    matches.map_or_else(|| Cli::command().try_get_matches_from(words), Ok)
}

fn fail(failure: &Failure) -> u8 {
    output::say(&failure.message);
    failure.code
}

/// Prints help, version or what is wrong with the words. `run` and `lab` have their own code for
/// failing, so that their callers can distinguish it from the program's.
fn usage(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        let printed = match error.kind() {
            ErrorKind::DisplayVersion => output::print(&version::text()),
            _ => output::help(error),
        };
        return match printed {
            Ok(()) => 0,
            Err(error) => fail(&error.into()),
        };
    }
    let verbs = usage::typed_verbs(Cli::command());
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
    } else {
        let verb = verbs.join(" ");
        output::say(&usage::sentence(error, &verbs));
        output::say(&format!("{verb} --help lists its options"));
    }
    match verbs.get(1).map(String::as_str) {
        Some("run" | "lab") => NOT_STARTED,
        _ => failure::USAGE,
    }
}
