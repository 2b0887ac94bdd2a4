//! A journal that is read is written and read back the same: as it comes, and with the checksum that
//! each of its lines should have.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_experiment::journal::{read, write};

/// FNV-1a, as the journal has it: without it no line would be looked at.
fn checksum(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn sealed(line: &str) -> String {
    match line.strip_prefix('{') {
        Some(rest) => format!("{{\"check\":\"{:016x}\",{rest}\n", checksum(rest)),
        None => format!("{line}\n"),
    }
}

fn check(bytes: &[u8]) {
    let Ok(contents) = read(bytes) else { return };
    assert!(contents.whole <= bytes.len() as u64);
    let Some(head) = contents.head else { return };
    let written = write(&head, &contents.records).expect("what was read can be written");
    let again = read(written.as_bytes()).expect("what was written can be read");
    assert_eq!((again.head, again.records), (Some(head), contents.records));
}

fuzz_target!(|text: &str| {
    check(text.as_bytes());
    check(text.lines().map(sealed).collect::<String>().as_bytes());
});
