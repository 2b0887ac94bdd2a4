//! The loops that are timed, and the memory they run over.
//!
//! Only what must be inside a timed region is here; sizes, threads, repetitions and results are in
//! [`crate::workload`]. This is the one place of the crate with unsafe code.

#[expect(unsafe_code, reason = "a chain is followed through pointers, as a program would")]
pub mod chase;
pub mod stream;
