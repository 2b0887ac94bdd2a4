//! The needs of the compiler to build programs for guests of arm64.

use crate::program;

/// The target of programs for guests of arm64.
const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Adds the target to the toolchain unless it is there. The toolchain is the user's and may come from
/// elsewhere than rustup: then there is a line, and the tests that need the target say that they are
/// skipped.
pub fn install() {
    match program::add_target(TARGET) {
        Ok(false) => println!("compiler: {TARGET} is there"),
        Ok(true) => println!("compiler: {TARGET} is there now"),
        Err(error) => println!("compiler: no {TARGET}, so the guests of arm64 are left out: {error:#}"),
    }
}
