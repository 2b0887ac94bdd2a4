//! A row that is read is printed and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_source::parse::distance::parse;

fuzz_target!(|text: &str| {
    if let Ok(row) = parse(text) {
        let printed: Vec<String> = row.iter().map(ToString::to_string).collect();
        assert_eq!(parse(&(printed.join(" ") + "\n")), Ok(row));
    }
});
