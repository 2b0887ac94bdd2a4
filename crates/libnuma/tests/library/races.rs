//! Threads that ask at the same time.

use std::process::Command;

use crate::built::{Headers, compile, has, library, success};

/// Helgrind counts 2,675 errors in Debian's library (2.0.16) for a program like this.
#[test]
fn race_checkers_see_no_race() {
    let Some(library) = library() else { return };
    if !has("valgrind") {
        return;
    }
    let program = compile("threads", Headers::Ours, "gcc", &[]);
    for tool in ["helgrind", "drd", "memcheck"] {
        let mut command = Command::new("valgrind");
        command.arg(format!("--tool={tool}")).args(["--quiet", "--error-exitcode=9"]).arg(&program);
        // It may say that it does not know a new system call; what it finds is in its exit status.
        let text = success(command.env("LD_LIBRARY_PATH", library.join("lib")));
        assert!(text.starts_with("good\n"), "{tool}: {text}");
    }
}
