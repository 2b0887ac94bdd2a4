//! Latency under load as curves: ns per load against the GB/s that other CPUs move meanwhile.

use nodewise_measure::latency::loaded::knee::TIMES_IDLE;
use nodewise_measure::latency::loaded::{Curve, Knee, LoadedReport, Path};

use crate::digest::loaded::{ending, knee_words, method, path_words};
use crate::digest::survey::{caption, digits};
use crate::svg::frame::{Frame, Pen, Role, Stack, Stroke, Tone};
use crate::svg::legend;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::plot::{Axis, KNEE, POINT, Plot, pen};
use crate::svg::sheet::{self, HEAD, MARGIN, SMALL, WIDTH};

const TITLE: &str = "Memory latency under load";
const PLOT: Plot = Plot { frame: WIDTH, height: 300.0, right: 20.0 };

/// Draws a report of latency under load as an SVG document.
///
/// # Units
/// Lengths in px.
pub fn loaded_svg(report: &LoadedReport, theme: Theme) -> String {
    paint(&loaded_page(report), TITLE, &method(report), theme)
}

/// Lays out the picture.
pub fn loaded_page(report: &LoadedReport) -> Frame {
    let mut stack = Stack::new(Role::Page, WIDTH + 2.0 * MARGIN, MARGIN);
    sheet::begin(TITLE, &caption(&report.account.conditions), &mut stack);
    // One scale for all, so that they can be compared.
    let scale = Scale::from_report(report);
    for path in &report.paths {
        stack.gap(14.0);
        stack.text(&path_words(path), HEAD, Tone::Plain, 2);
        stack.text(
            "median latency of a load while other CPUs move data; a ring marks the knee; dashed: twice the idle latency",
            SMALL,
            Tone::Faint,
            2,
        );
        stack.gap(4.0);
        if let Some(scale) = &scale {
            stack.frame(plot(path, scale));
        }
        stack.gap(6.0);
        stack.flow(path.curves.iter().enumerate().map(|(at, curve)| entry(at, path, curve)).collect(), 6.0);
    }
    sheet::end(&ending(report), &mut stack);
    stack.finish()
}

/// The axes.
struct Scale {
    gb_per_s: Axis,
    ns: Axis,
}

impl Scale {
    /// From nothing to beyond all points and twice the idle latency; `None` without points.
    fn from_report(report: &LoadedReport) -> Option<Self> {
        let curves = || report.paths.iter().flat_map(|path| &path.curves);
        let places: Vec<(f64, f64)> = curves().flat_map(Curve::places).collect();
        let most = |of: fn(&(f64, f64)) -> f64| places.iter().map(of).reduce(f64::max);
        let idle = report.paths.iter().filter_map(Path::idle_ns).fold(0.0, f64::max);
        let ns = most(|place| place.1)?.max(TIMES_IDLE * idle);
        Some(Self { gb_per_s: Axis::holding(most(|place| place.0)?), ns: Axis::holding(ns) })
    }

    /// The point of a bandwidth and a latency, px.
    fn point(&self, (gb_per_s, ns): (f64, f64)) -> (f64, f64) {
        PLOT.point(self.gb_per_s.part(gb_per_s), self.ns.part(ns))
    }
}

fn plot(path: &Path, scale: &Scale) -> Frame {
    let mut frame = PLOT.frame();
    PLOT.titles("latency, ns per load", "traffic of the other CPUs, GB/s", &mut frame);
    grid(scale, &mut frame);
    if let Some(idle) = path.idle_ns() {
        let up = scale.ns.part(TIMES_IDLE * idle);
        let points = vec![PLOT.point(0.0, up), PLOT.point(1.0, up)];
        frame.strokes.push(Stroke { points, pen: Pen::Limit, ring: 0.0 });
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
    for (gb_per_s, text) in scale.gb_per_s.lines() {
        PLOT.column(scale.point((gb_per_s, 0.0)).0, &text, frame);
    }
    for (ns, text) in scale.ns.lines() {
        PLOT.row(scale.point((0.0, ns)).1, &text, frame);
    }
}

/// A curve's colour, name, the most it moves, and its knee.
fn entry(at: usize, path: &Path, curve: &Curve) -> Frame {
    let most = curve.most().and_then(|point| point.place());
    let most = most.map_or_else(
        || "not measured".to_owned(),
        |(gb_per_s, ns)| format!("{} GB/s at most, {} ns then", digits(gb_per_s), digits(ns)),
    );
    let knee = knee_words(path, curve).map_or_else(String::new, |words| format!("; knee: {words}"));
    legend::curve(at, &format!("{}: {most}{knee}", curve.kernel))
}
