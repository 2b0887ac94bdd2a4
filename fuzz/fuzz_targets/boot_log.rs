//! The ranges that a kernel log names are read back the same when they are written as a kernel does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_source::parse::boot_log::parse;

fuzz_target!(|text: &str| {
    let log = parse(text);
    let mut written = String::new();
    for range in &log.emulated {
        let (node, start, last) = (range.node, range.start, range.end - 1);
        written += &format!("[    0.000000] Faking node {node} at [mem {start:#018x}-{last:#018x}] (1MB)\n");
    }
    assert_eq!(parse(&written).emulated, log.emulated);
});
