//! Rules that the text views keep for any machine and any width.

use nodewise_machine::{Machine, spec};
use nodewise_view::digest::device::devices_by_node;
use nodewise_view::digest::{CacheLevel, Counts};
use nodewise_view::style::NARROWEST;
use nodewise_view::text::{overview, overview::HINTS, show};
use nodewise_view::{Colour, Style};
use proptest::prelude::{ProptestConfig, TestCaseError, prop_assert, prop_assert_eq, proptest};
use unicode_width::UnicodeWidthStr;

use crate::any_machine::any_machine;

/// Checks that a text fits, holds nothing that drives a terminal, and ends cleanly.
fn fits(text: &str, width: usize) -> Result<(), TestCaseError> {
    for line in text.lines() {
        prop_assert!(line.width() <= width, "{} columns of {width}: {line:?}", line.width());
        prop_assert!(!line.ends_with(' '), "blanks at the end: {line:?}");
        prop_assert!(!line.chars().any(char::is_control), "control character: {line:?}");
    }
    prop_assert!(text.ends_with('\n'), "no newline at the end");
    prop_assert!(!text.contains("\n\n\n"), "two blank lines");
    Ok(())
}

/// The text without its ANSI sequences.
fn without_colour(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("\x1b[") {
        plain.push_str(&rest[..start]);
        let end = rest[start..].find('m').map_or(rest.len(), |end| start + end + 1);
        rest = &rest[end..];
    }
    plain + rest
}

/// The rows of the node table: the lines between its head and the next blank line or remark.
fn node_rows(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .skip_while(|line| !line.starts_with("Nodes"))
        .skip(2)
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.first().is_some_and(|word| word.parse::<u32>().is_ok()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_line_fits_and_drives_no_terminal(machine in any_machine(), width in NARROWEST..200) {
        fits(&show(&machine, &Style::plain(width)), width)?;
        fits(&overview(&machine, &HINTS, &Style::plain(width)), width)?;
    }

    #[test]
    fn colour_adds_nothing_but_colour(machine in any_machine(), width in NARROWEST..200) {
        let plain = show(&machine, &Style::plain(width));
        let coloured = show(&machine, &Style::new(width, Colour::Always));
        prop_assert_eq!(without_colour(&coloured), plain);
    }

    #[test]
    fn every_node_has_its_row_with_its_size(machine in any_machine()) {
        let text = show(&machine, &Style::plain(2000));
        let rows = node_rows(&text);
        prop_assert_eq!(rows.len(), machine.nodes.len());
        for (row, node) in rows.iter().zip(machine.nodes.values()) {
            prop_assert_eq!(row[0], node.id.to_string());
            let size = node.memory_total().map_or_else(|| "-".to_owned(), |size| size.to_string());
            // Where no node's size is known, the table has no such column.
            if machine.memory_total().is_some() {
                prop_assert!(row[1..].join(" ").starts_with(&size), "{row:?} has {size}");
            }
            let cpus = machine.cpus_of(node.id);
            if !cpus.is_empty() {
                prop_assert!(row.contains(&cpus.len().to_string().as_str()));
                let list = cpus.to_string();
                prop_assert!(row.iter().any(|word| word.trim_end_matches(',') == list), "{row:?} lists {list}");
            }
        }
    }
}

proptest! {
    #[test]
    fn sums_leave_nothing_out(machine in any_machine()) {
        let caches: usize =
            CacheLevel::all(&machine).iter().flat_map(|level| &level.groups).map(|group| group.count).sum();
        prop_assert_eq!(caches, machine.caches.len());
        let devices: usize =
            devices_by_node(&machine).values().map(|devices| devices.shown.len() + devices.others).sum();
        prop_assert_eq!(devices, machine.devices.len());
        let counts = Counts::from_machine(&machine);
        prop_assert_eq!(counts.cpus + counts.offline, machine.cpus.len());
        if let (Some(packages), Some(cores), Some(threads)) =
            (counts.packages, counts.cores_per_package, counts.threads_per_core)
        {
            prop_assert_eq!(packages * cores * threads, counts.cpus);
        }
    }
}

/// The numbers of the table of distances, row by row, as the text shows them.
fn distance_rows(text: &str) -> Vec<Vec<String>> {
    text.lines()
        .skip_while(|line| !line.starts_with("Distances"))
        .skip(2)
        .take_while(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>())
        .filter(|row: &Vec<String>| row.iter().all(|cell| cell == "-" || cell.parse::<u32>().is_ok()))
        .collect()
}

fn distances(machine: &Machine) -> Vec<Vec<String>> {
    let cell = |cell: &Option<u32>| cell.map_or_else(|| "-".to_owned(), |value| value.to_string());
    machine.distances.rows().map(|(_, row)| row.iter().map(cell).collect()).collect()
}

#[test]
fn the_table_of_distances_is_the_machines() {
    for spec in [
        "2x(10c2t 64G); dist=21",
        "2x(2x(24c 126G)); dist=11,20",
        "3x(1c 1G); dist=10,12,255/13,10,14/15,16,10; ids=0,7,300",
    ] {
        let machine = spec::machine(spec).unwrap();
        assert_eq!(distance_rows(&show(&machine, &Style::plain(80))), distances(&machine), "{spec}");
    }
}

#[test]
fn sixty_four_nodes_are_told_in_a_sentence_where_it_is_exact() {
    let machine = spec::machine("32x(2x(4c 8G)); dist=16,40").unwrap();
    let text = show(&machine, &Style::plain(80));
    assert!(text.contains("  0-63: 10 to itself, 16 inside a package, 40 to others\n"), "{text}");
}
