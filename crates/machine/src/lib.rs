//! The words of NUMA, and the machine they describe.
//!
//! Everything else in nodewise speaks through these types: sources fill a [`Machine`], models and
//! measurements read it, views show it. Nothing in this crate opens a file, calls the kernel, starts
//! a thread or prints; a `Machine` can be built by hand in a test, and two of them can be compared
//! with `==`.
//!
//! # Modules
//!
//! - `machine.rs` the `Machine`: the facts about its memory and processors; `query.rs` queries; `check.rs`
//!   what is wrong or unusual about it; `oddity.rs` an oddity in words
//! - `node.rs`, `cpu.rs`, `cpu_kind.rs` (CPUs of different speed), `cache.rs`, `device.rs`, `settings.rs` its
//!   parts: nodes with their memory and the firmware's facts about them, CPUs, caches, devices, the kernel
//!   and how it is set
//! - `link.rs` links of PCI Express; `product.rs` the model of the machine and its firmware
//! - `id.rs` the numbers that name things; `matrix.rs` a value per pair of nodes, addressed by id;
//!   `distance.rs` distances where the kernel gives none
//! - `set.rs` sets of nodes and CPUs; in `set/` each of their text forms: lists (`0-3,8`), masks, words of a
//!   system call
//! - `expr.rs` what a user types to name nodes or CPUs: `+0`, `!1`, `all`, `netdev:eth0`
//! - `spec.rs` a machine in one line: `4x(12c2t 128G)`; in `spec/` text to `Spec`, `Spec` to `Machine`
//! - `firmware.rs` tables of the firmware as data: in `firmware/` how structures are declared
//!   (`firmware/layout.rs`), a file per table, what can be wrong with one (`firmware/finding.rs`), and what a
//!   device tree says
//! - `policy.rs` memory policies in the kernel's words
//! - `placement.rs` where a program may run and where its memory comes from; in `placement/` its name and the
//!   command lines that apply it
//! - `conditions.rs` the circumstances of a measurement; `counters.rs` how allocations on a node went
//! - `duration.rs` times as people type them
//! - `mapping.rs` the mappings of a process
//! - `severity.rs` how bad a finding is
//! - `size.rs` which of a node's sizes is right; `memory_map.rs` where memory lies
//! - `memory_slot.rs` slots for memory modules; in `memory_slot/` the socket and channel that their names say
//!   (`memory_slot/locator.rs`, `memory_slot/locator/place.rs`), what is unusual about them
//!   (`memory_slot/check.rs`), and the theoretical peak of their bandwidth (`memory_slot/peak.rs`)
//! - `nearest.rs` the word that was probably meant by a mistyped one; `order.rs` sorts, and maps and sets in order,
//!   that add little code for each type
//! - `units.rs` sizes and how they are written; `printable.rs` the one place that makes foreign text fit for
//!   a terminal, and errors of the system in words; `plural.rs` words that agree with a number; `fnv.rs` a
//!   hash of bytes
#![forbid(unsafe_code)]

pub mod cache;
pub mod check;
pub mod conditions;
pub mod counters;
pub mod cpu;
pub mod cpu_kind;
pub mod device;
pub mod distance;
pub mod duration;
pub mod expr;
pub mod firmware;
pub mod fnv;
pub mod id;
pub mod link;
pub mod machine;
pub mod mapping;
pub mod matrix;
pub mod memory_map;
pub mod memory_slot;
pub mod nearest;
pub mod node;
pub mod oddity;
pub mod order;
pub mod placement;
pub mod plural;
pub mod policy;
pub mod printable;
pub mod product;
pub mod query;
pub mod set;
pub mod settings;
pub mod severity;
pub mod size;
pub mod spec;
pub mod units;

pub use cache::{Cache, CacheKind};
pub use counters::NodeCounters;
pub use cpu::{CoreType, Cpu, CpuModel};
pub use cpu_kind::CpuKind;
pub use device::{DaxMemory, Device, DeviceClass, DeviceName, DeviceRef, PciAddress};
pub use id::{BookId, ClusterId, CoreId, CpuId, DieId, DrawerId, NodeId, PackageId, Pid, TierId};
pub use link::PciLink;
pub use machine::{Machine, Origin};
pub use matrix::NodeMatrix;
pub use memory_map::{MemoryMap, MemoryRange};
pub use memory_slot::{MemoryModule, MemorySlot, MemorySlots, SlotPlace, SlotState};
pub use node::{Access, AccessClass, HugePool, MeminfoField, MeminfoValue, Node, Tier};
pub use oddity::{Oddity, OddityKind};
pub use policy::{MemPolicy, ModeFlags, PolicyMode};
pub use product::Product;
pub use set::{CpuSet, IdSet, NodeSet};
pub use settings::{KernelRelease, Settings};
pub use severity::Severity;
pub use units::Bytes;
