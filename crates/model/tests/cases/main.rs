//! Cases that were recorded on real kernels, each a test with the number and name of its record.
//!
//! Where nothing else is said, the kernel was 6.12 on x86-64, and 6.18 gave the same. The machine is
//! mostly the four-node server of [`server`].

mod calls;
mod counters;
mod errnos;
mod firmware;
mod full;
mod huge;
mod placement;
mod records;
mod scripts;
mod server;
mod zonelists;
