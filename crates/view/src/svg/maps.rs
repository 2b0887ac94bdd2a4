//! The mappings of a process: for each a strip, coloured by the nodes of its pages.
//!
//! The length of a strip says nothing: all are alike, so that the nodes of a small mapping are as legible as those
//! of a large one. Sizes have a column of their own, to scale.

use std::collections::BTreeMap;

use nodewise_machine::mapping::{Mapping, MappingKind};
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, NodeId};

use crate::digest::counts::plural;
use crate::digest::maps::{Maps, Tally, policy_words};
use crate::svg::frame::{Anchor, Frame, Label, Pen, Role, Stack, Stroke, Tone};
use crate::svg::legend::square;
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::plot::category;
use crate::svg::sheet::{self, MARGIN, SMALL, TEXT, WIDTH};

/// Mappings that have a strip of their own: the largest. The others are summed by kind.
const MOST: usize = 24;
/// Nodes that have a colour of their own: those with most memory.
const MOST_NODES: usize = Role::CATEGORIES as usize;
/// Height of a row, and of the strip in it.
const ROW: f64 = 18.0;
const STRIP: f64 = 12.0;
/// Left ends of the sizes as text end and as bar, and of the strips; the first is the room for names.
const NAMES: f64 = 262.0;
const NUMBERS: f64 = 332.0;
const SIZES: f64 = 340.0;
const SIZE: f64 = 110.0;
const STRIPS: f64 = 464.0;
/// Height of the line of heads, and of the axis below.
const HEAD: f64 = 18.0;
const AXIS: f64 = 34.0;
/// Below this share a part of a strip is narrower than a pixel.
const LEAST: f64 = 0.0005;

/// Draws the mappings of a process as an SVG document, of bounded size; `provenance` is the caption.
///
/// # Units
/// Lengths in px; 988 wide.
pub fn maps_svg(maps: &Maps<'_>, provenance: &str, theme: Theme) -> String {
    paint(&maps_page(maps, provenance), &title(maps), "memory of each mapping by node", theme)
}

/// Lays out the picture.
pub fn maps_page(maps: &Maps<'_>, provenance: &str) -> Frame {
    let mut stack = Stack::new(Role::Page, WIDTH + 2.0 * MARGIN, MARGIN);
    sheet::begin(&title(maps), provenance, &mut stack);
    stack.text(&maps.method(), TEXT, Tone::Faint, 2);
    stack.gap(12.0);
    let colours = Colours::new(&maps.all());
    stack.flow(colours.legend(&maps.all()), 10.0);
    stack.gap(12.0);
    stack.frame(chart(maps, &colours));
    stack.gap(10.0);
    let mut sentences: Vec<(Tone, String)> =
        maps.findings().into_iter().map(|finding| (Tone::Notable, finding)).collect();
    sentences.extend(maps.process.notes.iter().map(|note| (Tone::Notable, note.clone())));
    sheet::some(&sentences, 3, &mut stack);
    let mut caption =
        "All strips have the same length: the shares of a mapping's pages by node. Bars are to scale. \
                       Pages that several processes map count in each of them."
            .to_owned();
    if !maps.all().is_exact() {
        caption.push_str(" Pages were sampled at random; --json has the 95 % intervals.");
    }
    stack.text(&caption, SMALL, Tone::Faint, 3);
    stack.finish()
}

fn title(maps: &Maps<'_>) -> String {
    let process = maps.process;
    let name = process.name.as_deref().unwrap_or("(no name)");
    let resident = process.resident.unwrap_or_else(|| maps.all().all());
    format!("{} {name}: {resident} resident, by mapping and node", process.pid)
}

/// The colour of each node; nodes without one share that of the rest.
struct Colours {
    own: Vec<NodeId>,
    others: usize,
}

impl Colours {
    fn new(all: &Tally) -> Self {
        let shares = all.shares();
        let mut own: Vec<NodeId> = shares.iter().map(|(node, _)| *node).take(MOST_NODES).collect();
        own.sort_unstable();
        Self { others: shares.len() - own.len(), own }
    }

    /// A node's place among those with a colour; the last place is that of all others.
    fn place(&self, node: NodeId) -> usize {
        self.own.iter().position(|own| *own == node).unwrap_or(self.own.len())
    }

    fn role(&self, place: usize) -> Role {
        if place < self.own.len() { Role::Category(category(place)) } else { Role::Rest }
    }

    fn legend(&self, all: &Tally) -> Vec<Frame> {
        let entry = |(place, node): (usize, &NodeId)| {
            square(self.role(place), &format!("node {node}, {}", all.on(*node).size))
        };
        let mut entries: Vec<Frame> = self.own.iter().enumerate().map(entry).collect();
        if self.others > 0 {
            entries.push(square(Role::Rest, &plural(self.others, "other node")));
        }
        if has_unknown(all) {
            entries.push(square(Role::Memory, "node not known"));
        }
        entries
    }
}

/// Whether some of the memory is on no known node.
fn has_unknown(tally: &Tally) -> bool {
    let known: f64 = tally.shares().iter().map(|(_, share)| share).sum();
    tally.all() > Bytes::new(0) && known < 1.0 - LEAST
}

/// A row of the chart.
struct Row {
    name: String,
    tip: String,
    tally: Tally,
}

/// All memory, the largest mappings, and the others by kind.
fn rows(maps: &Maps<'_>) -> Vec<Row> {
    let largest = maps.largest(usize::MAX);
    // A sum of one would be no shorter than the mapping.
    let most = if largest.len() <= MOST + 1 { largest.len() } else { MOST };
    let all = Row { name: "all".to_owned(), tip: plural(largest.len(), "mapping"), tally: maps.all() };
    let single = largest[..most].iter().map(|(_, mapping)| single(mapping));
    let mut others: BTreeMap<MappingKind, Vec<&Mapping>> = BTreeMap::new();
    for (_, mapping) in &largest[most..] {
        others.entry(mapping.kind).or_default().push(mapping);
    }
    let folded = others.into_iter().map(|(kind, mappings)| {
        let name = match mappings.len() {
            1 => format!("1 other mapping: {}", kind.words()),
            count => format!("{count} other mappings: {}", kind.words()),
        };
        Row { tip: name.clone(), name, tally: Tally::from_mappings(mappings) }
    });
    [all].into_iter().chain(single).chain(folded).collect()
}

fn single(mapping: &Mapping) -> Row {
    let name = mapping.name.as_deref().unwrap_or(mapping.kind.words());
    let range = format!("{:x}-{:x} {}", mapping.start, mapping.end, mapping.permissions);
    let policy = policy_words(mapping).map(|policy| format!(", {policy}")).unwrap_or_default();
    let is_file = mapping.name.as_deref().is_some_and(|name| name.starts_with('/'));
    Row {
        name: if is_file { name.to_owned() } else { format!("{name}, {:x}", mapping.start) },
        tip: format!("{name}, {range}{policy}"),
        tally: Tally::from_mappings([mapping]),
    }
}

fn chart(maps: &Maps<'_>, colours: &Colours) -> Frame {
    let rows = rows(maps);
    // Below the sum of all there is a gap.
    const GAP: f64 = 8.0;
    let top = |at: usize| HEAD + at as f64 * ROW + if at > 0 { GAP } else { 0.0 };
    let bottom = top(rows.len());
    let mut frame = Frame::new(Role::Group, WIDTH, bottom + AXIS);
    let head = |text, x| Label::new(text, SMALL, x, (0.0, HEAD)).toned(Tone::Faint);
    frame.labels.extend([head("mapping", 0.0), head("resident", SIZES), head("nodes of its pages", STRIPS)]);
    let largest = rows.iter().skip(1).map(|row| row.tally.all()).max().unwrap_or_default();
    for (at, row) in rows.iter().enumerate() {
        let scale = if at == 0 { None } else { Some(largest) };
        frame.children.push(drawn(row, scale, colours).moved(0.0, top(at)));
    }
    axis(bottom, &mut frame);
    frame
}

/// The scale of the strips.
fn axis(y: f64, frame: &mut Frame) {
    let width = WIDTH - STRIPS;
    for quarter in 0..=4_u32 {
        let x = STRIPS + width * f64::from(quarter) / 4.0;
        frame.strokes.push(Stroke { points: vec![(x, y), (x, y + 4.0)], pen: Pen::Limit, ring: 0.0 });
        let anchor = match quarter {
            0 => Anchor::Start,
            4 => Anchor::End,
            _ => Anchor::Middle,
        };
        let label = Label::new(&format!("{} %", quarter * 25), SMALL, x, (y + 4.0, 14.0));
        frame.labels.push(label.anchored(anchor).toned(Tone::Faint));
    }
    let text = "share of the mapping's resident memory";
    let label = Label::new(text, SMALL, STRIPS + width / 2.0, (y + 18.0, 14.0));
    frame.labels.push(label.anchored(Anchor::Middle).toned(Tone::Faint));
}

/// A row: name, size, the size to scale of the largest, and the strip.
fn drawn(row: &Row, largest: Option<Bytes>, colours: &Colours) -> Frame {
    let mut frame = Frame::new(Role::Group, WIDTH, ROW);
    frame.tip = Some(row.tip.clone());
    let size = row.tally.all();
    frame.labels.push(Label::new(&tail(&row.name, NAMES - 6.0), SMALL, 0.0, (0.0, ROW)));
    frame.labels.push(Label::new(&size.to_string(), SMALL, NUMBERS, (0.0, ROW)).anchored(Anchor::End));
    let inside = (ROW - STRIP) / 2.0;
    if let Some(largest) = largest.filter(|largest| largest.get() > 0) {
        let width = size.get() as f64 / largest.get() as f64 * SIZE;
        frame
            .children
            .push(Frame::new(Role::OtherDevice, width.clamp(0.5, SIZE), STRIP).moved(SIZES, inside));
    }
    frame.children.push(strip(&row.tally, colours).moved(STRIPS, inside));
    frame
}

/// The parts of a strip, the nodes in their order, all others behind them.
fn strip(tally: &Tally, colours: &Colours) -> Frame {
    let width = WIDTH - STRIPS;
    let mut strip = Frame::new(Role::Memory, width, STRIP);
    let mut parts: BTreeMap<usize, (f64, Vec<String>)> = BTreeMap::new();
    for (node, share) in tally.shares() {
        let part = parts.entry(colours.place(node)).or_default();
        part.0 += share;
        part.1.push(format!("node {node}: {}, {:.1} %", tally.on(node).size, share * 100.0));
    }
    let mut x = 0.0;
    for (place, (share, words)) in parts.into_iter().filter(|(_, (share, _))| *share >= LEAST) {
        let part = (share * width).min(width - x);
        if part > 0.0 {
            let mut frame = Frame::new(colours.role(place), part, STRIP).moved(x, 0.0);
            frame.tip = Some(words.join("; "));
            strip.children.push(frame);
            x += part;
        }
    }
    strip
}

/// A text fit to be shown, or its end where it is too long: of a path it says most.
fn tail(text: &str, width: f64) -> String {
    let text = &*printable(text);
    if SMALL.width(text) <= width {
        return text.to_owned();
    }
    let mut ends = text.char_indices().map(|(at, _)| format!("...{}", &text[at..]));
    ends.find(|end| SMALL.width(end) <= width).unwrap_or_else(|| SMALL.fit(text, width))
}

#[cfg(test)]
mod tests {

    use nodewise_machine::Pid;
    use nodewise_machine::mapping::{DrawnPages, MappedPages, ProcessMappings};
    use proptest::prelude::{any, prop, prop_assert, proptest};

    use super::*;
    use crate::digest::maps::GroupBy;

    fn mapping(number: u64, kind: MappingKind, pages: MappedPages, name: Option<&str>) -> Mapping {
        let start = 0x7f00_0000_0000 + (number << 24);
        Mapping { name: name.map(str::to_owned), pages, ..Mapping::new(start..start + (1 << 24), kind) }
    }

    fn counted(nodes: &[(u32, u64)]) -> MappedPages {
        MappedPages::Counted(
            nodes.iter().map(|(node, size)| (NodeId::new(*node), Bytes::new(*size))).collect(),
        )
    }

    fn process(mappings: Vec<Mapping>) -> ProcessMappings {
        ProcessMappings {
            name: Some("a\u{1b}[2Jb".to_owned()),
            ..ProcessMappings::new(Pid::new(7), mappings)
        }
    }

    fn page(process: &ProcessMappings) -> (Frame, String) {
        let maps = Maps { process, by: GroupBy::Kind, shared_with: None };
        let provenance = "Some CPU, Linux 6.12.1, as of 2026-11-22 15:00 UTC";
        (maps_page(&maps, provenance), maps_svg(&maps, provenance, Theme::Auto))
    }

    /// Everything inside, and nothing over anything else.
    fn check_tidy(frame: &Frame) {
        let places =
            frame.labels.iter().map(Label::area).chain(frame.children.iter().map(|child| child.area));
        let places: Vec<_> = places.collect();
        for (at, place) in places.iter().enumerate() {
            assert!(frame.area.holds(place), "{place:?} leaves {:?}", frame.area);
            assert!(
                places[at + 1..].iter().all(|other| !place.overlaps(other)),
                "{place:?} in {:?}",
                frame.role
            );
        }
        frame.children.iter().for_each(check_tidy);
    }

    fn texts(frame: &Frame) -> Vec<String> {
        let own = frame.labels.iter().map(|label| label.text.clone());
        own.chain(frame.children.iter().flat_map(texts)).collect()
    }

    #[test]
    fn strips_have_the_shares_of_their_nodes() {
        let half = mapping(0, MappingKind::Heap, counted(&[(0, 3 << 20), (1, 1 << 20)]), Some("[heap]"));
        let process = process(vec![half]);
        let (page, svg) = page(&process);
        let mut widths = Vec::new();
        fn strips(frame: &Frame, widths: &mut Vec<(Role, f64)>) {
            if matches!(frame.role, Role::Category(_)) && frame.tip.is_some() {
                widths.push((frame.role, frame.area.width));
            }
            frame.children.iter().for_each(|child| strips(child, widths));
        }
        strips(&page, &mut widths);
        let full = WIDTH - STRIPS;
        let expected = [(Role::Category(0), full * 0.75), (Role::Category(1), full * 0.25)];
        assert_eq!(widths, [expected, expected].concat(), "all memory, and the mapping");
        assert!(svg.contains("node 1: 1 MiB, 25.0 %"), "{svg}");
        assert!(!svg.contains('\u{1b}'));
    }

    #[test]
    fn many_mappings_are_folded_by_kind_and_many_nodes_into_one_colour() {
        let nodes =
            |number: u64| (0..16).map(|node| (node, (number + u64::from(node)) << 12)).collect::<Vec<_>>();
        let kind = |number: u64| if number % 2 == 0 { MappingKind::Anonymous } else { MappingKind::File };
        let all =
            (1..100).map(|number| mapping(number, kind(number), counted(&nodes(number)), Some("/lib/x")));
        let process = process(all.collect());
        let (page, svg) = page(&process);
        check_tidy(&page);
        let texts = texts(&page);
        let has = |words: &str| texts.iter().any(|text| text.contains(words));
        assert!(has("37 other mappings: anonymous") && has("38 other mappings: files"), "{texts:?}");
        assert!(has("8 other nodes") && !has("node not known"), "{texts:?}");
        assert!(svg.len() < 80_000, "{} bytes", svg.len());
    }

    #[test]
    fn memory_whose_node_nothing_says_is_named() {
        let unknown = MappedPages::Unknown { resident: Some(Bytes::from_mib(3)) };
        let process = process(vec![mapping(1, MappingKind::Anonymous, unknown, None)]);
        let (page, _) = page(&process);
        assert!(texts(&page).iter().any(|text| text == "node not known"));
        let (empty, _) = self::page(&self::process(Vec::new()));
        check_tidy(&empty);
    }

    proptest! {
        #[test]
        fn any_mappings_are_drawn_inside_the_picture(
            all in prop::collection::vec((0usize..7, ".{0,80}", any::<bool>(), prop::collection::btree_map(0u32..20, any::<u64>(), 0..6)), 0..40),
        ) {
            let made = (0..).zip(&all).map(|(number, (kind, name, drawn, nodes))| {
                let pages = if *drawn {
                    let hits = nodes.iter().map(|(node, size)| (NodeId::new(*node), size % 100)).collect();
                    MappedPages::Drawn(DrawnPages { candidates: Bytes::from_mib(9), drawn: 600, nodes: hits })
                } else {
                    counted(&nodes.iter().map(|(node, size)| (*node, *size)).collect::<Vec<_>>())
                };
                mapping(number, MappingKind::ALL[*kind], pages, Some(name))
            });
            let process = process(made.collect());
            let (page, svg) = page(&process);
            check_tidy(&page);
            prop_assert!(!svg.chars().any(|c| c.is_control() && c != '\n'));
            prop_assert!(roxmltree::Document::parse(&svg).is_ok(), "{}", svg);
        }
    }
}
