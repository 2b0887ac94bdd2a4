//! `nodewise migrate`: pages of a process that runs, to other nodes and back.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use nodewise_machine::check::node_names;
use nodewise_machine::printable::{printable, quote};
use nodewise_machine::{Bytes, Machine, NodeId, NodeSet};
use nodewise_source::Detail;
use nodewise_source::boot;
use nodewise_source::capture::{Overwrite, check_file, write_file};
use nodewise_source::mapped::saved::Moved;
use nodewise_source::mapped::{Mapped, MemoryKind, mappings, started_at_ticks};
use nodewise_source::parse::proc_status::ProcessStatus;
use nodewise_source::process::{Pid, status};
use nodewise_source::tree::Tree;
use nodewise_syscall::pages::page_size;
use nodewise_syscall::{PageScope, Task};
use nodewise_view::digest::migrate::{Amount, Ending as ShownEnding, Failed, Flow, Migration};
use nodewise_view::{json, text};

use crate::cli::Global;
use crate::cli::migrate::Migrate;
use crate::command::process;
use crate::failure::{CANNOT, Failure, Outcome};
use crate::migration::engine::{Ending, Limits, MigrationReport, Reason, migrate};
use crate::migration::goal::Goal;
use crate::migration::live::{Process, System, has_ended};
use crate::migration::{ByKind, Region, regions, regions_back, sums};
use crate::{input, live, measuring, output};

/// Exit code where some pages stayed.
const SOME_STAYED: u8 = 1;

/// Runs `migrate`.
pub fn run(args: &Migrate, global: &Global) -> Outcome {
    let tree = Tree::live();
    let machine = input::load(&global.machine, Detail::Full)?.machine;
    if machine.nodes.len() < 2 {
        return Err(Failure::cannot("this machine has one node: there is nowhere to move pages to"));
    }
    let saved = args.undo.as_deref().map(|file| read_saved(file, &tree)).transpose()?;
    let pid = match (&saved, &args.process) {
        (Some(saved), _) => saved.pid,
        (None, Some(text)) => process::find(&tree, text)?,
        (None, None) => return Err(Failure::usage("which process? expected its number or its name")),
    };
    let subject = Subject::look(&tree, pid)?;
    if let Some(saved) = saved.as_ref().filter(|saved| saved.started_at_ticks != subject.started_at_ticks) {
        return Err(Failure::cannot(format_args!(
            "the process of this file has ended: {} is now {}, another one",
            saved.pid,
            quote(&subject.name)
        )));
    }
    let scope = scope(args, &tree)?;
    let before = subject.mappings(&tree)?;
    let work = match &saved {
        Some(saved) => Work { regions: regions_back(&saved.runs), goal: None, expected: saved.size() },
        None => Work::plan(args, &machine, &before)?,
    };
    subject.check_targets(&work.targets(), &machine)?;
    if let Some(file) = &args.save {
        check_file(file, Overwrite::Refuse).map_err(Failure::cannot)?;
    }
    let boot = boot::id(&tree).map_err(Failure::cannot)?.unwrap_or_else(|| "unknown".to_owned());
    let noted = Moved::new(pid, subject.started_at_ticks, boot);
    let mut shown = subject.outline(&before, &work, &machine);
    let report = if args.dry_run {
        None
    } else {
        let page = Bytes::new(page_size() as u64);
        let mut system = System::new(&tree, measuring::interrupt()?, work.expected, page, noted);
        let mut process = Process {
            tree: &tree,
            pid,
            task: Task::new(pid.number()).ok_or_else(|| Failure::usage("0 is not a process"))?,
            started_at_ticks: subject.started_at_ticks,
            scope,
        };
        let limits = Limits {
            rate: args.rate,
            pressure: Some(args.pause_psi),
            page,
            huge: machine.settings.transparent_hugepage_size.unwrap_or(page),
        };
        let report = migrate(&work.regions, limits, &mut process, &mut system);
        system.finish();
        shown.undo = save(args.save.as_deref(), system.noted)?;
        Some(report)
    };
    if let Some(report) = &report {
        subject.add_result(&tree, &machine, report, &mut shown);
    }
    let json = || json::migrate::migrate(&shown);
    output::show(args.json, global.color, json, |style| text::migrate::migrate(&shown, style))?;
    Ok(report.as_ref().map_or(0, code))
}

/// The exit code of a migration.
fn code(report: &MigrationReport) -> u8 {
    let is_whole = report.ending == Ending::Done && report.failed.is_empty();
    match report.moved {
        _ if is_whole => 0,
        moved if moved == Bytes::new(0) && report.ending != Ending::Interrupted => CANNOT,
        _ => SOME_STAYED,
    }
}

/// Writes down where pages were; returns the file for `--undo`.
fn save(file: Option<&Path>, mut noted: Moved) -> Result<Option<String>, Failure> {
    let Some(file) = file else { return Ok(None) };
    noted.join();
    write_file(file, noted.to_text().as_bytes(), Overwrite::Refuse).map_err(Failure::cannot)?;
    Ok(Some(file.display().to_string()))
}

fn read_saved(file: &Path, tree: &Tree) -> Result<Moved, Failure> {
    let text = measuring::read_saved("--undo", file)?;
    let named = quote(&file.display().to_string()).to_string();
    let saved = Moved::parse(&text).map_err(|why| {
        Failure::usage(format_args!("--undo: {named} does not say where pages were: {why}"))
    })?;
    let boot = boot::id(tree).map_err(Failure::cannot)?;
    if boot.is_some_and(|boot| boot != saved.boot) {
        return Err(Failure::cannot(format_args!(
            "{named} is from before this boot: the process in it has ended"
        )));
    }
    Ok(saved)
}

/// The pages that may be moved: those of others need a right.
fn scope(args: &Migrate, tree: &Tree) -> Result<PageScope, Failure> {
    if !args.shared {
        return Ok(PageScope::Own);
    }
    if live::may_move_shared(tree) {
        return Ok(PageScope::All);
    }
    Err(Failure::cannot("--shared needs CAP_SYS_NICE: root has it, in the initial user namespace"))
}

/// The pages that are to move.
struct Work {
    regions: Vec<Region>,
    /// `None`: back to where it was.
    goal: Option<Goal>,
    /// How much that is, as far as it is known.
    expected: Bytes,
}

impl Work {
    fn plan(args: &Migrate, machine: &Machine, mappings: &[Mapped]) -> Result<Self, Failure> {
        let to = args.to.as_deref().unwrap_or_default();
        let goal = Goal::parse(to, args.from.as_deref(), &machine.node_ids()).map_err(Failure::usage)?;
        let kinds = kinds(&args.only)?;
        let regions = regions(mappings, &kinds, args.range, &goal);
        let expected = regions.iter().flat_map(|region| region.leaving.values().copied()).sum();
        Ok(Self { regions, goal: Some(goal), expected })
    }

    fn targets(&self) -> NodeSet {
        let of_regions = |all: NodeSet, region: &Region| all.union(&region.goal.targets());
        let own = self.goal.as_ref().map(Goal::targets).unwrap_or_default();
        self.regions.iter().fold(own, of_regions)
    }

    /// Memory that leaves each node, as the mappings have it.
    fn flows(&self) -> Vec<Flow> {
        let Some(goal) = &self.goal else {
            let mut flows: BTreeMap<NodeId, Bytes> = BTreeMap::new();
            for region in &self.regions {
                let size = Bytes::new(region.end - region.start);
                region.goal.targets().iter().for_each(|to| *flows.entry(to).or_default() += size);
            }
            let back = |(node, size)| Flow { from: node, to: format!("node {node}, where it was"), size };
            return flows.into_iter().map(back).collect();
        };
        let mut leaving: BTreeMap<NodeId, Bytes> = BTreeMap::new();
        for (node, size) in self.regions.iter().flat_map(|region| &region.leaving) {
            *leaving.entry(*node).or_default() += *size;
        }
        let to = |from: &NodeId| match goal {
            Goal::Nodes(map) => map.get(from).map_or_else(String::new, |to| format!("node {to}")),
            Goal::Interleave { .. } => format!("{} in turn", node_names(&goal.targets())),
            Goal::Back(node) => format!("node {node}"),
        };
        leaving.into_iter().map(|(from, size)| Flow { from, to: to(&from), size }).collect()
    }
}

/// The kinds that `--only` names; without it the memory of the program itself.
fn kinds(words: &[String]) -> Result<Vec<MemoryKind>, Failure> {
    if words.is_empty() {
        return Ok(MemoryKind::ALL.into_iter().filter(|kind| *kind != MemoryKind::File).collect());
    }
    let kind = |word: &String| {
        MemoryKind::from_word(word).ok_or_else(|| {
            let all: Vec<&str> = MemoryKind::ALL.iter().map(|kind| kind.word()).collect();
            Failure::usage(format_args!(
                "--only: {} is not a kind of memory: expected {}",
                quote(word),
                all.join(", ")
            ))
        })
    };
    words.iter().map(kind).collect()
}

/// The process whose pages move.
struct Subject {
    pid: Pid,
    name: String,
    started_at_ticks: u64,
    status: ProcessStatus,
}

impl Subject {
    fn look(tree: &Tree, pid: Pid) -> Result<Self, Failure> {
        let none = || Failure::cannot(format_args!("process {pid} does not exist"));
        let found = status(tree, pid).map_err(Failure::cannot)?.ok_or_else(none)?.value;
        if has_ended(found.state) {
            return Err(Failure::cannot(format_args!("process {pid} has ended, and has no memory")));
        }
        let started_at_ticks = started_at_ticks(tree, pid).map_err(Failure::cannot)?.ok_or_else(none)?;
        let name = printable(found.name.as_deref().unwrap_or("?")).into_owned();
        Ok(Self { pid, name, started_at_ticks, status: found })
    }

    fn mappings(&self, tree: &Tree) -> Result<Vec<Mapped>, Failure> {
        let own = rustix::process::geteuid().as_raw();
        match mappings(tree, self.pid) {
            Ok(Some(mappings)) => Ok(mappings),
            Ok(None) => Err(Failure::cannot(format_args!(
                "process {} has ended, or this kernel has no NUMA (no numa_maps)",
                self.pid
            ))),
            Err(error) => Err(Failure::cannot(match self.status.user {
                Some(user) if user != own => format!(
                    "process {} ({}) is another user's: its pages need root, or CAP_SYS_PTRACE ({error})",
                    self.pid, self.name
                ),
                _ => error.to_string(),
            })),
        }
    }

    /// Whether pages may go to these nodes at all.
    fn check_targets(&self, targets: &NodeSet, machine: &Machine) -> Result<(), Failure> {
        let without = targets.difference(&machine.memory_nodes());
        if !without.is_empty() {
            let is = if without.len() == 1 { "has" } else { "have" };
            return Err(Failure::cannot(format_args!(
                "{} {is} no memory: expected some of {}",
                node_names(&without),
                node_names(&machine.memory_nodes())
            )));
        }
        let Some(allowed) = &self.status.mems_allowed else { return Ok(()) };
        let outside = targets.difference(allowed);
        if outside.is_empty() {
            return Ok(());
        }
        let is = if outside.len() == 1 { "is" } else { "are" };
        Err(Failure::cannot(format_args!(
            "{} {is} outside the cpuset of process {}, which allows {}; add to cpuset.mems of its control group what \
             is missing (/proc/{}/cgroup names the group)",
            node_names(&outside),
            self.pid,
            node_names(allowed),
            self.pid
        )))
    }

    fn outline(&self, before: &[Mapped], work: &Work, machine: &Machine) -> Migration {
        let before = sums(before);
        let mut notes = Vec::new();
        let plan = work.flows();
        if work.regions.is_empty() {
            notes.push("no page of these kinds is on the nodes to leave".to_owned());
        }
        if machine.settings.numa_balancing.is_some_and(|mode| mode > 0) {
            notes.push(
                "automatic balancing is on (kernel.numa_balancing): it may move pages back to where the process runs"
                    .to_owned(),
            );
        }
        Migration {
            pid: self.pid.number(),
            name: self.name.clone(),
            started_at_ticks: self.started_at_ticks,
            plan,
            before: amounts(&before),
            after: None,
            moved: Bytes::new(0),
            gone: Bytes::new(0),
            failed: Vec::new(),
            calls: 0,
            took: Duration::ZERO,
            paused: Duration::ZERO,
            listing: Duration::ZERO,
            ending: ShownEnding::DryRun,
            notes,
            undo: None,
        }
    }

    fn add_result(&self, tree: &Tree, machine: &Machine, report: &MigrationReport, shown: &mut Migration) {
        shown.moved = report.moved;
        shown.gone = report.gone;
        shown.calls = report.calls;
        shown.took = report.took;
        shown.paused = report.paused;
        shown.listing = report.listing;
        shown.failed = report.failed.iter().map(|(reason, size)| failed(*reason, *size)).collect();
        shown.ending = match &report.ending {
            Ending::Done => ShownEnding::Done,
            Ending::Interrupted => {
                shown
                    .notes
                    .push("the same command resumes: pages that have moved are passed over".to_owned());
                ShownEnding::Interrupted
            }
            Ending::ProcessEnded => ShownEnding::ProcessEnded,
            Ending::Refused(error) => {
                shown.notes.push(live::explain(error, machine).to_string());
                ShownEnding::Refused
            }
        };
        if report.moved > Bytes::new(0) && report.ending != Ending::ProcessEnded {
            shown.notes.push("pages that it touches later follow its own policy".to_owned());
        }
        if report.ending != Ending::ProcessEnded {
            shown.after = mappings(tree, self.pid).ok().flatten().map(|mappings| amounts(&sums(&mappings)));
        }
    }
}

fn amounts(sums: &ByKind) -> Vec<Amount> {
    sums.iter().map(|((kind, node), size)| Amount { kind: kind.word(), node: *node, size: *size }).collect()
}

/// Why pages stayed, in a sentence behind their size.
fn failed(reason: Reason, size: Bytes) -> Failed {
    use nodewise_syscall::Errno;
    let (word, errno, sentence) = match reason {
        Reason::Shared => (
            "shared",
            Some(Errno::EACCES),
            "that other processes map too (--shared moves them, with CAP_SYS_NICE)".to_owned(),
        ),
        Reason::Busy => (
            "busy",
            Some(Errno::EBUSY),
            "in use by the kernel or a device: another try may move them".to_owned(),
        ),
        Reason::NoRoom => (
            "no_room",
            Some(Errno::ENOMEM),
            "for which the target has no memory: free some there, or name another node".to_owned(),
        ),
        Reason::Other(errno) => ("error", Some(errno), format!("that the kernel does not move: {errno}")),
        Reason::Unsaid => {
            ("unknown", None, "that stayed without a reason given: another try may move them".to_owned())
        }
    };
    Failed { reason: word, errno: errno.map(Errno::number), sentence, size }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ending: Ending, moved: u64, failed: &[(Reason, u64)]) -> MigrationReport {
        MigrationReport {
            moved: Bytes::new(moved),
            failed: failed
                .iter()
                .map(|(reason, size)| (*reason, Bytes::new(*size)))
                .collect::<BTreeMap<_, _>>(),
            gone: Bytes::new(0),
            calls: 1,
            took: Duration::ZERO,
            paused: Duration::ZERO,
            listing: Duration::ZERO,
            ending,
        }
    }

    #[test]
    fn the_exit_code_says_whether_all_moved() {
        assert_eq!(code(&report(Ending::Done, 1, &[])), 0);
        assert_eq!(code(&report(Ending::Done, 0, &[])), 0, "all was there");
        assert_eq!(code(&report(Ending::Done, 1, &[(Reason::Busy, 1)])), 1);
        assert_eq!(code(&report(Ending::Done, 0, &[(Reason::NoRoom, 1)])), 3);
        assert_eq!(code(&report(Ending::Interrupted, 0, &[])), 1);
        assert_eq!(code(&report(Ending::ProcessEnded, 5, &[])), 1);
    }

    #[test]
    fn kinds_are_named_by_their_words() {
        assert!(!kinds(&[]).unwrap().contains(&MemoryKind::File));
        assert_eq!(kinds(&["file".to_owned()]).unwrap(), [MemoryKind::File]);
        let refused = kinds(&["code".to_owned()]).unwrap_err().message;
        assert_eq!(
            refused,
            "--only: \"code\" is not a kind of memory: expected heap, stack, anon, shmem, file, hugetlb"
        );
    }
}
