//! Bandwidths, a line per way.

use nodewise_measure::bandwidth::{Report, WayReport};
use nodewise_measure::cell::Placed;

use super::{known, names, quoted};

/// Writes bandwidths; a value that is not known is empty. Numbers have a point, rates are in GB/s.
pub fn bandwidth(report: &Report) -> String {
    let mut text = String::from(
        "table,kernel,threads,from_node,cpus,memory_node,pages,median_gb_per_s,interval_low_gb_per_s,\
         interval_high_gb_per_s,best_gb_per_s,bus_gb_per_s_at_most,rounds,samples,disturbed_samples,\
         disturbed,placed_before_share,placed_after_share,variant,refused\n",
    );
    let tables = [("matrix", &report.matrix), ("kernels", &report.kernels), ("threads", &report.scaling)];
    for (name, ways) in tables {
        ways.iter().for_each(|way| text.push_str(&line(name, way)));
    }
    report.everywhere.iter().for_each(|way| text.push_str(&line("all_nodes", way)));
    text
}

fn line(table: &str, way: &WayReport) -> String {
    let cell = &way.cell;
    let (figure, interval) = (cell.figure.as_ref(), cell.figure.and_then(|figure| figure.interval));
    let mut fields = vec![table.to_owned(), way.kernel.to_string(), way.threads.to_string()];
    fields.extend(names(cell));
    fields.extend([
        known(figure.map(|figure| figure.median)),
        known(interval.map(|interval| interval.low)),
        known(interval.map(|interval| interval.high)),
        known(figure.map(|figure| figure.best)),
        known(way.bus_gb_per_s()),
        known(figure.map(|figure| figure.rounds)),
        known(figure.map(|figure| figure.samples)),
        cell.marks.disturbed.to_string(),
        cell.disturbed.to_string(),
        known(cell.before.as_ref().and_then(Placed::share)),
        known(cell.after.as_ref().and_then(Placed::share)),
        way.variant.as_deref().map(quoted).unwrap_or_default(),
        cell.refused.as_deref().map(quoted).unwrap_or_default(),
    ]);
    fields.join(",") + "\n"
}
