//! `Setup::apply` costs its system calls: it allocates nothing, as code between fork and exec must.
//!
//! A test program of its own, because the counting allocator serves the whole program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use nodewise_machine::{CpuSet, MemPolicy, NodeSet, PolicyMode};
use nodewise_syscall::{Setup, Task, TransparentHuge, affinity};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed to the system's allocator with its arguments unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's obligations are those of this very function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are those of this very function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn applying_a_setup_allocates_nothing_whether_it_works_or_is_blocked() {
    assert!(allocations(|| drop(std::hint::black_box(vec![0_u8; 64]))) > 0, "the allocator counts");
    let cpus = affinity::cpus(Task::CURRENT).expect("a thread may look at its own CPUs");
    let parts = [
        Setup::new().with_cpus(cpus.clone()),
        Setup::new().with_transparent_huge(TransparentHuge::Allowed),
        Setup::new().with_policy(MemPolicy::new(PolicyMode::Preferred, NodeSet::new())),
        Setup::new().with_cpus(cpus).with_policy(MemPolicy::DEFAULT),
    ];
    for setup in parts {
        let mut result = Ok(());
        let count = allocations(|| result = setup.apply());
        // The error of a blocked call carries copies of its arguments.
        assert!(count == 0 || result.is_err(), "{setup}: {count} allocations");
    }
    let refused = Setup::new().with_cpus(CpuSet::new());
    assert!(refused.apply().is_err());
}
