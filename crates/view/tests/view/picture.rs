//! Rules that the picture keeps for any machine: everything inside, nothing over anything else.

use std::collections::BTreeSet;

use nodewise_machine::{Machine, NodeSet, spec};
use nodewise_source::sysfs::Detail;
use nodewise_view::svg::machine::{HEIGHT, WIDTH};
use nodewise_view::svg::{Caches, Frame, Rect, Role, Theme, Tone, layout, machine_svg};
use proptest::prelude::{ProptestConfig, TestCaseError, prop_assert, proptest};

use crate::any_machine::any_machine;

/// The smallest text that a reader is asked to read, px.
const SMALLEST: f64 = 9.5;

/// The most bytes of a picture: this many whatever is shown, and this many a node, where each differs in
/// everything from the next.
const BYTES: (usize, usize) = (66_000, 1_500);

/// Everything in a frame lies inside it, and nothing in it overlaps; and so on inside.
pub fn tidy(frame: &Frame) -> Result<(), TestCaseError> {
    let mut places: Vec<(Rect, String)> =
        frame.labels.iter().map(|label| (label.area(), label.text.clone())).collect();
    places
        .extend(frame.children.iter().map(|child| (child.area, format!("{:?} {:?}", child.role, child.id))));
    for (area, what) in &places {
        prop_assert!(frame.area.holds(area), "{what} at {area:?} leaves {:?} {:?}", frame.role, frame.area);
        prop_assert!(area.width >= 0.0 && area.height >= 0.0, "{what} has no size");
    }
    // Sorted by the upper edge, only those that begin above another's lower edge can overlap it.
    places.sort_by(|a, b| a.0.y.total_cmp(&b.0.y));
    for (at, (area, what)) in places.iter().enumerate() {
        for (other, name) in places[at + 1..].iter().take_while(|(other, _)| other.y < area.bottom()) {
            prop_assert!(!area.overlaps(other), "{what} at {area:?} overlaps {name} at {other:?}");
        }
    }
    for label in &frame.labels {
        if matches!(frame.role, Role::Distance(_)) {
            prop_assert!(label.tone == Tone::on(frame.role), "{} in {:?}", label.text, frame.role);
        }
        prop_assert!(label.font.size >= SMALLEST, "{} px: {}", label.font.size, label.text);
    }
    frame.children.iter().try_for_each(tidy)
}

fn count(frame: &Frame, role: Role) -> usize {
    usize::from(frame.role == role) + frame.children.iter().map(|child| count(child, role)).sum::<usize>()
}

/// Every text of the document, those in titles too.
fn texts(svg: &str) -> String {
    let document = roxmltree::Document::parse(svg).expect("the document is well-formed");
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    texts.join("\n")
}

#[test]
fn kinds_of_cpus_are_in_the_legend() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/captures");
    let capture = format!("{folder}/20em64t-hybrid-1p6c2t+2ca4co1t.tar.bz2");
    let machine = nodewise_source::input::load(&capture, Detail::Full).unwrap();
    let texts = texts(&machine_svg(&machine, Caches::LastLevel, Theme::Auto));
    for kind in ["fast CPUs: CPUs 0-11, up to 5.2 GHz", "slow CPUs: CPUs 12-19, up to 3.9 GHz"] {
        assert!(texts.contains(kind), "{texts}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn nothing_overlaps_and_everything_is_inside(machine in any_machine()) {
        let page = layout(&machine, Caches::LastLevel);
        prop_assert!(!page.labels.is_empty(), "nothing is drawn");
        prop_assert!(page.area.width <= WIDTH + 0.1, "{} wide", page.area.width);
        prop_assert!(page.area.height <= 2.0 * HEIGHT, "{} high", page.area.height);
        tidy(&page)?;
    }

    #[test]
    fn the_document_is_well_formed_and_ids_are_unique(machine in any_machine()) {
        let svg = machine_svg(&machine, Caches::LastLevel, Theme::Auto);
        prop_assert!(!svg.chars().any(|c| c.is_control() && c != '\n'));
        let document = roxmltree::Document::parse(&svg).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut ids = BTreeSet::new();
        for id in document.descendants().filter_map(|node| node.attribute("id")) {
            prop_assert!(ids.insert(id.to_owned()), "{id} twice");
        }
        let nodes = machine.nodes.len();
        prop_assert!(svg.len() < BYTES.0 + BYTES.1 * nodes, "{} bytes of {nodes} nodes", svg.len());
    }
}

/// Holds a picture to the titles of its axes.
pub fn has_axes(svg: &str, titles: &[&str]) {
    let all = texts(svg);
    for title in titles {
        assert!(all.lines().any(|line| line == *title), "no axis {title:?} in\n{all}");
    }
}

fn check(spec: &str) -> (Machine, Frame) {
    let machine = spec::machine(spec).expect("the spec is one");
    let page = layout(&machine, Caches::LastLevel);
    tidy(&page).expect("nothing overlaps");
    (machine, page)
}

#[test]
fn cores_are_drawn_one_by_one_where_there_is_room() {
    for (spec, cpus) in [
        ("(4c2t 16G l3=8M/4c)", 8),
        ("2x(2x(24c 126G l3=32M/6c)); dist=11,20", 96),
        ("2x(48c2t 1024G l3=105M/48c); dist=21", 192),
        ("2x(96c2t 768G l3=32M/8c); dist=32", 384),
    ] {
        let (_, page) = check(spec);
        assert_eq!(count(&page, Role::Thread), cpus, "{spec}");
        assert!(page.area.height <= HEIGHT, "{spec}: {} high", page.area.height);
    }
}

#[test]
fn a_node_without_cpus_is_drawn_as_memory() {
    let (_, page) = check("(4c 1G) 7x(1G)");
    assert_eq!((count(&page, Role::Node), count(&page, Role::MemoryNode)), (1, 7));
}

#[test]
fn sixty_four_nodes_are_small_readable_and_all_named() {
    let (machine, page) = check("32x(2x(4c 8G)); dist=16,40");
    assert!(page.area.height <= HEIGHT);
    let svg = machine_svg(&machine, Caches::LastLevel, Theme::Auto);
    assert!(svg.len() < 50_000, "{} bytes", svg.len());
    assert!(texts(&svg).contains("64 nodes: 0-63"));
}

#[test]
fn every_node_of_a_machine_is_named() {
    for spec in [
        "2x(10c2t 64G); dist=21; ids=0,8",
        "(4c 1G) 7x(1G)",
        "16x(2x(4c 8G)); dist=16,40; dev=net:eth0@5",
        "4x(8c 16G) 3x(64G) (128G)",
    ] {
        let machine = spec::machine(spec).unwrap();
        let all = texts(&machine_svg(&machine, Caches::LastLevel, Theme::Auto));
        // Lists of nodes come after "node", "nodes" or "nodes:".
        let named: NodeSet = all
            .split(['\n', ' '])
            .zip(all.split(['\n', ' ']).skip(1))
            .filter(|(before, _)| before.starts_with("node"))
            .filter_map(|(_, list)| list.trim_end_matches(',').parse::<NodeSet>().ok())
            .fold(NodeSet::new(), |all, nodes| all.union(&nodes));
        assert!(machine.node_ids().is_subset(&named), "{spec}: {named} of {}", machine.node_ids());
    }
}

#[test]
fn the_same_machine_gives_the_same_bytes() {
    let machine = spec::machine("2x(2x(24c 126G l3=32M/6c)); dist=11,20; dev=net:eth0@1").unwrap();
    assert_eq!(
        machine_svg(&machine, Caches::LastLevel, Theme::Auto),
        machine_svg(&machine.clone(), Caches::LastLevel, Theme::Auto)
    );
}

#[test]
fn the_theme_follows_the_viewer_unless_told() {
    let machine = spec::machine("(1c 1G)").unwrap();
    assert!(machine_svg(&machine, Caches::LastLevel, Theme::Auto).contains("prefers-color-scheme:dark"));
    assert!(!machine_svg(&machine, Caches::LastLevel, Theme::Light).contains("prefers-color-scheme"));
    assert_ne!(
        machine_svg(&machine, Caches::LastLevel, Theme::Light),
        machine_svg(&machine, Caches::LastLevel, Theme::Dark)
    );
}

#[test]
fn a_picture_says_what_it_shows_and_where_that_comes_from() {
    let check = |spec: &str, expected: &[&str]| {
        let machine = spec::machine(spec).unwrap();
        let all = texts(&machine_svg(&machine, Caches::LastLevel, Theme::Auto));
        for text in expected {
            assert!(all.lines().any(|line| line == *text), "{spec}: no {text:?} in\n{all}");
        }
    };
    check("(1c 1G)", &["1 CPU, 1 GiB in 1 node", "from spec (1c 1G)", "CPU 0"]);
    check("(2c 1G); arch=x86_64", &["x86_64, from spec (2c 1G); arch=x86_64", "CPUs 0-1"]);
    let mut live = spec::machine("(1c 1G); arch=x86_64").unwrap();
    live.origin = nodewise_machine::Origin::Live;
    assert!(texts(&machine_svg(&live, Caches::LastLevel, Theme::Auto)).lines().any(|line| line == "x86_64"));
}

#[test]
fn caches_nearer_than_the_last_level_are_listed_on_demand() {
    let machine = spec::machine("(4c2t 16G l1d=48K l1i=32K l2=2M l3=8M/4c)").unwrap();
    let all = |caches| texts(&machine_svg(&machine, caches, Theme::Auto));
    let (default, demanded) = (all(Caches::LastLevel), all(Caches::All));
    for line in
        ["L1d: 48 KiB x 4, each for 1 core", "L2: 2 MiB x 4, each for 1 core", "L3: 8 MiB, for 4 cores"]
    {
        assert!(demanded.lines().any(|found| found == line), "{line}: {demanded}");
        assert!(!default.contains(line), "{line}: {default}");
    }
    tidy(&layout(&machine, Caches::All)).expect("nothing overlaps");
}

#[test]
fn figures_of_the_firmware_are_marked_as_declared() {
    let machine = spec::machine("2x(2c 8G); access=0>0:90ns/200G; access=1>1:90ns/200G").unwrap();
    let all = texts(&machine_svg(&machine, Caches::LastLevel, Theme::Auto));
    assert!(all.lines().any(|line| line == "declared: 90 ns, 200 GB/s"), "{all}");
}

#[test]
fn equal_memory_has_bars_of_equal_length_in_cards_of_any_width() {
    fn bars(frame: &Frame, found: &mut Vec<f64>) {
        if frame.role == Role::Memory {
            found.push(frame.area.width);
        }
        frame.children.iter().for_each(|child| bars(child, found));
    }
    for (spec, expected) in [("(4c 1G) 7x(1G)", [1.0; 8].as_slice()), ("2x(8c 64G) (32G)", &[1.0, 1.0, 0.5])]
    {
        let mut found = Vec::new();
        bars(&check(spec).1, &mut found);
        let shares: Vec<f64> =
            found.iter().map(|length| (length / found[0] * 100.0).round() / 100.0).collect();
        assert_eq!(shares, expected, "{spec}");
    }
}
