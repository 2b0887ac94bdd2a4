//! Formats of other programs: whatever a machine holds, what is written is well-formed.

use nodewise_diagnose::sample::{Moment, Sample};
use nodewise_machine::printable::printable;
use nodewise_source::sample::{SampleOptions, Sampler};
use nodewise_source::written;
use nodewise_view::export::{self, Exposition, MeasuredMemory};
use proptest::prelude::{ProptestConfig, TestCaseError, prop_assert, proptest};
use roxmltree::{Document, ParsingOptions};

use crate::any_machine::any_machine;

fn is_xml(text: &str) -> Result<(), TestCaseError> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let parsed = Document::parse_with_options(text, options);
    prop_assert!(parsed.is_ok(), "{:?}\n{text}", parsed.err());
    Ok(())
}

/// Checks the objects of hwloc: sets lie in those around them, and nodes are where their parents are.
fn objects_lie_in_each_other(text: &str) -> Result<(), TestCaseError> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).expect("it is XML");
    let members = |text: &str| -> Vec<(usize, u32)> {
        let words = text.rsplit(',').enumerate();
        words
            .map(|(at, word)| (at, u32::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(0)))
            .collect()
    };
    let is_within = |inner: &str, outer: &str| {
        let outer = members(outer);
        members(inner).into_iter().all(|(at, word)| word & !outer.get(at).map_or(0, |(_, outer)| *outer) == 0)
    };
    for object in document.descendants().filter(|node| node.has_tag_name("object")) {
        let Some(around) = object.parent().filter(|parent| parent.has_tag_name("object")) else { continue };
        for set in ["cpuset", "complete_cpuset", "nodeset", "complete_nodeset"] {
            if let (Some(inner), Some(outer)) = (object.attribute(set), around.attribute(set)) {
                prop_assert!(is_within(inner, outer), "{set} {inner} in {outer}\n{text}");
            }
        }
    }
    Ok(())
}

/// Checks the grammar of metrics: a head for each family, behind it its samples, no sample twice.
fn are_metrics(text: &str, exposition: Exposition) -> Result<(), TestCaseError> {
    let mut family = String::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut families = std::collections::BTreeSet::new();
    for line in text.lines() {
        if line == "# EOF" {
            prop_assert!(exposition == Exposition::OpenMetrics);
        } else if let Some(head) = line.strip_prefix("# HELP ") {
            family = head.split(' ').next().unwrap_or_default().to_owned();
            prop_assert!(families.insert(family.clone()), "{family} twice");
        } else if let Some(head) = line.strip_prefix("# TYPE ") {
            prop_assert!(head.starts_with(&family), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').expect("a sample has a value");
            let value: f64 = value.parse().expect("a value is a number");
            prop_assert!(value.is_finite() && sample.starts_with(&family), "{line}");
            prop_assert!(seen.insert(sample.to_owned()), "{sample} twice");
        }
    }
    Ok(())
}

/// Checks that quotes are balanced in each line, apart from those behind a backslash.
fn quotes_are_closed(text: &str) -> Result<(), TestCaseError> {
    for line in text.lines() {
        let bare = line.replace("\\\\", "").replace("\\\"", "");
        prop_assert!(bare.matches('"').count() % 2 == 0, "{line}");
    }
    Ok(())
}

/// Checks that every row of a table has as many cells as its head.
fn rows_fit_their_heads(text: &str) -> Result<(), TestCaseError> {
    let cells = |line: &str| line.replace("\\\\", "").replace("\\|", "").matches('|').count();
    let mut columns = None;
    for line in text.lines() {
        if line.starts_with('|') {
            prop_assert!(*columns.get_or_insert(cells(line)) == cells(line), "{line}\n{text}");
        } else {
            prop_assert!(line.is_empty() || line.starts_with("### "), "{line}");
            columns = None;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_machine_is_written_well_formed(machine in any_machine()) {
        if let Ok(text) = export::hwloc(&machine, &MeasuredMemory::default()) {
            is_xml(&text)?;
            objects_lie_in_each_other(&text)?;
        } else {
            prop_assert!(machine.online_cpus().is_empty());
        }
        if let Ok(text) = export::libvirt(&machine) {
            is_xml(&text)?;
        }
        let mut sampler = Sampler::new(written::tree_of(&machine), SampleOptions::default());
        let sample: Sample = sampler.sample(Moment::default());
        for exposition in [Exposition::Text, Exposition::OpenMetrics] {
            are_metrics(&export::metrics(&machine, &sample, exposition), exposition)?;
        }
        for text in [export::dot(&machine), export::mermaid(&machine)] {
            quotes_are_closed(&text)?;
        }
        rows_fit_their_heads(&export::markdown(&machine))?;
        let texts = [
            Ok(export::dot(&machine)),
            Ok(export::mermaid(&machine)),
            Ok(export::markdown(&machine)),
            Ok(export::nfd(&machine)),
            export::hwloc(&machine, &MeasuredMemory::default()),
            export::slurm(&machine, "web7"),
            export::kubernetes(&machine, "web7"),
        ];
        for text in texts.into_iter().flatten() {
            let lines = text.replace('\n', "");
            prop_assert!(printable(&lines) == lines, "not fit for a terminal: {lines:?}");
        }
    }
}
