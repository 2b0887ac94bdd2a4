//! `nodewise shm`: shared memory, its pages and its policies.

use std::collections::BTreeMap;
use std::os::fd::AsFd as _;
use std::path::Path;

use nodewise_machine::printable::{io_words, printable, quote};
use nodewise_machine::{Bytes, Machine, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_source::parse::numa_maps::parse_line;
use nodewise_source::tree::Tree;
use nodewise_source::{Detail, paths, shared};
use nodewise_syscall::pages::{PageLocation, locate, page_size};
use nodewise_syscall::shared::{Segment, SharedMemory};
use nodewise_syscall::{BindOptions, Errno, PageScope, Task, mempolicy};
use nodewise_view::digest::shm::{Mount, Object, PolicyRange, Segment as ShownSegment, Shared};
use nodewise_view::{json, text};

use super::explain::parse;
use crate::cli::Global;
use crate::cli::shm::{List, Policy, SharedAction, Shm, Show};
use crate::failure::{Failure, Outcome};
use crate::{input, live, output};

/// Exit code where `--verify` finds pages elsewhere.
const ELSEWHERE: u8 = 1;

/// Runs `shm`.
pub fn run(args: &Shm, global: &Global) -> Outcome {
    match &args.kind {
        SharedAction::List(args) => list(args, global),
        SharedAction::Show(args) => show(args, global),
        SharedAction::Policy(args) => policy(args, global),
    }
}

fn list(args: &List, global: &Global) -> Outcome {
    let tree = Tree::live();
    let segments = shared::segments(&tree).map_err(Failure::cannot)?.map(|parsed| parsed.value);
    let segment = |own: nodewise_source::parse::sysvipc_shm::Segment| ShownSegment {
        key: own.key,
        id: own.id,
        user: own.user,
        mode: own.mode,
        size: own.size,
        resident: own.resident,
        swapped: own.swapped,
        attaches: own.attaches,
    };
    let mount = |own: shared::MemoryFiles| Mount {
        folder: own.folder,
        kind: own.kind,
        size: own.size,
        policy: own.policy,
        huge: own.huge,
    };
    let mounts = shared::memory_files(&tree).map_err(Failure::cannot)?;
    let shown = Shared {
        segments: segments.unwrap_or_default().into_iter().map(segment).collect(),
        mounts: mounts.into_iter().map(mount).collect(),
    };
    output::show(args.json, global.color, || json::shm::shm(&shown), |style| text::shm::shm(&shown, style))?;
    Ok(0)
}

fn show(args: &Show, global: &Global) -> Outcome {
    let opened = Opened::open(&args.object)?;
    let shown = opened.look()?;
    let json = || json::shm::object(&shown);
    output::show(args.json, global.color, json, |style| text::shm::object(&shown, style))?;
    Ok(0)
}

fn policy(args: &Policy, global: &Global) -> Outcome {
    let input = input::load(&global.machine, Detail::Full)?;
    let machine = &input.machine;
    let allowed = machine.allowed_nodes.clone().unwrap_or_else(|| machine.node_ids());
    let wanted = parse(&args.policy, &input, &allowed).map_err(Failure::usage)?;
    let opened = Opened::open(&args.object)?;
    let (start, length) = opened.range(args.range)?;
    if args.dry_run {
        let mut shown = opened.look()?;
        shown
            .notes
            .push(format!("a dry run: {wanted} would be set from {start:#x}, {}", Bytes::new(length as u64)));
        output::show(
            args.json,
            global.color,
            || json::shm::object(&shown),
            |style| text::shm::object(&shown, style),
        )?;
        return Ok(0);
    }
    let address = opened.memory.address() + start;
    if args.moves && !opened.is_pool() {
        // The kernel moves the pages that this process has in its tables.
        opened.see()?;
    }
    let scope = || if live::may_move_shared(&Tree::live()) { PageScope::All } else { PageScope::Own };
    let moving = args.moves.then(scope);
    let options = BindOptions { moving, strict: false };
    mempolicy::bind_range(address, length, &wanted, options)
        .map_err(|error| Failure::cannot(live::explain(&error, machine)))?;
    let mut shown = opened.look()?;
    shown.notes.push(format!("{wanted} is set from {start:#x}, {}", Bytes::new(length as u64)));
    if moving == Some(PageScope::Own) {
        shown
            .notes
            .push("without CAP_SYS_NICE pages that other processes map stay where they are".to_owned());
    }
    if args.verify {
        shown.misplaced = Some(opened.misplaced(start, length, &wanted, machine)?);
    }
    output::show(
        args.json,
        global.color,
        || json::shm::object(&shown),
        |style| text::shm::object(&shown, style),
    )?;
    Ok(if shown.misplaced.is_some_and(|size| size > Bytes::new(0)) { ELSEWHERE } else { 0 })
}

/// A segment or file that is mapped.
struct Opened {
    name: String,
    memory: SharedMemory,
}

impl Opened {
    /// Maps what a text names: a number is a segment.
    fn open(text: &str) -> Result<Self, Failure> {
        if let Ok(id) = text.parse::<u32>() {
            let name = format!("segment {id}");
            let refused = |errno: Errno| {
                Failure::cannot(match errno {
                    Errno::EINVAL => format!("{name} does not exist (nodewise shm list shows those that do)"),
                    Errno::EACCES => format!("{name} is another user's: expected its owner, or root"),
                    errno => format!("cannot attach {name}: {errno}"),
                })
            };
            let segment = Segment::from_id(id).ok_or_else(|| refused(Errno::EINVAL))?;
            let memory = SharedMemory::attach_to_read(segment).map_err(refused)?;
            return Ok(Self { name, memory });
        }
        let (path, shown) = (Path::new(text), quote(text).to_string());
        let refused = |why: String| Failure::cannot(format_args!("cannot map {shown}: {why}"));
        let is_in_memory = is_in_memory(path)?;
        if !is_in_memory {
            return Err(refused(
                "it is not on tmpfs or hugetlbfs: the policy of other files cannot be set".to_owned(),
            ));
        }
        // Only a process that may write to a file learns which of its pages are present.
        let file = std::fs::File::options().read(true).write(true).open(path);
        let file = file.map_err(|error| refused(io_words(&error)))?;
        let length = file.metadata().map_err(|error| refused(io_words(&error)))?.len();
        let length = usize::try_from(length).ok().filter(|length| *length > 0);
        let length = length.ok_or_else(|| refused("it is empty".to_owned()))?;
        let memory =
            SharedMemory::map_to_read(file.as_fd(), 0, length).map_err(|errno| refused(errno.to_string()))?;
        Ok(Self { name: printable(text).into_owned(), memory })
    }

    /// The part that a range means, from the beginning, in whole pages.
    fn range(&self, range: Option<(u64, u64)>) -> Result<(usize, usize), Failure> {
        let Some((start, end)) = range else { return Ok((0, self.memory.length())) };
        let all = self.memory.length() as u64;
        if end > all.next_multiple_of(page_size() as u64) {
            return Err(Failure::usage(format_args!(
                "--range ends at {end:#x}: {} ends at {all:#x}",
                self.name
            )));
        }
        if start % page_size() as u64 != 0 {
            return Err(Failure::usage(format_args!("--range: {start:#x} is not the beginning of a page")));
        }
        Ok((start as usize, (end - start) as usize))
    }

    /// Whether its pages are from a pool: which of these are there is shown to programs that touched them only.
    fn is_pool(&self) -> bool {
        let (mut is_huge, mut problems) = (false, nodewise_source::parse::Problems::default());
        let start = self.memory.address() as u64;
        let _ = Tree::live().read_lines(paths::OWN_NUMA_MAPS, &mut |line| {
            let own = parse_line(line, 0, &mut problems).filter(|own| own.start == start);
            is_huge |= own.is_some_and(|own| own.huge);
        });
        is_huge
    }

    /// Brings the pages that are there into the tables of this process, where the kernel can be asked for them.
    fn see(&self) -> Result<(), Failure> {
        self.memory.see().map_err(|errno| {
            Failure::cannot(match errno {
                Errno::EINVAL => {
                    "pages of shared memory are found from Linux 5.14 on (MADV_POPULATE_READ)".to_owned()
                }
                errno => format!("cannot look at {}: {errno}", self.name),
            })
        })
    }

    fn locations(&self, start: usize, length: usize) -> Result<Vec<PageLocation>, Failure> {
        let mut places = Vec::new();
        let addresses = nodewise_syscall::pages::addresses(self.memory.address() + start, length, 0);
        locate(Task::CURRENT, addresses, |_, place| places.push(place)).map_err(Failure::cannot)?;
        Ok(places)
    }

    /// Nodes of its pages, and its policies. Nothing is allocated.
    fn look(&self) -> Result<Object, Failure> {
        let length = self.memory.length();
        let mut shown = Object {
            name: self.name.clone(),
            size: Bytes::new(length as u64),
            nodes: Vec::new(),
            absent: Bytes::new(0),
            policies: self.policies(),
            misplaced: None,
            notes: Vec::new(),
        };
        if self.is_pool() {
            shown.notes.push(
                "its pages are from a pool: their nodes are seen in the programs that map it (/proc/PID/numa_maps)"
                    .to_owned(),
            );
            return Ok(shown);
        }
        self.see()?;
        let page = Bytes::new(page_size() as u64);
        let mut nodes: BTreeMap<NodeId, Bytes> = BTreeMap::new();
        for place in self.locations(0, length)? {
            match place {
                PageLocation::Node(node) => *nodes.entry(node).or_default() += page,
                _ => shown.absent += page,
            }
        }
        shown.nodes = nodes.into_iter().collect();
        Ok(shown)
    }

    /// Its policies, those of neighbours that are alike as one.
    fn policies(&self) -> Vec<PolicyRange> {
        // The kernel keeps ranges and does not list them: `numa_maps` has that of the first page, so each page is
        // asked. That takes no lock for long and touches none.
        let step = page_size();
        let mut ranges: Vec<PolicyRange> = Vec::new();
        for offset in (0..self.memory.length()).step_by(step) {
            let policy = mempolicy::policy_at(self.memory.address() + offset);
            let policy = policy.map_or_else(|error| error.to_string(), |policy| policy.to_string());
            match ranges.last_mut() {
                Some(last) if last.policy == policy => last.length += step as u64,
                _ => ranges.push(PolicyRange { offset: offset as u64, length: step as u64, policy }),
            }
        }
        ranges
    }

    /// Pages that are on nodes where the policy does not want them.
    fn misplaced(
        &self,
        start: usize,
        length: usize,
        policy: &MemPolicy,
        machine: &Machine,
    ) -> Result<Bytes, Failure> {
        let all = machine.node_ids();
        let Some(nodes) = strict_nodes(policy, &all) else { return Ok(Bytes::new(0)) };
        let elsewhere =
            |place: &&PageLocation| matches!(place, PageLocation::Node(node) if !nodes.contains(*node));
        let count = self.locations(start, length)?.iter().filter(elsewhere).count();
        Ok(Bytes::new(page_size() as u64).times(count as u64))
    }
}

/// The nodes that a policy names; `None` where it leaves the node to the program that touches a page first.
fn strict_nodes(policy: &MemPolicy, all: &NodeSet) -> Option<NodeSet> {
    match policy.mode {
        PolicyMode::Default | PolicyMode::Local => None,
        _ if policy.nodes.is_empty() => None,
        _ => Some(policy.nodes.intersection(all)),
    }
}

/// Whether a file is on a file system whose files can have a policy.
fn is_in_memory(path: &Path) -> Result<bool, Failure> {
    let path = std::fs::canonicalize(path).map_err(|error| {
        let shown = quote(&path.display().to_string()).to_string();
        Failure::cannot(format_args!("cannot open {shown}: {}", io_words(&error)))
    })?;
    let status =
        rustix::fs::statfs(&path).map_err(|errno| Failure::cannot(io_words(&std::io::Error::from(errno))))?;
    // TMPFS_MAGIC and HUGETLBFS_MAGIC of statfs(2).
    Ok(matches!(status.f_type as u64, 0x0102_1994 | 0x9584_58f6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_names_no_nodes_has_no_page_elsewhere() {
        let all = NodeSet::from([0, 1]);
        let check = |text: &str, expected: Option<NodeSet>| {
            assert_eq!(strict_nodes(&text.parse().unwrap(), &all), expected, "{text}");
        };
        check("default", None);
        check("local", None);
        check("bind:1", Some(NodeSet::from([1])));
        check("interleave:0-1", Some(all.clone()));
    }

    #[test]
    fn what_is_not_shared_memory_is_refused_with_the_reason() {
        let refused = Opened::open("/proc/version").err().unwrap().message;
        assert!(refused.contains("is not on tmpfs or hugetlbfs"), "{refused}");
        let refused = Opened::open("/nowhere/at/all").err().unwrap().message;
        assert!(refused.contains("no such file"), "{refused}");
        let refused = Opened::open("4294967295").err().unwrap().message;
        assert!(refused.contains("does not exist"), "{refused}");
    }
}
