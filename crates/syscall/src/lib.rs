//! Memory policy, page placement and affinity calls, and what their errors mean.
//!
//! This is the crate that asks the kernel to do something. The calls are safe functions that take
//! the types of `nodewise_machine`; when one fails, the error keeps the call with its arguments as
//! data ([`CallError`]), and [`explain`] says what prevents it and what would mend it.
//!
//! Nothing here reads a file or keeps state (but for what [`inherited`] saw before `main`): facts about
//! the machine come in as arguments.
//!
//! # Modules
//!
//! - `mempolicy.rs`, `pages.rs`, `affinity.rs`, `advice.rs`, `huge.rs` the calls as safe functions: policies,
//!   where pages are and moving them, CPUs, advice, transparent huge pages
//! - `pagemap.rs` runs of pages that are present, in huge pages, or swapped out
//! - `arguments.rs` arguments of the calls, as data
//! - `raw.rs` the system calls, one function each, nothing clever; `call.rs` a call as data, and how it is
//!   written in a message
//! - `error.rs` error of a failed call; `cause.rs` its explanation: cause, limit and mend; in `cause/` a file
//!   per family of calls, and the facts that distinguish causes
//! - `clock.rs` monotonic time, behind a trait
//! - `perf.rs` events that are counted in a program and its children, or by a device
//! - `setup.rs` a placement for a program, prepared once and applied with nothing but system calls; in
//!   `setup/` starting a program under it
//! - `guard.rs` a program whose processes all end with this one; `guard/watch.rs` what its guard does between
//!   `fork(2)` and its end
//! - `shared.rs` memory that processes share: files of tmpfs, segments of System V
//! - `buffer.rs` memory on chosen nodes; `support.rs` which calls and modes work here, found out without
//!   changing anything
//! - `notify.rs` calls of a program answered by this process instead of the kernel; in `notify/` the filter, its
//!   listener and how that reaches this process
//! - `namespace.rs` namespaces of mounts and users
//! - `mark.rs` a no-op by which a guest speaks to its emulator
//! - `entry.rs` the start of a short command, without the runtime's
//! - for tests and the check of kernels (the feature `testing`): `fork.rs` a copy of this process, which shares pages until one of the
//!   two writes to them; `numbers.rs` calls with any arguments
//! - `wait.rs` waiting for a program and what it used; `inherited.rs` signals and streams as they were before
//!   the Rust runtime changed them
#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

pub mod advice;
pub mod affinity;
pub mod arguments;
#[expect(unsafe_code, reason = "a buffer owns a mapping and lends it as a slice")]
pub mod buffer;
pub mod call;
pub mod cause;
pub mod clock;
mod entry;
pub mod error;
#[cfg(any(test, feature = "testing"))]
#[expect(unsafe_code, reason = "a child that has become no other program can only be made unsafely")]
pub mod fork;
#[expect(unsafe_code, reason = "a guard begins and works between fork and exec")]
pub mod guard;
pub mod huge;
#[expect(unsafe_code, reason = "a look at the process before the runtime changes it")]
pub mod inherited;
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "an instruction that has no effect but on who watches it")
)]
pub mod mark;
pub mod mempolicy;
pub mod namespace;
#[expect(
    unsafe_code,
    reason = "a filter begins between fork and exec, and its listener reads other programs' memory"
)]
pub mod notify;
#[cfg(any(test, feature = "testing"))]
#[expect(unsafe_code, reason = "system calls with any arguments")]
pub mod numbers;
pub mod pagemap;
pub mod pages;
pub mod perf;
#[expect(unsafe_code, reason = "the system calls themselves")]
mod raw;
pub mod setup;
#[expect(unsafe_code, reason = "a mapping that is unmapped when it is dropped")]
pub mod shared;
pub mod support;
pub mod wait;

pub use arguments::{Advice, BindOptions, HugePageSize, PageKind, PageScope};
pub use buffer::NodeBuffer;
pub use call::{Call, PolicyQuery, Task};
pub use cause::{Circumstances, Container, Explanation, Limit, SeccompMode, explain};
pub use entry::prepare;
pub use error::{CallError, Errno, ReadError};
pub use guard::Guarded;
pub use nodewise_machine::placement::TransparentHuge;
pub use pages::{PageCounts, PageLocation};
pub use setup::{Setup, StartError};
pub use support::{Availability, Support};
pub use wait::{Finished, Running, Usage};
