//! A scenario over time: for each node a band, filled as its memory is.

use nodewise_machine::NodeId;

use crate::digest::counts::each_once;
use crate::digest::timeline::{Moment, Timeline};
use crate::digest::walk::size;
use crate::svg::frame::{Frame, Label, Role, Stack, Tone};
use crate::svg::legend::swatch;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::sheet::{self, MARGIN, SMALL, TEXT};

const WIDTH: f64 = 980.0;
/// Left of the bands, for the nodes' names.
const NAMES: f64 = 110.0;
/// Height of all bands together, and the least and most of one.
const BANDS: f64 = 480.0;
const BAND: (f64, f64) = (8.0, 72.0);
const GAP: f64 = 6.0;
/// At most this many nodes are drawn.
const MOST_NODES: usize = 64;

/// Draws a scenario as an SVG document.
///
/// # Units
/// Lengths in px; 980 wide. A band is as high as its node's memory, from left to right the time.
pub fn timeline_svg(timeline: &Timeline, theme: Theme) -> String {
    let page = timeline_page(timeline);
    paint(&page, &timeline.title, timeline.about.as_deref().unwrap_or_default(), theme)
}

/// Lays out the picture.
pub fn timeline_page(timeline: &Timeline) -> Frame {
    let mut stack = Stack::new(Role::Page, WIDTH, MARGIN);
    let machine = format!("{}, Linux {}", timeline.machine, timeline.release);
    sheet::begin(&timeline.title, &machine, &mut stack);
    if let Some(about) = &timeline.about {
        stack.gap(4.0);
        stack.text(about, TEXT, Tone::Plain, 4);
    }
    stack.gap(14.0);
    let drawn = Drawn::of(timeline, stack.width());
    let nodes = timeline.nodes();
    let height = (BANDS / nodes.len().max(1) as f64 - GAP).clamp(BAND.0, BAND.1);
    for node in nodes.iter().take(MOST_NODES) {
        stack.frame(drawn.band(*node, height));
        stack.gap(GAP);
    }
    if let Some(more) = nodes.len().checked_sub(MOST_NODES).filter(|more| *more > 0) {
        stack.text(&format!("and {more} nodes more"), SMALL, Tone::Faint, 1);
    }
    stack.frame(drawn.axis());
    stack.gap(10.0);
    let names = drawn.names.iter().enumerate();
    stack.flow(names.map(|(at, name)| swatch(colour(at), &SMALL.fit(name, 200.0))).collect(), 4.0);
    stack.gap(10.0);
    let findings = timeline.moments.iter().filter_map(Moment::finding);
    sheet::some(&findings.map(|finding| (Tone::Notable, finding)).collect::<Vec<_>>(), 3, &mut stack);
    stack.finish()
}

/// Programs' colours, so that neighbours differ; more programs share them.
const COLOURS: [u8; 5] = [3, 5, 2, 4, 1];

const fn colour(at: usize) -> Role {
    Role::Distance(COLOURS[at % COLOURS.len()])
}

/// A scenario on its way to a picture: what all bands share.
struct Drawn<'t> {
    timeline: &'t Timeline,
    /// The programs, in the order in which they appear.
    names: Vec<&'t str>,
    /// Where each step begins and ends, as parts of the time.
    spans: Vec<(f64, f64)>,
    /// Width of a band with its name.
    width: f64,
}

impl<'t> Drawn<'t> {
    fn of(timeline: &'t Timeline, width: f64) -> Self {
        let names = each_once(timeline.moments.iter().map(|moment| moment.program.as_str()));
        Self { timeline, names, spans: spans(timeline), width }
    }

    fn room(&self) -> f64 {
        self.width - NAMES
    }

    /// A node's name, and its memory over time.
    fn band(&self, node: NodeId, height: f64) -> Frame {
        let managed = self.timeline.before.managed_of(node);
        let mut frame = Frame::new(Role::Group, self.width, height);
        if height >= SMALL.size {
            let text = SMALL.fit(&format!("node {node}, {}", size(managed)), NAMES - 8.0);
            frame.labels.push(Label::new(&text, SMALL, 0.0, (0.0, height)));
        }
        let mut bar = Frame::new(Role::Memory, self.room(), height);
        bar.tip = Some(format!("node {node}"));
        bar.id = Some(format!("node-{node}"));
        for (moment, (from, to)) in self.timeline.moments.iter().zip(&self.spans) {
            if to > from {
                let (x, width) = (from * self.room(), (to - from) * self.room());
                let parts = self.column(moment, node, managed, (width, height));
                bar.children.extend(parts.into_iter().map(|part| part.moved(x, 0.0)));
            }
        }
        frame.children.push(bar.moved(NAMES, 0.0));
        frame
    }

    /// What each program has of a node after a step, from the bottom up.
    fn column(&self, moment: &Moment, node: NodeId, managed: u64, (width, height): (f64, f64)) -> Vec<Frame> {
        let mut bottom = height;
        let mut parts = Vec::new();
        for (at, name) in self.names.iter().enumerate() {
            let pages = moment.programs.get(*name).and_then(|nodes| nodes.get(&node));
            let part = pages.map_or(0.0, |pages| *pages as f64 / managed.max(1) as f64 * height).min(bottom);
            if part > 0.0 {
                bottom -= part;
                parts.push(Frame::new(colour(at), width, part).moved(0.0, bottom));
            }
        }
        parts
    }

    /// The times of the steps below the bands, as many as have room.
    fn axis(&self) -> Frame {
        let mut frame = Frame::new(Role::Group, self.width, 14.0);
        let mut right = f64::MIN;
        for (moment, (from, _)) in self.timeline.moments.iter().zip(&self.spans) {
            let x = NAMES + from * self.room();
            let label = Label::new(&format!("{} s", moment.at_s), SMALL, x, (0.0, 14.0)).toned(Tone::Faint);
            let end = label.area().right();
            if x > right && end <= self.width {
                right = end + 6.0;
                frame.labels.push(label);
            }
        }
        frame
    }
}

/// Where each step begins and ends, as parts of the time: one that is followed at the same time has none.
fn spans(timeline: &Timeline) -> Vec<(f64, f64)> {
    let times: Vec<f64> = timeline.moments.iter().map(|moment| moment.at_s).collect();
    let (first, last) = (times.first().copied().unwrap_or(0.0), times.last().copied().unwrap_or(0.0));
    // What comes of the last step is shown for a tenth of the time.
    let all = ((last - first) * 1.1).max(f64::MIN_POSITIVE);
    let part = |time: f64| if last > first { (time - first) / all } else { 0.0 };
    let next = |at: usize| times.get(at + 1).map_or(1.0, |time| part(*time));
    times.iter().enumerate().map(|(at, time)| (part(*time), next(at))).collect()
}
