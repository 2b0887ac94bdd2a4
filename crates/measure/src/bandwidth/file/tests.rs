use nodewise_machine::CpuSet;
use nodewise_syscall::{Task as Caller, affinity};

use super::*;
use crate::cell::Glance;
use crate::cell::facts::NoFacts;
use crate::survey::{Account, CellReport, Outcome, Pace, SurveyFinding, Surveyor};
use nodewise_stats::Direction;
use nodewise_syscall::clock::Monotonic;

/// No whole number of blocks.
const SIZE: Bytes = Bytes::from_kib(2500);

fn way(operation: Operation, memory: u32) -> FileTransfer {
    let cpus: CpuSet = affinity::cpus(Caller::CURRENT).unwrap().iter().take(1).collect();
    let cell = Cell { from: NodeId::new(0), cpus, memory: NodeId::new(memory), pages: PageKind::Small };
    FileTransfer { cell, operation }
}

fn conduct(place: TmpfsLocation, ways: &[FileTransfer]) -> Vec<Outcome> {
    let mut surveyor = Surveyor { facts: &mut NoFacts, clock: &Monotonic::start(), observer: &mut |_| {} };
    surveyor.conduct(&mut FileBench::new(SIZE, place), ways, Pace::exactly(2, 1), 1).outcomes
}

fn check_all(place: TmpfsLocation) {
    let mut ways = Operation::ALL.map(|operation| way(operation, 0)).to_vec();
    ways.push(way(Operation::Read, 900));
    let outcomes = conduct(place, &ways);
    for (way, outcome) in ways.iter().zip(&outcomes).take(3) {
        assert_eq!(outcome.refusal, None, "{}", way.operation.word());
        assert!(outcome.figure(Direction::HigherIsBetter).unwrap().median > 0.0);
        for placed in [&outcome.before, &outcome.after] {
            let placed = placed.as_ref().unwrap();
            let pages = (2500_u64 << 10).div_ceil(nodewise_syscall::pages::page_size() as u64);
            assert!(placed.is_full() && placed.pages == pages, "{placed:?}");
        }
    }
    assert!(matches!(outcomes[3].refusal, Some(Refusal::Call(_))), "{:?}", outcomes[3]);
}

#[test]
fn a_file_without_a_mount_is_written_and_read_on_its_node() {
    check_all(TmpfsLocation::Kernel);
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
fn a_file_in_a_folder_of_tmpfs_leaves_no_name_and_other_folders_are_refused() {
    let elsewhere = TmpfsLocation::Folder(env!("CARGO_MANIFEST_DIR").into());
    let refusal = conduct(elsewhere, &[way(Operation::Read, 0)]).remove(0).refusal.unwrap().to_string();
    assert!(refusal.contains("is on no tmpfs") || refusal.contains("no file can be made"), "{refusal}");
    let gone = conduct(TmpfsLocation::Folder("/nowhere/at all".into()), &[way(Operation::Read, 0)]).remove(0);
    let expected = "no file can be made in /nowhere/at all: no such file or directory";
    assert_eq!(gone.refusal.unwrap().to_string(), expected);
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: there is no /dev/shm");
        return;
    };
    check_all(TmpfsLocation::Folder(folder.path().to_owned()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_is_larger_than_its_file_system_is_refused_before_it_is_made() {
    let place = TmpfsLocation::Folder("/dev/shm".into());
    let huge = PlacedFile::new(Bytes::from_gib(1 << 20), NodeId::new(0), &place, &mut NoFacts);
    let refusal = huge.unwrap_err().to_string();
    let expected = ["1024 TiB are needed: try a smaller --size", "1 PiB are needed: try a smaller --size"];
    let no_tmpfs = refusal.contains("no file can be made") || refusal.contains("on no tmpfs");
    assert!(no_tmpfs || expected.iter().any(|end| refusal.ends_with(end)), "{refusal}");
}

fn report(cells: &[(u32, u32, f64)]) -> FileReport {
    let way = |(from, memory, median): &(u32, u32, f64)| FileTransferReport {
        operation: Operation::Read,
        cell: CellReport::made(*from, *memory, *median),
    };
    FileReport {
        account: Account { meanwhile: Glance::default(), ..Account::default() },
        size: SIZE,
        place: TmpfsLocation::Kernel,
        ways: cells.iter().map(way).collect(),
    }
}

#[test]
fn the_row_with_the_largest_difference_is_a_finding() {
    let check = |cells: &[(u32, u32, f64)], expected: &[((u32, u32), u32)]| {
        let found = file_findings(&report(cells));
        let found: Vec<((u32, u32), u32)> = found
            .iter()
            .map(|finding| match finding {
                SurveyFinding::Shown(FileFinding::Far { from, nodes, times, .. }) => {
                    assert_eq!(*times, 1.5);
                    ((nodes.0.number(), nodes.1.number()), from.number())
                }
                SurveyFinding::Noise(noise) => panic!("{noise:?}"),
            })
            .collect();
        assert_eq!(found, expected, "{cells:?}");
    };
    check(&[(0, 0, 6.0), (0, 1, 5.0), (1, 0, 4.0), (1, 1, 6.0)], &[((1, 0), 1)]);
    check(&[(0, 0, 6.0), (0, 1, 5.9)], &[]);
    check(&[(0, 0, 6.0), (1, 1, 4.0)], &[]);
}
