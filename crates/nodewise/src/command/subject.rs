//! The processes that a verb was asked for: by number, name, control group, unit or container.

use std::collections::BTreeSet;
use std::path::Path;

use nodewise_machine::printable::quote;
use nodewise_source::parse::cgroup_name::{self, GroupKind};
use nodewise_source::process::{Pid, search};
use nodewise_source::sample::{Moment, ProcessSample, ProcessScope, Sample, SampleOptions, Sampler};
use nodewise_source::tree::Tree;

use crate::failure::Failure;

/// Processes as they are typed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WantedProcesses<'a> {
    pub pids: Vec<u32>,
    pub names: &'a [String],
    pub cgroup: Option<&'a Path>,
    pub unit: Option<&'a str>,
    pub container: Option<&'a str>,
}

impl WantedProcesses<'_> {
    /// Whether none is named.
    pub fn is_empty(&self) -> bool {
        *self == WantedProcesses::default()
    }
}

/// Finds them; `None` where no one was asked for.
///
/// # Errors
/// Each that does not exist, by what was typed.
pub fn find(wanted: &WantedProcesses<'_>, tree: Tree) -> Result<Option<BTreeSet<Pid>>, Failure> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let options = SampleOptions { processes: ProcessScope::All, ..SampleOptions::default() };
    let found = find_in(wanted, &Sampler::new(tree, options).sample(Moment::now()));
    found.map(Found::all).transpose()
}

/// The processes of a sample that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Found {
    pub pids: BTreeSet<Pid>,
    /// A sentence for each word that names none of them.
    pub missing: BTreeSet<String>,
}

impl Found {
    /// The processes, where none is missing.
    ///
    /// # Errors
    /// Those that are missing.
    pub fn all(self) -> Result<BTreeSet<Pid>, Failure> {
        none_missing(self.missing)?;
        Ok(self.pids)
    }

    /// The processes of two samples. A process may have begun or ended in between, so that one of them has it.
    ///
    /// # Errors
    /// Those that neither sample has.
    pub fn either(before: Self, after: Self) -> Result<[BTreeSet<Pid>; 2], Failure> {
        none_missing(before.missing.intersection(&after.missing).cloned().collect())?;
        Ok([before.pids, after.pids])
    }
}

fn none_missing(missing: BTreeSet<String>) -> Result<(), Failure> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::cannot(missing.into_iter().collect::<Vec<_>>().join("; ")))
}

/// Finds them in a sample; `None` where no one was asked for.
pub fn find_in(wanted: &WantedProcesses<'_>, sample: &Sample) -> Option<Found> {
    if wanted.is_empty() {
        return None;
    }
    let mut found = Found::default();
    let mut add = |what: String, is_wanted: &dyn Fn(&ProcessSample) -> bool| {
        let matching = sample.processes.iter().filter(|process| is_wanted(process));
        let pids: Vec<Pid> = matching.map(|process| process.identity.pid).collect();
        if pids.is_empty() {
            found.missing.insert(what);
        }
        found.pids.extend(pids);
    };
    for pid in &wanted.pids {
        add(format!("process {pid} does not exist"), &|process| process.identity.pid.number() == *pid);
    }
    for name in wanted.names {
        let is_named = |process: &ProcessSample| search::is_called(process.name.as_bytes(), name);
        add(format!("no process is named {}", quote(name)), &is_named);
    }
    if let Some(path) = wanted.cgroup {
        let path = path.to_string_lossy();
        let path = path.trim_end_matches('/');
        let is_inside = |process: &ProcessSample| {
            let rest = process.group.as_deref().and_then(|group| group.strip_prefix(path));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        add(format!("no process is in the control group {}", quote(path)), &is_inside);
    }
    if let Some(unit) = wanted.unit {
        let whole = format!("{unit}.service");
        let is_of = |process: &ProcessSample| {
            groups_of(process).any(|(kind, name)| {
                let kinds = [GroupKind::Service, GroupKind::Scope, GroupKind::Slice];
                kinds.contains(&kind) && (name == unit || name == whole)
            })
        };
        add(format!("no process belongs to the unit {}", quote(unit)), &is_of);
    }
    if let Some(container) = wanted.container {
        let is_of = |process: &ProcessSample| {
            groups_of(process).any(|(kind, name)| {
                let kinds = [
                    GroupKind::Docker,
                    GroupKind::Podman,
                    GroupKind::Crio,
                    GroupKind::Containerd,
                    GroupKind::Lxc,
                ];
                kinds.contains(&kind)
                    && !container.is_empty()
                    && (name.starts_with(container) || container.starts_with(&name))
            })
        };
        add(format!("no process belongs to the container {}", quote(container)), &is_of);
    }
    Some(found)
}

/// The groups of a process, as their users name them.
fn groups_of(process: &ProcessSample) -> impl Iterator<Item = (GroupKind, String)> + '_ {
    cgroup_name::names_up(process.group.as_deref().unwrap_or_default()).map(|group| (group.kind, group.name))
}

#[cfg(test)]
mod tests {
    use nodewise_source::sample::Identity;

    use super::*;

    fn sample(names: &[&str]) -> Sample {
        let process = |(pid, name): (u32, &&str)| {
            let identity = Identity { pid: Pid::new(pid), started_ticks: 1 };
            ProcessSample { name: (*name).into(), ..ProcessSample::new(identity) }.into()
        };
        Sample { processes: (10..).zip(names).map(process).collect(), ..Sample::default() }
    }

    fn found(names: &[&str], pids: &[u32], present: &[&str]) -> Found {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let wanted = WantedProcesses { pids: pids.to_vec(), names: &names, ..WantedProcesses::default() };
        find_in(&wanted, &sample(present)).unwrap()
    }

    fn numbers(pids: &BTreeSet<Pid>) -> Vec<u32> {
        pids.iter().map(|pid| pid.number()).collect()
    }

    #[test]
    fn a_process_of_one_moment_alone_leaves_the_others_of_both() {
        let typed = ["postgres", "redis"];
        let before = found(&typed, &[], &["postgres", "cat"]);
        let after = found(&typed, &[], &["postgres", "cat", "redis"]);
        let [before, after] = Found::either(before, after).unwrap();
        assert_eq!((numbers(&before), numbers(&after)), (vec![10], vec![10, 12]));
    }

    #[test]
    fn what_no_moment_has_is_named() {
        let typed = ["postgres", "redis"];
        let one = || found(&typed, &[77], &["postgres"]);
        let expected = "no process is named \"redis\"; process 77 does not exist";
        assert_eq!(Found::either(one(), one()).unwrap_err().message, expected);
        assert_eq!(one().all().unwrap_err().message, expected);
        let other = found(&typed, &[77], &["redis"]);
        assert_eq!(Found::either(one(), other).unwrap_err().message, "process 77 does not exist");
    }
}
