//! Latencies, a line per cell.

use nodewise_measure::latency::{LatencyReport, Lookup};

use super::{backing, figures, known, names, optional};

/// Writes latencies; a value that is not known is empty. Numbers have a point, times are in ns.
pub fn latency(report: &LatencyReport) -> String {
    let mut text = String::from(
        "from_node,cpus,memory_node,pages,median_ns,interval_low_ns,interval_high_ns,best_ns,rounds,samples,\
         disturbed_samples,disturbed,placed_before_share,placed_after_share,distance,refused\n",
    );
    let lookup = Lookup::new(report);
    for cell in &report.cells {
        let distance = lookup.declared(cell.from, cell.memory).and_then(|declared| declared.distance);
        let mut fields = names(cell);
        fields.extend(figures(cell.figure.as_ref()));
        fields.extend(backing(cell));
        fields.extend([known(distance), optional(cell.refused.as_deref())]);
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}
