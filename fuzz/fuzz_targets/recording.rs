//! Any file is a recording with samples and named gaps, or refused in words fit for a terminal. Bytes behind a
//! good header are read as blocks, and as the content of a block whose checksums are right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nodewise_machine::printable::printable;
use nodewise_source::record::Recording;

const HEADER: &[u8] = b"{\"schema\":\"nodewise.record/1\",\"version\":\"1\",\"interval_ms\":1000}\n";

fuzz_target!(|data: &[u8]| {
    for bytes in [data.to_vec(), [HEADER, data].concat()] {
        match Recording::from_bytes(bytes).and_then(|recording| recording.samples()) {
            Ok((samples, _)) => assert!(!samples.is_empty()),
            Err(error) => {
                let text = error.to_string();
                assert_eq!(printable(&text), text);
            }
        }
    }
});
