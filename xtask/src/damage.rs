//! `damage`: captures, archives and ACPI tables with damages drawn at random, and what nodewise says of them.
//!
//! A damaged machine must never be shown as if it were whole. Each draw damages one machine: one file of a capture,
//! or several; a few bytes of an archive, plain or compressed; a few bytes of ACPI tables, as text or as bytes. The
//! facts before and after are compared, and each draw falls into one class:
//!
//! | class | |
//! |---|---|
//! | unchanged | every fact is as before |
//! | refused | an error names what cannot be read |
//! | named | an oddity names the damaged file, or the folder that it is in |
//! | elsewhere | facts changed, and an oddity says so of another file that contradicts the damaged one |
//! | unknown | a file is gone and its facts with it: they are shown as not known |
//! | plausible | a fact changed without a word, to what a kernel could have written as well |
//! | **silent** | a fact changed without a word though the file is wrong, or another contradicts it |
//! | **crash**, **hang** | no answer within [`LONGEST`] |
//!
//! The last three are failures. What is plausible and what is silent is not decided by nodewise's own parsers but by
//! two other readings of the files: `grammar` has the strict form in which the kernel writes each of them, and
//! `redundancy` compares what the files say twice. A damage is plausible only if its file still has the strict form
//! and no contradiction has been added between any files. Both are written by hand, so a kernel's form
//! that they do not know makes a draw a failure, not a success; the compared facts are all those of the machine
//! file. Files in which nodewise reads nothing of a machine are not damaged.
//!
//! With several damages in a machine each that no oddity names is judged by what it does beside the others: the
//! machine is loaded once more without it.

mod archives;
mod captures;
mod grammar;
mod kinds;
mod redundancy;
mod specimen;
mod synthetic;
mod tables;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nodewise_stats::random::Random;

use archives::Archive;
use kinds::Damage;
use specimen::Specimen;
use tables::Set;

/// After this a machine hangs: the slowest takes a hundredth of it.
const LONGEST: Duration = Duration::from_secs(60);
/// Failures that are printed.
const MOST_SHOWN: usize = 40;
/// The largest packed capture that is used: the larger ones have the same files for more CPUs.
const MOST_PACKED: u64 = 40_000;
/// Most files of a capture that becomes an archive.
const MOST_IN_ARCHIVE: usize = 2000;

/// The outcome of a damaged machine, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Unchanged,
    Refused,
    Named,
    Elsewhere,
    Unknown,
    Plausible,
    Silent,
    Crashed,
    Hung,
}

impl Class {
    const ALL: [Self; 9] = [
        Self::Unchanged,
        Self::Refused,
        Self::Named,
        Self::Elsewhere,
        Self::Unknown,
        Self::Plausible,
        Self::Silent,
        Self::Crashed,
        Self::Hung,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Refused => "refused",
            Self::Named => "named",
            Self::Elsewhere => "elsewhere",
            Self::Unknown => "unknown",
            Self::Plausible => "plausible",
            Self::Silent => "silent",
            Self::Crashed => "crash",
            Self::Hung => "hang",
        }
    }

    /// Whether the outcome must not happen.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Silent | Self::Crashed | Self::Hung)
    }
}

/// The outcome of a draw, and why that is a failure, if it is.
pub struct Verdict {
    class: Class,
    /// The kind of damage, of a single one to a file.
    damage: Option<Damage>,
    detail: String,
}

/// The things that are damaged.
struct Subjects {
    specimens: Vec<Specimen>,
    archives: Vec<Archive>,
    sets: Vec<Set>,
    folder: tempfile::TempDir,
}

impl Subjects {
    fn new(most_packed: u64) -> Result<Self> {
        let specimens = specimen::all(most_packed)?;
        let archives = archives::all(&specimens, MOST_IN_ARCHIVE)?;
        Ok(Self { specimens, archives, sets: tables::all()?, folder: tempfile::tempdir()? })
    }

    /// Plays the draw of a number.
    fn play(&self, seed: u64, number: u64) -> (&'static str, Verdict) {
        let random = &mut Random::stream(seed, number);
        let specimen = &self.specimens[random.index(self.specimens.len())];
        match random.below(20) {
            0..8 => ("a file of a capture", captures::play(specimen, true, random)),
            8..16 => ("2 to 6 files of a capture", captures::play(specimen, false, random)),
            16..18 => {
                let archive = &self.archives[random.index(self.archives.len())];
                ("an archive", archives::play(archive, random))
            }
            _ => {
                let set = &self.sets[random.index(self.sets.len())];
                ("ACPI tables", tables::play(set, self.folder.path(), random))
            }
        }
    }
}

/// How often each class was met, by what was damaged and by the kind of damage.
#[derive(Default)]
struct Counts {
    rows: BTreeMap<&'static str, BTreeMap<Class, u64>>,
    damages: BTreeMap<&'static str, BTreeMap<Class, u64>>,
    failures: Vec<(u64, String)>,
}

impl Counts {
    fn add(&mut self, number: u64, subject: &'static str, verdict: Verdict) {
        *self.rows.entry(subject).or_default().entry(verdict.class).or_default() += 1;
        if let Some(damage) = verdict.damage {
            *self.damages.entry(damage.name()).or_default().entry(verdict.class).or_default() += 1;
        }
        if verdict.class.is_failure() {
            self.failures.push((number, format!("{}: {}", verdict.class.name(), verdict.detail)));
        }
    }

    fn table(&self) -> String {
        let mut total: BTreeMap<Class, u64> = BTreeMap::new();
        for (class, count) in self.rows.values().flatten() {
            *total.entry(*class).or_default() += count;
        }
        let mut text = table("what was damaged", &self.rows);
        text.push_str(&row("all", &total));
        text + "\n" + &table("one file of a capture", &self.damages)
    }
}

fn table(head: &str, rows: &BTreeMap<&'static str, BTreeMap<Class, u64>>) -> String {
    let names: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
    let mut text =
        format!("| {head} | machines | {} |\n|---|---:{}|\n", names.join(" | "), "|---:".repeat(names.len()));
    rows.iter().for_each(|(name, counts)| text.push_str(&row(name, counts)));
    text
}

fn row(name: &str, counts: &BTreeMap<Class, u64>) -> String {
    let each: Vec<String> =
        Class::ALL.iter().map(|class| counts.get(class).copied().unwrap_or(0).to_string()).collect();
    format!("| {name} | {} | {} |\n", counts.values().sum::<u64>(), each.join(" | "))
}

/// Plays the draws from `first` on and prints their table.
///
/// # Errors
/// A crash, a hang, or a value that changed silently.
pub fn run(machines: u64, first: u64, seed: u64) -> Result<()> {
    let subjects = Subjects::new(MOST_PACKED)?;
    println!(
        "{machines} machines from {first}, seed {seed}: {} captures, {} archives, {} sets of tables\n",
        subjects.specimens.len(),
        subjects.archives.len(),
        subjects.sets.len()
    );
    // The words of a panic are part of the verdict.
    std::panic::set_hook(Box::new(|_| ()));
    let counts = play_all(&subjects, machines, first, seed);
    let _ = std::panic::take_hook();
    println!("{}", counts.table());
    for (number, failure) in counts.failures.iter().take(MOST_SHOWN) {
        println!("machine {number}: {failure}");
    }
    if counts.failures.is_empty() {
        return Ok(());
    }
    bail!("{} of {machines} machines: a crash, a hang or a silent change", counts.failures.len())
}

/// Plays on every CPU. A machine that hangs is counted and ends the campaign, since its thread cannot be ended.
fn play_all(subjects: &Subjects, machines: u64, first: u64, seed: u64) -> Counts {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(first);
    let working: Vec<Mutex<Option<(u64, Instant)>>> = (0..threads).map(|_| Mutex::new(None)).collect();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for slot in &working {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= first + machines {
                        break;
                    }
                    *slot.lock().expect("no thread panics with the lock") = Some((number, Instant::now()));
                    let (subject, verdict) = subjects.play(seed, number);
                    *slot.lock().expect("no thread panics with the lock") = None;
                    if sender.send((number, subject, verdict)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut counts = Counts::default();
        loop {
            match receiver.recv_timeout(Duration::from_secs(1)) {
                Ok((number, subject, verdict)) => counts.add(number, subject, verdict),
                Err(mpsc::RecvTimeoutError::Disconnected) => return counts,
                Err(mpsc::RecvTimeoutError::Timeout) => stop_if_hung(&working, &counts),
            }
        }
    })
}

/// Ends the program when a machine takes too long.
fn stop_if_hung(working: &[Mutex<Option<(u64, Instant)>>], counts: &Counts) {
    for slot in working {
        let at = *slot.lock().expect("no thread panics with the lock");
        if let Some((number, _)) = at.filter(|(_, start)| start.elapsed() > LONGEST) {
            println!("{}\nmachine {number} hangs: no answer within {} s", counts.table(), LONGEST.as_secs());
            std::process::exit(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small share of the campaign: enough to see that a rule was lost, in seconds.
    #[test]
    fn no_damage_crashes_hangs_or_changes_a_value_silently() {
        let subjects = Subjects::new(8_000).unwrap();
        let mut counts = Counts::default();
        for number in 0..300 {
            let (subject, verdict) = subjects.play(13, number);
            counts.add(number, subject, verdict);
        }
        assert!(counts.failures.is_empty(), "{:#?}", counts.failures);
        let met = |class: Class| counts.rows.values().any(|row| row.contains_key(&class));
        assert!(met(Class::Named) && met(Class::Refused) && met(Class::Plausible), "{}", counts.table());
    }

    #[test]
    fn the_machine_made_by_hand_has_no_oddities_and_every_form() {
        let specimen = Specimen::new("two nodes", synthetic::two_nodes());
        assert_eq!(specimen.machine.oddities, []);
        assert_eq!(redundancy::contradictions(&specimen.files), [].into());
        let known: Vec<usize> = specimen.targets.iter().map(|(place, _)| *place).collect();
        let missing: Vec<&str> = (0..grammar::GRAMMAR.len())
            .filter(|place| !known.contains(place))
            .map(|place| grammar::GRAMMAR[place].0)
            .collect();
        assert_eq!(missing, [""; 0]);
    }
}
