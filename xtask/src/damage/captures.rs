//! Damages to the files of a capture, and the judgement over what nodewise makes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nodewise_machine::Machine;
use nodewise_source::machine_file;
use nodewise_stats::random::Random;

use super::kinds::{Change, Damage};
use super::specimen::{Content, Files, Specimen, facts, load, put};
use super::{Class, Verdict, grammar, redundancy};

/// Most files that are damaged at the same time.
const MOST_FILES: usize = 6;

/// Damages files of a specimen, one or several, and judges.
pub fn play(specimen: &Specimen, is_single: bool, random: &mut Random) -> Verdict {
    let wanted = if is_single { 1 } else { 2 + random.index(MOST_FILES - 1) };
    let mut changes: BTreeMap<String, Option<Content>> = BTreeMap::new();
    let (mut names, mut described) = (Vec::new(), Vec::new());
    for _ in 0..wanted {
        let (_, paths) = &specimen.targets[random.index(specimen.targets.len())];
        let path = &paths[random.index(paths.len())];
        let damage = Damage::ALL[random.index(Damage::ALL.len())];
        changes.extend(damage.apply(specimen, path, paths, random));
        names.push(damage);
        described.push(format!("{}: {path}", damage.name()));
    }
    let changes: Vec<Change> = changes.into_iter().collect();
    let (class, mut detail) = judge(specimen, &changes);
    if class.is_failure() {
        detail = format!("{detail}\n    {}: {}", specimen.name, described.join("; "));
    }
    Verdict { class, damage: is_single.then(|| names[0]), detail }
}

fn damaged(specimen: &Specimen, changes: &[Change]) -> nodewise_source::tree::Memory {
    changes.iter().fold(specimen.memory.clone(), |memory, (path, content)| match content {
        Some(content) => put(memory, path, content),
        None => memory.without(path),
    })
}

/// Loads a damaged machine; `Err` holds why that crashed.
fn load_damaged(specimen: &Specimen, changes: &[Change]) -> Result<Machine, String> {
    guarded(|| {
        let machine = load(damaged(specimen, changes));
        let json = machine_file::to_json(&machine);
        let again = machine_file::from_json(&json);
        assert!(
            again.as_ref().is_ok_and(|again| *again == machine),
            "the machine file is not read back the same"
        );
        machine
    })
}

/// Runs something that may panic; `Err` holds the words of the panic.
pub fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without words").to_owned()
    })
}

/// The oddities that a machine has beyond those of another.
pub fn new_oddities(before: &Machine, after: &Machine) -> Vec<String> {
    let mut known: Vec<String> = before.oddities.iter().map(ToString::to_string).collect();
    let mut new = Vec::new();
    for oddity in after.oddities.iter().map(ToString::to_string) {
        match known.iter().position(|known| *known == oddity) {
            Some(at) => {
                known.swap_remove(at);
            }
            None => new.push(oddity),
        }
    }
    new
}

/// Whether two machines have the same facts.
pub fn same_facts(one: &Machine, other: &Machine) -> bool {
    let without = |machine: &Machine| Machine { oddities: Vec::new(), ..machine.clone() };
    without(one) == without(other)
}

fn judge(specimen: &Specimen, changes: &[Change]) -> (Class, String) {
    let machine = match load_damaged(specimen, changes) {
        Ok(machine) => machine,
        Err(why) => return (Class::Crashed, why),
    };
    let new = new_oddities(&specimen.machine, &machine);
    if same_facts(&specimen.machine, &machine) {
        return (if new.is_empty() { Class::Unchanged } else { Class::Named }, String::new());
    }
    let mut worst = (Class::Named, String::new());
    for (at, (path, content)) in changes.iter().enumerate() {
        let found = if is_named(path, &new) {
            (Class::Named, String::new())
        } else if changes.len() == 1 {
            of_one(specimen, &specimen.machine, &machine, (path, content.as_ref()), changes)
        } else {
            // What this one damage does, beside the others.
            let others: Vec<Change> = changes
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .map(|(_, change)| change.clone())
                .collect();
            match load_damaged(specimen, &others) {
                Ok(without) if same_facts(&without, &machine) => (Class::Named, String::new()),
                Ok(without) => of_one(specimen, &without, &machine, (path, content.as_ref()), changes),
                Err(why) => (Class::Crashed, why),
            }
        };
        worst = worst.max(found);
    }
    worst
}

/// Whether an oddity names a file, or the folder that it and no other noun's files are in.
fn is_named(path: &str, oddities: &[String]) -> bool {
    let folder = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
    oddities.iter().any(|oddity| oddity.contains(path) || oddity.starts_with(&format!("{folder}: ")))
}

/// Judges one damage that changed facts and that no oddity names.
fn of_one(
    specimen: &Specimen,
    before: &Machine,
    after: &Machine,
    (path, content): (&str, Option<&Content>),
    changes: &[Change],
) -> (Class, String) {
    if !new_oddities(before, after).is_empty() {
        return (Class::Elsewhere, String::new());
    }
    let others: Vec<Change> = changes.iter().filter(|(other, _)| other != path).cloned().collect();
    let (without, with) = (files_of(specimen, &others), files_of(specimen, changes));
    let judged = silent(&without, &with, path, content, before, after);
    (judged, if judged.is_failure() { describe(path, content, before, after) } else { String::new() })
}

fn files_of(specimen: &Specimen, changes: &[Change]) -> Files {
    let mut files = specimen.files.clone();
    for (path, content) in changes {
        match content {
            Some(content) => files.insert(path.clone(), content.clone()),
            None => files.remove(path),
        };
    }
    files
}

/// Judges a change of facts without a word, by the grammar and the redundancies of the campaign alone.
pub fn silent(
    before_files: &Files,
    after_files: &Files,
    path: &str,
    content: Option<&Content>,
    before: &Machine,
    after: &Machine,
) -> Class {
    let known = redundancy::contradictions(before_files);
    let contradicted = redundancy::contradictions(after_files).iter().any(|one| !known.contains(one));
    match content {
        _ if contradicted => Class::Silent,
        None if only_lost(before, after) => Class::Unknown,
        Some(Content::File(bytes)) if grammar::is_well_formed(path, bytes) => Class::Plausible,
        _ => Class::Silent,
    }
}

/// Whether every fact is as before or not known any more.
fn only_lost(before: &Machine, after: &Machine) -> bool {
    let before = facts(before);
    facts(after).iter().all(|(name, value)| before.get(name) == Some(value))
}

fn describe(path: &str, content: Option<&Content>, before: &Machine, after: &Machine) -> String {
    let (before, after) = (facts(before), facts(after));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = names.into_iter().filter(|name| before.get(*name) != after.get(*name)).take(3);
    let changed: Vec<String> =
        changed.map(|name| format!("{name}: {:?} -> {:?}", before.get(name), after.get(name))).collect();
    let content = match content {
        Some(Content::File(bytes)) => format!("{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(80)])),
        content => format!("{content:?}"),
    };
    format!("{path} = {content}: {}", changed.join("; "))
}
