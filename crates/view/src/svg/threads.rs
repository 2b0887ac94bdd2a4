//! Bandwidth of more and more threads as a curve, with the knee from which another one gains next to
//! nothing.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_measure::bandwidth::{BandwidthReport, TransferReport};
use nodewise_measure::survey::Figure;

use crate::digest::bandwidth::{knee_words, place_words};
use crate::digest::counts::plural;
use crate::digest::survey::digits;
use crate::svg::frame::{Frame, Role, Stack, Stroke, Tone};
use crate::svg::legend;
use crate::svg::plot::{Axis, KNEE, POINT, Plot, pen};
use crate::svg::sheet::{HEAD, SMALL};

const PLOT: Plot = Plot { frame: 520.0, height: 220.0, right: 20.0 };
/// The least distance between numbers of threads, px.
const APART: f64 = 36.0;

/// The curve with its title and legend; `None` with fewer than two points.
pub(super) fn panel(report: &BandwidthReport) -> Option<Frame> {
    let figure = |way: &TransferReport| Some((way.threads, way.cell.figure?));
    let points: BTreeMap<usize, Figure> = report.scaling.iter().filter_map(figure).collect_map();
    let (last, most) = points.last_key_value()?;
    let (plot, place) = (plot(report.knee(), &points)?, place_words(report.scaling.first()?));
    let mut stack = Stack::new(Role::Group, PLOT.frame, 0.0);
    stack.text(&format!("threads: {}, {place}", report.kernel), HEAD, Tone::Plain, 2);
    let remark = "bars: 95 % confidence intervals; a ring marks the knee";
    stack.text(remark, SMALL, Tone::Faint, 2);
    stack.gap(4.0);
    stack.frame(plot);
    stack.gap(6.0);
    let end = format!("{} GB/s with {}", digits(most.median), plural(*last, "thread"));
    stack.flow(vec![legend::curve(0, &format!("{end}; {}", knee_words(report)))], 6.0);
    stack.gap(10.0);
    Some(stack.finish())
}

fn plot(knee: Option<usize>, points: &BTreeMap<usize, Figure>) -> Option<Frame> {
    let (least, most) = (points.first_key_value()?.0, points.last_key_value()?.0);
    let octaves = |threads: usize| (threads as f64 / *least as f64).log2();
    let all = octaves(*most);
    if all <= 0.0 {
        return None;
    }
    let high = |figure: &Figure| figure.interval.map_or(figure.median, |of| of.high.max(figure.median));
    let axis = Axis::holding(points.values().map(high).reduce(f64::max)?);
    let place = |threads: usize, rate: f64| PLOT.point(octaves(threads) / all, axis.part(rate));
    let mut frame = PLOT.frame();
    PLOT.titles("bandwidth, GB/s", "threads, logarithmic", &mut frame);
    let mut next = f64::INFINITY;
    for threads in points.keys().rev() {
        let x = place(*threads, 0.0).0;
        if next - x >= APART {
            PLOT.column(x, &threads.to_string(), &mut frame);
            next = x;
        }
    }
    for (rate, text) in axis.lines() {
        PLOT.row(place(*most, rate).1, &text, &mut frame);
    }
    let line = |points, ring| Stroke { points, pen: pen(0), ring };
    let curve = points.iter().map(|(threads, figure)| place(*threads, figure.median)).collect();
    frame.strokes.push(line(curve, POINT));
    for (threads, figure) in points {
        if let Some(interval) = figure.interval {
            frame
                .strokes
                .push(line(vec![place(*threads, interval.low), place(*threads, interval.high)], 0.0));
        }
    }
    if let Some((threads, figure)) = knee.and_then(|knee| points.get_key_value(&knee)) {
        frame.strokes.push(line(vec![place(*threads, figure.median)], KNEE));
    }
    Some(frame)
}
