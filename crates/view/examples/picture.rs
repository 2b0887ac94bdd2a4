//! Writes the picture of a machine written as a spec: `picture SPEC [dark] > FILE.svg`.
#![expect(clippy::print_stdout, reason = "an example for looking at the result")]

use nodewise_machine::spec;
use nodewise_view::svg::{Caches, Theme, machine_svg};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let machine = spec::machine(&arguments.next().ok_or("expected a spec")?)?;
    let theme = if arguments.next().is_some() { Theme::Dark } else { Theme::Auto };
    print!("{}", machine_svg(&machine, Caches::All, theme));
    Ok(())
}
