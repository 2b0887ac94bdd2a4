//! The study of a program, as `tune --json` saved it: what it measured overrides the table.

use std::path::Path;

use nodewise_diagnose::knowledge::ProgramFacts;
use nodewise_machine::conditions::Conditions;
use nodewise_machine::placement::Placement;
use nodewise_machine::plural::plural;
use nodewise_machine::printable::{printable, quote};
use nodewise_source::Detail;
use nodewise_view::digest::placements::{PlacementRow, Placements};
use nodewise_view::json::{self, Saved};

use crate::command::tune::placements::named;
use crate::failure::Failure;
use crate::{input, live, measuring};

const OPTION: &str = "--tune";

/// The best placement of a study.
#[derive(Debug)]
pub(super) struct Measured {
    pub best: Placement,
    /// The comparison and its conclusion.
    pub words: String,
}

/// Reads a study of this program on this machine.
///
/// # Errors
/// A file that is not a study, or is one of another program or machine, or does not decide.
pub(super) fn read(path: &Path, facts: &ProgramFacts) -> Result<Measured, Failure> {
    let study = measuring::read_saved_as(OPTION, path, "tune --json", |text| {
        json::tune::read(&Saved::from_json(text)?)
    })?;
    let input = input::load("live", Detail::Full)?;
    let here = live::conditions(&input.machine, &[]);
    let about =
        |why: String| Failure::cannot(format_args!("{OPTION}: {}: {why}", quote(&path.to_string_lossy())));
    is_of(&study, facts).map_err(about)?;
    is_here(&study.conditions, &here).map_err(about)?;
    let row = best(&study).map_err(about)?;
    let best = match &row.options {
        Some(options) => named(options, &input).map_err(|why| about(format!("{}: {why}", quote(options))))?,
        None => return Err(about(format!("no options of nodewise run give {}", quote(&row.name)))),
    };
    Ok(Measured { best, words: words(&study, row, &here) })
}

/// The file name in a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a study is about this program: the same file name, or the name that the process has.
fn is_of(study: &Placements, facts: &ProgramFacts) -> Result<(), String> {
    let Some(measured) = study.conditions.command.first().map(|word| file_name(word)) else {
        return Err("it does not name its program".to_owned());
    };
    // A link's name is that of the command line: python3 runs the file python3.13.
    let first_word = facts.words.as_ref().and_then(|words| words.first());
    let names = [facts.exe.as_ref(), facts.name.as_ref(), first_word];
    let mut names = names.into_iter().flatten().map(|name| file_name(name)).peekable();
    let Some(name) = names.peek().copied() else {
        return Err("the name of this program is not known".to_owned());
    };
    if names.any(|name| name == measured) {
        return Ok(());
    }
    Err(format!("it is about {}, not about {}", quote(measured), quote(name)))
}

/// Whether a study was measured on a machine such as this one. Facts that one side lacks are not compared.
fn is_here(there: &Conditions, here: &Conditions) -> Result<(), String> {
    let same = |what: &str, there: Option<String>, here: Option<String>| match there.zip(here) {
        Some((there, here)) if there != here => {
            let (there, here) = (quote(&there), quote(&here));
            Err(format!("it was measured on another machine: its {what} {there}, here {here}"))
        }
        _ => Ok(()),
    };
    same("architecture is", there.architecture.clone(), here.architecture.clone())?;
    same("CPU is", there.cpu_model.clone(), here.cpu_model.clone())?;
    let nodes = |of: &Conditions| of.allowed_nodes.as_ref().map(ToString::to_string);
    same("nodes are", nodes(there), nodes(here))?;
    let cpus = |of: &Conditions| of.allowed_cpus.as_ref().map(ToString::to_string);
    same("CPUs are", cpus(there), cpus(here))
}

fn best(study: &Placements) -> Result<&PlacementRow, String> {
    let row = study.best.and_then(|best| study.rows.get(best));
    row.ok_or_else(|| format!("it names no placement: {}", printable(&study.conclusion)))
}

/// The comparison in words: `tune compared 3 placements in 12 rounds: no placement helps`.
fn words(study: &Placements, row: &PlacementRow, here: &Conditions) -> String {
    let (placements, rounds) = (plural(study.rows.len(), "placement"), plural(study.rounds, "round"));
    let mut words = format!("tune compared {placements} in {rounds}: {}", printable(&study.conclusion));
    if let Some(change) = row.change {
        let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
        let between = change.interval.map(|of| format!(", from {} to {}", percent(of.low), percent(of.high)));
        words.push_str(&format!(" ({}{})", percent(change.ratio), between.unwrap_or_default()));
    }
    if let Some(threads) = row.threads {
        words.push_str(&format!(", with {}", plural(u64::from(threads), "thread")));
    }
    let kernels = study.conditions.kernel.as_ref().zip(here.kernel.as_ref());
    if let Some((there, here)) = kernels.filter(|(there, here)| there != here) {
        words.push_str(&format!("; under Linux {}, this is {}", there.text(), here.text()));
    }
    words
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nodewise_experiment::metric::Metric;
    use nodewise_machine::{CpuSet, KernelRelease, NodeSet};
    use nodewise_stats::Interval;
    use nodewise_view::digest::placements::{PlacementChange, VerdictKind};

    use super::*;

    fn facts(exe: Option<&str>, word: Option<&str>) -> ProgramFacts {
        ProgramFacts {
            exe: exe.map(str::to_owned),
            words: word.map(|word| vec![word.to_owned(), "-x".to_owned()]),
            ..ProgramFacts::default()
        }
    }

    fn row(name: &str, verdict: VerdictKind) -> PlacementRow {
        PlacementRow {
            name: name.to_owned(),
            options: Some(String::new()),
            threads: None,
            runs: 12,
            failures: 0,
            median: Some(1.0),
            change: None,
            verdict,
            reason: None,
        }
    }

    fn study(command: &[&str]) -> Placements {
        Placements {
            conditions: Conditions {
                command: command.iter().map(|word| (*word).to_owned()).collect(),
                ..Conditions::default()
            },
            metric: Metric::Wall,
            rounds: 12,
            took: Duration::from_secs(60),
            seed: 1,
            rows: vec![
                row("default", VerdictKind::Baseline),
                PlacementRow {
                    options: Some("--membind=0".to_owned()),
                    change: Some(PlacementChange {
                        ratio: 0.9,
                        interval: Some(Interval { low: 0.85, high: 0.95 }),
                        adjusted_p: 0.001,
                        smallest_detectable: None,
                    }),
                    ..row("bind 0", VerdictKind::Better)
                },
            ],
            noise: None,
            conclusion: "use: nodewise run --membind=0 -- x".to_owned(),
            best: Some(1),
        }
    }

    #[test]
    fn a_study_of_another_program_says_nothing_about_this_one() {
        let solver = study(&["./bin/solver", "input"]);
        for own in [facts(Some("/opt/bin/solver"), None), facts(Some("/opt/x-1.2"), Some("solver"))] {
            assert_eq!(is_of(&solver, &own), Ok(()));
        }
        let other = is_of(&solver, &facts(Some("/usr/bin/cat"), Some("cat")));
        assert_eq!(other, Err("it is about \"solver\", not about \"cat\"".to_owned()));
        assert!(is_of(&solver, &ProgramFacts::default()).is_err());
        assert!(is_of(&study(&[]), &facts(Some("/bin/solver"), None)).is_err());
    }

    #[test]
    fn a_study_of_another_machine_is_refused_and_one_under_another_kernel_is_named() {
        let here = Conditions {
            cpu_model: Some("A".to_owned()),
            kernel: KernelRelease::new("6.12.1"),
            allowed_cpus: Some(CpuSet::from([0, 1])),
            allowed_nodes: Some(NodeSet::from([0, 1])),
            ..Conditions::default()
        };
        let check = |change: fn(&mut Conditions), expected: &str| {
            let mut there = here.clone();
            change(&mut there);
            assert_eq!(is_here(&there, &here).err().unwrap_or_default(), expected);
        };
        check(|_| {}, "");
        check(|there| there.cpu_model = None, "");
        check(
            |there| there.cpu_model = Some("B".to_owned()),
            "it was measured on another machine: its CPU is \"B\", here \"A\"",
        );
        check(
            |there| there.allowed_nodes = Some(NodeSet::from([0])),
            "it was measured on another machine: its nodes are \"0\", here \"0-1\"",
        );
        check(
            |there| there.allowed_cpus = Some(CpuSet::from([0])),
            "it was measured on another machine: its CPUs are \"0\", here \"0-1\"",
        );
        let mut study = study(&["x"]);
        study.conditions.kernel = KernelRelease::new("6.1.0");
        let words = words(&study, best(&study).unwrap(), &here);
        assert_eq!(
            words,
            "tune compared 2 placements in 12 rounds: use: nodewise run --membind=0 -- x (-10.0 %, from -15.0 % to -5.0 %); \
             under Linux 6.1.0, this is 6.12.1"
        );
    }

    #[test]
    fn a_study_that_does_not_decide_names_no_placement() {
        let mut open = study(&["x"]);
        assert!(best(&open).is_ok());
        open.best = None;
        assert!(best(&open).unwrap_err().starts_with("it names no placement: "));
    }
}
