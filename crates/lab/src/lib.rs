//! A machine you can boot: [`Machine`](nodewise_machine::Machine) to a QEMU guest with a real kernel.
//!
//! The engine is virtme-ng: the guest sees the host's files, read-only, and boots a kernel of
//! Debian's in some seconds, emulated, without any privilege on the host.
//!
//! | to find | look in |
//! |---|---|
//! | the nodes a guest gets, and what differs from the machine | [`layout`] |
//! | how QEMU is told | [`qemu`] |
//! | which kernel is booted | [`kernel`] |
//! | where fetched parts are kept | [`cache`] |
//! | which programs are needed | [`tools`] |
//! | all of these found at once | [`lab`] |
//! | running a command in a guest | [`guest`] |
//! | what the guest does around the command | [`script`] |
//! | what a failed guest had to say | [`console`] |
#![forbid(unsafe_code)]

pub mod cache;
pub mod console;
mod engine;
pub mod guest;
pub mod kernel;
pub mod lab;
pub mod layout;
pub mod qemu;
pub mod script;
pub mod tools;

pub use cache::Cache;
pub use guest::{Guest, GuestError, Output, Threads};
pub use kernel::{Kernel, KernelChoice};
pub use lab::{Lab, LabError};
pub use layout::{Layout, Limits};
pub use tools::Tools;
