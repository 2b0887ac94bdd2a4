//! The firmware's facts about nodes: the tables of ACPI and the nodes of a device tree, as data.
//!
//! Each structure is declared once, by [`layout`]: from that come its Rust type, reading, writing, and
//! the list of its fields with their offsets. Fields are named as the specification names them. Walking
//! a table and what can be wrong with one is the business of the crate `source`; what the kernel
//! makes of it that of `model`.
//!
//! # Source
//! ACPI 6.5, section 5.2 (SRAT, SLIT, HMAT, MSCT, MADT); CXL 3.1, section 9.18.1 (CEDT); Devicetree
//! Specification 0.4 and its NUMA binding.

pub mod cedt;
pub mod devicetree;
pub mod finding;
pub mod hmat;
pub mod layout;
pub mod madt;
pub mod msct;
pub mod slit;
pub mod srat;
pub mod table;

pub use cedt::{Cedt, CedtEntry};
pub use finding::{FirmwareFinding, Rule};
pub use hmat::{Hmat, HmatEntry};
pub use layout::{Entries, Field, Layout, Value};
pub use madt::{Madt, MadtEntry};
pub use msct::{Msct, MsctEntry};
pub use slit::Slit;
pub use srat::{Srat, SratEntry};
pub use table::{Entry, Other, Subtables, Table, TableHeader, Tables};
