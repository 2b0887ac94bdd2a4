//! The cost of reading the memory of a request: a section of `nodewise explain`.

use nodewise_machine::Bytes;
use nodewise_model::cost::Bottleneck;

use crate::digest::cost::{Access, Reading};
use crate::digest::counts::plural;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes the section.
pub(super) fn reading(page: &mut Page, reading: &Reading, from: u32) {
    let how = match reading.access {
        Access::Stream => "reading it once, in order",
        Access::Chase => "reading it once, each load waiting for the one before",
    };
    let threads = plural(reading.threads, "thread");
    page.heading("Cost", &format!("{how}: {threads} on node {from}"));
    let right = |head| Column { head, align: Align::Right, keep: Keep::Always };
    let mut table =
        Table::new(vec![right("memory"), right("size"), right("ns"), right("link GB/s"), right("node GB/s")]);
    let rate = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{:.1}", rate / 1e9));
    for part in &reading.parts {
        table.row(vec![
            part.node.to_string().into(),
            Bytes::new(part.bytes).to_string().into(),
            format!("{:.1}", part.latency_ns).into(),
            rate(part.link).into(),
            rate(part.controller).into(),
        ]);
    }
    table.write(page);
    let bound = bound(reading.bottleneck);
    let text = format!("  at least {:.4} s, {:.1} GB/s: {bound}", reading.seconds, reading.gb_per_s());
    page.line(2, &Line::from(text.as_str()));
}

/// Describes the bottleneck.
fn bound(bottleneck: Bottleneck) -> String {
    match bottleneck {
        Bottleneck::Threads(node) => {
            format!("the threads on node {node} wait for memory; more of them would be faster")
        }
        Bottleneck::Link(from, to) => {
            format!("the way from the CPUs of node {from} to the memory of node {to} carries no more")
        }
        Bottleneck::Controller(node) => format!("the memory of node {node} gives no more"),
    }
}
