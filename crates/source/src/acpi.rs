//! ACPI tables: from bytes and dumps to [`Tables`](nodewise_machine::firmware::Tables), and back to
//! bytes.
//!
//! The layout of each structure is declared in [`nodewise_machine::firmware`]. This module has the walk from
//! one structure to the next, what can be wrong with it, and where tables are found. What is wrong
//! becomes a finding with table, offset and rule, and what can be read is still there.

mod decode;
pub mod dump;
mod encode;
pub mod files;
mod values;

pub use decode::decode;
pub use encode::encode;
