//! Mappings of the guest's processes, as its kernel has them when a page is used.

use core::ffi::c_uint;
use core::sync::atomic::Ordering;

use super::api;
use super::read::{field, member, memory, name, word};
use super::{MAPPINGS, PROCESS_PHASES, TASKS, VERSION_OF_MAPPINGS, with_cpu};
use crate::cpu::Guest;
use crate::mappings::{Found, Label, MappingKind, NAME};
use crate::mark::Field;

/// The CPU runs a counted task, which has an address space.
pub(super) fn enter(cpu: c_uint, task: u64) {
    let space = word(cpu, task, Field::Mm).unwrap_or(0);
    with_cpu(cpu, |cpu| cpu.enter(space));
}

/// A task has made another. One that has memory of its own has the mappings of the first.
pub(super) fn start_child(cpu: c_uint, parent: u64, child: u64) {
    let process = TASKS.with(|tasks| {
        let number = tasks.start(parent, child)?;
        let thread = tasks.thread_mut(number)?;
        name(cpu, child, thread);
        let (parent, process) = (thread.parent, thread.tgid);
        let is_same = tasks.threads().get(parent).is_some_and(|parent| parent.tgid == process);
        PROCESS_PHASES.start(parent, number, is_same);
        Some(process)
    });
    let spaces = [parent, child].map(|task| word(cpu, task, Field::Mm));
    if let (Some(process), [Some(old), Some(new)]) = (process, spaces)
        && old != new
    {
        MAPPINGS.with(|mappings| mappings.fork(old, new, process));
    }
}

/// A counted task uses a page of a mapping.
pub(super) fn fault(cpu: c_uint, task: u64, mapping: u64, address: u64) {
    enter(cpu, task);
    let parts = [Field::Space, Field::Start, Field::End].map(|part| word(cpu, mapping, part));
    let [Some(space), Some(start), Some(end)] = parts else { return };
    let is_new = MAPPINGS.with(|mappings| {
        mappings.add(space, start, end, address, || label(cpu, task, mapping, space, [start, end]))
    });
    if is_new {
        VERSION_OF_MAPPINGS.fetch_add(1, Ordering::Release);
    }
}

/// The label of a mapping.
fn label(cpu: c_uint, task: u64, mapping: u64, space: u64, [start, end]: [u64; 2]) -> Label {
    let tgid = field(cpu, task, Field::Tgid).map_or(0, u32::from_le_bytes);
    let plain = |kind: MappingKind| Label { tgid, kind: kind as u8, is_shared: 0, name: [0; NAME] };
    // As `vma_is_initial_heap` and `vma_is_initial_stack` of the kernel's `linux/mm.h` have it.
    let of_space = |part| word(cpu, space, part).unwrap_or(0);
    match word(cpu, mapping, Field::File) {
        None => plain(MappingKind::Unknown),
        Some(0) if start < of_space(Field::HeapEnd) && end > of_space(Field::HeapStart) => {
            plain(MappingKind::Heap)
        }
        Some(0) if (start..=end).contains(&of_space(Field::Stack)) => plain(MappingKind::Stack),
        Some(0) => plain(MappingKind::Anonymous),
        Some(file) => {
            let flags = word(cpu, mapping, Field::Flags).unwrap_or(0);
            let name = file_name(cpu, file).unwrap_or([0; NAME]);
            Label { is_shared: u8::from(flags & SHARED != 0), name, ..plain(MappingKind::File) }
        }
    }
}

/// `VM_SHARED` of the kernel's `linux/mm.h`.
const SHARED: u64 = 8;

/// The name of a file, without its folders.
fn file_name(cpu: c_uint, file: u64) -> Option<[u8; NAME]> {
    let entry = word(cpu, member(file, Field::Path)?, Field::Entry)?;
    let text = word(cpu, member(entry, Field::Name)?, Field::Text)?;
    let mut name = memory::<NAME>(cpu, text)?;
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
    name[length..].fill(0);
    Some(name)
}

/// An access, which answers what a CPU asks about it.
pub(super) struct Accessed(pub(super) u32);

impl Guest for Accessed {
    fn physical(&self, address: u64) -> Option<u64> {
        // SAFETY: QEMU's word for the access, during its callback.
        let place = unsafe { api::qemu_plugin_get_hwaddr(self.0, address) };
        // SAFETY: QEMU's place, until this callback returns.
        if place.is_null() || unsafe { api::qemu_plugin_hwaddr_is_io(place) } {
            return None;
        }
        // SAFETY: as above.
        Some(unsafe { api::qemu_plugin_hwaddr_phys_addr(place) })
    }

    fn mapping(&self, space: u64, address: u64) -> Option<Found> {
        MAPPINGS.with(|mappings| mappings.find(space, address))
    }

    fn version(&self) -> u64 {
        VERSION_OF_MAPPINGS.load(Ordering::Acquire)
    }

    fn phase(&self, thread: usize) -> usize {
        PROCESS_PHASES.current(thread)
    }
}
