//! A mapping that is read is printed as the kernel prints it and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::Bytes;
use nodewise_source::parse::numa_maps::{Mapping, MappingKind, parse};

/// A line as the kernel prints it.
fn print(mapping: &Mapping) -> String {
    let mut line = format!("{:x} {}", mapping.start, mapping.policy_text);
    if let Some(file) = &mapping.file {
        let escape = |c: char| match c {
            ' ' => "\\040".to_owned(),
            '\t' => "\\011".to_owned(),
            '\n' => "\\012".to_owned(),
            '\r' => "\\015".to_owned(),
            '=' => "\\075".to_owned(),
            '\\' => "\\134".to_owned(),
            c => c.to_string(),
        };
        line += &format!(" file={}", file.chars().map(escape).collect::<String>());
    }
    match mapping.kind {
        MappingKind::Heap => line += " heap",
        MappingKind::Stack => line += " stack",
        MappingKind::Other => (),
    }
    if mapping.huge {
        line += " huge";
    }
    let counts = [
        ("anon", mapping.anon),
        ("dirty", mapping.dirty),
        ("mapped", mapping.mapped),
        ("mapmax", mapping.mapmax),
        ("swapcache", mapping.swapcache),
        ("active", mapping.active),
        ("writeback", mapping.writeback),
        ("kernelpagesize_kB", mapping.page_size.map(|size| size.get() / 1024)),
    ];
    line.extend(counts.iter().filter_map(|(name, count)| Some(format!(" {name}={}", (*count)?))));
    line.extend(mapping.pages.iter().map(|(node, pages)| format!(" N{node}={pages}")));
    line
}

fuzz_target!(|text: &str| {
    let parsed = parse(text);
    for mapping in &parsed.value {
        let bytes: Option<Bytes> = mapping.bytes().map(|sizes| sizes.map(|(_, size)| size).sum());
        assert_eq!(bytes.is_some(), mapping.page_size.is_some());
        // A policy of no words, or with odd white space in it, cannot be printed to be read back.
        if mapping.policy_text.is_empty()
            || mapping.policy_text.contains(|c: char| c.is_whitespace() && c != ' ')
        {
            continue;
        }
        let printed = print(mapping);
        let again = parse(&printed);
        assert!(again.problems.is_empty(), "{printed:?}: {:?}", again.problems);
        assert_eq!(again.value, std::slice::from_ref(mapping), "{printed:?}");
    }
});
