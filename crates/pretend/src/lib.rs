//! A hypothetical machine for a program that runs on this kernel, at native speed and without root.
//!
//! Files, then a namespace, then the program:
//!
//! 1. `nodewise_source::written::picture` makes the files that the machine's kernel would show: a [`Picture`]. Those of a
//!    capture are the machine's own.
//! 2. [`enter`] moves the calling process into a namespace of mounts, as an ordinary user into a user namespace as well, and
//!    mounts the picture over the kernel's own files.
//! 3. The caller becomes the program. Exit code and signals are the program's own, since no process is in between.
//!
//! Files are all that a namespace changes. System calls (memory policies, affinity) go to the real kernel; a supervisor
//! that answers them starts between the second step and the third. [`REAL`] lists what stays real.
//!
//! # Modules
//!
//! - `namespace.rs` namespaces, and the picture mounted in them
//! - `facts.rs` which facts a program sees of the machine, and which of this one
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod facts;
mod namespace;

pub use facts::{FAKED, Fact, REAL};
pub use namespace::{PretendError, enter};
pub use nodewise_source::written::picture::Picture;
