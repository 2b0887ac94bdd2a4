//! A device tree is read or refused in words fit for a terminal, and a kernel's model makes a machine of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::Origin;
use nodewise_model::firmware::{Setting, boot_tree};
use nodewise_source::devicetree::read;

fuzz_target!(|bytes: &[u8]| {
    let tree = match read(bytes) {
        Ok(tree) => tree,
        Err(error) => {
            assert!(!error.to_string().chars().any(char::is_control), "{error}");
            return;
        }
    };
    let booted = boot_tree(&tree, &Setting::default());
    assert!(!booted.online.is_empty() && booted.online.is_subset(&booted.possible));
    for note in &booted.notes {
        assert!(!note.to_string().chars().any(char::is_control), "{note}");
    }
    let machine = booted.machine(Origin::Firmware(String::new()));
    assert_eq!(machine.cpus.len(), booted.cpus.len());
});
