//! Any text as an output of likwid-topology: what is read survives a machine file, and problems have their lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_source::import::likwid::parse;
use nodewise_source::import::machine;
use nodewise_source::machine_file::{from_json, to_json};

fuzz_target!(|text: &str| {
    let lines = text.lines().count().max(1);
    match parse(text) {
        Ok(read) => {
            assert!(read.problems.first.iter().all(|error| error.line as usize <= lines));
            assert_eq!(from_json(&to_json(&read.value)).unwrap(), read.value);
        }
        Err(error) => assert!(error.line as usize <= lines, "{error:?}"),
    }
    if let Some(Ok(machine)) = machine("x.txt", text.as_bytes()) {
        assert_eq!(from_json(&to_json(&machine)).unwrap(), machine);
    }
});
