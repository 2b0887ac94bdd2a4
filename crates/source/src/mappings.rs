//! The mappings of a process, and on which nodes their pages are.
//!
//! Reading `numa_maps` walks every page, and holds the process's memory map while it does; so its price is
//! predicted, and where it is high pages are drawn instead. Which pages there are, and where one is, only
//! system calls say: they come in as a [`PageSource`].

mod exact;
mod kind;
mod runs;
mod sample;
pub mod sharers;

use std::time::Duration;

use nodewise_machine::mapping::{Mapping, MappingPolicy, MappingsMethod, ProcessMappings};
use nodewise_machine::{Bytes, NodeId, Pid};

use crate::mappings::kind::Kinds;
use crate::parse::maps::{self, Mapping as Listed};
use crate::parse::proc_status::ProcessStatus;
use crate::parse::{Parsed, Problems};
use crate::process;
use crate::tree::{ReadError, Tree};

/// The CPU time of `numa_maps` per present page and per mapping, until one was measured.
///
/// # Source
/// Linux 6.18 on a virtual machine: 512 MiB of small pages in 11.0 ms; a process of 33 mappings in 38 us.
const PAGE_COST: Duration = Duration::from_nanos(84);
const MAPPING_COST: Duration = Duration::from_nanos(1200);
/// The dearest reading that is not replaced by drawing pages: it holds locks that the process waits for.
pub(crate) const MOST_COST: Duration = Duration::from_millis(20);
/// Pages that are asked for, unless someone names a number: the share of a node is then known to a point.
const USUAL_SAMPLE: u64 = 10_000;

/// System calls about the pages of one process.
pub trait PageSource {
    /// The size of a small page, in bytes.
    fn page_size(&self) -> u64;

    /// The size of a transparent huge page, in bytes.
    fn huge_size(&self) -> u64;

    /// Hands over runs of pages that are present or swapped out in a range of addresses, in order.
    ///
    /// # Errors
    /// [`PageError::Unsupported`] where the kernel does not know the question.
    fn runs(&mut self, range: (u64, u64), each: &mut dyn FnMut(Run)) -> Result<(), PageError>;

    /// Hands over the node of each page, in order; `None` for one that is not present.
    ///
    /// # Errors
    /// [`PageError::Refused`] where the process may not be looked into in this way.
    fn locate(
        &mut self,
        addresses: &[u64],
        each: &mut dyn FnMut(u64, Option<NodeId>),
    ) -> Result<(), PageError>;

    /// The CPU time that the caller has used up to now; `None` where no clock says.
    fn cpu_time(&mut self) -> Option<Duration>;
}

/// A run of pages that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    pub state: RunState,
}

/// The state of a run of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    Small,
    Huge,
    Swapped,
}

/// Why pages cannot be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageError {
    /// The kernel has no such call.
    Unsupported,
    /// The process has ended.
    Gone,
    /// It is forbidden, for this reason.
    Refused(String),
}

/// How thoroughly pages are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Thoroughness {
    /// All of them where that is cheap, otherwise some.
    #[default]
    ByPrice,
    /// All of them, whatever the price.
    Exact,
    /// At most about this many.
    Sample(u64),
    /// At most about this many, for the shares of the nodes alone: where most of the address space has pages, they are
    /// drawn from all of it, and no page table is walked.
    Shares(u64),
}

/// Why the mappings of a process cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingsError {
    #[error("process {0} does not exist")]
    NoProcess(Pid),
    #[error("process {0} is a thread of the kernel: it has no mappings")]
    KernelThread(Pid),
    #[error("process {0} has ended and only waits for its parent: it has no memory")]
    Zombie(Pid),
    #[error("process {0} ended while it was read")]
    Ended(Pid),
    #[error("process {0} is another user's: its mappings need root or CAP_SYS_PTRACE")]
    OtherUser(Pid),
    #[error("process {0} is protected from its own user: its mappings need root or CAP_SYS_PTRACE")]
    Protected(Pid),
    #[error("{0}: only a running process can be sampled")]
    NothingToDraw(Pid),
    #[error(transparent)]
    Read(ReadError),
}

/// Reads the mappings of a process.
///
/// # Source
/// `/proc/PID/maps`, `numa_maps`, `smaps`, `mountinfo` and `status`; with a page source `PAGEMAP_SCAN` and
/// `move_pages(2)` where pages are drawn, and for the sizes that `numa_maps` does not have.
///
/// # Errors
/// A process that does not exist, has no memory, or that this user may not look into.
pub fn read(
    tree: &Tree,
    pid: Pid,
    thoroughness: Thoroughness,
    seed: u64,
    pages: Option<&mut dyn PageSource>,
) -> Result<ProcessMappings, MappingsError> {
    let mut process = Process::open(tree, pid)?;
    let small = pages.as_ref().map_or(4096, |pages| pages.page_size());
    let predicted = process.price(small);
    let Some(pages) = pages else {
        if matches!(thoroughness, Thoroughness::Sample(_) | Thoroughness::Shares(_)) {
            return Err(MappingsError::NothingToDraw(pid));
        }
        let exact = exact::read(&mut process, None)?;
        return Ok(process.finish(exact, None, predicted));
    };
    let begin = pages.cpu_time();
    let wish = match thoroughness {
        Thoroughness::Sample(most) => Some(sample::Wish::new(most)),
        Thoroughness::Shares(most) => {
            Some(sample::Wish { lists_pages: !process.is_dense(), ..sample::Wish::new(most) })
        }
        Thoroughness::ByPrice if predicted > MOST_COST => {
            Some(sample::Wish { unless_cheap: true, ..sample::Wish::new(USUAL_SAMPLE) })
        }
        Thoroughness::ByPrice | Thoroughness::Exact => None,
    };
    let sampled = wish.map(|wish| sample::read(&mut process, pages, wish, seed)).transpose()?;
    let read = match sampled.flatten() {
        Some(sampled) => sampled,
        None => exact::read(&mut process, Some(pages))?,
    };
    let took = pages.cpu_time().zip(begin).map(|(end, begin)| end.saturating_sub(begin));
    Ok(process.finish(read, took, predicted))
}

/// The mappings with their pages, and how they were found.
struct Found {
    mappings: Vec<Mapping>,
    method: MappingsMethod,
    /// The policy of the first thread, where mappings are without.
    thread_policy: Option<MappingPolicy>,
}

/// A process that is read.
struct Process<'t> {
    tree: &'t Tree,
    pid: Pid,
    status: ProcessStatus,
    kinds: Kinds,
    listed: Vec<Listed>,
    notes: Vec<String>,
}

impl<'t> Process<'t> {
    fn open(tree: &'t Tree, pid: Pid) -> Result<Self, MappingsError> {
        let status = match process::status(tree, pid) {
            Ok(status) => status.map(|status| status.value),
            Err(error) if error.is_of_ended() => None,
            Err(error) => return Err(MappingsError::Read(error)),
        };
        let mut process = Self {
            tree,
            pid,
            status: status.clone().unwrap_or_default(),
            kinds: Kinds::read(tree, pid),
            listed: Vec::new(),
            notes: Vec::new(),
        };
        if status.is_none() && !tree.exists(&process.path("maps")) {
            return Err(MappingsError::NoProcess(pid));
        }
        process.list()?;
        if !process.listed.is_empty() {
            return Ok(process);
        }
        Err(match process.status.state {
            Some('Z' | 'X') => MappingsError::Zombie(pid),
            _ if status.is_none() => MappingsError::Ended(pid),
            _ if process.status.resident.is_none() => MappingsError::KernelThread(pid),
            _ => MappingsError::Ended(pid),
        })
    }

    fn path(&self, file: &str) -> String {
        format!("/proc/{}/{file}", self.pid)
    }

    /// Reads the list of mappings, again where there is one.
    fn list(&mut self) -> Result<(), MappingsError> {
        let (mut listed, mut problems, mut number) = (Vec::new(), Problems::default(), 0u32);
        let path = self.path("maps");
        let read = self.tree.read_lines(&path, &mut |line| {
            number = number.saturating_add(1);
            if !line.is_empty() {
                listed.extend(maps::parse_line(line, number, &mut problems));
            }
        });
        if !self.found(read)? {
            return Err(MappingsError::Ended(self.pid));
        }
        self.complain(&path, &problems);
        // The kernel lists them in order; a file that was made by hand may not.
        listed.sort_by_key(|mapping| mapping.start);
        listed.dedup_by(|mapping, before| mapping.start < before.end);
        self.listed = listed;
        Ok(())
    }

    /// Whether a file of the process was there.
    fn found(&self, read: Result<bool, ReadError>) -> Result<bool, MappingsError> {
        read.map_err(|error| match error.cause {
            _ if error.is_of_ended() => MappingsError::Ended(self.pid),
            cause if cause.is_permission() => {
                let own = process::own_user(self.tree);
                let is_other = self.status.user.zip(own).is_none_or(|(user, own)| user != own);
                if is_other { MappingsError::OtherUser(self.pid) } else { MappingsError::Protected(self.pid) }
            }
            _ => MappingsError::Read(error),
        })
    }

    /// Keeps what is wrong with a file.
    fn complain(&mut self, path: &str, problems: &Problems) {
        self.notes.extend(problems.first.first().map(|problem| {
            let more = match problems.count() - 1 {
                0 => String::new(),
                others => format!(" (and {others} more)"),
            };
            format!("{path}:{}: {}{more}", problem.line, problem.sentence())
        }));
    }

    fn resident(&self) -> Option<Bytes> {
        let resident = self.status.resident?;
        Some(resident + self.status.hugetlb.unwrap_or_default())
    }

    /// The CPU time that the kernel is expected to need for `numa_maps`. Huge pages are cheaper, so that this is
    /// too much for a process that has many.
    fn price(&self, small: u64) -> Duration {
        let pages = self.status.resident.unwrap_or_default().get() / small.max(1);
        price(pages, self.listed.len())
    }

    /// Whether most of its address space has pages, so that most draws find one.
    fn is_dense(&self) -> bool {
        let space: u64 =
            self.listed.iter().map(|mapping| mapping.end - mapping.start).fold(0, u64::saturating_add);
        self.status.resident.is_some_and(|resident| resident.get() >= space / 2)
    }

    fn finish(self, found: Found, took: Option<Duration>, predicted: Duration) -> ProcessMappings {
        ProcessMappings {
            pid: self.pid,
            resident: self.resident(),
            name: self.status.name,
            swapped: self.status.swapped,
            method: found.method,
            thread_policy: found.thread_policy,
            took,
            predicted,
            mappings: found.mappings,
            notes: self.notes,
        }
    }
}

/// The smallest page of any architecture: with larger ones a reading is cheaper.
pub const SMALLEST_PAGE: Bytes = Bytes::from_kib(4);

/// The CPU time that the kernel takes for this much memory in `numa_maps`, of pages of this size.
pub fn walk_price(size: Bytes, page: Bytes) -> Duration {
    price(size.get() / page.get().max(1), 0)
}

/// The CPU time of `numa_maps` for this number of entries of page tables, and of mappings.
fn price(entries: u64, mappings: usize) -> Duration {
    let nanos = |each: Duration, count: u64| (each.as_nanos() as u64).saturating_mul(count);
    Duration::from_nanos(nanos(PAGE_COST, entries).saturating_add(nanos(MAPPING_COST, mappings as u64)))
}

/// A file of lines that a parser with a memory takes, in bounded pieces; `None` when it does not exist.
fn lines_of<P: Default, T>(
    tree: &Tree,
    path: &str,
    push: impl Fn(&mut P, &str),
    finish: impl FnOnce(P) -> Parsed<T>,
) -> Result<Option<Parsed<T>>, ReadError> {
    let mut parser = P::default();
    let there = tree.read_lines(path, &mut |line| push(&mut parser, line))?;
    Ok(there.then(|| finish(parser)))
}

#[cfg(test)]
mod tests;
