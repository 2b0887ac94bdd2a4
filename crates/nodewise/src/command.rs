//! One file per verb: what was typed, to the libraries, to a view, to an exit code.

pub mod acpi;
pub mod bandwidth;
pub mod c2c;
pub mod capture;
pub mod compare;
pub mod emulation;
pub mod explain;
pub mod io;
pub mod lab;
pub mod latency;
pub mod links;
pub mod run;
pub mod show;
pub mod simulate;
pub mod tune;
pub mod workload;
pub mod zones;
