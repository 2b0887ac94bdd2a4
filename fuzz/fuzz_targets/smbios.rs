//! A table without its identity has the same slots, and blanking it again changes nothing. What is read survives
//! a machine file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::memory_slot::locator::place::place;
use nodewise_machine::{Machine, Origin, spec};
use nodewise_source::machine_file::{from_json, to_json};
use nodewise_source::smbios::blank::blank;
use nodewise_source::smbios::entry::EntryPoint;
use nodewise_source::smbios::slots::decode;
use nodewise_source::smbios::structure::Ending;

fuzz_target!(|table: &[u8]| {
    let _ = EntryPoint::from_bytes(table);
    let once = blank(table);
    assert_eq!(once.len(), table.len());
    assert_eq!(blank(&once), once);
    let (mut slots, _) = decode(table, Ending::Marked);
    let (without, _) = decode(&once, Ending::Marked);
    assert_eq!(without.slots.len(), slots.slots.len());
    assert_eq!(without.ranges, slots.ranges);
    let mut machine = spec::machine("2x(2c 1G)").unwrap_or_else(|_| Machine::new(Origin::Live));
    place(&mut slots.slots, &slots.board, &machine);
    machine.memory_slots.slots = slots.slots;
    machine.check();
    assert_eq!(from_json(&to_json(&machine)).unwrap(), machine);
});
