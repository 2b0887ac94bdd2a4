use std::cell::Cell;
use std::rc::Rc;

use super::*;
use crate::migration::goal::Goal;
use nodewise_machine::NodeSet;
use nodewise_syscall::call::{Call, Task};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

const PAGE: u64 = 4096;
const HUGE: u64 = 512 * PAGE;

fn n(number: u32) -> NodeId {
    NodeId::new(number)
}

fn error(errno: Errno) -> CallError {
    let task = Task::new(7).unwrap();
    CallError::new(Call::MovePages { task, pages: 1, targets: None }, errno)
}

/// Time that passes when the engine waits, and when pages move.
type Clock = Rc<Cell<Duration>>;

/// A process with pages, and a kernel that moves them as Linux does.
struct Process {
    clock: Clock,
    pages: BTreeMap<u64, NodeId>,
    /// Pages of a huge page move with the one that is named.
    huge: BTreeSet<u64>,
    /// Whether the kernel lists the pages.
    lists: bool,
    /// Pages that the kernel refuses, with its reason and how often.
    refused: BTreeMap<u64, (Errno, u32)>,
    /// Pages that each node can take.
    room: BTreeMap<NodeId, u64>,
    /// Calls until the process ends.
    lives: u32,
    /// The error of every call.
    fails: Option<Errno>,
    per_page: Duration,
    /// Time that calls take besides, by their number.
    stalls: BTreeMap<usize, Duration>,
    calls: Vec<usize>,
    asked: usize,
}

impl Process {
    fn new(pages: impl IntoIterator<Item = (u64, u32)>) -> Self {
        Self {
            clock: Clock::default(),
            pages: pages.into_iter().map(|(page, node)| (page * PAGE, n(node))).collect(),
            huge: BTreeSet::new(),
            lists: false,
            refused: BTreeMap::new(),
            room: BTreeMap::new(),
            lives: u32::MAX,
            fails: None,
            per_page: Duration::from_micros(2),
            stalls: BTreeMap::new(),
            calls: Vec::new(),
            asked: 0,
        }
    }

    fn on(&self, node: u32) -> usize {
        self.pages.values().filter(|own| **own == n(node)).count()
    }

    /// Moves a page; `Err` where the target is full.
    fn put(&mut self, page: u64, to: NodeId) -> Result<(), ()> {
        let of_huge = page / HUGE * HUGE;
        let all: Vec<u64> = if self.huge.contains(&of_huge) {
            (of_huge..of_huge + HUGE).step_by(PAGE as usize).collect()
        } else {
            vec![page]
        };
        if let Some(room) = self.room.get_mut(&to) {
            *room = room.checked_sub(all.len() as u64).ok_or(())?;
        }
        self.clock.set(self.clock.get() + self.per_page * all.len() as u32);
        for page in all {
            self.pages.insert(page, to);
        }
        Ok(())
    }
}

impl Memory for Process {
    fn locate(&mut self, pages: &[u64]) -> Result<Vec<PageLocation>, CallError> {
        if self.lives == 0 {
            return Err(error(Errno::ESRCH));
        }
        self.asked += pages.len();
        let place =
            |page| self.pages.get(page).map_or(PageLocation::NotPresent, |node| PageLocation::Node(*node));
        Ok(pages.iter().map(place).collect())
    }

    fn present(&mut self, (start, end): (u64, u64)) -> Option<Vec<(u64, u64)>> {
        self.lists.then(|| self.pages.range(start..end).map(|(page, _)| (*page, page + PAGE)).collect())
    }

    fn move_pages(&mut self, moves: &[(u64, NodeId)]) -> Tried {
        let stall = self.stalls.get(&self.calls.len()).copied().unwrap_or_default();
        self.clock.set(self.clock.get() + stall);
        self.calls.push(moves.len());
        self.lives = self.lives.saturating_sub(1);
        let mut said = vec![None; moves.len()];
        if let Some(errno) = self.fails {
            return Tried { said, failed: Some(error(errno)) };
        }
        for (at, (page, to)) in moves.iter().enumerate() {
            if let Some((errno, times)) = self.refused.get_mut(page).filter(|(_, times)| *times > 0) {
                *times -= 1;
                said[at] = Some(PageLocation::Error(*errno));
            } else if self.put(*page, *to).is_ok() {
                said[at] = Some(PageLocation::Node(*to));
            } else {
                // As the kernel does it: what has moved has moved, and no status is written.
                return Tried { said: vec![None; moves.len()], failed: Some(error(Errno::ENOMEM)) };
            }
        }
        Tried { said, failed: None }
    }

    fn is_alive(&mut self) -> bool {
        self.lives > 0
    }
}

/// A system whose state follows a script.
#[derive(Default)]
struct System {
    clock: Clock,
    /// The end of the user's patience, in bytes that have moved.
    interrupt_after: Option<Bytes>,
    interrupted: bool,
    /// Pressure at each look; the last stays.
    pressure: Vec<f64>,
    /// The time that a look at the pressure takes.
    look: Duration,
    room: BTreeMap<NodeId, Bytes>,
    states: Vec<State>,
    moved: Vec<(u64, NodeId)>,
}

impl Surroundings for System {
    fn now(&self) -> Duration {
        self.clock.get()
    }
    fn sleep(&mut self, time: Duration) {
        self.clock.set(self.clock.get() + time);
    }
    fn is_interrupted(&self) -> bool {
        self.interrupted
    }
    fn memory_pressure(&mut self) -> Option<f64> {
        self.sleep(self.look);
        if self.pressure.len() > 1 { Some(self.pressure.remove(0)) } else { self.pressure.first().copied() }
    }
    fn room(&mut self, node: NodeId, _: MemoryKind, _: Bytes) -> Option<Bytes> {
        self.room.get(&node).copied()
    }
    fn progress(&mut self, report: &MigrationReport, state: State) {
        self.interrupted |= self.interrupt_after.is_some_and(|most| report.moved >= most);
        if self.states.last() != Some(&state) {
            self.states.push(state);
        }
    }
    fn moved(&mut self, page: u64, _: Bytes, _: MemoryKind, from: NodeId) {
        self.moved.push((page, from));
    }
}

fn region(pages: u64) -> Region {
    Region {
        start: 0,
        end: pages * PAGE,
        kind: MemoryKind::Anon,
        page_size: Bytes::new(PAGE),
        present: None,
        leaving: BTreeMap::new(),
        may_be_huge: false,
        goal: Goal::nodes(&NodeSet::from([0]), &NodeSet::from([1])).unwrap(),
    }
}

const LIMITS: Limits = Limits { rate: None, pressure: None, page: Bytes::new(PAGE), huge: Bytes::new(HUGE) };

fn pages(count: u64) -> Process {
    Process::new((0..count).map(|page| (page, 0)))
}

fn run(regions: &[Region], limits: Limits, process: &mut Process, system: &mut System) -> MigrationReport {
    system.clock = Rc::clone(&process.clock);
    migrate(regions, limits, process, system)
}

fn mib(pages: u64) -> Bytes {
    Bytes::new(pages * PAGE)
}

#[test]
fn every_page_is_moved_in_chunks_and_noted_with_its_node() {
    let (mut process, mut system) = (pages(20_000), System::default());
    let report = run(&[region(20_000)], LIMITS, &mut process, &mut system);
    assert_eq!((report.moved, &report.ending), (mib(20_000), &Ending::Done));
    assert_eq!((process.on(1), report.failed.len()), (20_000, 0));
    // 16 MiB took 8 ms, so the chunks grow.
    assert_eq!(process.calls, [4096, 8192, 7712]);
    assert_eq!((system.moved.len(), system.moved[7]), (20_000, (7 * PAGE, n(0))));
}

#[test]
fn pages_elsewhere_are_not_named_and_nothing_is_looked_for_behind_the_last() {
    let mut process = Process::new((0..10_000).map(|page| (page, u32::from(page % 3 == 0) * 2)));
    let report = run(&[region(10_000)], LIMITS, &mut process, &mut System::default());
    assert_eq!((report.moved, process.on(2)), (mib(6666), 3334));
    let mut sparse = pages(100);
    let known = Region { present: Some(100), ..region(1 << 30) };
    let report = run(&[known], LIMITS, &mut sparse, &mut System::default());
    assert_eq!(report.moved, mib(100));
    assert!(sparse.asked < 10_000, "{}", sparse.asked);
}

#[test]
fn pages_that_came_since_the_count_hide_none_where_the_kernel_lists_them() {
    let mut process = Process::new((0..100).chain([1 << 29]).map(|page| (page, 0)));
    process.lists = true;
    // One page was counted, and a hundred came in front of it.
    let known = Region { present: Some(1), ..region(1 << 30) };
    let report = run(&[known], LIMITS, &mut process, &mut System::default());
    assert_eq!((report.moved, report.ending), (mib(101), Ending::Done));
    assert!(process.asked < 20_000, "holes are not looked at: {}", process.asked);
}

#[test]
fn a_target_that_is_full_does_not_make_the_chunks_of_others_small() {
    let goal = Goal::parse("0=1,2=3", None, &NodeSet::from([0, 1, 2, 3])).unwrap();
    let mut process = Process::new((0..40_000).map(|page| (page, u32::from(page >= 2000) * 2)));
    let mut system = System { room: [(n(1), Bytes::new(0))].into(), ..System::default() };
    let report = run(&[Region { goal, ..region(40_000) }], LIMITS, &mut process, &mut system);
    assert_eq!((report.moved, process.on(3)), (mib(38_000), 38_000));
    assert_eq!(report.failed, [(Reason::NoRoom, mib(2000))].into());
    assert!(report.calls <= 10, "{}", report.calls);
    assert!(report.paused >= PATIENCE, "{:?}", report.paused);
}

#[test]
fn ctrl_c_after_the_last_page_ends_nothing_early() {
    let mut process = pages(100);
    let mut system = System { interrupt_after: Some(mib(100)), ..System::default() };
    let known = Region { present: Some(100), ..region(1 << 20) };
    assert_eq!(run(&[known], LIMITS, &mut process, &mut system).ending, Ending::Done);
}

#[test]
fn a_huge_page_is_named_once_and_what_was_none_page_by_page() {
    let mut process = pages(3 * 512);
    process.huge = [0, 2 * HUGE].into();
    let regions = [Region { may_be_huge: true, ..region(3 * 512) }];
    let report = run(&regions, LIMITS, &mut process, &mut System::default());
    assert_eq!((report.moved, process.on(1)), (mib(3 * 512), 3 * 512));
    assert_eq!(process.calls, [3, 511]);
}

#[test]
fn after_enomem_without_statuses_it_counts_where_pages_are() {
    let (mut process, mut system) = (pages(5000), System::default());
    process.room.insert(n(1), 4500);
    let report = run(&[region(5000)], LIMITS, &mut process, &mut system);
    assert_eq!(process.on(1), 4500);
    assert_eq!(report.moved, mib(4500));
    assert_eq!(report.failed, [(Reason::NoRoom, mib(500))].into());
    assert_eq!(system.moved.len(), 4500);
}

#[test]
fn a_node_that_takes_nothing_is_not_tried_again() {
    let (mut process, mut system) = (pages(30_000), System::default());
    process.room.insert(n(1), 0);
    let report = run(&[region(30_000)], LIMITS, &mut process, &mut system);
    assert_eq!((report.calls, report.moved), (1, Bytes::new(0)));
    assert_eq!(report.failed, [(Reason::NoRoom, mib(30_000))].into());
}

#[test]
fn what_is_busy_is_tried_again_and_what_is_shared_is_not() {
    let mut process = pages(100);
    process.refused = [
        (PAGE, (Errno::EBUSY, 2)),
        (2 * PAGE, (Errno::EBUSY, 99)),
        (3 * PAGE, (Errno::EACCES, 99)),
        (4 * PAGE, (Errno::EIO, 1)),
    ]
    .into();
    let report = run(&[region(100)], LIMITS, &mut process, &mut System::default());
    assert_eq!(process.calls, [100, 2, 2]);
    let one = mib(1);
    let expected = [(Reason::Shared, one), (Reason::Busy, one), (Reason::Other(Errno::EIO), one)];
    assert_eq!(report.failed, expected.into());
    assert_eq!(report.moved, mib(97));
}

#[test]
fn busy_pages_that_have_moved_are_moved() {
    // Naming every page of a huge page gives EBUSY for some, and all are there.
    let mut process = pages(512);
    process.huge = [0].into();
    process.refused = [(5 * PAGE, (Errno::EBUSY, 99))].into();
    let report = run(&[region(512)], LIMITS, &mut process, &mut System::default());
    assert_eq!((report.moved, report.failed.len()), (mib(512), 0));
}

#[test]
fn ctrl_c_ends_after_the_chunk() {
    let (mut process, mut system) = (pages(50_000), System::default());
    system.interrupt_after = Some(Bytes::from_mib(1));
    let report = run(&[region(50_000)], LIMITS, &mut process, &mut system);
    assert_eq!((&report.ending, report.moved), (&Ending::Interrupted, Bytes::from_mib(16)));
    assert_eq!(process.on(1) as u64 * PAGE, report.moved.get());
    // Run again, it goes on with what is left.
    let report = run(&[region(50_000)], LIMITS, &mut process, &mut System::default());
    assert_eq!((report.ending, process.on(1)), (Ending::Done, 50_000));
}

#[test]
fn a_process_that_ends_is_named() {
    let mut process = pages(50_000);
    process.lives = 2;
    let report = run(&[region(50_000)], LIMITS, &mut process, &mut System::default());
    assert_eq!(report.ending, Ending::ProcessEnded);
    assert_eq!(report.moved, Bytes::from_mib(16), "what could be verified");
}

#[test]
fn a_call_that_is_refused_ends_it_with_the_reason() {
    let mut process = pages(50);
    process.fails = Some(Errno::EACCES);
    let report = run(&[region(50)], LIMITS, &mut process, &mut System::default());
    assert_eq!(report.ending, Ending::Refused(error(Errno::EACCES)));
    assert_eq!((report.calls, report.moved), (1, Bytes::new(0)));
}

#[test]
fn pressure_makes_it_wait_until_half_is_left() {
    let (mut process, mut system) = (pages(10), System::default());
    system.pressure = vec![12.0, 8.0, 6.0, 4.9, 0.0];
    let limits = Limits { pressure: Some(10.0), ..LIMITS };
    let report = run(&[region(10)], limits, &mut process, &mut system);
    assert_eq!((report.paused, &report.ending), (POLL * 3, &Ending::Done));
    assert_eq!(system.states, [State::WaitsForPressure, State::Moving]);
}

#[test]
fn a_target_without_room_is_waited_for_and_then_left() {
    let (mut process, mut system) = (pages(10), System::default());
    system.room.insert(n(1), Bytes::new(0));
    let report = run(&[region(10)], LIMITS, &mut process, &mut system);
    assert_eq!(report.failed, [(Reason::NoRoom, mib(10))].into());
    assert_eq!((report.paused, report.calls), (PATIENCE, 0));
    assert_eq!(system.states, [State::WaitsForRoom(n(1)), State::Moving]);
}

#[test]
fn a_pool_without_pages_is_not_waited_for() {
    let (mut process, mut system) = (Process::new((0..4).map(|page| (page * 512, 0))), System::default());
    system.room.insert(n(1), Bytes::new(0));
    let region = Region { kind: MemoryKind::Hugetlb, page_size: Bytes::new(HUGE), ..region(4 * 512) };
    let report = run(&[region], LIMITS, &mut process, &mut system);
    assert_eq!(report.failed, [(Reason::NoRoom, Bytes::new(4 * HUGE))].into());
    assert_eq!(report.paused, Duration::ZERO);
}

#[test]
fn the_rate_is_kept() {
    let (mut process, mut system) = (pages(25_600), System::default());
    let limits = Limits { rate: Some(Bytes::from_mib(10)), ..LIMITS };
    let report = run(&[region(25_600)], limits, &mut process, &mut system);
    assert_eq!(report.moved, Bytes::from_mib(100));
    let seconds = report.took.as_secs_f64();
    assert!((9.0..=10.5).contains(&seconds), "{seconds}");
}

#[test]
fn the_rate_is_kept_on_average_where_some_calls_are_late() {
    let check = |stalls: &[(usize, u64)], expected: std::ops::Range<f64>| {
        let (mut process, mut system) = (pages(25_600), System::default());
        process.stalls = stalls.iter().map(|(at, ms)| (*at, Duration::from_millis(*ms))).collect();
        let limits = Limits { rate: Some(Bytes::from_mib(10)), ..LIMITS };
        let seconds = run(&[region(25_600)], limits, &mut process, &mut system).took.as_secs_f64();
        assert!(expected.contains(&seconds), "{stalls:?}: {seconds}");
    };
    let late: Vec<(usize, u64)> = (0..80).step_by(8).map(|at| (at, 600)).collect();
    check(&late, 9.5..10.5);
    // Of a longer one a second is made up for.
    check(&[(40, 5000)], 13.5..14.5);
}

// As in a guest whose CPUs take turns on one of the host: eight calls a second would give two thirds of the rate.
#[test]
fn the_rate_is_kept_where_every_call_takes_longer_than_its_part_of_a_second() {
    let (mut process, mut system) = (pages(25_600), System::default());
    process.stalls = (0..1000).map(|at| (at, Duration::from_millis(270))).collect();
    let limits = Limits { rate: Some(Bytes::from_mib(10)), ..LIMITS };
    let report = run(&[region(25_600)], limits, &mut process, &mut system);
    assert_eq!(report.moved, Bytes::from_mib(100));
    let seconds = report.took.as_secs_f64();
    assert!((9.0..=11.0).contains(&seconds), "{seconds} in {} calls", report.calls);
}

#[test]
fn a_pause_is_not_made_up_for() {
    let (mut process, mut system) = (pages(25_600), System::default());
    system.pressure = [vec![0.0; 20], vec![50.0; 4], vec![0.0]].concat();
    let limits = Limits { rate: Some(Bytes::from_mib(10)), pressure: Some(10.0), ..LIMITS };
    let report = run(&[region(25_600)], limits, &mut process, &mut system);
    assert_eq!(report.paused, Duration::from_secs(1));
    let seconds = report.took.as_secs_f64();
    assert!((10.5..11.5).contains(&seconds), "{seconds}");
}

#[test]
fn a_slow_look_at_the_system_is_no_pause() {
    let (mut process, mut system) = (pages(25_600), System::default());
    (system.look, system.pressure) = (Duration::from_millis(20), vec![0.0]);
    let limits = Limits { rate: Some(Bytes::from_mib(10)), pressure: Some(10.0), ..LIMITS };
    let report = run(&[region(25_600)], limits, &mut process, &mut system);
    assert_eq!(report.paused, Duration::ZERO);
    let seconds = report.took.as_secs_f64();
    assert!((9.0..=10.5).contains(&seconds), "{seconds}");
}

proptest! {
    #[test]
    fn every_page_is_counted_once_whatever_the_kernel_does(
        nodes in prop::collection::vec(0u32..3, 1..1500),
        huge in prop::collection::btree_set(0u64..3, 0..3),
        refused in prop::collection::btree_map(0u64..1500, (0usize..3, 1u32..4), 0..20),
        room in prop::option::of(0u64..1500),
        may_be_huge: bool,
    ) {
        let mut process = Process::new((0..).zip(nodes.iter().copied()));
        let count = nodes.len() as u64;
        // A huge page is whole, and on one node.
        for block in huge.into_iter().filter(|block| (block + 1) * 512 <= count) {
            let node = process.pages[&(block * HUGE)];
            process.huge.insert(block * HUGE);
            for page in block * 512..(block + 1) * 512 {
                process.pages.insert(page * PAGE, node);
            }
        }
        let errors = [Errno::EBUSY, Errno::EACCES, Errno::EIO];
        process.refused = refused.into_iter().map(|(page, (error, times))| (page * PAGE, (errors[error], times))).collect();
        process.room = room.map(|room| (n(1), room)).into_iter().collect();
        let before = process.pages.clone();
        let mut system = System::default();
        let report = run(&[Region { may_be_huge, ..region(count) }], LIMITS, &mut process, &mut system);
        let left = process.on(0) as u64;
        let asked = before.values().filter(|node| **node == n(0)).count() as u64;
        prop_assert_eq!(&report.ending, &Ending::Done);
        prop_assert_eq!(report.moved, mib(asked - left));
        prop_assert_eq!(report.failed.values().copied().sum::<Bytes>(), mib(left));
        prop_assert_eq!(process.on(2), before.values().filter(|node| **node == n(2)).count());
        for (page, from) in &system.moved {
            prop_assert_eq!((before[page], process.pages[page]), (*from, n(1)));
        }
        prop_assert!(system.moved.len() as u64 == asked - left);
    }
}
