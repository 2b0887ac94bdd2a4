//! `nodewise top`: keys and readings to the view, and what it asks for.

#[cfg(feature = "top")]
mod live;
#[cfg(feature = "top")]
mod message;
#[cfg(feature = "top")]
mod pace;
#[cfg(feature = "top")]
mod replay;
#[cfg(feature = "top")]
mod screens;

use std::io::{self, IsTerminal as _};

use clap::Parser;

use crate::cli::Global;
use crate::cli::stat::Stat;
use crate::cli::top::Top;
use crate::command::stat;
use crate::failure::{Failure, Outcome};

/// Runs the verb.
pub fn run(args: &Top, global: &Global) -> Outcome {
    if !has_screen() {
        return stat::run(&as_stat(args)?, global);
    }
    screens(args, global)
}

#[cfg(feature = "top")]
fn screens(args: &Top, global: &Global) -> Outcome {
    screens::run(args, global)
}

#[cfg(not(feature = "top"))]
fn screens(_: &Top, _: &Global) -> Outcome {
    Err(Failure::cannot("this nodewise was built without screens: nodewise stat 1 prints the same figures"))
}

/// Whether standard output is a terminal that can place text.
fn has_screen() -> bool {
    let name = std::env::var_os("TERM");
    io::stdout().is_terminal() && name.is_some_and(|name| !name.is_empty() && name != "dumb")
}

/// The words of `stat` that print the same.
fn as_stat(args: &Top) -> Result<Stat, Failure> {
    /// A line of `stat` alone.
    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        stat: Stat,
    }
    let mut words = vec!["stat".into()];
    match (&args.from, args.interval) {
        (Some(file), _) => words.extend(["--from".into(), file.clone().into_os_string()]),
        (None, interval) => {
            let milliseconds = interval.map_or(1000, |interval| interval.as_millis());
            words.push(format!("{milliseconds}ms").into());
        }
    }
    if let Some(at) = args.at {
        words.extend(["--at".into(), format!("{}ms", at.as_millis()).into()]);
    }
    Words::try_parse_from(words).map(|words| words.stat).map_err(Failure::usage)
}
