//! The processes that `nodewise stat` was asked for.

use std::collections::BTreeSet;

use nodewise_machine::printable::quote;
use nodewise_source::parse::cgroup_name::{self, GroupKind};
use nodewise_source::process::Pid;
use nodewise_source::sample::{Moment, ProcessSample, ProcessScope, Sample, SampleOptions, Sampler};
use nodewise_source::tree::Tree;

use super::words::Words;
use crate::cli::stat::Stat;
use crate::failure::Failure;

/// Bytes of a name that the kernel keeps.
const NAME_BYTES: usize = 15;

/// Whether options name processes.
pub(super) fn is_wanted(args: &Stat) -> bool {
    !args.pid.is_empty() || args.cgroup.is_some() || args.unit.is_some() || args.container.is_some()
}

/// Finds them; `None` where no one was asked for.
///
/// # Errors
/// Each that does not exist, by what was typed.
pub(super) fn find(args: &Stat, words: &Words, tree: Tree) -> Result<Option<BTreeSet<Pid>>, Failure> {
    if !words.names_processes() && !is_wanted(args) {
        return Ok(None);
    }
    let options = SampleOptions { processes: ProcessScope::All, ..SampleOptions::default() };
    find_in(args, words, &Sampler::new(tree, options).sample(Moment::now()))
}

/// Finds them in a sample; `None` where no one was asked for.
///
/// # Errors
/// Each that does not exist, by what was typed.
pub(super) fn find_in(args: &Stat, words: &Words, sample: &Sample) -> Result<Option<BTreeSet<Pid>>, Failure> {
    if !words.names_processes() && !is_wanted(args) {
        return Ok(None);
    }
    let mut found = BTreeSet::new();
    let mut add = |what: String, is_wanted: &dyn Fn(&ProcessSample) -> bool| {
        let wanted = sample.processes.iter().filter(|process| is_wanted(process));
        let before = found.len();
        let mut any = false;
        for process in wanted {
            any = true;
            found.insert(process.identity.pid);
        }
        if any || found.len() > before { Ok(()) } else { Err(Failure::cannot(what)) }
    };
    for pid in args.pid.iter().chain(&words.pids) {
        add(format!("process {pid} does not exist"), &|process| process.identity.pid.number() == *pid)?;
    }
    for name in &words.names {
        let is_named = |process: &ProcessSample| {
            *process.name == **name
                || name.len() > NAME_BYTES
                    && name.starts_with(&*process.name)
                    && process.name.len() == NAME_BYTES
        };
        add(format!("no process is named {}", quote(name)), &is_named)?;
    }
    if let Some(path) = &args.cgroup {
        let path = path.to_string_lossy();
        let path = path.trim_end_matches('/');
        let is_inside = |process: &ProcessSample| {
            let rest = process.group.as_deref().and_then(|group| group.strip_prefix(path));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        add(format!("no process is in the control group {}", quote(path)), &is_inside)?;
    }
    if let Some(unit) = &args.unit {
        let whole = format!("{unit}.service");
        let is_of = |process: &ProcessSample| {
            groups_of(process).any(|(kind, name)| {
                let kinds = [GroupKind::Service, GroupKind::Scope, GroupKind::Slice];
                kinds.contains(&kind) && (name == *unit || name == whole)
            })
        };
        add(format!("no process belongs to the unit {}", quote(unit)), &is_of)?;
    }
    if let Some(container) = &args.container {
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
        add(format!("no process belongs to the container {}", quote(container)), &is_of)?;
    }
    Ok(Some(found))
}

/// The groups of a process from its own up to the root, as their users name them.
fn groups_of(process: &ProcessSample) -> impl Iterator<Item = (GroupKind, String)> {
    let path = process.group.as_deref().unwrap_or_default().to_owned();
    let mut paths = Vec::new();
    let mut rest = path.as_str();
    while !rest.is_empty() {
        let group = cgroup_name::name(rest);
        paths.push((group.kind, group.name));
        rest = rest.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    paths.into_iter()
}
