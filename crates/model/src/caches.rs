//! Memory that the kernel makes free when none is: page cache and caches of its own, and with swap the pages of programs.
//!
//! A node that is full of clean page cache gives it up before any process is killed, whatever the policy. Which pages go is
//! decided by their age, which no file of the kernel shows: so there is an interval, and what lies outside is certain.
//!
//! # Source
//! `si_mem_available` in `mm/show_mem.c` (documented under `MemAvailable` in proc(5)) for the least, all pages of the lists
//! of files (`Active(file)`, `Inactive(file)`) and all slab that can shrink for the most; 3.14 to at least 7.2. Files in memory
//! (tmpfs, System V memory) are in the lists of anonymous memory: only swap takes them. Seen on 6.12 with
//! the multi-generational lists: a node full of them has its bound program killed; one full of a disk's page cache gives that up
//! first: of 600 MB, 2.5 MB or less were left in each of five kills, so the truth was at the upper end.
//!
//! # Units
//! Pages of the machine's own size.

use nodewise_machine::{Machine, Node, NodeSet};

use crate::memory::Memory;
use crate::walk::OutOfMemory;

/// At least, and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    pub least: u64,
    pub most: u64,
}

impl Interval {
    /// The same at both ends.
    pub const fn exactly(pages: u64) -> Self {
        Self { least: pages, most: pages }
    }

    /// The sum of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }

    const fn is_zero(self) -> bool {
        self.most == 0
    }
}

/// Whether a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is room for all pages.
    Survives,
    /// There is none for some of them.
    Killed,
    /// Both can happen: it depends on which pages can be made free.
    Open,
}

/// The way in which room is made for pages that find no free memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relief {
    /// Pages of caches that can be dropped on the nodes of the request.
    pub caches: Interval,
    /// Pages that swap takes; `None` where it is not known whether there is any.
    pub swap: Option<u64>,
    /// Pages of the caches that are dropped.
    pub dropped: Interval,
    /// Pages that are swapped out; `None` where it is not known whether there is swap.
    pub swapped: Option<Interval>,
    /// Pages that find no room at all.
    pub unplaced: Interval,
}

impl Relief {
    /// The way of making room for the pages that a request lacks. `None` where the machine does not say what it has in
    /// caches.
    pub fn from_machine(machine: &Machine, memory: &Memory, end: &OutOfMemory) -> Option<Self> {
        let caches = of_nodes(machine, memory, &end.inside)?;
        let swap = machine.swap_free.map(|size| size.get() / memory.page_bytes());
        Some(Self::new(end.pages, caches, swap))
    }

    /// The same for this many pages, with this much in caches and free for swapping. Whether pages of programs are
    /// swapped while there are caches to drop is the kernel's choice, so both intervals begin with what the other leaves.
    pub fn new(pages: u64, caches: Interval, swap: Option<u64>) -> Self {
        // Any page of a program that is swapped out makes room for one, the request's own among them.
        let disk = swap.map_or(Interval { least: 0, most: u64::MAX }, Interval::exactly);
        let all = caches.and(disk);
        let unplaced =
            Interval { least: pages.saturating_sub(all.most), most: pages.saturating_sub(all.least) };
        let dropped = Interval {
            least: pages.saturating_sub(disk.most).min(caches.least),
            most: pages.min(caches.most),
        };
        let swapped = swap.map(|swap| Interval {
            least: pages.saturating_sub(caches.most).min(swap),
            most: pages.min(swap),
        });
        Self { caches, swap, dropped, swapped, unplaced }
    }

    /// Whether a process is killed.
    pub const fn verdict(&self) -> Verdict {
        match (self.unplaced.least, self.unplaced.most) {
            (_, 0) => Verdict::Survives,
            (0, _) => Verdict::Open,
            _ => Verdict::Killed,
        }
    }

    /// Whether there is anything in caches.
    pub const fn has_caches(&self) -> bool {
        !self.caches.is_zero()
    }
}

/// Pages of caches that can be dropped on some nodes; `None` where one of them does not say.
pub fn of_nodes(machine: &Machine, memory: &Memory, nodes: &NodeSet) -> Option<Interval> {
    let of = |node| Some(of_node(machine.nodes.get(&node)?, memory)?.0);
    nodes.iter().map(of).try_fold(Interval::default(), |sum, own| Some(sum.and(own?)))
}

/// Pages of a node's caches that can be dropped, and those that are in the lists of files. A node that does not say what is
/// free is taken for empty, here as in [`Memory::from_machine`].
pub fn of_node(node: &Node, memory: &Memory) -> Option<(Interval, u64)> {
    if node.memory_free().is_none() {
        return Some((Interval::default(), 0));
    }
    let pages = |field: &str| node.size_of(field).map(|size| size.get() / memory.page_bytes());
    let files = pages("Active(file)")?.saturating_add(pages("Inactive(file)")?);
    let slab = pages("SReclaimable").unwrap_or(0);
    let own = memory.zones().iter().filter(|zone| zone.node == node.id);
    let low: u64 = own.map(|zone| zone.marks.low).fold(0, u64::saturating_add);
    let least = |pages: u64| pages - (pages / 2).min(low);
    let interval =
        Interval { least: least(files).saturating_add(least(slab)), most: files.saturating_add(slab) };
    Some((interval, files))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::release::Release;
    use crate::walk::Constraint;
    use crate::zonelist::BuiltAt;
    use nodewise_machine::{Bytes, MeminfoField, MeminfoValue, spec};

    const fn pages(mib: u64) -> u64 {
        mib << 8
    }

    fn relief(spec: &str, lacking: u64) -> Option<Relief> {
        relief_on(&spec::machine(spec).unwrap(), lacking)
    }

    fn relief_on(machine: &Machine, lacking: u64) -> Option<Relief> {
        let memory = Memory::from_machine(machine, BuiltAt::Boot, Release::REFERENCE);
        let inside = NodeSet::from([1]);
        let end = OutOfMemory { pages: pages(lacking), inside, constraint: Constraint::MemoryPolicy };
        Relief::from_machine(machine, &memory, &end)
    }

    #[test]
    fn clean_page_cache_makes_room_before_a_process_is_killed() {
        let machine = "(1c 512M) (1c 512M free=36M cache=440M); swap=0";
        let small = relief(machine, 200).unwrap();
        assert_eq!(small.verdict(), Verdict::Survives);
        assert_eq!(small.dropped, Interval::exactly(pages(200)));
        assert_eq!(small.caches.most, pages(440));
        // Below the low watermark some of it may be in use.
        assert!(small.caches.least < pages(440) && small.caches.least > pages(390), "{small:?}");
        assert_eq!(relief(machine, 439).unwrap().verdict(), Verdict::Open);
        let large = relief(machine, 500).unwrap();
        assert_eq!((large.verdict(), large.unplaced.least), (Verdict::Killed, pages(60)));
    }

    #[test]
    fn swap_takes_what_caches_do_not_give() {
        let some = relief("(1c 512M) (1c 512M free=36M cache=100M); swap=1G", 300).unwrap();
        assert_eq!(some.verdict(), Verdict::Survives);
        let swapped = some.swapped.unwrap();
        assert_eq!((swapped.least, swapped.most), (pages(200), pages(300)));
        let unknown = relief("(1c 512M) (1c 512M free=36M cache=100M)", 300).unwrap();
        assert_eq!((unknown.swapped, unknown.verdict()), (None, Verdict::Open));
    }

    #[test]
    fn files_in_memory_are_not_dropped() {
        let mut machine = spec::machine("(1c 512M) (1c 512M free=146M cache=0); swap=0").unwrap();
        let node = machine.nodes.values_mut().next_back().unwrap();
        let set = |name: &str| MeminfoField {
            name: name.to_owned(),
            value: MeminfoValue::Size(Bytes::from_mib(330)),
        };
        // The kernel counts them as pages of files and in the lists of anonymous memory.
        node.meminfo.retain(|field| field.name != "FilePages");
        node.meminfo.extend(["FilePages", "Shmem", "Inactive(anon)"].map(set));
        assert_eq!(relief_on(&machine, 154).unwrap().verdict(), Verdict::Killed);
    }

    #[test]
    fn a_node_that_does_not_say_what_it_has_in_caches_is_not_judged() {
        let mut machine = spec::machine("2x(1c 512M free=36M)").unwrap();
        assert_eq!(relief_on(&machine, 1).unwrap().caches, Interval::default());
        let node = machine.nodes.values_mut().next_back().unwrap();
        node.meminfo.retain(|field| field.name != "Inactive(file)");
        assert_eq!(relief_on(&machine, 1), None);
        // Without a word about free memory all of it is free.
        assert_eq!(relief("2x(1c 512M)", 1).unwrap().caches, Interval::default());
    }
}
