//! The loops that are timed, and the memory they run over.
//!
//! Only what must be inside a timed region is here; sizes, threads, repetitions and results are in
//! [`crate::workload`]. This is the one place of the crate with unsafe code.

pub mod bandwidth;
#[expect(unsafe_code, reason = "a chain is followed through pointers, as a program would")]
pub mod chase;
pub mod cycle;
#[expect(unsafe_code, reason = "words are shared between threads, and lines dropped from caches")]
pub mod lines;
pub mod stream;
#[expect(unsafe_code, reason = "a cycle is followed through pointers, as a program would")]
pub mod track;
