//! Boot files: the parameters of the next start, changed so that a crash leaves the old file or the new
//! one, and so that the change can be taken back to the byte.
//!
//! | to find | look in |
//! |---|---|
//! | a kernel command line and its words | [`line`] |
//! | the files that hold one: `cmdline.txt`, GRUB's defaults, boot loader entries, those of U-Boot | [`cmdline_txt`], [`grub`], [`entry`], [`extlinux`], [`uboot_env`] |
//! | the default policy of Raspberry Pi kernels | [`policy`] |
//! | which of them a system has | [`loader`] |
//! | the kernels that it can start | [`kernels`] |
//! | what is to be changed, before it is | [`plan`] |
//! | writing, backups and taking back | [`store`] |
//! | paths that stay inside a folder | [`root`] |
//! | the EEPROM of a Raspberry Pi | [`eeprom`] |
//! | how a change is shown | [`diff`] |
#![forbid(unsafe_code)]

pub mod cmdline_txt;
pub mod diff;
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
pub mod root;
mod stamp;
pub mod store;
pub mod uboot_env;

pub use error::{BootError, Refusal};
pub use line::{Change, Policy};
pub use plan::{Edit, Plan};
pub use root::Root;
pub use stamp::Stamp;
