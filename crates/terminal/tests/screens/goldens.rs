//! Screens that a person has read.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nodewise_terminal::{App, Inks, Mappings, Origin, Position, Reading};

use crate::{app, example, reading, screen, type_keys};

#[track_caller]
fn golden(name: &str, text: String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    let expected = snapbox::Data::read_from(&path, None).raw();
    snapbox::Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV).eq(text, expected);
}

#[test]
fn processes_below_the_nodes() {
    for (width, height) in [(60, 15), (80, 24), (160, 50), (200, 60)] {
        golden(&format!("processes-4-nodes-{width}x{height}"), screen(&mut app(4, 60), width, height));
    }
    golden("processes-1-node-80x24", screen(&mut app(1, 5), 80, 24));
    golden("processes-8-nodes-80x24", screen(&mut app(8, 5), 80, 24));
    golden("processes-64-nodes-80x24", screen(&mut app(64, 5), 80, 24));
    golden("processes-64-nodes-60x15", screen(&mut app(64, 5), 60, 15));
    golden("processes-64-nodes-200x60", screen(&mut app(64, 5000), 200, 60));
    golden("processes-none-80x24", screen(&mut app(4, 0), 80, 24));
}

#[test]
fn nodes_and_findings() {
    for (nodes, width, height) in
        [(1, 80, 24), (4, 60, 15), (4, 80, 24), (4, 160, 50), (64, 80, 24), (64, 200, 60)]
    {
        let mut app = app(nodes, 5);
        type_keys(&mut app, "1");
        golden(&format!("nodes-{nodes}-{width}x{height}"), screen(&mut app, width, height));
    }
}

#[test]
fn one_process_against_the_nodes() {
    for (nodes, width, height) in [(1, 80, 24), (4, 60, 15), (4, 80, 24), (4, 160, 50), (64, 80, 24)] {
        let mut app = app(nodes, 9);
        type_keys(&mut app, "jj<Enter>");
        golden(&format!("process-{nodes}-nodes-{width}x{height}"), screen(&mut app, width, height));
    }
}

#[test]
fn mappings_of_a_process() {
    let mut app = app(4, 9);
    type_keys(&mut app, "<Enter><Enter>");
    golden("mappings-asked-80x24", screen(&mut app, 80, 24));
    app.take_mappings(Mappings::Read(example::identity(4008), Arc::new(example::mappings(4008, "postgres"))));
    golden("mappings-80x24", screen(&mut app, 80, 24));
    golden("mappings-160x50", screen(&mut app, 160, 50));
}

#[test]
fn devices_and_their_interrupts() {
    let mut app = app(4, 5);
    type_keys(&mut app, "5");
    golden("devices-80x24", screen(&mut app, 80, 24));
}

#[test]
fn services_and_their_memory() {
    for (nodes, width, height) in [(4, 60, 15), (4, 80, 24), (4, 160, 50), (64, 80, 24)] {
        let mut app = app(nodes, 5);
        app.take(reading(&example::with_groups(nodes, 5, 200), &example::with_groups(nodes, 5, 202)));
        type_keys(&mut app, "6");
        golden(&format!("services-{nodes}-nodes-{width}x{height}"), screen(&mut app, width, height));
    }
}

#[test]
fn help_and_what_is_typed() {
    let mut app = app(4, 60);
    type_keys(&mut app, "?");
    golden("help-80x24", screen(&mut app, 80, 24));
    type_keys(&mut app, "<Esc>/java rss>1");
    golden("filter-80x24", screen(&mut app, 80, 24));
    type_keys(&mut app, "x<Enter>");
    golden("filter-refused-80x24", screen(&mut app, 80, 24));
}

#[test]
fn a_terminal_that_is_too_small_says_so() {
    golden("too-small-59x20", screen(&mut app(4, 5), 59, 20));
    golden("too-small-12x1", screen(&mut app(4, 5), 12, 1));
}

#[test]
fn hostile_names_are_visible_and_lines_stay_as_long() {
    let reading = reading(&example::hostile(200), &example::hostile(202));
    let mut app =
        App::new(Origin::Recording(example::HOSTILE[0].to_owned()), Duration::from_secs(1), Inks::Plain);
    app.take(reading);
    golden("hostile-processes-160x50", screen(&mut app, 160, 50));
    for keys in ["1", "2", "3", "4", "5", "6", "?", "<Esc>e\x1b\u{9b}\u{202e}"] {
        type_keys(&mut app, keys);
        let mappings = Arc::new(example::mappings(4000, example::HOSTILE[0]));
        app.take_mappings(Mappings::Read(example::identity(4000), mappings));
        for (width, height) in [(60, 15), (80, 24), (200, 60)] {
            let text = screen(&mut app, width, height);
            let hazard = |c: char| c != '\n' && c.is_control() || "\u{202e}\u{200b}".contains(c);
            assert!(!text.contains(hazard), "{keys}: {text:?}");
        }
    }
}

#[test]
fn a_recording_says_where_it_is_and_what_is_missing() {
    let mut app = App::new(Origin::Recording("night.nwr".to_owned()), Duration::from_secs(1), Inks::Plain);
    let Reading { running, .. } = reading(&example::sample(4, 5, 200), &example::sample(4, 5, 202));
    let position = Position {
        at: Duration::from_secs(5025),
        length: Duration::from_secs(28_800),
        gap: Some("12 s between two samples are missing: a damaged block".to_owned()),
    };
    app.take(Reading { running, position: Some(position) });
    golden("recording-80x24", screen(&mut app, 80, 24));
}
