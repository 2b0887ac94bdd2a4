//! Which mapping of which process an address belongs to.
//!
//! The kernel names the mapping of a page when the page is first used: from its faults grows a list of ranges of addresses,
//! each with a label. What a process inherits by fork has no fault of its own, and gets the labels of its parent.

use crate::pages::{Zeroed, zeroed};

/// Most ranges, and labels; the first label is that of addresses in no range. Few in tests, which fill them.
const MOST_RANGES: usize = if cfg!(test) { 512 } else { 32768 };
pub const MOST_LABELS: usize = if cfg!(test) { 64 } else { 4096 };
/// Bytes of a name that are kept.
pub const NAME: usize = 40;

/// The kind of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MappingKind {
    /// The kernel does not say.
    Unknown = 0,
    /// What `brk` extends.
    Heap = 1,
    /// The stack of the first thread.
    Stack = 2,
    /// Memory without a file: of `mmap`, stacks of other threads.
    Anonymous = 3,
    /// A file, shared memory among them.
    File = 4,
}

/// A mapping as people know it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// The process.
    pub tgid: u32,
    /// A [`MappingKind`], as a number, for which zero is a value.
    pub kind: u8,
    /// Whether other processes that map the file see what is written: 1, or 0.
    pub is_shared: u8,
    /// The name of the file; the rest is zero.
    pub name: [u8; NAME],
}

// SAFETY: all members are integers, or arrays of them.
unsafe impl Zeroed for Label {}

/// Addresses of a mapping, when one of its pages was first used.
#[derive(Clone, Copy)]
struct Range {
    /// The kernel's address of the address space.
    space: u64,
    start: u64,
    end: u64,
    label: usize,
}

// SAFETY: all members are integers.
unsafe impl Zeroed for Range {}

/// A range as it is found, to be kept for the next address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub start: u64,
    pub end: u64,
    pub label: usize,
    /// Whether other processes see what is written there.
    pub is_shared: bool,
}

/// The mappings of all processes.
pub struct Mappings {
    ranges: Option<&'static mut [Range]>,
    known: usize,
    labels: Option<&'static mut [Label]>,
    labelled: usize,
    /// Ranges for which there was no room.
    pub lost: u64,
}

impl Mappings {
    /// No mapping.
    pub const fn new() -> Self {
        Self { ranges: None, known: 0, labels: None, labelled: 0, lost: 0 }
    }

    fn ranges(&self) -> &[Range] {
        self.ranges.as_deref().map_or(&[], |ranges| &ranges[..self.known.min(ranges.len())])
    }

    /// The labels, by number.
    pub fn labels(&self) -> &[Label] {
        self.labels.as_deref().map_or(&[], |labels| &labels[..self.labelled.min(labels.len())])
    }

    /// The range of an address in an address space: the latest, since mappings come and go.
    pub fn find(&self, space: u64, address: u64) -> Option<Found> {
        let holds = |range: &&Range| range.space == space && range.start <= address && address < range.end;
        let range = self.ranges().iter().rev().find(holds)?;
        let is_shared = self.labels().get(range.label).is_some_and(|label| label.is_shared != 0);
        Some(Found { start: range.start, end: range.end, label: range.label, is_shared })
    }

    /// A page of a mapping is used: `true` if that was not known.
    pub fn add(
        &mut self,
        space: u64,
        start: u64,
        end: u64,
        address: u64,
        label: impl FnOnce() -> Label,
    ) -> bool {
        if self.find(space, address).is_some_and(|found| (found.start, found.end) == (start, end)) {
            return false;
        }
        let label = self.number(label());
        // A mapping that grows, as heaps and stacks do, stays one range.
        let last = self.known.checked_sub(1);
        let ranges = self.ranges.get_or_insert_with(|| zeroed(MOST_RANGES));
        if let Some(range) = last.and_then(|last| ranges.get_mut(last))
            && (range.space, range.label) == (space, label)
            && (range.start == start || range.end == end)
        {
            (range.start, range.end) = (start, end);
            return true;
        }
        match ranges.get_mut(self.known) {
            Some(range) => {
                *range = Range { space, start, end, label };
                self.known += 1;
            }
            None => self.lost += 1,
        }
        true
    }

    /// The number of a label, which is new or was there; that of the unknown where there is no room.
    fn number(&mut self, label: Label) -> usize {
        let labels = self.labels.get_or_insert_with(|| zeroed(MOST_LABELS));
        self.labelled = self.labelled.max(1);
        if let Some(number) = labels.iter().take(self.labelled).position(|known| *known == label) {
            return number;
        }
        let Some(place) = labels.get_mut(self.labelled) else { return 0 };
        *place = label;
        self.labelled += 1;
        self.labelled - 1
    }

    /// A process has become two: the second has the mappings of the first.
    pub fn fork(&mut self, parent: u64, child: u64, tgid: u32) {
        for number in 0..self.known {
            let Some(range) = self.ranges().get(number).copied().filter(|range| range.space == parent) else {
                continue;
            };
            let label = self.labels().get(range.label).map_or(0, |label| label.kind);
            let label = if label == MappingKind::Unknown as u8 {
                0
            } else {
                let label = Label { tgid, ..self.labels()[range.label] };
                self.number(label)
            };
            match self.ranges.as_deref_mut().and_then(|ranges| ranges.get_mut(self.known)) {
                Some(place) => {
                    *place = Range { space: child, label, ..range };
                    self.known += 1;
                }
                None => self.lost += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(tgid: u32, kind: MappingKind, text: &str) -> Label {
        let mut name = [0; NAME];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Label { tgid, kind: kind as u8, is_shared: 0, name }
    }

    #[test]
    fn an_address_has_the_label_of_the_latest_mapping_there() {
        let mut mappings = Mappings::new();
        assert_eq!(mappings.find(1, 0), None);
        assert!(mappings.add(1, 0x1000, 0x9000, 0x1000, || label(7, MappingKind::File, "libc.so.6")));
        assert!(!mappings.add(1, 0x1000, 0x9000, 0x2000, || label(7, MappingKind::Heap, "")));
        assert!(mappings.add(2, 0x1000, 0x9000, 0x2000, || label(8, MappingKind::Heap, "")));
        assert!(mappings.add(1, 0x4000, 0x5000, 0x4000, || label(7, MappingKind::Anonymous, "")));
        let kind =
            |space, address| mappings.find(space, address).map(|found| mappings.labels()[found.label].kind);
        assert_eq!(kind(1, 0x1000), Some(MappingKind::File as u8));
        assert_eq!(kind(1, 0x4fff), Some(MappingKind::Anonymous as u8));
        assert_eq!(kind(1, 0x5000), Some(MappingKind::File as u8));
        assert_eq!(kind(2, 0x8fff), Some(MappingKind::Heap as u8));
        assert_eq!(kind(2, 0x9000), None);
    }

    #[test]
    fn a_mapping_that_grows_stays_one() {
        let mut mappings = Mappings::new();
        for end in [0x2000, 0x3000, 0x9000] {
            assert!(mappings.add(1, 0x1000, end, end - 0x1000, || label(7, MappingKind::Heap, "")));
        }
        assert!(mappings.add(1, 0x7000_0000, 0x7000_2000, 0x7000_1000, || label(7, MappingKind::Stack, "")));
        assert!(mappings.add(1, 0x6fff_0000, 0x7000_2000, 0x6fff_0000, || label(7, MappingKind::Stack, "")));
        assert_eq!((mappings.known, mappings.labels().len()), (2, 3));
        assert_eq!(mappings.find(1, 0x1000).map(|found| found.end), Some(0x9000));
        assert!(mappings.find(1, 0x6fff_8000).is_some());
    }

    #[test]
    fn a_forked_process_has_the_mappings_of_its_parent_under_its_own_number() {
        let mut mappings = Mappings::new();
        mappings.add(1, 0x1000, 0x2000, 0x1000, || label(7, MappingKind::Heap, ""));
        mappings.add(5, 0x1000, 0x2000, 0x1000, || label(6, MappingKind::Stack, ""));
        mappings.fork(1, 2, 9);
        let found = mappings.find(2, 0x1800).map(|found| mappings.labels()[found.label]);
        assert!(found == Some(label(9, MappingKind::Heap, "")));
        assert_eq!(mappings.find(2, 0x2000), None);
        mappings.fork(99, 3, 9);
        assert_eq!(mappings.find(3, 0x1800), None);
    }

    #[test]
    fn what_has_no_room_is_unknown_and_counted_as_lost() {
        let mut mappings = Mappings::new();
        for number in 0..MOST_RANGES as u64 + 5 {
            let start = number << 14;
            mappings.add(1, start, start + 0x1000, start, || label(number as u32, MappingKind::Heap, ""));
        }
        assert_eq!((mappings.lost, mappings.labels().len()), (5, MOST_LABELS));
        let last = mappings.find(1, (MOST_RANGES as u64 - 1) << 14);
        assert_eq!(last.map(|found| found.label), Some(0));
    }
}
