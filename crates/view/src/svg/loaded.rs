//! Latency under load as curves: ns per load against the GB/s that other CPUs move meanwhile.

use nodewise_measure::latency::loaded::knee::TIMES_IDLE;
use nodewise_measure::latency::loaded::{Curve, Knee, Path, Report, findings};

use crate::digest::loaded::{COUNTED, knee_words, method, path_words, sentence};
use crate::digest::survey::{digits, platform, proof, refusals};
use crate::svg::frame::{Frame, Pen, Role, Stack, Stroke, Tone};
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::plot::{POINT, Plot, entry, pen};
use crate::svg::sheet::{HEAD, MARGIN, SMALL, TEXT, TITLE, WIDTH, printable};

const PLOT: Plot = Plot { height: 300.0, right: 20.0 };
/// Radius of the ring around a knee.
const KNEE: f64 = 6.0;

/// Draws a report of latency under load as an SVG document.
///
/// # Units
/// Lengths in px.
pub fn loaded_svg(report: &Report, theme: Theme) -> String {
    paint(&loaded_page(report), "Memory latency under load", &method(report), theme)
}

/// Lays out the picture.
pub fn loaded_page(report: &Report) -> Frame {
    let mut stack = Stack::new(Role::Page, WIDTH + 2.0 * MARGIN, MARGIN);
    stack.text("Memory latency under load", TITLE, Tone::Plain, 1);
    stack.text(&printable(&platform(&report.account.conditions)), TEXT, Tone::Faint, 2);
    // One scale for all, so that they can be compared.
    let scale = Scale::of(report);
    for path in &report.paths {
        stack.gap(14.0);
        stack.text(&path_words(path), HEAD, Tone::Plain, 2);
        stack.text(
            "ns per load against GB/s of the traffic; a ring marks the knee; dashed: twice the idle latency",
            SMALL,
            Tone::Faint,
            2,
        );
        stack.gap(4.0);
        if let Some(scale) = &scale {
            stack.frame(plot(path, scale));
        }
        stack.gap(6.0);
        stack.flow(path.curves.iter().enumerate().map(|(at, curve)| legend(at, path, curve)).collect(), 6.0);
    }
    stack.gap(10.0);
    for line in [Some(method(report)), Some(COUNTED.to_owned()), proof(report.cells(), report.size)] {
        stack.text(&printable(&line.unwrap_or_default()), SMALL, Tone::Faint, 4);
    }
    for (place, why) in refusals(report.cells()).iter().take(6) {
        stack.text(&printable(&format!("{place}: {why}")), TEXT, Tone::Notable, 2);
    }
    for finding in &findings(report) {
        let tone = if finding.is_noise() { Tone::Notable } else { Tone::Plain };
        stack.text(&printable(&sentence(finding)), TEXT, tone, 3);
    }
    stack.finish()
}

/// What the axes go up to, and how far apart their lines are.
struct Scale {
    gb_per_s: (f64, f64),
    ns: (f64, f64),
}

impl Scale {
    /// From nothing to beyond all points and twice the idle latency; `None` without points.
    fn of(report: &Report) -> Option<Self> {
        let curves = || report.paths.iter().flat_map(|path| &path.curves);
        let places: Vec<(f64, f64)> = curves().flat_map(Curve::places).collect();
        let most = |of: fn(&(f64, f64)) -> f64| places.iter().map(of).reduce(f64::max);
        let idle = report.paths.iter().filter_map(Path::idle_ns).fold(0.0, f64::max);
        let ns = most(|place| place.1)?.max(TIMES_IDLE * idle);
        Some(Self { gb_per_s: rounded_up(most(|place| place.0)?), ns: rounded_up(ns) })
    }

    /// The point of a bandwidth and a latency, px.
    fn point(&self, (gb_per_s, ns): (f64, f64)) -> (f64, f64) {
        PLOT.point(gb_per_s / self.gb_per_s.0, ns / self.ns.0)
    }
}

/// The end of an axis that holds a value, and the step of its lines: four to eight steps of 1, 2 or 5.
fn rounded_up(value: f64) -> (f64, f64) {
    let least = value.max(1e-3) / 8.0;
    let decade = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|of| of * decade).into_iter().find(|step| *step >= least);
    let step = step.unwrap_or(10.0 * decade);
    ((value / step * 1.0001).ceil().max(1.0) * step, step)
}

fn plot(path: &Path, scale: &Scale) -> Frame {
    let mut frame = PLOT.frame();
    grid(scale, &mut frame);
    if let Some(idle) = path.idle_ns() {
        let ends = [(0.0, TIMES_IDLE * idle), (scale.gb_per_s.0, TIMES_IDLE * idle)];
        frame.strokes.push(Stroke {
            points: ends.map(|end| scale.point(end)).to_vec(),
            pen: Pen::Limit,
            ring: 0.0,
        });
    }
    for (at, curve) in path.curves.iter().enumerate() {
        let pen = pen(at);
        let idle = path.idle_ns().map(|idle| (0.0, idle));
        let places = idle.into_iter().chain(curve.places());
        let points: Vec<(f64, f64)> = places.map(|place| scale.point(place)).collect();
        frame.strokes.push(Stroke { points, pen, ring: POINT });
        if let (Some(Knee::At { gb_per_s }), Some(idle)) = (path.knee(curve), path.idle_ns()) {
            let points = vec![scale.point((gb_per_s, TIMES_IDLE * idle))];
            frame.strokes.push(Stroke { points, pen, ring: KNEE });
        }
    }
    frame
}

/// The lines of both scales, with their numbers.
fn grid(scale: &Scale, frame: &mut Frame) {
    let steps =
        |(end, step): (f64, f64)| (0..=(end / step).round() as u32).map(move |at| f64::from(at) * step);
    for gb_per_s in steps(scale.gb_per_s) {
        PLOT.column(scale.point((gb_per_s, 0.0)).0, short(gb_per_s), frame);
    }
    for ns in steps(scale.ns) {
        PLOT.row(scale.point((0.0, ns)).1, short(ns), frame);
    }
}

/// A number of a scale: its steps are 1, 2 or 5 of a decade.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A curve's colour, name, the most it moves, and its knee.
fn legend(at: usize, path: &Path, curve: &Curve) -> Frame {
    let most = curve.most().and_then(|point| point.place());
    let most = most.map_or_else(
        || "not measured".to_owned(),
        |(gb_per_s, ns)| format!("{} GB/s at most, {} ns then", digits(gb_per_s), digits(ns)),
    );
    let knee = knee_words(path, curve).map_or_else(String::new, |words| format!("; knee: {words}"));
    entry(at, printable(&format!("{}: {most}{knee}", curve.kernel)))
}
