//! Lints of clippy while a program is compiled: each crate is read once for both, which costs a fresh clone two
//! minutes less than one after the other.

use std::process::Command;

/// The separator of the words in [`WORDS`]; cargo-clippy and the compiler of clippy agree on it.
const BETWEEN: &str = "__CLIPPY_HACKERY__";
const WORDS: &str = "CLIPPY_ARGS";

/// The variable that names cargo's compiler of the crates of a workspace.
const COMPILER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// Has a command of cargo compile our crates by clippy, for which a warning is an error. Programs that it has
/// compiled are not those of another command: what cargo keeps of both lies side by side.
pub fn while_compiling(command: &mut Command) -> &mut Command {
    command.env(COMPILER, "clippy-driver").env(WORDS, format!("-Dwarnings{BETWEEN}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::Stdio;

    use super::*;

    /// Compiles a crate as cargo would: whether that succeeded, and the messages.
    fn said_of(text: &str) -> (bool, String) {
        let mut cargo = Command::new("cargo");
        let given = |name: &str, cargo: &Command| -> String {
            let mut variables = cargo.get_envs();
            let found = variables.find_map(|(key, value)| value.filter(|_| key == name));
            found.expect("cargo is given it").to_string_lossy().into_owned()
        };
        while_compiling(&mut cargo);
        let mut compiler = Command::new(given(COMPILER, &cargo));
        compiler.env(WORDS, given(WORDS, &cargo)).args([
            "rustc",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
        ]);
        let folder = tempfile::tempdir().unwrap();
        compiler.arg("--out-dir").arg(folder.path()).arg("-");
        let mut child = compiler.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    #[test]
    fn a_lint_of_clippy_is_an_error_and_other_code_is_compiled() {
        let (compiled, said) = said_of("pub fn says_nothing(text: &str) -> bool { text.len() == 0 }");
        assert!(!compiled && said.contains("len_zero"), "{said}");
        let (compiled, said) = said_of("pub fn says_nothing(text: &str) -> bool { text.is_empty() }");
        assert!(compiled, "{said}");
    }
}
