//! The functions that QEMU calls.
//!
//! Each CPU of the guest has a thread of QEMU, which calls what concerns that CPU; so a CPU's counts need no lock. (Where QEMU
//! runs all CPUs on one thread, it names the wrong CPU to callbacks: whoever starts QEMU sees to it that it does not, or
//! that there is one CPU.) What the threads share is written by marks, before the first task is counted, or is under a lock.

mod api;
mod located;
mod mapped;
mod read;

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use api::{Block, Bytes, Info, Instruction, Register};
use located::Mapped;
use mapped::{Accessed, enter, fault, start_child};
use read::{name, register_of};

use crate::code::Code;
use crate::cpu::{Access, Cpu, Geometry};
use crate::mappings::Mappings;
use crate::mark::{self, Field, Hook, MarkKind};
use crate::nodes::Nodes;
use crate::phases::{NAME as PHASE_NAME, Phases, ProcessPhases};
use crate::report::CountReport;
use crate::sink::Sink;
use crate::state::{Locked, Own};
use crate::tasks::Tasks;

/// Most CPUs: the lab's guests have fewer.
const MOST_CPUS: usize = 256;
/// User code of x86-64 is below this address, the kernel above.
const KERNEL: u64 = 1 << 47;

/// The version of the interface that QEMU reads.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[cfg_attr(test, expect(non_upper_case_globals, reason = "QEMU knows it by this name"))]
pub static qemu_plugin_version: c_int = 2;

static CPUS: [Own<Cpu>; MOST_CPUS] = [const { Own::new(Cpu::new()) }; MOST_CPUS];
static TASKS: Locked<Tasks> = Locked::new(Tasks::new());
static MAPPINGS: Locked<Mappings> = Locked::new(Mappings::new());
static PHASES: Locked<Phases> = Locked::new(Phases::new());
static CODE: Locked<Code> = Locked::new(Code::new());
/// Whether the kernel's accesses are counted.
static WITH_KERNEL: AtomicBool = AtomicBool::new(false);
/// Whether instructions are distinguished.
static BY_LINE: AtomicBool = AtomicBool::new(false);
static PROCESS_PHASES: ProcessPhases = ProcessPhases::new();
/// Changes when mappings do.
static VERSION_OF_MAPPINGS: AtomicU64 = AtomicU64::new(1);
/// Written by marks, which come before the first counted task.
static NODES: Own<Nodes> = Own::new(Nodes::new());
static HAS_STARTED: AtomicBool = AtomicBool::new(false);
/// Whether code is translated with what counting needs.
static IS_READY: AtomicBool = AtomicBool::new(false);
/// Addresses of functions of the guest's kernel; 0 is unknown.
static HOOKS: [AtomicU64; Hook::ALL.len()] = [const { AtomicU64::new(0) }; Hook::ALL.len()];
/// Offsets in its structures, plus 1; 0 is unknown.
static FIELDS: [AtomicU64; Field::ALL.len()] = [const { AtomicU64::new(0) }; Field::ALL.len()];
/// `rax`, `rdi`, `rsi`, `rdx`.
static REGISTERS: [AtomicPtr<Register>; 4] = [const { AtomicPtr::new(null_mut()) }; 4];
const NAMES: [&CStr; 4] = [c"rax", c"rdi", c"rsi", c"rdx"];
/// Where a register's bytes come, for each CPU.
static BUFFERS: [AtomicPtr<Bytes>; MOST_CPUS] = [const { AtomicPtr::new(null_mut()) }; MOST_CPUS];
/// `qemu_plugin_read_memory_vaddr`, where QEMU has it.
static READ_MEMORY: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// Arguments of the plugin: its number, the version of the interface, the cache, the file.
static PLUGIN: AtomicU64 = AtomicU64::new(0);
static VERSION: AtomicU64 = AtomicU64::new(0);
static SIZE: AtomicU64 = AtomicU64::new(1 << 20);
static WAYS: AtomicU64 = AtomicU64::new(16);
static FILE: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// Where QEMU begins: `size=BYTES`, `ways=WAYS`, `kernel=1` to count the kernel's accesses, `lines=1` to
/// distinguish instructions, `to=PATH`.
///
/// # Safety
/// QEMU's to keep: its arguments are what its interface says, and live as long as QEMU.
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn qemu_plugin_install(
    plugin: u64,
    info: *const Info,
    count: c_int,
    words: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU passes a description that lives until this function returns.
    let info = unsafe { &*info };
    for number in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: QEMU passes that many words.
        let place = unsafe { words.add(number) };
        // SAFETY: as above.
        let word = unsafe { *place };
        // SAFETY: words end with a NUL, and live as long as QEMU's list of plugins, which it never frees.
        if !option(unsafe { CStr::from_ptr(word) }) {
            return -1;
        }
    }
    if !info.is_system || info.cpus > MOST_CPUS as c_int || geometry().ways == 0 {
        return -1;
    }
    PLUGIN.store(plugin, Ordering::Relaxed);
    VERSION.store(u64::try_from(info.version).unwrap_or(0), Ordering::Relaxed);
    // SAFETY: the name ends with a NUL; without a library it is looked for in all that are loaded.
    let found = unsafe { api::dlsym(null_mut(), c"qemu_plugin_read_memory_vaddr".as_ptr()) };
    READ_MEMORY.store(found, Ordering::Relaxed);
    if BY_LINE.load(Ordering::Relaxed) {
        located::prepare();
    }
    // SAFETY: the plugin has this number, and the function stays loaded.
    unsafe { api::qemu_plugin_register_vcpu_init_cb(plugin, on_cpu) };
    register(plugin);
    0
}

/// Registers the callbacks, at the start and again after a reset.
fn register(plugin: u64) {
    // SAFETY: the plugin has this number, and the function stays loaded.
    unsafe { api::qemu_plugin_register_vcpu_tb_trans_cb(plugin, on_block) };
    // SAFETY: as above.
    unsafe { api::qemu_plugin_register_atexit_cb(plugin, on_end, null_mut()) };
}

/// Reads a word of the command line; `false` if it is none of ours.
fn option(word: &CStr) -> bool {
    let bytes = word.to_bytes();
    let number = |text: &[u8]| core::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
    let Some(at) = bytes.iter().position(|byte| *byte == b'=') else { return false };
    let (name, value) = (&bytes[..at], &bytes[at + 1..]);
    match (name, number(value)) {
        (b"size", Some(size)) => SIZE.store(size, Ordering::Relaxed),
        (b"kernel", Some(kernel)) => WITH_KERNEL.store(kernel > 0, Ordering::Relaxed),
        (b"lines", Some(lines)) => BY_LINE.store(lines > 0, Ordering::Relaxed),
        (b"ways", Some(ways)) => WAYS.store(ways, Ordering::Relaxed),
        // The rest of the word ends with the word's NUL.
        (b"to", _) => FILE.store(word.as_ptr().wrapping_add(at + 1).cast_mut(), Ordering::Relaxed),
        _ => return false,
    }
    true
}

fn geometry() -> Geometry {
    let number = |of: &AtomicU64| usize::try_from(of.load(Ordering::Relaxed)).unwrap_or(0);
    Geometry { size: number(&SIZE), ways: number(&WAYS) }
}

/// The CPU whose thread this is.
fn with_cpu<R>(cpu: c_uint, work: impl FnOnce(&mut Cpu) -> R) -> Option<R> {
    let place = CPUS.get(cpu as usize)?.get();
    // SAFETY: QEMU calls back on the thread of the CPU that it names, one callback at a time, and no callback keeps the
    // reference; at the end, when another thread reads, the CPUs have stopped.
    Some(work(unsafe { &mut *place }))
}

fn nodes() -> &'static Nodes {
    // SAFETY: marks that write come before the first counted task, and what reads it before that throws it away.
    unsafe { &*NODES.get() }
}

/// A CPU appears.
extern "C" fn on_cpu(_: u64, cpu: c_uint) {
    let has_caches = with_cpu(cpu, |cpu| cpu.begin(geometry()));
    // SAFETY: GLib's function takes nothing.
    let buffer = unsafe { api::g_byte_array_new() };
    if let (Some(true), Some(place)) = (has_caches, BUFFERS.get(cpu as usize)) {
        place.store(buffer, Ordering::Relaxed);
    }
    // SAFETY: a CPU that begins is the one whose registers are asked for.
    let list = unsafe { api::qemu_plugin_get_registers() };
    if list.is_null() {
        return;
    }
    // SAFETY: QEMU returns an array of descriptions, which is given to us.
    let list = unsafe { &*list };
    // SAFETY: the array has that many descriptions, and is never freed.
    let descriptions = unsafe { core::slice::from_raw_parts(list.first, list.count as usize) };
    for description in descriptions {
        // SAFETY: names end with a NUL and are never freed.
        let name = unsafe { CStr::from_ptr(description.name) };
        if let Some(number) = NAMES.iter().position(|wanted| *wanted == name) {
            REGISTERS[number].store(description.register, Ordering::Relaxed);
        }
    }
}

/// A block is translated: its instructions get their callbacks.
extern "C" fn on_block(_: u64, block: *mut Block) {
    // SAFETY: QEMU's block, until this function returns.
    let count = unsafe { api::qemu_plugin_tb_n_insns(block) };
    let (mut mapped, mut of_kernel) = (None, 0);
    for number in 0..count {
        // SAFETY: the block has an instruction of this number.
        let instruction = unsafe { api::qemu_plugin_tb_get_insn(block, number) };
        // SAFETY: as above.
        let address = unsafe { api::qemu_plugin_insn_vaddr(instruction) };
        if address < KERNEL {
            if number == 0 && BY_LINE.load(Ordering::Relaxed) && IS_READY.load(Ordering::Relaxed) {
                mapped = located::mapped(address);
            }
            user_code(instruction, Mapped::number(mapped, address));
        } else if IS_READY.load(Ordering::Relaxed) {
            let hook = HOOKS.iter().position(|hook| hook.load(Ordering::Relaxed) == address);
            if let Some(hook) = hook {
                on_run(instruction, on_hook, hook);
            }
            if WITH_KERNEL.load(Ordering::Relaxed) {
                if number == 0 && BY_LINE.load(Ordering::Relaxed) {
                    of_kernel = located::kernel(address);
                }
                on_memory(instruction, [on_kernel_read, on_kernel_write], of_kernel);
            }
        }
    }
}

/// An instruction of user code gets its callbacks; `at` is its number.
fn user_code(instruction: *mut Instruction, at: u32) {
    if is_mark(instruction) {
        return on_run(instruction, on_mark, 0);
    }
    if !IS_READY.load(Ordering::Relaxed) {
        return;
    }
    on_memory(instruction, [on_read, on_write], at);
}

/// Callbacks for the reads and the writes of an instruction; `at` is its number.
fn on_memory(instruction: *mut Instruction, callbacks: [api::OnMemory; 2], at: u32) {
    for (callback, accesses) in callbacks.into_iter().zip([api::READS, api::WRITES]) {
        // SAFETY: the instruction is being translated; the function stays loaded.
        unsafe {
            api::qemu_plugin_register_vcpu_mem_cb(
                instruction,
                callback,
                api::NO_REGISTERS,
                accesses,
                core::ptr::without_provenance_mut(at as usize),
            );
        };
    }
}

fn on_run(instruction: *mut Instruction, callback: api::OnInstruction, data: usize) {
    let data = core::ptr::without_provenance_mut(data);
    // SAFETY: the instruction is being translated; the function stays loaded.
    unsafe {
        api::qemu_plugin_register_vcpu_insn_exec_cb(instruction, callback, api::READS_REGISTERS, data);
    };
}

fn is_mark(instruction: *mut Instruction) -> bool {
    const LENGTH: usize = mark::INSTRUCTION.len();
    // SAFETY: the instruction is being translated.
    if unsafe { api::qemu_plugin_insn_size(instruction) } != LENGTH {
        return false;
    }
    let mut bytes = [0; LENGTH];
    // SAFETY: the array has room for that many bytes; before version 3 QEMU does not look at it.
    let answer = unsafe { api::qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), LENGTH) };
    if VERSION.load(Ordering::Relaxed) < 3 {
        // SAFETY: then the answer is the address of that many bytes.
        bytes = unsafe { core::ptr::with_exposed_provenance::<[u8; LENGTH]>(answer).read() };
    }
    bytes == mark::INSTRUCTION
}

/// A mark was executed.
extern "C" fn on_mark(cpu: c_uint, _: *mut c_void) {
    let Some(kind) = MarkKind::from_word(register_of(cpu, 0)) else { return };
    let [first, second, third] = [1, 2, 3].map(|number| register_of(cpu, number));
    let has_started = HAS_STARTED.load(Ordering::Acquire);
    let index = usize::try_from(first).unwrap_or(usize::MAX);
    match kind {
        MarkKind::Phase => phase(cpu, [first, second, third]),
        // What was said cannot be said otherwise once tasks are counted.
        _ if has_started => {}
        MarkKind::Hook => HOOKS.get(index).into_iter().for_each(|hook| hook.store(second, Ordering::Relaxed)),
        MarkKind::Field => {
            let field = FIELDS.get(index);
            field.into_iter().for_each(|field| field.store(second + 1, Ordering::Relaxed));
        }
        MarkKind::Memory => {
            // SAFETY: one program in the guest makes these marks, and no task is counted yet.
            let nodes = unsafe { &mut *NODES.get() };
            if third < 1024 {
                nodes.add(first, second, third as u32);
            }
        }
        // SAFETY: the plugin has this number, and the function stays loaded.
        MarkKind::Ready => unsafe { api::qemu_plugin_reset(PLUGIN.load(Ordering::Relaxed), on_reset) },
        MarkKind::Start => start(cpu, first),
    }
}

/// A program names the phase that it enters. Programs that are not counted have none.
fn phase(cpu: c_uint, words: [u64; 3]) {
    let task = with_cpu(cpu, |cpu| cpu.task).unwrap_or(0);
    let Some(thread) = TASKS.with(|tasks| tasks.counted(task)) else { return };
    let mut name = [0; PHASE_NAME];
    name.chunks_exact_mut(8).zip(words).for_each(|(part, word)| part.copy_from_slice(&word.to_le_bytes()));
    PROCESS_PHASES.enter(thread, PHASES.with(|phases| phases.number(name)));
}

/// Nothing is translated any more: all code is translated again when it runs.
extern "C" fn on_reset(plugin: u64) {
    IS_READY.store(true, Ordering::Relaxed);
    register(plugin);
}

/// The task that runs on this CPU is the first. Which one it is, is known from the first switch after the reset on.
fn start(cpu: c_uint, execs: u64) {
    let task = with_cpu(cpu, |cpu| cpu.task).unwrap_or(0);
    if task == 0 {
        return;
    }
    TASKS.with(|tasks| {
        if tasks.begin(task, execs) {
            tasks.thread_mut(0).into_iter().for_each(|thread| name(cpu, task, thread));
            HAS_STARTED.store(true, Ordering::Release);
        }
    });
}

/// A function of the guest's kernel begins.
extern "C" fn on_hook(cpu: c_uint, hook: *mut c_void) {
    let hook = Hook::ALL.get(hook.addr()).map(|(hook, _)| *hook);
    let current = || with_cpu(cpu, |cpu| cpu.task).unwrap_or(0);
    match hook {
        Some(Hook::Switch) => {
            located::runs(cpu);
            let next = register_of(cpu, 2);
            let thread = TASKS.with(|tasks| tasks.counted(next));
            with_cpu(cpu, |cpu| cpu.run(next, thread, nodes()));
            if thread.is_some() {
                enter(cpu, next);
            }
        }
        Some(Hook::Start) => start_child(cpu, current(), register_of(cpu, 1)),
        Some(Hook::Exit) => {
            let task = current();
            TASKS.with(|tasks| {
                let thread = tasks.find(task).and_then(|thread| tasks.thread_mut(thread));
                thread.into_iter().for_each(|thread| name(cpu, task, thread));
                tasks.exit(task);
            });
        }
        Some(Hook::Exec) => {
            let task = current();
            let thread = TASKS.with(|tasks| {
                tasks.exec(task);
                tasks.counted(task)
            });
            with_cpu(cpu, |cpu| cpu.run(task, thread, nodes()));
        }
        Some(Hook::Fault) => {
            let task = current();
            if TASKS.with(|tasks| tasks.counted(task)).is_some() {
                fault(cpu, task, register_of(cpu, 1), register_of(cpu, 2));
            }
        }
        None => {}
    }
}

extern "C" fn on_read(cpu: c_uint, access: u32, address: u64, at: *mut c_void) {
    on_access(cpu, access, address, (false, at.addr() as u32));
}

extern "C" fn on_write(cpu: c_uint, access: u32, address: u64, at: *mut c_void) {
    on_access(cpu, access, address, (true, at.addr() as u32));
}

/// User code accesses memory.
#[inline]
fn on_access(cpu: c_uint, access: u32, address: u64, (is_write, at): (bool, u32)) {
    let bytes = bytes_of(access, address, is_write);
    with_cpu(cpu, |cpu| cpu.access(Access { address, bytes, is_write, at }, nodes(), &Accessed(access)));
}

extern "C" fn on_kernel_read(cpu: c_uint, access: u32, address: u64, at: *mut c_void) {
    on_kernel_access(cpu, access, address, (false, at.addr() as u32));
}

extern "C" fn on_kernel_write(cpu: c_uint, access: u32, address: u64, at: *mut c_void) {
    on_kernel_access(cpu, access, address, (true, at.addr() as u32));
}

/// The kernel accesses memory, its own or the program's.
#[inline]
fn on_kernel_access(cpu: c_uint, access: u32, address: u64, (is_write, at): (bool, u32)) {
    let bytes = bytes_of(access, address, is_write);
    let access = Accessed(access);
    with_cpu(cpu, |cpu| cpu.kernel_access(Access { address, bytes, is_write, at }, nodes(), &access));
}

/// The bytes of an access. None is longer than 16; reads that cannot reach the next line need not be measured.
#[inline]
fn bytes_of(access: u32, address: u64, is_write: bool) -> u64 {
    let is_measured = is_write || address & 63 > 48;
    // SAFETY: QEMU's word for the access, during its callback.
    if is_measured { 1 << unsafe { api::qemu_plugin_mem_size_shift(access) } } else { 1 }
}

/// QEMU ends: the counts are written.
extern "C" fn on_end(_: u64, _: *mut c_void) {
    let path = FILE.load(Ordering::Relaxed);
    if path.is_null() || !HAS_STARTED.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: the path is the end of a word of QEMU's, which ends with a NUL and lives as long as QEMU.
    let Some(mut sink) = Sink::create(unsafe { CStr::from_ptr(path) }) else { return };
    for cpu in &CPUS {
        // SAFETY: the CPUs have stopped, so no thread uses them.
        unsafe { &mut *cpu.get() }.end();
    }
    // SAFETY: as above.
    let cpus = CPUS.iter().map(|cpu| unsafe { &*cpu.get() });
    TASKS.with(|tasks| {
        MAPPINGS.with(|mappings| {
            PHASES.with(|phases| {
                CODE.with(|code| {
                    let nodes = nodes().count();
                    let report = CountReport { geometry: geometry(), tasks, mappings, phases, code, nodes };
                    // A text without its last line is known to be incomplete.
                    let _ = report.write(&mut sink, cpus);
                });
            });
        });
    });
}
