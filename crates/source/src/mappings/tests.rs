//! Synthetic processes: files in memory, and pages whose nodes a function says.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::mapping::{MappedPages, MappingKind, MappingsMethod, ProcessMappings};
use nodewise_machine::{Bytes, NodeId, Pid};
use nodewise_stats::share::wilson_interval;

use super::{MappingsError, PageError, PageSource, Run, RunState, Thoroughness, read};
use crate::tree::{Memory, ReadCause, Tree};

const PID: Pid = Pid::new(7);
const STATUS: &str = "Name:\tdatabase\nState:\tS (sleeping)\nUid:\t0\t0\t0\t0\nVmRSS:\t    4096 kB\n";

/// A process whose pages a function places; every page in the range is present.
struct Pages<F> {
    node_of: F,
    scans: Result<Vec<Run>, PageError>,
    locates: Result<(), PageError>,
}

impl<F: Fn(u64) -> Option<u32>> Pages<F> {
    fn new(runs: Vec<Run>, node_of: F) -> Self {
        Self { node_of, scans: Ok(runs), locates: Ok(()) }
    }
}

impl<F: Fn(u64) -> Option<u32>> PageSource for Pages<F> {
    fn page_size(&self) -> u64 {
        4096
    }

    fn huge_size(&self) -> u64 {
        2 << 20
    }

    fn runs(&mut self, (from, to): (u64, u64), each: &mut dyn FnMut(Run)) -> Result<(), PageError> {
        for run in self.scans.clone()? {
            let run = Run { start: run.start.max(from), end: run.end.min(to), ..run };
            if run.start < run.end {
                each(run);
            }
        }
        Ok(())
    }

    fn locate(
        &mut self,
        addresses: &[u64],
        each: &mut dyn FnMut(u64, Option<NodeId>),
    ) -> Result<(), PageError> {
        self.locates.clone()?;
        addresses.iter().for_each(|address| each(*address, (self.node_of)(*address).map(NodeId::new)));
        Ok(())
    }

    fn cpu_time(&mut self) -> Option<Duration> {
        None
    }
}

fn small(start: u64, end: u64) -> Run {
    Run { start, end, state: RunState::Small }
}

fn tree(maps: &str, numa_maps: &str) -> Tree {
    Tree::memory(
        Memory::new()
            .file("/proc/7/status", STATUS)
            .file("/proc/7/maps", maps)
            .file("/proc/7/numa_maps", numa_maps),
    )
}

fn exact(maps: &str, numa_maps: &str) -> ProcessMappings {
    read(&tree(maps, numa_maps), PID, Thoroughness::Exact, 1, None).unwrap()
}

fn kib(nodes: &[(u32, u64)]) -> MappedPages {
    MappedPages::Counted(
        nodes.iter().map(|(node, kib)| (NodeId::new(*node), Bytes::from_kib(*kib))).collect(),
    )
}

#[test]
fn both_files_are_joined_by_address() {
    let found = exact(
        "1000-9000 rw-p 0 00:00 0 [heap]\n10000-20000 rw-p 0 00:0f 5 /anon_hugepage (deleted)\n\
         30000-40000 r--p 0 00:00 0 [vvar]\nffffffffff600000-ffffffffff601000 --xp 0 00:00 0 [vsyscall]\n",
        "00001000 bind:0-1 heap anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4\n\
         00010000 default file=/anon_hugepage\\040(deleted) huge anon=2 dirty=2 N1=2 kernelpagesize_kB=2048\n\
         00030000 default\n",
    );
    let kinds: Vec<MappingKind> = found.mappings.iter().map(|mapping| mapping.kind).collect();
    use MappingKind::{Heap, HugePool, Special};
    assert_eq!(kinds, [Heap, HugePool, Special, Special]);
    assert_eq!(found.mappings[0].pages, kib(&[(0, 4), (1, 8)]));
    assert_eq!(found.mappings[0].policy.as_ref().unwrap().text, "bind:0-1");
    assert_eq!(found.mappings[1].pages, kib(&[(1, 4096)]));
    assert_eq!((found.method, found.notes.len()), (MappingsMethod::Exact, 0), "{:?}", found.notes);
    assert!(found.mappings.iter().all(|mapping| !mapping.unsure));
    assert_eq!((found.name.as_deref(), found.resident), (Some("database"), Some(Bytes::from_mib(4))));
}

#[test]
fn mappings_that_only_one_file_has_are_marked_and_named() {
    let found = exact(
        "1000-2000 rw-p 0 00:00 0\n3000-4000 rw-p 0 00:00 0\n",
        "00001000 default anon=1 N0=1 kernelpagesize_kB=4\n00005000 default\n",
    );
    let unsure: Vec<bool> = found.mappings.iter().map(|mapping| mapping.unsure).collect();
    assert_eq!(unsure, [false, true]);
    assert_eq!(found.mappings[1].pages, MappedPages::Unknown { resident: None });
    assert!(found.notes[0].starts_with("2 mappings came, went or changed"), "{:?}", found.notes);
}

#[test]
fn a_kernel_without_numa_gives_sizes_without_nodes() {
    let files = Memory::new()
        .file("/proc/7/status", STATUS)
        .file("/proc/7/maps", "1000-2000 rw-p 0 00:00 0\n")
        .file("/proc/7/smaps", "1000-2000 rw-p 0 00:00 0\nRss: 4 kB\nAnonHugePages: 0 kB\nSwap: 8 kB\n");
    let found = read(&Tree::memory(files), PID, Thoroughness::ByPrice, 1, None).unwrap();
    assert_eq!(found.method, MappingsMethod::NoNodes);
    assert_eq!(found.mappings[0].resident(), Some(Bytes::from_kib(4)));
    assert_eq!(found.mappings[0].swapped, Some(Bytes::from_kib(8)));
    assert!(found.notes[0].contains("without NUMA") && !found.mappings[0].unsure, "{:?}", found.notes);
}

#[test]
fn a_process_without_mappings_says_why() {
    let check = |files: Memory, expected: MappingsError| {
        assert_eq!(read(&Tree::memory(files), PID, Thoroughness::Exact, 1, None), Err(expected));
    };
    let status = |text: &str| Memory::new().file("/proc/7/status", text).file("/proc/7/maps", "");
    check(Memory::new(), MappingsError::NoProcess(PID));
    check(status("State:\tI (idle)\n"), MappingsError::KernelThread(PID));
    check(status("State:\tZ (zombie)\n"), MappingsError::Zombie(PID));
    check(status(STATUS), MappingsError::Ended(PID));
    let closed =
        || Memory::new().file("/proc/7/status", STATUS).unreadable("/proc/7/maps", ReadCause::System(13));
    let user = |user: u32| format!("Uid:\t{user}\t{user}\t{user}\t{user}\n");
    check(closed().file("/proc/self/status", user(1000)), MappingsError::OtherUser(PID));
    check(closed().file("/proc/self/status", user(0)), MappingsError::Protected(PID));
    check(
        Memory::new().file("/proc/7/status", STATUS).unreadable("/proc/7/maps", ReadCause::System(3)),
        MappingsError::Ended(PID),
    );
    let drawn = read(&tree("1000-2000 rw-p 0 00:00 0\n", ""), PID, Thoroughness::Sample(9), 1, None);
    assert_eq!(drawn, Err(MappingsError::NothingToDraw(PID)));
}

#[test]
fn small_mappings_are_counted_and_runs_are_cut_where_mappings_end() {
    let maps =
        "1000-3000 rw-p 0 00:00 0\n3000-5000 rw-p 0 fe:00 9 /x\n10000000-10400000 rw-p 0 00:00 0 [heap]\n";
    let runs = vec![
        small(0x2000, 0x4000),
        Run { start: 0x4000, end: 0x5000, state: RunState::Swapped },
        Run { start: 0x1000_0000, end: 0x1040_0000, state: RunState::Huge },
    ];
    let mut pages = Pages::new(runs, |address| Some(if address < 0x1020_0000 { 0 } else { 1 }));
    let found = read(&tree(maps, ""), PID, Thoroughness::Sample(50), 1, Some(&mut pages)).unwrap();
    assert_eq!(found.mappings[0].pages, kib(&[(0, 4)]));
    assert_eq!(found.mappings[1].pages, kib(&[(0, 4)]));
    assert_eq!(found.mappings[1].swapped, Some(Bytes::from_kib(4)));
    // Two questions are enough for two huge pages.
    assert_eq!(found.mappings[2].pages, kib(&[(0, 2048), (1, 2048)]));
    assert_eq!(found.mappings[2].transparent, Some(Bytes::from_mib(4)));
    assert_eq!(found.method, MappingsMethod::Exact);
}

const LARGE: &str = "10000000-14000000 rw-p 0 00:00 0\n20000000-20800000 rw-p 0 00:00 0 [heap]\n";

/// 64 MiB interleaved by huge page over two nodes at 3 to 1, and 8 MiB on a third.
fn interleaved(address: u64) -> Option<u32> {
    let huge = address >> 21;
    Some(if address >= 0x2000_0000 { 2 } else { u32::from(huge % 4 == 0) })
}

fn whole() -> Vec<Run> {
    vec![small(0x1000_0000, 0x1400_0000), small(0x2000_0000, 0x2080_0000)]
}

/// The draws of all mappings together.
fn drawn(found: &ProcessMappings) -> (u64, BTreeMap<NodeId, u64>) {
    let (mut count, mut nodes) = (0, BTreeMap::new());
    for mapping in &found.mappings {
        let MappedPages::Drawn(drawn) = &mapping.pages else { panic!("{:?} was counted", mapping.pages) };
        count += drawn.drawn;
        drawn.nodes.iter().for_each(|(node, hits)| *nodes.entry(*node).or_default() += hits);
    }
    (count, nodes)
}

#[test]
fn intervals_hold_the_share_in_95_percent_of_ten_thousand_readings() {
    // Node 1 has a quarter of 64 MiB among 72 MiB.
    let tree = tree(LARGE, "");
    let share = 16.0 / 72.0;
    for (most, readings) in [(300, 10_000), (2_000, 500)] {
        let held = (0..readings).filter(|seed| {
            let mut pages = Pages::new(whole(), interleaved);
            let found = read(&tree, PID, Thoroughness::Sample(most), *seed, Some(&mut pages)).unwrap();
            let (count, nodes) = drawn(&found);
            assert_eq!(count, most);
            wilson_interval(nodes[&NodeId::new(1)], count).contains(share)
        });
        let rate = held.count() as f64 / readings as f64;
        assert!((0.93..=0.97).contains(&rate), "{most} draws: {rate}");
    }
}

#[test]
fn drawing_ends_when_the_answer_is_certain_and_its_interval_still_holds() {
    // One page in a hundred is elsewhere: 10,000 draws are not needed.
    let tree = tree("10000000-14000000 rw-p 0 00:00 0\n", "");
    let mut longest = 0;
    let held = (0..1000).filter(|seed| {
        let mut pages = Pages::new(vec![small(0x1000_0000, 0x1400_0000)], |address| {
            Some(u32::from((address >> 12) % 100 == 7))
        });
        let found = read(&tree, PID, Thoroughness::Sample(10_000), *seed, Some(&mut pages)).unwrap();
        let (count, nodes) = drawn(&found);
        longest = longest.max(count);
        wilson_interval(nodes[&NodeId::new(0)], count).contains(1.0 - 164.0 / 16384.0)
    });
    let rate = held.count() as f64 / 1000.0;
    assert!((0.93..=0.985).contains(&rate), "{rate}");
    assert!(longest < 3000, "{longest}");
}

#[test]
fn a_seed_repeats_a_reading_and_another_does_not() {
    let tree = tree(LARGE, "");
    let found = |seed| {
        let mut pages = Pages::new(whole(), interleaved);
        read(&tree, PID, Thoroughness::Sample(200), seed, Some(&mut pages)).unwrap().mappings
    };
    assert_eq!(found(3), found(3));
    assert_ne!(found(3), found(4));
}

#[test]
fn what_cannot_be_drawn_is_counted_and_the_reason_is_named() {
    let numa = "10000000 default anon=16384 N0=16384 kernelpagesize_kB=4\n20000000 default heap\n";
    let check = |mut pages: Pages<fn(u64) -> Option<u32>>, why: &str| {
        let found = read(&tree(LARGE, numa), PID, Thoroughness::Sample(2_500), 1, Some(&mut pages)).unwrap();
        assert_eq!(found.mappings[0].pages, kib(&[(0, 65536)]));
        let note = format!("all pages were counted instead of sampled: {why}");
        assert!(found.notes.first().is_some_and(|first| first.starts_with(&note)), "{:?}", found.notes);
    };
    let refused = Err(PageError::Refused("move_pages is not permitted".to_owned()));
    check(Pages { locates: refused, ..Pages::new(whole(), interleaved) }, "move_pages is not permitted");
    // A reserve with little of it in use, on a kernel that does not say which pages there are.
    let sparse: fn(u64) -> Option<u32> = |address| ((address >> 12) % 64 == 0).then_some(0);
    let pages = Pages { scans: Err(PageError::Unsupported), ..Pages::new(whole(), sparse) };
    check(pages, "of 2048 sampled pages only");
}

#[test]
fn pages_are_drawn_without_a_list_of_runs() {
    let half: fn(u64) -> Option<u32> = |address| (address >> 12).is_multiple_of(2).then_some(1);
    let mut pages = Pages { scans: Err(PageError::Unsupported), ..Pages::new(Vec::new(), half) };
    let found = read(&tree(LARGE, ""), PID, Thoroughness::Sample(8_000), 1, Some(&mut pages)).unwrap();
    let resident: Bytes = found.mappings.iter().filter_map(|mapping| mapping.resident()).sum();
    // Half of 72 MiB; one standard deviation is 0.4 MiB.
    assert!(resident.mib().abs_diff(36) <= 2, "{resident}");
    assert_eq!(found.mappings[0].transparent, None);
}

/// Half of its 72 MiB of address space have pages: they are drawn from all of it, and the kernel lists none.
#[test]
fn shares_of_a_dense_process_need_no_list_of_its_pages() {
    let shares = |resident_kib: u64| {
        let status = STATUS.replace("4096 kB", &format!("{resident_kib} kB"));
        let files = Memory::new().file("/proc/7/status", status).file("/proc/7/maps", LARGE);
        let half: fn(u64) -> Option<u32> = |address| {
            (address >> 12).is_multiple_of(2).then_some(u32::from((address >> 13).is_multiple_of(4)))
        };
        let mut pages = Pages::new(Vec::new(), half);
        read(&Tree::memory(files), PID, Thoroughness::Shares(1_000), 1, Some(&mut pages)).unwrap()
    };
    let found = shares(36 << 10);
    let (count, nodes) = drawn(&found);
    let interval = wilson_interval(nodes[&NodeId::new(1)], nodes.values().sum());
    assert!(count <= 1_000 && interval.low < 0.25 && 0.25 < interval.high, "{nodes:?}");
    let resident: Bytes = found.mappings.iter().filter_map(|mapping| mapping.resident()).sum();
    assert!(resident.mib().abs_diff(36) <= 4, "{resident}");
    // Of a sparse one the list says where the pages are: this one has none.
    let sparse = shares(35 << 10);
    assert!(sparse.mappings.iter().all(|mapping| mapping.resident() == Some(Bytes::new(0))), "{sparse:?}");
}

#[test]
fn a_process_that_ends_while_it_is_read_is_no_wrong_sum() {
    let mut pages = Pages { locates: Err(PageError::Gone), ..Pages::new(whole(), interleaved) };
    let found = read(&tree(LARGE, ""), PID, Thoroughness::Sample(100), 1, Some(&mut pages));
    assert_eq!(found, Err(MappingsError::Ended(PID)));
    // numa_maps is gone, and so is everything else.
    let files = Memory::new()
        .file("/proc/7/status", STATUS)
        .file("/proc/7/maps", LARGE)
        .unreadable("/proc/7/numa_maps", ReadCause::System(3));
    let found = read(&Tree::memory(files), PID, Thoroughness::Exact, 1, None);
    assert_eq!(found, Err(MappingsError::Ended(PID)));
}

/// A process of 2 GiB in one mapping above the segments of its program.
fn dear(numa_maps: &str) -> Tree {
    let maps = "00400000-00500000 r-xp 0 fe:00 9 /usr/sbin/database\n100000000-180000000 rw-p 0 00:00 0\n";
    Tree::memory(
        Memory::new()
            .file("/proc/7/status", "Name:\tx\nState:\tS (sleeping)\nVmRSS:\t 2097152 kB\n")
            .file("/proc/7/maps", maps)
            .file("/proc/7/numa_maps", numa_maps),
    )
}

const ALL_OF_DEAR: (u64, u64) = (0x1_0000_0000, 0x1_8000_0000);

#[test]
fn a_dear_process_is_drawn_unless_all_is_wanted() {
    let method = |thoroughness| {
        let mut pages = Pages::new(vec![small(ALL_OF_DEAR.0, ALL_OF_DEAR.1)], interleaved);
        let tree = dear("00400000 default file=/usr/sbin/database\n100000000 default\n");
        let found = read(&tree, PID, thoroughness, 5, Some(&mut pages)).unwrap();
        (found.method, found.predicted.as_millis())
    };
    let (drawn, predicted) = method(Thoroughness::ByPrice);
    assert!(matches!(drawn, MappingsMethod::Sampled { seed: 5, .. }), "{drawn:?}");
    assert_eq!(predicted, 44);
    assert_eq!(method(Thoroughness::Exact).0, MappingsMethod::Exact);
}

#[test]
fn huge_pages_make_a_large_process_cheap_to_read_with_its_policies() {
    let (start, end) = ALL_OF_DEAR;
    let mut pages = Pages::new(vec![Run { start, end, state: RunState::Huge }], interleaved);
    let tree = dear(
        "00400000 default file=/usr/sbin/database\n\
         100000000 bind:1 anon=524288 N1=524288 kernelpagesize_kB=4\n",
    );
    let found = read(&tree, PID, Thoroughness::ByPrice, 5, Some(&mut pages)).unwrap();
    assert_eq!((found.method, &found.notes[..]), (MappingsMethod::Exact, &[] as &[String]));
    assert_eq!(found.mappings[1].policy.as_ref().unwrap().text, "bind:1");
}

#[test]
fn the_policy_of_the_first_thread_costs_one_line() {
    let check = |first: &str, expected: Option<&str>| {
        let runs = vec![small(0x40_0000, 0x40_1000), small(ALL_OF_DEAR.0, ALL_OF_DEAR.1)];
        let mut pages = Pages::new(runs, interleaved);
        let tree = dear(&format!("{first}\n100000000 bind:1 anon=9 N0=9 kernelpagesize_kB=4\n"));
        let found = read(&tree, PID, Thoroughness::ByPrice, 5, Some(&mut pages)).unwrap();
        let text = found.thread_policy.map(|policy| policy.text);
        assert_eq!(text.as_deref(), expected, "{first}");
        assert!(found.mappings.iter().all(|mapping| mapping.policy.is_none()));
    };
    let file = "file=/usr/sbin/database mapped=9 N0=9 kernelpagesize_kB=4";
    check(&format!("00400000 interleave:0-3 {file}"), Some("interleave:0-3"));
    check(&format!("00400000 prefer (many):1,3 {file}"), Some("prefer (many):1,3"));
    check(&format!("00400000 default {file}"), Some("default"));
    // Cut in the middle of the policy.
    check(&format!("00400000 prefer (many)=relative:{} {file}", "1,3,".repeat(12)), None);
    check("00400000 default", None);
    check(&format!("00300000 default {file}"), None);
    check(&"9".repeat(100), None);
    check("", None);
}

#[test]
fn what_a_scan_does_not_say_is_unknown_and_not_zero() {
    let maps = "1000-3000 rw-p 0 00:00 0\n\
                3000-5000 rw-s 0 00:01 9 /memfd:x (deleted)\n\
                10000-20000 r--p 0 00:00 0 [vvar]\n";
    let numa =
        "00001000 default anon=1 N0=1 kernelpagesize_kB=4\n00003000 default file=/memfd:x\\040(deleted)\n";
    let runs = vec![
        small(0x1000, 0x2000),
        Run { start: 0x2000, end: 0x3000, state: RunState::Swapped },
        small(0x10000, 0x11000),
    ];
    for thoroughness in [Thoroughness::Exact, Thoroughness::Sample(50)] {
        let mut pages = Pages::new(runs.clone(), |_| Some(0));
        let found = read(&tree(maps, numa), PID, thoroughness, 1, Some(&mut pages)).unwrap();
        let swapped: Vec<Option<Bytes>> = found.mappings.iter().map(|mapping| mapping.swapped).collect();
        assert_eq!(swapped[..2], [Some(Bytes::from_kib(4)), None], "{thoroughness:?}");
        assert_eq!(found.mappings[1].kind, MappingKind::Shared);
        assert_eq!(found.mappings[2].kind, MappingKind::Special);
        let resident = Some(Bytes::from_kib(4));
        assert_eq!(found.mappings[2].pages, MappedPages::Unknown { resident }, "{thoroughness:?}");
    }
    // Without a scan nothing says how much of it is present.
    let mut pages = Pages { scans: Err(PageError::Unsupported), ..Pages::new(Vec::new(), |_| Some(0)) };
    let found = read(&tree(maps, numa), PID, Thoroughness::Sample(50), 1, Some(&mut pages)).unwrap();
    assert_eq!(found.mappings[2].pages, MappedPages::Unknown { resident: None });
    assert_eq!(found.mappings[0].swapped, None);
}
