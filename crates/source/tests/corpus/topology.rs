//! The captures as lscpu and hwloc read them: every fact that a peer gives agrees with ours, or the difference has a
//! rule with its reason.
//!
//! `cargo xtask topology` runs the peers and compares or replaces `records`; this test needs the captures alone.

mod facts;
mod rules;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use nodewise_machine::Machine;
use nodewise_source::machine_file;
use nodewise_source::tree::Tree;

use rules::{RULES, Rule, Side};

/// How a machine is put into the words of a peer.
type Facts = fn(&Machine) -> BTreeSet<String>;

/// The peers, by the ending of their records.
const PEERS: [(&str, Facts); 2] = [("hwloc", facts::as_hwloc), ("lscpu", facts::as_lscpu)];

/// A test per record, and one of the rules.
pub fn trials(folder: &Path) -> Vec<Trial> {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/topology/records");
    let mut trials = vec![Trial::test("topology::every_rule_names_a_record", {
        let records = records.clone();
        move || every_rule_names_a_record(&records)
    })];
    for entry in std::fs::read_dir(&records).into_iter().flatten().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let Some((name, peer)) = file.rsplit_once('.') else { continue };
        let record = Record {
            capture: folder.join("captures").join(format!("{name}.tar.bz2")),
            name: name.to_owned(),
            peer: peer.to_owned(),
            path: entry.path(),
        };
        trials.push(Trial::test(format!("topology::{name}::{peer}"), move || record.check()));
    }
    trials
}

fn every_rule_names_a_record(records: &Path) -> Result<(), Failed> {
    for rule in RULES {
        let record = records.join(format!("{}.{}", rule.machine, rule.peer));
        if rule.machine != "*" && !record.exists() {
            return Err(format!("a rule for {}, which does not exist", record.display()).into());
        }
    }
    Ok(())
}

/// A peer's report on a capture.
struct Record {
    capture: PathBuf,
    name: String,
    peer: String,
    path: PathBuf,
}

impl Record {
    /// Compares the capture, as `show --json` prints it, with the record.
    fn check(&self) -> Result<(), Failed> {
        let (_, facts) =
            PEERS.iter().find(|(peer, _)| *peer == self.peer).ok_or("a record of an unknown peer")?;
        let machine = super::load(&Tree::open(&self.capture)?);
        let machine = machine_file::from_json(&machine_file::to_json(&machine))?;
        let ours = facts(&machine);
        let text = std::fs::read_to_string(&self.path)?;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let theirs: BTreeSet<String> = lines.map(ToOwned::to_owned).collect();
        let only_theirs = theirs.difference(&ours).map(|fact| (Side::Theirs, fact));
        let only_ours = ours.difference(&theirs).map(|fact| (Side::Ours, fact));
        let unexplained = self.unexplained(only_theirs.chain(only_ours), &machine);
        if unexplained.is_empty() { Ok(()) } else { Err(unexplained.join("\n").into()) }
    }

    /// Differences without a rule, and rules without a difference.
    fn unexplained<'a>(
        &self,
        differences: impl Iterator<Item = (Side, &'a String)>,
        machine: &Machine,
    ) -> Vec<String> {
        let rules: Vec<&Rule> = RULES.iter().filter(|rule| rule.is_for(&self.name, &self.peer)).collect();
        let mut used = vec![false; rules.len()];
        let mut unexplained = Vec::new();
        for (side, fact) in differences {
            match rules.iter().position(|rule| rule.explains(side, fact, machine)) {
                Some(at) => used[at] = true,
                None => unexplained.push(format!("{side:?} only: {fact}")),
            }
        }
        let needless = rules.iter().zip(used).filter(|(rule, used)| !used && rule.machine != "*");
        unexplained.extend(needless.map(|(rule, _)| format!("a rule that explains nothing: {}", rule.why)));
        unexplained
    }
}
