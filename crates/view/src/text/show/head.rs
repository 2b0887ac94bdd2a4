//! The head: what kind of machine this is, in a line or two.

use nodewise_machine::{Machine, Origin};

use crate::digest::counts::{headline, platform, processors, product};
use crate::style::Ink;
use crate::text::line::{Line, Page};

/// Writes the head: CPUs, memory and nodes; models of processor; the machine and its firmware; architecture and kernel;
/// where the data came from unless it is the running system.
pub(crate) fn head(machine: &Machine, page: &mut Page) {
    page.line(2, &Line::new().with(Ink::Strong, headline(machine)));
    let processors = processors(machine);
    if !processors.is_empty() {
        page.line(2, &Line::from(processors));
    }
    for facts in [product(machine), platform(machine)] {
        if !facts.is_empty() {
            page.line(2, &Line::from(facts));
        }
    }
    if machine.origin != Origin::Live {
        page.line(2, &Line::new().with(Ink::Faint, format!("from {}", machine.origin)));
    }
}
