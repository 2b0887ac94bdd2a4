//! The sums of a `numa_maps` file are those of its mappings, and the same however it comes in
//! pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::Bytes;
use nodewise_source::parse::Parsed;
use nodewise_source::parse::numa_maps::parse;
use nodewise_source::parse::numa_maps::sums::{Summing, Sums};

fn sum(bytes: &[u8], piece: usize) -> Parsed<Sums> {
    let mut summing = Summing::default();
    bytes.chunks(piece).for_each(|piece| summing.push(piece));
    summing.finish()
}

fuzz_target!(|bytes: &[u8]| {
    let whole = sum(bytes, bytes.len().max(1));
    for piece in [1, 3, 8, 61] {
        assert_eq!(sum(bytes, piece), whole, "in pieces of {piece}");
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mappings = parse(text);
    // Where both readers are content, both say the same. White space that no kernel writes is read
    // differently.
    let kernel_like = text.ends_with('\n')
        && !text.contains(|c: char| (c.is_whitespace() || c.is_control()) && !" \n".contains(c));
    if !kernel_like || !whole.problems.is_empty() || !mappings.problems.is_empty() {
        return;
    }
    let ours: Bytes = whole.value.nodes.iter().map(|on| on.total()).sum();
    let sizes = mappings.value.iter().filter_map(|mapping| mapping.bytes());
    assert_eq!(ours, sizes.flatten().map(|(_, size)| size).sum());
});
