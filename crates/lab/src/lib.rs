//! A machine you can boot: [`Machine`](nodewise_machine::Machine) to a QEMU guest with a real kernel.
//!
//! The engine is virtme-ng: the guest sees the host's files, read-only, and boots a kernel of
//! Debian's in some seconds, emulated, without any privilege on the host. Guests of arm64 see nothing
//! of the host and run static programs that they are given.
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
//! | how far the start of a guest is | [`stage`] |
//! | x86-64 and arm64 | [`arch`] |
//! | guests of arm64 | [`arm64`], and the program `lab-init` |
//! | the first file system of a kernel | [`initramfs`] |
#![forbid(unsafe_code)]

pub mod arch;
pub mod arm64;
pub mod cache;
pub mod console;
mod engine;
pub mod guest;
pub mod initramfs;
pub mod kernel;
pub mod lab;
pub mod layout;
pub mod qemu;
pub mod script;
pub mod stage;
pub mod tools;

pub use arch::Arch;
pub use cache::Cache;
pub use guest::{Guest, GuestError, Output, Threads};
pub use kernel::{Kernel, KernelChoice};
pub use lab::{Lab, LabError};
pub use layout::{Layout, Limits};
pub use stage::Stage;
pub use tools::Tools;
