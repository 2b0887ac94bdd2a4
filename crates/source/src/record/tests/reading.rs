//! The price of reading a part of a recording, counted in bytes; and the same answers as all of it gives.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::super::Recording;
use super::super::store::Store;
use super::{at_second, written};
use crate::sample::Sample;

/// A recording that counts the bytes that are read of it.
#[derive(Clone, Debug)]
struct Counting {
    bytes: Vec<u8>,
    read: Arc<AtomicU64>,
}

impl Counting {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, read: Arc::default() }
    }

    /// Bytes that were read since this was asked last.
    fn take(&self) -> u64 {
        self.read.swap(0, Ordering::Relaxed)
    }
}

impl Store for Counting {
    fn length(&self) -> u64 {
        self.bytes.length()
    }

    fn fill(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.bytes.fill(at, buffer)
    }
}

/// A sample of this second with so much text that its bytes hardly shrink.
fn large_at(second: u64) -> Sample {
    let mut sample = at_second(second);
    let mut state = second + 1;
    let word = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{state:x}")
    };
    sample.users = [(0, (0..60).map(word).collect::<String>().into())].into();
    sample
}

#[test]
fn a_moment_costs_its_minutes_and_not_the_recording() {
    const SECONDS: u64 = 1800;
    let counting = Counting::new(written(&(0..SECONDS).map(large_at).collect::<Vec<_>>()));
    let whole = counting.bytes.len() as u64;
    let minute = whole / (SECONDS / 60);
    let recording = Recording::from_store(Box::new(counting.clone())).unwrap();
    let opened = counting.take();
    // A block is ten seconds.
    assert!(opened <= (64 << 10) + 40 * (SECONDS / 9), "{opened} of {whole} bytes to open it");
    for second in [2, 700, SECONDS - 1] {
        let wall = Duration::from_secs(1_700_000_000 + second);
        assert_eq!(recording.at(wall).unwrap().1, large_at(second));
        let read = counting.take();
        assert!(read <= 4 * minute, "{read} of {whole} bytes for second {second}");
    }
    let ends = recording.ends().unwrap();
    assert_eq!((ends.first, ends.last, ends.gaps), (Some(large_at(0)), large_at(SECONDS - 1), Vec::new()));
    let read = counting.take();
    assert!(read <= whole + 2 * minute, "{read} of {whole} bytes: everything once, and its ends");
}

#[test]
fn a_recording_in_a_file_gives_the_same_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nwr");
    let bytes = written(&(0..90).map(at_second).collect::<Vec<_>>());
    std::fs::write(&path, &bytes).unwrap();
    let from_bytes = Recording::from_bytes(bytes.clone()).unwrap().samples().unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.samples().unwrap(), from_bytes);
    // It becomes shorter while it is open.
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let (samples, gaps) = recording.samples().unwrap();
    assert!(samples.len() < 90, "{}", samples.len());
    assert_eq!(gaps.len(), 1);
}

#[test]
fn the_ends_of_a_damaged_recording_have_the_gaps_of_all_of_it() {
    let bytes = written(&(0..200).map(at_second).collect::<Vec<_>>());
    let begin = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let check = |bytes: Vec<u8>, case: &str| {
        let recording = Recording::from_bytes(bytes).unwrap();
        match (recording.samples(), recording.ends()) {
            (Ok((samples, gaps)), Ok(ends)) => {
                assert_eq!(ends.gaps, gaps, "{case}");
                assert_eq!(ends.first.as_ref(), samples.first().filter(|_| samples.len() > 1), "{case}");
                assert_eq!(Some(&ends.last), samples.last(), "{case}");
            }
            (samples, ends) => assert_eq!(samples.is_err(), ends.is_err(), "{case}"),
        }
    };
    for at in (begin..bytes.len()).step_by(13) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        check(damaged, &format!("byte {at}"));
        check(bytes[..at].to_vec(), &format!("cut at {at}"));
        let without = [&bytes[..at], &bytes[(at + 90).min(bytes.len())..]].concat();
        check(without, &format!("90 bytes gone at {at}"));
    }
}
