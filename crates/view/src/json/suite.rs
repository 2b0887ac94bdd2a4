//! `nodewise.suite/1`: a session of a suite with every sample. Written, and read back to be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nodewise_experiment::executor::Residency;
use nodewise_experiment::suite::definition::Definition;
use nodewise_experiment::suite::parse::MOST_BYTES;
use nodewise_experiment::suite::session::{ArmRecord, CaseRecord, End, Sample, Session, Skipped};
use nodewise_machine::id::Id as _;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, NodeId};
use nodewise_stats::Direction;
use serde::{Deserialize, Serialize};

use super::conditions::ConditionsJson;
use super::pretty;
use super::reading::Saved;
use crate::digest::change::direction_name;
use crate::digest::compare::end_name;

/// The schema of the document.
pub const SCHEMA: &str = "nodewise.suite/1";

/// More than any suite has, for documents that are read.
const MOST_CASES: usize = 400;
const MOST_PLACEMENTS: usize = 64;
const MOST_ROUNDS: u32 = 200;
const MOST_THREADS: u32 = 8192;
const MOST_SETTINGS: usize = 100;
const MOST_PROGRAMS: usize = 10_000;
const LONGEST_NAME: usize = 200;
const LONGEST_TEXT: usize = 10_000;

/// Writes a session as JSON, indented, with a line end.
pub fn suite(session: &Session) -> String {
    pretty(&Document::from_session(session))
}

/// Reads a session that [`suite`] has written.
///
/// # Errors
/// What is wrong and where, fit to be shown.
pub fn read(text: &str) -> Result<Session, String> {
    let document: Document = Saved::from_json(text)?.contents(SCHEMA)?;
    document.read()
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: String,
    suite: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(default)]
    conditions: ConditionsJson,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    programs: Vec<ProgramJson>,
    #[serde(default)]
    seed: u64,
    rounds: u32,
    end: String,
    took_s: f64,
    placements: Vec<String>,
    benchmarks: Vec<CaseJson>,
    #[serde(default)]
    skipped: Vec<SkippedJson>,
}

/// A program that benchmarks need, with the package that it is of.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramJson {
    program: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseJson {
    name: String,
    threads: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    unit: String,
    better: String,
    memory_traffic: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<DefinitionJson>,
    arms: Vec<ArmJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefinitionJson {
    command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prepare: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prepare_each: Option<String>,
    metric: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    inputs: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArmJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages_bytes: Option<BTreeMap<u32, u64>>,
    samples: Vec<SampleJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleJson {
    round: u32,
    replicate: u8,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    steal_share: Option<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SkippedJson {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
    why: String,
}

impl Document {
    fn from_session(session: &Session) -> Self {
        let skipped = |one: &Skipped| SkippedJson {
            name: one.benchmark.clone(),
            threads: one.threads,
            why: one.why.clone(),
        };
        Self {
            schema: SCHEMA.to_owned(),
            suite: session.suite.clone(),
            origin: session.origin.clone(),
            conditions: ConditionsJson::from_conditions(&session.conditions),
            settings: session.settings.clone(),
            programs: ProgramJson::all(session),
            seed: session.seed,
            rounds: session.rounds,
            end: end_name(session.end).to_owned(),
            took_s: session.took.as_secs_f64(),
            placements: session.placements.clone(),
            benchmarks: session.cases.iter().map(CaseJson::from_case).collect(),
            skipped: session.skipped.iter().map(skipped).collect(),
        }
    }

    fn read(self) -> Result<Session, String> {
        bounded("placements", self.placements.len(), 1, MOST_PLACEMENTS)?;
        bounded("benchmarks", self.benchmarks.len(), 0, MOST_CASES)?;
        bounded("skipped benchmarks", self.skipped.len(), 0, MOST_CASES)?;
        bounded("settings", self.settings.len(), 0, MOST_SETTINGS)?;
        for (name, value) in &self.settings {
            text("a setting", name, LONGEST_NAME)?;
            text("a setting", value, LONGEST_TEXT)?;
        }
        bounded("programs", self.programs.len(), 0, MOST_PROGRAMS)?;
        for one in &self.programs {
            text("a program", &one.program, LONGEST_NAME)?;
            text("a version", one.version.as_deref().unwrap_or_default(), LONGEST_TEXT)?;
        }
        self.placements.iter().try_for_each(|name| text("a placement", name, LONGEST_NAME))?;
        text("suite", &self.suite, LONGEST_NAME)?;
        text("origin", self.origin.as_deref().unwrap_or_default(), LONGEST_TEXT)?;
        let took = Duration::try_from_secs_f64(self.took_s)
            .map_err(|_| format!("took_s is {}: expected a time", self.took_s))?;
        let placements = self.placements.len();
        let cases: Vec<CaseRecord> =
            self.benchmarks.into_iter().map(|case| case.read(placements)).collect::<Result<_, _>>()?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = cases.iter().find(|case| !seen.insert((&case.benchmark, case.threads))) {
            return Err(format!(
                "{} with {} threads is listed twice",
                quote(&twice.benchmark),
                twice.threads
            ));
        }
        Ok(Session {
            suite: self.suite,
            origin: self.origin,
            conditions: self.conditions.read(),
            settings: self.settings,
            tools: self.programs.into_iter().map(|one| (one.program, one.version)).collect_map(),
            seed: self.seed,
            rounds: self.rounds,
            end: end(&self.end)?,
            took,
            placements: self.placements,
            cases,
            skipped: self.skipped.into_iter().map(SkippedJson::read).collect::<Result<_, _>>()?,
        })
    }
}

impl ProgramJson {
    pub(super) fn all(session: &Session) -> Vec<Self> {
        let one = |(program, version): (&String, &Option<String>)| Self {
            program: program.clone(),
            version: version.clone(),
        };
        session.tools.iter().map(one).collect()
    }
}

impl CaseJson {
    fn from_case(case: &CaseRecord) -> Self {
        Self {
            name: case.benchmark.clone(),
            threads: case.threads,
            unit: case.unit.clone(),
            better: direction_name(case.direction).to_owned(),
            memory_traffic: case.memory_traffic,
            definition: case.definition.as_ref().map(DefinitionJson::from_definition),
            arms: case.arms.iter().map(ArmJson::from_arm).collect(),
        }
    }

    fn read(self, placements: usize) -> Result<CaseRecord, String> {
        text("a benchmark", &self.name, LONGEST_NAME)?;
        text("a unit", &self.unit, LONGEST_NAME)?;
        let of = quote(&self.name).clone();
        if self.arms.len() != placements {
            return Err(format!(
                "{of} has {} arms: expected {placements}, one per placement",
                self.arms.len()
            ));
        }
        Ok(CaseRecord {
            benchmark: self.name,
            threads: threads(self.threads)?,
            unit: self.unit,
            direction: match self.better.as_str() {
                "lower" => Direction::LowerIsBetter,
                "higher" => Direction::HigherIsBetter,
                other => return Err(format!("{of}: better is {}: expected lower or higher", quote(other))),
            },
            memory_traffic: self.memory_traffic,
            definition: self.definition.map(DefinitionJson::read).transpose()?,
            arms: self
                .arms
                .into_iter()
                .map(|arm| arm.read().map_err(|error| format!("{of}: {error}")))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl DefinitionJson {
    fn from_definition(definition: &Definition) -> Self {
        let Definition { command, prepare, prepare_each, metric, inputs } = definition.clone();
        Self { command, prepare, prepare_each, metric, inputs }
    }

    fn read(self) -> Result<Definition, String> {
        let Self { command, prepare, prepare_each, metric, inputs } = self;
        bounded("inputs", inputs.len(), 0, MOST_SETTINGS)?;
        let texts = [Some(&command), Some(&metric), prepare.as_ref(), prepare_each.as_ref()];
        let of_inputs = inputs.iter().flat_map(|(name, source)| [name, source]);
        for one in texts.into_iter().flatten().chain(of_inputs) {
            // As long as the file of a suite can be.
            text("a definition", one, MOST_BYTES)?;
        }
        Ok(Definition { command, prepare, prepare_each, metric, inputs })
    }
}

impl ArmJson {
    fn from_arm(arm: &ArmRecord) -> Self {
        let sample = |sample: &Sample| {
            let Sample { round, replicate, value, steal_share } = *sample;
            SampleJson { round, replicate, value, steal_share }
        };
        let pages = |seen: &Residency| {
            seen.by_node.iter().map(|(node, size)| (node.number(), size.get())).collect_map()
        };
        Self {
            failed: arm.failed.clone(),
            pages_bytes: arm.residency.as_ref().map(pages),
            samples: arm.samples.iter().map(sample).collect(),
        }
    }

    fn read(self) -> Result<ArmRecord, String> {
        text("failed", self.failed.as_deref().unwrap_or_default(), LONGEST_TEXT)?;
        // No more than two runs in a round, so this bounds the samples too.
        let mut seen = BTreeSet::new();
        let mut samples = Vec::new();
        for sample in self.samples {
            let sample = sample.read()?;
            if !seen.insert((sample.round, sample.replicate)) {
                return Err(format!("run {} of round {} is listed twice", sample.replicate, sample.round));
            }
            samples.push(sample);
        }
        Ok(ArmRecord {
            samples,
            failed: self.failed,
            residency: self.pages_bytes.map(residency).transpose()?,
        })
    }
}

impl SampleJson {
    fn read(self) -> Result<Sample, String> {
        let Self { round, replicate, value, steal_share } = self;
        if !(1..=MOST_ROUNDS).contains(&round) || replicate > 1 {
            return Err(format!(
                "run {replicate} of round {round}: expected run 0 or 1 of a round up to {MOST_ROUNDS}"
            ));
        }
        // Ratios of what lies farther apart than this are infinite.
        if !(1e-100..1e100).contains(&value) {
            return Err(format!("a value is {value}: expected a number above 0"));
        }
        if steal_share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err("a steal_share is not between 0 and 1".to_owned());
        }
        Ok(Sample { round, replicate, value, steal_share })
    }
}

impl SkippedJson {
    fn read(self) -> Result<Skipped, String> {
        text("a benchmark", &self.name, LONGEST_NAME)?;
        text("why", &self.why, LONGEST_TEXT)?;
        Ok(Skipped { benchmark: self.name, threads: self.threads.map(threads).transpose()?, why: self.why })
    }
}

fn residency(pages: BTreeMap<u32, u64>) -> Result<Residency, String> {
    // The sum of all pages of all placements has to fit its type.
    let most = Bytes::from_gib(1 << 20).get();
    let one = |(node, size): (u32, u64)| {
        let right = node < NodeId::LIMIT && size <= most;
        right.then(|| (NodeId::new(node), Bytes::new(size))).ok_or_else(|| {
            format!(
                "pages_bytes: {size} on node {node}: expected a node below {} and at most {most}",
                NodeId::LIMIT
            )
        })
    };
    Ok(Residency { by_node: pages.into_iter().map(one).try_collect_map()? })
}

fn end(word: &str) -> Result<End, String> {
    let known = [End::Completed, End::Interrupted, End::BudgetSpent];
    let found = known.into_iter().find(|end| end_name(*end) == word);
    found.ok_or_else(|| format!("end is {}: expected completed, interrupted or budget_spent", quote(word)))
}

fn threads(threads: u32) -> Result<u32, String> {
    let right = (1..=MOST_THREADS).contains(&threads);
    right.then_some(threads).ok_or_else(|| format!("threads is {threads}: expected 1 to {MOST_THREADS}"))
}

fn bounded(what: &str, count: usize, least: usize, most: usize) -> Result<(), String> {
    let right = (least..=most).contains(&count);
    right.then_some(()).ok_or_else(|| format!("it has {count} {what}: expected {least} to {most}"))
}

fn text(what: &str, text: &str, most: usize) -> Result<(), String> {
    let right = text.len() <= most;
    right.then_some(()).ok_or_else(|| format!("{what} has {} bytes: expected at most {most}", text.len()))
}
