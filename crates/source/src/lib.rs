//! Where machines come from, and what the kernel says of processes and the system.
//!
//! Everything that reads `/sys` and `/proc` lives here, behind [`tree::Tree`], which is the running
//! system, a capture or a map in memory. Reading never prints and changes nothing; what is broken in
//! a file becomes an oddity of the machine with path, line and what was expected, and the rest still
//! comes.
//!
//! | to find | look in |
//! |---|---|
//! | the files of a machine | [`tree`] |
//! | the format of one of the kernel's files | [`parse`] |
//! | files to [`Machine`](nodewise_machine::Machine) | [`sysfs`] |
//! | ACPI tables | [`acpi`] |
//! | device trees | [`devicetree`] |
//! | a machine as JSON | [`machine_file`] |
//! | what `--machine` accepts | [`input`] |
//! | writing a machine's files down | [`capture`] |
//! | processes and where their memory is | [`process`] |
//! | the placement that is in force in them | [`mod@in_force`] |
//! | what this process may do, and what contains it | [`own`] |
//! | how the kernel was started, and what it wrote then | [`mod@boot`] |
//! | load, stalls, clocks, counters, CPU model | [`system`] |
//! | how hot the CPUs are | [`thermal`] |
//! | the node of a device | [`devices`] |
//! | memory that can still be had | [`spare`] |
//! | one fact, for programs in a hurry | [`facts`] |
//! | one file read and parsed | [`mod@file`] |
//! | the files of a machine that has none | [`written`] |
//! | paths that other crates name | [`paths`] |
//! | how large a machine may be | [`limits`] |
#![forbid(unsafe_code)]

pub mod acpi;
pub mod boot;
pub mod capture;
pub mod devices;
pub mod devicetree;
pub mod facts;
pub mod file;
pub mod in_force;
pub mod input;
pub mod limits;
pub mod machine_file;
pub mod own;
pub mod parse;
pub mod paths;
pub mod process;
pub mod spare;
pub mod sysfs;
pub mod system;
pub mod thermal;
pub mod tree;
pub mod written;

pub use sysfs::Detail;
