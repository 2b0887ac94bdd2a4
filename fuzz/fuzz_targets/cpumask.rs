//! A mask that is read is printed and read back the same, and says what the list says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::CpuSet;

fuzz_target!(|text: &str| {
    if let Ok(cpus) = CpuSet::from_mask(text) {
        assert_eq!(CpuSet::from_mask(&cpus.to_mask()).expect("what was printed is a mask"), cpus);
        assert_eq!(cpus.to_string().parse::<CpuSet>().expect("what was printed is a list"), cpus);
    }
});
