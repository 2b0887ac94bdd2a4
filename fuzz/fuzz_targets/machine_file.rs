//! A machine file that is read is written and read back the same; a refusal is fit for a terminal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_source::machine_file::{from_json, to_json};

fuzz_target!(|text: &str| {
    match from_json(text) {
        Ok(machine) => {
            let written = to_json(&machine);
            let again = from_json(&written).expect("what was written is a machine file");
            assert_eq!(again, machine);
            assert_eq!(to_json(&again), written);
        }
        Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error:?}"),
    }
});
