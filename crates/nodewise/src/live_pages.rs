//! The pages of a running process, requested from the kernel for the readers of `source`.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::time::Duration;

use nodewise_machine::mapping::{Mapping, MappingsMethod, ProcessMappings};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Machine, NodeId, Origin, Pid};
use nodewise_source::mappings::{self, MappingsError, PageError, PageSource, Run, RunState, Thoroughness};
use nodewise_source::paths;
use nodewise_source::sample::{Denied, DrawnPages, PageDrawer, PageMethod, PageShare};
use nodewise_source::tree::Tree;
use nodewise_syscall::pagemap::{self, PageState};
use nodewise_syscall::{Errno, PageLocation, Task, Usage, huge, pages};
use nodewise_view::digest::maps::Tally;

use crate::{live, measuring};

/// Pages that a sample asks for: the share of a node is then known to three points, which decides whether a tenth of the
/// memory is remote.
const PAGES_OF_A_SAMPLE: u64 = 1000;

/// The pages of a process.
pub struct LivePages {
    task: Option<Task>,
    /// Missing where the process may not be looked into, or the kernel was built without it.
    pagemap: Option<File>,
}

impl LivePages {
    /// Prepares for questions about a process.
    pub fn open(pid: Pid) -> Self {
        let is_own = pid.number() == std::process::id();
        let task = if is_own { Some(Task::CURRENT) } else { Task::new(pid.number()) };
        Self { task, pagemap: File::open(paths::pagemap(pid)).ok() }
    }
}

/// The mappings of a running process, with pages drawn again at each reading.
///
/// # Errors
/// As [`mappings::read`].
pub fn mappings(tree: &Tree, pid: Pid, thoroughness: Thoroughness) -> Result<ProcessMappings, MappingsError> {
    mappings::read(tree, pid, thoroughness, measuring::seed(None), Some(&mut LivePages::open(pid)))
}

impl PageSource for LivePages {
    fn page_size(&self) -> u64 {
        pages::page_size() as u64
    }

    fn huge_size(&self) -> u64 {
        huge::transparent_huge_size() as u64
    }

    fn runs(&mut self, range: (u64, u64), each: &mut dyn FnMut(Run)) -> Result<(), PageError> {
        let pagemap = self.pagemap.as_ref().ok_or(PageError::Unsupported)?;
        let scanned = pagemap::scan(pagemap.as_fd(), range, |run| {
            let state = match run.state {
                PageState::Small => RunState::Small,
                PageState::Huge => RunState::Huge,
                PageState::Swapped => RunState::Swapped,
                PageState::Zero => return,
            };
            each(Run { start: run.start, end: run.end, state });
        });
        // Whatever else is wrong with it, pages can be drawn without a list of them.
        scanned.map_err(|errno| if errno == Errno::ESRCH { PageError::Gone } else { PageError::Unsupported })
    }

    fn locate(
        &mut self,
        addresses: &[u64],
        each: &mut dyn FnMut(u64, Option<NodeId>),
    ) -> Result<(), PageError> {
        let task = self.task.ok_or(PageError::Gone)?;
        let addresses = addresses.iter().map(|address| *address as usize);
        let located = pages::locate(task, addresses, |address, location| {
            let node = match location {
                PageLocation::Node(node) => Some(node),
                _ => None,
            };
            each(address as u64, node);
        });
        located.map_err(|error| match error.errno {
            // A process that ends loses its memory first (EINVAL).
            Errno::ESRCH | Errno::EINVAL => PageError::Gone,
            // A filter of system calls, another user's process, or a kernel without NUMA: the facts of the machine do not distinguish these.
            _ => PageError::Refused(live::explain(&error, &Machine::new(Origin::Live)).to_string()),
        })
    }

    fn cpu_time(&mut self) -> Option<Duration> {
        Usage::of_this_thread().map(|usage| usage.cpu_time())
    }
}

/// Draws pages of the processes of samples.
#[derive(Debug)]
pub struct LiveDrawer {
    /// The seed of the next drawing.
    seed: u64,
}

impl LiveDrawer {
    /// Draws other pages each time.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }
}

impl PageDrawer for LiveDrawer {
    fn draw(&mut self, pid: Pid) -> Result<Option<DrawnPages>, Denied> {
        self.seed = self.seed.wrapping_add(1);
        let mut pages = LivePages::open(pid);
        let thoroughness = Thoroughness::Shares(PAGES_OF_A_SAMPLE);
        let read = match mappings::read(&Tree::live(), pid, thoroughness, self.seed, Some(&mut pages)) {
            Ok(read) => read,
            Err(MappingsError::OtherUser(_) | MappingsError::Protected(_)) => return Err(Denied::Rights),
            Err(MappingsError::Read(_) | MappingsError::NothingToDraw(_)) => return Err(Denied::Unreadable),
            Err(_) => return Ok(None),
        };
        by_node(&read).map(Some)
    }
}

/// The memory of a process by node.
fn by_node(read: &ProcessMappings) -> Result<DrawnPages, Denied> {
    let method = match read.method {
        MappingsMethod::Sampled { asked, .. } => PageMethod::Drawn(u32::try_from(asked).unwrap_or(u32::MAX)),
        // A part of the pages is not their sum.
        MappingsMethod::Exact if read.mappings.iter().any(|mapping| mapping.unsure) => {
            return Err(Denied::Unreadable);
        }
        MappingsMethod::Exact => PageMethod::Exact,
        MappingsMethod::NoNodes => return Err(Denied::NoFile),
    };
    let tally = Tally::from_mappings(&read.mappings);
    let own = Tally::from_mappings(read.mappings.iter().filter(|mapping| is_own(mapping)));
    let on = |node: NodeId| {
        let (found, own) = (tally.on(node), own.on(node).size);
        (node, PageShare { size: found.size, low: found.low, high: found.high, own: Some(own) })
    };
    Ok(DrawnPages { method, nodes: tally.nodes().iter().map(on).collect_map() })
}

/// Whether a mapping is the process's own. Nothing says how many map a shared one whose pages are drawn: a database
/// would have the same segment once for each of its processes.
fn is_own(mapping: &Mapping) -> bool {
    let is_alone = mapping.most_mapped.is_some_and(|most| most <= 1) || !mapping.permissions.shared;
    mapping.kind.follows_policy() && is_alone
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::mapping::MappingKind;
    use nodewise_source::mappings::read;

    #[test]
    fn this_process_has_a_heap_of_its_own_and_a_program_file() {
        let me = Pid::new(std::process::id());
        for thoroughness in [Thoroughness::Exact, Thoroughness::Sample(500)] {
            let found = read(&Tree::live(), me, thoroughness, 1, Some(&mut LivePages::open(me))).unwrap();
            assert!(found.mappings.iter().any(|mapping| mapping.kind == MappingKind::File));
            assert!(
                found.mappings.iter().any(|mapping| mapping.resident().is_some_and(|size| size.get() > 0))
            );
            if thoroughness == Thoroughness::Exact {
                assert_ne!(found.method, MappingsMethod::Sampled { asked: 0, seed: 1 });
            }
        }
    }

    #[test]
    fn pages_whose_node_is_not_known_are_not_counted_as_none() {
        let me = Pid::new(std::process::id());
        let thoroughness = Thoroughness::Exact;
        let mut found = read(&Tree::live(), me, thoroughness, 1, Some(&mut LivePages::open(me))).unwrap();
        found.method = MappingsMethod::Exact;
        found.mappings.iter_mut().for_each(|mapping| mapping.unsure = false);
        assert_eq!(by_node(&found).map(|drawn| drawn.method), Ok(PageMethod::Exact));
        found.mappings[0].unsure = true;
        assert_eq!(by_node(&found), Err(Denied::Unreadable));
        found.method = MappingsMethod::NoNodes;
        assert_eq!(by_node(&found), Err(Denied::NoFile));
    }

    #[test]
    fn drawn_pages_of_this_process_are_where_all_of_them_are() {
        let memory = vec![1_u8; 64 << 20];
        let me = Pid::new(std::process::id());
        let drawn = LiveDrawer::new(7).draw(me).unwrap().unwrap();
        assert!(matches!(drawn.method, PageMethod::Drawn(500..)), "{:?}", drawn.method);
        let size: u64 = drawn.nodes.values().map(|share| share.size.get()).sum();
        assert!(size >= memory.len() as u64, "{drawn:?}");
        assert!(drawn.nodes.values().all(|share| share.low <= share.size && share.size <= share.high));
        assert_eq!(LiveDrawer::new(7).draw(Pid::new(u32::MAX >> 1)), Ok(None));
    }
}
