//! The library as `cargo xtask libnuma` builds it, and programs in C that use it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The programs that print the same with both libraries.
pub const PROGRAMS: [&str; 9] =
    ["bitmask", "nodes", "cpus", "policy", "memory", "parse", "errors", "migrate", "version1"];

/// Whether a test that cannot run has failed.
fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// Whether a program can be started here.
pub fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    assert!(found || !is_ci(), "this test needs {program}: cargo xtask lab-setup");
    if !found {
        println!("skipped: {program} is missing (cargo xtask lab-setup)");
    }
    found
}

/// Whether Debian's library and its headers are here, to compare with.
pub fn has_original() -> bool {
    let found = Path::new("/usr/include/numa.h").exists();
    assert!(found || !is_ci(), "this test needs libnuma-dev: cargo xtask lab-setup");
    if !found {
        println!("skipped: libnuma-dev is missing (cargo xtask lab-setup)");
    }
    found
}

/// Cargo with the compiler that it has by itself: the tests' own may look for lints besides.
pub fn cargo() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.env_remove("RUSTC_WORKSPACE_WRAPPER");
    command
}

/// Builds the library into a folder; an error is what the build said.
pub fn build(arch: &str) -> Result<PathBuf, String> {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libnuma").join(arch);
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "xtask", "--", "libnuma", "--arch", arch, "--out"]);
    let output = command.arg(&out).output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(out) } else { Err(text(&output)) }
}

/// The library for this machine, built once; `None` without a compiler.
pub fn library() -> Option<&'static Path> {
    static LIBRARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build =
        || has("gcc").then(|| build(std::env::consts::ARCH).expect("the library is built and compared"));
    LIBRARY.get_or_init(build).as_deref()
}

/// Returns the output of a program, both streams.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command that must succeed, and returns what it wrote.
pub fn success(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output));
    text(&output)
}

/// The source of a program.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c")
}

/// Whose headers a program is compiled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    Ours,
    Debians,
}

/// Compiles a program as C or C++, to be run with either library.
pub fn compile(name: &str, headers: Headers, compiler: &str, flags: &[&str]) -> PathBuf {
    let library = library().expect("only asked for where there is a compiler");
    let words: String = flags.iter().copied().filter(|flag| !flag.starts_with("-I")).collect();
    let file: String = format!("{name}-{headers:?}-{compiler}{words}").replace(['/', ' ', '+'], "x");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-Werror", "-O1", "-g"]).args(flags);
    match compiler {
        "g++" => command.args(["-std=gnu++17", "-x", "c++"]),
        _ => command.arg("-std=gnu11"),
    };
    if headers == Headers::Ours {
        command.arg("-I").arg(library.join("include"));
    }
    command.arg(source(name)).args(["-x", "none", "-o"]).arg(&program);
    success(command.arg("-L").arg(library.join("lib")).args(["-lnuma", "-ldl", "-pthread"]));
    program
}
