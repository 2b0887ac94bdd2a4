//! A mapping that is read is printed as the kernel prints it and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::mapping::FileId;
use nodewise_source::parse::maps::{Mapping, parse};

/// A line as the kernel prints it.
fn print(mapping: &Mapping) -> String {
    let FileId { device: (major, minor), inode } =
        mapping.file.unwrap_or(FileId { device: (0, 0), inode: 0 });
    let name = mapping.name.as_deref().unwrap_or_default().replace('\n', "\\012");
    let (start, end, offset) = (mapping.start, mapping.end, mapping.offset);
    let permissions = mapping.permissions;
    format!("{start:x}-{end:x} {permissions} {offset:08x} {major:02x}:{minor:02x} {inode} {name}\n")
}

fuzz_target!(|text: &str| {
    let parsed = parse(text);
    for mapping in &parsed.value {
        assert!(mapping.length() > 0);
        assert!(mapping.word().is_none() || mapping.path().is_none());
        // Memory without a file has no device.
        let printed = print(mapping);
        let again = parse(&printed);
        assert!(again.problems.is_empty(), "{printed:?}: {:?}", again.problems);
        assert_eq!(again.value, std::slice::from_ref(mapping), "{printed:?}");
    }
});
