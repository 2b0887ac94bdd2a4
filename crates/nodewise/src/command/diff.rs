//! `nodewise diff`.

use nodewise_machine::Machine;
use nodewise_source::Detail;
use nodewise_view::digest::diff::DiffExtent;
use nodewise_view::{csv, digest, json, text};

use crate::cli::Global;
use crate::cli::diff::Diff;
use crate::command::show;
use crate::failure::{Failure, Outcome};
use crate::output::Form;
use crate::{input, output};

/// Exit code where the machines differ.
const DIFFERENT: u8 = 1;

/// Runs the verb.
pub fn run(args: &Diff, global: &Global) -> Outcome {
    let a = machine(args, input::named(&args.a, Detail::Full).map_err(Failure::usage)?.machine, &args.a);
    let b = match &args.b {
        Some(text) => machine(args, input::named(text, Detail::Full).map_err(Failure::usage)?.machine, text),
        None => machine(args, input::load(&global.machine, Detail::Full)?.machine, &global.machine),
    };
    let extent = if args.all { DiffExtent::Everything } else { DiffExtent::Lasting };
    let diff = digest::diff::Diff::new(&a, &b, extent);
    let (json, csv) = (|| json::diff(&diff), || csv::diff(&diff));
    let form = Form::new(args.json, args.csv);
    output::show_table(form, global.color, json, csv, |style| text::diff(&diff, style))?;
    Ok(if diff.is_equal() { 0 } else { DIFFERENT })
}

/// The machine with its date, and its boot parameters as a capture has them.
fn machine(args: &Diff, mut machine: Machine, text: &str) -> Machine {
    input::date(&mut machine, text);
    if !args.with_identity {
        show::remove_identity(&mut machine);
    }
    machine
}
