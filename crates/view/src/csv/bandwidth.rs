//! Bandwidths, a line per way.

use nodewise_measure::bandwidth::{BandwidthReport, TransferReport};

use super::{backing, figures, known, names, optional};

/// Writes bandwidths; a value that is not known is empty. Numbers have a point, rates are in GB/s.
pub fn bandwidth(report: &BandwidthReport) -> String {
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

fn line(table: &str, way: &TransferReport) -> String {
    let cell = &way.cell;
    let mut fields = vec![table.to_owned(), way.kernel.to_string(), way.threads.to_string()];
    fields.extend(names(cell));
    fields.extend(figures(cell.figure.as_ref()));
    fields.push(known(way.bus_gb_per_s()));
    fields.extend(backing(cell));
    fields.extend([optional(way.variant.as_deref()), optional(cell.refused.as_deref())]);
    fields.join(",") + "\n"
}
