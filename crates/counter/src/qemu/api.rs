//! QEMU's functions for plugins, as far as they are used here, and GLib's arrays, in which some answer.
//!
//! # Source
//! The documentation of QEMU's TCG plugins (<https://www.qemu.org/docs/master/devel/tcg-plugins.html>). Versions 2 to 4 of
//! the interface: QEMU 9.0, from which registers can be read, to 10.0. Two things differ between them: `insn_data` returned a
//! pointer before version 3, and memory can be read from version 4 on.

use core::ffi::{c_char, c_int, c_uint, c_void};

/// A block of instructions, when it is translated.
#[repr(C)]
pub(super) struct Block {
    _private: [u8; 0],
}

/// An instruction of a block.
#[repr(C)]
pub(super) struct Instruction {
    _private: [u8; 0],
}

/// A place in the machine's memory.
#[repr(C)]
pub(super) struct PhysicalPlace {
    _private: [u8; 0],
}

/// A register of a CPU.
#[repr(C)]
pub(super) struct Register {
    _private: [u8; 0],
}

/// The description of a running QEMU.
#[repr(C)]
pub(super) struct Info {
    pub(super) target: *const c_char,
    pub(super) oldest_version: c_int,
    pub(super) version: c_int,
    pub(super) is_system: bool,
    pub(super) cpus: c_int,
    pub(super) most_cpus: c_int,
}

/// A register and its name.
#[repr(C)]
pub(super) struct Description {
    pub(super) register: *mut Register,
    pub(super) name: *const c_char,
    pub(super) feature: *const c_char,
}

/// The beginning of `GArray`.
#[repr(C)]
pub(super) struct Descriptions {
    pub(super) first: *const Description,
    pub(super) count: c_uint,
}

/// The beginning of `GByteArray`.
#[repr(C)]
pub(super) struct Bytes {
    pub(super) first: *mut u8,
    pub(super) count: c_uint,
}

/// Callbacks.
pub(super) type OnBlock = extern "C" fn(plugin: u64, block: *mut Block);
pub(super) type OnCpu = extern "C" fn(plugin: u64, cpu: c_uint);
pub(super) type OnReset = extern "C" fn(plugin: u64);
pub(super) type OnEnd = extern "C" fn(plugin: u64, data: *mut c_void);
pub(super) type OnInstruction = extern "C" fn(cpu: c_uint, data: *mut c_void);
pub(super) type OnMemory = extern "C" fn(cpu: c_uint, access: u32, address: u64, data: *mut c_void);
/// `qemu_plugin_read_memory_vaddr`, which is looked for by its name.
pub(super) type ReadMemory = extern "C" fn(address: u64, bytes: *mut Bytes, count: usize) -> bool;

/// A callback that reads no register, and one that does.
pub(super) const NO_REGISTERS: c_int = 0;
pub(super) const READS_REGISTERS: c_int = 1;
/// Accesses that a callback is for.
pub(super) const READS: c_int = 1;
pub(super) const WRITES: c_int = 2;

unsafe extern "C" {
    pub(super) fn qemu_plugin_register_vcpu_tb_trans_cb(plugin: u64, callback: OnBlock);
    pub(super) fn qemu_plugin_register_vcpu_init_cb(plugin: u64, callback: OnCpu);
    pub(super) fn qemu_plugin_register_atexit_cb(plugin: u64, callback: OnEnd, data: *mut c_void);
    pub(super) fn qemu_plugin_reset(plugin: u64, callback: OnReset);
    pub(super) fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub(super) fn qemu_plugin_tb_get_insn(block: *const Block, number: usize) -> *mut Instruction;
    pub(super) fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    pub(super) fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    /// Before version 3 of the interface it took the first argument only, and what it returns was a pointer.
    pub(super) fn qemu_plugin_insn_data(
        instruction: *const Instruction,
        to: *mut c_void,
        room: usize,
    ) -> usize;
    pub(super) fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        callback: OnInstruction,
        registers: c_int,
        data: *mut c_void,
    );
    pub(super) fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        callback: OnMemory,
        registers: c_int,
        accesses: c_int,
        data: *mut c_void,
    );
    pub(super) fn qemu_plugin_mem_size_shift(access: u32) -> c_uint;
    pub(super) fn qemu_plugin_get_hwaddr(access: u32, address: u64) -> *mut PhysicalPlace;
    pub(super) fn qemu_plugin_hwaddr_is_io(place: *const PhysicalPlace) -> bool;
    pub(super) fn qemu_plugin_hwaddr_phys_addr(place: *const PhysicalPlace) -> u64;
    pub(super) fn qemu_plugin_get_registers() -> *mut Descriptions;
    pub(super) fn qemu_plugin_read_register(register: *mut Register, bytes: *mut Bytes) -> c_int;
    pub(super) fn g_byte_array_new() -> *mut Bytes;
    pub(super) fn g_byte_array_set_size(bytes: *mut Bytes, count: c_uint) -> *mut Bytes;
    pub(super) fn pthread_key_create(key: *mut c_uint, destructor: *const c_void) -> c_int;
    pub(super) fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    pub(super) fn pthread_getspecific(key: c_uint) -> *mut c_void;
    pub(super) fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}
