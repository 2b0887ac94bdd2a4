//! What the kernel will do with memory, as pure functions of a machine.
//!
//! The rules are behaviour seen on real kernels (6.1 to 6.18), written down in words and implemented
//! from those words. Each function names the kernel function it mirrors and the releases it holds
//! for. Nothing here asks the running kernel.
//!
//! | to find | look in |
//! |---|---|
//! | in which order nodes are tried when one is full | [`zonelist`] |
//! | which of those a policy tries, and what happens at the end | [`policy`] |
#![forbid(unsafe_code)]

pub mod policy;
pub mod zonelist;

pub use policy::{Path, Start, WhenFull, path};
pub use zonelist::{BuiltAt, FallbackOrders};
