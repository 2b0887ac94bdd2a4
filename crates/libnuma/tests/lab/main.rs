//! The library in a real kernel with four nodes: Debian's own programs, and ours in C, print the
//! same with both libraries, and their pages lie on the same nodes.
//!
//! Two guests share the commands. Their script (`guest.sh`) runs each command twice, with the
//! library of Debian and with ours, and the host compares.
#![expect(clippy::print_stdout, reason = "a test that cannot run says why")]

#[path = "../library/built.rs"]
mod built;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;

use built::{Headers, PROGRAMS, compile, has_original, library};

/// The four-node server of the articles on the kernel's allocator.
const FOUR_NODES: &str = "2x(2x(1c 512M)); dist=11,20";

/// Command lines of Debian's programs.
const COMMANDS: &[&str] = &[
    "numactl --hardware",
    "numactl --show",
    "numactl -m 2 numactl --show",
    "numactl -m 1-2 numactl --show",
    "numactl -i all numactl --show",
    "numactl -i 0,3 numactl --show",
    "numactl -p 3 numactl --show",
    "numactl -P 1,2 numactl --show",
    "numactl -l numactl --show",
    "numactl -N 2 numactl --show",
    "numactl -N 1 -m 3 numactl --show",
    "numactl -C 1-2 numactl --show",
    "numactl -C +0 numactl --show",
    "numactl --all -i all -N all numactl --show",
    "numactl -m '!0' numactl --show",
    "numactl -m '!1-2' numactl --show",
    "numactl -m +1-2 numactl --show",
    "numactl -N 1 -m same numactl --show",
    "numactl -m 9 true",
    "numactl -m 0-9 true",
    "numactl -m foo true",
    "numactl -m '' true",
    "numactl -C 99 true",
    "numactl -C 0- true",
    "numactl -m netdev:lo true",
    "numactl -m file:/nosuch true",
    "numactl -m pci:zz true",
    "numactl -p 1,2 true",
    "numactl -m 1 -i 2 true",
    "numactl -m 2 /bin/sh -c 'grep -c heap /proc/self/numa_maps'",
    "numactl --length 1m --file /dev/shm/a --interleave 0,2 --touch --dump; rm -f /dev/shm/a",
    // Which of the nodes is first depends on the file.
    "numactl --length 1m --file /dev/shm/e --interleave 0,2 --touch --dump-nodes | sed 's/.*: //' | sort | uniq -c; \
     rm -f /dev/shm/e",
    "numactl --length 64k --file /dev/shm/b -m 3 --touch --dump-nodes --verify; rm -f /dev/shm/b",
    "numactl --length 64k --file /dev/shm/c -p 1 --dump; rm -f /dev/shm/c",
    "numactl --length 64k --file /dev/shm/d -l --dump; rm -f /dev/shm/d",
    "memhog 20m",
    "memhog -r2 20m membind 2",
    "memhog 20m interleave 0,2",
    "memhog 20m preferred 3",
    "memhog 20m local",
    "memhog 20m nosuch 3",
    "placed membind 2",
    "placed interleave 0,2",
    "placed interleave 0-3",
    "placed preferred 3",
    "placed preferred-many 1,2",
    "placed default",
    "migratepages $$ all 2",
    "migratepages $$ 0 9",
    "migratepages 99999999 0 1",
    "migratepages $$ 0 ''",
    "migspeed -p 500 0 3 | sed 's/[0-9.]* secs.*//; s/^[0-9a-f]* //'",
    "migspeed -p 500 -v 1 2 | sed 's/[0-9.]* secs.*//; s/^[0-9a-f]* //'",
];

/// The commands of the guests.
fn commands() -> Vec<String> {
    let programs =
        PROGRAMS.iter().map(|name| compile(name, Headers::Debians, "gcc", &[]).display().to_string());
    COMMANDS.iter().map(|command| (*command).to_owned()).chain(programs).collect()
}

/// The output of every command with one library, by command.
fn sections(text: &str, library: &str) -> BTreeMap<String, String> {
    let mark = format!("== {library} ");
    let mut sections: BTreeMap<String, String> = BTreeMap::new();
    let mut current = None;
    for line in text.lines() {
        if line.starts_with("== ") {
            current = line.strip_prefix(&mark).map(str::to_owned);
        }
        if let Some(command) = &current {
            let section = sections.entry(command.clone()).or_default();
            if !line.starts_with("== ") {
                section.push_str(line);
                section.push('\n');
            }
        }
    }
    sections
}

/// Boots a guest for these commands and returns what it printed.
fn run(lab: &Lab, library: &Path, commands: &[String]) -> String {
    let machine = spec::machine(FOUR_NODES).expect("the layout is a spec");
    let layout = Layout::new(&machine, &Limits::default()).expect("the layout can be booted");
    let mut guest = lab.guest(layout);
    // Minutes of work on an emulated CPU, perhaps on a busy host.
    guest.timeout = Duration::from_secs(3600);
    let scratch = tempfile::tempdir().expect("a folder for the guest");
    let lines: String = commands.iter().map(|command| format!("{command}\n")).collect();
    std::fs::write(scratch.path().join("commands"), lines).expect("the folder can be written");
    guest.scratch = Some(scratch.path().to_owned());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/guest.sh");
    let edges = compile("edges", Headers::Ours, "gcc", &[]);
    let words: Vec<OsString> =
        vec!["/bin/sh".into(), script.into(), library.join("lib").into(), edges.into()];
    let output = guest.run(&words).expect("the guest runs the script");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status, 0, "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn debians_programs_and_ours_do_the_same_with_both_libraries() {
    let Some(library) = library() else { return };
    if !has_original() {
        return;
    }
    let lab = match Lab::for_test(&KernelChoice::default()) {
        Ok(lab) => lab,
        Err(why) => return println!("{why}"),
    };
    let commands = commands();
    let (some, others) = commands.split_at(commands.len() / 2);
    let text = std::thread::scope(|scope| {
        let first = scope.spawn(|| run(&lab, library, some));
        let second = run(&lab, library, others);
        first.join().expect("a guest that fails has said why") + &second
    });
    let (original, ours) = (sections(&text, "original"), sections(&text, "ours"));
    assert_eq!(original.len(), COMMANDS.len() + PROGRAMS.len(), "{text}");
    let mut different = String::new();
    for (command, expected) in &original {
        let found = ours.get(command).map(String::as_str).unwrap_or_default();
        let line =
            |(ours, original): (&str, &str)| format!("{command}\n  ours     {ours}\n  original {original}\n");
        let pairs = found.lines().zip(expected.lines());
        different.extend(pairs.filter(|(ours, original)| ours != original).map(line));
        if found.lines().count() != expected.lines().count() {
            let _ = writeln!(different, "{command}\n-- original\n{expected}-- ours\n{found}");
        }
    }
    assert!(different.is_empty(), "{different}");
    // What "placed" says is compared with what it must be, too.
    assert_eq!(ours["placed membind 2"], "bind:2 N2=2048\nrc 0\n", "{text}");
    assert_eq!(ours["placed interleave 0,2"], "interleave:0,2 N0=1024 N2=1024\nrc 0\n", "{text}");
    assert_eq!(ours["placed default"], "default N0=2048\nrc 0\n", "{text}");
    let edges = ours_alone(&text);
    assert!(edges.ends_with("good\nrc 0\n"), "{edges}");
}

/// Returns the output of the program `edges`, which is run with our library alone.
fn ours_alone(text: &str) -> String {
    sections(text, "alone").into_values().collect()
}
