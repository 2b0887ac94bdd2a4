use std::io::Write as _;
use std::path::Path;

use nodewise_machine::{CpuSet, NodeId};
use nodewise_syscall::{PageKind, Task, affinity};

use super::*;
use crate::cell::facts::NoFacts;
use crate::survey::{Outcome, Pace, Progress, Surveyor};
use nodewise_syscall::clock::Monotonic;

fn way(path: &Path, access: Access, memory: u32) -> IoTransfer {
    let cpus: CpuSet = affinity::cpus(Task::CURRENT).unwrap().iter().take(1).collect();
    let cell = Cell { from: NodeId::new(0), cpus, memory: NodeId::new(memory), pages: PageKind::Small };
    IoTransfer { path: path.to_owned(), access, cell }
}

fn conduct(ways: &[IoTransfer]) -> Vec<Outcome> {
    conduct_while(ways, &mut |_| {})
}

/// Conducts a survey in which something happens at each step.
fn conduct_while(ways: &[IoTransfer], observer: &mut dyn FnMut(Progress)) -> Vec<Outcome> {
    let mut surveyor = Surveyor { facts: &mut NoFacts, clock: &Monotonic::start(), observer };
    let mut bench = IoBench::new(Bytes::from_mib(1), Duration::from_micros(100), 7);
    surveyor.conduct(&mut bench, ways, Pace::exactly(2, 1), 1).outcomes
}

fn file(folder: &Path, bytes: usize) -> PathBuf {
    let path = folder.join(format!("{bytes}.data"));
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&vec![7; bytes]).unwrap();
    file.sync_all().unwrap();
    path
}

#[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
fn skip(why: &TargetError) {
    eprintln!("skipped: {why}");
}

/// A folder on a file system with direct I/O: that of the build, else none.
fn folder() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).or_else(|_| tempfile::tempdir()).unwrap();
    match Target::open(&file(folder.path(), 8192)) {
        Ok(_) => Some(folder),
        Err(why) => {
            assert!(matches!(why, TargetError::NoDirect { .. }), "{why}");
            skip(&why);
            None
        }
    }
}

fn check(path: &Path, expected: &str) {
    let error = Target::open(path).unwrap_err().to_string();
    assert!(error.contains(expected), "{}: {error}", path.display());
}

#[test]
fn a_file_is_read_in_both_ways_into_memory_that_is_in_place_and_others_are_refused() {
    let Some(folder) = folder() else { return };
    // No whole number of blocks: its end is left out.
    let path = file(folder.path(), (3 << 20) + 777);
    let gone = folder.path().join("gone");
    let ways = [
        way(&path, Access::Sequential, 0),
        way(&path, Access::Random, 0),
        way(&gone, Access::Random, 0),
        way(&path, Access::Random, 900),
    ];
    let outcomes = conduct(&ways);
    for (way, outcome) in ways.iter().zip(&outcomes).take(2) {
        assert_eq!(outcome.refusal, None);
        assert!(outcome.figure(way.access.direction()).unwrap().median > 0.0, "{outcome:?}");
        assert!(outcome.before.as_ref().unwrap().is_full() && outcome.after.as_ref().unwrap().is_full());
        assert_eq!(
            outcome.before.as_ref().unwrap().pages,
            (1 << 20) / nodewise_syscall::pages::page_size() as u64
        );
    }
    assert!(outcomes[2].refusal.as_ref().unwrap().to_string().ends_with("no such file or directory"));
    assert!(matches!(outcomes[3].refusal, Some(Refusal::Call(_))), "{:?}", outcomes[3]);
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_named() {
    let Some(folder) = folder() else { return };
    let path = file(folder.path(), 1 << 20);
    let target = Target::open(&path).unwrap();
    assert_eq!(target.size(), Bytes::from_mib(1));
    let mut memory = nodewise_syscall::NodeBuffer::new(Bytes::from_kib(8), PageKind::Small, None).unwrap();
    target.read(memory.as_mut_slice(), 4096).unwrap();
    assert!(memory.as_slice().iter().all(|byte| *byte == 7));
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8192).unwrap();
    let error = target.read(memory.as_mut_slice(), 4096).unwrap_err();
    assert!(error.to_string().ends_with("has become shorter while it was read"), "{error}");
}

#[test]
fn a_file_that_goes_away_while_it_is_measured_has_a_reason_and_the_other_one_its_figure() {
    let Some(folder) = folder() else { return };
    let (lost, kept) = (file(folder.path(), 1 << 20), file(folder.path(), 1 << 19));
    let ways = [way(&lost, Access::Random, 0), way(&kept, Access::Random, 0)];
    let outcomes = conduct_while(&ways, &mut |progress| {
        // Both are open by then, and neither has been read.
        if progress.done == 2 {
            std::fs::OpenOptions::new().write(true).open(&lost).unwrap().set_len(0).unwrap();
        }
    });
    let refusal = outcomes[0].refusal.as_ref().unwrap().to_string();
    assert!(refusal.ends_with("has become shorter while it was read"), "{refusal}");
    assert!(outcomes[1].figure(Direction::LowerIsBetter).is_some(), "{:?}", outcomes[1]);
}

#[test]
fn what_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    check(folder.path(), "is a directory: expected a block device or a file");
    check(Path::new("/dev/null"), "is neither a block device nor a file");
    check(&folder.path().join("none"), "cannot be opened: no such file or directory");
    let empty = folder.path().join("empty");
    std::fs::write(&empty, []).unwrap();
    let error = Target::open(&empty).unwrap_err();
    let too_small = error.to_string().ends_with("has 0 B: expected 4 KiB or more");
    assert!(too_small || matches!(error, TargetError::NoDirect { .. }), "{error}");
}
