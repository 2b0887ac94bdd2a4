//! What the compiler needs to build programs for guests of arm64.

use std::path::Path;
use std::process::Command;

use crate::program;

/// The target of programs for guests of arm64.
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Adds the target to the toolchain unless it is there. The toolchain is the user's and may come from
/// elsewhere than rustup: then there is a line, and the tests that need the target say that they are
/// skipped.
pub fn install() {
    let folder = program::read(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]));
    if folder.is_ok_and(|folder| Path::new(folder.trim()).exists()) {
        println!("compiler: {TARGET} is there");
        return;
    }
    match program::quiet(Command::new("rustup").args(["target", "add", TARGET])) {
        Ok(()) => println!("compiler: {TARGET} is there now"),
        Err(error) => println!("compiler: no {TARGET}, so the guests of arm64 are left out: {error:#}"),
    }
}
