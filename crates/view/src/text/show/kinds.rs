//! Kinds of CPUs, where they differ in speed.

use nodewise_machine::Machine;

use crate::digest::counts::ghz;
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes the kinds of CPUs, if there are several.
pub(super) fn kinds(machine: &Machine, page: &mut Page) {
    let kinds = machine.cpu_kinds();
    if kinds.len() < 2 {
        return;
    }
    page.heading("CPU kinds", "fastest first");
    let cores = machine.cores();
    let left = |head, keep| Column { head, align: Align::Left, keep };
    let right = |head, keep| Column { head, align: Align::Right, keep };
    let mut table = Table::new(vec![
        left("", Keep::Always),
        right("cores", Keep::Unless(1)),
        right("capacity", Keep::Unless(2)),
        right("up to", Keep::Unless(3)),
        right("CPUs", Keep::Always),
        left("", Keep::Always),
    ]);
    for kind in kinds {
        let of_kind = cores.values().filter(|cpus| !cpus.is_disjoint(&kind.cpus)).count();
        table.row(vec![
            Line::new().with(Ink::Strong, &kind.name),
            of_kind.to_string().into(),
            kind.capacity.map(|capacity| capacity.to_string()).unwrap_or_default().into(),
            kind.max_frequency_khz.map(ghz).unwrap_or_default().into(),
            kind.cpus.len().to_string().into(),
            kind.cpus.to_string().into(),
        ]);
    }
    table.write(page);
}
