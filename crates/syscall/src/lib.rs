//! Memory policy, page placement and affinity calls, and what their errors mean.
//!
//! This is the crate that asks the kernel to do something. The calls are safe functions that take
//! the types of `nodewise_machine`; when one fails, the error keeps the call with its arguments as
//! data ([`CallError`]), and [`explain`] says what stands in the way and what would mend it.
//!
//! | to | look in |
//! |---|---|
//! | set or read a memory policy, of the thread or of a range | [`mempolicy`] |
//! | learn where pages are, and move them | [`pages`] |
//! | set or read the CPUs a thread may run on | [`affinity`] |
//! | allow or forbid transparent huge pages | [`huge`] |
//! | tell the kernel what a range of memory is for | [`advice`] |
//! | have memory on chosen nodes, in pages of a chosen size | [`buffer`] |
//! | have memory that other processes share | [`shared`] |
//! | start a program under a placement | [`setup`] |
//! | start one of which nothing outlives this process | [`guard`] |
//! | have a copy of this process | [`fork`] |
//! | know the time, or play it in a test | [`clock`] |
//! | learn what this process was started with | [`inherited`] |
//! | start without what a short command does not need | [`entry!`] |
//! | wait for it and read what it used | [`wait`] |
//! | count events in it | [`perf`] |
//! | learn which of the calls and modes work here | [`support`] |
//! | learn what a kernel answers to any arguments | [`numbers`] |
//! | turn an error into cause, limit and mend | [`cause`] |
//!
//! Nothing here reads a file or keeps state (but for what [`inherited`] saw before `main`): facts about
//! the machine come in as arguments.
#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

pub mod advice;
pub mod affinity;
#[expect(unsafe_code, reason = "a buffer owns a mapping and lends it as a slice")]
pub mod buffer;
pub mod call;
pub mod cause;
pub mod clock;
mod entry;
pub mod error;
#[expect(unsafe_code, reason = "a child that has become no other program can only be made unsafely")]
pub mod fork;
#[expect(unsafe_code, reason = "a guard begins and works between fork and exec")]
pub mod guard;
pub mod huge;
#[expect(unsafe_code, reason = "a look at the process before the runtime changes it")]
pub mod inherited;
pub mod mempolicy;
#[expect(unsafe_code, reason = "system calls with any arguments")]
pub mod numbers;
pub mod pages;
pub mod perf;
#[expect(unsafe_code, reason = "the system calls themselves")]
mod raw;
pub mod setup;
#[expect(unsafe_code, reason = "a mapping that is unmapped when it is dropped")]
pub mod shared;
pub mod support;
pub mod wait;

pub use advice::Advice;
pub use buffer::{HugePageSize, NodeBuffer, PageKind};
pub use call::{Call, PolicyQuery, Task};
pub use cause::{Circumstances, Container, Explanation, Limit, SeccompMode, explain};
pub use entry::prepare;
pub use error::{CallError, Errno, ReadError};
pub use guard::Guarded;
pub use huge::TransparentHuge;
pub use mempolicy::BindOptions;
pub use pages::{PageCounts, PageLocation, PageScope};
pub use setup::{Setup, StartError};
pub use support::{Availability, Support};
pub use wait::{Finished, Running, Usage};
