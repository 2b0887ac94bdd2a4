//! `doctor-soak --busy`: healthy guests, at rest and with ordinary programs at work, on which doctor must not warn.
//!
//! The programs are those of `advise-programs` and some that read and compress, all at once, placed by no one, under the
//! kernel's own settings. Each layout has a guest of its own with room for all of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nodewise_lab::{Guest, KernelChoice, Lab, Layout, Limits};
use nodewise_machine::{Bytes, spec};
use serde_json::Value;

use crate::advise_programs::programs::{PROGRAMS, Program};
use crate::advise_programs::{answer, folder_of, need, nodewise, prepare};

/// The machines: name, spec, and words for the kernel.
const LAYOUTS: [(&str, &str, Option<&str>); 5] = [
    ("four-nodes", "2x(2x(1c 1G)); dist=11,20", None),
    ("two-sockets", "2x(2c 2G); dist=21", None),
    ("pi-eight-nodes", "(4c 512M) 7x(512M)", None),
    ("memory-only", "2x(2c 1536M) (1G); dist=20", None),
    ("emulated", "(4c 4G)", Some("numa=fake=4")),
];
/// Windows beside programs at work.
const WINDOWS: u32 = 2;
/// The most memory of a guest, which the host gives as it is touched.
const MEMORY: Bytes = Bytes::from_gib(4);
/// The time of a guest: programs take minutes to begin in one that is emulated.
const TIME: Duration = Duration::from_secs(2400);

/// Programs that `advise` has no use for, because they are short or small.
const MORE: [Program; 3] = [
    Program {
        name: "zstd",
        needs: &[("zstd", "zstd")],
        prepare: "",
        functions: "
start() {
    seq 300000 > text
    \"$@\" sh -c 'while :; do zstd -q -9 -c text > /dev/null; done' &
    PID=$!
}
",
        bad: "",
        is_ordinary: true,
    },
    Program {
        name: "xz",
        needs: &[("xz", "xz-utils")],
        prepare: "",
        functions: "
start() {
    seq 300000 > text
    \"$@\" sh -c 'while :; do xz -c text > /dev/null; done' &
    PID=$!
}
",
        bad: "",
        is_ordinary: true,
    },
    Program {
        name: "grep",
        needs: &[("grep", "grep"), ("find", "findutils")],
        prepare: "",
        functions: "
start() {
    \"$@\" sh -c 'while :; do find /usr/share/doc -type f -exec grep -c licence {} + ; done' > /dev/null 2>&1 &
    PID=$!
}
",
        bad: "",
        is_ordinary: true,
    },
];
/// Servers come first: they begin slowly beside programs that compute.
const SERVERS: [&str; 4] = ["postgres", "mariadb", "redis", "nginx"];

/// Runs the guests whose names begin with one of these words, all of them without a word.
pub fn run(root: &Path, layouts: &[String], install: bool) -> Result<()> {
    let is_meant = |name: &str| layouts.is_empty() || layouts.iter().any(|word| name.starts_with(word));
    let chosen: Vec<_> = LAYOUTS.into_iter().filter(|(name, ..)| is_meant(name)).collect();
    let names = || LAYOUTS.map(|(name, ..)| name).join(", ");
    ensure!(!chosen.is_empty(), "no layout has such a name: expected one of {}", names());
    let programs = programs();
    need(&programs, install)?;
    let nodewise = nodewise(root)?;
    for program in &programs {
        prepare(root, program)?;
    }
    let lab = Lab::find(&KernelChoice::default())?;
    let mut alarms = Vec::new();
    println!(
        "| layout | programs at work | rules examined, idle and busy | false alarms | notes |\n|---|---|---|---|---|"
    );
    for (name, spec, append) in chosen {
        let text = in_guest(&lab, &nodewise, root, &programs, (spec, append))?;
        fs::write(root.join(format!("target/doctor-soak.{name}")), &text)?;
        let outcome = Outcome::read(&text).with_context(|| format!("{name}: {text}"))?;
        println!("{}", outcome.row(name));
        alarms.extend(outcome.alarms.iter().map(|alarm| format!("{name}: {alarm}")));
        ensure!(outcome.missing.is_empty(), "{name}: not at work: {}", outcome.missing.join(", "));
    }
    ensure!(alarms.is_empty(), "doctor warns of healthy systems:\n{}", alarms.join("\n"));
    Ok(())
}

/// The programs in the order in which they begin.
fn programs() -> Vec<&'static Program> {
    let ordinary = PROGRAMS.iter().filter(|program| program.is_ordinary).chain(&MORE);
    let mut programs: Vec<&Program> = ordinary.collect();
    let place =
        |program: &&Program| SERVERS.iter().position(|name| *name == program.name).unwrap_or(SERVERS.len());
    programs.sort_by_key(place);
    programs
}

fn in_guest(
    lab: &Lab,
    nodewise: &Path,
    root: &Path,
    programs: &[&Program],
    (spec, append): (&str, Option<&str>),
) -> Result<String> {
    let limits = Limits { memory: MEMORY, ..Limits::default() };
    let mut guest: Guest = lab.guest(Layout::new(&spec::machine(spec)?, &limits)?);
    guest.programs = vec![("nodewise".to_owned(), nodewise.to_owned())];
    guest.append.extend(append.map(str::to_owned));
    guest.timeout = TIME;
    let script: PathBuf = root.join("target/doctor-soak.sh");
    fs::write(&script, script_text(root, programs))?;
    let output = guest.run(&["/bin/bash".into(), script.into_os_string()])?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok(format!("{stdout}\n{stderr}"))
}

fn script_text(root: &Path, programs: &[&Program]) -> String {
    let mut text = include_str!("../advise_programs/guest.sh").to_owned();
    text.push_str(include_str!("busy.sh"));
    for program in programs {
        let (name, folder) = (program.name, folder_of(root, program));
        let functions = program.functions;
        let begin = if SERVERS.contains(&name) { "server" } else { "begin_one" };
        text.push_str(&format!(
            "program_{name}() {{\nHERE='{}'\n{functions}\nat_work\n}}\n{begin} {name}\n",
            folder.display()
        ));
    }
    text.push_str(&format!("examine {WINDOWS}\n"));
    text
}

/// The answers of a guest.
#[derive(Debug, Default)]
struct Outcome {
    /// Programs that worked during all windows, and those that did not.
    working: Vec<String>,
    missing: Vec<String>,
    /// Rules examined, by window.
    examined: Vec<usize>,
    alarms: Vec<String>,
    notes: Vec<String>,
}

impl Outcome {
    fn read(text: &str) -> Result<Self> {
        let mut outcome = Self::default();
        let windows = std::iter::once("idle".to_owned()).chain((1..=WINDOWS).map(|at| format!("busy-{at}")));
        for window in windows {
            outcome.take(&answer(text, &window)?, &window)?;
        }
        let lines = |mark: &str| -> Vec<String> {
            text.lines()
                .filter_map(|line| line.strip_prefix(mark))
                .map(|name| name.trim().to_owned())
                .collect()
        };
        (outcome.working, outcome.missing) = (lines("@@ working "), lines("@@ missing "));
        Ok(outcome)
    }

    fn take(&mut self, document: &Value, window: &str) -> Result<()> {
        let examined = document["examined"]["rules"].as_array().context("no rules")?;
        self.examined.push(examined.len());
        for finding in document["findings"].as_array().context("no findings")? {
            let word = |name: &str| finding[name].as_str().unwrap_or("?").to_owned();
            let text = format!("{window}: {} {}: {}", word("severity"), word("id"), word("summary"));
            let is_alarm = matches!(finding["severity"].as_str(), Some("warning" | "critical"));
            if is_alarm { self.alarms.push(text) } else { self.notes.push(text) }
        }
        Ok(())
    }

    fn row(&self, name: &str) -> String {
        let examined: Vec<String> = self.examined.iter().map(usize::to_string).collect();
        let join = |texts: &[String]| if texts.is_empty() { "none".to_owned() } else { texts.join("; ") };
        format!(
            "| {name} | {} of {}: {} | {} | {} | {} |",
            self.working.len(),
            self.working.len() + self.missing.len(),
            self.working.join(", "),
            examined.join(", "),
            join(&self.alarms),
            join(&self.notes),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn ten_programs_and_more_are_one_script_that_a_shell_can_read() {
        let programs = programs();
        assert!(programs.len() >= 10);
        assert_eq!(programs[0].name, "postgres");
        let text = script_text(Path::new("/x"), &programs);
        crate::program::quiet(Command::new("bash").args(["-n", "-c", &text])).unwrap();
    }

    #[test]
    fn a_warning_in_any_window_is_a_false_alarm_and_a_note_is_not() {
        let window = |name: &str, severity: &str| {
            let finding = format!("{{\"severity\": \"{severity}\", \"id\": \"x\", \"summary\": \"y\"}}");
            let document = format!("{{\"findings\": [{finding}], \"examined\": {{\"rules\": [\"x\"]}}}}");
            format!("@@ document {name}\n{document}\n@@ exit 0\n")
        };
        let text = |last: &str| {
            let windows = [("idle", "note"), ("busy-1", "info"), ("busy-2", last)];
            let windows: String = windows.map(|(name, severity)| window(name, severity)).concat();
            format!("{windows}@@ working redis\n@@ missing java\n")
        };
        let outcome = Outcome::read(&text("note")).unwrap();
        assert_eq!((outcome.alarms.len(), outcome.notes.len()), (0, 3));
        assert_eq!(
            (&outcome.working[..], &outcome.missing[..]),
            (&["redis".to_owned()][..], &["java".to_owned()][..])
        );
        let outcome = Outcome::read(&text("warning")).unwrap();
        assert_eq!(outcome.alarms, ["busy-2: warning x: y"]);
        assert!(outcome.row("two").contains("1 of 2: redis"), "{}", outcome.row("two"));
        assert!(Outcome::read("nothing").is_err());
    }
}
