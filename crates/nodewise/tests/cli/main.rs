//! The built command as its users meet it: what it prints, where, how wide, and how it ends.
//!
//! `SNAPSHOTS=overwrite` writes the texts in `golden/` again; read them before you keep them.
#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]
#![expect(clippy::print_stderr, reason = "a test that cannot run says why")]

mod acpi;
mod advise;
mod balance;
mod bandwidth;
mod capture;
mod compare;
mod complete;
mod diff;
mod doctor;
mod emit;
mod emulation;
mod explain;
mod export;
mod figures;
mod filter;
mod fleet;
mod help;
mod import;
mod interrupt;
mod io;
mod lab;
mod latency;
mod limits;
mod loaded;
mod maps;
mod memory;
mod nodewise;
mod outputs;
mod picture;
mod pretend;
mod record;
mod report;
mod run;
mod running;
mod sandbox;
mod show;
mod simulate;
mod stat;
mod streams;
mod terminal;
mod top;
mod tune;
mod units;
mod workload;
mod wrong;
