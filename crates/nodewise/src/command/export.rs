//! `nodewise export`.

use nodewise_source::Detail;
use nodewise_view::export;

use crate::cli::Global;
use crate::cli::export::{Export, Format};
use crate::failure::{Failure, Outcome};
use crate::input::{self, Input};
use crate::output::{self, destination};

/// Runs the verb.
pub fn run(args: &Export, global: &Global) -> Outcome {
    destination::check([&args.output])?;
    let input = input::load_for(&args.supplied, &global.machine, Detail::Full)?;
    let text = write(args, &input)?;
    match &args.output {
        Some(file) => file.write(text.as_bytes())?,
        None => output::print(&text)?,
    }
    Ok(0)
}

fn write(args: &Export, input: &Input) -> Result<String, Failure> {
    let machine = &input.machine;
    let text = match args.format {
        Format::Hwloc => export::hwloc(machine).map_err(Failure::cannot)?,
    };
    Ok(text)
}
