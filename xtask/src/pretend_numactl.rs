//! `cargo xtask pretend-numactl`: numactl's own tests on hypothetical machines, in `nodewise pretend`.
//!
//! Their source is Debian's source package of the release that runs here. It is under the GPL: it is fetched, built and run in the
//! target folder, and nothing of it becomes part of nodewise. They use the system's libnuma, numactl and numastat.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nodewise_lab::Cache;

use crate::libnuma::build::target_folder;
use crate::program;
use crate::setup::apt::PrivateApt;
use crate::setup::system;
use nodewise_lab::tools::find_program;

/// Two nodes, four nodes with two distances, and two with one without CPUs.
const MACHINES: [&str; 3] = [
    "2x(2c 2G); dist=21",
    "4x(2c 2G); dist=10,16,21,21/16,10,21,21/21,21,10,16/21,21,16,10",
    "2x(2c2t 8G) (4G); dist=10,21,17/21,10,28/17,28,10",
];

/// Programs in C with the other sources that they need.
const PROGRAMS: [(&str, &[&str]); 12] = [
    ("test/distance", &[]),
    ("test/mbind_mig_pages", &[]),
    ("test/migrate_pages", &[]),
    ("test/move_pages", &[]),
    ("test/mynode", &[]),
    ("test/node-parse", &["util.c"]),
    ("test/nodemap", &[]),
    ("test/pagesize", &[]),
    ("test/prefered", &["util.c"]),
    ("test/tbitmap", &["util.c"]),
    ("test/tshared", &[]),
    ("memhog", &["util.c"]),
];

/// Lines that run in the folder of the tests. realloc_test and randmap, which the package does not run either, are left out, as
/// is numademo, which measures.
const TESTS: [&str; 12] = [
    "./distance",
    "./move_pages",
    "sleep 100 & ./migrate_pages $!; code=$?; kill $!; exit $code",
    "./mbind_mig_pages",
    "./mynode",
    "./node-parse 0-1",
    "./nodemap",
    "./prefered",
    "./tbitmap",
    "./tshared",
    "bash ./regress2",
    "bash ./regress",
];

/// Packages that the tests are built with and use.
const PACKAGES: [(&str, &str); 4] =
    [("dpkg-source", "dpkg-dev"), ("gcc", "gcc"), ("numactl", "numactl"), ("numastat", "numactl")];

/// Builds the tests, runs them on each machine, and names those that fail.
pub fn run(root: &Path) -> Result<()> {
    let mut missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(program, _)| find_program(program).is_none())
        .map(|(_, package)| *package)
        .collect();
    if !Path::new("/usr/include/numaif.h").exists() {
        missing.push("libnuma-dev");
    }
    program::need_packages(&missing)?;
    program::show(program::cargo(root).args(["build", "-q", "--package", "nodewise"]))?;
    let target = target_folder(root);
    let tests = built(&target.join("numactl-tests"))?;
    let mut failed = 0;
    for machine in MACHINES {
        println!("{machine}");
        for line in TESTS {
            let mut command = Command::new(target.join("debug/nodewise"));
            command.args(["pretend", "--machine", machine, "--", "sh", "-c", line]);
            // The scripts find programs and each other in these.
            let above = tests.parent().context("the tests have a folder above")?;
            command.current_dir(&tests).env("builddir", above).env("srcdir", above).stdin(Stdio::null());
            let output =
                command.output().with_context(|| format!("cannot start: {}", program::line(&command)))?;
            let result = if output.status.success() { "passes" } else { "fails" };
            println!("  {result:6}  {line}");
            if !output.status.success() {
                failed += 1;
                print!(
                    "{}{}",
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr)
                );
            }
        }
    }
    if failed > 0 {
        bail!("{failed} tests of numactl fail in pretend");
    }
    Ok(())
}

/// Fetches the source, and compiles the programs beside it. Returns the folder of the tests.
fn built(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let source = match sources(folder)? {
        Some(there) => there,
        None => {
            let apt = PrivateApt::sources(&Cache::locate()?, &system::distribution().codename)?;
            program::quiet(&mut apt.command("apt-get", &["update", "-q"]))?;
            let mut fetch = apt.command("apt-get", &["source", "-q", "--only-source", "numactl"]);
            program::quiet(fetch.current_dir(folder))?;
            sources(folder)?.context("apt-get source left no folder numactl-VERSION")?
        }
    };
    println!("{}", source.file_name().unwrap_or_default().to_string_lossy());
    for (name, others) in PROGRAMS {
        let mut compile = Command::new("gcc");
        compile.current_dir(&source).args(["-w", "-O1", "-I.", "-o", name, &format!("{name}.c")]);
        program::quiet(compile.args(others).arg("-lnuma"))?;
    }
    // The scripts run the programs of the folder above by their paths.
    for name in ["numactl", "numastat"] {
        let (link, program) = (source.join(name), find_program(name).context("it was there before")?);
        if !link.exists() {
            std::os::unix::fs::symlink(program, link)?;
        }
    }
    for script in ["bind_range", "checkaffinity", "checktopology", "printcpu", "regress", "regress2"] {
        program::quiet(Command::new("chmod").arg("+x").arg(source.join("test").join(script)))?;
    }
    Ok(source.join("test"))
}

/// The unpacked source, if there is one.
fn sources(folder: &Path) -> Result<Option<PathBuf>> {
    let is_source = |path: &PathBuf| {
        path.join("test").is_dir()
            && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("numactl-"))
    };
    Ok(fs::read_dir(folder)?.flatten().map(|entry| entry.path()).find(is_source))
}
