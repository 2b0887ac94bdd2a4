//! Text for people, as wide as the terminal and no wider.
//!
//! [`show`](show::show) writes everything that is known about a machine, [`overview`](overview::overview)
//! the few lines that `nodewise` alone prints, [`explain`] where a placement's pages come from,
//! [`tune`](tune::tune) what an experiment showed, [`walk`](walk::walk) what becomes of a request for
//! memory, [`zones`] zones and fallback orders, [`latency`](latency::latency) what each way to memory
//! costs. Lines and their wrapping are in `line`, tables in
//! `table`; every text that was read from outside passes [`nodewise_machine::printable`] on its
//! way into a line.

pub mod acpi;
pub mod advice;
pub mod balance;
pub mod bandwidth;
pub mod c2c;
pub mod check;
pub mod compare;
mod cost;
pub mod diff;
pub mod doctor;
pub mod emulation;
pub mod explain;
pub mod figures;
pub mod file;
pub mod fleet;
pub mod hugepages;
pub mod io;
pub mod latency;
pub(crate) mod line;
pub mod line_counts;
pub mod loaded;
pub mod maps;
pub(crate) mod matrix;
pub mod migrate;
pub mod overview;
pub mod perftest;
mod process_memory;
pub mod ranking;
pub mod rules;
pub mod shm;
pub mod show;
pub mod stat;
mod survey;
pub mod sweep;
pub(crate) mod table;
pub mod tap;
pub mod timeline;
pub mod tune;
pub mod walk;
pub mod zones;

pub use acpi::acpi;
pub use advice::advice;
pub use bandwidth::bandwidth;
pub use c2c::c2c;
pub use diff::diff;
pub use doctor::doctor;
pub use figures::tool_figures;
pub use file::file;
pub use fleet::fleet;
pub use io::io;
pub use latency::latency;
pub use line_counts::{line_counts, local_verdict};
pub use loaded::loaded;
pub use overview::{Hint, overview};
pub use perftest::perftest;
pub use ranking::ranking;
pub use show::show;
pub use stat::stat;
pub use tune::{Extent, first, nothing_works, tune};
