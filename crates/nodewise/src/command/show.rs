//! `nodewise show`, and `nodewise` alone.

use nodewise_source::{Detail, machine_file};
use nodewise_view::svg::{Theme, machine_svg};
use nodewise_view::text;
use nodewise_view::text::overview::HINTS;

use crate::cli::Global;
use crate::cli::show::Show;
use crate::failure::Outcome;
use crate::{input, output};

/// Runs the verb.
pub fn run(args: &Show, global: &Global) -> Outcome {
    let detail = if args.json || args.svg.is_some() { Detail::Full } else { Detail::Overview };
    let machine = input::load(&global.machine, detail)?.machine;
    if args.json {
        output::print_json(&machine_file::to_json(&machine))?;
    } else if let Some(path) = &args.svg {
        output::write_file(path, machine_svg(&machine, Theme::Auto).as_bytes())?;
    } else {
        output::print(&text::show(&machine, &output::style(global.color)))?;
    }
    Ok(0)
}

/// What `nodewise` without a verb prints.
pub fn overview(global: &Global) -> Outcome {
    let machine = input::load(&global.machine, Detail::Overview)?.machine;
    output::print(&text::overview(&machine, &HINTS, &output::style(global.color)))?;
    Ok(0)
}
