//! A file of moved pages that is read is printed and read back the same, and joining its runs loses none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_source::mapped::saved::Moved;

fuzz_target!(|text: &str| {
    if let Ok(moved) = Moved::parse(text) {
        assert_eq!(Moved::parse(&moved.to_text()).as_ref(), Ok(&moved));
        let mut joined = moved.clone();
        joined.join();
        assert_eq!(joined.size(), moved.size());
    }
});
