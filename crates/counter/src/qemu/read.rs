//! Registers and memory of the guest.

use core::ffi::{c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering;

use super::api::{self, Bytes, ReadMemory};
use super::{BUFFERS, FIELDS, READ_MEMORY, REGISTERS};
use crate::mark::Field;
use crate::tasks::{NAME, Thread};

/// The bytes that QEMU writes for a CPU, as it is asked to; nothing if it cannot.
fn bytes(cpu: c_uint, ask: impl FnOnce(*mut Bytes)) -> &'static [u8] {
    let buffer = BUFFERS.get(cpu as usize).map_or(null_mut(), |place| place.load(Ordering::Relaxed));
    if buffer.is_null() {
        return &[];
    }
    // SAFETY: the array is GLib's, and this thread's alone.
    unsafe { api::g_byte_array_set_size(buffer, 0) };
    ask(buffer);
    // SAFETY: as above.
    let bytes = unsafe { &*buffer };
    if bytes.count == 0 {
        return &[];
    }
    // SAFETY: the array has that many bytes, and callers are done with them before they ask again.
    unsafe { core::slice::from_raw_parts(bytes.first, bytes.count as usize) }
}

/// A register of [`NAMES`]; 0 if it cannot be read.
pub(super) fn register_of(cpu: c_uint, number: usize) -> u64 {
    let register = REGISTERS[number].load(Ordering::Relaxed);
    if register.is_null() {
        return 0;
    }
    // SAFETY: QEMU gave the register, and runs a callback that may read registers; the array is GLib's.
    let read = bytes(cpu, |buffer| _ = unsafe { api::qemu_plugin_read_register(register, buffer) });
    read.first_chunk().copied().map_or(0, u64::from_le_bytes)
}

/// Where a member of a structure is; `None` where the guest does not say.
pub(super) fn member(structure: u64, field: Field) -> Option<u64> {
    let offset = FIELDS[field as usize].load(Ordering::Relaxed).checked_sub(1)?;
    Some(structure.wrapping_add(offset))
}

/// Bytes of a member of a structure; `None` where QEMU or the guest does not say.
pub(super) fn field<const N: usize>(cpu: c_uint, structure: u64, field: Field) -> Option<[u8; N]> {
    memory(cpu, member(structure, field)?)
}

/// A member that is an address or a number of that length.
pub(super) fn word(cpu: c_uint, structure: u64, member: Field) -> Option<u64> {
    field(cpu, structure, member).map(u64::from_le_bytes)
}

/// Bytes of the guest's memory.
pub(super) fn memory<const N: usize>(cpu: c_uint, address: u64) -> Option<[u8; N]> {
    let function = READ_MEMORY.load(Ordering::Relaxed);
    if function.is_null() {
        return None;
    }
    // SAFETY: the function was found by its name, and has had this form since it exists.
    let read_memory = unsafe { core::mem::transmute::<*mut c_void, ReadMemory>(function) };
    bytes(cpu, |buffer| _ = read_memory(address, buffer, N)).first_chunk().copied()
}

/// Notes who a task is.
pub(super) fn name(cpu: c_uint, task: u64, thread: &mut Thread) {
    if let Some(pid) = field(cpu, task, Field::Pid) {
        thread.pid = u32::from_le_bytes(pid);
    }
    if let Some(tgid) = field(cpu, task, Field::Tgid) {
        thread.tgid = u32::from_le_bytes(tgid);
    }
    if let Some(name) = field::<NAME>(cpu, task, Field::Comm) {
        thread.name = name;
    }
}
