use std::sync::Arc;

use nodewise_machine::Pid;
use nodewise_source::record::Recording;
use nodewise_source::sample::{Identity, ProcessSample};

use super::*;

/// A machine of twenty processes at this second, whose counters do not repeat.
fn at_second(second: u64) -> Sample {
    let clock = Duration::from_secs(second);
    let moment = Moment { since_boot: clock, wall: Duration::from_secs(1_700_000_000) + clock };
    let process = |pid: u32| {
        let identity = Identity { pid: Pid::new(pid), started_ticks: 1 };
        let mixed = (u64::from(pid) * 2_654_435_761).wrapping_mul(second * second + 7) % 1_000_003;
        Arc::new(ProcessSample {
            polled: moment,
            name: "worker".into(),
            cpu_ticks: mixed,
            resident: Some(Bytes::new(mixed << 12)),
            ..ProcessSample::new(identity)
        })
    };
    Sample { moment, processes: (1..=20).map(process).collect(), ..Sample::default() }
}

fn header() -> Header {
    Header::new("1", Duration::from_secs(1), Some("aaaaaaaa".to_owned()))
}

/// Records these seconds within a size; hands over the folder and the file's path.
fn recorded(seconds: u64, max_size: Option<Bytes>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nwr");
    let file = open(&path, false).unwrap();
    let mut recorder = Recorder::begin(file, &path, header(), max_size).unwrap();
    for second in 0..seconds {
        recorder.push(&at_second(second)).unwrap();
    }
    recorder.finish().unwrap();
    (folder, path)
}

fn seconds(path: &Path) -> Vec<u64> {
    let (samples, gaps) = Recording::open(path).unwrap().samples().unwrap();
    assert_eq!(gaps, [], "{}", path.display());
    samples.iter().map(|sample| sample.moment.since_boot.as_secs()).collect()
}

fn old(path: &Path) -> PathBuf {
    path.with_extension("nwr.old")
}

#[test]
fn two_files_that_follow_each_other_keep_the_last_samples_within_the_size() {
    const SIZE: Bytes = Bytes::from_kib(64);
    let (folder, path) = recorded(400, Some(SIZE));
    let (before, after) = (seconds(&old(&path)), seconds(&path));
    let all: Vec<u64> = before.iter().chain(&after).copied().collect();
    assert!(before.len() > 20, "a file holds several blocks: {}", before.len());
    assert!(all[0] > 0, "the first file was replaced");
    assert_eq!(all, (all[0]..400).collect::<Vec<_>>(), "none is missing in between");
    let length = |path: &Path| std::fs::metadata(path).unwrap().len();
    let sum = length(&path) + length(&old(&path));
    assert!(sum <= SIZE.get(), "{sum} bytes of {SIZE}");
    assert!(length(&old(&path)) > SIZE.get() / 4, "and the size is used");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no third file");
    assert_eq!(Recording::open(&path).unwrap().header(), &header());
}

#[test]
fn without_a_size_there_is_one_file() {
    let (folder, path) = recorded(100, None);
    assert_eq!(seconds(&path), (0..100).collect::<Vec<_>>());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_size_that_the_machine_alone_would_fill_is_refused() {
    let length = header().length();
    assert!(room(&header(), None).is_ok());
    assert!(room(&header(), Some(Bytes::new(8 * length))).is_ok());
    let refused = room(&header(), Some(Bytes::new(8 * length - 1))).unwrap_err();
    assert!(refused.message.contains("expected at least"), "{}", refused.message);
}

#[test]
fn a_new_file_that_cannot_be_made_ends_the_recording_with_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.nwr");
    let mut recorder =
        Recorder::begin(open(&path, false).unwrap(), &path, header(), Some(Bytes::from_kib(64))).unwrap();
    // A folder in the way of the old file.
    std::fs::create_dir(old(&path)).unwrap();
    let failed = (0..400).find_map(|second| recorder.push(&at_second(second)).err()).unwrap();
    assert!(failed.message.contains("it holds the samples until then"), "{}", failed.message);
    recorder.finish().unwrap();
    assert!(seconds(&path).len() > 20, "what was recorded is whole");
}
