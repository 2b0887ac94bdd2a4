//! Predictions of the kernel's handling of memory, as pure functions of a machine.
//!
//! The rules are behaviour seen on real kernels (6.1 to 6.18), written down in words and implemented
//! from those words. Each function names the kernel function it mirrors and the releases it holds
//! for. Nothing here asks the running kernel.
//!
//! # Modules
//!
//! - `zonelist.rs` fallback orders of nodes, and the lists of zones that result
//! - `policy.rs` the way of a page under a policy; `policy/set.rs` what the kernel accepts, keeps and makes
//!   of it in another cpuset, `policy/mask.rs` the node mask of a call, `policy/interleave.rs` whose turn a
//!   page is, `policy/weights.rs` default weights, `policy/system.rs` programs that have set no policy
//! - `ram.rs` where RAM lies; `zones.rs` the zones of each node; `movable.rs` `kernelcore=` and
//!   `movablecore=`
//! - `watermark.rs` `min_free_kbytes`, watermarks, reserves; `pcp.rs` how far the lists of the CPUs blur them
//! - `memory.rs` zones with their free pages, and counters; `walk.rs` requests taken from them, as runs,
//!   `walk/route.rs` their ways through the zones, `walk/turn.rs` one node's turn, `walk/busy.rs` from where
//!   on the order of nodes is open; `caches.rs` room that the kernel makes when no page is free; `charge.rs` limits of
//!   control groups that a request meets; `oom.rs` the process that it kills where that is not enough; `reclaim.rs` nodes that are reclaimed before others are tried; `trace.rs`
//!   the functions of the kernel that a request passes
//! - `cost.rs` how long reading takes, and what bounds it; `ranking.rs` which placement is faster, by counts
//! - `simulate.rs` programs over time, with memory as runs: what can be done (`simulate/act.rs`) and its
//!   outcome (`simulate/step.rs`, `simulate/placement.rs`), programs and what they have mapped
//!   (`simulate/program.rs`, `simulate/extents.rs`, `simulate/holders.rs`, `simulate/family.rs`, `simulate/spans.rs`), runs whose pages come round in turns (`simulate/run.rs`,
//!   `simulate/cycle.rs`), mapping (`simulate/mapping.rs`), touching (`simulate/fault.rs`), calls
//!   (`simulate/calls.rs`), moving (`simulate/moving.rs`), page cache (`simulate/cache.rs`, and its uncertainty in
//!   `simulate/doubt.rs`), demotion, swap and the OOM killer
//!   (`simulate/reclaim.rs`), control groups (`simulate/group.rs`, `simulate/limits.rs`), threads
//!   (`simulate/thread.rs`), time that passes
//!   (`simulate/balance.rs`), pools (`simulate/pool.rs`); the same page by page in `simulate/tests/alike.rs`
//! - `migrate.rs` moving pages; `balancing.rs` pages that follow their CPU, `balancing/course.rs` how soon:
//!   `balancing/course/scan.rs` when they are marked, `balancing/course/touch.rs` when they are used,
//!   `balancing/course/turns.rs` scans that other threads interrupt, `balancing/course/promotion.rs` which of slower memory are promoted
//! - `thp.rs` transparent huge pages; `hugetlb.rs` pools of huge pages; `tier.rs` memory tiers; `demotion.rs` pages that go to slower ones
//! - `firmware.rs` from the firmware's tables to a machine, as the kernel does it; in `firmware/` the passes
//!   over the SRAT (`firmware/srat.rs`, `firmware/domains.rs`), CXL windows, ranges fitted to RAM
//!   (`firmware/blocks.rs`), SLIT (`firmware/distances.rs`), HMAT, CPUs by the MADT, device trees, room that
//!   is kept for what is missing (`firmware/spare.rs`), all together (`firmware/boot.rs`), the machine, and
//!   its notes (`firmware/note.rs`)
//! - `fake.rs` emulated nodes, `fake/spec.rs` the parameter, `fake/cut.rs` the pieces, `fake/outcome.rs` the
//!   nodes that result; `firmware/ranges.rs` ranges that a log names
//! - `oracle.rs` for tests and the check of kernels: a program and its memory page by page (`oracle/task.rs`, `oracle/task/page.rs`),
//!   pages that it moves (`oracle/task/moves.rs`), its threads (`oracle/task/threads.rs`), memory from pools
//!   (`oracle/task/pooled.rs`), a child that shares it (`oracle/task/family.rs`), and answers to calls with any arguments (`oracle/calls.rs`)
//! - `release.rs` what differs between releases; `errno.rs` refusals
#![forbid(unsafe_code)]

pub mod balancing;
pub mod caches;
pub mod charge;
pub mod cost;
pub mod demotion;
pub mod errno;
pub mod fake;
pub mod firmware;
pub mod hugetlb;
pub mod memory;
pub mod migrate;
pub mod movable;
pub mod oom;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
pub mod pcp;
pub mod policy;
pub mod ram;
pub mod ranking;
pub mod reclaim;
pub mod release;
pub mod simulate;
pub mod thp;
pub mod tier;
pub mod trace;
pub mod walk;
pub mod watermark;
pub mod zonelist;
pub mod zones;

pub use nodewise_machine::distance;

pub use caches::{Interval, Relief, Verdict};
pub use cost::Costs;
pub use errno::Errno;
pub use memory::{Memory, Placed, ZoneState};
pub use policy::interleave::{Turns, Weights};
pub use policy::mask::Mask;
pub use policy::set::{Policy, Scope};
pub use policy::{Path, Start, WhenFull, path};
pub use release::{Change, Release};
pub use watermark::Watermarks;
pub use zonelist::{BuiltAt, FallbackOrders};
pub use zones::{Zone, ZoneKind};
