//! Any text in place of the mappings of a process in a sample of a recording: they are read as mappings that can
//! be, in order, and come back the same when they are written again; or the sample is a named gap.
#![no_main]

use std::io::Write as _;

use flate2::Crc;
use flate2::write::DeflateEncoder;
use libfuzzer_sys::fuzz_target;
use nodewise_machine::printable::printable;
use nodewise_source::record::{Recording, Writer};

const HEADER: &[u8] = b"{\"schema\":\"nodewise.record/1\",\"version\":\"1\",\"interval_ms\":1000}\n";

fn crc(bytes: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

/// A recording whose only sample is this line of JSON.
fn recording(line: &str) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(line.as_bytes()).expect("a vector takes every byte");
    let content = encoder.finish().expect("a vector takes every byte");
    let mut header = b"NWB1".to_vec();
    // The first block of the file begins with a whole sample.
    for number in [1, content.len() as u32, line.len() as u32] {
        header.extend(number.to_le_bytes());
    }
    header.extend([0; 16]);
    header.extend(crc(&content));
    let crc = crc(&header);
    [HEADER, &header, &crc, &content].concat()
}

fuzz_target!(|data: &str| {
    if data.contains('\n') {
        return;
    }
    let line = format!("{{\"maps\":{{\"7.5\":{data}}}}}\n");
    let read = Recording::from_bytes(recording(&line)).expect("the header is right");
    let Ok((samples, gaps)) = read.samples() else {
        for gap in read.read(|_| true) {
            assert_eq!(printable(&gap.reason), gap.reason);
        }
        return;
    };
    assert!(gaps.is_empty(), "{gaps:?}");
    for process in samples.iter().flat_map(|sample| &sample.mappings) {
        let mappings = &process.mappings.mappings;
        assert!(mappings.iter().all(|mapping| mapping.start < mapping.end));
        assert!(mappings.is_sorted_by(|one, next| one.end <= next.start));
    }
    let mut writer = Writer::begin(Vec::new(), read.header(), None).expect("a vector takes every byte");
    for sample in &samples {
        writer.push(sample).expect("a vector takes every byte");
    }
    let again = Recording::from_bytes(writer.finish().expect("a vector takes every byte"));
    assert_eq!(again.expect("it was just written").samples().expect("it holds a sample").0, samples);
});
