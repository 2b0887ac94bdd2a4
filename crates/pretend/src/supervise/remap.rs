//! Memory that moves to an address that the kernel chooses.

use std::ops::Range;

use rangemap::RangeSet;

/// All addresses that programs can have.
const ALL: Range<u64> = 0..1 << 63;

/// A call of `mremap(2)` before the kernel has chosen an address.
#[derive(Debug)]
pub struct Remap {
    pub thread: u32,
    pub old: Range<u64>,
    pub length: u64,
    /// Whether something stays mapped at the old address.
    pub stays: bool,
    /// All that was mapped.
    pub before: RangeSet<u64>,
}

impl Remap {
    /// The new place of the memory, if the kernel has changed anything.
    pub fn place(&self, now: &RangeSet<u64>) -> Option<Range<u64>> {
        let in_place = self.old.start..self.old.start.checked_add(self.length)?;
        let added = self.old.end..in_place.end;
        if !self.stays && now.gaps(&in_place).next().is_none() && !self.before.overlaps(&added) {
            return Some(in_place);
        }
        // Other threads may have mapped something meanwhile.
        let new = self.before.gaps(&ALL).flat_map(|gap| clipped(now, &gap)).collect::<Vec<_>>();
        let long = new.into_iter().filter(|range| range.end - range.start >= self.length);
        let nearest = long.min_by_key(|range| range.end - range.start)?;
        // The kernel looks for a place from the top.
        Some(nearest.start..nearest.start + self.length)
    }
}

fn clipped(set: &RangeSet<u64>, bytes: &Range<u64>) -> Vec<Range<u64>> {
    let clip = |range: &Range<u64>| range.start.max(bytes.start)..range.end.min(bytes.end);
    set.overlapping(bytes).map(clip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_that_the_kernel_has_chosen_is_found() {
        let remap = Remap {
            thread: 1,
            old: 20..30,
            length: 15,
            stays: false,
            before: [10..30, 90..99].into_iter().collect(),
        };
        let check = |now: &[Range<u64>], expected: Option<Range<u64>>| {
            assert_eq!(remap.place(&now.iter().cloned().collect()), expected, "{now:?}");
        };
        // It has failed, grown, and moved, alone and while another thread has mapped something.
        check(&[10..30, 90..99], None);
        check(&[10..35, 90..99], Some(20..35));
        check(&[10..20, 75..99], Some(75..90));
        check(&[10..30, 50..70, 75..99], Some(75..90));
        let stays = Remap { stays: true, length: 10, before: remap.before.clone(), ..remap };
        assert_eq!(stays.place(&[10..30, 60..70, 90..99].into_iter().collect()), Some(60..70));
    }
}
