//! `nodewise show`, and `nodewise` alone.

use nodewise_machine::Machine;
use nodewise_source::capture::command_line;
use nodewise_source::{Detail, machine_file};
use nodewise_view::svg::{Caches, machine_svg};
use nodewise_view::text::overview::HINTS;
use nodewise_view::{csv, text};

use crate::cli::Global;
use crate::cli::show::Show;
use crate::failure::Outcome;
use crate::output::{Form, Pictures};
use crate::{input, output};

/// Runs the verb.
pub fn run(args: &Show, global: &Global) -> Outcome {
    let pictures = Pictures::new(&args.svg, &args.png);
    pictures.check()?;
    let mut machine = input::load_for(&args.supplied, &global.machine, Detail::Full)?.machine;
    input::date(&mut machine, &global.machine);
    if !args.with_identity {
        remove_identity(&mut machine);
    }
    let caches = if args.caches { Caches::All } else { Caches::LastLevel };
    if pictures.are_wanted() {
        pictures.draw(|theme| machine_svg(&machine, caches, theme))?;
        return Ok(0);
    }
    let (json, csv) = (|| machine_file::to_json(&machine), || csv::machine(&machine));
    let form = Form::new(args.json, args.csv);
    output::show_table(form, global.color, json, csv, |style| text::show(&machine, style))?;
    Ok(0)
}

/// Leaves out of the kernel's command line what names this machine or its disks.
pub fn remove_identity(machine: &mut Machine) {
    let line = machine.settings.command_line.take();
    machine.settings.command_line = line.map(|line| command_line(&line).trim_end().to_owned());
}

/// Prints the output of `nodewise` without a verb.
pub fn overview(global: &Global) -> Outcome {
    let machine = input::load(&global.machine, Detail::Overview)?.machine;
    output::print(&text::overview(&machine, &HINTS, &output::style(global.color)))?;
    Ok(0)
}
