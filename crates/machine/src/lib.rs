//! The words of NUMA, and the machine they describe.
//!
//! Everything else in nodewise speaks through these types: sources fill a [`Machine`], models and
//! measurements read it, views show it. Nothing in this crate opens a file, calls the kernel, starts
//! a thread or prints; a `Machine` can be built by hand in a test, and two of them can be compared
//! with `==`.
//!
//! | to find | look in |
//! |---|---|
//! | ids that are not numbers | [`id`] |
//! | sets of nodes and CPUs, and every text form they have | [`set`] |
//! | what a user types to name nodes or CPUs | [`expr`] |
//! | values per pair of nodes | [`matrix`] |
//! | memory policies in the kernel's words | [`policy`] |
//! | where a program may run and where its memory comes from | [`placement`] |
//! | the circumstances of a measurement | [`conditions`] |
//! | sizes, times, rates and how they are written | [`units`], [`duration`] |
//! | the machine itself | [`machine`], [`node`], [`cpu`], [`cpu_kind`], [`cache`], [`device`], [`settings`] |
//! | questions asked of a machine | [`query`] |
//! | which of a node's sizes is right | [`size`] |
//! | where memory lies | [`memory_map`] |
//! | the tables of the firmware, as data | [`firmware`] |
//! | what is wrong or unusual about one | [`oddity`], [`check`] |
//! | a machine written in one line | [`spec`] |
//! | making hostile text fit for a terminal, errors of the system in words | [`printable`] |
//! | words that agree with a number | [`plural`] |
//! | a hash of bytes | [`fnv`] |
#![forbid(unsafe_code)]

pub mod cache;
pub mod check;
pub mod conditions;
pub mod cpu;
pub mod cpu_kind;
pub mod device;
pub mod distance;
pub mod duration;
pub mod expr;
pub mod firmware;
pub mod fnv;
pub mod id;
pub mod machine;
pub mod matrix;
pub mod memory_map;
pub mod node;
pub mod oddity;
pub mod placement;
pub mod plural;
pub mod policy;
pub mod printable;
pub mod query;
pub mod set;
pub mod settings;
pub mod size;
pub mod spec;
pub mod units;

pub use cache::{Cache, CacheKind};
pub use cpu::{CoreType, Cpu, CpuModel};
pub use cpu_kind::CpuKind;
pub use device::{DaxMemory, Device, DeviceClass, DeviceName, DeviceRef, PciAddress};
pub use id::{BookId, ClusterId, CoreId, CpuId, DieId, DrawerId, NodeId, PackageId, TierId};
pub use machine::{Machine, Origin};
pub use matrix::NodeMatrix;
pub use memory_map::{MemoryMap, MemoryRange};
pub use node::{Access, AccessClass, HugePool, MeminfoField, MeminfoValue, Node, Tier};
pub use oddity::{Oddity, OddityKind};
pub use policy::{MemPolicy, ModeFlags, PolicyMode};
pub use set::{CpuSet, IdSet, NodeSet};
pub use settings::{KernelRelease, Settings};
pub use units::Bytes;
