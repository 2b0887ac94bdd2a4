//! A scenario that the model has played: what each step did, and what was different after it.
//!
//! Only what changed is kept, so that a scenario of many programs and steps stays small.

mod findings;
pub mod groups;

use std::collections::BTreeMap;
use std::time::SystemTime;

use nodewise_machine::check::node_names;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{NodeCounters, NodeId};
use nodewise_model::balancing::course::Pattern;
use nodewise_model::simulate::{
    Act, Backing, FilePart, GroupState, LocalAfter, Mapping, MemoryUse, Owner, Part, Placement, Simulation,
    Skipped, Step,
};
use nodewise_model::{Memory, Release, ZoneKind, ZoneState};

use super::walk::{Basis, size_of};
use findings::{ReportedStep, findings};
pub use findings::{TimelineFinding, TimelineFindingKind};

/// A step, and its outcome.
#[derive(Clone, Debug)]
pub struct Moment {
    /// When, in seconds from the beginning.
    pub at_s: f64,
    /// Whose step; empty where it is the system's.
    pub program: String,
    pub act: Act,
    pub step: Step,
    /// Bytes of a page.
    pub page: u64,
    /// The zones that have more or fewer free pages than before, as they are after it.
    pub zones: Vec<ZoneState>,
    /// The gains of the nodes' counters.
    pub counters: BTreeMap<NodeId, NodeCounters>,
    pub findings: Vec<TimelineFinding>,
}

/// A scenario that was played.
#[derive(Clone, Debug)]
pub struct Timeline {
    pub title: String,
    pub about: Option<String>,
    /// The machine, in words of whoever named it.
    pub machine: String,
    /// When that machine was read, where it says so.
    pub read_at: Option<SystemTime>,
    pub release: Release,
    /// Where the zones come from.
    pub basis: Basis,
    /// The memory before the first step.
    pub before: Memory,
    /// The memory after the last step.
    pub after: Memory,
    pub moments: Vec<Moment>,
    /// Who has memory after the last step.
    pub placements: BTreeMap<Owner, Placement>,
    /// The control groups after the last step.
    pub groups: BTreeMap<String, GroupState>,
    /// The programs in the order in which they appear, each at its largest: its pages by node.
    pub largest: Vec<(String, BTreeMap<NodeId, u64>)>,
    /// The least free pages that each node with memory had at any time.
    pub least_free: BTreeMap<NodeId, u64>,
    /// Where a program is in `largest`.
    places: BTreeMap<String, usize>,
    /// Free pages of the zones, and the counters, after the last step.
    free: Vec<u64>,
    counted: BTreeMap<NodeId, NodeCounters>,
}

impl Timeline {
    /// A timeline before its first step.
    pub fn new(title: &str, machine: &str, release: Release, basis: Basis, before: Memory) -> Self {
        let free = before.zones().iter().map(|zone| zone.free).collect();
        let least_free = before.nodes().iter().map(|node| (node, before.free_of(node))).collect_map();
        Self {
            title: title.to_owned(),
            about: None,
            machine: machine.to_owned(),
            read_at: None,
            release,
            basis,
            after: before.clone(),
            before,
            moments: Vec::new(),
            placements: BTreeMap::new(),
            groups: BTreeMap::new(),
            largest: Vec::new(),
            least_free,
            places: BTreeMap::new(),
            free,
            counted: BTreeMap::new(),
        }
    }

    /// The same with a word on what it is about.
    #[must_use]
    pub fn about(self, about: Option<String>) -> Self {
        Self { about, ..self }
    }

    /// The same with the time at which the machine was read.
    #[must_use]
    pub fn read_at(self, read_at: Option<SystemTime>) -> Self {
        Self { read_at, ..self }
    }

    /// The nodes that have memory.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.before.nodes().iter().collect()
    }

    /// Adds a step, with the memory after it.
    pub fn add(&mut self, at_s: f64, program: &str, act: Act, step: Step, memory: &Memory) {
        let old = self.free.iter().zip(memory.zones());
        let zones: Vec<ZoneState> =
            old.filter(|(old, new)| **old != new.free).map(|(_, new)| new.clone()).collect();
        self.free = memory.zones().iter().map(|zone| zone.free).collect();
        for node in zones.iter().map(|zone| zone.node) {
            self.lower(node, memory.free_of(node));
        }
        let counters = gained(&self.counted, memory.counters());
        self.counted.clone_from(memory.counters());
        for (owner, placement) in &step.changed {
            if let (Owner::Program(name), Some(placement)) = (owner, placement) {
                self.grow(name, &placement.nodes);
            }
        }
        for killed in &step.killed {
            killed.free.iter().for_each(|(node, free)| self.lower(*node, *free));
            self.grow(&killed.program, &killed.had.iter().copied().collect());
        }
        let findings = findings(&ReportedStep {
            at_s,
            program,
            act: &act,
            step: &step,
            memory,
            counters: &counters,
            release: self.release,
        });
        self.moments.push(Moment {
            at_s,
            program: program.to_owned(),
            act,
            step,
            page: memory.page_bytes(),
            zones,
            counters,
            findings,
        });
    }

    /// The same as everything is after its last step.
    #[must_use]
    pub fn ended(self, simulation: &Simulation) -> Self {
        let (placements, groups) = (simulation.placements(), simulation.groups());
        Self { after: simulation.memory().clone(), placements, groups, ..self }
    }

    /// Notes what a node has free, if it never had less.
    fn lower(&mut self, node: NodeId, free: u64) {
        if let Some(least) = self.least_free.get_mut(&node) {
            *least = free.min(*least);
        }
    }

    /// Notes what a program has, if it never had more.
    fn grow(&mut self, name: &str, nodes: &BTreeMap<NodeId, u64>) {
        let sum = |nodes: &BTreeMap<NodeId, u64>| nodes.values().sum::<u64>();
        let Some(place) = self.places.get(name) else {
            self.places.insert(name.to_owned(), self.largest.len());
            self.largest.push((name.to_owned(), nodes.clone()));
            return;
        };
        let (_, largest) = &mut self.largest[*place];
        if sum(largest) < sum(nodes) {
            largest.clone_from(nodes);
        }
    }

    /// All findings, in order.
    pub fn findings(&self) -> impl Iterator<Item = &TimelineFinding> {
        self.moments.iter().flat_map(|moment| &moment.findings)
    }
}

/// Returns the gains of counters, by node, where they have any.
fn gained(
    old: &BTreeMap<NodeId, NodeCounters>,
    new: &BTreeMap<NodeId, NodeCounters>,
) -> BTreeMap<NodeId, NodeCounters> {
    let of = |(node, new): (&NodeId, &NodeCounters)| {
        let old = old.get(node).copied().unwrap_or_default();
        let gained = new.since(old);
        (gained != NodeCounters::default()).then_some((*node, gained))
    };
    new.iter().filter_map(of).collect_map()
}

impl Moment {
    /// The effect of the program, in a word or two.
    pub fn does(&self) -> String {
        match &self.act {
            Act::Start { .. } => "starts".to_owned(),
            Act::Map(mapping) => format!("maps {}", amount(mapping, self.page)),
            Act::Allocate(mapping) => format!("takes {}", amount(mapping, self.page)),
            Act::Touch(_) => "touches".to_owned(),
            Act::Read(part) => format!("reads {}", file_size(part, self.page)),
            Act::Write(part) => format!("writes {}", file_size(part, self.page)),
            Act::Sync => "sync".to_owned(),
            Act::DropCaches => "drop_caches".to_owned(),
            Act::Free { .. } => "frees".to_owned(),
            Act::SetPolicy(_) => "sets its policy".to_owned(),
            Act::Bind { .. } => "mbind".to_owned(),
            Act::SetHome { .. } => "sets a home node".to_owned(),
            Act::MovePages { .. } => "moves pages".to_owned(),
            Act::Migrate { .. } => "is moved".to_owned(),
            Act::Remap { .. } => "mremap".to_owned(),
            Act::AdjustOom(_) => "oom_score_adj".to_owned(),
            Act::RunOn(_) => "goes".to_owned(),
            Act::Restrict(_) => "new cpuset".to_owned(),
            Act::Fork { .. } => "forks".to_owned(),
            Act::StartThread { .. } => "starts a thread".to_owned(),
            Act::Balance | Act::BalanceFor(_) => "runs on".to_owned(),
            Act::End => "ends".to_owned(),
            Act::ResizePool { .. } => "nr_hugepages".to_owned(),
            Act::SetDemotion(_) => "demotion".to_owned(),
            Act::Limit { group, .. } => format!("group {group}"),
            Act::Join { .. } => "joins".to_owned(),
        }
    }

    /// With what, or where; empty where there is nothing to say.
    pub fn object(&self) -> String {
        match &self.act {
            Act::Start { cpu_node, policy, .. } => format!("on node {cpu_node}, {policy}"),
            Act::Map(mapping) | Act::Allocate(mapping) => mapped(mapping),
            Act::Touch(part) => named(part, self.page),
            Act::Read(part) | Act::Write(part) => {
                let from = part.pages.start;
                let from =
                    if from == 0 { String::new() } else { format!(", from {} on", size_of(from, self.page)) };
                format!("file {}{from}", part.file)
            }
            Act::Free { region } => region.clone(),
            Act::SetPolicy(policy) => policy.to_string(),
            Act::Bind { part, policy, flags } => {
                let flags = [(flags.moves, "move"), (flags.moves_all, "move-all"), (flags.strict, "strict")];
                let flags = flags.into_iter().filter(|(set, _)| *set).map(|(_, word)| format!(", {word}"));
                format!("{}, {policy}{}", named(part, self.page), flags.collect::<String>())
            }
            Act::SetHome { part, node } => format!("{}, node {node}", named(part, self.page)),
            Act::MovePages { part, node, all } => {
                format!("{} to node {node}{}", named(part, self.page), if *all { ", all" } else { "" })
            }
            Act::Migrate { old, new } => format!("from {} to {}", node_names(old), node_names(new)),
            Act::Remap { region, pages, first_page } => {
                let size = pages.map(|pages| format!(" to {}", size_of(pages, self.page)));
                let first = first_page.map(|page| format!(", from page {page} on"));
                format!("{region}{}{}", size.unwrap_or_default(), first.unwrap_or_default())
            }
            Act::AdjustOom(value) => value.to_string(),
            Act::RunOn(node) => format!("to node {node}"),
            Act::Restrict(nodes) => node_names(nodes),
            Act::Fork { child: name } | Act::StartThread { name } => name.clone(),
            Act::BalanceFor(usage) => touching(usage),
            Act::Balance | Act::End | Act::Sync | Act::DropCaches => String::new(),
            Act::ResizePool { pages } => pages.to_string(),
            Act::Limit { parent, limits, .. } => groups::in_words(parent.as_deref(), limits, self.page),
            Act::Join { group } => format!("group {group}"),
            Act::SetDemotion(enabled) => if *enabled { "on" } else { "off" }.to_owned(),
        }
    }

    /// The outcome of it, in a few words; empty where there is nothing to say.
    pub fn outcome(&self) -> String {
        let step = &self.step;
        let killed = |name: &String| {
            if *name == self.program { "killed".to_owned() } else { format!("{name} killed") }
        };
        let mut words: Vec<String> = Vec::new();
        words.extend(step.skipped.map(|why| skipped(why).to_owned()));
        words.extend(step.refused.map(|errno| format!("refused, {errno}")));
        words.extend((!step.taken.is_empty()).then(|| shares(step.taken.iter().copied(), self.page)));
        let is_file = matches!(self.act, Act::Read(_) | Act::Write(_));
        let is_cached = is_file && step.taken.is_empty() && step.skipped.is_none();
        words.extend(is_cached.then(|| "in the page cache already".to_owned()));
        let counted = [
            (step.moved, "moved"),
            (step.promoted, "of them promoted"),
            (step.stayed, "stay"),
            (step.swapped_in, "back from swap"),
        ];
        words.extend(
            counted
                .iter()
                .filter(|(pages, _)| *pages > 0)
                .map(|(pages, word)| format!("{} {word}", size_of(*pages, self.page))),
        );
        words.extend(step.local_after.as_ref().map(followed));
        words.extend(step.limits.iter().filter_map(groups::outcome));
        words.extend(step.killed.iter().map(|one| killed(&one.program)));
        words.join(", ")
    }
}

fn file_size(part: &FilePart, page: u64) -> String {
    size_of(part.pages.end - part.pages.start, page)
}

/// `150-200 touches/s`, in which order.
fn touching(usage: &MemoryUse) -> String {
    let [least, most] = usage.touches_per_s;
    let rate = if least == most { least.to_string() } else { format!("{least}-{most}") };
    let order = match usage.pattern {
        Pattern::Uniform => "at random",
        Pattern::Sweep => "in a sweep",
    };
    format!("{rate} touches/s {order}")
}

/// `92 to 100 % of it after 60 s`.
fn followed(after: &LocalAfter) -> String {
    let percent = |permille: u16| f64::from(permille) / 10.0;
    let (low, high) = (percent(after.low_permille), percent(after.high_permille));
    let range = if low == high { format!("{low}") } else { format!("{low} to {high}") };
    format!("{range} % of it after {} s", after.time.as_secs_f64())
}

/// `0=60GiB, 1=4GiB`: without the blanks at which a line would break.
pub fn shares(nodes: impl IntoIterator<Item = (NodeId, u64)>, page: u64) -> String {
    let words: Vec<String> = nodes
        .into_iter()
        .map(|(node, pages)| format!("{node}={}", size_of(pages, page).replace(' ', "")))
        .collect();
    words.join(", ")
}

/// How full a zone is, by its watermarks.
pub fn state(zone: &ZoneState) -> &'static str {
    let kept = |mark| zone.kept(mark, ZoneKind::Movable);
    match zone.free {
        free if free > kept(zone.marks.high) => "above high",
        free if free > kept(zone.marks.low) => "below high",
        free if free > kept(zone.marks.min) => "below low",
        _ => "at min",
    }
}

fn amount(mapping: &Mapping, page: u64) -> String {
    let kind = match mapping.backing {
        Backing::Huge => " huge",
        Backing::Pool => " of the pool",
        Backing::File(_) => " of a file",
        Backing::PrivateFile(_) => " of a private file",
        Backing::NeverHuge => " never huge",
        Backing::Small => "",
    };
    format!("{}{kind}", size_of(mapping.pages, page))
}

fn mapped(mapping: &Mapping) -> String {
    let file = match &mapping.backing {
        Backing::File(file) | Backing::PrivateFile(file) => format!(", file {file}"),
        _ => String::new(),
    };
    let policy = mapping.policy.as_ref().map_or_else(String::new, |policy| format!(", {policy}"));
    let first = mapping.first_page.map_or_else(String::new, |page| format!(", from page {page} on"));
    format!("{}{file}{policy}{first}", mapping.region)
}

fn named(part: &Part, page: u64) -> String {
    match &part.pages {
        None => part.region.clone(),
        Some(pages) if pages.start == 0 => format!("{}, first {}", part.region, size_of(pages.end, page)),
        Some(pages) => {
            format!(
                "{}, {} from {} on",
                part.region,
                size_of(pages.end - pages.start, page),
                size_of(pages.start, page)
            )
        }
    }
}

/// The word for a step that could not happen, in JSON and CSV.
pub const fn skipped_word(why: Skipped) -> &'static str {
    match why {
        Skipped::Killed => "killed",
        Skipped::NotStarted => "not_started",
        Skipped::NotMapped => "not_mapped",
    }
}

const fn skipped(why: Skipped) -> &'static str {
    match why {
        Skipped::Killed => "not there: killed",
        Skipped::NotStarted => "not there: refused at its start",
        Skipped::NotMapped => "not there: the memory was refused",
    }
}
