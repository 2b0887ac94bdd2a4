//! CPUs of threads.

use nodewise_machine::id::Id;
use nodewise_machine::{CpuId, CpuSet};
use nodewise_syscall::{Errno, Limit, Task, affinity, explain};

use crate::here::{allowed_cpus, circumstances, on_own_thread, unless_blocked};

/// Binds the calling thread and compares the answer, with the explanation of a refusal.
fn check(cpus: &CpuSet, expected: Result<(), (Errno, Limit)>) {
    let got = affinity::set_cpus(Task::CURRENT, cpus);
    if got.as_ref().is_err_and(|error| error.errno != Errno::EINVAL) {
        unless_blocked(got);
        return;
    }
    let got = got.map_err(|error| (error.errno, explain(&error, &circumstances()).limit));
    assert_eq!(got, expected, "{cpus}");
}

#[test]
fn the_cpus_of_this_thread_are_those_of_its_status_file() {
    assert_eq!(affinity::cpus(Task::CURRENT), Ok(allowed_cpus()));
}

#[test]
fn a_thread_bound_to_one_cpu_runs_there() {
    on_own_thread(|| {
        for cpu in &allowed_cpus() {
            let one: CpuSet = [cpu].into_iter().collect();
            if unless_blocked(affinity::set_cpus(Task::CURRENT, &one)).is_none() {
                return;
            }
            assert_eq!(affinity::cpus(Task::CURRENT), Ok(one));
            assert_eq!(affinity::current_cpu().unwrap().0, cpu);
        }
    });
}

#[test]
fn cpus_far_beyond_any_machine_are_left_out_while_one_remains() {
    on_own_thread(|| {
        let mine = allowed_cpus();
        let mut wider = mine.clone();
        wider.insert(CpuId::new(5000));
        wider.insert(CpuId::new(CpuId::LIMIT - 1));
        check(&wider, Ok(()));
        assert_eq!(affinity::cpus(Task::CURRENT), Ok(mine));
    });
}

#[test]
fn a_thread_cannot_be_bound_to_nothing() {
    on_own_thread(|| {
        check(&CpuSet::new(), Err((Errno::EINVAL, Limit::Arguments)));
        let mut far = CpuSet::new();
        far.insert(CpuId::new(CpuId::LIMIT - 1));
        check(&far, Err((Errno::EINVAL, Limit::NoSuchCpu)));
    });
}

#[test]
fn a_thread_that_does_not_exist_is_said_to_be_gone() {
    // Linux numbers threads below 2^22.
    let nobody = Task::new(i32::MAX as u32).unwrap();
    for error in
        [affinity::cpus(nobody).unwrap_err(), affinity::set_cpus(nobody, &allowed_cpus()).unwrap_err()]
    {
        if error.errno == Errno::ESRCH {
            assert_eq!(explain(&error, &circumstances()).limit, Limit::Gone);
        } else {
            unless_blocked::<()>(Err(error));
        }
    }
}
