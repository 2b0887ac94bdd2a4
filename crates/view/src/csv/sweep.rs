//! Latencies by the size of what is chased, a line per size and way.

use nodewise_measure::latency::Pattern;
use nodewise_measure::latency::sweep::SweepReport;

use super::{figures, names, optional};

/// Writes a sweep or a table, like [`latency`](super::latency()).
pub fn sweep(report: &SweepReport) -> String {
    let mut text = String::from(
        "size_bytes,pattern,from_node,cpus,memory_node,pages,median_ns,interval_low_ns,interval_high_ns,best_ns,\
         disturbed,refused\n",
    );
    for chase in &report.chases {
        let pattern = match chase.pattern {
            Pattern::Random => "random".to_owned(),
            Pattern::Stride(elements) => format!("stride_{elements}"),
        };
        let mut fields = vec![chase.size.get().to_string(), pattern];
        fields.extend(names(&chase.cell));
        fields.extend(figures(chase.cell.figure.as_ref()));
        fields.extend([chase.cell.disturbed.to_string(), optional(chase.cell.refused.as_deref())]);
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}
