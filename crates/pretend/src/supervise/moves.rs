//! The calls that show and move pages.

use std::ops::Range;

use nodewise_machine::{MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_model::errno::Errno;
use nodewise_model::migrate;
use nodewise_model::oracle::calls::{self, Process};
use nodewise_model::policy::set::Policy;
use rangemap::RangeSet;

use super::call::{Call, EFAULT, EINVAL, Stop};
use super::space::{ALL, Backing, Vma};
use super::world::World;

/// Pages of a call that are read at once.
const BATCH: u64 = 4096;
const PAGE: u64 = 4096;
const E2BIG: i32 = 7;
const EBUSY: i32 = 16;

/// Pages that the kernel has taken off its lists, to move them together to a node. It moves them before it looks at a page that goes
/// elsewhere, and after one that does not move.
///
/// # Source
/// `do_pages_move` in `mm/migrate.c`.
#[derive(Debug, Default)]
struct Batch {
    target: Option<NodeId>,
    /// Their bytes.
    taken: RangeSet<u64>,
}

/// Numbers one after the other in memory.
fn numbers<T, const BYTES: usize>(bytes: &[u8], read: impl Fn([u8; BYTES]) -> T) -> Vec<T> {
    bytes.chunks_exact(BYTES).filter_map(|chunk| Some(read(chunk.try_into().ok()?))).collect()
}

impl World {
    /// The process that an argument names, and how a check sees it.
    fn target(&mut self, own: u32, pid: u32) -> Result<(u32, Process), Stop> {
        if pid == 0 {
            return Ok((own, Process::Own));
        }
        let process = match self.process_of(pid) {
            Err(Stop::Errno(_)) => return Ok((own, Process::Missing)),
            found => found?,
        };
        let allowed = self.facts.with_memory.clone();
        // May the supervisor look, who has the program's own user?
        let is_open = super::space::vmas(process, &(0..1)).is_ok();
        Ok((process, if process == own { Process::Own } else { Process::Other { allowed, is_open } }))
    }

    /// `move_pages(2)`.
    pub fn move_pages(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        let [pid, count, pages_at, nodes_at, status_at, flags] =
            std::array::from_fn(|number| call.argument(number));
        if count > u64::MAX / 8 {
            return Err(Stop::Errno(E2BIG));
        }
        let own = self.process_of(call.thread())?;
        let (process, named) = self.target(own, pid as u32)?;
        let nothing = calls::Call::Move { process: named.clone(), nodes: None, flags: flags as u32 };
        self.check(&nothing, call.thread(), &[])?;
        let toucher = if process == own { call.thread() } else { process };
        let mut batch = Batch::default();
        for first in (0..count).step_by(BATCH as usize) {
            let number = (count - first).min(BATCH);
            let addresses = call.read(pages_at.wrapping_add(8 * first), 8 * number)?;
            let addresses: Vec<u64> = numbers(&addresses, u64::from_ne_bytes);
            let nodes = match nodes_at {
                0 => None,
                at => {
                    let bytes = call.read(at.wrapping_add(4 * first), 4 * number)?;
                    let nodes: Vec<i32> = numbers(&bytes, i32::from_ne_bytes);
                    let process = named.clone();
                    self.check(
                        &calls::Call::Move { process, nodes: Some(nodes.clone()), flags: flags as u32 },
                        call.thread(),
                        &[],
                    )?;
                    Some(nodes)
                }
            };
            let statuses = self.locate((process, toucher), &addresses, nodes.as_deref(), &mut batch)?;
            let bytes: Vec<u8> = statuses.iter().flat_map(|status| status.to_ne_bytes()).collect();
            call.write(status_at.wrapping_add(4 * first), &bytes)?;
        }
        Ok(0)
    }

    /// The status of each address, after its page was moved where nodes are given.
    fn locate(
        &mut self,
        (process, toucher): (u32, u32),
        addresses: &[u64],
        nodes: Option<&[i32]>,
        batch: &mut Batch,
    ) -> Result<Vec<i32>, Stop> {
        let bounds = addresses.iter().min().zip(addresses.iter().max());
        let Some((first, last)) = bounds else { return Ok(Vec::new()) };
        let bytes = first - first % PAGE..(last - last % PAGE).saturating_add(PAGE).min(ALL.end);
        if bytes.is_empty() {
            return Ok(vec![-EFAULT; addresses.len()]);
        }
        let vmas = self.settle(process, toucher, &bytes)?;
        let mut statuses = Vec::with_capacity(addresses.len());
        for (at, address) in addresses.iter().enumerate() {
            let found = vmas.partition_point(|vma| vma.mapping.end <= *address);
            let status = match vmas.get(found).filter(|vma| vma.mapping.start <= *address) {
                None => {
                    *batch = Batch::default();
                    -EFAULT
                }
                Some(vma) => {
                    let target = nodes.map(|nodes| NodeId::new(nodes[at].unsigned_abs()));
                    self.status((process, toucher), vma, *address, target.map(|target| (target, &mut *batch)))
                }
            };
            statuses.push(status);
        }
        Ok(statuses)
    }

    /// The status of an address, after its page was moved to a node where one is given.
    fn status(
        &mut self,
        (process, toucher): (u32, u32),
        vma: &Vma,
        address: u64,
        target: Option<(NodeId, &mut Batch)>,
    ) -> i32 {
        let resident = &vma.resident;
        let page = address - address % PAGE;
        let absent = if resident.zeros.contains(&address) || vma.backing == Backing::Kernel {
            Some(EFAULT)
        } else if resident.swapped.contains(&address) {
            Some(Errno::Enoent.number())
        } else if !resident.pages.contains(&address) {
            Some(migrate::untouched_page(vma.mapping.file.is_some(), self.facts.release).number())
        } else {
            None
        };
        let node = self.node_at(process, vma, page);
        let Some((target, batch)) = target else {
            return match (absent, node) {
                (None, Some(node)) => node.number() as i32,
                (errno, _) => -errno.unwrap_or(Errno::Enoent.number()),
            };
        };
        if batch.target != Some(target) {
            *batch = Batch { target: Some(target), taken: RangeSet::new() };
        }
        let errno = absent.or_else(|| batch.taken.contains(&page).then_some(EBUSY));
        if errno.is_some() || node == Some(target) {
            *batch = Batch::default();
            return errno.map_or(target.number() as i32, |errno| -errno);
        }
        let block = self.huge_page_bytes();
        let huge = page - page % block..page - page % block + block;
        let whole = resident.huge.gaps(&huge).next().is_none();
        let moved = if whole { huge } else { page..page + PAGE };
        self.move_to(process, toucher, vma, &moved, |node| node != target, target);
        batch.taken.insert(moved);
        match self.node_at(process, vma, page) {
            Some(node) if node == target => node.number() as i32,
            Some(_) => -Errno::Enomem.number(),
            None => -Errno::Enoent.number(),
        }
    }

    /// Moves the pages of a mapping that a node makes move to another node.
    fn move_to(
        &mut self,
        process: u32,
        thread: u32,
        vma: &Vma,
        bytes: &Range<u64>,
        moves: impl Fn(NodeId) -> bool,
        target: NodeId,
    ) {
        let only = MemPolicy::new(PolicyMode::Bind, NodeSet::from_iter([target]));
        // A node without memory was refused before.
        let Ok(policy) = Policy::from_mem_policy(&only, self.facts.scope()) else { return };
        let runs = vma.resident_keys(bytes);
        self.with_giver(process, thread, vma.file(), |pages, giver| {
            for keys in &runs {
                pages.move_where(keys, &moves, &policy, &vma.source(), giver);
            }
        })
    }

    /// `migrate_pages(2)`.
    pub fn migrate_pages(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        let [pid, maxnode, old_at, new_at, ..] =
            std::array::from_fn::<u64, 6, _>(|number| call.argument(number));
        let (old, new) = (call.node_mask(old_at, maxnode)?, call.node_mask(new_at, maxnode)?);
        let own = self.process_of(call.thread())?;
        let (process, named) = self.target(own, pid as u32)?;
        let checked = calls::Call::Migrate { process: named, old: old.clone(), new: new.clone() };
        self.check(&checked, call.thread(), &[])?;
        let max_nodes = self.facts.architecture.max_nodes();
        // The nodes that the caller may use are those that have memory.
        let (old, new) = (old.read(max_nodes)?, new.read(max_nodes)?.intersection(&self.facts.with_memory));
        if new.is_empty() {
            return Err(Stop::Errno(EINVAL));
        }
        let toucher = if process == own { call.thread() } else { process };
        let vmas = self.settle(process, toucher, &ALL)?;
        let mut left = 0;
        for (from, to) in migrate::moves(&old, &new) {
            for vma in vmas.iter().filter(|vma| matches!(vma.backing, Backing::Own | Backing::Shared(..))) {
                self.move_to(process, toucher, vma, &ALL, |node| node == from, to);
                left += self.bytes_on(process, vma, from);
            }
        }
        Ok((left / PAGE) as i64)
    }

    fn bytes_on(&self, process: u32, vma: &Vma, node: NodeId) -> u64 {
        let Some(pages) = self.pages_of(process, vma) else { return 0 };
        let on = |keys: &Range<u64>| -> u64 {
            let there = pages.homes.overlapping(keys).filter(|(_, home)| home.node == node);
            there.map(|(range, _)| range.end.min(keys.end) - range.start.max(keys.start)).sum()
        };
        vma.resident_keys(&ALL).iter().map(on).sum()
    }
}
