//! Threads of processes.

use super::*;

const SCHED: &str = "x (31, #threads: 1)\n-----------------------------------\nse.nr_migrations : 4\nmm->numa_scan_seq : 2\nnuma_pages_migrated : 9\nnuma_preferred_nid : 1\nnuma_faults node=1 task_private=5 task_shared=6 group_private=0 group_shared=0\n";

/// With a thread of process 30 that ran for a while.
fn with_thread(files: Memory, tid: u32, started: u64, run: u64) -> Memory {
    let folder = format!("/proc/30/task/{tid}");
    let stat = format!(
        "{tid} (t) S 1 1 1 0 -1 0 0 0 0 0 {run} 0 0 0 20 0 1 0 {started} 8192 2 0 0 0 0 0 0 0 0 0 0 0 0 0 17 5 0\n"
    );
    files
        .file(&format!("{folder}/stat"), stat)
        .file(&format!("{folder}/schedstat"), format!("{run} 0 1\n"))
        .file(&format!("{folder}/sched"), SCHED)
        .file(&format!("{folder}/status"), "Cpus_allowed:\t20\nMems_allowed:\t2\n")
}

fn threads(sample: &Sample) -> Vec<(u32, u64, u64)> {
    let tasks = sample.processes.iter().flat_map(|process| process.tasks.iter().flatten());
    tasks.map(|task| (task.identity.pid.number(), task.identity.started_ticks, task.cpu_ticks)).collect()
}

#[test]
fn threads_of_a_named_process_are_read() {
    let files = with_thread(with_thread(with(machine(), 30, 7, 1), 30, 7, 100), 31, 8, 0);
    let options = SampleOptions { threads: ThreadScope::Only([Pid::new(30)].into()), ..all() };
    let mut sampler = Sampler::new(Tree::memory(files.clone()), options);
    let sample = sampler.sample(at(1));
    assert_eq!(threads(&sample), [(30, 7, 100), (31, 8, 0)]);
    let task = &sample.processes[0].tasks.as_ref().unwrap()[0];
    assert_eq!((task.processor, task.cpu_changes), (Some(CpuId::new(5)), Some(4)));
    assert_eq!(task.run, Some(Duration::from_nanos(100)));
    assert_eq!(task.allowed.as_ref().unwrap().cpus.as_ref().unwrap().to_string(), "5");
    let balancing = task.balancing.as_ref().unwrap();
    assert_eq!(
        (balancing.scans, balancing.migrated_pages, balancing.preferred),
        (Some(2), Some(9), Some(NodeId::new(1)))
    );
    assert_eq!(balancing.faults[&NodeId::new(1)], crate::sample::BalancingFaults { private: 5, shared: 6 });
    // One ran, one ended and its number is another's, one was born.
    let next =
        with_thread(with_thread(with_thread(with(machine(), 30, 7, 9), 30, 7, 300), 31, 99, 5), 32, 99, 1);
    sampler.continue_with(Tree::memory(next));
    assert_eq!(threads(&sampler.sample(at(2))), [(30, 7, 300), (31, 99, 5), (32, 99, 1)]);
    sampler.continue_with(Tree::memory(files.without("/proc/30/task/31")));
    assert_eq!(threads(&sampler.sample(at(3))), [(30, 7, 100)]);
}

#[test]
fn a_thread_that_did_not_run_is_not_read_again() {
    let before = with_thread(with(machine(), 30, 7, 1), 30, 7, 100);
    let options = SampleOptions { threads: ThreadScope::Only([Pid::new(30)].into()), ..all() };
    let mut sampler = Sampler::new(Tree::memory(before.clone()), options);
    sampler.sample(at(1));
    // The same run time, so that another stat would be a lie of this test.
    sampler.continue_with(Tree::memory(before.file("/proc/30/task/30/stat", "garbage")));
    assert_eq!(threads(&sampler.sample(at(2))), [(30, 7, 100)]);
}

#[test]
fn the_cpus_of_a_thread_are_read_again_when_it_has_changed_cpus() {
    let state = |run, changes: &str, cpus: &str| {
        let folder = "/proc/30/task/30";
        let files = with_thread(with(machine(), 30, 7, 1), 30, 7, run);
        let sched = SCHED.replace("nr_migrations : 4", &format!("nr_migrations : {changes}"));
        let files = files.file(&format!("{folder}/sched"), sched);
        Tree::memory(files.file(&format!("{folder}/status"), format!("Cpus_allowed:\t{cpus}\n")))
    };
    let options = SampleOptions { threads: ThreadScope::Only([Pid::new(30)].into()), ..all() };
    let mut sampler = Sampler::new(state(100, "4", "20"), options.clone());
    let mut allowed = |second| {
        let sample = sampler.sample(at(second));
        let task = &sample.processes[0].tasks.as_ref().unwrap()[0];
        let cpus = task.allowed.as_ref().unwrap().cpus.as_ref().unwrap().to_string();
        sampler.continue_with(match second {
            1 => state(200, "4", "10"),
            _ => state(300, "5", "10"),
        });
        cpus
    };
    // It stayed where it was, so it need not be looked up; then it was bound elsewhere.
    assert_eq!([allowed(1), allowed(2), allowed(3)], ["5", "5", "4"]);
    // One that may use every CPU changes often: it is looked up after a while only.
    let mut sampler = Sampler::new(state(100, "4", "30"), options);
    let mut allowed = |second: u64| {
        let sample = sampler.sample(at(second));
        sampler.continue_with(state(100 * second, &(4 + second).to_string(), "10"));
        let task = &sample.processes[0].tasks.as_ref().unwrap()[0];
        task.allowed.as_ref().unwrap().cpus.as_ref().unwrap().to_string()
    };
    assert_eq!([allowed(1), allowed(2), allowed(3), allowed(12)], ["4-5", "4-5", "4-5", "4"]);
}

#[test]
fn threads_of_busy_processes_are_read_until_they_rest() {
    let state =
        |ticks| Tree::memory(with_thread(with(with(machine(), 30, 0, ticks), 40, 0, 0), 30, 0, ticks));
    let options = SampleOptions { threads: ThreadScope::Busy(BTreeSet::new()), ..all() };
    let mut sampler = Sampler::new(state(0), options);
    assert_eq!(threads(&sampler.sample(at(100))), [], "no CPU time since boot");
    sampler.continue_with(state(50));
    assert_eq!(threads(&sampler.sample(at(101))), [(30, 0, 50)]);
    let looked: Vec<bool> =
        (102..130).map(|second| !threads(&sampler.sample(at(second))).is_empty()).collect();
    assert!(looked[0] && !looked[27], "{looked:?}");
    // One that has worked all its life is known as busy at first sight.
    assert_eq!(
        threads(
            &Sampler::new(state(50), SampleOptions { threads: ThreadScope::Busy(BTreeSet::new()), ..all() })
                .sample(at(10))
        )
        .len(),
        1
    );
}
