//! Formats of other programs: whatever a machine holds, what is written is well-formed.

use nodewise_machine::printable::printable;
use nodewise_view::export;
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_machine_is_written_well_formed(machine in any_machine()) {
        if let Ok(text) = export::hwloc(&machine) {
            is_xml(&text)?;
            objects_lie_in_each_other(&text)?;
        } else {
            prop_assert!(machine.online_cpus().is_empty());
        }
        let texts = [
            export::hwloc(&machine),
        ];
        for text in texts.into_iter().flatten() {
            let lines = text.replace('\n', "");
            prop_assert!(printable(&lines) == lines, "not fit for a terminal: {lines:?}");
        }
    }
}
