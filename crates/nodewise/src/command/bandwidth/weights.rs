//! Setting the weights of weighted interleaving, and taking that back.
//!
//! The old weights are in the user's file before the first new one is set; where one cannot be set,
//! those before it are put back.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::Path;

use nodewise_machine::id::Id as _;
use nodewise_machine::printable::{io_words, quote};
use nodewise_machine::{Machine, NodeId};
use nodewise_measure::bandwidth::BandwidthReport;
use nodewise_source::capture::{CaptureError, Overwrite, check_file, write_file};
use nodewise_source::settings::Setting;
use nodewise_source::{Detail, paths};
use nodewise_syscall::Errno;

use crate::failure::{CANNOT, Failure, Outcome};
use crate::{input, measuring, output};

/// The first line of a file of weights.
const SCHEMA: &str = "nodewise.weights/1";

/// Weights as they were, or shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Weights {
    /// Whether the kernel sets them itself; `None` before Linux 6.16.
    auto: Option<bool>,
    nodes: BTreeMap<NodeId, u32>,
}

impl Weights {
    fn from_machine(machine: &Machine) -> Self {
        let settings = &machine.settings;
        Self { auto: settings.interleave_weights_auto, nodes: settings.interleave_weights.clone() }
    }

    fn to_text(&self) -> String {
        let auto = self.auto.map(|auto| format!("auto {}\n", u32::from(auto))).unwrap_or_default();
        let nodes = self.nodes.iter().map(|(node, weight)| format!("node{node} {weight}\n"));
        format!("{SCHEMA}\n{auto}{}", nodes.collect::<String>())
    }

    /// Reads what [`Weights::to_text`] wrote.
    fn parse(text: &str) -> Result<Self, String> {
        let mut lines = (1..).zip(text.lines());
        match lines.next() {
            Some((_, SCHEMA)) => {}
            first => {
                let first = first.map_or("", |(_, line)| line);
                return Err(format!("line 1 is {}: expected {SCHEMA}", quote(first)));
            }
        }
        let mut weights = Self { auto: None, nodes: BTreeMap::new() };
        for (number, line) in lines {
            let wrong =
                || format!("line {number} is {}: expected a node and its weight, as node0 3", quote(line));
            let (name, value) = line.split_once(' ').ok_or_else(wrong)?;
            let value: u32 = value.parse().map_err(|_| wrong())?;
            if name == "auto" && value <= 1 {
                weights.auto = Some(value == 1);
                continue;
            }
            let node = name.strip_prefix("node").and_then(|node| node.parse::<u32>().ok());
            let node = node.filter(|node| *node < NodeId::LIMIT).ok_or_else(wrong)?;
            if !(1..=255).contains(&value) {
                return Err(format!("line {number}: weight {value} is not between 1 and 255"));
            }
            if weights.nodes.insert(NodeId::new(node), value).is_some() {
                return Err(format!("line {number}: node {node} has a weight already"));
            }
        }
        if weights.nodes.is_empty() { Err("it names no node".to_owned()) } else { Ok(weights) }
    }

    /// A line per weight that changes.
    fn changes(&self, before: &Self, dry_run: bool) -> String {
        let verb = if dry_run { "would become" } else { "becomes" };
        let line = |(node, weight): (&NodeId, &u32)| match before.nodes.get(node) {
            Some(old) if old == weight => format!("node {node}: weight {weight}, as it is\n"),
            Some(old) => format!("node {node}: weight {old} {verb} {weight}\n"),
            None => format!("node {node}: weight {verb} {weight}\n"),
        };
        self.nodes.iter().map(line).collect()
    }

    /// Sets those that differ from what is there: all of them, or none.
    fn set(&self, before: &Self) -> Result<(), NotSet> {
        let mut done: Vec<NodeId> = Vec::new();
        for (node, weight) in &self.nodes {
            if before.nodes.get(node) == Some(weight) {
                continue;
            }
            if let Err(failure) = write(*node, *weight) {
                let put_back = |node: &NodeId| {
                    let old = before.nodes.get(node);
                    old.is_none_or(|old| write(*node, *old).is_ok())
                };
                let not_back = done.iter().map(put_back).filter(|is_back| !is_back).count();
                let is_as_before = restore_auto(before).is_ok() && not_back == 0;
                return Err(NotSet { failure, is_as_before });
            }
            done.push(*node);
        }
        restore_auto(self).map_err(|failure| NotSet { failure, is_as_before: false })
    }
}

/// Why weights are not set.
struct NotSet {
    failure: Failure,
    /// Whether all of them are what they were.
    is_as_before: bool,
}

/// Lets the kernel set the weights itself, where it did.
fn restore_auto(weights: &Weights) -> Result<(), Failure> {
    if weights.auto != Some(true) {
        return Ok(());
    }
    let setting = Setting::InterleaveWeightsAuto;
    match setting.write(1) {
        // A kernel that knows no bandwidths has nothing to work weights out from: they stay as they were set.
        Err(error) if error.raw_os_error() == Some(Errno::ENODEV.number()) => Ok(()),
        result => result.map_err(|error| not_set(setting, 1, &error)),
    }
}

fn write(node: NodeId, weight: u32) -> Result<(), Failure> {
    let (setting, value) = (Setting::InterleaveWeight { node }, u64::from(weight));
    setting.write(value).map_err(|error| not_set(setting, value, &error))
}

fn not_set(setting: Setting, value: u64, error: &std::io::Error) -> Failure {
    Failure::cannot(format_args!("cannot set {} to {value}: {}", setting.path(), io_words(error)))
}

/// Whether weights could be set, before anything is measured.
///
/// # Errors
/// A kernel without weights, a machine with one node, a file that is there already, and weights that this
/// user may not set, unless they shall only be shown.
pub fn check(path: &Path, machine: &Machine, dry_run: bool) -> Result<(), Failure> {
    let Some(first) = machine.settings.interleave_weights.keys().next() else {
        let release = machine.kernel.as_ref().map_or("this kernel", |kernel| kernel.text()).to_owned();
        return Err(Failure::cannot(format_args!(
            "there are no weights to set: weighted interleave needs Linux 6.9 or newer, this is {release}"
        )));
    };
    if machine.memory_nodes().len() < 2 {
        return Err(Failure::cannot(
            "one node with memory has nothing to interleave with: expected two or more",
        ));
    }
    match check_file(path, Overwrite::Refuse) {
        Err(CaptureError::Exists(_)) => {
            let path = quote(&path.display().to_string());
            return Err(Failure::usage(format_args!(
                "--apply-weights: {path} is there already, perhaps with the weights of an earlier run: expected \
                 the name of a new file"
            )));
        }
        // Nothing is written then.
        checked if !dry_run => checked.map_err(Failure::cannot)?,
        _ => {}
    }
    if dry_run { Ok(()) } else { may_set(&paths::interleave_weight(*first)) }
}

/// Whether this user may set a weight: its file is opened, and nothing is written.
fn may_set(path: &str) -> Result<(), Failure> {
    OpenOptions::new().write(true).open(path).map(drop).map_err(|error| {
        let why = io_words(&error);
        Failure::cannot(format_args!("--apply-weights: {path} cannot be written: {why}; expected root"))
    })
}

/// Sets what a report proposes. The old weights go into the file first.
///
/// # Errors
/// A report that proposes nothing, and what cannot be written.
pub fn apply(report: &BandwidthReport, machine: &Machine, path: &Path, dry_run: bool) -> Outcome {
    let Some(proposed) = report.weights() else {
        return Err(Failure::new(CANNOT, "no weights are set: not every node's memory could be measured"));
    };
    let before = Weights::from_machine(machine);
    let after = Weights { auto: None, nodes: proposed.weights };
    // Beside the figures, which may be a document.
    output::narrate(&after.changes(&before, dry_run));
    if !dry_run {
        write_file(path, before.to_text().as_bytes(), Overwrite::Refuse).map_err(Failure::cannot)?;
        after.set(&before).map_err(|NotSet { failure, is_as_before }| {
            // Nothing is left to undo, and the file would be in the way of another try.
            if is_as_before {
                let _ = std::fs::remove_file(path);
            }
            failure
        })?;
    }
    Ok(0)
}

/// Sets what a file holds.
///
/// # Errors
/// A file that cannot be read or holds no weights, and what cannot be written.
pub fn undo(path: &Path, dry_run: bool) -> Outcome {
    let text = measuring::read_saved("--undo-weights", path)?;
    let wanted = Weights::parse(&text).map_err(|why| {
        let path = quote(&path.display().to_string());
        Failure::usage(format_args!("--undo-weights: {path} holds no weights: {why}"))
    })?;
    let machine = input::load("live", Detail::Full)?.machine;
    let now = Weights::from_machine(&machine);
    output::narrate(&wanted.changes(&now, dry_run));
    if !dry_run {
        wanted.set(&now).map_err(|not_set| not_set.failure)?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    fn check(text: &str, expected: &str) {
        assert_eq!(Weights::parse(text).unwrap_err(), expected, "{text:?}");
    }

    #[test]
    fn a_file_that_holds_no_weights_is_refused_with_the_line() {
        check("", "line 1 is \"\": expected nodewise.weights/1");
        check("{}", "line 1 is \"{}\": expected nodewise.weights/1");
        check("nodewise.weights/1\n", "it names no node");
        check(
            "nodewise.weights/1\nnode0 x\n",
            "line 2 is \"node0 x\": expected a node and its weight, as node0 3",
        );
        check(
            "nodewise.weights/1\n../../x 1\n",
            "line 2 is \"../../x 1\": expected a node and its weight, as node0 3",
        );
        check("nodewise.weights/1\nnode0 256\n", "line 2: weight 256 is not between 1 and 255");
        check("nodewise.weights/1\nnode0 0\n", "line 2: weight 0 is not between 1 and 255");
        check("nodewise.weights/1\nnode0 1\nnode0 2\n", "line 3: node 0 has a weight already");
    }

    #[test]
    fn changes_say_what_was_and_what_comes() {
        let weights = |nodes: &[(u32, u32)]| Weights {
            auto: None,
            nodes: nodes.iter().map(|(node, weight)| (NodeId::new(*node), *weight)).collect(),
        };
        let before = weights(&[(0, 1), (1, 1)]);
        let after = weights(&[(0, 3), (1, 1), (2, 2)]);
        assert_eq!(
            after.changes(&before, true),
            "node 0: weight 1 would become 3\nnode 1: weight 1, as it is\nnode 2: weight would become 2\n"
        );
        assert!(after.changes(&before, false).starts_with("node 0: weight 1 becomes 3\n"));
    }

    #[test]
    fn weights_that_cannot_be_written_are_told_before_anything_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node0");
        let refused = may_set(path.to_str().unwrap()).unwrap_err();
        let expected = "cannot be written: no such file or directory; expected root";
        assert!(refused.message.ends_with(expected), "{}", refused.message);
        std::fs::write(&path, "3").unwrap();
        may_set(path.to_str().unwrap()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "3", "nothing was written");
    }

    proptest! {
        #[test]
        fn weights_are_read_back(
            auto in any::<Option<bool>>(),
            nodes in prop::collection::btree_map(0u32..1000, 1u32..256, 1..20),
        ) {
            let nodes = nodes.into_iter().map(|(node, weight)| (NodeId::new(node), weight)).collect();
            let weights = Weights { auto, nodes };
            prop_assert_eq!(Weights::parse(&weights.to_text()), Ok(weights));
        }

        #[test]
        fn any_text_is_survived(lines in "(node[0-9]{0,12} ?[0-9]{0,12}\n|.{0,20}\n){0,5}") {
            let _ = Weights::parse(&lines);
            let _ = Weights::parse(&format!("{SCHEMA}\n{lines}"));
        }
    }
}
