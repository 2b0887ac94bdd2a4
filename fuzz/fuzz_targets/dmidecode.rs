//! Any text as an output of dmidecode: what is read survives a machine file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_source::machine_file::{from_json, to_json};
use nodewise_source::parse::dmidecode::parse;
use nodewise_source::smbios::saved::machine;

fuzz_target!(|text: &str| {
    let slots = parse(text).value;
    assert_eq!(slots.slots.len(), slots.ranges.len());
    if let Some(Ok(machine)) = machine("dmidecode.txt", text.as_bytes()) {
        assert_eq!(from_json(&to_json(&machine)).unwrap(), machine);
    }
});
