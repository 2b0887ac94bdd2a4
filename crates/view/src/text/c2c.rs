//! The text of `nodewise c2c`.

use nodewise_measure::c2c::C2cReport;
use nodewise_measure::c2c::report::Group;

use crate::digest::c2c::{Row, ending, home_words, matrices, rows};
use crate::style::Style;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};
use crate::text::{matrix, survey};

/// Up to this many CPUs have matrices; more would fill screens.
const SHOWN: usize = 32;

/// Writes core-to-core latencies.
pub fn c2c(report: &C2cReport, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading("Core to core", "what it costs a CPU to get a cache line that another one has, ns");
    let groups = groups(report);
    if !groups.is_empty() {
        groups.write(&mut page);
    }
    let matrices = matrices(report);
    if report.cpus().len() <= SHOWN && !matrices.is_empty() {
        page.heading("Pairs", "median of the rounds");
        matrices.iter().for_each(|matrix| matrix::write(matrix, &mut page));
    }
    survey::write(&ending(report), &mut page);
    page.finish()
}

/// A row per relation and home.
fn groups(report: &C2cReport) -> Table {
    let column = |head, align, keep| Column { head, align, keep };
    let mut columns = vec![column("CPUs", Align::Left, Keep::Always)];
    for transfer in report.transfers() {
        columns.push(column(transfer.name(), Align::Right, Keep::Always));
    }
    columns.push(column("from-to", Align::Right, Keep::Unless(1)));
    columns.push(column("pairs", Align::Right, Keep::Unless(2)));
    columns.push(column("memory of the line", Align::Left, Keep::Always));
    let mut table = Table::new(columns);
    for row in rows(report) {
        let mut cells: Vec<Line> = vec![row.relation.words().into()];
        cells
            .extend(row.groups.iter().map(|group| text(group.as_ref(), |of| format!("{:.1}", of.median_ns))));
        cells.push(range(&row));
        cells.push(row.pairs.to_string().into());
        cells.push(home_words(row.home).trim_start_matches("memory ").into());
        table.row(cells);
    }
    table
}

fn text(group: Option<&Group>, of: impl Fn(&Group) -> String) -> Line {
    group.map_or_else(Line::new, |group| Line::from(of(group)))
}

/// From the least pair to the most, of the first transfer.
fn range(row: &Row) -> Line {
    text(row.groups.iter().flatten().next(), |of| format!("{:.0}-{:.0}", of.least_ns, of.most_ns))
}
