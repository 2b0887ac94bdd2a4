//! The memory of a process: what the real kernel has mapped and made resident, with nodes of the machine.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd as _;

use nodewise_machine::mapping::FileId;
use nodewise_model::oracle::calls;
use nodewise_source::parse::maps::{self, Mapping};
use nodewise_source::paths;
use nodewise_syscall::pagemap::{self, PageState};
use nodewise_syscall::{Errno, PageLocation, Task, pages as located};
use rangemap::RangeSet;

use super::call::{ESRCH, Stop};
use super::pages::{Giver, Pages, Source, Turns};
use super::remap::Remap;
use super::world::World;

/// All addresses that programs can have.
pub const ALL: Range<u64> = 0..1 << 63;

/// The memory of a process.
#[derive(Debug, Default)]
pub struct Space {
    /// Which program's it is ([`nodewise_source::process::claims::image`]).
    pub image: Option<String>,
    /// Whether the parent has the same pages, since the process has not become another program.
    pub is_shared: bool,
    /// Memory that belongs to the process.
    pub own: Pages,
    /// Calls of `mremap(2)` whose outcome is to be looked up.
    pub remaps: Vec<Remap>,
}

/// The pages of the real kernel that have any of these bytes.
pub fn whole_pages(bytes: &Range<u64>) -> Range<u64> {
    let page = located::page_size() as u64;
    bytes.start - bytes.start % page..bytes.end.checked_next_multiple_of(page).unwrap_or(ALL.end)
}

/// The memory behind a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Memory of the process.
    Own,
    /// Shared memory, whose policies are the file's. With the mapping's first byte in it.
    Shared(FileId, u64),
    /// A file's pages, which no policy of a mapping places.
    File(FileId, u64),
    /// The kernel's: no pages to place.
    Kernel,
}

impl Backing {
    /// A writable private mapping counts as written to: its pages are the process's own.
    fn of(mapping: &Mapping) -> Self {
        let permissions = mapping.permissions;
        match (mapping.file, mapping.word()) {
            (_, Some("vdso" | "vvar" | "vvar_vclock" | "vsyscall")) => Self::Kernel,
            (None, _) => Self::Own,
            // File systems without a device of their own: tmpfs, and memory that is shared without a name.
            (Some(file), _) if permissions.shared && file.device.0 == 0 => Self::Shared(file, mapping.offset),
            (Some(_), _) if permissions.write && !permissions.shared => Self::Own,
            (Some(file), _) => Self::File(file, mapping.offset),
        }
    }
}

/// A mapping with its memory.
#[derive(Debug)]
pub struct Vma {
    pub mapping: Mapping,
    pub backing: Backing,
    /// Its resident pages among the addresses that were asked for.
    pub resident: Resident,
}

impl Vma {
    /// The part of these bytes that it has.
    pub fn clip(&self, bytes: &Range<u64>) -> Range<u64> {
        let start = self.mapping.start.max(bytes.start);
        start..self.mapping.end.min(bytes.end).max(start)
    }

    /// The places of its resident pages among these bytes. Of a file others have, the calls that move pages see no more.
    pub fn resident_keys(&self, bytes: &Range<u64>) -> Vec<Range<u64>> {
        let bytes = self.clip(bytes);
        if bytes.is_empty() {
            return Vec::new();
        }
        let clip = |run: &Range<u64>| run.start.max(bytes.start)..run.end.min(bytes.end);
        self.resident.pages.overlapping(&bytes).map(|run| self.keys(&clip(run))).collect()
    }

    /// Addresses as places in what holds their homes.
    pub fn keys(&self, bytes: &Range<u64>) -> Range<u64> {
        let (_, shift) = self.place();
        bytes.start.wrapping_add(shift)..bytes.end.wrapping_add(shift)
    }

    /// Whose turn is whose, and the difference between addresses and places.
    fn place(&self) -> (Turns, u64) {
        match self.backing {
            Backing::Own | Backing::Kernel => (Turns::Address, 0),
            Backing::Shared(file, offset) | Backing::File(file, offset) => {
                (Turns::File(file.inode), offset.wrapping_sub(self.mapping.start))
            }
        }
    }

    /// The origin of its pages.
    pub fn source(&self) -> Source<'_> {
        Source {
            turns: self.place().0,
            has_policies: !matches!(self.backing, Backing::File(..)),
            huge: &self.resident.huge,
        }
    }

    /// The file whose pages it shows.
    pub const fn file(&self) -> Option<FileId> {
        match self.backing {
            Backing::Shared(file, _) | Backing::File(file, _) => Some(file),
            Backing::Own | Backing::Kernel => None,
        }
    }
}

/// The mappings of a process that have any of these bytes, by address.
///
/// # Errors
/// The process has ended.
pub fn vmas(process: u32, bytes: &Range<u64>) -> Result<Vec<Vma>, Stop> {
    let text = std::fs::read_to_string(format!("{}/maps", paths::process(process)))
        .map_err(|error| Stop::Errno(error.raw_os_error().unwrap_or(ESRCH)))?;
    let meets = |mapping: &Mapping| mapping.start < bytes.end && bytes.start < mapping.end;
    let known = maps::parse(&text).value.into_iter().filter(meets);
    let vma = |mapping| Vma { backing: Backing::of(&mapping), mapping, resident: Resident::default() };
    Ok(known.map(vma).collect())
}

/// The pages of some addresses that are there.
#[derive(Debug, Default)]
pub struct Resident {
    /// Those that hold something, swapped out or not.
    pub pages: RangeSet<u64>,
    /// Those among them in huge pages.
    pub huge: RangeSet<u64>,
    /// The page of zeros.
    pub zeros: RangeSet<u64>,
    pub swapped: RangeSet<u64>,
}

impl Resident {
    /// Looks them up in the real kernel.
    ///
    /// # Errors
    /// The process has ended, or the kernel has neither of the two calls that answer.
    pub fn from_process(process: u32, bytes: &Range<u64>) -> Result<Self, Stop> {
        let errno = |errno: Errno| Stop::Errno(errno.number());
        let bytes = &whole_pages(bytes);
        let pagemap = File::open(format!("{}/pagemap", paths::process(process)))
            .map_err(|error| Stop::Errno(error.raw_os_error().unwrap_or(ESRCH)))?;
        let mut resident = Self::default();
        let scanned = pagemap::scan(pagemap.as_fd(), (bytes.start, bytes.end), |run| {
            let range = run.start..run.end;
            match run.state {
                PageState::Zero => return resident.zeros.insert(range),
                PageState::Huge => resident.huge.insert(range.clone()),
                PageState::Swapped => resident.swapped.insert(range.clone()),
                PageState::Small => {}
            }
            resident.pages.insert(range);
        });
        match scanned {
            Ok(()) => Ok(resident),
            // Before Linux 6.7.
            Err(Errno::ENOTTY) => Self::located(process, bytes),
            Err(other) => Err(errno(other)),
        }
    }

    fn located(process: u32, bytes: &Range<u64>) -> Result<Self, Stop> {
        let task = Task::new(process).ok_or(Stop::Errno(ESRCH))?;
        let mut resident = Self::default();
        let step = located::page_size();
        let pages = located::addresses(bytes.start as usize, (bytes.end - bytes.start) as usize, step);
        located::locate(task, pages, |address, location| {
            let range = address as u64..(address + step) as u64;
            match location {
                PageLocation::Node(_) => resident.pages.insert(range),
                PageLocation::ZeroOrUnmapped => resident.zeros.insert(range),
                PageLocation::NotPresent | PageLocation::Error(_) => {}
            }
        })
        .map_err(|error| Stop::Errno(error.errno.number()))?;
        Ok(resident)
    }
}

impl World {
    /// Gives nodes to the resident pages of a process that have none, as touched by this thread, among these
    /// addresses. Shows the mappings there.
    pub fn settle(&mut self, process: u32, toucher: u32, bytes: &Range<u64>) -> Result<Vec<Vma>, Stop> {
        self.renew(process);
        self.follow_remaps(process, toucher);
        let mut vmas = vmas(process, bytes)?;
        // A huge page gets its node as a whole.
        let huge = self.huge_page_bytes();
        let end = bytes.end.checked_next_multiple_of(huge).unwrap_or(ALL.end);
        let bytes = &whole_pages(&(bytes.start - bytes.start % huge..end));
        for vma in vmas.iter_mut().filter(|vma| vma.backing != Backing::Kernel) {
            let clipped = vma.clip(bytes);
            vma.resident = Resident::from_process(process, &clipped)?;
            // Those of shared memory are not known.
            if !self.facts.has_huge_pages || vma.backing != Backing::Own {
                vma.resident.huge.clear();
            }
            if vma.backing == Backing::Own {
                self.forget(process, &clipped, &vma.resident.pages);
            }
            self.fill(process, toucher, vma);
        }
        Ok(vmas)
    }

    fn fill(&mut self, process: u32, toucher: u32, vma: &Vma) {
        self.with_giver(process, toucher, vma.file(), |pages, giver| {
            for run in vma.resident.pages.iter() {
                pages.fill(&vma.keys(run), &vma.source(), giver);
            }
        });
    }

    /// Bytes of a huge page of the machine.
    pub const fn huge_page_bytes(&self) -> u64 {
        self.memory.page_bytes() << self.memory.huge_order()
    }

    /// Forgets nodes of pages that a process does not have any more.
    fn forget(&mut self, process: u32, bytes: &Range<u64>, resident: &RangeSet<u64>) {
        let Some(process) = self.processes.get_mut(&process) else { return };
        let gone: Vec<Range<u64>> = resident.gaps(bytes).collect();
        for range in gone {
            process.space.own.release(range, &mut self.memory);
        }
    }

    /// Hands over the pages of a file, or of a process, and who gives homes to a thread's pages.
    pub fn with_giver<T>(
        &mut self,
        process: u32,
        thread: u32,
        file: Option<FileId>,
        work: impl FnOnce(&mut Pages, &mut Giver<'_>) -> T,
    ) -> T {
        let cpu_node = self.facts.node_of(self.cpu_of(thread));
        let policy = match self.threads.get(&thread) {
            Some(thread) => thread.own.policy.or(&self.facts.system).clone(),
            None => self.facts.system.clone(),
        };
        let pages = match file {
            Some(file) => self.files.entry(file).or_default(),
            None => &mut self.processes.entry(process).or_default().space.own,
        };
        let facts = &self.facts;
        let (memory, weights, allowed) = (&mut self.memory, &facts.weights, &facts.with_memory);
        work(pages, &mut Giver { memory, weights, allowed, policy: &policy, cpu_node })
    }

    /// Forgets the memory of the program that a process was before `execve(2)`.
    fn renew(&mut self, process: u32) {
        let image = self.image(process);
        let space = &mut self.processes.entry(process).or_default().space;
        if space.image != image {
            space.own.release(ALL, &mut self.memory);
            *space = Space { image, ..Space::default() };
        }
    }

    /// Mappings as the checks of calls see them: by policy, with the nodes of pages.
    pub fn checked_mappings(&self, process: u32, vmas: &[Vma]) -> Vec<calls::Mapping> {
        vmas.iter()
            .flat_map(|vma| self.pieces(process, vma))
            .map(|(bytes, policy)| calls::Mapping { bytes, policy, pages: Default::default() })
            .collect()
    }

    /// A mapping in pieces of one policy each.
    pub fn pieces(&self, process: u32, vma: &Vma) -> Vec<(Range<u64>, Option<nodewise_model::Policy>)> {
        let all = vma.mapping.start..vma.mapping.end;
        let keys = vma.keys(&all);
        let Some(pages) = self.pages_of(process, vma) else { return vec![(all, None)] };
        let address = |key: u64| key.wrapping_sub(keys.start) + all.start;
        let pieces = pages.pieces(&keys).into_iter();
        pieces.map(|(range, policy)| (address(range.start)..address(range.end), policy)).collect()
    }

    /// Where the policies and nodes of a mapping are kept.
    pub fn pages_of(&self, process: u32, vma: &Vma) -> Option<&Pages> {
        match vma.file() {
            Some(file) => self.files.get(&file),
            None => Some(&self.processes.get(&process)?.space.own),
        }
    }

    /// The node of a page that is there.
    pub fn node_at(&self, process: u32, vma: &Vma, address: u64) -> Option<nodewise_machine::NodeId> {
        self.pages_of(process, vma)?.node_at(vma.keys(&(address..address + 1)).start)
    }
}
