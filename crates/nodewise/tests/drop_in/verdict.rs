//! Playing drawn lines with the original and with ours, and the outcome.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::{Value, json};

use crate::draw::{self, KNOWN, Line};
use crate::original::Original;
use crate::play::{Answers, Outcome, Stage, TOO_LONG};
use crate::reading::{Nodes, Reading};
use crate::{mask, rules};

/// Which lines are played.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many.
    pub lines: u64,
    /// The facts that they are drawn from.
    pub seed: u64,
    /// The number of the first.
    pub first: u64,
}

impl Plan {
    /// How many lines that are, with those that are known: they precede the first that is drawn.
    pub fn all(&self) -> u64 {
        let known = if self.first == 0 { KNOWN.len() as u64 } else { 0 };
        known + self.lines
    }

    /// The lines, with their names.
    fn lines(&self) -> impl Iterator<Item = (String, Line)> + use<> {
        let (seed, first, lines) = (self.seed, self.first, self.lines);
        let known = (0..).map_while(draw::known).zip(0_u64..).filter(move |_| first == 0);
        let known = known.map(|(line, place)| (format!("known line {place}"), line));
        let drawn =
            (first..first + lines).map(move |number| (format!("line {number}"), draw::line(seed, number)));
        known.chain(drawn)
    }
}

/// The outcome of the lines.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// How many lines were played or refused.
    pub lines: u64,
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
    /// Answers that differ by a rule, in words. A guest does not hand them out.
    pub covered: Vec<String>,
}

/// Why a line has no answer.
const ENDLESS: &str = "neither the original nor ours ends within a minute";

/// How often an answer is asked for again that is about a machine that moves on.
const ATTEMPTS: u32 = 4;

/// Plays lines here.
pub fn play(plan: Plan, original: &Original) -> Result<Verdict, String> {
    played(plan, original, Path::new(env!("CARGO_BIN_EXE_nodewise")), &|_| ())
}

/// Plays lines with a nodewise; `report` gets the verdict on the lines so far behind each.
pub fn played(
    plan: Plan,
    original: &Original,
    nodewise: &Path,
    report: &dyn Fn(&Verdict),
) -> Result<Verdict, String> {
    let stage = Stage::new(nodewise, original).map_err(|error| format!("/dev/shm: {error}"))?;
    let mut verdict = Verdict { release: original.release.clone(), ..Verdict::default() };
    let nodes = Nodes::read();
    for (name, line) in plan.lines() {
        verdict.lines += 1;
        if let Some(why) = stage.refuses(&line) {
            *verdict.refused.entry(why.to_owned()).or_default() += 1;
            continue;
        }
        for answers in [Answers::Strict, Answers::Plain] {
            let pair = pair(&stage, &line, answers)?;
            if pair.0.status == TOO_LONG && pair.1.status == TOO_LONG {
                *verdict.refused.entry(ENDLESS.to_owned()).or_default() += 1;
                continue;
            }
            let reading = nodes.as_ref().and_then(|nodes| nodes.reading(&line));
            let reading = reading.filter(|_| answers == Answers::Plain && pair.0 != pair.1);
            let reread = reading.map(|reading| reread(&stage, reading)).transpose()?;
            verdict.add(&name, &line, answers, &pair, reread.as_ref());
        }
        report(&verdict);
    }
    Ok(verdict)
}

/// The effect of the original with a rewritten line.
struct Reread {
    rule: &'static str,
    /// The rewritten line and its outcome; `None` where it names no node.
    played: Option<(Line, Outcome)>,
}

fn reread(stage: &Stage, reading: Reading) -> Result<Reread, String> {
    let play = |line: Line| {
        let outcome = stage.play(&line, Answers::Original).map_err(|error| format!("{line}: {error}"))?;
        Ok::<_, String>((line.clone(), mask::masked(&line, outcome)))
    };
    Ok(Reread { rule: reading.rule, played: reading.line.map(play).transpose()? })
}

impl Reread {
    /// The rule, where the original does with the rewritten line what ours does, but for other rules.
    fn rule(&self, ours: &Outcome) -> Option<&'static str> {
        let same = match &self.played {
            Some((line, outcome)) => {
                outcome == ours || rules::find(line, Answers::Plain, outcome, ours).is_some()
            }
            None => {
                ours.status == 1
                    && (ours.err.ends_with("Invalid argument\n") || ours.err.ends_with("<usage>"))
            }
        };
        same.then_some(self.rule)
    }
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
    fn add(
        &mut self,
        name: &str,
        line: &Line,
        answers: Answers,
        (original, ours): &(Outcome, Outcome),
        reread: Option<&Reread>,
    ) {
        if original == ours {
            self.same += 1;
            return;
        }
        let mut difference = difference(name, line, answers, original, ours);
        let by_outcome = rules::find(line, answers, original, ours);
        match by_outcome.or_else(|| reread?.rule(ours)) {
            Some(rule) => {
                *self.by_rule.entry(rule.to_owned()).or_default() += 1;
                self.covered.push(format!("{rule}: {difference}"));
            }
            None => {
                if let Some((line, outcome)) = reread.and_then(|reread| reread.played.as_ref()) {
                    difference += &format!("  as {line}\n{}", indented(&format!("{outcome:?}")));
                }
                self.wrong.push(difference);
            }
        }
    }

    /// As a document, for a guest to hand out.
    pub fn json(&self) -> Value {
        json!({
            "release": self.release, "same": self.same, "by_rule": self.by_rule, "refused": self.refused,
            "wrong": self.wrong, "lines": self.lines,
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
            lines: document["lines"].as_u64()?,
            covered: Vec::new(),
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differ: u64 = self.by_rule.values().sum();
        let all = self.same + differ + self.wrong.len() as u64;
        writeln!(
            f,
            "beside {}: {} lines, {} of {all} answers are the same, {differ} differ by a rule, {} without one",
            self.release,
            self.lines,
            self.same,
            self.wrong.len()
        )?;
        self.by_rule.iter().try_for_each(|(rule, count)| writeln!(f, "{count:>6} {rule}"))?;
        self.refused.iter().try_for_each(|(why, count)| writeln!(f, "{count:>6} not played: {why}"))
    }
}

/// The parts in which two outcomes differ.
fn difference(name: &str, line: &Line, answers: Answers, original: &Outcome, ours: &Outcome) -> String {
    let parts = [
        ("status", original.status.to_string(), ours.status.to_string()),
        ("stdout", original.out.clone(), ours.out.clone()),
        ("stderr", original.err.clone(), ours.err.clone()),
        ("effects", original.effects.clone(), ours.effects.clone()),
    ];
    let mut text = format!("{name} ({answers:?}): {line}\n");
    for (part, original, ours) in parts.into_iter().filter(|(_, original, ours)| original != ours) {
        text += &format!("  {part} of the original\n{}  ours\n{}", indented(&original), indented(&ours));
    }
    text
}

fn indented(text: &str) -> String {
    text.split_inclusive('\n').map(|line| format!("    {}\n", line.escape_debug())).collect()
}
