//! The journal of a study: a file that grows by a line with every run, so that nothing measured is
//! lost and a study can go on where it stopped.
//!
//! The first line says what is studied, the others hold runs in the order in which they ended
//! ([`SCHEMA`]). Each line is written at once and forced to the disk before the next run begins. What
//! a crash leaves of a last line is taken off when the study goes on; anything else that is not as it
//! was written is refused, with the line and what was expected there.
//!
//! Nothing that was concluded is kept: a study that goes on takes its runs in again, one by one, and
//! concludes the same from them ([`Ledger`]).

mod entry;
mod line;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::ControlFlow;

use nodewise_machine::printable::{io_words, printable, quote};
use rustix::fs::{FlockOperation, flock};

use crate::experiment::Ledger;
use crate::metric::Metric;
use crate::schedule::{Block, Slot};
use crate::study::{Plan, Record};
use entry::{Entry, RunJson};
use nodewise_machine::conditions::Conditions;
use nodewise_machine::placement::HugePages;
use nodewise_stats::Direction;

pub use entry::SCHEMA;

/// The largest journal that is read: a run takes about a kilobyte.
const MOST_READ: u64 = 1 << 30;

/// The subject of a study: two journals with equal heads can be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The seed of the order of runs.
    pub seed: u64,
    /// Everything else that has to be the same for runs to be comparable, by its name.
    pub facts: BTreeMap<String, String>,
}

impl Head {
    /// Describes the study of a plan under these conditions; `more` are facts that neither holds.
    ///
    /// How many rounds are run, and which runs are repeated, may differ between sittings.
    pub fn from_plan(plan: &Plan, conditions: &Conditions, more: &[(&str, String)]) -> Self {
        let mut facts = BTreeMap::new();
        let mut add = |name: &str, value: Option<String>| {
            facts.extend(value.map(|value| (name.to_owned(), value)));
        };
        add("the command", Some(words(&conditions.command)));
        add("the metric", Some(metric_words(&plan.metric)));
        let also: Vec<String> = plan.also.iter().map(metric_words).collect();
        add("what else is shown", Some(words(&also)).filter(|_| !also.is_empty()));
        // Journals of other rules are refused by these words: their arms would drop out in other blocks.
        let race =
            plan.race.map(|rules| format!("margin {}, error {}, bets on signs", rules.margin, rules.error));
        let race = race.map(|race| race + if plan.crossing { ", then crosses" } else { "" });
        add("the race", race.or(Some("none".to_owned())));
        for arm in plan.arms() {
            add(&format!("arm {}", arm.id.number()), Some(arm_words(arm)));
        }
        let Conditions { kernel, architecture, cpu_model, hypervisor, governors, .. } = conditions;
        add("the kernel", kernel.as_ref().map(|kernel| kernel.text().to_owned()));
        add("the architecture", architecture.clone());
        add("the CPU", cpu_model.clone());
        add("the hypervisor", hypervisor.clone());
        add("the governor", Some(governors.join(", ")).filter(|text| !text.is_empty()));
        add("the setting of transparent huge pages", conditions.transparent_hugepage.clone());
        add("NUMA balancing", conditions.numa_balancing.map(|setting| setting.to_string()));
        add("the allowed CPUs", conditions.allowed_cpus.as_ref().map(ToString::to_string));
        add("the allowed nodes", conditions.allowed_nodes.as_ref().map(ToString::to_string));
        for (name, value) in more {
            add(name, Some(value.clone()));
        }
        Self { seed: plan.seed, facts }
    }

    /// The first thing in which a journal with this head is not of the study with another.
    fn difference(&self, other: &Self) -> Option<Difference> {
        let text = |facts: &BTreeMap<String, String>, name: &str| {
            facts.get(name).map_or_else(|| "missing".to_owned(), |value| quote(value))
        };
        let names = self.facts.keys().chain(other.facts.keys());
        let mut different = names.filter(|name| self.facts.get(*name) != other.facts.get(*name));
        if let Some(name) = different.next() {
            return Some(Difference {
                what: printable(name).into_owned(),
                there: text(&self.facts, name),
                here: text(&other.facts, name),
            });
        }
        (self.seed != other.seed).then(|| Difference {
            what: "the seed".to_owned(),
            there: self.seed.to_string(),
            here: other.seed.to_string(),
        })
    }
}

/// Words of a command line that can be distinguished: with quotes where they hold blanks or quotes.
pub fn words(words: &[String]) -> String {
    let word = |word: &String| match word.chars().any(|c| c.is_whitespace() || "'\"\\".contains(c)) {
        false if !word.is_empty() => word.clone(),
        _ => format!("{word:?}"),
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn metric_words(metric: &Metric) -> String {
    match (metric, metric.direction()) {
        (Metric::Wall, _) => "wall".to_owned(),
        (Metric::CpuTime, _) => "cpu".to_owned(),
        (Metric::MaxRss, _) => "rss".to_owned(),
        (Metric::Counted(counter), _) => counter.name().to_owned(),
        (Metric::Printed(pattern, Direction::LowerIsBetter), _) => format!("less of {}", pattern.text()),
        (Metric::Printed(pattern, Direction::HigherIsBetter), _) => format!("more of {}", pattern.text()),
    }
}

/// Everything about an arm but its number.
fn arm_words(arm: &crate::executor::Arm) -> String {
    let placement = &arm.placement;
    let policy = placement.policy.as_ref().map(|policy| format!("; policy {policy}"));
    let cpus = placement.cpus.as_ref().map(|cpus| format!("; CPUs {cpus}"));
    let huge = placement.huge.map(|huge| match huge {
        HugePages::Transparent(huge) => format!("; huge pages {huge:?}"),
        HugePages::Pool => "; huge pages of the pool".to_owned(),
    });
    let environment = arm.environment.iter().map(|(name, value)| format!("; {name}={value}"));
    let threads = arm.threads.map(|threads| format!("; {threads} threads"));
    let parts = [policy, cpus, huge, threads].into_iter().flatten().chain(environment);
    arm.name.clone() + &parts.collect::<String>()
}

/// One thing in which two studies differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub what: String,
    pub there: String,
    pub here: String,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// It cannot be read or written.
    #[error("cannot {what} the journal: {}", io_words(.why))]
    File { what: &'static str, why: io::Error },
    #[error("the journal is in use by another nodewise")]
    InUse,
    /// It is a device, a pipe or the like.
    #[error("the journal is not an ordinary file")]
    NoFile,
    /// It is too large to be one.
    #[error("the journal is larger than 1 GiB: expected about a kilobyte for every run")]
    TooLarge,
    /// A line is not as it was written.
    #[error("line {line} of the journal: {}", printable(.expected))]
    Line {
        /// Which, from 1.
        line: usize,
        expected: String,
    },
    /// It holds the runs of another study.
    #[error("the journal is of another study: {} is {} there and {} here", .0.what, .0.there, .0.here)]
    Different(Difference),
    /// A run is not the one that comes next.
    #[error("run {run} of the journal is of {there}: expected {here}, as the seed says")]
    OutOfOrder {
        /// Which run, from 1.
        run: usize,
        there: String,
        here: String,
    },
}

/// The contents of a journal.
#[derive(Debug, Default)]
pub struct Contents {
    /// The subject of the study; `None` while nothing is written.
    pub head: Option<Head>,
    /// Whether the journal was begun when races did not go on with crosses.
    pub is_older: bool,
    pub records: VecDeque<Record>,
    /// How many bytes are whole lines; what is behind them was cut by a crash.
    pub whole: u64,
}

/// Reads the text of a journal. A last line that is not whole is left out.
///
/// # Errors
/// The first line that is not one of a journal.
pub fn read(bytes: &[u8]) -> Result<Contents, JournalError> {
    let mut contents = Contents::default();
    let mut rest = bytes;
    for number in 1.. {
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { break };
        let (line, behind) = (&rest[..end], &rest[end + 1..]);
        let fail = |expected: String| JournalError::Line { line: number, expected };
        let added = std::str::from_utf8(line)
            .map_err(|_| "expected UTF-8".to_owned())
            .and_then(|line| line::unseal(line).map_err(str::to_owned))
            .and_then(|object| {
                serde_json::from_str::<Entry>(&object).map_err(|error| format!("expected an entry: {error}"))
            })
            .and_then(|entry| contents.add(entry));
        match added {
            Ok(()) => {}
            // The disk may have grown the file before it had what belongs there.
            Err(_) if behind.is_empty() && contents.head.is_some() => return Ok(contents),
            Err(expected) => return Err(fail(expected)),
        }
        contents.whole += end as u64 + 1;
        rest = behind;
    }
    // What has never been a journal is not to be written over.
    if contents.head.is_none() && !std::str::from_utf8(rest).is_ok_and(line::is_cut) {
        let expected = format!("expected the first line of a journal ({SCHEMA})");
        return Err(JournalError::Line { line: 1, expected });
    }
    Ok(contents)
}

/// The text of a journal with these runs; those that were interrupted are left out.
///
/// # Errors
/// A number that JSON has no words for.
pub fn write<'a>(head: &Head, records: impl IntoIterator<Item = &'a Record>) -> Result<String, io::Error> {
    let runs = records.into_iter().filter_map(RunJson::from_record).map(|run| Entry::Run(Box::new(run)));
    std::iter::once(Entry::Study(head.into())).chain(runs).map(|entry| sealed(&entry)).collect()
}

/// An entry as a line with its end.
fn sealed(entry: &Entry) -> Result<String, io::Error> {
    Ok(line::seal(&serde_json::to_string(entry)?) + "\n")
}

impl Contents {
    fn add(&mut self, entry: Entry) -> Result<(), String> {
        match (entry, &self.head) {
            (Entry::Study(study), None) => {
                self.is_older = study.is_older();
                self.head = Some(study.head()?);
            }
            (Entry::Study(_), Some(_)) => return Err("expected a run: the head is there already".to_owned()),
            (_, None) => return Err(format!("expected the first line of a journal ({SCHEMA})")),
            (Entry::Sitting { .. }, Some(_)) => {}
            (Entry::Run(run), Some(_)) => self.records.push_back(run.record()?),
        }
        Ok(())
    }
}

/// A journal that is open for a study.
#[derive(Debug)]
pub struct Journal {
    file: File,
    head: Option<Head>,
    is_older: bool,
    past: VecDeque<Record>,
    blocks: u32,
    taken: usize,
    failure: Option<JournalError>,
}

impl Drop for Journal {
    /// A program that another thread is just starting has a copy of the descriptor until it runs, and would
    /// hold the lock that long.
    fn drop(&mut self) {
        flock(&self.file, FlockOperation::Unlock).ok();
    }
}

impl Journal {
    /// Reads a journal, which may be empty, from a file that is open for reading and appending. It stays
    /// locked for others.
    ///
    /// # Errors
    /// A file that cannot be used, is in use, or is not a journal.
    pub fn over(mut file: File) -> Result<Self, JournalError> {
        let fail = |what| move |why| JournalError::File { what, why };
        if !file.metadata().map_err(fail("look at"))?.is_file() {
            return Err(JournalError::NoFile);
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(JournalError::InUse),
            Err(error) => return Err(fail("lock")(error.into())),
        }
        let mut bytes = Vec::new();
        let read_bytes = (&mut file).take(MOST_READ + 1).read_to_end(&mut bytes).map_err(fail("read"))?;
        if read_bytes as u64 > MOST_READ {
            return Err(JournalError::TooLarge);
        }
        let Contents { head, is_older, records, whole } = read(&bytes)?;
        if whole < bytes.len() as u64 {
            file.set_len(whole).map_err(fail("take the cut line off"))?;
        }
        file.seek(SeekFrom::End(0)).map_err(fail("read"))?;
        let blocks = records.iter().map(|record| record.block.number()).max().unwrap_or(0);
        Ok(Self { file, head, is_older, past: records, blocks, taken: 0, failure: None })
    }

    /// The seed of the study that it holds; `None` for a new one.
    pub fn seed(&self) -> Option<u64> {
        self.head.as_ref().map(|head| head.seed)
    }

    /// Whether its race may go on with crosses. One that began when there were none stays as it was: it is
    /// the race that its first line describes.
    pub fn may_cross(&self) -> bool {
        !self.is_older
    }

    /// How many runs of earlier sittings are still to be taken in.
    pub fn past(&self) -> usize {
        self.past.len()
    }

    /// Begins a sitting, at this time in seconds since 1970, by this version of nodewise.
    ///
    /// # Errors
    /// A journal of another study, and one that cannot be written.
    pub fn begin(&mut self, head: &Head, unix_s: u64, version: Option<&str>) -> Result<(), JournalError> {
        match &self.head {
            Some(there) => {
                if let Some(difference) = there.difference(head) {
                    return Err(JournalError::Different(difference));
                }
            }
            None => {
                self.append(&Entry::Study(head.into()))?;
                self.head = Some(head.clone());
            }
        }
        self.append(&Entry::Sitting { began_unix_s: unix_s, nodewise: version.map(str::to_owned) })
    }

    /// The error while a study was conducted, if any.
    pub fn failure(&mut self) -> Option<JournalError> {
        self.failure.take()
    }

    /// Writes a line in one piece and waits until the disk has it.
    fn append(&mut self, entry: &Entry) -> Result<(), JournalError> {
        let fail = |why| JournalError::File { what: "write", why };
        let line = sealed(entry).map_err(fail)?;
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data()).map_err(fail)
    }
}

impl Ledger for Journal {
    fn recall(&mut self, block: Block, slot: Slot) -> ControlFlow<(), Option<Record>> {
        let Some(record) = self.past.pop_front() else { return ControlFlow::Continue(None) };
        self.taken += 1;
        if (record.block, record.slot) != (block, slot) {
            let (there, here) = (place_words(record.block, record.slot), place_words(block, slot));
            self.failure = Some(JournalError::OutOfOrder { run: self.taken, there, here });
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(Some(record))
    }

    fn blocks(&self) -> u32 {
        self.blocks
    }

    fn keep(&mut self, record: &Record) -> ControlFlow<()> {
        let Some(entry) = RunJson::from_record(record) else { return ControlFlow::Continue(()) };
        match self.append(&Entry::Run(Box::new(entry))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

fn place_words(block: Block, slot: Slot) -> String {
    format!("arm {} in {block}, time {}", slot.arm.number(), slot.replicate + 1)
}

#[cfg(test)]
mod tests;
