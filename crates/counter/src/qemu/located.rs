//! Where in which file an instruction is that is translated, as the guest's kernel has it mapped.

use core::ffi::{c_uint, c_void};
use core::ptr::null;
use core::sync::atomic::{AtomicU32, Ordering};

use super::api;
use super::read::{member, memory, word};
use super::{CODE, with_cpu};
use crate::code::{ImageKey, InstructionPlace, KERNEL_PATH, PATH, START};
use crate::maple::{self, NodeLayout, TreeLayout};
use crate::mark::Field;

/// The key under which a thread of QEMU keeps the CPU that it runs, plus 1; 0 without one.
static KEY: AtomicU32 = AtomicU32::new(0);
/// Most folders of a path.
const DEEPEST: usize = 64;

/// Makes room for the CPU of each thread. QEMU names no CPU when it translates, which happens on the thread of the one that needs it.
pub(super) fn prepare() {
    let mut key = 0;
    // SAFETY: the place is ours; no destructor is given.
    if unsafe { api::pthread_key_create(&mut key, null()) } == 0 {
        KEY.store(key + 1, Ordering::Relaxed);
    }
}

/// This thread runs a CPU.
pub(super) fn runs(cpu: c_uint) {
    let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) else { return };
    let value: *const c_void = core::ptr::without_provenance(cpu as usize + 1);
    // SAFETY: the key was made, and the value is a number that nothing is read from.
    unsafe { api::pthread_setspecific(key, value) };
}

/// The CPU that this thread runs.
fn current() -> Option<c_uint> {
    let key = KEY.load(Ordering::Relaxed).checked_sub(1)?;
    // SAFETY: the key was made.
    let value = unsafe { api::pthread_getspecific(key) };
    c_uint::try_from(value.addr().checked_sub(1)?).ok()
}

/// Where the mapping of code begins, the place of that in its file, and the number of the file.
#[derive(Clone, Copy)]
pub(super) struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    image: u64,
}

impl Mapped {
    /// The number of an instruction; 0 where it is not known.
    pub(super) fn number(mapped: Option<Self>, address: u64) -> u32 {
        let Some(mapped) = mapped.filter(|mapped| (mapped.start..mapped.end).contains(&address)) else {
            return 0;
        };
        CODE.with(|code| {
            let is_file = code.images().get(mapped.image as usize).is_some_and(|image| image.path[0] != 0);
            // Code without a file is at other addresses in each run, and has no names.
            let offset = if is_file { address - mapped.start + mapped.offset } else { 0 };
            code.number(InstructionPlace { image: mapped.image, offset })
        })
    }
}

/// The number of a block of the kernel's code, which stands for all of its instructions: they are in the same function.
pub(super) fn kernel(address: u64) -> u32 {
    CODE.with(|code| match code.image(ImageKey::KERNEL, || KERNEL_PATH) {
        Some(image) => code.number(InstructionPlace { image, offset: address }),
        None => 0,
    })
}

/// The mapping of code at an address of the program that runs on this thread's CPU.
pub(super) fn mapped(address: u64) -> Option<Mapped> {
    let cpu = current()?;
    let task = with_cpu(cpu, |cpu| cpu.task).filter(|task| *task != 0)?;
    let space = word(cpu, task, Field::Mm).filter(|space| *space != 0)?;
    let root = memory(cpu, member(member(space, Field::Tree)?, Field::Root)?).map(u64::from_le_bytes)?;
    let read = |address| memory(cpu, address).map(u64::from_le_bytes);
    let mapping = maple::find(root, address, layout()?, read)?;
    let part = |part| word(cpu, mapping, part);
    let (start, end) = (part(Field::Start)?, part(Field::End)?);
    if part(Field::Space)? != space || !(start..end).contains(&address) {
        return None;
    }
    let offset = part(Field::Offset)? << 12;
    let image = image(cpu, part(Field::File)?)?;
    Some(Mapped { start, end, offset, image })
}

fn layout() -> Option<TreeLayout> {
    let offset = |field| member(0, field);
    let node = |pivots, parts| Some(NodeLayout { pivots: offset(pivots)?, parts: offset(parts)? });
    let plain = node(Field::Pivots, Field::Parts)?;
    Some(TreeLayout { plain, with_gaps: node(Field::PivotsWithGaps, Field::PartsWithGaps)? })
}

/// The number of a file.
fn image(cpu: c_uint, file: u64) -> Option<u64> {
    if file == 0 {
        return CODE.with(|code| code.image(ImageKey::NO_FILE, || [0; PATH]));
    }
    let place = member(file, Field::Path)?;
    let entry = word(cpu, place, Field::Entry)?;
    let folder = word(cpu, entry, Field::Parent)?;
    let name: [u8; START] = memory(cpu, word(cpu, member(entry, Field::Name)?, Field::Text)?)?;
    // What follows the end of the name is not its own.
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(START);
    let mut key = ImageKey { entry, folder, name: [0; START] };
    key.name[..length].copy_from_slice(&name[..length]);
    CODE.with(|code| code.image(key, || path(cpu, entry, word(cpu, place, Field::PathMount))))
}

/// The path of an entry in a mount, as the program has it; where it is too long, without its first folders. A mount that is nowhere,
/// as those are that an overlay keeps of its layers, gives the path in its file system.
fn path(cpu: c_uint, entry: u64, mount: Option<u64>) -> [u8; PATH] {
    let mut path = [0; PATH];
    // Written from the end.
    let mut start = PATH;
    let (mut entry, mut mount) = (entry, mount);
    for _ in 0..DEEPEST {
        if let Some((above, point)) = mount.and_then(|mount| mounted_at(cpu, mount, entry)) {
            (entry, mount) = (point, Some(above));
            continue;
        }
        let Some(parent) = word(cpu, entry, Field::Parent).filter(|parent| *parent != entry) else { break };
        let text = member(entry, Field::Name).and_then(|name| word(cpu, name, Field::Text));
        let Some(name) = text.and_then(|text| memory::<256>(cpu, text)) else { break };
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(255);
        if start < length + 1 {
            break;
        }
        start -= length;
        path[start..start + length].copy_from_slice(&name[..length]);
        start -= 1;
        path[start] = b'/';
        entry = parent;
    }
    path.copy_within(start.., 0);
    path[PATH - start..].fill(0);
    path
}

/// Where a mount is whose root is this entry: the mount above, and the entry there. `None` for another entry, or a mount that is
/// nowhere.
fn mounted_at(cpu: c_uint, named: u64, entry: u64) -> Option<(u64, u64)> {
    word(cpu, named, Field::MountRoot).filter(|root| *root == entry)?;
    // Paths name a part of the mount.
    let mount = named.checked_sub(member(0, Field::MountNamed)?)?;
    let above = word(cpu, mount, Field::MountParent).filter(|above| *above != mount && *above != 0)?;
    Some((member(above, Field::MountNamed)?, word(cpu, mount, Field::MountPoint)?))
}
