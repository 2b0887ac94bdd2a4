//! The memory of processes.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::mappings::MOST_COST;
use crate::sample::clock::thread_time;
use crate::sample::{Denied, DrawnPages, PageMethod, PageShare, Remedy};

/// With a process of this number of resident pages, all on node 1.
fn with_pages(files: Memory, pid: u32, pages: u64) -> Memory {
    let stat = format!(
        "{pid} (p) S 1 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 7 8192 {pages} 0 0 0 0 0 0 0 0 0 0 0 0 0 17 4 0\n"
    );
    files.file(&format!("/proc/{pid}/stat"), stat).file(
        &format!("/proc/{pid}/numa_maps"),
        format!("7f00 default anon={pages} dirty={pages} N1={pages} kernelpagesize_kB=4\n"),
    )
}

pub(super) fn looking(budget: Duration, always: &[u32]) -> SampleOptions {
    let always = always.iter().copied().map(Pid::new).collect();
    SampleOptions { pages: Some(PageOptions { budget, always, ..PageOptions::default() }), ..all() }
}

/// Numbers and KiB of the processes whose memory is known.
fn located(sample: &Sample) -> Vec<(u32, u64)> {
    let of = |process: &Arc<ProcessSample>| {
        let pages = process.pages.as_ref()?;
        Some((process.identity.pid.number(), pages.nodes[&NodeId::new(1)].size.get() >> 10))
    };
    sample.processes.iter().filter_map(of).collect()
}

fn why(sample: &Sample) -> Vec<(&str, usize, Option<Remedy>)> {
    let lines = sample.unread.iter().filter(|line| line.fact == "memory of processes by node");
    lines.map(|line| (line.reason.as_str(), line.objects, line.remedy.clone())).collect()
}

#[test]
fn the_memory_of_processes_is_found_within_the_budget() {
    // 36 us each, and 84 ns a page: one a sample, or two, the second paid later.
    let files = (30..36).fold(machine(), |files, pid| with_pages(files, pid, u64::from(pid)));
    let mut sampler = Sampler::new(Tree::memory(files), looking(Duration::from_micros(50), &[]));
    let sample = sampler.sample(at(0));
    assert_eq!(located(&sample), [(34, 136), (35, 140)], "the largest are worth most");
    assert_eq!(why(&sample), [("not looked at yet", 4, None)]);
    let process = sample.processes.iter().find(|process| process.pages.is_some()).unwrap();
    let pages = process.pages.as_ref().unwrap();
    assert_eq!((pages.seen, pages.method), (at(0), PageMethod::Exact));
    let counts: Vec<usize> = (1..6).map(|second| located(&sampler.sample(at(second))).len()).collect();
    assert_eq!(counts, [3, 4, 6, 6, 6], "a price beyond the budget is paid by the next sample");
}

#[test]
fn the_budget_follows_the_interval() {
    let files = (30..36).fold(machine(), |files, pid| with_pages(files, pid, u64::from(pid)));
    let mut sampler = Sampler::new(Tree::memory(files), looking(Duration::from_secs(1), &[]));
    sampler.set_page_budget(Duration::from_micros(50));
    assert_eq!(located(&sampler.sample(at(0))).len(), 2, "a smaller one");
    sampler.set_page_budget(Duration::from_secs(1));
    assert_eq!(located(&sampler.sample(at(1))).len(), 6, "a larger one");
}

#[test]
fn a_dear_process_does_not_keep_others_from_being_seen() {
    // 12,000 pages are 1 ms, ten purses; the others are 39 us each.
    let files = (30..36).fold(machine(), |files, pid| with_pages(files, pid, u64::from(pid)));
    let files = with_pages(files, 50, 12_000);
    let mut sampler = Sampler::new(Tree::memory(files), looking(Duration::from_micros(100), &[]));
    let counts: Vec<usize> = (0..5).map(|second| located(&sampler.sample(at(second))).len()).collect();
    assert_eq!(counts, [1, 2, 3, 4, 5], "half of each purse is for others");
    // In a minute the price of the dear one is paid, and no more than that was spent.
    let dear = |sample: &Sample| sample.processes.last().unwrap().pages.as_ref().unwrap().seen;
    let seen: Vec<Moment> = (5..45).map(|second| dear(&sampler.sample(at(second)))).collect();
    let mut looks: Vec<Moment> = seen.clone();
    looks.dedup();
    assert!(seen.contains(&at(0)) && looks.len() <= 4, "{looks:?}");
}

#[test]
fn a_process_that_grew_is_looked_at_again_before_others() {
    let files = |grown| with_pages(with_pages(machine(), 30, grown), 31, 500);
    let mut sampler = Sampler::new(Tree::memory(files(100)), looking(Duration::from_micros(20), &[]));
    (0..20).for_each(|second| drop(sampler.sample(at(second))));
    sampler.continue_with(Tree::memory(files(400)));
    let found =
        (20..40).map(|second| located(&sampler.sample(at(second)))).find(|found| found[0] == (30, 1600));
    assert!(found.is_some());
}

#[test]
fn selected_processes_are_looked_at_each_time() {
    let files = (30..36).fold(machine(), |files, pid| with_pages(files, pid, u64::from(pid)));
    let mut sampler = Sampler::new(Tree::memory(files), looking(Duration::from_micros(1), &[31]));
    for second in 0..4 {
        let sample = sampler.sample(at(second));
        assert_eq!(located(&sample), [(31, 124)]);
        assert_eq!(sample.processes[1].pages.as_ref().unwrap().seen, at(second));
    }
}

#[test]
fn memory_that_this_user_may_not_see_is_named_with_the_remedy() {
    let refused = |files: Memory, pid: u32| {
        with_pages(files, pid, 5).unreadable(&format!("/proc/{pid}/numa_maps"), ReadCause::System(13))
    };
    let files = refused(refused(with_pages(machine(), 30, 5), 31), 32);
    let mut sampler = Sampler::new(Tree::memory(files), looking(Duration::from_secs(1), &[]));
    for second in 0..3 {
        let sample = sampler.sample(at(second));
        assert_eq!(located(&sample), [(30, 20)]);
        assert_eq!(sample.processes[1].denied, Some(Denied::Rights));
        assert_eq!(why(&sample), [("permission denied", 2, Some(Remedy::Root))]);
    }
}

#[test]
fn a_part_of_a_sum_is_no_sum() {
    let files = with_pages(machine(), 30, 5)
        .file("/proc/30/numa_maps", "7f00 default anon=5 N1=5 kernelpagesize_kB=4\n7f01 default N1=x\n");
    let files = with_pages(files, 31, 5).without("/proc/31/numa_maps");
    let sample = Sampler::new(Tree::memory(files), looking(Duration::from_secs(1), &[])).sample(at(0));
    assert_eq!(located(&sample), []);
    assert_eq!(
        why(&sample),
        [("numa_maps cannot be read", 1, None), ("this kernel was built without NUMA", 1, None)]
    );
}

/// Says that all memory is on node 1, give or take a tenth.
#[derive(Debug)]
struct Drawer;

impl PageDrawer for Drawer {
    fn draw(&mut self, pid: Pid) -> Result<Option<DrawnPages>, Denied> {
        assert_eq!(pid, Pid::new(30));
        let all = Bytes::from_mib(1024);
        let share = PageShare { size: all, low: Bytes::from_mib(922), high: all, own: None };
        Ok(Some(DrawnPages { method: PageMethod::Drawn(1000), nodes: [(NodeId::new(1), share)].into() }))
    }
}

#[test]
fn pages_of_a_large_process_are_drawn() {
    // 262,144 pages of 84 ns are 22 ms.
    let files = with_pages(with_pages(machine(), 30, 262_144), 31, 5);
    let mut sampler =
        Sampler::new(Tree::memory(files), looking(Duration::from_secs(1), &[])).drawing(Box::new(Drawer));
    let sample = sampler.sample(at(0));
    let of = |at: usize| sample.processes[at].pages.as_ref().unwrap();
    assert_eq!(of(0).method, PageMethod::Drawn(1000));
    assert!(of(0).nodes[&NodeId::new(1)].low < of(0).nodes[&NodeId::new(1)].high);
    assert_eq!(of(1).method, PageMethod::Exact);
}

/// Answers in order, each after a time of work; the last one again and again.
#[derive(Debug)]
struct Dear {
    work: Duration,
    answers: Vec<Result<Option<PageMethod>, Denied>>,
    asked: Arc<AtomicUsize>,
}

impl PageDrawer for Dear {
    fn draw(&mut self, _: Pid) -> Result<Option<DrawnPages>, Denied> {
        let begun = thread_time();
        while thread_time() - begun < self.work {}
        let at = self.asked.fetch_add(1, Ordering::Relaxed).min(self.answers.len() - 1);
        let share = PageShare { size: Bytes::MIB, ..PageShare::default() };
        let nodes = || [(NodeId::new(1), share)].into();
        self.answers[at].map(|method| method.map(|method| DrawnPages { method, nodes: nodes() }))
    }
}

#[test]
fn a_refusal_costs_what_was_spent_on_it() {
    let files = with_pages(with_pages(machine(), 30, 262_144), 31, 5);
    let work = Duration::from_millis(1);
    let drawer = Dear { work, answers: vec![Err(Denied::Rights)], asked: Arc::default() };
    let mut sampler = Sampler::new(Tree::memory(files), looking(work, &[30])).drawing(Box::new(drawer));
    let sample = sampler.sample(at(0));
    assert_eq!(sample.processes[0].denied, Some(Denied::Rights));
    assert_eq!(sample.processes[1].pages, None, "the refusal left nothing for it");
}

#[test]
fn a_look_that_found_nothing_says_nothing_of_the_price_of_all_pages() {
    let asked: Arc<AtomicUsize> = Arc::default();
    let answers = vec![Ok(Some(PageMethod::Exact))];
    let drawer = Dear { work: MOST_COST + Duration::from_millis(1), answers, asked: Arc::clone(&asked) };
    let files = with_pages(machine(), 30, 262_144);
    let mut sampler =
        Sampler::new(Tree::memory(files), looking(Duration::from_secs(1), &[30])).drawing(Box::new(drawer));
    sampler.sample(at(0));
    // A look that gives nothing is over at once.
    let quick = Dear { work: Duration::ZERO, answers: vec![Ok(None)], asked: Arc::clone(&asked) };
    let mut sampler = sampler.drawing(Box::new(quick));
    for second in 1..4 {
        sampler.sample(at(second));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 4, "it is drawn each time, and never read as a whole");
}

#[test]
fn pages_are_drawn_again_however_cheap_drawing_was() {
    let files = with_pages(machine(), 30, 262_144);
    let mut sampler =
        Sampler::new(Tree::memory(files), looking(Duration::from_secs(1), &[])).drawing(Box::new(Drawer));
    for second in [0, 61] {
        let sample = sampler.sample(at(second));
        let pages = sample.processes[0].pages.as_ref().unwrap();
        assert_eq!((pages.seen, pages.method), (at(second), PageMethod::Drawn(1000)));
    }
}
