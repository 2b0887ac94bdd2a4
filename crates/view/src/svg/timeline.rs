//! A scenario over time: for each node a band, filled as its memory is.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;

use crate::digest::timeline::{Moment, Timeline, size};
use crate::svg::frame::{Anchor, Frame, Label, Role, Stack, Tone};
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::sheet::{MARGIN, SMALL, TEXT, TITLE, printable};

const WIDTH: f64 = 980.0;
/// Left of the bands, for the nodes' names.
const NAMES: f64 = 110.0;
/// Height of all bands together, and the least and most of one.
const BANDS: f64 = 480.0;
const BAND: (f64, f64) = (8.0, 72.0);
const GAP: f64 = 6.0;
/// At most this many nodes and findings are drawn.
const MOST_NODES: usize = 64;
const MOST_FINDINGS: usize = 8;

/// Draws a scenario as an SVG document.
///
/// # Units
/// Lengths in px; 980 wide. A band is as high as its node's memory, from left to right the time.
pub fn timeline_svg(timeline: &Timeline, theme: Theme) -> String {
    let page = timeline_page(timeline);
    let about = timeline.about.clone().unwrap_or_default();
    paint(&page, &printable(&timeline.title), &printable(&about), theme)
}

/// Lays out the picture.
pub fn timeline_page(timeline: &Timeline) -> Frame {
    let mut stack = Stack::new(Role::Page, WIDTH, MARGIN);
    stack.text(&printable(&timeline.title), TITLE, Tone::Plain, 2);
    stack.text(
        &format!("{}, Linux {}", printable(&timeline.machine), timeline.release),
        TEXT,
        Tone::Faint,
        2,
    );
    if let Some(about) = &timeline.about {
        stack.gap(4.0);
        stack.text(&printable(about), TEXT, Tone::Plain, 4);
    }
    stack.gap(14.0);
    let names = names(timeline);
    let nodes = timeline.nodes();
    let height = (BANDS / nodes.len().max(1) as f64 - GAP).clamp(BAND.0, BAND.1);
    for node in nodes.iter().take(MOST_NODES) {
        let band = band(timeline, *node, &names, stack.width(), height);
        stack.frame(band);
        stack.gap(GAP);
    }
    if let Some(more) = nodes.len().checked_sub(MOST_NODES).filter(|more| *more > 0) {
        stack.text(&format!("and {more} nodes more"), SMALL, Tone::Faint, 1);
    }
    let axis = axis(timeline, stack.width());
    stack.frame(axis);
    stack.gap(10.0);
    stack.flow(names.iter().enumerate().map(|(at, name)| swatch(at, name)).collect(), 4.0);
    stack.gap(10.0);
    let findings: Vec<String> = timeline.moments.iter().filter_map(Moment::finding).collect();
    for finding in findings.iter().take(MOST_FINDINGS) {
        stack.text(&printable(finding), TEXT, Tone::Notable, 3);
    }
    stack.finish()
}

/// The programs, in the order in which they appear.
fn names(timeline: &Timeline) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for moment in &timeline.moments {
        if !names.contains(&moment.program) {
            names.push(moment.program.clone());
        }
    }
    names
}

/// Programs' colours, so that neighbours differ; more programs share them.
const COLOURS: [u8; 5] = [3, 5, 2, 4, 1];

const fn colour(at: usize) -> Role {
    Role::Distance(COLOURS[at % COLOURS.len()])
}

fn swatch(at: usize, name: &str) -> Frame {
    let name = SMALL.fit(&printable(name), 200.0);
    let mut frame = Frame::new(colour(at), SMALL.width(&name) + 12.0, 16.0);
    let y = Label::baseline(SMALL.size, 0.0, 16.0);
    frame.labels.push(Label { x: 6.0, y, font: SMALL, anchor: Anchor::Start, tone: Tone::Plain, text: name });
    frame
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

fn band(timeline: &Timeline, node: NodeId, names: &[String], width: f64, height: f64) -> Frame {
    let managed: u64 =
        timeline.before.zones().iter().filter(|zone| zone.node == node).map(|zone| zone.managed).sum();
    let mut frame = Frame::new(Role::Group, width, height);
    let text = SMALL.fit(&format!("node {node}, {}", size(managed)), NAMES - 8.0);
    let y = Label::baseline(SMALL.size, 0.0, height.max(SMALL.size));
    if height >= SMALL.size {
        frame.labels.push(Label { x: 0.0, y, font: SMALL, anchor: Anchor::Start, tone: Tone::Plain, text });
    }
    let room = width - NAMES;
    let mut bar = Frame::new(Role::Memory, room, height);
    bar.tip = Some(format!("node {node}"));
    bar.id = Some(format!("node-{node}"));
    for (moment, (from, to)) in timeline.moments.iter().zip(spans(timeline)) {
        if to > from {
            let (x, width) = (from * room, (to - from) * room);
            bar.children.extend(
                column(moment, node, names, managed, (width, height))
                    .into_iter()
                    .map(|part| part.moved(x, 0.0)),
            );
        }
    }
    frame.children.push(bar.moved(NAMES, 0.0));
    frame
}

/// What each program has of a node after a step, from the bottom up.
fn column(
    moment: &Moment,
    node: NodeId,
    names: &[String],
    managed: u64,
    (width, height): (f64, f64),
) -> Vec<Frame> {
    let mut bottom = height;
    let mut parts = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let pages = moment.programs.get(name).and_then(|nodes: &BTreeMap<NodeId, u64>| nodes.get(&node));
        let part = pages.map_or(0.0, |pages| *pages as f64 / managed.max(1) as f64 * height).min(bottom);
        if part > 0.0 {
            bottom -= part;
            parts.push(Frame::new(colour(at), width, part).moved(0.0, bottom));
        }
    }
    parts
}

/// The first time and the last, below the bands.
fn axis(timeline: &Timeline, width: f64) -> Frame {
    let mut frame = Frame::new(Role::Group, width, 14.0);
    let room = width - NAMES;
    let mut right = f64::MIN;
    for (moment, (from, _)) in timeline.moments.iter().zip(spans(timeline)) {
        let text = format!("{} s", moment.at_s);
        let x = NAMES + from * room;
        let wide = SMALL.width(&text);
        if x > right && x + wide <= width {
            right = x + wide + 6.0;
            let y = Label::baseline(SMALL.size, 0.0, 14.0);
            frame.labels.push(Label { x, y, font: SMALL, anchor: Anchor::Start, tone: Tone::Faint, text });
        }
    }
    frame
}
