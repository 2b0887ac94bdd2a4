//! Values that the threads of QEMU share, one for each CPU of the guest.

use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};

/// Something that one thread uses at a time, for a reason that the compiler cannot see.
pub struct Own<T>(UnsafeCell<T>);

// SAFETY: whoever uses the pointer of `get` answers for it that no other thread does.
unsafe impl<T> Sync for Own<T> {}

impl<T> Own<T> {
    /// A value that is one thread's at a time.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Where it is.
    pub const fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// Something that a lock protects. It is held for some instructions, at events that are rare: a thread that waits for it
/// spins.
pub struct Locked<T> {
    is_held: AtomicBool,
    value: Own<T>,
}

impl<T> Locked<T> {
    /// A value with a lock that is free.
    pub const fn new(value: T) -> Self {
        Self { is_held: AtomicBool::new(false), value: Own::new(value) }
    }

    /// Does something with it, alone.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        while self.is_held.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            spin_loop();
        }
        // SAFETY: the lock is held until after the last use of the reference, and whoever has one holds it.
        let result = work(unsafe { &mut *self.value.get() });
        self.is_held.store(false, Ordering::Release);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_turns() {
        static SUM: Locked<[u64; 2]> = Locked::new([0; 2]);
        let add = || {
            for _ in 0..20_000 {
                SUM.with(|sums| {
                    assert_eq!(sums[0], sums[1]);
                    sums[0] += 1;
                    sums[1] += 1;
                });
            }
        };
        std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(add))));
        assert_eq!(SUM.with(|sums| *sums), [60_000; 2]);
    }
}
