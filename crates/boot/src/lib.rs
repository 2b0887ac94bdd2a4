//! Boot files: the parameters of the next start, changed so that a crash leaves the old file or the new
//! one, and so that the change can be taken back to the byte.
//!
//! # Modules
//!
//! - `line.rs` a kernel command line, and changing some of its words; `policy.rs` the default policy of
//!   Raspberry Pi kernels; `pool.rs` pools of huge pages on it, `tmpfiles.rs` those that systemd sets
//! - `cmdline_txt.rs`, `grub.rs`, `entry.rs`, `extlinux.rs`, `uboot_env.rs` the files that hold one;
//!   `grub/shell.rs` assignments in the shell's language; `loader.rs` which of them a system has, and which
//!   command belongs to it; `kernels.rs` the kernels that it has, with what they were built with
//! - `plan.rs` what is to be changed, and what can be undone; `subject.rs` by which command; `diff.rs` how it is shown
//! - `drop_in.rs` the placement of a service of systemd
//! - `store.rs` writing so that a file is the old or the new one at every moment, backups, restoring;
//!   `stamp.rs` the moment in a backup's name; `root.rs` paths that stay inside a folder
//! - `eeprom.rs` the EEPROM of a Raspberry Pi, through its own program
//! - `error.rs` why a file is left alone, and what to do by hand
#![forbid(unsafe_code)]

pub mod cmdline_txt;
pub mod diff;
pub mod drop_in;
pub mod eeprom;
pub mod entry;
mod error;
pub mod extlinux;
pub mod grub;
pub mod kernels;
pub mod line;
pub mod loader;
pub mod plan;
pub mod policy;
pub mod pool;
pub mod root;
mod stamp;
pub mod store;
mod subject;
pub mod tmpfiles;
pub mod uboot_env;

#[cfg(test)]
mod tests;

pub use error::{BootError, Refusal};
pub use line::{Change, Policy};
pub use plan::{Edit, Plan};
pub use root::Root;
pub use stamp::Stamp;
pub use subject::Subject;
