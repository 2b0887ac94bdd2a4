//! The example project of docs/counting.md: `make check` with the library of this repository, whose functions place memory as
//! their names say, and a program that must fail.

use std::path::Path;
use std::process::Command;

use libtest_mimic::Failed;
use nodewise_lab::{KernelChoice, Lab};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/locality");
const MARKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../counter/include");

/// All of its runs give the verdict that the project demands.
pub fn example_holds() -> Result<(), Failed> {
    if let Err(line) = Lab::for_test(&KernelChoice::default()) {
        eprintln!("{line}");
        return Ok(());
    }
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libnuma").join(std::env::consts::ARCH);
    let mut build = Command::new(env!("CARGO"));
    // The tests' own compiler may be one that looks for lints.
    build.env_remove("RUSTC_WORKSPACE_WRAPPER");
    build.args([
        "run",
        "--quiet",
        "--package",
        "xtask",
        "--",
        "libnuma",
        "--arch",
        std::env::consts::ARCH,
        "--out",
    ]);
    success(build.arg(&library))?;
    let folder = tempfile::Builder::new().prefix("locality").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    for file in ["Makefile", "sum.c"] {
        std::fs::copy(Path::new(EXAMPLE).join(file), folder.path().join(file))?;
    }
    let mut check = Command::new("make");
    check.current_dir(folder.path()).env_remove("MAKEFLAGS").arg("check");
    check.arg(format!("NODEWISE={}", env!("CARGO_BIN_EXE_nodewise")));
    check.arg(format!("CPPFLAGS=-I{MARKS} -I{}/include", library.display()));
    let folder_of_library = library.join("lib");
    check.arg(format!("LDFLAGS=-L{0} -Wl,-rpath,{0}", folder_of_library.display()));
    let said = success(&mut check)?;
    let demanded = said.lines().filter(|line| line.contains(" of the cache lines read are local: "));
    let verdicts: Vec<&str> = demanded.collect();
    let half = |line: &str| {
        line.starts_with("nodewise: anonymous: 50.") || line.starts_with("nodewise: anonymous: 49.")
    };
    let near = |line: &str| {
        line.starts_with("nodewise: anonymous: 99.") || line.starts_with("nodewise: anonymous: 100.")
    };
    match verdicts[..] {
        [local, onnode, interleaved, careless]
            if near(local) && near(onnode) && half(interleaved) && half(careless) =>
        {
            Ok(())
        }
        _ => Err(format!("{verdicts:#?}\n{said}").into()),
    }
}

/// Both streams of a command that must succeed.
fn success(command: &mut Command) -> Result<String, Failed> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}: cargo xtask lab-setup"))?;
    let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    if output.status.success() {
        Ok(text)
    } else {
        Err(format!("{command:?}: {}\n{text}", output.status).into())
    }
}
