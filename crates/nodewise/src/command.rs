//! One file per verb: what was typed, to the libraries, to a view, to an exit code.

pub mod acpi;
pub mod advise;
pub mod balance;
pub mod bandwidth;
pub mod c2c;
pub mod capture;
pub mod compare;
pub mod diff;
pub mod doctor;
pub mod emulation;
pub mod explain;
pub mod export;
pub mod figures;
pub mod fleet;
pub mod help;
pub mod hugepages;
pub mod io;
pub mod lab;
pub mod latency;
pub mod links;
pub mod maps;
pub mod migrate;
pub mod pretend;
pub mod process;
pub mod record;
pub mod recording;
pub mod report;
pub mod run;
pub mod shm;
pub mod show;
pub mod simulate;
pub mod stat;
pub mod subject;
pub mod survey;
pub mod tools;
pub mod top;
pub mod tune;
pub mod workload;
pub mod zones;

use crate::cli::{Global, Verb, table};
use crate::failure::{Failure, Outcome};
use crate::input;

/// Does what was typed; without a verb, the overview.
pub fn run(verb: Option<&Verb>, global: &Global) -> Outcome {
    let Some(verb) = verb else { return show::overview(global) };
    if let Some((name, hint)) = verb.only_here() {
        refuse_another_machine(name, hint, global)?;
    }
    dispatch(verb, global)
}

/// Makes a function that calls that of the verb, for every row of the table.
macro_rules! dispatch {
    ($($name:literal $variant:ident($options:ty) => $function:path $(, here $hint:literal)?, $about:literal;)*) => {
        fn dispatch(verb: &Verb, global: &Global) -> Outcome {
            match verb {
                $(Verb::$variant(options) => $function(options, global),)*
            }
        }
    };
}
table!(dispatch);

fn refuse_another_machine(verb: &str, hint: &str, global: &Global) -> Result<(), Failure> {
    if input::is_live(&global.machine) {
        return Ok(());
    }
    let hint = if hint.is_empty() { String::new() } else { format!(" ({hint})") };
    Err(Failure::usage(format_args!(
        "--machine has no meaning with nodewise {verb}: it works on this machine only{hint}"
    )))
}
