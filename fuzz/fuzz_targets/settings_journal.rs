//! A journal of settings that is read is printed and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_source::settings::journal::Journal;

fuzz_target!(|text: &str| {
    if let Ok(journal) = Journal::parse(text) {
        assert_eq!(Journal::parse(&journal.to_text()), Ok(journal));
    }
});
