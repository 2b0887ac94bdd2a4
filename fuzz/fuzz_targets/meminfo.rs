//! Fields that are read are printed as the kernel prints them and read back the same, without a
//! problem; every problem names a line of the text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::{MeminfoValue, NodeId};
use nodewise_source::parse::meminfo::parse;

fuzz_target!(|text: &str| {
    let parsed = parse(text, NodeId::new(0));
    let lines = text.lines().count();
    assert!(parsed.problems.count() <= lines && parsed.value.len() <= lines);
    assert!(parsed.problems.first.iter().all(|problem| (1..=lines).contains(&(problem.line as usize))));
    let printed: String = parsed
        .value
        .iter()
        .map(|field| match field.value {
            MeminfoValue::Size(size) => format!("Node 0 {}: {:14} kB\n", field.name, size.get() / 1024),
            MeminfoValue::Count(count) => format!("Node 0 {}: {count:5}\n", field.name),
        })
        .collect();
    let again = parse(&printed, NodeId::new(0));
    assert!(again.problems.is_empty(), "{printed}");
    assert_eq!(again.value, parsed.value);
});
