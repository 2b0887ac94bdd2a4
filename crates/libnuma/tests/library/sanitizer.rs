//! ThreadSanitizer, which sees every access of the library: it is compiled for it, with the threads
//! that use it.
//!
//! The sanitizer is not stable in the compiler, and its runtime comes with it: `RUSTC_BOOTSTRAP`
//! makes it known to a stable one, as for the fuzz targets.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::built::{cargo, has, library, source, success, text};

#[test]
fn thread_sanitizer_sees_no_race_in_any_access_of_the_library() {
    let Some(program) = compile("threads") else { return };
    assert_eq!(success(&mut Command::new(program)), "good\n");
}

#[test]
fn thread_sanitizer_sees_a_race_inside_the_library_when_there_is_one() {
    let Some(program) = compile("race") else { return };
    let output = Command::new(program).output().expect("it was linked");
    let said = text(&output);
    assert!(!output.status.success(), "{said}");
    for word in ["ThreadSanitizer: data race", "#0 numa_bitmask_setbit"] {
        assert!(said.contains(word), "{word} is not in: {said}");
    }
}

/// The sanitizer's runtime, in the folder of the compiler's own libraries.
fn runtime() -> Option<PathBuf> {
    let folder = success(Command::new("rustc").args(["--print", "target-libdir"]));
    let entries = std::fs::read_dir(folder.trim()).expect("the compiler has libraries");
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| path.to_string_lossy().ends_with("_rt.tsan.a"))
}

/// The library as an archive that the sanitizer looks into, built once.
fn archive() -> &'static Path {
    static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();
    ARCHIVE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sanitizer");
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let mut command = cargo();
        command.args(["rustc", "--quiet", "--package", "nodewise-libnuma", "--lib", "--release"]);
        command.args(["--crate-type", "staticlib", "--features", "link", "--target", &target]);
        command.arg("--target-dir").arg(&folder).env("RUSTC_BOOTSTRAP", "1");
        // `core` is as it came; what the library uses of it is compiled into the library.
        let flags = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer";
        success(command.env("RUSTFLAGS", flags).env_remove("CARGO_ENCODED_RUSTFLAGS"));
        folder.join(target).join("release/libnodewise_libnuma.a")
    })
}

/// Compiles a program, with the library in it; `None` where that cannot be done.
fn compile(name: &str) -> Option<PathBuf> {
    let headers = library()?.join("include");
    let Some(runtime) = runtime().filter(|_| has("gcc")) else {
        println!("skipped: this compiler comes without the runtime of ThreadSanitizer");
        return None;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sanitizer-{name}"));
    std::fs::create_dir_all(&folder).expect("the folder of this test");
    let weak = Path::new(env!("CARGO_MANIFEST_DIR")).join("link/weak.c");
    let mut objects = Vec::new();
    for (object, source) in [("program.o", source(name)), ("weak.o", weak), ("rest.o", source("unoptimised"))]
    {
        let mut command = Command::new("gcc");
        command.args(["-std=gnu11", "-g", "-O1", "-fsanitize=thread", "-c"]).arg(source);
        objects.push(folder.join(object));
        success(command.arg("-I").arg(&headers).arg("-o").arg(folder.join(object)));
    }
    let program = folder.join("program");
    let mut command = Command::new("gcc");
    command.arg("-o").arg(&program).args(objects).arg("-Wl,--whole-archive").arg(archive()).arg(runtime);
    command.args(["-Wl,--no-whole-archive", "-Wl,--export-dynamic", "-pthread", "-ldl", "-lm", "-lrt"]);
    success(&mut command);
    Some(program)
}
