//! Moving pages in chunks: ask where they are, move those that must go, ask again.
//!
//! The kernel's answer to a call that moves pages is not what happened. After `ENOMEM` it has moved pages and says
//! nothing of any; a page that it calls busy may have moved with the huge page that it is part of. So what counts is
//! where a page is afterwards, and the answer is only the reason for those that stayed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nodewise_machine::{Bytes, NodeId};
use nodewise_source::mapped::MemoryKind;
use nodewise_syscall::pages::{PageLocation, Tried};
use nodewise_syscall::{CallError, Errno};

use super::Region;

/// The memory of the process that is moved.
pub trait Memory {
    /// Where pages are, in their order.
    ///
    /// # Errors
    /// What the kernel refuses.
    fn locate(&mut self, pages: &[u64]) -> Result<Vec<PageLocation>, CallError>;
    /// Where pages are present in a range, in order; `None` where the kernel does not list them.
    fn present(&mut self, range: (u64, u64)) -> Option<Vec<(u64, u64)>>;
    /// Moves each page to the node beside it, in one call.
    fn move_pages(&mut self, moves: &[(u64, NodeId)]) -> Tried;
    /// Whether the process still runs.
    fn is_alive(&mut self) -> bool;
}

/// The system around it.
pub trait Surroundings {
    /// Time since some fixed moment.
    fn now(&self) -> Duration;
    /// Lets time pass; less where the user ends it.
    fn sleep(&mut self, time: Duration);
    /// Whether the user wants to end it.
    fn is_interrupted(&self) -> bool;
    /// The share of the last ten seconds in which some task waited for memory, in percent; `None` where the kernel
    /// does not say.
    fn memory_pressure(&mut self) -> Option<f64>;
    /// Memory that a node has for pages of a size; `None` where the kernel does not say.
    fn room(&mut self, node: NodeId, kind: MemoryKind, page_size: Bytes) -> Option<Bytes>;
    /// Shows how far it is.
    fn progress(&mut self, report: &MigrationReport, state: State);
    /// Notes a page that has moved, with the node that it was on.
    fn moved(&mut self, page: u64, page_size: Bytes, kind: MemoryKind, from: NodeId);
}

/// The engine's work at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Moving,
    /// It waits until tasks wait less for memory.
    WaitsForPressure,
    /// It waits until this node has room.
    WaitsForRoom(NodeId),
}

/// How fast it may go, and when it is to wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Bytes per second.
    pub rate: Option<Bytes>,
    /// Memory pressure in percent above which it waits, until half of it is left.
    pub pressure: Option<f64>,
    /// The size of a small page.
    pub page: Bytes,
    /// The size of a transparent huge page.
    pub huge: Bytes,
}

/// Chunks: small enough that Ctrl-C is felt and the process is not held up, large enough that what every call costs
/// all CPUs is small. One call is to take between these times.
const CHUNK: (Bytes, Bytes) = (Bytes::from_mib(16), Bytes::from_mib(64));
const CALL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(50));
/// Under a rate a chunk is the part of a second that is moved between two waits. Where eight calls take longer, as on a
/// system whose CPUs are slow to answer each other, there are fewer and larger ones, one a second at the least.
const CHUNKS_PER_SECOND: u32 = 8;
/// Calls for a chunk: the second takes huge pages apart that were none, the third tries again what was in use.
const ROUNDS: usize = 3;
/// Time that the rate makes up for: chunks that are late on a busy system are followed by some without a wait, so that
/// the rate holds on average.
const LATE: Duration = Duration::from_secs(1);
/// How often it looks whether it may go on.
const POLL: Duration = Duration::from_millis(250);
/// How long a node that is full may take to become less so.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why pages stayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Other processes map them too (`EACCES`).
    Shared,
    /// In use by the kernel or a device (`EBUSY`).
    Busy,
    /// The target has no memory for them (`ENOMEM`).
    NoRoom,
    /// Another error of the kernel.
    Other(Errno),
    /// The kernel gave none.
    Unsaid,
}

impl Reason {
    fn from_location(said: Option<PageLocation>) -> Self {
        match said {
            Some(PageLocation::Error(Errno::EACCES)) => Self::Shared,
            Some(PageLocation::Error(Errno::EBUSY)) => Self::Busy,
            Some(PageLocation::Error(Errno::ENOMEM)) => Self::NoRoom,
            Some(PageLocation::Error(errno)) => Self::Other(errno),
            _ => Self::Unsaid,
        }
    }

    /// Whether another try can help.
    const fn may_pass(self) -> bool {
        matches!(self, Self::Busy | Self::Unsaid)
    }
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every page was looked at.
    Done,
    /// The user ended it.
    Interrupted,
    ProcessEnded,
    /// The kernel refuses the calls.
    Refused(CallError),
}

/// The result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationReport {
    pub moved: Bytes,
    /// Memory that stayed, by reason.
    pub failed: BTreeMap<Reason, Bytes>,
    /// Pages that were freed or swapped out while they were moved.
    pub gone: Bytes,
    /// Calls that moved pages.
    pub calls: u64,
    pub took: Duration,
    pub paused: Duration,
    /// Time to list pages that are there, before any of them moves.
    pub listing: Duration,
    pub ending: Ending,
}

impl MigrationReport {
    /// Memory that stayed, without pages that other processes map too: those stay by intention.
    pub fn failed_of_its_own(&self) -> Bytes {
        self.failed.iter().filter(|(reason, _)| **reason != Reason::Shared).map(|(_, size)| *size).sum()
    }
}

/// A page of a chunk.
#[derive(Clone, Copy, Debug)]
struct Page {
    address: u64,
    /// The place of its region.
    region: usize,
}

/// Pages that one address in a call stands for.
#[derive(Clone, Copy, Debug)]
struct Work {
    /// The first of its pages in the chunk.
    first: usize,
    count: usize,
    from: NodeId,
    to: NodeId,
    said: Option<PageLocation>,
}

/// Moves the pages of all regions.
pub fn migrate(
    regions: &[Region],
    limits: Limits,
    memory: &mut impl Memory,
    around: &mut impl Surroundings,
) -> MigrationReport {
    let mut engine = Engine {
        regions,
        limits,
        memory,
        began: around.now(),
        ready_at: around.now(),
        parts: CHUNKS_PER_SECOND,
        let_go: None,
        around,
        chunk: CHUNK.0,
        full: BTreeSet::new(),
        report: MigrationReport {
            moved: Bytes::new(0),
            failed: BTreeMap::new(),
            gone: Bytes::new(0),
            calls: 0,
            took: Duration::ZERO,
            paused: Duration::ZERO,
            listing: Duration::ZERO,
            ending: Ending::Done,
        },
    };
    if let Err(ending) = engine.walk() {
        engine.report.ending = ending;
    }
    engine.report.took = engine.around.now().saturating_sub(engine.began);
    engine.report
}

struct Engine<'a, M, S> {
    regions: &'a [Region],
    limits: Limits,
    memory: &'a mut M,
    around: &'a mut S,
    began: Duration,
    /// From when on the rate allows more.
    ready_at: Duration,
    /// Chunks a second under a rate.
    parts: u32,
    /// When the chunk before was let go.
    let_go: Option<Duration>,
    /// The size of the next chunk.
    chunk: Bytes,
    /// Nodes that have no room, by the size of the pages.
    full: BTreeSet<(NodeId, Bytes)>,
    report: MigrationReport,
}

/// The first address from here on at which a page is; this one where there is no list.
fn next_present(listed: Option<&[(u64, u64)]>, from: u64) -> Option<u64> {
    let Some(listed) = listed else { return Some(from) };
    let (start, _) = listed.get(listed.partition_point(|(_, end)| *end <= from))?;
    Some(from.max(*start))
}

impl<M: Memory, S: Surroundings> Engine<'_, M, S> {
    fn walk(&mut self) -> Result<(), Ending> {
        for region in 0..self.regions.len() {
            self.region(region)?;
        }
        Ok(())
    }

    fn region(&mut self, at: usize) -> Result<(), Ending> {
        let region = &self.regions[at];
        let size = region.page_size.get();
        // Pages come and go meanwhile, so the list of them is better than their number.
        let since = self.around.now();
        let listed = self.memory.present((region.start, region.end));
        self.report.listing += self.around.now().saturating_sub(since);
        let mut left = region.present.filter(|_| listed.is_none());
        let mut next = region.start;
        let mut has_begun = false;
        while let Some(start) = next_present(listed.as_deref(), next).filter(|_| left != Some(0)) {
            next = (start - start % size).max(next);
            if next >= region.end {
                break;
            }
            if has_begun && self.around.is_interrupted() {
                return Err(Ending::Interrupted);
            }
            has_begun = true;
            self.pause(region)?;
            // A chunk ends where a huge page would: one that is cut moves as a whole, and half of it uncounted.
            let end = next.saturating_add(self.room_of_chunk(region).max(size));
            let unit = self.limits.huge.get().max(size);
            let below = end - end % unit;
            let end = if below > next { below } else { below.saturating_add(unit) }.min(region.end);
            let pages: Vec<Page> =
                (next..end).step_by(size as usize).map(|address| Page { address, region: at }).collect();
            let found = self.chunk(&pages)?;
            left = left.map(|left| left.saturating_sub(found));
            next = end;
            self.around.progress(&self.report, State::Moving);
        }
        let is_last = at + 1 == self.regions.len();
        if self.around.is_interrupted() && !is_last { Err(Ending::Interrupted) } else { Ok(()) }
    }

    /// Bytes that the next chunk may have.
    fn room_of_chunk(&mut self, region: &Region) -> u64 {
        let mut most = self.chunk;
        if let Some(rate) = self.limits.rate {
            most = most.min(Bytes::new(rate.get() / u64::from(self.parts)));
        }
        // A node that is full takes nothing, so its room bounds no chunk.
        for node in
            region.goal.targets().iter().filter(|node| !self.full.contains(&(*node, region.page_size)))
        {
            if let Some(room) = self.around.room(node, region.kind, region.page_size) {
                most = most.min(room);
            }
        }
        most.get()
    }

    /// Waits while the system has no breath, or a target no room. A target that stays full is not tried again.
    fn pause(&mut self, region: &Region) -> Result<(), Ending> {
        let mut resume_below = self.limits.pressure;
        while let (Some(limit), Some(pressure)) = (resume_below, self.around.memory_pressure()) {
            if pressure <= limit {
                break;
            }
            resume_below = self.limits.pressure.map(|limit| limit / 2.0);
            self.wait(State::WaitsForPressure)?;
        }
        for node in &region.goal.targets() {
            let since = self.around.now();
            while !self.full.contains(&(node, region.page_size)) {
                let room = self.around.room(node, region.kind, region.page_size);
                if room.is_none_or(|room| room >= region.page_size.max(self.limits.page)) {
                    break;
                }
                // A pool of huge pages gets larger by hand only.
                let is_pool = region.kind == MemoryKind::Hugetlb;
                if is_pool || self.around.now().saturating_sub(since) >= PATIENCE {
                    self.full.insert((node, region.page_size));
                    break;
                }
                self.wait(State::WaitsForRoom(node))?;
            }
        }
        Ok(())
    }

    fn wait(&mut self, state: State) -> Result<(), Ending> {
        self.around.progress(&self.report, state);
        let began = self.around.now();
        self.around.sleep(POLL);
        let now = self.around.now();
        self.report.paused += now.saturating_sub(began);
        // Nor is a pause made up for: it was there to spare the system.
        self.ready_at = self.ready_at.max(now);
        if self.around.is_interrupted() {
            return Err(Ending::Interrupted);
        }
        if self.memory.is_alive() { Ok(()) } else { Err(Ending::ProcessEnded) }
    }

    /// Moves the pages of a chunk; returns how many of them are there.
    fn chunk(&mut self, pages: &[Page]) -> Result<u64, Ending> {
        let locations = self.locate(&pages.iter().map(|page| page.address).collect::<Vec<_>>())?;
        let present = locations.iter().filter(|place| matches!(place, PageLocation::Node(_))).count() as u64;
        let mut works = self.works(pages, &locations);
        let size = |work: &Work| self.regions[pages[work.first].region].page_size;
        let (stuck, free): (Vec<Work>, Vec<Work>) =
            works.into_iter().partition(|work| self.full.contains(&(work.to, size(work))));
        for work in stuck {
            let bytes = self.regions[pages[work.first].region].page_size.times(work.count as u64);
            *self.report.failed.entry(Reason::NoRoom).or_default() += bytes;
        }
        works = free;
        self.throttle(&works, pages)?;
        for round in 0..ROUNDS {
            if works.is_empty() {
                break;
            }
            let again = round + 1 < ROUNDS;
            works = self.round(pages, works, again)?;
        }
        Ok(present)
    }

    fn locate(&mut self, addresses: &[u64]) -> Result<Vec<PageLocation>, Ending> {
        self.memory.locate(addresses).map_err(|error| self.ending_of(error))
    }

    fn ending_of(&mut self, error: CallError) -> Ending {
        if self.memory.is_alive() { Ending::Refused(error) } else { Ending::ProcessEnded }
    }

    /// Lists the pages that must go: a huge page by its first address, every other page by its own.
    fn works(&self, pages: &[Page], locations: &[PageLocation]) -> Vec<Work> {
        let mut works = Vec::new();
        let mut at = 0;
        while at < pages.len() {
            let count = self.huge_at(pages, locations, at).unwrap_or(1);
            if let PageLocation::Node(from) = locations[at] {
                let region = &self.regions[pages[at].region];
                let number = pages[at].address / region.page_size.times(count as u64).get();
                if let Some(to) = region.goal.target(number, from) {
                    works.push(Work { first: at, count, from, to, said: None });
                }
            }
            at += count;
        }
        works
    }

    /// The pages from here on that may be one huge page: all there, and on one node.
    fn huge_at(&self, pages: &[Page], locations: &[PageLocation], at: usize) -> Option<usize> {
        let Page { address, region } = pages[at];
        let (huge, size) = (self.limits.huge.get(), self.regions[region].page_size.get());
        if !self.regions[region].may_be_huge || huge <= size || address % huge != 0 {
            return None;
        }
        let count = usize::try_from(huge / size).ok()?;
        let places = locations.get(at..at.checked_add(count)?)?;
        let is_one =
            matches!(places[0], PageLocation::Node(_)) && places.iter().all(|place| *place == places[0]);
        is_one.then_some(count)
    }

    /// Waits until the rate allows what is about to move.
    fn throttle(&mut self, works: &[Work], pages: &[Page]) -> Result<(), Ending> {
        let Some(rate) = self.limits.rate.filter(|rate| rate.get() > 0) else { return Ok(()) };
        let bytes = |work: &Work| self.regions[pages[work.first].region].page_size.times(work.count as u64);
        let size: Bytes = works.iter().map(bytes).sum();
        if size == Bytes::new(0) {
            return Ok(());
        }
        self.adapt_parts();
        loop {
            let wait = self.ready_at.saturating_sub(self.around.now());
            if wait.is_zero() {
                break;
            }
            self.around.sleep(wait.min(POLL));
            if self.around.is_interrupted() {
                return Err(Ending::Interrupted);
            }
        }
        self.let_go = Some(self.around.now());
        let cost = Duration::from_secs_f64(size.get() as f64 / rate.get() as f64);
        // What was not used for longer is not made up for: it would all move at once.
        self.ready_at = self.ready_at.max(self.around.now().saturating_sub(LATE)) + cost;
        Ok(())
    }

    /// One call, and where its pages are then. Returns what is worth another try.
    fn round(&mut self, pages: &[Page], mut works: Vec<Work>, again: bool) -> Result<Vec<Work>, Ending> {
        let moves: Vec<(u64, NodeId)> =
            works.iter().map(|work| (pages[work.first].address, work.to)).collect();
        let began = self.around.now();
        let tried = self.memory.move_pages(&moves);
        self.adapt(self.around.now().saturating_sub(began));
        self.report.calls += 1;
        for (work, said) in works.iter_mut().zip(&tried.said) {
            work.said = *said;
        }
        let addresses: Vec<u64> =
            works.iter().flat_map(|work| own(pages, work)).map(|page| page.address).collect();
        let mut places = self.locate(&addresses)?.into_iter();
        let (mut next, mut moved) = (Vec::new(), false);
        for work in works {
            for (at, page) in pages.iter().enumerate().skip(work.first).take(work.count) {
                let place = places.next().unwrap_or(PageLocation::NotPresent);
                moved |= place == PageLocation::Node(work.to);
                let single = self.settle(*page, Work { first: at, count: 1, ..work }, place, work.count > 1);
                next.extend(single);
            }
        }
        let Some(error) = tried.failed else {
            if again {
                return Ok(next);
            }
            self.give_up(pages, &next, None);
            return Ok(Vec::new());
        };
        if error.errno == Errno::ENOMEM {
            if !moved {
                let size = |work: &Work| self.regions[pages[work.first].region].page_size;
                self.full.extend(next.iter().map(|work| (work.to, size(work))).collect::<Vec<_>>());
            }
            self.give_up(pages, &next, Some(Reason::NoRoom));
            return Ok(Vec::new());
        }
        self.give_up(pages, &next, None);
        Err(self.ending_of(error))
    }

    /// Counts a page by where it is now; returns it where another try may help.
    fn settle(&mut self, page: Page, work: Work, place: PageLocation, was_huge: bool) -> Option<Work> {
        let region = &self.regions[page.region];
        match place {
            PageLocation::Node(node) if node == work.to => {
                self.report.moved += region.page_size;
                self.around.moved(page.address, region.page_size, region.kind, work.from);
                None
            }
            PageLocation::Node(from) => {
                // Of a huge page that was none, only the first address was named.
                let number = page.address / region.page_size.get();
                let to = region.goal.target(number, from)?;
                let reason = Reason::from_location(work.said);
                if was_huge || reason.may_pass() {
                    return Some(Work { from, to, ..work });
                }
                *self.report.failed.entry(reason).or_default() += region.page_size;
                None
            }
            _ => {
                self.report.gone += region.page_size;
                None
            }
        }
    }

    fn give_up(&mut self, pages: &[Page], works: &[Work], reason: Option<Reason>) {
        for work in works {
            let reason = reason.unwrap_or_else(|| Reason::from_location(work.said));
            let size = self.regions[pages[work.first].region].page_size;
            *self.report.failed.entry(reason).or_default() += size;
        }
    }

    /// Under a rate there are fewer chunks a second after one that took longer than its part of it, and more after one
    /// that took less than half.
    fn adapt_parts(&mut self) {
        let each = Duration::from_secs(1) / self.parts;
        match self.let_go.map(|let_go| self.around.now().saturating_sub(let_go)) {
            Some(took) if took > each => self.parts = (self.parts / 2).max(1),
            Some(took) if took < each / 2 => self.parts = (self.parts * 2).min(CHUNKS_PER_SECOND),
            _ => {}
        }
    }

    /// The next chunk is larger after a short call, and smaller after a long one.
    fn adapt(&mut self, took: Duration) {
        let bytes = self.chunk.get();
        let next = if took < CALL.0 {
            bytes.saturating_mul(2)
        } else if took > CALL.1 {
            bytes / 2
        } else {
            bytes
        };
        self.chunk = Bytes::new(next).clamp(CHUNK.0, CHUNK.1);
    }
}

fn own<'p>(pages: &'p [Page], work: &Work) -> &'p [Page] {
    &pages[work.first..work.first + work.count]
}

#[cfg(test)]
mod tests;
