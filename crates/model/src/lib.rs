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
//! | what the kernel accepts as a policy, and with which error it refuses | [`policy::set`] |
//! | what it answers to calls whose arguments are any numbers | [`calls`] |
//! | where RAM is, and the zones that come of it | [`ram`], [`zones`], [`movable`] |
//! | how many pages of a zone stay free | [`watermark`], [`pcp`] |
//! | from which zone each page of a request comes, and the counters | [`memory`], [`walk`] |
//! | nodes that are reclaimed before others are tried | [`reclaim`] |
//! | pages that are there and move | [`migrate`], [`balancing`] |
//! | a program and its memory, page by page, under any sequence of calls | [`task`] |
//! | programs on a machine over time | [`simulate`] |
//! | how long reading it takes, and what bounds that | [`cost`] |
//! | pools of huge pages | [`hugetlb`] |
//! | memory tiers, and pages that are demoted | [`tier`], [`demotion`] |
//! | from the firmware's tables to a machine | [`firmware`] |
//! | distances where nobody says any | [`distance`] |
//! | emulated nodes | [`fake`] |
//! | the functions of the kernel that a request passes | [`trace`] |
//! | what is different in another release | [`release`] |
#![forbid(unsafe_code)]

pub mod balancing;
pub mod calls;
pub mod cost;
pub mod demotion;
pub mod errno;
pub mod fake;
pub mod firmware;
pub mod hugetlb;
pub mod memory;
pub mod migrate;
pub mod movable;
pub mod pcp;
pub mod policy;
pub mod ram;
pub mod reclaim;
pub mod release;
pub mod simulate;
pub mod task;
pub mod tier;
pub mod trace;
pub mod walk;
pub mod watermark;
pub mod zonelist;
pub mod zones;

pub use nodewise_machine::distance;

pub use cost::Costs;
pub use errno::Errno;
pub use memory::{Counters, Memory, Placed, ZoneState};
pub use policy::interleave::{Turns, Weights};
pub use policy::mask::Mask;
pub use policy::set::{Policy, Scope};
pub use policy::{Path, Start, WhenFull, path};
pub use release::{Change, Release};
pub use task::Task;
pub use watermark::Watermarks;
pub use zonelist::{BuiltAt, FallbackOrders};
pub use zones::{Zone, ZoneKind};
