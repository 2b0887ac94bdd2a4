//! Device trees in their flattened form (DTB), as far as they speak of nodes.
//!
//! # Source
//! Devicetree Specification 0.4, chapter 5. `/sys/firmware/fdt` is the one that the kernel booted with
//! (Linux 4.2, open to root only).

mod blob;
mod file;
mod numa;

pub use blob::{Blob, DtbError, Event};
pub use file::{TreeError, from_path};
pub use numa::read;

/// The first bytes of a device tree.
pub const MAGIC: [u8; 4] = [0xd0, 0x0d, 0xfe, 0xed];
/// The largest file: a tree of a large server has some hundred KiB.
pub const MOST_BYTES: u64 = 16 << 20;
