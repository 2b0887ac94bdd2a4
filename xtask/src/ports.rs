//! `ports`: libnuma, the static command and unit tests for platforms whose machines are not at hand, run by QEMU.
//!
//! qemu-user runs one program of another platform on this kernel and translates its system calls. Those about memory
//! policies it answers with ENOSYS, as a kernel without CONFIG_NUMA does: what is tried here is that programs are built,
//! start, call the kernel with the right numbers, and read its files.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::dist::FIXED;
use crate::libnuma::build::{Tools, target_folder};
use crate::libnuma::{self, Destination};
use crate::package::{self, Packaging, binary};
use crate::platform::Platform;
use crate::program;

/// Crates whose unit tests run: those that call the kernel, those of its words, and those beneath.
const CRATES: [&str; 4] = ["notation", "machine", "syscall", "libnuma"];
/// Tests of what qemu-user lacks: it answers move_pages with ENOSYS, and takes MADV_DONTFORK for a hint.
const NOT_EMULATED: [&str; 2] = [
    "fork::tests::a_copy_writes_to_its_own_pages_only",
    "fork::tests::memory_that_is_not_for_children_is_missing_in_the_copy",
];
/// Programs in C that use libnuma, from its tests.
const PROGRAMS: [&str; 2] = ["variables", "versions"];

/// Tries each platform; the first that fails ends it.
pub fn run(root: &Path, platforms: &[Platform]) -> Result<()> {
    for platform in platforms {
        println!("\n== {}", platform.debian());
        one(root, *platform)?;
    }
    Ok(())
}

fn one(root: &Path, platform: Platform) -> Result<()> {
    package::need(&["qemu-user"])?;
    package::need_compiler(platform)?;
    let tools = Tools::find(platform)?;
    library(root, platform, &tools)?;
    let out = target_folder(root).join("ports");
    let packaging = Packaging::new(root, Some(platform), "dev", Some(out))?;
    command(&binary::build(&packaging, &tools, "static", FIXED)?, platform)?;
    let mut tests = binary::cargo(&packaging, &tools, "test")?;
    tests.args(["--quiet", "--lib"]).args(CRATES.map(|name| format!("--package=nodewise-{name}")));
    println!(
        "skipped, because qemu-user has no move_pages and no MADV_DONTFORK: {}",
        NOT_EMULATED.join(", ")
    );
    tests.args(["--", "--exact"]).args(NOT_EMULATED.iter().flat_map(|name| ["--skip", name]));
    let emulator =
        emulator(platform).iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>();
    program::show(tests.env(platform.cargo_variable("RUNNER"), emulator.join(" ")))
}

/// The words in front of a program of another platform: QEMU, and where its libraries are.
fn emulator(platform: Platform) -> Vec<std::ffi::OsString> {
    let libraries = format!("/usr/{}", platform.triplet());
    vec![format!("qemu-{}", platform.kernel()).into(), "-L".into(), libraries.into()]
}

fn emulated(platform: Platform) -> Command {
    let words = emulator(platform);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Builds libnuma, compares its symbols, and runs programs in C on it.
fn library(root: &Path, platform: Platform, tools: &Tools) -> Result<()> {
    libnuma::run(root, Some(platform), Destination::default())?;
    let library = target_folder(root).join("libnuma").join(platform.compiler());
    for name in PROGRAMS {
        let file = library.join(name);
        let source = root.join(format!("crates/libnuma/tests/programs/{name}.c"));
        let mut compiler = tools.command("gcc", root);
        compiler.arg("-I").arg(library.join("include")).arg(source).arg("-o").arg(&file);
        program::quiet(compiler.arg("-L").arg(library.join("lib")).args(["-lnuma", "-ldl"]))?;
        let mut command = emulated(platform);
        command.arg("-E").arg(format!("LD_LIBRARY_PATH={}", library.join("lib").display()));
        let text = program::read(command.arg(&file))?;
        ensure!(text == "good\n", "{name}.c on libnuma for {}: {text}", platform.debian());
        println!("{name}.c on libnuma: {}", text.trim_end());
    }
    Ok(())
}

/// Starts the command for what it can do on a kernel that has no policies.
fn command(file: &Path, platform: Platform) -> Result<()> {
    let arguments: [&[&str]; 4] = [
        &["show"],
        &["show", "--machine", "2x(4c 8G); dist=21"],
        &["explain", "bind:1", "--machine", "2x(4c 8G); dist=21"],
        &["run", "--", "true"],
    ];
    for words in arguments {
        println!("nodewise {}", words.join(" "));
        program::show(emulated(platform).arg(file).args(words))?;
    }
    Ok(())
}
