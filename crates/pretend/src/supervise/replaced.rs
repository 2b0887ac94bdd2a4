//! Calls after which other memory is at an address than before: the kernel carries them out.

use std::ops::Range;

use nodewise_model::{Memory, Release};
use rangemap::RangeSet;

use super::call::{Call, EFAULT, Stop, rounded};
use super::pages::Pages;
use super::remap::Remap;
use super::space::{ALL, Vma, vmas};
use super::world::{Process, World};

// include/uapi/linux/mman.h and asm-generic/mman-common.h.
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
const MREMAP_MAYMOVE: u64 = 1;
const MREMAP_FIXED: u64 = 2;
const MREMAP_DONTUNMAP: u64 = 4;

/// The release in which one call can move several mappings to an address.
const SEVERAL_MOVE: Release = Release::new(6, 17);

/// All that a process has mapped.
fn mapped(process: u32) -> Result<RangeSet<u64>, Stop> {
    Ok(vmas(process, &ALL)?.into_iter().map(|vma| vma.mapping.start..vma.mapping.end).collect())
}

impl World {
    /// `munmap(2)`: what was known of the memory is not true any more.
    pub fn unmap(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        let bytes = rounded(call.argument(0), call.argument(1));
        self.forget_memory(call, bytes)
    }

    /// `mmap(2)` with `MAP_FIXED`: new memory without a policy.
    pub fn map_fixed(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        if call.argument(3) & MAP_FIXED_NOREPLACE != 0 {
            return Err(Stop::Kernel);
        }
        let bytes = rounded(call.argument(0), call.argument(1));
        self.forget_memory(call, bytes)
    }

    fn forget_memory(&mut self, call: &Call<'_>, bytes: Range<u64>) -> Result<i64, Stop> {
        let process = self.process_of(call.thread())?;
        self.follow_remaps(process, call.thread());
        if let Some(known) = self.processes.get_mut(&process) {
            known.space.own.clear(bytes, &mut self.memory);
        }
        Err(Stop::Kernel)
    }

    /// `madvise(2)` with `MADV_DONTNEED`: the pages go, and the policy stays.
    pub fn give_back(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        let bytes = rounded(call.argument(0), call.argument(1));
        let process = self.process_of(call.thread())?;
        self.follow_remaps(process, call.thread());
        if let Some(known) = self.processes.get_mut(&process) {
            known.space.own.release(bytes, &mut self.memory);
        }
        Err(Stop::Kernel)
    }

    /// `mremap(2)`: memory keeps its policy and its pages where it goes, and has the policy where it grows.
    pub fn remap(&mut self, call: &Call<'_>) -> Result<i64, Stop> {
        let [address, old_length, length, flags, target, ..] =
            std::array::from_fn::<u64, 6, _>(|number| call.argument(number));
        let (thread, process) = (call.thread(), self.process_of(call.thread())?);
        let (old, new) = (rounded(address, old_length), rounded(address, length));
        let is_fixed = flags & MREMAP_MAYMOVE != 0 && flags & MREMAP_FIXED != 0;
        let to = if is_fixed { rounded(target, length) } else { 0..0 };
        let stays = flags & MREMAP_DONTUNMAP != 0;
        self.follow_remaps(process, thread);
        if new.is_empty() || to.start < old.end && old.start < to.end {
            return Err(Stop::Kernel);
        }
        if self.is_unknown(process, &old) {
            // Nothing to follow: its pages get their nodes where they are next.
            if let Some(known) = self.processes.get_mut(&process) {
                known.space.own.clear(to, &mut self.memory);
            }
            return Err(Stop::Kernel);
        }
        // Its pages lie by the turns of their old addresses.
        let known = self.settle(process, thread, &old)?;
        if !are_mapped(&known, &old) {
            return Err(Stop::Kernel);
        }
        let kept = old.start..old.end.min(new.end);
        let shrinks_in_place = !is_fixed && new.end < old.end;
        let moves_several = is_fixed && new.end == old.end && self.facts.release >= SEVERAL_MOVE;
        // On the machine the pieces are mappings of their own; here the kernel sees one.
        if !shrinks_in_place && !moves_several && (is_fixed || stays || old.end < new.end) {
            let pieces = known.iter().flat_map(|vma| self.pieces(process, vma));
            if pieces.filter(|(bytes, _)| bytes.start < kept.end && kept.start < bytes.end).count() > 1 {
                return Err(Stop::Errno(EFAULT));
            }
        }
        let Some(space) = self.processes.get_mut(&process).map(|known| &mut known.space) else {
            return Err(Stop::Kernel);
        };
        if is_fixed {
            follow(&mut space.own, &old, to, stays, &mut self.memory);
        } else if shrinks_in_place {
            space.own.clear(new.end..old.end, &mut self.memory);
        } else if stays || old.end < new.end {
            let length = new.end - new.start;
            let before = mapped(process)?;
            space.remaps.push(Remap { thread, old, length, stays, before });
        }
        Err(Stop::Kernel)
    }

    /// Whether no policy of memory and no node of a page is known that a range could have.
    fn is_unknown(&self, process: u32, bytes: &Range<u64>) -> bool {
        let has_none = |known: &Process| {
            let own = &known.space.own;
            !own.policies.overlaps(bytes) && !own.homes.overlaps(bytes)
        };
        // Memory that a call of no length maps once more stays where it is, too.
        bytes.is_empty()
            || self.processes.get(&process).is_none_or(has_none)
                && self.files.values().all(|pages| pages.policies.is_empty())
    }

    /// Follows memory that a process has moved since, where the kernel has put it.
    pub fn follow_remaps(&mut self, process: u32, caller: u32) {
        let Some(known) = self.processes.get_mut(&process).filter(|known| !known.space.remaps.is_empty())
        else {
            return;
        };
        // A process that has ended has no memory to follow.
        let Ok(now) = mapped(process) else { return };
        let space = &mut known.space;
        for remap in std::mem::take(&mut space.remaps) {
            match remap.place(&now) {
                Some(place) if place.start == remap.old.start => space.own.grow(remap.old.end, place.end),
                Some(place) => follow(&mut space.own, &remap.old, place, remap.stays, &mut self.memory),
                // A call of a thread that makes another one has ended: it has failed.
                None if remap.thread == caller => {}
                None => space.remaps.push(remap),
            }
        }
    }
}

/// Part of memory that grows where it goes, or all of what shrinks.
fn follow(own: &mut Pages, old: &Range<u64>, to: Range<u64>, stays: bool, memory: &mut Memory) {
    let (length, new_length) = (old.end - old.start, to.end - to.start);
    let kept = old.start..old.start + length.min(new_length);
    own.clear(kept.end..old.end, memory);
    own.follow(&kept, to, stays, memory);
}

/// Whether mappings have all of these bytes.
fn are_mapped(vmas: &[Vma], bytes: &Range<u64>) -> bool {
    let mapped: RangeSet<u64> = vmas.iter().map(|vma| vma.mapping.start..vma.mapping.end).collect();
    bytes.is_empty() || mapped.gaps(bytes).next().is_none()
}
