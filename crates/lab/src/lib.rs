//! A machine you can boot: [`Machine`](nodewise_machine::Machine) to a QEMU guest with a real kernel.
//!
//! A guest sees the host's files, read-only, through 9p, and boots a kernel of Debian's in some seconds, emulated, without
//! any privilege on the host. Guests of arm64 see nothing of the host and run static programs that they are given.
//!
//! # Modules
//!
//! - `layout.rs` from a machine to the nodes of a guest, with every deviation in words; in `layout/` which
//!   nodes, their CPUs, memory, distances (SLIT) and accesses (HMAT)
//! - `qemu.rs` from a layout to QEMU's arguments
//! - `cache.rs`, `kernel.rs`, `tools.rs` where the fetched parts are, which kernel, which programs
//! - `lab.rs` all of these found at once, also for tests
//! - `accelerator.rs` KVM or TCG: which engine runs a guest, and whether KVM does
//! - `guest.rs` a guest and a command in it; `engine.rs` one boot and its end; `stage.rs` the stage of a start; `console.rs`
//!   the messages of a failed guest
//! - `initramfs.rs` the first file system, which its kernel unpacks into memory; `modules.rs` what it needs of the kernel's
//!   modules; `init_script.rs` the first program; `script.rs` what runs around the command
//! - `counting.rs` counting the cache lines that a command moves: `counted.rs` a guest whose command is counted
//! - `arch.rs` the architectures of guests; for tests (the feature `arm64`): `arm64.rs` guests of arm64, which see nothing of the
//!   host: their first program is `init.rs`, built as `lab-init`
#![forbid(unsafe_code)]

pub mod accelerator;
pub mod arch;
#[cfg(any(test, feature = "arm64"))]
pub mod arm64;
pub mod cache;
pub mod console;
pub mod counted;
pub mod counting;
mod engine;
pub mod guest;
pub mod init_script;
pub mod initramfs;
pub mod kernel;
pub mod lab;
pub mod layout;
pub mod modules;
pub mod qemu;
pub mod script;
pub mod stage;
pub mod tools;

pub use accelerator::{Engine, EngineChoice, EngineTaken, Engines};
pub use arch::Arch;
pub use cache::Cache;
pub use counted::Counted;
pub use counting::{Counting, Counts, PrivateCache};
pub use guest::{BootEvent, Guest, GuestError, Output, Threads};
pub use kernel::{Kernel, KernelChoice, TESTED_VERSIONS};
pub use lab::{Lab, LabError};
pub use layout::{Layout, Limits};
pub use nodewise_counter::mark;
pub use qemu::FirmwareNodes;
pub use stage::Stage;
pub use tools::Tools;
