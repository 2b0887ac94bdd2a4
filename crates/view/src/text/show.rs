//! Output of `nodewise show`: everything about a machine, a section for each thing.
//!
//! A section without content is left out. At any width of [`NARROWEST`](crate::style::NARROWEST)
//! columns or more no line is longer than the width; columns shrink in a fixed order, lists go on below their
//! own beginning.

mod access;
mod caches;
mod devices;
pub(in crate::text) mod distances;
mod head;
mod kinds;
mod memory_slots;
mod nodes;
mod oddities;
mod settings;

use nodewise_machine::Machine;

use crate::style::Style;
use crate::text::line::Page;

pub(crate) use head::head;

/// Writes everything that is known about a machine.
pub fn show(machine: &Machine, style: &Style) -> String {
    let mut page = Page::new(*style);
    head(machine, &mut page);
    nodes::nodes(machine, &mut page);
    kinds::kinds(machine, &mut page);
    memory_slots::memory_slots(machine, &mut page);
    nodes::huge_pages(machine, &mut page);
    distances::distances(machine, &mut page);
    access::tiers(machine, &mut page);
    access::accesses(machine, &mut page);
    caches::caches(machine, &mut page);
    devices::devices(machine, &mut page);
    settings::settings(machine, &mut page);
    settings::limits(machine, &mut page);
    oddities::oddities(machine, &mut page);
    page.finish()
}
