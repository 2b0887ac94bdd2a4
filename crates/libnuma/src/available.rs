//! `numa_available`, and which of the kernel's newer features are there. Every question is asked
//! without effect: on an empty range of memory.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::data;
use crate::kernel::{self, mpol};
use crate::words::{self, Word, words_for};

/// 0 when the kernel has memory policies and lets the program use them, else -1.
#[unsafe(no_mangle)]
pub extern "C" fn numa_available() -> c_int {
    match kernel::has_policies() {
        Ok(()) => 0,
        Err(_) if matches!(kernel::errno(), libc::ENOSYS | libc::EPERM) => -1,
        Err(_) => 0,
    }
}

/// An answer that is asked for once.
struct Answer(AtomicU8);

impl Answer {
    const UNKNOWN: u8 = 0;
    const YES: u8 = 1;
    const NO: u8 = 2;

    const fn new() -> Self {
        Self(AtomicU8::new(Self::UNKNOWN))
    }

    fn get(&self, ask: impl FnOnce() -> bool) -> bool {
        match self.0.load(Ordering::Relaxed) {
            Self::UNKNOWN => {
                let errno = kernel::errno();
                let yes = ask();
                kernel::set_errno(errno);
                self.0.swap(if yes { Self::YES } else { Self::NO }, Ordering::Relaxed);
                yes
            }
            answer => answer == Self::YES,
        }
    }
}

/// Whether the kernel knows `MPOL_PREFERRED_MANY` (Linux 5.15).
pub fn has_preferred_many() -> bool {
    static ANSWER: Answer = Answer::new();
    ANSWER.get(|| {
        let mut mask: [Word; words_for(64)] = [0; words_for(64)];
        words::set(&mut mask, 0);
        kernel::takes(mpol::PREFERRED_MANY, &mask, 64)
    })
}

/// 1 when several nodes can be preferred, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn numa_has_preferred_many() -> c_int {
    c_int::from(has_preferred_many())
}

/// 1 when a range of memory can have a home node (Linux 5.17), else 0.
#[unsafe(no_mangle)]
pub extern "C" fn numa_has_home_node() -> c_int {
    static ANSWER: Answer = Answer::new();
    c_int::from(ANSWER.get(|| {
        // SAFETY: the constructor made the mask, which is never changed.
        let (nodes, bits) = unsafe { crate::bitmask::Bitmask::words(data::nodes()) };
        let node = words::ones(nodes, bits).next().unwrap_or(0);
        kernel::set_home_node(core::ptr::null_mut(), 0, node as _, 0) == 0
    }))
}
