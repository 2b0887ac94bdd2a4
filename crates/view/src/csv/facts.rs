//! Facts of a machine, and those that differ between two, a line per fact and thing that it is about.

use nodewise_machine::Machine;

use super::quoted;
use crate::digest::diff::{self, Diff, FactName, FactValue, Side, Subjects};

/// Writes all facts of a machine. Their names are those of `diff`, with units.
pub fn machine(machine: &Machine) -> String {
    let mut text = String::from("group,fact,subject_kind,subject,value\n");
    for fact in diff::facts(machine) {
        for subject in subjects(&fact.subject) {
            line(&mut text, &fact.fact, subject, [&value(&fact.value)]);
        }
    }
    text
}

/// Writes the facts that differ, then those that only one side knows: `known_of` names it, and there are no values.
pub fn diff(diff: &Diff<'_>) -> String {
    let mut text = String::from("group,fact,subject_kind,subject,a,b,known_of\n");
    for difference in &diff.differences {
        let (a, b) = (value(&difference.a), value(&difference.b));
        for subject in subjects(&difference.subjects) {
            line(&mut text, &difference.fact, subject, [&a, &b, ""]);
        }
    }
    for unknown in &diff.unknown {
        let side = match unknown.known_of {
            Side::A => "a",
            Side::B => "b",
        };
        for subject in subjects(&unknown.subjects) {
            line(&mut text, &unknown.fact, subject, ["", "", side]);
        }
    }
    text
}

/// A kind of thing, and its name.
type NamedThing = (&'static str, String);

fn line<const N: usize>(text: &mut String, fact: &FactName, (kind, subject): NamedThing, values: [&str; N]) {
    let fields = [fact.group.word().to_owned(), quoted(&fact.word), kind.to_owned(), quoted(&subject)];
    text.push_str(&(fields.join(",") + "," + &values.join(",") + "\n"));
}

/// Each of the things; a pair of nodes is `FROM>TO`.
fn subjects(subjects: &Subjects) -> Vec<NamedThing> {
    match subjects {
        Subjects::Machine => vec![("machine", String::new())],
        Subjects::Nodes(nodes) => nodes.iter().map(|node| ("node", node.to_string())).collect(),
        Subjects::Cpus(cpus) => cpus.iter().map(|cpu| ("cpu", cpu.to_string())).collect(),
        Subjects::Pairs(pairs) => pairs.iter().map(|(from, to)| ("pair", format!("{from}>{to}"))).collect(),
        Subjects::Names(names) => names.iter().map(|name| ("name", name.clone())).collect(),
    }
}

/// A value as a field: a thing that does not exist is `false`, one that does `true`, as in JSON.
fn value(value: &FactValue) -> String {
    match value {
        FactValue::Absent => false.to_string(),
        FactValue::Present => true.to_string(),
        FactValue::Switch(on) => on.to_string(),
        FactValue::Number(number) => number.to_string(),
        FactValue::Size(size) => size.get().to_string(),
        FactValue::Cpus(cpus) => quoted(&cpus.to_string()),
        FactValue::Nodes(nodes) => quoted(&nodes.to_string()),
        FactValue::Text(text) => quoted(text),
    }
}

#[cfg(test)]
mod tests {
    use nodewise_machine::spec;

    use super::*;
    use crate::digest::diff::DiffExtent;

    #[test]
    fn facts_and_differences_have_the_same_names() {
        let [a, b] = ["2x(2c 1G); dist=21", "2x(2c 2G); dist=21"].map(|text| spec::machine(text).unwrap());
        let facts = machine(&a);
        for expected in [
            "nodes,cpus,node,1,2-3\n",
            "nodes,memory_bytes,node,0,1073741824\n",
            "distances,distance,pair,1>0,21\n",
            "cpus,package,cpu,3,1\n",
        ] {
            assert!(facts.contains(expected), "{expected}{facts}");
        }
        let differing = diff(&Diff::new(&a, &b, DiffExtent::Lasting));
        assert!(differing.contains("nodes,memory_bytes,node,1,1073741824,2147483648,\n"), "{differing}");
        let names = |text: &str| -> Vec<String> {
            text.lines().skip(1).map(|line| line.split(',').take(4).collect::<Vec<_>>().join(",")).collect()
        };
        let all = names(&facts);
        assert!(names(&differing).iter().all(|name| all.contains(name)), "{differing}{facts}");
    }
}
