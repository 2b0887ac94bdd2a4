//! Prints the text views of a machine written as a spec: `show WIDTH SPEC`.
#![expect(clippy::print_stdout, reason = "an example for looking at the result")]

use nodewise_machine::spec;
use nodewise_view::text::overview::HINTS;
use nodewise_view::{Colour, Style, text};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let width = arguments.next().ok_or("expected a width and a spec")?.parse()?;
    let machine = spec::machine(&arguments.next().ok_or("expected a spec after the width")?)?;
    let colour = if arguments.next().is_some() { Colour::Always } else { Colour::Never };
    let style = Style::new(width, colour);
    print!("{}\n{}", text::overview(&machine, &HINTS, &style), text::show(&machine, &style));
    Ok(())
}
