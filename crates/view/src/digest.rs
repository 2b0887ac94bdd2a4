//! Facts that a reader wants to know, worked out once for every form in which they are shown.
//!
//! Pure functions from a [`Machine`](nodewise_machine::Machine) or a
//! [`Study`](nodewise_experiment::study::Study) to small values; no words about layout here, and nothing
//! that was not said or measured.

pub mod access;
pub mod acpi;
pub mod advice;
pub mod bandwidth;
pub mod c2c;
pub mod cache;
pub mod change;
pub mod compare;
pub mod conformance;
pub mod cost;
pub mod counts;
pub mod device;
pub mod diff;
pub mod distance;
pub mod doctor;
pub mod emulation;
pub mod estimate;
pub mod evidence;
pub mod example;
pub mod figures;
pub mod file;
pub mod fleet;
pub mod hugepages;
pub mod io;
pub mod latency;
pub mod line_counts;
pub mod loaded;
pub mod maps;
pub mod matrix;
pub mod memory_slot;
pub mod migrate;
pub mod node;
pub mod oddity;
pub mod perftest;
pub mod placements;
pub mod process_memory;
pub mod provenance;
pub mod published;
pub mod ranking;
pub mod running;
pub mod shm;
pub mod study;
pub mod survey;
pub mod sweep;
pub mod timeline;
pub mod walk;
pub mod why;
pub mod zones;

pub use cache::CacheLevel;
pub use counts::Counts;
pub use device::{DevicesOfNode, ShownDevice};
pub use distance::Distances;
pub use node::NodeKind;
