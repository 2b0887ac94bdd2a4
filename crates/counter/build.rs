//! Compiles the plugin: the same sources once more, as a shared library without the standard library.
//!
//! A program cannot lend parts of itself to QEMU, so the library travels inside the command as bytes. It is compiled for
//! hosts of x86-64 alone, the only ones for which the lab builds guests; elsewhere the bytes are empty.
#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The compiler's words: one file of machine code, small, without anything that unwinds.
const WORDS: [&str; 17] = [
    "--crate-name=nodewise_counter",
    "--crate-type=cdylib",
    "--edition=2024",
    "--cfg=feature=\"plugin\"",
    "-Copt-level=3",
    "-Cpanic=abort",
    "-Clto=fat",
    "-Ccodegen-units=1",
    "-Cdebuginfo=0",
    "-Cstrip=symbols",
    // QEMU has the C library and GLib loaded; the plugin names no library of its own.
    "-Clink-arg=-nostartfiles",
    "-Clink-arg=-nodefaultlibs",
    "-Cmetadata=plugin",
    "--check-cfg=cfg(feature, values(\"plugin\"))",
    // What a panic would name: not the folder of this machine.
    "--remap-path-prefix=src=counter",
    "--cap-lints=allow",
    "src/lib.rs",
];

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var_os(name).expect("cargo sets it for build scripts");
    let plugin = PathBuf::from(variable("OUT_DIR")).join("counter.so");
    let is_supported = |name: &str| {
        let target = variable(name).to_string_lossy().into_owned();
        target.starts_with("x86_64-") && target.contains("-linux")
    };
    if !is_supported("HOST") || !is_supported("TARGET") {
        fs::write(&plugin, b"").expect("cargo's folder can be written to");
        return;
    }
    // Not the workspace's wrapper: that may be a linter, which has seen these sources.
    let mut compiler = Command::new(variable("RUSTC"));
    compiler.args(WORDS).arg("-o").arg(&plugin);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut word = std::ffi::OsString::from("-Clinker=");
        word.push(linker);
        compiler.arg(word);
    }
    let status = compiler.status().expect("the compiler of cargo can be started");
    assert!(status.success(), "the plugin for QEMU does not compile: {status}");
}
