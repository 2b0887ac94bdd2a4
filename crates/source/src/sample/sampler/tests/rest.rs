//! Processes that rest: of them a smaller file is read.

use super::*;

/// A process with its CPU time in ticks, resident pages, threads and times of the scheduler.
fn machine_with(ticks: u64, pages: u64, threads: u32, schedstat: &str) -> Tree {
    let stat = format!(
        "30 (p30) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 {threads} 0 7 8192 {pages} 0 0 0 0 0 0 0 0 0 0 0 0 0 17 4 0\n"
    );
    Tree::memory(with(machine(), 30, 7, 1).file("/proc/30/stat", stat).file("/proc/30/schedstat", schedstat))
}

/// A sampler that has known this process for 40 samples, in which it did nothing.
fn rested(threads: u32, schedstat: &str) -> Sampler {
    let mut sampler = Sampler::new(machine_with(5, 2, threads, schedstat), all());
    (0..40).for_each(|second| drop(sampler.sample(at(second))));
    sampler
}

/// The ticks and pages that samples of these seconds show last, and the latest second at which the process was read.
fn follow(sampler: &mut Sampler, seconds: std::ops::Range<u64>) -> (u64, u64, u64) {
    let mut last = (0, 0, 0);
    for second in seconds {
        let sample = sampler.sample(at(second));
        let process = &sample.processes[0];
        let pages = process.resident.unwrap().get() / 4096;
        last = (process.cpu_ticks, pages, process.polled.since_boot.as_secs());
    }
    last
}

#[test]
fn the_memory_of_a_process_that_rests_is_read_once_a_minute_and_its_time_as_often_as_before() {
    let mut sampler = rested(1, "900 10 3\n");
    sampler.continue_with(machine_with(5, 1, 1, "900 10 3\n"));
    let (ticks, pages, polled) = follow(&mut sampler, 40..60);
    assert_eq!((ticks, pages), (5, 2));
    assert!(polled >= 52, "{polled}");
    let (_, pages, _) = follow(&mut sampler, 60..110);
    assert_eq!(pages, 1);
}

#[test]
fn a_process_that_ran_is_read_as_a_whole() {
    for schedstat in ["901 10 3\n", "900 10 4\n"] {
        let mut sampler = rested(1, "900 10 3\n");
        sampler.continue_with(machine_with(6, 1, 1, schedstat));
        let (ticks, pages, polled) = follow(&mut sampler, 40..49);
        assert_eq!((ticks, pages), (6, 1), "{schedstat:?}");
        assert!(polled > 40);
    }
}

#[test]
fn where_the_kernel_does_not_say_it_every_reading_is_whole() {
    // Several threads, times that are not counted, and texts that are none.
    for (threads, schedstat) in
        [(2, "900 10 3\n"), (1, "0 0 0\n"), (1, ""), (1, "\u{1b}[2J -1"), (1, "9 9\n")]
    {
        let mut sampler = rested(threads, schedstat);
        sampler.continue_with(machine_with(5, 1, threads, schedstat));
        let (_, pages, _) = follow(&mut sampler, 40..49);
        assert_eq!(pages, 1, "{threads} {schedstat:?}");
    }
}

#[test]
fn a_process_that_ended_while_it_rested_is_forgotten() {
    let mut sampler = rested(1, "900 10 3\n");
    sampler.continue_with(Tree::memory(machine()));
    (40..48).for_each(|second| drop(sampler.sample(at(second))));
    assert!(sampler.sample(at(48)).processes.is_empty());
}
