//! Where the C library hands over to a program of ours.
//!
//! Rust's own start reads `/proc/self/maps` to find where the stack ends and makes a second stack for
//! the message that it has overflowed: 25 system calls and 100,000 instructions, more than numactl's
//! whole work. A command that ends within a millisecond does without.

/// Makes a function without arguments, which returns an exit code (`u8`), the program's start, in a
/// crate with `#![no_main]`.
///
/// The function must flush what it wrote to standard output; nothing does it afterwards.
#[macro_export]
macro_rules! entry {
    ($start:path) => {
        /// Called by the C library.
        #[unsafe(no_mangle)]
        pub extern "C" fn main() -> ::std::ffi::c_int {
            $crate::prepare();
            ::std::ffi::c_int::from($start())
        }
    };
}

/// Prepares the standard streams and SIGPIPE as Rust's own start does, for [`entry!`](crate::entry).
pub fn prepare() {
    crate::inherited::prepare();
}
