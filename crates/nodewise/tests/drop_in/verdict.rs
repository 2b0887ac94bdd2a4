//! Playing drawn lines with the original and with ours, and what came of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::{Value, json};

use crate::draw::{self, Line};
use crate::original::Original;
use crate::play::{Answers, Outcome, Stage};
use crate::{mask, rules};

/// Which lines are played.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many.
    pub lines: u64,
    /// What they are drawn from.
    pub seed: u64,
    /// The number of the first.
    pub first: u64,
}

/// What came of the lines.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The release of the original.
    pub release: String,
    /// Answers that are the same.
    pub same: u64,
    /// Answers that differ, by the rule that says why.
    pub by_rule: BTreeMap<String, u64>,
    /// Lines that were not played, by the reason.
    pub refused: BTreeMap<String, u64>,
    /// Answers that differ without a rule, in words.
    pub wrong: Vec<String>,
}

/// How often an answer is asked for again that is about a machine that moves on.
const ATTEMPTS: u32 = 4;

/// Plays lines here.
pub fn of(plan: Plan, original: &Original) -> Result<Verdict, String> {
    played(plan, original, Path::new(env!("CARGO_BIN_EXE_nodewise")))
}

/// Plays lines with a nodewise.
pub fn played(plan: Plan, original: &Original, nodewise: &Path) -> Result<Verdict, String> {
    let stage = Stage::new(nodewise, original).map_err(|error| format!("/dev/shm: {error}"))?;
    let mut verdict = Verdict { release: original.release.clone(), ..Verdict::default() };
    for number in plan.first..plan.first + plan.lines {
        let line = draw::line(plan.seed, number);
        if let Some(why) = stage.refuses(&line) {
            *verdict.refused.entry(why.to_owned()).or_default() += 1;
            continue;
        }
        for answers in [Answers::Strict, Answers::Plain] {
            verdict.add(number, &line, answers, &pair(&stage, &line, answers)?);
        }
    }
    Ok(verdict)
}

/// The original's outcome and ours, masked.
fn pair(stage: &Stage, line: &Line, answers: Answers) -> Result<(Outcome, Outcome), String> {
    let play = |answers| {
        let played = stage.play(line, answers).map_err(|error| format!("{line}: {error}"))?;
        Ok::<_, String>(mask::masked(line, played))
    };
    let mut outcomes = (play(Answers::Original)?, play(answers)?);
    for _ in 1..if mask::moves(line) { ATTEMPTS } else { 1 } {
        if outcomes.0 == outcomes.1 {
            break;
        }
        outcomes = (play(Answers::Original)?, play(answers)?);
    }
    Ok(outcomes)
}

impl Verdict {
    fn add(&mut self, number: u64, line: &Line, answers: Answers, (original, ours): &(Outcome, Outcome)) {
        if original == ours {
            self.same += 1;
        } else if let Some(rule) = rules::find(line, answers, original, ours) {
            *self.by_rule.entry(rule.to_owned()).or_default() += 1;
        } else {
            self.wrong.push(difference(number, line, answers, original, ours));
        }
    }

    /// As a document, for a guest to hand out.
    pub fn json(&self) -> Value {
        json!({
            "release": self.release, "same": self.same, "by_rule": self.by_rule, "refused": self.refused,
            "wrong": self.wrong,
        })
    }

    /// Of a guest's document.
    pub fn from_json(document: &Value) -> Option<Self> {
        let counts = |name: &str| {
            let counts = document[name].as_object()?.iter();
            counts.map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect::<Option<_>>()
        };
        let wrong = document["wrong"].as_array()?.iter();
        Some(Self {
            release: document["release"].as_str()?.to_owned(),
            same: document["same"].as_u64()?,
            by_rule: counts("by_rule")?,
            refused: counts("refused")?,
            wrong: wrong.filter_map(|text| text.as_str().map(str::to_owned)).collect(),
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differ: u64 = self.by_rule.values().sum();
        let all = self.same + differ + self.wrong.len() as u64;
        writeln!(
            f,
            "beside {}: {} of {all} answers are the same, {differ} differ by a rule, {} without one",
            self.release,
            self.same,
            self.wrong.len()
        )?;
        self.by_rule.iter().try_for_each(|(rule, count)| writeln!(f, "{count:>6} {rule}"))?;
        self.refused.iter().try_for_each(|(why, count)| writeln!(f, "{count:>6} not played: {why}"))
    }
}

/// The parts in which two outcomes differ.
fn difference(number: u64, line: &Line, answers: Answers, original: &Outcome, ours: &Outcome) -> String {
    let parts = [
        ("status", original.status.to_string(), ours.status.to_string()),
        ("stdout", original.out.clone(), ours.out.clone()),
        ("stderr", original.err.clone(), ours.err.clone()),
        ("effects", original.effects.clone(), ours.effects.clone()),
    ];
    let mut text = format!("line {number} ({answers:?}): {line}\n");
    for (part, original, ours) in parts.into_iter().filter(|(_, original, ours)| original != ours) {
        text += &format!("  {part} of the original\n{}  ours\n{}", indented(&original), indented(&ours));
    }
    text
}

fn indented(text: &str) -> String {
    text.split_inclusive('\n').map(|line| format!("    {}\n", line.escape_debug())).collect()
}
