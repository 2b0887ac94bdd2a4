//! A spec that is read is printed and read back the same; its machine survives its JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::spec;
use nodewise_source::machine_file::{from_json, to_json};

fuzz_target!(|text: &str| {
    let Ok(parsed) = spec::parse(text) else { return };
    let printed = parsed.to_string();
    assert_eq!(spec::parse(&printed).expect("what was printed is a spec"), parsed, "{printed}");
    if let Ok(machine) = parsed.machine() {
        // Large machines take long and show nothing that small ones do not.
        if machine.cpus.len() <= 256 && machine.nodes.len() <= 32 {
            assert_eq!(from_json(&to_json(&machine)).expect("what was written is a machine file"), machine);
        }
    }
});
