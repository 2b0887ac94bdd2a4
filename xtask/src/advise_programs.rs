//! `advise-programs`: real programs in guests of four nodes, badly placed, and what `advise` makes of them.
//!
//! Each program has a guest of its own, because what one leaves in small nodes would decide where the pages of the next
//! are. The script prints what nodewise answers, each answer behind a mark; this side reads them and makes the table.

pub mod programs;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nodewise_lab::tools::find_program;
use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;
use serde_json::Value;

use crate::program;
use programs::{PROGRAMS, Program};

/// The machine of the guests.
const MACHINE: &str = "2x(2x(1c 512M)); dist=11,20";
/// The time of a guest: an emulated one is slow, and each program runs for three minutes.
const TIME: Duration = Duration::from_secs(1500);
/// The row that leaves a program as it is.
const LEAVE_IT: &str = "3";
/// Shares of memory that differ by less are the same.
const CLOSE: f64 = 0.05;
/// Sources that a program is built from.
const SOURCES: [(&str, &str); 6] = [
    ("job.py", include_str!("advise_programs/job.py")),
    ("leak.c", include_str!("advise_programs/leak.c")),
    ("pingpong.c", include_str!("advise_programs/pingpong.c")),
    ("shm_pair.c", include_str!("advise_programs/shm_pair.c")),
    ("stream_mpi.c", include_str!("advise_programs/stream_mpi.c")),
    ("Service.java", include_str!("advise_programs/Service.java")),
];

/// The request.
pub struct AdvisePrograms {
    /// Beginnings of names; empty for all.
    pub names: Vec<String>,
    /// Whether missing packages are installed.
    pub install: bool,
    /// Whether doctor is asked beside programs that are placed by no one.
    pub doctor: bool,
}

/// Runs the programs, and fails where an advice does not help or doctor warns without a reason.
pub fn run(root: &Path, asked: &AdvisePrograms) -> Result<()> {
    let is_meant = |program: &&Program| {
        let names = &asked.names;
        let is_named = names.is_empty() || names.iter().any(|name| program.name.starts_with(name.as_str()));
        is_named && (program.is_ordinary || !asked.doctor)
    };
    let chosen: Vec<&Program> = PROGRAMS.iter().filter(is_meant).collect();
    ensure!(!chosen.is_empty(), "no program has such a name: expected one of {}", all_names());
    need(&chosen, asked.install)?;
    let nodewise = nodewise(root)?;
    let lab = Lab::find(&KernelChoice::default())?;
    let mut rows = Vec::new();
    for program in chosen {
        let folder = prepare(root, program)?;
        let text = in_guest(&lab, &nodewise, &folder, program, asked.doctor)?;
        fs::write(folder.join("answers"), &text)?;
        let row = if asked.doctor { doctor_row(&text) } else { advice_row(&text, program) };
        let row = row.unwrap_or_else(|error| Row { cells: vec![format!("{error:#}")], is_good: false });
        println!("{}: {}", program.name, row.cells.join(" | "));
        rows.push((program.name, row));
    }
    print!("\n{}", table(&rows, asked.doctor));
    let bad: Vec<&str> = rows.iter().filter(|(_, row)| !row.is_good).map(|(name, _)| *name).collect();
    ensure!(bad.is_empty(), "not as it should be: {}", bad.join(", "));
    Ok(())
}

fn all_names() -> String {
    PROGRAMS.iter().map(|program| program.name).collect::<Vec<_>>().join(", ")
}

/// Names the packages that are missing; installs them where that was asked for.
pub fn need(programs: &[&Program], install: bool) -> Result<()> {
    let is_missing = |needs: &&(&str, &str)| {
        let name = needs.0;
        if name.starts_with('/') { !Path::new(name).exists() } else { find_program(name).is_none() }
    };
    let needs = programs.iter().flat_map(|program| program.needs);
    let mut packages: Vec<&str> = needs.filter(is_missing).map(|(_, package)| *package).collect();
    packages.sort_unstable();
    packages.dedup();
    if packages.is_empty() {
        return Ok(());
    }
    if install {
        return program::install_packages(&packages);
    }
    bail!(
        "programs are missing; --install gets them, or: apt-get {} {}",
        program::INSTALL.join(" "),
        packages.join(" ")
    )
}

/// Builds nodewise as the tests of the lab do, which need not build it again then; without what is for debuggers, because
/// a guest reads programs slowly.
pub fn nodewise(root: &Path) -> Result<PathBuf> {
    program::quiet(program::cargo(root).args([
        "test",
        "--no-run",
        "--package",
        "nodewise",
        "--test",
        "lab",
    ]))?;
    let built = root.join("target/debug/nodewise");
    let own = root.join("target/advise-programs.nodewise");
    program::quiet(Command::new("strip").arg("-o").arg(&own).arg(&built))?;
    Ok(own)
}

/// The folder of a program.
pub fn folder_of(root: &Path, program: &Program) -> PathBuf {
    root.join("target/advise-programs").join(program.name)
}

/// The folder of a program, with all that can be made on the host.
pub fn prepare(root: &Path, program: &Program) -> Result<PathBuf> {
    let folder = folder_of(root, program);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (file, text) in SOURCES {
        fs::write(folder.join(file), text)?;
    }
    program::quiet(Command::new("sh").args(["-e", "-c", program.prepare]).current_dir(&folder))?;
    Ok(folder)
}

fn in_guest(lab: &Lab, nodewise: &Path, folder: &Path, program: &Program, doctor: bool) -> Result<String> {
    let mut guest = lab.guest(Layout::new(&spec::machine(MACHINE)?, &Limits::default())?);
    guest.programs = vec![("nodewise".to_owned(), nodewise.to_owned())];
    guest.timeout = TIME;
    let script = folder.join("guest.sh");
    fs::write(&script, script_text(folder, program, doctor))?;
    let words = ["/bin/bash".into(), script.into_os_string()];
    let output = guest.run(&words)?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok(format!("{stdout}\n{stderr}"))
}

fn script_text(folder: &Path, program: &Program, doctor: bool) -> String {
    let mut text = format!("HERE='{}'\nBAD='{}'\n", folder.display(), program.bad);
    text.push_str(include_str!("advise_programs/guest.sh"));
    text.push_str(program.functions);
    text.push_str(if doctor { "doctor\n" } else { "advise > advised 2>&1\ncat advised\n" });
    if !doctor {
        // The options of the first recipe, from the document of the advice.
        text.push_str(
            "options=$(sed -n '/^@@ document advice/,/^@@ exit/s/.*\"text\": \"nodewise run \\([^\\\\]*\\) -- PROGRAM.*/\\1/p' \
             advised | head -n 1)\n\
             say options $options\n\
             again \"$options\"\n",
        );
    }
    text
}

/// A row of the table.
struct Row {
    cells: Vec<String>,
    is_good: bool,
}

/// The answer behind a mark.
pub fn answer(text: &str, name: &str) -> Result<Value> {
    let mark = format!("@@ document {name}\n");
    let begin =
        text.find(&mark).with_context(|| format!("no answer for {name:?}: {}", end_of(text)))? + mark.len();
    let rest = &text[begin..];
    let end = rest.find("\n@@ exit").with_context(|| format!("{name:?} was cut"))?;
    serde_json::from_str(&rest[..end]).with_context(|| format!("{name:?}: {}", end_of(text)))
}

/// The last lines of an output.
fn end_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(6)..].join(" / ")
}

/// The remote part of a process's memory, weighted by where it ran.
fn remote(document: &Value) -> Result<f64> {
    let process = &document["processes"][0];
    let local = process["local_index"].as_f64();
    local.map(|local| 1.0 - local).with_context(|| format!("no local index: {process}"))
}

fn advice_row(text: &str, program: &Program) -> Result<Row> {
    let before = remote(&answer(text, "before")?)?;
    let advice = answer(text, "advice")?;
    let applied = remote(&answer(text, "applied")?)?;
    let restarted = remote(&answer(text, "restarted")?)?;
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let options = advice["placements"][0]["options"].as_array().cloned().unwrap_or_default();
    let options: Vec<String> = options.iter().map(word).collect();
    let result = answer(text, "apply")
        .map_or_else(|error| format!("{error:#}"), |done| word(&done["apply"]["result"]));
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let number = word(&advice["row"]["row"]);
    // Where none is better, it is restarted without a placement, which shows whether that is true.
    let says_none_is_better = number == LEAVE_IT;
    let is_good = if says_none_is_better {
        restarted > before - CLOSE
    } else {
        restarted < before - CLOSE || before < CLOSE
    };
    let placement = match &options[..] {
        [] if says_none_is_better => "leave it".to_owned(),
        [] => "the default".to_owned(),
        options => options.join(" "),
    };
    let row = format!("{number} ({placement})");
    Ok(Row {
        cells: vec![
            program.bad.to_owned(),
            row,
            percent(before),
            percent(applied),
            percent(restarted),
            result,
        ],
        is_good,
    })
}

/// Findings of warning or worse are false alarms here.
fn doctor_row(text: &str) -> Result<Row> {
    let document = answer(text, "doctor")?;
    let findings = document["findings"].as_array().context("no findings")?;
    let words = |finding: &Value| {
        let word = |name: &str| finding[name].as_str().unwrap_or("?").to_owned();
        format!("{} {}: {}", word("severity"), word("id"), word("summary"))
    };
    let is_bad = |finding: &&Value| matches!(finding["severity"].as_str(), Some("warning" | "critical"));
    let alarms: Vec<String> = findings.iter().filter(is_bad).map(words).collect();
    let notes: Vec<String> = findings.iter().filter(|finding| !is_bad(finding)).map(words).collect();
    let is_good = alarms.is_empty();
    Ok(Row { cells: vec![join(&alarms), join(&notes)], is_good })
}

fn join(words: &[String]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join("; ") }
}

fn table(rows: &[(&str, Row)], doctor: bool) -> String {
    let head: &[&str] = if doctor {
        &["program", "warnings", "notes and information"]
    } else {
        &[
            "program",
            "placed",
            "row",
            "remote before",
            "after --apply",
            "restarted as advised",
            "result of --apply",
        ]
    };
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for (name, row) in rows {
        let _ = writeln!(text, "| {name} | {} |", row.cells.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_from_between_their_marks() {
        let stat = |local| format!("{{\"processes\": [{{\"local_index\": {local}}}]}}");
        let document =
            |name: &str, json: &str| format!("@@ document {name}\n{json}\n\n@@ exit 0\n| a note\n");
        let advice = "{\"row\": {\"row\": \"6\"}, \"placements\": [{\"options\": [\"--membind=0\"]}]}";
        let text = [
            "noise\n".to_owned(),
            document("before", &stat(0.0)),
            document("advice", advice),
            document("apply", "{\"apply\": {\"result\": \"64 MiB moved\"}}"),
            document("applied", &stat(1.0)),
            document("restarted", &stat(0.98)),
        ]
        .concat();
        let row = advice_row(&text, &PROGRAMS[0]).unwrap();
        assert!(row.is_good);
        assert_eq!(row.cells[1..], ["6 (--membind=0)", "100 %", "0 %", "2 %", "64 MiB moved"]);
        let worse = text.replace("0.98", "0.0");
        assert!(!advice_row(&worse, &PROGRAMS[0]).unwrap().is_good);
        // To leave it is right where the default is not better.
        let left = |text: &str| text.replace("\"6\"", "\"3\"").replace("\"--membind=0\"", "");
        let row = advice_row(&left(&worse), &PROGRAMS[0]).unwrap();
        assert!(row.is_good && row.cells[1] == "3 (leave it)");
        assert!(!advice_row(&left(&text), &PROGRAMS[0]).unwrap().is_good);
        assert!(advice_row("nothing", &PROGRAMS[0]).is_err());
    }

    #[test]
    fn warnings_are_false_alarms_and_notes_are_not() {
        let found = |severity: &str| {
            let finding = format!("{{\"severity\": \"{severity}\", \"id\": \"x\", \"summary\": \"y\"}}");
            doctor_row(&format!("@@ document doctor\n{{\"findings\": [{finding}]}}\n@@ exit 0\n")).unwrap()
        };
        assert!(found("note").is_good && !found("warning").is_good && !found("critical").is_good);
    }

    #[test]
    fn every_script_is_one_that_a_shell_can_read() {
        for program in PROGRAMS {
            let text = script_text(Path::new("/x"), program, false);
            program::quiet(Command::new("bash").args(["-n", "-c", &text])).unwrap();
            program::quiet(Command::new("sh").args(["-n", "-c", program.prepare])).unwrap();
        }
    }
}
