//! The journal of `nodewise balance` (`nodewise.balance/1`): a line of JSON for each step, written before the step.
//!
//! An action has a number. Its first line names the process by number, start and boot; lines with old and new CPUs of
//! threads, and with the pages of each batch, come before these change. A last line without a line feed was cut while it
//! was written, so its step was never begun, and it is left out.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::Bytes;
use nodewise_machine::NodeId;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::quote;
use serde::{Deserialize, Serialize};

use crate::mapped::MemoryKind;
use crate::mapped::saved::Run;

/// The schema of each line.
pub const SCHEMA: &str = "nodewise.balance/1";
/// The need of an action that a user asked `advise` for.
pub const ADVISED: &str = "advised";

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub schema: String,
    pub at_unix_s: u64,
    /// The boot in which it was written.
    pub boot: String,
    /// The action; `None` in lines about none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    #[serde(flatten)]
    pub entry: Entry,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// A dry run's plan, which is printed and not kept.
    Plan(PlanEntry),
    /// An action begins.
    Began(Began),
    /// CPUs of threads are about to change.
    Affinity { threads: Vec<ThreadChange> },
    /// Pages are about to move; those that follow one another are one run.
    Batch { runs: Vec<RunEntry> },
    /// The action has ended.
    Ended { ending: String, moved_bytes: u64, failed_bytes: u64 },
    /// Its effect.
    Judged {
        verdict: String,
        before_share: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        after_share: Option<f64>,
    },
    /// Another hand has changed the process: it is left alone from now on.
    HandedBack { pid: u32, why: String },
    /// A block of an evaluation has ended; printed and not kept.
    Block(BlockEntry),
    /// An evaluation has ended; printed and not kept.
    Evaluated(EvaluatedEntry),
    /// The user wants the CPUs of its threads to stay.
    KeptCpus {},
    /// Parts of the action were taken back.
    Undone {
        threads: bool,
        pages: bool,
        #[serde(default)]
        moved_bytes: u64,
        #[serde(default)]
        failed_bytes: u64,
    },
}

/// A block of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockEntry {
    pub pair: u32,
    /// `on` or `off`.
    pub switch: String,
    /// The compared value; missing where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The part of the CPU time that went to remote memory, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_share: Option<f64>,
    /// The part of the time in which programs waited for memory, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_stall_share: Option<f64>,
    pub moved_bytes: u64,
    /// Why the value is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The end of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvaluatedEntry {
    /// `helps`, `harms` or `no difference detected`.
    pub verdict: String,
    /// `command` or `remote_share`.
    pub metric: String,
    pub pairs: u32,
    pub planned_pairs: u32,
    pub seed: u64,
    /// Medians of the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<f64>,
    /// On to off: a ratio of a command's values, a difference of shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<f64>,
    /// 95 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The smallest improvement that would be found with 80 % power, on the scale of `effect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    pub moved_bytes: u64,
    pub moved_back_bytes: u64,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEntry {
    pub pid: u32,
    pub started_ticks: u64,
    pub name: String,
}

/// The first line of an action: the process, the evidence and the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Began {
    pub process: ProcessEntry,
    /// Ticks since boot: threads and children that are younger have their CPUs from this action.
    pub at_ticks: u64,
    /// Addresses of the program; another program in the same process has others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(flatten)]
    pub action: ActionEntry,
}

/// The plan of an action, and the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionEntry {
    /// `stranded`, `scattered` or [`ADVISED`].
    pub need: String,
    /// The part of the memory, from 0 to 1.
    pub need_share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_share: Option<f64>,
    pub pages: Vec<PagesEntry>,
    pub most_bytes: u64,
    /// Nodes that pages are spread over, instead of `pages`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spread: Vec<u32>,
    /// The CPUs that threads are narrowed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
}

/// Pages that leave a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesEntry {
    pub from: u32,
    pub to: u32,
    pub size_bytes: u64,
}

/// The CPUs of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadChange {
    pub tid: u32,
    pub started_ticks: u64,
    pub before: String,
    pub after: String,
}

/// Pages that follow one another and are on one node: the address in hexadecimal, the length in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEntry {
    pub start: String,
    pub length: u64,
    pub page_bytes: u64,
    pub kind: String,
    pub node: u32,
}

/// A dry run's plan.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct PlanEntry {
    pub windows: u32,
    pub window_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    pub actions: Vec<PlannedEntry>,
    pub waiting: Vec<WaitingEntry>,
    pub left_alone: Vec<LeftAloneEntry>,
    pub small_processes: usize,
    pub examined_processes: usize,
}

/// An action of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedEntry {
    pub process: ProcessEntry,
    #[serde(flatten)]
    pub action: ActionEntry,
}

/// A process that waits for an action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitingEntry {
    pub process: ProcessEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub need: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub need_share: Option<f64>,
    pub hold: String,
    pub why: String,
}

/// A process that is left alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftAloneEntry {
    pub process: ProcessEntry,
    pub size_bytes: u64,
    pub reason: String,
    pub why: String,
}

impl Line {
    /// Writes it, with a line feed.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string(self).expect("numbers and texts are JSON");
        text.push('\n');
        text
    }
}

/// Reads the lines of a journal that are whole and known, and says which others there are.
pub fn parse_known(text: &str) -> (Vec<Line>, Vec<String>) {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let (mut lines, mut bad) = (Vec::new(), Vec::new());
    for (number, text) in (1u32..).zip(whole.lines()) {
        match parsed(number, text) {
            Ok(line) => lines.push(line),
            Err(why) => bad.push(why),
        }
    }
    (lines, bad)
}

fn parsed(number: u32, text: &str) -> Result<Line, String> {
    let wrong = || format!("line {number} is {}: expected a line of {SCHEMA}", quote(&shortened(text)));
    serde_json::from_str::<Line>(text).ok().filter(|line| line.schema == SCHEMA).ok_or_else(wrong)
}

/// Reads a journal.
///
/// # Errors
/// The first line that is none of a journal, with its number.
pub fn parse(text: &str) -> Result<Vec<Line>, String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    (1..).zip(whole.lines()).map(|(number, text)| parsed(number, text)).collect()
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// An action that was begun and not taken back.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenAction {
    pub id: u64,
    pub boot: String,
    pub began: Began,
    /// CPUs of threads that may have been changed.
    pub threads: Vec<ThreadChange>,
    /// Pages that may have moved, and where they were.
    pub runs: Vec<Run>,
    /// Whether the CPUs of its threads are to stay.
    pub keeps_cpus: bool,
}

/// The actions that were not taken back, the oldest first.
pub fn open_actions(lines: &[Line]) -> Vec<OpenAction> {
    let mut open: BTreeMap<u64, OpenAction> = BTreeMap::new();
    for line in lines {
        let Some(id) = line.id else { continue };
        match (&line.entry, open.get_mut(&id)) {
            (Entry::Began(began), _) => {
                let (began, boot) = (began.clone(), line.boot.clone());
                open.insert(
                    id,
                    OpenAction { id, boot, began, threads: Vec::new(), runs: Vec::new(), keeps_cpus: false },
                );
            }
            (Entry::KeptCpus {}, Some(action)) => action.keeps_cpus = true,
            (Entry::Affinity { threads }, Some(action)) => action.threads.extend(threads.iter().cloned()),
            (Entry::Batch { runs }, Some(action)) => {
                action.runs.extend(runs.iter().filter_map(RunEntry::to_run));
            }
            (Entry::Undone { threads, pages, .. }, Some(action)) => {
                if *threads {
                    action.threads.clear();
                }
                if *pages {
                    action.runs.clear();
                }
                if *threads && *pages {
                    open.remove(&id);
                }
            }
            _ => {}
        }
    }
    open.into_values().collect()
}

/// The numbers that actions have.
pub fn ids(lines: &[Line]) -> BTreeSet<u64> {
    lines.iter().filter_map(|line| line.id).collect_set()
}

impl RunEntry {
    /// The entry of a run.
    pub fn new(run: &Run) -> Self {
        Self {
            start: format!("{:x}", run.start),
            length: run.length,
            page_bytes: run.page_size.get(),
            kind: run.kind.word().to_owned(),
            node: run.node.number(),
        }
    }

    /// The run; `None` where the entry names none.
    pub fn to_run(&self) -> Option<Run> {
        use nodewise_machine::id::Id as _;
        let page_size = Some(Bytes::new(self.page_bytes)).filter(|size| size.get().is_power_of_two())?;
        let start = u64::from_str_radix(&self.start, 16).ok()?;
        let end = start.checked_add(self.length)?;
        let is_whole = start % page_size.get() == 0 && end % page_size.get() == 0 && self.length > 0;
        let node = Some(self.node).filter(|node| is_whole && *node < NodeId::LIMIT).map(NodeId::new)?;
        Some(Run { start, length: self.length, page_size, kind: MemoryKind::from_word(&self.kind)?, node })
    }
}

#[cfg(test)]
mod tests;
