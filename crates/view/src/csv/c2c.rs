//! Core-to-core latencies, a line per pair.

use nodewise_measure::c2c::{C2cReport, PairReport};
use nodewise_measure::cell::Placed;

use super::{extent, figures, known, optional};

/// Writes core-to-core latencies; a value that is not known is empty. Times are in ns.
pub fn c2c(report: &C2cReport) -> String {
    let mut text = String::from(
        "to_cpu,from_cpu,transfer,home_node,home,relation,median_ns,interval_low_ns,interval_high_ns,best_ns,\
         rounds,samples,disturbed,placed_before_share,placed_after_share,refused\n",
    );
    report.pairs.iter().for_each(|of| text.push_str(&line(of)));
    text
}

fn line(of: &PairReport) -> String {
    let mut fields = vec![
        of.pair.to.to_string(),
        of.pair.from.to_string(),
        of.pair.transfer.name().to_owned(),
        of.pair.home.to_string(),
        of.home.name().to_owned(),
        of.relation.name().to_owned(),
    ];
    fields.extend(figures(of.figure.as_ref()));
    fields.extend(extent(of.figure.as_ref()));
    fields.extend([
        of.disturbed.to_string(),
        known(of.before.as_ref().and_then(Placed::share)),
        known(of.after.as_ref().and_then(Placed::share)),
        optional(of.refused.as_deref()),
    ]);
    fields.join(",") + "\n"
}
