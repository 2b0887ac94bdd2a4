//! A list that is read is printed and read back the same, and the printed form is stable.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::CpuSet;

fuzz_target!(|text: &str| {
    if let Ok(cpus) = text.parse::<CpuSet>() {
        let printed = cpus.to_string();
        let again: CpuSet = printed.parse().expect("what was printed is a list");
        assert_eq!(again, cpus);
        assert_eq!(again.to_string(), printed);
    }
});
