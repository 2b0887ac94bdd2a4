//! `nodewise.diff/1`: the difference between two machines.

use std::time::UNIX_EPOCH;

use nodewise_machine::{Machine, Origin};
use serde::Serialize;
use serde_json::Value;

use super::pretty;
use crate::digest::diff::{Diff, DiffExtent, Difference, FactValue, Side, Subjects, UnknownFact};

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    a: SideJson,
    b: SideJson,
    equal: bool,
    /// Whether facts that change by themselves were compared, too.
    everything: bool,
    groups: Vec<GroupJson>,
    differences: Vec<DifferenceJson>,
    unknown: Vec<UnknownJson>,
}

#[derive(Serialize)]
struct SideJson {
    /// `live`, `capture`, `firmware` or `spec`.
    origin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_at_unix_s: Option<u64>,
}

#[derive(Serialize)]
struct GroupJson {
    group: &'static str,
    compared: usize,
    differing: usize,
}

/// The things that a fact is about; none of these fields for the machine as a whole.
#[derive(Default, Serialize)]
struct SubjectsJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<Vec<[u32; 2]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<Vec<String>>,
}

#[derive(Serialize)]
struct DifferenceJson {
    group: &'static str,
    fact: String,
    #[serde(flatten)]
    subjects: SubjectsJson,
    a: Value,
    b: Value,
}

#[derive(Serialize)]
struct UnknownJson {
    group: &'static str,
    fact: String,
    #[serde(flatten)]
    subjects: SubjectsJson,
    known_of: &'static str,
}

/// Writes it.
pub fn diff(diff: &Diff<'_>) -> String {
    let tallies = diff.tallies.iter();
    pretty(&Document {
        schema: "nodewise.diff/1",
        a: side(diff.a),
        b: side(diff.b),
        equal: diff.is_equal(),
        everything: diff.extent == DiffExtent::Everything,
        groups: tallies
            .map(|(group, tally)| GroupJson {
                group: group.word(),
                compared: tally.compared,
                differing: tally.differing,
            })
            .collect(),
        differences: diff.differences.iter().map(difference).collect(),
        unknown: diff.unknown.iter().map(unknown).collect(),
    })
}

fn side(machine: &Machine) -> SideJson {
    let (origin, name) = match &machine.origin {
        Origin::Live => ("live", None),
        Origin::Capture(name) => ("capture", Some(name)),
        Origin::Firmware(name) => ("firmware", Some(name)),
        Origin::Spec(name) => ("spec", Some(name)),
    };
    let read_at = machine.read_at.and_then(|moment| moment.duration_since(UNIX_EPOCH).ok());
    SideJson { origin, name: name.cloned(), read_at_unix_s: read_at.map(|since| since.as_secs()) }
}

fn subjects(subjects: &Subjects) -> SubjectsJson {
    let none = SubjectsJson::default();
    match subjects {
        Subjects::Machine => none,
        Subjects::Nodes(nodes) => SubjectsJson { nodes: Some(nodes.to_string()), ..none },
        Subjects::Cpus(cpus) => SubjectsJson { cpus: Some(cpus.to_string()), ..none },
        Subjects::Pairs(pairs) => {
            let pairs = pairs.iter().map(|(from, to)| [from.number(), to.number()]);
            SubjectsJson { pairs: Some(pairs.collect()), ..none }
        }
        Subjects::Names(names) => SubjectsJson { names: Some(names.clone()), ..none },
    }
}

/// A value as scripts read it: a subject that does not exist is `false`, one that does `true`.
fn value(value: &FactValue) -> Value {
    match value {
        FactValue::Absent => Value::Bool(false),
        FactValue::Present => Value::Bool(true),
        FactValue::Switch(on) => Value::Bool(*on),
        FactValue::Number(number) => Value::from(*number),
        FactValue::Size(size) => Value::from(size.get()),
        FactValue::Cpus(cpus) => Value::String(cpus.to_string()),
        FactValue::Nodes(nodes) => Value::String(nodes.to_string()),
        FactValue::Text(text) => Value::String(text.clone()),
    }
}

fn difference(difference: &Difference) -> DifferenceJson {
    DifferenceJson {
        group: difference.fact.group.word(),
        fact: difference.fact.word.to_string(),
        subjects: subjects(&difference.subjects),
        a: value(&difference.a),
        b: value(&difference.b),
    }
}

fn unknown(unknown: &UnknownFact) -> UnknownJson {
    UnknownJson {
        group: unknown.fact.group.word(),
        fact: unknown.fact.word.to_string(),
        subjects: subjects(&unknown.subjects),
        known_of: match unknown.known_of {
            Side::A => "a",
            Side::B => "b",
        },
    }
}
