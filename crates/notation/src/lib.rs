//! The texts that name nodes and CPUs, read and written in one place.
//!
//! Three doors of nodewise read the same strings: `nodewise run`, the personality numactl, and the functions of
//! libnuma. This crate has the grammar; what a string can name on a machine stays with the caller, behind
//! [`string::Members`]. libnuma has neither a standard library nor an allocator, and must have no path to a panic,
//! so nothing here has: functions take bytes, return parts of them, and hand members to the caller one by one.
//!
//! # Modules
//!
//! Each reads one kind of text, and writes those that nodewise writes.
//!
//! - `number.rs` numbers as C's `strtoul` reads them, sizes, plain digits: `0x10`, `-1`, `64k`
//! - `list.rs` the kernel's lists: `0-3,8`, `0-9:2/4`
//! - `mask.rs` the kernel's masks: `ff,0000000f`
//! - `string.rs` node strings, which people type: `0,2-3`, `!1`, `+0`, `all`
//! - `device.rs` the devices inside them: `netdev:eth0`, `pci:21:00.0`
//! - `warning.rs` the warnings of libnuma, each with its number, format and arguments
//! - `mpol.rs` the kernel's numbers of policies and their flags: `MPOL_BIND` is 2
//!
//! # Faults
//!
//! A fault is a value with the place in the text. What is printed of it is the caller's: numactl and libnuma print
//! the warning of the originals, nodewise a column and what would be right there.
//!
//! Where the original tools force two meanings, the difference is a parameter with its reason: [`number::Base`],
//! [`string::Grammar`], [`string::Others`], [`device::Dots`], [`mask::Width`]. `docs/compat.md` lists them.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod device;
pub mod list;
pub mod mask;
pub mod mpol;
pub mod number;
pub mod string;
pub mod warning;
