//! A scenario over time: for each node a band, filled as its memory is.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_model::simulate::Owner;

use crate::digest::provenance::date;
use crate::digest::timeline::{Timeline, TimelineFinding, TimelineFindingKind};
use crate::digest::walk::size_of;
use crate::svg::frame::{Frame, Label, Pen, Role, Stack, Stroke, Tone};
use crate::svg::legend::square;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::plot::category;
use crate::svg::sheet::{self, MARGIN, SMALL, TEXT};

const WIDTH: f64 = 980.0;
/// Left of the bands, for the nodes' names.
const NAMES: f64 = 110.0;
/// Height of all bands together, and the least and most of that of the largest node.
const BANDS: f64 = 480.0;
const BAND: (f64, f64) = (12.0, 72.0);
/// The least height of a band, and of the row with the node's name around it.
const LEAST: f64 = 2.0;
const ROW: f64 = 12.0;
const GAP: f64 = 6.0;
/// Between the bands of more nodes than this there is less room.
const ROOMY: usize = 16;
const CLOSE: f64 = 2.0;
/// Height of the words of marks and times.
const WORDS: f64 = 14.0;
/// At most this many nodes are drawn.
const MOST_NODES: usize = 64;
/// At most this many programs have a colour and a name of their own: the largest.
const MOST_NAMES: usize = Role::CATEGORIES as usize;
/// At most this many stages: what is between the ends of one is narrower than a pixel or two.
const MOST_STAGES: usize = 240;
/// At most this many rectangles, whatever is played.
const MOST_PARTS: usize = 20_000;
/// At most this many lines for what went otherwise.
const MOST_MARKS: usize = 60;

/// Draws a scenario as an SVG document, of bounded size.
///
/// # Units
/// Lengths in px; 980 wide. The heights of bands are to scale, from left to right the time.
pub fn timeline_svg(timeline: &Timeline, theme: Theme) -> String {
    let page = timeline_page(timeline);
    paint(&page, &timeline.title, timeline.about.as_deref().unwrap_or_default(), theme)
}

/// Lays out the picture.
pub fn timeline_page(timeline: &Timeline) -> Frame {
    let mut stack = Stack::new(Role::Page, WIDTH, MARGIN);
    let moment = timeline.read_at.and_then(date).map(|date| format!(" as of {date}"));
    let machine =
        format!("{}{}, modelled as Linux {}", timeline.machine, moment.unwrap_or_default(), timeline.release);
    sheet::begin(&timeline.title, &machine, &mut stack);
    if let Some(about) = &timeline.about {
        stack.gap(4.0);
        stack.text(about, TEXT, Tone::Plain, 4);
    }
    stack.gap(14.0);
    let drawn = Drawn::new(timeline, stack.width());
    stack.frame(drawn.chart());
    sheet::more(timeline.nodes().len(), MOST_NODES, "node", &mut stack);
    stack.gap(10.0);
    stack.flow(drawn.legend(), 10.0);
    stack.gap(10.0);
    let tone = |finding: &TimelineFinding| match finding.kind {
        TimelineFindingKind::Dropped
        | TimelineFindingKind::Swapped
        | TimelineFindingKind::Limited
        | TimelineFindingKind::Demoted
        | TimelineFindingKind::Stayed => Tone::Plain,
        _ => Tone::Notable,
    };
    let findings: Vec<(Tone, String)> =
        timeline.findings().map(|finding| (tone(finding), finding.sentence.clone())).collect();
    sheet::some(&findings, 3, &mut stack);
    stack.finish()
}

/// The colour of the program with this number.
fn colour(at: usize) -> Role {
    Role::Category(category(at))
}

/// The roles of the programs that have no name of their own, and of free memory.
const OTHERS: Role = Role::Rest;
const FREE: Role = Role::Memory;

/// A part of the time in which nothing that can be seen changes: where it begins and ends, and by node the
/// pages of the named programs and of all others.
struct Stage {
    from: f64,
    to: f64,
    nodes: BTreeMap<NodeId, Vec<u64>>,
}

/// A scenario on its way to a picture: what all bands share.
struct Drawn<'t> {
    timeline: &'t Timeline,
    nodes: Vec<NodeId>,
    /// The programs with a colour, in the order in which they appear.
    names: Vec<&'t str>,
    stages: Vec<Stage>,
    times: Vec<f64>,
    /// Width of a band with its name.
    width: f64,
}

impl<'t> Drawn<'t> {
    fn new(timeline: &'t Timeline, width: f64) -> Self {
        let nodes: Vec<NodeId> = timeline.nodes().into_iter().take(MOST_NODES).collect();
        let names = largest(timeline);
        let per_stage = nodes.len().max(1) * (names.len() + 1);
        let most = (MOST_PARTS / per_stage).clamp(8, MOST_STAGES);
        let times: Vec<f64> = timeline.moments.iter().map(|moment| moment.at_s).collect();
        let stages = stages(timeline, &names, &times, most);
        Self { timeline, nodes, names, stages, times, width }
    }

    fn room(&self) -> f64 {
        self.width - NAMES
    }

    /// Everything over the same time: marks, bands, and the times.
    fn chart(&self) -> Frame {
        let gap = if self.nodes.len() > ROOMY { CLOSE } else { GAP };
        let full = (BANDS / self.nodes.len().max(1) as f64 - gap).clamp(BAND.0, BAND.1);
        let mut frame = Frame::new(Role::Group, self.width, 0.0);
        let mut bottom = WORDS;
        for node in &self.nodes {
            let band = self.band(*node, full).moved(0.0, bottom);
            bottom = band.area.bottom() + gap;
            frame.children.push(band);
        }
        frame.area.height = bottom + WORDS;
        let title = |text, y| Label::new(text, SMALL, 0.0, (y, WORDS)).toned(Tone::Faint);
        frame.labels.extend([title("heights to scale", 0.0), title("time", bottom)]);
        let mut right = f64::MIN;
        for (x, word) in self.marks() {
            frame.strokes.push(Stroke {
                points: vec![(x, WORDS), (x, bottom - gap)],
                pen: Pen::Limit,
                ring: 0.0,
            });
            let label = Label::new(word, SMALL, x, (0.0, WORDS)).toned(Tone::Notable);
            let label = Label { x: x.min(self.width - label.area().width), ..label };
            if label.x > right {
                right = label.area().right() + 6.0;
                frame.labels.push(label);
            }
        }
        frame.labels.extend(self.times(bottom));
        frame
    }

    /// A node's name, and its memory over time; the largest node's band has the full height.
    fn band(&self, node: NodeId, full: f64) -> Frame {
        let managed_of = |node: &NodeId| self.timeline.before.managed_of(*node);
        let (managed, largest) = (managed_of(&node), self.nodes.iter().map(managed_of).max().unwrap_or(0));
        let height = (managed as f64 / largest.max(1) as f64 * full).max(LEAST);
        let mut frame = Frame::new(Role::Group, self.width, height.max(ROW));
        let text = SMALL.fit(
            &format!("node {node}, {}", size_of(managed, self.timeline.before.page_bytes())),
            NAMES - 8.0,
        );
        frame.labels.push(Label::new(&text, SMALL, 0.0, (0.0, frame.area.height)));
        let mut bar = Frame::new(FREE, self.room(), height);
        bar.tip = Some(format!("node {node}"));
        bar.id = Some(format!("node-{node}"));
        // A stage goes on as long as this node has the same.
        let mut stages = self.stages.iter().peekable();
        while let Some(stage) = stages.next() {
            let mut to = stage.to;
            while let Some(next) = stages.next_if(|next| next.nodes.get(&node) == stage.nodes.get(&node)) {
                to = next.to;
            }
            let (x, width) = (stage.from * self.room(), (to - stage.from) * self.room());
            let parts = self.column(stage, node, managed, (width, height));
            bar.children.extend(parts.into_iter().map(|part| part.moved(x, 0.0)));
        }
        let top = frame.area.height - height;
        frame.children.push(bar.moved(NAMES, top));
        frame
    }

    /// Draws the pages that each program has of a node in a stage, from the bottom up.
    fn column(&self, stage: &Stage, node: NodeId, managed: u64, (width, height): (f64, f64)) -> Vec<Frame> {
        let mut bottom = height;
        let mut parts = Vec::new();
        for (at, pages) in stage.nodes.get(&node).into_iter().flatten().enumerate() {
            let part = (*pages as f64 / managed.max(1) as f64 * height).min(bottom);
            if part > 0.0 {
                bottom -= part;
                let role = if at < self.names.len() { colour(at) } else { OTHERS };
                parts.push(Frame::new(role, width, part).moved(0.0, bottom));
            }
        }
        parts
    }

    /// Where something went otherwise, with the word for it: one for each pixel or two.
    fn marks(&self) -> Vec<(f64, &'static str)> {
        let found = self.timeline.moments.iter().filter_map(|moment| {
            let finding =
                moment.findings.iter().find(|finding| finding.kind != TimelineFindingKind::Stayed)?;
            Some((NAMES + part_of(moment.at_s, &self.times) * self.room(), finding.kind.word()))
        });
        let mut marks: Vec<(f64, &str)> = Vec::new();
        for (x, word) in found {
            if marks.last().is_none_or(|(last, _)| x - last >= 2.0) {
                marks.push((x, word));
            }
        }
        let every = marks.len().div_ceil(MOST_MARKS).max(1);
        marks.into_iter().step_by(every).collect()
    }

    /// The times of the steps below the bands, as many as have room.
    fn times(&self, y: f64) -> Vec<Label> {
        let mut right = f64::MIN;
        let mut labels = Vec::new();
        for at_s in &self.times {
            let x = NAMES + part_of(*at_s, &self.times) * self.room();
            if x <= right {
                continue;
            }
            let label = Label::new(&format!("{at_s} s"), SMALL, x, (y, WORDS)).toned(Tone::Faint);
            let end = label.area().right();
            if end <= self.width {
                right = end + 6.0;
                labels.push(label);
            }
        }
        labels
    }

    fn legend(&self) -> Vec<Frame> {
        let named =
            self.names.iter().enumerate().map(|(at, name)| square(colour(at), &SMALL.fit(name, 200.0)));
        let has_others = self.stages.iter().flat_map(|stage| stage.nodes.values());
        let has_others = has_others.clone().any(|pages| pages.last().is_some_and(|pages| *pages > 0));
        let others = if has_others { Some(square(OTHERS, "others")) } else { None };
        named.chain(others).chain([square(FREE, "free")]).collect()
    }
}

/// The programs that were largest, in the order in which they appear.
fn largest(timeline: &Timeline) -> Vec<&str> {
    let sum = |nodes: &BTreeMap<NodeId, u64>| nodes.values().sum::<u64>();
    let mut by_size: Vec<(u64, usize)> =
        timeline.largest.iter().enumerate().map(|(at, (_, nodes))| (sum(nodes), at)).collect();
    by_size.order_by_key(|(size, at)| (std::cmp::Reverse(*size), *at));
    let mut named: Vec<usize> = by_size.into_iter().take(MOST_NAMES).map(|(_, at)| at).collect();
    named.order();
    named.into_iter().map(|at| timeline.largest[at].0.as_str()).collect()
}

/// Where a time is, as a part of all: the outcome of the last step is shown for a tenth of it.
fn part_of(at_s: f64, times: &[f64]) -> f64 {
    let (first, last) = (times.first().copied().unwrap_or(0.0), times.last().copied().unwrap_or(0.0));
    if last > first { (at_s - first) / (last - first) / 1.1 } else { 0.0 }
}

/// The stages of a scenario: of the steps that end in the same place only what the last leaves is seen.
fn stages(timeline: &Timeline, names: &[&str], times: &[f64], most: usize) -> Vec<Stage> {
    let place: BTreeMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (*name, at)).collect_map();
    let cell = |at_s: f64| (part_of(at_s, times) * most as f64).floor();
    let mut has: BTreeMap<&Owner, BTreeMap<NodeId, u64>> = BTreeMap::new();
    let mut sums: BTreeMap<NodeId, Vec<u64>> = BTreeMap::new();
    let mut stages: Vec<Stage> = Vec::new();
    for (at, moment) in timeline.moments.iter().enumerate() {
        for (owner, placement) in &moment.step.changed {
            let column = match owner {
                Owner::Program(name) => place.get(name.as_str()).copied().unwrap_or(names.len()),
                Owner::File(_) | Owner::Cache(_) | Owner::Pool => names.len(),
            };
            let own = |node: &NodeId| placement.as_ref().map_or(0, |placement| placement.own_on(*node));
            let nodes = placement.iter().flat_map(|placement| placement.nodes.keys());
            let now: BTreeMap<NodeId, u64> = nodes.map(|node| (*node, own(node))).collect_map();
            for (node, pages) in has.remove(owner).unwrap_or_default() {
                of_node(&mut sums, node, names)[column] -= pages;
            }
            for (node, pages) in &now {
                of_node(&mut sums, *node, names)[column] += pages;
            }
            has.insert(owner, now);
        }
        let next = times.get(at + 1).copied();
        if next.is_none_or(|next| cell(next) > cell(moment.at_s)) {
            // What was passed over before it lies in the same pixels.
            let from = stages.last().map_or(0.0, |stage| stage.to);
            let to = next.map_or(1.0, |next| part_of(next, times));
            stages.push(Stage { from, to, nodes: sums.clone() });
        }
    }
    stages
}

/// The pages of a node, by the places of the programs.
fn of_node<'s>(sums: &'s mut BTreeMap<NodeId, Vec<u64>>, node: NodeId, names: &[&str]) -> &'s mut Vec<u64> {
    sums.entry(node).or_insert_with(|| vec![0; names.len() + 1])
}
