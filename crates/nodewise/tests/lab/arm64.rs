//! Guests of arm64: the programs under test are built for them, and run there without the host's files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use nodewise_conformance::ScriptKind;
use nodewise_lab::arm64::{Lab, PROGRAMS};
use nodewise_lab::{Layout, Output};
use serde_json::Value;

use crate::guest::{Boot, Guest};

const TARGET: &str = "aarch64-unknown-linux-gnu";
/// Static programs, since a guest has no libraries; small ones, since it has them in its memory; and built
/// without what only measuring needs.
const SETTINGS: [&str; 5] = [
    "target.aarch64-unknown-linux-gnu.linker='aarch64-linux-gnu-gcc'",
    "target.aarch64-unknown-linux-gnu.rustflags=['-C', 'target-feature=+crt-static']",
    "profile.dev.debug=false",
    "profile.dev.strip='symbols'",
    "profile.dev.package.nodewise-measure.opt-level=0",
];

/// Programs for arm64.
struct Programs {
    init: PathBuf,
    nodewise: PathBuf,
    /// This program.
    own: PathBuf,
}

/// Runs the checks in a guest. `Err` is what became of the guest without any of them.
pub fn run(of: &Guest, layout: Layout) -> Result<Output, Boot> {
    let lab = Lab::for_test(&of.kernel).map_err(Boot::Skipped)?;
    let programs = programs()?;
    let mut guest = lab.guest(layout, &programs.init);
    guest.programs =
        vec![("nodewise".to_owned(), programs.nodewise.clone()), ("lab".to_owned(), programs.own.clone())];
    let needs_tools = |kind: &ScriptKind| matches!(kind, ScriptKind::Swap | ScriptKind::Cache);
    guest.has_tools = of.plan.kinds.iter().any(needs_tools);
    guest.append.extend(of.plan.append.clone());
    guest.qemu_arguments = of.qemu_words();
    guest.timeout = of.timeout(guest.timeout);
    let place = |name: &str| format!("{PROGRAMS}/{name}").into();
    guest.run(&of.command(place("lab"), place("nodewise"))).map_err(Boot::failed)
}

/// The programs, built when they are first asked for.
fn programs() -> Result<&'static Programs, Boot> {
    static BUILT: OnceLock<Result<Programs, Boot>> = OnceLock::new();
    BUILT.get_or_init(build).as_ref().map_err(Clone::clone)
}

fn build() -> Result<Programs, Boot> {
    // The one part that lab-setup may not be able to install: it belongs to the toolchain, which is the
    // user's.
    let folder = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let folder = folder.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if !folder.is_ok_and(|folder| Path::new(&folder).exists()) {
        let why = format!("skipped: no programs for {TARGET}: rustup target add {TARGET}");
        return Err(Boot::Skipped(why));
    }
    let output = cargo().output().map_err(|error| Boot::Failed(format!("cargo: {error}")))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(Boot::Failed(format!("the programs for arm64 cannot be built:\n{complaint}")));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let executable = |name: &str, kind: &str| -> PathBuf {
        let is_it =
            |message: &&Value| message["target"]["name"] == name && message["target"]["kind"][0] == kind;
        let mut paths = messages.iter().filter(is_it).filter_map(|message| message["executable"].as_str());
        paths.next().unwrap_or_else(|| panic!("cargo names no {kind} {name}")).into()
    };
    Ok(Programs {
        init: executable("lab-init", "bin"),
        nodewise: executable("nodewise", "bin"),
        own: executable("lab", "test"),
    })
}

/// The build of the programs, which is read from JSON.
fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args(["build", "--quiet", "--message-format=json-render-diagnostics", "--target", TARGET]);
    // A folder of its own: cargo may be at work in the other.
    cargo.arg("--target-dir").arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("arm64"));
    cargo.args(SETTINGS.iter().flat_map(|setting| ["--config", setting]));
    cargo.args(["--package=nodewise", "--package=nodewise-lab", "--bin=nodewise", "--bin=lab-init"]);
    // A guest has no terminal for screens.
    cargo.args(["--no-default-features", "--features=nodewise-lab/arm64"]);
    // Flags and the compiler of the caller are for the caller's programs.
    cargo.arg("--test=lab").env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo.env_remove("RUSTC_WORKSPACE_WRAPPER");
    cargo
}
