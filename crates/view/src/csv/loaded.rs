//! Latency under load, a line per point.

use nodewise_measure::latency::loaded::{Curve, LoadedReport, Path, Point};
use nodewise_measure::survey::CellReport;

use super::{backing, figures, known, names, optional, quoted};

/// Writes curves; a value that is not known is empty. The idle latency is a line without traffic.
pub fn loaded(report: &LoadedReport) -> String {
    let mut text = String::from(
        "from_node,cpus,memory_node,pages,traffic_from_node,traffic_cpus,traffic_memory_node,traffic,pause_ns,\
         median_gb_per_s,bus_gb_per_s_at_most,median_ns,interval_low_ns,interval_high_ns,best_ns,p90_ns,rounds,\
         samples,disturbed_samples,disturbed,placed_before_share,placed_after_share,variant,refused\n",
    );
    for path in &report.paths {
        text.push_str(&line(path, &path.idle, path.idle_p90_ns, None));
        for curve in &path.curves {
            for point in &curve.points {
                text.push_str(&line(path, &point.cell, point.p90_ns, Some((curve, point))));
            }
        }
    }
    text
}

fn line(path: &Path, cell: &CellReport, p90_ns: Option<f64>, traffic: Option<(&Curve, &Point)>) -> String {
    let load = traffic.and_then(|(_, point)| point.load.as_ref()).map(|load| load.median);
    let bus = traffic.and_then(|(curve, _)| Some(load? * curve.kernel.bus_factor()));
    let mut fields = names(cell);
    fields.extend([
        path.traffic_from.to_string(),
        quoted(&path.traffic_cpus.to_string()),
        path.traffic_memory.to_string(),
        known(traffic.map(|(curve, _)| curve.kernel)),
        known(traffic.map(|(_, point)| point.pause_ns)),
        known(load),
        known(bus),
    ]);
    fields.extend(figures(cell.figure.as_ref()));
    fields.push(known(p90_ns));
    fields.extend(backing(cell));
    fields.push(optional(traffic.and_then(|(curve, _)| curve.variant.as_deref())));
    fields.push(optional(cell.refused.as_deref()));
    fields.join(",") + "\n"
}
