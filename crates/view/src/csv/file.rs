//! Bandwidths of files in memory, a line per way.

use nodewise_measure::bandwidth::file::FileReport;

use super::{backing, figures, names, optional};

/// Writes bandwidths of files; a value that is not known is empty. Rates are in GB/s of the program.
pub fn file(report: &FileReport) -> String {
    let mut text = String::from(
        "operation,from_node,cpus,memory_node,pages,median_gb_per_s,interval_low_gb_per_s,interval_high_gb_per_s,\
         best_gb_per_s,rounds,samples,disturbed_samples,disturbed,placed_before_share,placed_after_share,refused\n",
    );
    for way in &report.ways {
        let cell = &way.cell;
        let mut fields = vec![way.operation.word().to_owned()];
        fields.extend(names(cell));
        fields.extend(figures(cell.figure.as_ref()));
        fields.extend(backing(cell));
        fields.push(optional(cell.refused.as_deref()));
        text.push_str(&(fields.join(",") + "\n"));
    }
    text
}
