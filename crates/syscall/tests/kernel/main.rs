//! The calls against the kernel that runs the tests.
//!
//! Nothing is assumed about the machine: not its nodes, not the user, not that a call is allowed.
//! Where a sandbox takes a call away, the test checks that the error is explained as that, says so
//! in one line and goes on ([`here::unless_blocked`]).
#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]

mod affinity;
mod blocked;
mod buffer;
mod filter;
mod here;
mod mempolicy;
mod pagemap;
mod pages;
mod setup;
mod support;
mod wait;
