//! The library from outside: its symbols, and programs in C and C++ that run with it and with
//! Debian's.
#![expect(clippy::print_stdout, reason = "a test that cannot run says why")]

mod built;
mod linkage;
mod programs;
mod races;
mod sanitizer;

use std::path::Path;
use std::process::Command;

/// A command whose program gets our library.
fn with_ours(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", built::library().expect("it was compiled against it").join("lib"));
    command
}
