//! Wrong or unusual facts, with the files where they were seen.

use nodewise_machine::Machine;

use crate::digest::counts::plural;
use crate::digest::oddity::reported_oddities;
use crate::style::Ink;
use crate::text::line::{Line, Page};

/// Most oddities that are written out, those that are alike as one.
const MOST: usize = 30;

/// Writes the oddities, if there are any.
pub(super) fn oddities(machine: &Machine, page: &mut Page) {
    let groups = reported_oddities(machine);
    let count = groups.len();
    if count == 0 {
        return;
    }
    page.heading("Oddities", "");
    for group in groups.iter().take(MOST) {
        let line = Line::new().with(Ink::Notable, "  - ").with(Ink::Plain, group.words());
        page.line(4, &line);
    }
    if count > MOST {
        let rest = format!("    and {} (all are in --json)", plural(count - MOST, "other"));
        page.line(4, &Line::new().with(Ink::Faint, rest));
    }
}
