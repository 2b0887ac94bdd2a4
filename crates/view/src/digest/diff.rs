//! The difference between two machines, or between two moments of one.
//!
//! Both machines are walked side by side, and each fact is compared where it is met, so that equal ones cost nothing.
//! A fact that only one side knows is not a difference: it is listed as unknown. Equal changes of many nodes, CPUs,
//! pairs of nodes or devices are one difference with many subjects.
//!
//! It is a digest and not a part of the crate `machine`, because it decides what readers see: which facts count, their
//! order, names and units, and what is shown together.

mod devices;
mod nodes;
mod platform;
mod processors;

use std::borrow::Cow;
use std::collections::BTreeMap;

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuId, CpuSet, Machine, NodeId, NodeSet};

/// Which facts are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffExtent {
    /// Facts that stay until a person changes them.
    Lasting,
    /// Those that change by themselves, too: free memory, the current speed of links.
    Everything,
}

/// A group of facts, in the order in which they matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactGroup {
    Firmware,
    Kernel,
    Nodes,
    Distances,
    /// Latency and bandwidth as the firmware declares them.
    Attributes,
    MemorySlots,
    Cpus,
    Caches,
    Devices,
    Settings,
    /// CPUs and nodes that the process which looked may use.
    Limits,
    Oddities,
}

impl FactGroup {
    /// The word for scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Firmware => "firmware",
            Self::Kernel => "kernel",
            Self::Nodes => "nodes",
            Self::Distances => "distances",
            Self::Attributes => "attributes",
            Self::MemorySlots => "memory-slots",
            Self::Cpus => "cpus",
            Self::Caches => "caches",
            Self::Devices => "devices",
            Self::Settings => "settings",
            Self::Limits => "limits",
            Self::Oddities => "oddities",
        }
    }

    /// The heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Firmware => "Firmware",
            Self::Kernel => "Kernel",
            Self::Nodes => "Nodes",
            Self::Distances => "Distances",
            Self::Attributes => "Firmware attributes",
            Self::MemorySlots => "Memory slots",
            Self::Cpus => "CPUs",
            Self::Caches => "Caches",
            Self::Devices => "Devices",
            Self::Settings => "Settings",
            Self::Limits => "Limits",
            Self::Oddities => "Oddities",
        }
    }
}

/// The name of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactName {
    pub group: FactGroup,
    /// The word for scripts, with the unit: `memory_bytes`.
    pub word: Cow<'static, str>,
    /// The words for people. Foreign text.
    pub label: Cow<'static, str>,
    /// The unit behind a number, for people; empty for most.
    pub unit: &'static str,
}

/// The value of a fact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactValue {
    /// The subject does not exist.
    Absent,
    /// It exists, and nothing more is said by this fact.
    Present,
    Switch(bool),
    Number(u64),
    Size(Bytes),
    /// CPUs; compared without those that are not online on both sides.
    Cpus(CpuSet),
    Nodes(NodeSet),
    /// Foreign text.
    Text(String),
}

impl FactValue {
    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Either machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    A,
    B,
}

/// The thing that a fact is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Machine,
    Node(NodeId),
    Cpu(CpuId),
    Pair(NodeId, NodeId),
    Named(String),
}

/// The things that have a difference in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subjects {
    Machine,
    Nodes(NodeSet),
    Cpus(CpuSet),
    /// Pairs of nodes: from, to.
    Pairs(Vec<(NodeId, NodeId)>),
    /// Devices, slots, parameters, oddities. Foreign text.
    Names(Vec<String>),
}

impl Subjects {
    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Machine => 1,
            Self::Nodes(nodes) => nodes.len(),
            Self::Cpus(cpus) => cpus.len(),
            Self::Pairs(pairs) => pairs.len(),
            Self::Names(names) => names.len(),
        }
    }

    fn add(&mut self, subject: Subject) {
        match (self, subject) {
            (Self::Nodes(nodes), Subject::Node(node)) => {
                nodes.insert(node);
            }
            (Self::Cpus(cpus), Subject::Cpu(cpu)) => {
                cpus.insert(cpu);
            }
            (Self::Pairs(pairs), Subject::Pair(from, to)) => pairs.push((from, to)),
            (Self::Names(names), Subject::Named(name)) => names.push(name),
            // Subjects of one kind come together, and the machine is only one.
            _ => {}
        }
    }
}

impl From<&Subject> for Subjects {
    fn from(subject: &Subject) -> Self {
        match subject {
            Subject::Machine => Self::Machine,
            Subject::Node(_) => Self::Nodes(NodeSet::new()),
            Subject::Cpu(_) => Self::Cpus(CpuSet::new()),
            Subject::Pair(..) => Self::Pairs(Vec::new()),
            Subject::Named(_) => Self::Names(Vec::new()),
        }
    }
}

/// A fact whose value differs, for all things with the same two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub fact: FactName,
    pub subjects: Subjects,
    pub a: FactValue,
    pub b: FactValue,
}

/// A fact that one side does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFact {
    pub fact: FactName,
    pub subjects: Subjects,
    /// The side that knows it.
    pub known_of: Side,
}

/// A fact about one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineFact {
    pub fact: FactName,
    /// The one thing that it is about.
    pub subject: Subjects,
    pub value: FactValue,
}

/// Every fact that is known about a machine, in the words of its difference from another, by group. Those that change by
/// themselves are among them.
pub fn facts(machine: &Machine) -> Vec<MachineFact> {
    let mut walk = Walk::new(machine, machine, DiffExtent::Everything);
    walk.facts = Some(Vec::new());
    walk.compare();
    let mut facts = walk.facts.unwrap_or_default();
    facts.order_by_key(|fact| fact.fact.group);
    facts
}

/// How much of a group differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GroupTally {
    /// Facts that both sides know, each node, CPU and pair counted.
    pub compared: usize,
    /// Those of them that differ.
    pub differing: usize,
}

impl GroupTally {
    /// Whether nothing in the group is equal.
    pub const fn is_wholly_different(&self) -> bool {
        self.compared > 1 && self.differing == self.compared
    }
}

/// Everything in which two machines differ.
#[derive(Clone, Debug)]
pub struct Diff<'m> {
    pub a: &'m Machine,
    pub b: &'m Machine,
    pub extent: DiffExtent,
    /// By group, then by fact, then by first subject.
    pub differences: Vec<Difference>,
    pub unknown: Vec<UnknownFact>,
    pub tallies: BTreeMap<FactGroup, GroupTally>,
}

impl<'m> Diff<'m> {
    /// Compares two machines.
    pub fn new(a: &'m Machine, b: &'m Machine, extent: DiffExtent) -> Self {
        let mut walk = Walk::new(a, b, extent);
        walk.compare();
        walk.finish()
    }

    /// Whether every fact that both sides know is equal.
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty()
    }

    /// How many facts both sides know.
    pub fn compared(&self) -> usize {
        self.tallies.values().map(|tally| tally.compared).sum()
    }

    /// The differences of a group.
    pub fn in_group(&self, group: FactGroup) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(move |difference| difference.fact.group == group)
    }
}

/// Facts in the order in which they were met.
#[derive(Default)]
struct Catalogue {
    facts: Vec<FactName>,
    places: BTreeMap<(FactGroup, String), usize>,
}

impl Catalogue {
    fn place(&mut self, fact: FactName) -> usize {
        let next = self.facts.len();
        let place = *self.places.entry((fact.group, fact.word.clone().into_owned())).or_insert(next);
        if place == next {
            self.facts.push(fact);
        }
        place
    }
}

/// The kind of a subject, so that each difference has subjects of one kind.
type SubjectKind = std::mem::Discriminant<Subject>;

/// The text that a thing has as a fact.
type TextOf<T> = fn(&T) -> &Option<String>;
/// The number that a thing has as a fact.
type NumberOf<T> = fn(&T) -> Option<u32>;

/// A walk along both machines.
struct Walk<'m> {
    a: &'m Machine,
    b: &'m Machine,
    extent: DiffExtent,
    /// CPUs that are online on both sides; `None` where a side names no CPUs.
    common: Option<CpuSet>,
    group: FactGroup,
    catalogue: Catalogue,
    found: BTreeMap<(usize, FactValue, FactValue), Vec<(SubjectKind, Subjects)>>,
    unknown: BTreeMap<(usize, Side), Vec<(SubjectKind, Subjects)>>,
    tallies: BTreeMap<FactGroup, GroupTally>,
    /// The facts of A, where a walk lists them instead of comparing.
    facts: Option<Vec<MachineFact>>,
}

/// Adds a subject to those of its kind.
fn add(all: &mut Vec<(SubjectKind, Subjects)>, subject: Subject) {
    let kind = std::mem::discriminant(&subject);
    let at = all.iter().position(|(other, _)| *other == kind).unwrap_or_else(|| {
        all.push((kind, Subjects::from(&subject)));
        all.len() - 1
    });
    all[at].1.add(subject);
}

impl<'m> Walk<'m> {
    fn new(a: &'m Machine, b: &'m Machine, extent: DiffExtent) -> Self {
        let is_known = !a.cpus.is_empty() && !b.cpus.is_empty();
        Self {
            a,
            b,
            extent,
            common: is_known.then(|| a.online_cpus().intersection(&b.online_cpus())),
            group: FactGroup::Firmware,
            catalogue: Catalogue::default(),
            found: BTreeMap::new(),
            unknown: BTreeMap::new(),
            tallies: BTreeMap::new(),
            facts: None,
        }
    }

    /// Walks along all groups.
    fn compare(&mut self) {
        platform::compare(self);
        nodes::compare(self);
        processors::compare(self);
        devices::compare(self);
    }

    /// Begins a group.
    fn begin(&mut self, group: FactGroup) {
        self.group = group;
    }

    /// Compares a fact.
    fn fact(
        &mut self,
        word: impl Into<Cow<'static, str>>,
        label: impl Into<Cow<'static, str>>,
        subject: Subject,
        values: [Option<FactValue>; 2],
    ) {
        self.fact_in("", word, label, subject, values);
    }

    /// Compares a fact with a unit.
    fn fact_in(
        &mut self,
        unit: &'static str,
        word: impl Into<Cow<'static, str>>,
        label: impl Into<Cow<'static, str>>,
        subject: Subject,
        values: [Option<FactValue>; 2],
    ) {
        let name = |group| FactName { group, word: word.into(), label: label.into(), unit };
        if let Some(facts) = &mut self.facts {
            let [Some(value), _] = values else { return };
            let mut one = Subjects::from(&subject);
            one.add(subject);
            facts.push(MachineFact { fact: name(self.group), subject: one, value });
            return;
        }
        match values {
            [None, None] => {}
            [Some(a), Some(b)] => {
                let tally = self.tallies.entry(self.group).or_default();
                tally.compared += 1;
                if !self.is_same(&a, &b) {
                    self.tallies.entry(self.group).or_default().differing += 1;
                    let place = self.catalogue.place(name(self.group));
                    add(self.found.entry((place, a, b)).or_default(), subject);
                }
            }
            [a, _] => {
                let side = if a.is_some() { Side::A } else { Side::B };
                let place = self.catalogue.place(name(self.group));
                add(self.unknown.entry((place, side)).or_default(), subject);
            }
        }
    }

    /// Lists a fact that one side does not know.
    fn known_of(&mut self, side: Side, word: &'static str, label: &'static str, subject: Subject) {
        let values = match side {
            Side::A => [Some(FactValue::Present), None],
            Side::B => [None, Some(FactValue::Present)],
        };
        self.fact(word, label, subject, values);
    }

    /// Compares whether something exists.
    fn existence(&mut self, word: &'static str, label: &'static str, subject: Subject, there: [bool; 2]) {
        let value = |there| Some(if there { FactValue::Present } else { FactValue::Absent });
        self.fact(word, label, subject, there.map(value));
    }

    /// Whether both sides have any of some things; where only one has, it is a fact that the other does not know.
    fn both_have(&mut self, word: &'static str, label: &'static str, counts: [usize; 2]) -> bool {
        let value = |count: usize| (count > 0).then_some(FactValue::Number(count as u64));
        match counts {
            [0, _] | [_, 0] => {
                self.fact(word, label, Subject::Machine, counts.map(value));
                false
            }
            _ => true,
        }
    }

    fn is_same(&self, a: &FactValue, b: &FactValue) -> bool {
        match (a, b, &self.common) {
            (FactValue::Cpus(a), FactValue::Cpus(b), Some(common)) => {
                a.intersection(common) == b.intersection(common)
            }
            _ => a == b,
        }
    }

    fn finish(self) -> Diff<'m> {
        let Self { a, b, extent, catalogue, found, unknown, tallies, .. } = self;
        let name = |place: usize| catalogue.facts[place].clone();
        let mut differences: Vec<(usize, Difference)> = Vec::new();
        for ((place, a, b), subjects) in found {
            let difference =
                |subjects| Difference { fact: name(place), subjects, a: a.clone(), b: b.clone() };
            differences.extend(subjects.into_iter().map(|(_, subjects)| (place, difference(subjects))));
        }
        differences.sort_by_cached_key(|(place, difference)| {
            (difference.fact.group, *place, first(&difference.subjects))
        });
        let mut missing: Vec<(usize, UnknownFact)> = Vec::new();
        for ((place, known_of), subjects) in unknown {
            let fact = |subjects| UnknownFact { fact: name(place), subjects, known_of };
            missing.extend(subjects.into_iter().map(|(_, subjects)| (place, fact(subjects))));
        }
        missing.order_by_key(|(place, unknown)| (unknown.known_of, unknown.fact.group, *place));
        Diff {
            a,
            b,
            extent,
            differences: differences.into_iter().map(|(_, difference)| difference).collect(),
            unknown: missing.into_iter().map(|(_, unknown)| unknown).collect(),
            tallies,
        }
    }
}

/// The first of the subjects.
fn first(subjects: &Subjects) -> Subject {
    let first = match subjects {
        Subjects::Machine => None,
        Subjects::Nodes(nodes) => nodes.first().map(Subject::Node),
        Subjects::Cpus(cpus) => cpus.first().map(Subject::Cpu),
        Subjects::Pairs(pairs) => pairs.first().map(|(from, to)| Subject::Pair(*from, *to)),
        Subjects::Names(names) => names.first().cloned().map(Subject::Named),
    };
    first.unwrap_or(Subject::Machine)
}

/// Things by key: that of A and that of B, where each has one.
fn side_by_side<'t, K: Ord, V: ?Sized>(
    a: impl IntoIterator<Item = (K, &'t V)>,
    b: impl IntoIterator<Item = (K, &'t V)>,
) -> BTreeMap<K, [Option<&'t V>; 2]> {
    let mut all: BTreeMap<K, [Option<&'t V>; 2]> = BTreeMap::new();
    for (key, value) in a {
        all.entry(key).or_default()[0].get_or_insert(value);
    }
    for (key, value) in b {
        all.entry(key).or_default()[1].get_or_insert(value);
    }
    all
}

/// Names that are taken so far: the second `DIMM1` is `DIMM1 #2`.
#[derive(Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    fn unique(&mut self, name: String) -> String {
        let count = self.0.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name} #{count}") }
    }
}
