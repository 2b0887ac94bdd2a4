//! The entries of a journal as JSON, and back.
//!
//! Types of their own, so that a change of the library's types does not change what lies on disks.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::policy::PolicyError;
use nodewise_machine::{Bytes, NodeCounters, NodeId};
use serde::{Deserialize, Serialize};

use super::Head;
use crate::evidence::{Counter, CpuTime, Evidence, Moves};
use crate::executor::{Ending, Residency, Run, Surroundings, Usage};
use crate::fidelity::Fidelity;
use crate::metric::MetricError;
use crate::schedule::{ArmId, Block, Slot};
use crate::study::Record;

/// The schema of a journal, in its first line.
pub const SCHEMA: &str = "nodewise.journal/2";

/// The schema before: its runs lack how far they ran as asked, and all numbers but the first. A study
/// that began with it goes on under its first line, and without crosses, which there were not then.
const BEFORE: &str = "nodewise.journal/1";

/// One line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Entry {
    /// The first: what is studied.
    Study(StudyJson),
    /// A sitting begins: the time, in seconds since 1970.
    Sitting {
        began_unix_s: u64,
        /// Which version of nodewise writes it, where that is noted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        nodewise: Option<String>,
    },
    Run(Box<RunJson>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StudyJson {
    schema: String,
    seed: u64,
    facts: BTreeMap<String, String>,
}

impl From<&Head> for StudyJson {
    fn from(head: &Head) -> Self {
        Self { schema: SCHEMA.to_owned(), seed: head.seed, facts: head.facts.clone() }
    }
}

impl StudyJson {
    /// Whether the study is of the schema before.
    pub fn is_older(&self) -> bool {
        self.schema == BEFORE
    }

    /// The head, or what was expected instead.
    pub fn head(self) -> Result<Head, String> {
        if ![SCHEMA, BEFORE].contains(&self.schema.as_str()) {
            return Err(format!("expected the schema {SCHEMA} or {BEFORE}, found {:?}", self.schema));
        }
        Ok(Head { seed: self.seed, facts: self.facts })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunJson {
    round: u32,
    place: u32,
    arm: u32,
    replicate: u8,
    began_ns: u64,
    set_aside: bool,
    ending: EndingJson,
    wall_ns: Option<u64>,
    printed: Option<f64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    also_printed: BTreeMap<String, f64>,
    usage: Option<UsageJson>,
    pages: Option<BTreeMap<u32, u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fidelity: Option<FidelityJson>,
    steal_share: Option<f64>,
    load: Option<f64>,
    cpu: Option<CpuJson>,
    own_ns: Option<u64>,
    allocations: BTreeMap<u32, AllocationsJson>,
    moves: MovesJson,
    events: BTreeMap<String, u64>,
    complaint: Option<String>,
}

/// How far a run ran as asked; sets and policies in the kernel's words.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FidelityJson {
    cpus: Option<f64>,
    policy: Option<f64>,
    nodes: Option<f64>,
    other_cpus: Option<String>,
    other_policy: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndingJson {
    Done,
    Code(i32),
    Signal(i32),
    NotStarted(String),
    TimedOutNs(u64),
    StoppedNs(u64),
    NoMatch(String),
    NotANumber(String),
    NotPositive(f64),
    Service(String),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageJson {
    user_ns: u64,
    system_ns: u64,
    max_rss_bytes: u64,
    minor_faults: u64,
    major_faults: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CpuJson {
    all_ns: u64,
    busy_ns: u64,
    stolen_ns: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AllocationsJson {
    hit: Option<u64>,
    miss: Option<u64>,
    foreign: Option<u64>,
    interleave_hit: Option<u64>,
    local: Option<u64>,
    other: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MovesJson {
    migrated: Option<u64>,
    failed: Option<u64>,
    balanced: Option<u64>,
    hints: Option<u64>,
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl RunJson {
    /// The entry of a record; `None` for an interrupted run, which is not kept.
    pub fn from_record(record: &Record) -> Option<Self> {
        let Record { block, place, slot, began, run, set_aside } = record;
        let Evidence { cpu, own, allocations, moves, events } = &run.evidence;
        Some(Self {
            round: block.number(),
            place: *place,
            arm: slot.arm.number(),
            replicate: slot.replicate,
            began_ns: ns(*began),
            set_aside: *set_aside,
            ending: EndingJson::from_ending(&run.ending)?,
            wall_ns: run.wall.map(ns),
            printed: run.printed,
            also_printed: run.also_printed.clone(),
            usage: run.usage.as_ref().map(UsageJson::from_usage),
            pages: run
                .residency
                .as_ref()
                .map(|seen| seen.by_node.iter().map(|(node, size)| (node.number(), size.get())).collect()),
            fidelity: run.fidelity.as_ref().map(FidelityJson::from_fidelity),
            steal_share: run.surroundings.steal_share,
            load: run.surroundings.load,
            cpu: cpu.map(|cpu| CpuJson {
                all_ns: ns(cpu.all),
                busy_ns: ns(cpu.busy),
                stolen_ns: cpu.stolen.map(ns),
            }),
            own_ns: own.map(ns),
            allocations: allocations.iter().map(|(node, a)| (node.number(), a.into())).collect_map(),
            moves: MovesJson {
                migrated: moves.migrated,
                failed: moves.failed,
                balanced: moves.balanced,
                hints: moves.hints,
            },
            events: events.iter().map(|(counter, count)| (counter.name().to_owned(), *count)).collect_map(),
            complaint: run.complaint.clone(),
        })
    }

    /// The record of an entry, or what was expected of it.
    pub fn record(self) -> Result<Record, String> {
        let block = if self.round == 0 { Block::WarmUp } else { Block::Measured(self.round) };
        let slot = Slot { arm: ArmId::new(self.arm), replicate: self.replicate };
        // A comparison takes logarithms, and only these have one.
        let mut printed = self.printed.iter().chain(self.also_printed.values());
        if printed.any(|printed| !(printed.is_finite() && *printed > 0.0)) {
            return Err("printed: expected a number above 0".to_owned());
        }
        let fidelity = self.fidelity.map(FidelityJson::fidelity).transpose()?;
        let mut events = BTreeMap::new();
        for (name, count) in self.events {
            let counter = Counter::named(&name).ok_or_else(|| {
                format!("events: expected {}, found {name:?}", Counter::ALL.map(Counter::name).join(", "))
            })?;
            events.insert(counter, count);
        }
        let evidence = Evidence {
            cpu: self.cpu.map(|cpu| CpuTime {
                all: Duration::from_nanos(cpu.all_ns),
                busy: Duration::from_nanos(cpu.busy_ns),
                stolen: cpu.stolen_ns.map(Duration::from_nanos),
            }),
            own: self.own_ns.map(Duration::from_nanos),
            allocations: self
                .allocations
                .iter()
                .map(|(node, a)| (NodeId::new(*node), a.into()))
                .collect_map(),
            moves: Moves {
                migrated: self.moves.migrated,
                failed: self.moves.failed,
                balanced: self.moves.balanced,
                hints: self.moves.hints,
            },
            events,
        };
        let run = Run {
            wall: self.wall_ns.map(Duration::from_nanos),
            printed: self.printed,
            also_printed: self.also_printed,
            fidelity,
            usage: self.usage.map(UsageJson::usage),
            residency: self.pages.map(|pages| Residency {
                by_node: pages
                    .into_iter()
                    .map(|(node, size)| (NodeId::new(node), Bytes::new(size)))
                    .collect_map(),
            }),
            surroundings: Surroundings { steal_share: self.steal_share, load: self.load },
            evidence,
            complaint: self.complaint,
            ..Run::ended(self.ending.ending())
        };
        let began = Duration::from_nanos(self.began_ns);
        Ok(Record { block, place: self.place, slot, began, run, set_aside: self.set_aside })
    }
}

impl FidelityJson {
    fn from_fidelity(fidelity: &Fidelity) -> Self {
        let Fidelity { cpus, policy, nodes, other_cpus, other_policy } = fidelity;
        Self {
            cpus: *cpus,
            policy: *policy,
            nodes: *nodes,
            other_cpus: other_cpus.as_ref().map(ToString::to_string),
            other_policy: other_policy.as_ref().map(ToString::to_string),
        }
    }

    fn fidelity(self) -> Result<Fidelity, String> {
        let cpus = self.cpus.map(share).transpose()?;
        let policy = self.policy.map(share).transpose()?;
        let nodes = self.nodes.map(share).transpose()?;
        let other_cpus = self.other_cpus.map(|text| text.parse()).transpose();
        let other_policy = self.other_policy.map(|text| text.parse()).transpose();
        Ok(Fidelity {
            cpus,
            policy,
            nodes,
            other_cpus: other_cpus.map_err(|error| format!("fidelity: {error}"))?,
            other_policy: other_policy.map_err(|error: PolicyError| format!("fidelity: {error}"))?,
        })
    }
}

/// A share as it was measured. Journals were written in which shares of several nodes had been added, and all
/// came to 1 and the last digit.
fn share(share: f64) -> Result<f64, String> {
    match share {
        0.0..=1.0 => Ok(share),
        _ if share > 1.0 && share <= 1.0 + 1e-9 => Ok(1.0),
        _ => Err("fidelity: expected shares from 0 to 1".to_owned()),
    }
}

impl EndingJson {
    fn from_ending(ending: &Ending) -> Option<Self> {
        Some(match ending {
            Ending::Done => Self::Done,
            Ending::Code(code) => Self::Code(*code),
            Ending::Signal(signal) => Self::Signal(*signal),
            Ending::NotStarted(why) => Self::NotStarted(why.clone()),
            Ending::TimedOut(limit) => Self::TimedOutNs(ns(*limit)),
            Ending::Stopped(time) => Self::StoppedNs(ns(*time)),
            Ending::NoMetric(MetricError::NoMatch { pattern }) => Self::NoMatch(pattern.clone()),
            Ending::NoMetric(MetricError::NotANumber { text }) => Self::NotANumber(text.clone()),
            Ending::NoMetric(MetricError::NotPositive { number }) => Self::NotPositive(*number),
            Ending::Service(what) => Self::Service(what.clone()),
            Ending::Interrupted => return None,
        })
    }

    fn ending(self) -> Ending {
        match self {
            Self::Done => Ending::Done,
            Self::Code(code) => Ending::Code(code),
            Self::Signal(signal) => Ending::Signal(signal),
            Self::NotStarted(why) => Ending::NotStarted(why),
            Self::TimedOutNs(limit) => Ending::TimedOut(Duration::from_nanos(limit)),
            Self::StoppedNs(time) => Ending::Stopped(Duration::from_nanos(time)),
            Self::NoMatch(pattern) => Ending::NoMetric(MetricError::NoMatch { pattern }),
            Self::NotANumber(text) => Ending::NoMetric(MetricError::NotANumber { text }),
            Self::Service(what) => Ending::Service(what),
            Self::NotPositive(number) => Ending::NoMetric(MetricError::NotPositive { number }),
        }
    }
}

impl UsageJson {
    fn from_usage(usage: &Usage) -> Self {
        Self {
            user_ns: ns(usage.user),
            system_ns: ns(usage.system),
            max_rss_bytes: usage.max_rss.get(),
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
        }
    }

    fn usage(self) -> Usage {
        Usage {
            user: Duration::from_nanos(self.user_ns),
            system: Duration::from_nanos(self.system_ns),
            max_rss: Bytes::new(self.max_rss_bytes),
            minor_faults: self.minor_faults,
            major_faults: self.major_faults,
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
        }
    }
}

impl From<&NodeCounters<Option<u64>>> for AllocationsJson {
    fn from(a: &NodeCounters<Option<u64>>) -> Self {
        let NodeCounters { hit, miss, foreign, interleave_hit, local, other } = *a;
        Self { hit, miss, foreign, interleave_hit, local, other }
    }
}

impl From<&AllocationsJson> for NodeCounters<Option<u64>> {
    fn from(a: &AllocationsJson) -> Self {
        let AllocationsJson { hit, miss, foreign, interleave_hit, local, other } = *a;
        Self { hit, miss, foreign, interleave_hit, local, other }
    }
}
