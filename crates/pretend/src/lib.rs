//! A hypothetical machine for a program that runs on this kernel, at native speed and without root.
//!
//! Files, then a namespace, then the program:
//!
//! 1. `nodewise_source::written::picture` makes the files that the machine's kernel would show: a [`Picture`]. Those of a
//!    capture are the machine's own.
//! 2. [`enter`] moves the calling process into a namespace of mounts, as an ordinary user into a user namespace as well, and
//!    mounts the picture over the kernel's own files.
//! 3. [`answer_calls`] starts a supervisor beside the process, which answers its calls about memory policies and CPUs from
//!    the allocator model.
//! 4. The caller becomes the program. Exit code and signals are the program's own, since no process is in between.
//!
//! [`REAL`] lists what stays real.
//!
//! # Modules
//!
//! - `namespace.rs` namespaces, and the picture mounted in them
//! - `devices.rs` devices of this system, near no node
//! - `supervise.rs` answers to calls
//! - `supervise/call.rs` a request: its arguments, the program's memory
//! - `supervise/world.rs` the machine, and the threads and processes on it
//! - `supervise/tasks.rs` who inherits what from whom
//! - `supervise/pages.rs` policies and nodes of memory, by address or place in a file
//! - `supervise/space.rs` the memory of a process: mappings, and nodes for the pages that are resident
//! - `supervise/policies.rs`, `supervise/moves.rs`, `supervise/cpus.rs` the calls
//! - `supervise/replaced.rs` calls that replace, move or give back memory; `supervise/remap.rs` where memory has moved
//! - `supervise/files.rs` `/proc/PID/status`, `stat` and `numa_maps`
//! - `supervise/node_files.rs` counters and free memory of nodes
//! - `facts.rs` which facts a program sees of the machine, and which of this one
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod devices;
mod facts;
mod namespace;
mod supervise;

pub use facts::{FAKED, Fact, REAL};
pub use namespace::{PretendError, enter};
pub use nodewise_source::written::picture::Picture;
pub use nodewise_syscall::notify::NotifyError as CallsError;
pub use supervise::answer_calls;
