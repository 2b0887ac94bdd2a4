//! The invariants of ARCHITECTURE.md that concern a single file of Rust.

use super::Breach;
use super::paths::{NamedPath, named_paths};
use super::rust::Source;

/// Crates without any input or output (invariant 1).
const PURE: [&str; 4] = ["machine", "model", "diagnose", "view"];
/// Modules and crates that do input and output or start threads.
const EFFECTS: [&str; 8] =
    ["std::env", "std::fs", "std::net", "std::os", "std::process", "std::thread", "libc", "rustix"];
/// Crates that read /sys and /proc (invariant 2). libnuma has no standard library below it and
/// cannot use source; conformance shares no parser with what it checks; xtask is not part of the program.
const READERS: [&str; 4] = ["source", "libnuma", "conformance", "xtask"];
/// Where the list of processes is read between `fork(2)` and the end of a process, without memory or locks,
/// so that nothing of source can be called.
const BETWEEN: &str = "crates/syscall/src/guard/";
/// Places where unsafe code is allowed (invariant 3). In syscall its tests are included: they install filters
/// and look at memory by address.
const UNSAFE: [&str; 4] =
    ["crates/syscall/", "crates/measure/src/kernel", "crates/libnuma/", "crates/counter/"];
/// Crates that cannot forbid unsafe code as a whole.
const WITH_UNSAFE: [&str; 4] = ["syscall", "measure", "libnuma", "counter"];
/// Crates that print (invariant 4).
const PRINTERS: [&str; 4] = ["nodewise", "compat", "xtask", BUILD];
/// Crates that write files: captures, guests' folders, settings of a guest's kernel, what the user names, boot files
/// (invariant 11).
const WRITERS: [&str; 8] = ["source", "lab", "conformance", "nodewise", "boot", "pretend", "xtask", BUILD];
/// The build scripts of all crates, which speak to cargo and write into its folder.
const BUILD: &str = "build script";
/// Functions that change the file system.
const WRITES: [&str; 16] = [
    "fs::write",
    "fs::copy",
    "fs::rename",
    "fs::create_dir",
    "fs::create_dir_all",
    "fs::remove_file",
    "fs::remove_dir",
    "fs::remove_dir_all",
    "fs::set_permissions",
    "fs::hard_link",
    "fs::symlink",
    "File::create",
    "File::create_new",
    "File::options",
    "OpenOptions::new",
    "DirBuilder::new",
];
/// This file, which holds the lists.
const OWN_PATH: &str = "xtask/src/tidy/rules.rs";
/// Lines of a file that needs no word of explanation.
const LINES: usize = 600;

/// Checks a file of Rust.
pub fn check(path: &str, text: &str) -> Vec<Breach> {
    let source = Source::new(path, text);
    let paths = named_paths(&source.code);
    let crate_name = crate_of(path);
    let mut findings = Vec::new();
    let mut add = |line: usize, message: String| findings.push(Breach::new(path, line, message));
    for named in &paths {
        for message in effects(crate_name, named, source.is_test(named.line))
            .into_iter()
            .chain(unsafe_code(path, named))
            .chain(allow(named))
        {
            add(named.line, message);
        }
    }
    for literal in &source.literals {
        let reads = READERS.contains(&crate_name) || path.starts_with(BETWEEN);
        if !reads && !source.is_test(literal.line) && names_kernel_file(&literal.text) {
            let message =
                "a path of /sys or /proc: only source reads them (a sentence for people may name one)";
            add(literal.line, message.to_owned());
        }
    }
    if is_root(path) && !WITH_UNSAFE.contains(&crate_name) && !source.code.contains("#![forbid(unsafe_code)]")
    {
        add(1, "a crate without unsafe code says so: #![forbid(unsafe_code)]".to_owned());
    }
    let lines = text.lines().count();
    if lines > LINES && !explains_its_length(text) {
        add(
            1,
            format!(
                "{lines} lines: split it along a noun, or say at its head why it is \"over {LINES} lines\""
            ),
        );
    }
    findings
}

/// Places and crates that may hold unsafe code and hold none.
pub fn idle_permits(sources: &[(String, String)]) -> Vec<Breach> {
    let holders: Vec<&str> = sources
        .iter()
        .filter(|(path, text)| {
            named_paths(&Source::new(path, text).code).iter().any(|named| named.path == "unsafe")
        })
        .map(|(path, _)| path.as_str())
        .collect();
    let places = UNSAFE.into_iter().filter(|place| !holders.iter().any(|path| path.starts_with(place)));
    let crates = WITH_UNSAFE.into_iter().filter(|name| !holders.iter().any(|path| crate_of(path) == *name));
    let message = |idle| format!("{idle} may hold unsafe code, and holds none: take it out of the list");
    places.chain(crates).map(|idle| Breach::new(OWN_PATH, 1, message(idle))).collect()
}

/// The crate a file belongs to: `lab`, `xtask`.
fn crate_of(path: &str) -> &str {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["crates", _, "build.rs"] => BUILD,
        ["crates", name, ..] => name,
        [first, ..] => first,
        [] => "",
    }
}

/// Whether a file is the root of a library or a program.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates", _, "src", "lib.rs" | "main.rs"] | ["xtask", "src", "main.rs"])
}

/// Input, output, printing and writing where they do not belong.
fn effects(crate_name: &str, named: &NamedPath, is_test: bool) -> Option<String> {
    if is_test {
        return None;
    }
    let path = named.path.as_str();
    let below =
        |root: &str| path == root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with("::"));
    if PURE.contains(&crate_name) {
        // A lone word is a name of something else: only paths and imports count for crates.
        if let Some(root) = EFFECTS.iter().find(|root| below(root) && path.contains("::")) {
            return Some(format!(
                "{root} in {crate_name}, which does no input or output and starts no threads"
            ));
        }
    }
    if !PRINTERS.contains(&crate_name) {
        let is_macro = named.next == Some('!');
        let prints = is_macro && matches!(path, "print" | "println" | "eprint" | "eprintln" | "dbg");
        let stream = ["io::stdin", "io::stdout", "io::stderr"].iter().any(|stream| path.ends_with(stream));
        if prints || stream {
            return Some(format!("{path} in {crate_name}: only nodewise, compat and xtask print"));
        }
    }
    if !WRITERS.contains(&crate_name) {
        let writes = |write: &str| path == write || path.ends_with(&format!("::{write}"));
        if let Some(write) = WRITES.into_iter().find(|write| writes(write)) {
            return Some(format!("{write} in {crate_name}, which writes no files"));
        }
    }
    None
}

fn unsafe_code(path: &str, named: &NamedPath) -> Option<String> {
    let allowed = UNSAFE.iter().any(|allowed| path.starts_with(allowed));
    (named.path == "unsafe" && !allowed)
        .then(|| "unsafe: allowed in syscall, libnuma, counter and measure's kernels only".to_owned())
}

fn allow(named: &NamedPath) -> Option<String> {
    let attribute =
        named.path == "allow" && named.next == Some('(') && matches!(named.previous, Some('[' | ',' | '!'));
    attribute.then(|| {
        "#[allow]: #[expect(.., reason = \"..\")] says why, and when it is no longer needed".to_owned()
    })
}

/// Whether a string is a path into /sys or /proc, or a piece of one. A sentence for people has
/// blanks; the kernel's paths have none.
fn names_kernel_file(text: &str) -> bool {
    let names = ["/sys", "/proc"].into_iter().any(|root| {
        text.match_indices(root).any(|(at, _)| {
            let after = &text[at + root.len()..];
            // The root itself, or anything below it wherever it is mounted.
            after.starts_with('/') || at == 0 && after.is_empty()
        })
    });
    names && !text.contains(char::is_whitespace)
}

/// Whether the comment at the head of a file explains its length.
fn explains_its_length(text: &str) -> bool {
    text.lines()
        .take_while(|line| line.starts_with("//"))
        .any(|line| line.contains(&format!("over {LINES} lines")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Findings in a snippet as `line: start of the message`.
    fn findings(path: &str, text: &str) -> Vec<String> {
        check(path, text).iter().map(|finding| format!("{}: {}", finding.line, finding.message)).collect()
    }

    fn refuse(path: &str, text: &str, expected: &str) {
        let found = findings(path, text);
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{path}: {text}\nfound {found:?}\nexpected {expected}"
        );
    }

    fn accept(path: &str, text: &str) {
        assert_eq!(findings(path, text), [""; 0], "{path}: {text}");
    }

    #[test]
    fn pure_crates_do_no_input_or_output() {
        refuse("crates/machine/src/a.rs", "use std::fs;", "1: std::fs in machine");
        refuse("crates/view/src/a.rs", "use std::{fmt,\n  thread::spawn};", "2: std::thread in view");
        refuse("crates/model/src/a.rs", "fn f() { std::env::var(x) }", "1: std::env in model");
        refuse("crates/model/src/a.rs", "use rustix::fs;", "1: rustix in model");
        accept("crates/machine/src/a.rs", "#[cfg(test)]\nmod tests { use std::fs; }\nuse std::fmt;");
        accept("crates/machine/src/a.rs", "// std::fs\nlet x = \"std::fs\";");
        accept("crates/lab/src/a.rs", "use std::thread;");
    }

    #[test]
    fn only_source_reads_kernel_files() {
        refuse("crates/measure/src/a.rs", "x\ny(\"/sys/devices\")", "2: a path of /sys or /proc");
        refuse("crates/nodewise/src/a.rs", "format!(\"{root}/proc/{pid}/numa_maps\")", "1: a path of /sys");
        refuse("crates/lab/src/a.rs", "Path::new(\"/sys\")", "1: a path of /sys");
        accept("crates/source/src/a.rs", "\"/sys/devices\"");
        accept("xtask/src/a.rs", "\"/proc/self\"");
        accept("crates/libnuma/src/system.rs", "c\"/proc/self/status\"");
        refuse("crates/compat/src/a.rs", "\"/proc/self/status\"", "1: a path of /sys or /proc");
        accept("crates/lab/tests/a.rs", "\"/proc/self\"");
        accept("crates/syscall/src/guard/watch.rs", "c\"/proc\"");
        refuse("crates/syscall/src/a.rs", "c\"/proc\"", "1: a path of /sys or /proc");
        accept("crates/view/src/a.rs", "\"write to /proc/sys/vm/zone_reclaim_mode\"");
        accept("crates/view/src/a.rs", "/// `/sys/devices`\n\"usr/systemd\"");
    }

    #[test]
    fn a_build_script_speaks_to_cargo() {
        accept(
            "crates/counter/build.rs",
            "#![forbid(unsafe_code)]\nfn main() { println!(); fs::write(a, b); }",
        );
        refuse("crates/counter/src/build.rs", "println!()", "1: println in counter");
    }

    #[test]
    fn unsafe_code_has_its_places() {
        refuse("crates/source/src/a.rs", "unsafe { f() }", "1: unsafe: ");
        refuse("crates/measure/src/stats.rs", "x\nunsafe { f() }", "2: unsafe: ");
        accept("crates/measure/src/kernels/chase.rs", "unsafe { f() }");
        accept("crates/syscall/src/raw.rs", "unsafe { f() }");
        accept("crates/syscall/tests/kernel/filter.rs", "unsafe { f() }");
        refuse("crates/source/tests/corpus/main.rs", "unsafe { f() }", "1: unsafe: ");
        accept("crates/source/src/a.rs", "// unsafe\n\"unsafe\"");
    }

    #[test]
    fn a_permit_for_unsafe_code_that_nothing_uses_is_found() {
        let files = |paths: &[&str]| -> Vec<(String, String)> {
            paths.iter().map(|path| (path.to_string(), "unsafe { f() }".to_owned())).collect()
        };
        let raw = "crates/syscall/src/raw.rs";
        let counter = "crates/counter/src/qemu.rs";
        let mut all = files(&[raw, "crates/measure/src/kernel.rs", "crates/libnuma/src/lib.rs", counter]);
        assert_eq!(idle_permits(&all), []);
        all[1].1 = "// unsafe".to_owned();
        let idle: Vec<String> = idle_permits(&all).iter().map(ToString::to_string).collect();
        let expected = ["crates/measure/src/kernel", "measure"].map(|idle| {
            format!("{OWN_PATH}:1: {idle} may hold unsafe code, and holds none: take it out of the list")
        });
        assert_eq!(idle, expected);
        assert_eq!(idle_permits(&files(&[raw])).len(), 6);
    }

    #[test]
    fn crates_without_unsafe_code_say_so() {
        refuse("crates/source/src/lib.rs", "//! Doc.", "1: a crate without unsafe code says so");
        refuse("xtask/src/main.rs", "// #![forbid(unsafe_code)]", "1: a crate without");
        accept("crates/source/src/lib.rs", "#![forbid(unsafe_code)]");
        accept("crates/syscall/src/lib.rs", "//! Doc.");
        accept("crates/source/src/a.rs", "//! Doc.");
    }

    #[test]
    fn libraries_do_not_print() {
        refuse("crates/lab/src/a.rs", "println!(\"x\")", "1: println in lab");
        refuse("crates/source/src/a.rs", "use std::io::{self, stdout};", "1: std::io::stdout in source");
        refuse("crates/measure/src/a.rs", "io::stderr().write_all(b)", "1: io::stderr in measure");
        accept("crates/nodewise/src/a.rs", "io::stdout()");
        accept("crates/lab/src/a.rs", "command.stdout(Stdio::piped())");
    }

    #[test]
    fn few_crates_write_files() {
        refuse("crates/measure/src/a.rs", "fs::write(path, text)", "1: fs::write in measure");
        refuse("crates/syscall/src/a.rs", "std::fs::File::create(path)", "1: File::create in syscall");
        accept("crates/lab/src/a.rs", "fs::write(path, text)");
        accept("crates/measure/src/a.rs", "fs::read(path); buffer.write(x)");
    }

    #[test]
    fn lints_are_expected_and_not_allowed() {
        refuse("crates/lab/src/a.rs", "x\n#[allow(dead_code)]", "2: #[allow]");
        refuse("crates/lab/src/a.rs", "#![cfg_attr(test, allow(dead_code))]", "1: #[allow]");
        accept("crates/lab/src/a.rs", "#[expect(dead_code, reason = \"x\")]\nself.allow(x)");
    }

    #[test]
    fn long_files_say_why() {
        let long = "x\n".repeat(LINES + 1);
        refuse("crates/lab/src/a.rs", &long, "1: 601 lines: ");
        accept("crates/lab/src/a.rs", &format!("//! A table, over 600 lines because of its rows.\n{long}"));
        accept("crates/lab/src/a.rs", &"x\n".repeat(LINES));
    }
}
