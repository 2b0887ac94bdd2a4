use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use nodewise_machine::{Bytes, CpuSet, NodeId};
use nodewise_syscall::{PageKind, Task, affinity};

use super::*;
use crate::bandwidth::file::{FileBench, FileTransfer, Operation, TmpfsLocation};
use crate::bandwidth::{BandwidthBench, MemoryTransfer};
use crate::c2c::{CoreBench, Pair, Transfer};
use crate::cell::{Cell, Facts, Glance, Phase};
use crate::io::{self, Access, IoBench};
use crate::kernel::bandwidth::Kernel;
use crate::latency::loaded::{Loaded, LoadedBench, Traffic};
use crate::latency::{Chase, LatencyBench, Pattern, cache};
use crate::survey::{Bench, Pace, Survey, Surveyor};
use nodewise_syscall::clock::Monotonic;

/// A clock that a test sets, in seconds.
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

#[test]
fn it_ends_at_its_time_or_when_the_user_wants_it() {
    let clock = Arc::new(Hand(AtomicU64::new(10)));
    let interrupt = Arc::new(AtomicBool::new(false));
    let stop = Stop::on(Arc::clone(&interrupt)).at(clock.clone(), Duration::from_secs(14));
    let part = stop.for_part(0.5);
    assert_eq!((stop.left(), part.left()), (Some(Duration::from_secs(4)), Some(Duration::from_secs(2))));
    assert_eq!(stop.check(), Ok(()));
    clock.0.store(12, Ordering::Relaxed);
    assert_eq!((stop.is_set(), part.is_set(), part.is_interrupted()), (false, true, false));
    interrupt.store(true, Ordering::Relaxed);
    assert_eq!((stop.check(), stop.is_interrupted()), (Err(Refusal::Stopped), true));
    let never = Stop::NEVER;
    assert_eq!((never.is_set(), never.left(), never.for_part(0.1).left()), (false, None, None));
}

/// When a user ends a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// As soon as a phase of this name begins.
    Phase(&'static str),
    /// When the first sample begins.
    Sample,
}

/// A user who ends a measurement, and what happens from then on.
struct User {
    when: When,
    interrupt: Arc<AtomicBool>,
    stop: Stop,
    glances: u32,
    /// Phases that began after the end was wanted.
    later: Vec<Phase>,
}

impl User {
    fn who_ends(when: When) -> Self {
        let interrupt = Arc::new(AtomicBool::new(false));
        let stop = Stop::on(Arc::clone(&interrupt));
        Self { when, interrupt, stop, glances: 0, later: Vec::new() }
    }
}

/// The name of a phase without what it works on.
fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::LastLevel => "last level",
        Phase::Filling { .. } => "filling",
        Phase::Locating { .. } => "locating",
        Phase::Drawing { .. } => "drawing",
        Phase::Laying { .. } => "laying",
        Phase::Contest { .. } => "contest",
    }
}

impl Facts for User {
    fn glance(&mut self) -> Glance {
        self.glances += 1;
        // The first is that of the survey as a whole.
        if self.when == When::Sample && self.glances == 2 {
            self.interrupt.store(true, Ordering::Relaxed);
        }
        Glance::default()
    }
    fn stop(&self) -> &Stop {
        &self.stop
    }
    fn enter(&mut self, phase: Phase) {
        if self.stop.is_set() {
            self.later.push(phase);
        }
        if self.when == When::Phase(name(phase)) {
            self.interrupt.store(true, Ordering::Relaxed);
        }
    }
}

fn cpus() -> CpuSet {
    affinity::cpus(Task::CURRENT).unwrap().iter().take(1).collect()
}

fn cell() -> Cell {
    let node = NodeId::new(0);
    Cell { from: node, cpus: cpus(), memory: node, pages: PageKind::Small }
}

/// Ends a survey of one cell in each of these phases: it ends there, without a sample and without a reason
/// that would be the cell's.
fn check<B: Bench>(bench: impl Fn() -> B, cell: B::Cell, ends: &[When]) {
    let cells = [cell];
    for when in ends {
        let mut user = User::who_ends(*when);
        let survey: Survey = Surveyor { facts: &mut user, clock: &Monotonic::start(), observer: &mut |_| {} }
            .conduct(&mut bench(), &cells, Pace::exactly(6, 2), 1);
        let bench = std::any::type_name::<B>();
        assert!(survey.interrupted, "{bench} in {when:?}: it did not come there");
        assert_eq!(user.later, [], "{bench} in {when:?}: what began after the end");
        assert!(!survey.outcomes[0].is_reached(), "{bench} in {when:?}: {:?}", survey.outcomes[0]);
    }
}

const SIZE: Bytes = Bytes::from_mib(4);
const FILLING: When = When::Phase("filling");
const LOCATING: When = When::Phase("locating");
const DRAWING: When = When::Phase("drawing");
const LAYING: When = When::Phase("laying");
const CONTEST: When = When::Phase("contest");

#[test]
fn a_measurement_ends_in_the_phase_in_which_the_user_wants_it() {
    let chase = || Chase { cell: cell(), size: SIZE, pattern: Pattern::Random };
    check(|| LatencyBench::new(1), chase(), &[FILLING, LOCATING, DRAWING, LAYING]);
    let traffic = Traffic { cell: cell(), kernel: Kernel::Read, pause_ns: 0 };
    let loaded = Loaded { chase: chase(), traffic: Some(traffic) };
    let time = Duration::from_millis(1);
    check(|| LoadedBench::new(1, SIZE, time), loaded, &[FILLING, LOCATING, DRAWING, LAYING, CONTEST]);
    let way = MemoryTransfer { cells: vec![cell()], kernel: Kernel::Triad };
    check(|| BandwidthBench::new(SIZE, time), way, &[FILLING, LOCATING, CONTEST, When::Sample]);
    let file = FileTransfer { cell: cell(), operation: Operation::Read };
    check(|| FileBench::new(SIZE, TmpfsLocation::Kernel), file, &[FILLING, LOCATING, When::Sample]);
    let cpu = cpus().first().unwrap();
    let pair = Pair { to: cpu, from: cpu, home: NodeId::new(0), transfer: Transfer::HandOver };
    check(|| CoreBench::new(1), pair, &[FILLING, LOCATING, When::Sample]);
}

#[test]
fn reading_a_device_ends_between_two_reads() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path: PathBuf = folder.path().join("data");
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    if let Err(why) = io::Target::open(&path) {
        assert!(matches!(why, io::TargetError::NoDirect { .. }), "{why}");
        return;
    }
    for access in Access::ALL {
        let way = io::IoTransfer { path: path.clone(), access, cell: cell() };
        let ends = [FILLING, LOCATING, When::Sample];
        check(|| IoBench::new(Bytes::MIB, Duration::from_millis(1), 7), way, &ends);
    }
}

#[test]
fn the_search_for_the_last_level_cache_ends_in_each_of_its_phases() {
    for phase in ["last level", "filling", "locating"] {
        let mut user = User::who_ends(When::Phase(phase));
        let found = cache::last_level(&cell(), Bytes::from_mib(8), 1, &mut user);
        assert_eq!(found, Err(Refusal::Stopped), "{phase}");
        let later: Vec<&str> = user.later.iter().map(|phase| name(*phase)).collect();
        // It begins with its own name, and then fills its memory.
        let expected: &[&str] = if phase == "last level" { &["filling"] } else { &[] };
        assert_eq!(later, expected, "{phase}");
    }
}
