//! memhog: writes to memory, under a policy.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use nodewise_machine::printable::printable;
use nodewise_machine::{MemPolicy, NodeSet, PolicyMode};
use nodewise_notation::number::{self, Base};
use nodewise_syscall::arguments::BindOptions;
use nodewise_syscall::error::ReadError;
use nodewise_syscall::mempolicy::{bind_range, policy_at};
use nodewise_syscall::pages::{self, page_size};
use nodewise_syscall::shared::SharedMemory;
use nodewise_syscall::{Advice, Errno, Task, advice};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno as RawErrno, pwrite};
use serde_json::json;

use crate::kernel::Kernel;
use crate::warning::Warnings;
use crate::{Call, Release, node_argument, report, strerror};

/// A point is written for this much memory.
const POINT: usize = 10 << 20;
/// A size that the C library's allocator takes from the kernel alone, so that nothing else is in its pages.
const ALONE: usize = 1 << 20;
/// The byte that is written to memory.
const FILLING: u8 = 0xff;

const POLICIES: [(&str, PolicyMode); 6] = [
    ("preferred-many", PolicyMode::PreferredMany),
    ("local", PolicyMode::Local),
    ("interleave", PolicyMode::Interleave),
    ("membind", PolicyMode::Bind),
    ("preferred", PolicyMode::Preferred),
    ("default", PolicyMode::Default),
];

/// The values of the options.
#[derive(Debug)]
struct Options {
    /// `-f`: what memory is backed by, with its name.
    file: Option<(OwnedFd, OsString)>,
    /// `-r`: how often all of it is written to.
    passes: i64,
    /// `-H`: no transparent huge pages.
    small_pages: bool,
    /// `--json`: nothing else is written to standard output.
    json: bool,
}

/// Why a run ends early.
enum Stop {
    /// The usage text is to be written.
    Usage,
    /// The reason has been written.
    Told,
}

/// The name and version of what `--json` writes.
const SCHEMA: &str = "nodewise.memhog/1";

/// Runs memhog; returns its exit status.
pub fn run(call: &Call<'_>, kernel: &dyn Kernel, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match hog(call, kernel, out, err) {
        Ok(status) => status,
        Err(Stop::Told) => 1,
        Err(Stop::Usage) => {
            let huge = if call.settings.release == Release::V2_0_16 { "" } else { " [-H]" };
            let names = POLICIES.map(|(name, _)| name).join(" ");
            let _ = writeln!(
                out,
                "memhog [-fFILE] [-rNUM]{huge} size[kmg] [policy [nodeset]]
-f mmap is backed by FILE
-rNUM repeat memset NUM times
-H disable transparent hugepages
Policies: {names}"
            );
            1
        }
    }
}

fn hog(call: &Call<'_>, kernel: &dyn Kernel, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Stop> {
    let (options, words) = options(&call.args, err);
    let [size, words @ ..] = words? else { return Err(Stop::Usage) };
    let size = number::size(size.to_string_lossy().as_bytes());
    let (policy, without) = policy(call, kernel, words, out, err)?;
    if !call.tree.is_live() {
        let _ = writeln!(err, "memhog: only the running system has memory to write to");
        return Err(Stop::Told);
    }
    let refused = |err: &mut dyn Write, errno: Errno| {
        let _ = writeln!(err, "numactl: mmap: {}", strerror::words(errno.number()));
        Stop::Told
    };
    let mut memory = Memory::new(options.file, size).map_err(|errno| refused(err, errno))?;
    let (address, length) = memory.range();
    if let Err(error) = bind_range(address, length, &policy, BindOptions::default()) {
        let _ = writeln!(err, "mbind: {}", strerror::words(error.errno.number()));
    }
    if options.small_pages {
        // A kernel without transparent huge pages does not know the advice, nor need it.
        let _ = advice::advise(address, length, Advice::SmallPages);
    }
    let differs = compare(address, &policy, without, out, err);
    for _ in 0..options.passes {
        let points: &mut dyn Write = if options.json { &mut std::io::sink() } else { &mut *out };
        memory.write(points).map_err(|(name, errno)| {
            let name = printable(&name.to_string_lossy()).into_owned();
            let _ = writeln!(err, "\nmemhog: {name}: {}", strerror::words(errno.number()));
            Stop::Told
        })?;
    }
    if options.json {
        let addresses = pages::addresses(address, length, page_size());
        report::write(
            out,
            &json!({
                "schema": SCHEMA, "bytes": length, "passes": options.passes.max(0),
                "policy": policy.mode.to_string(), "nodes": report::numbers(&policy.nodes),
                "pages_by_node": report::places(pages::count(Task::CURRENT, addresses)),
            }),
        );
    }
    Ok(u8::from(differs))
}

/// Takes the options from the front of the words.
fn options<'a>(mut words: &'a [OsString], err: &mut dyn Write) -> (Options, Result<&'a [OsString], Stop>) {
    let mut options = Options { file: None, passes: 1, small_pages: false, json: false };
    while let [word, rest @ ..] = words {
        match word.as_bytes() {
            [b'-', b'f', name @ ..] => options.file = open_file(OsStr::from_bytes(name), err),
            [b'-', b'r', count @ ..] => {
                let text = String::from_utf8_lossy(count);
                options.passes =
                    number::leading_str(&text, Base::Decimal).map_or(0, |(number, _)| number as i64);
            }
            [b'-', b'H', ..] => options.small_pages = true,
            b"--json" => options.json = true,
            [b'-', ..] => return (options, Err(Stop::Usage)),
            _ => break,
        }
        words = rest;
    }
    (options, Ok(words))
}

/// Opens the file behind `-f`. Without it memory is anonymous.
fn open_file(name: &OsStr, err: &mut dyn Write) -> Option<(OwnedFd, OsString)> {
    match open(name, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => Some((file, name.to_owned())),
        Err(errno) => {
            let name = printable(&name.to_string_lossy()).into_owned();
            let colon = if name.is_empty() { "" } else { ": " };
            let _ = writeln!(err, "{name}{colon}{}", strerror::words(errno.raw_os_error()));
            None
        }
    }
}

/// Reads the policy and its nodes; says also whether there is a kernel without policies.
fn policy(
    call: &Call<'_>,
    kernel: &dyn Kernel,
    words: &[OsString],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(MemPolicy, bool), Stop> {
    let [name, rest @ ..] = words else { return Ok((MemPolicy::DEFAULT, false)) };
    let name = name.to_string_lossy();
    let name = name.trim_start_matches('-');
    let known = POLICIES.iter().find(|(known, _)| *known == name);
    let mode = known.map(|(_, mode)| *mode).ok_or(Stop::Usage)?;
    // 2.0.16 takes a call that is blocked for one that is there.
    let without = match kernel.policy() {
        Err(Errno::ENOSYS) => true,
        Err(Errno::EPERM) => call.settings.release > Release::V2_0_16,
        _ => false,
    };
    if without {
        let _ = writeln!(out, "Kernel doesn't support NUMA policy");
    }
    if matches!(mode, PolicyMode::Default | PolicyMode::Local) {
        return Ok((MemPolicy::new(mode, NodeSet::new()), without));
    }
    let [argument, ..] = rest else { return Err(Stop::Usage) };
    let nodes = node_argument::read(call, kernel, argument, out, &mut Warnings::new(err));
    Ok((MemPolicy::new(mode, nodes.map_err(|_| Stop::Told)?), without))
}

/// Asks the kernel for the policy that the memory has; says whether it is another one where there
/// are none. Elsewhere the originals print nothing.
fn compare(
    address: usize,
    wanted: &MemPolicy,
    without: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> bool {
    let found = policy_at(address);
    if let Err(ReadError::Call(error)) = &found {
        let _ = writeln!(err, "get_mempolicy: {}", strerror::words(error.errno.number()));
    }
    let found = found.ok();
    if !without || found.as_ref() == Some(wanted) {
        return false;
    }
    let number = found.as_ref().map_or(-1, |policy| i32::from(policy.mode.number()));
    let _ = writeln!(out, "policy {} gpolicy {number}", wanted.mode.number());
    let word = |nodes: &NodeSet| nodes.to_words(64).first().copied().unwrap_or(0);
    let here = found.as_ref().map_or(0, |policy| word(&policy.nodes));
    if here != word(&wanted.nodes) {
        let _ = writeln!(out, "nodes differ {here:x}, {:x}!", word(&wanted.nodes));
    }
    true
}

/// The memory that is written to.
enum Memory {
    /// Memory of this process, used in part: whole pages, and none that hold anything
    /// else.
    Own { memory: Vec<u8>, skipped: usize, length: usize },
    /// A file. Its pages are written through the file, where the mapping's policy places them.
    File { mapping: SharedMemory, file: OwnedFd, name: OsString },
}

impl Memory {
    fn new(file: Option<(OwnedFd, OsString)>, size: u64) -> Result<Self, Errno> {
        let length = usize::try_from(size).map_err(|_| Errno::ENOMEM)?;
        if length == 0 {
            return Err(Errno::EINVAL);
        }
        if let Some((file, name)) = file {
            return Ok(Self::File { mapping: SharedMemory::map(file.as_fd(), 0, length)?, file, name });
        }
        let mut memory = Vec::new();
        let whole = length.checked_add(page_size()).ok_or(Errno::ENOMEM)?.max(ALONE);
        memory.try_reserve_exact(whole).map_err(|_| Errno::ENOMEM)?;
        let skipped = (memory.as_ptr() as usize).wrapping_neg() % page_size();
        Ok(Self::Own { memory, skipped, length })
    }

    /// Address and length in bytes.
    fn range(&self) -> (usize, usize) {
        match self {
            Self::Own { memory, skipped, length } => (memory.as_ptr() as usize + skipped, *length),
            Self::File { mapping, .. } => (mapping.address(), mapping.length()),
        }
    }

    /// Writes to all of it once, with a point for each piece.
    fn write(&mut self, out: &mut dyn Write) -> Result<(), (OsString, Errno)> {
        let (address, length) = self.range();
        for start in (0..length).step_by(POINT) {
            let _ = out.write_all(b".");
            let _ = out.flush();
            let piece = start..(start + POINT).min(length);
            match self {
                Self::Own { memory, skipped, .. } => {
                    let spare = memory.spare_capacity_mut();
                    spare[*skipped + piece.start..*skipped + piece.end].fill(MaybeUninit::new(FILLING));
                    std::hint::black_box(&spare);
                }
                Self::File { file, name, .. } => {
                    fill_file(file, address, piece).map_err(|errno| (name.clone(), errno))?;
                }
            }
        }
        let _ = out.write_all(b"\n");
        Ok(())
    }
}

/// Writes to a piece of a mapped file.
fn fill_file(file: &OwnedFd, address: usize, piece: Range<usize>) -> Result<(), Errno> {
    // Files of huge pages cannot be written to, but their pages can be brought in.
    let placed = advice::advise(address + piece.start, piece.len(), Advice::Populate);
    let bytes = vec![FILLING; piece.len().min(ALONE)];
    let mut at = piece.start;
    while at < piece.end {
        let rest = &bytes[..bytes.len().min(piece.end - at)];
        match pwrite(file, rest, at as u64) {
            Ok(written) if written > 0 => at += written,
            Err(RawErrno::INTR) => (),
            Err(RawErrno::INVAL) if placed.is_ok() => return Ok(()),
            Err(errno) => return Err(Errno::new(errno.raw_os_error())),
            Ok(_) => return Err(Errno::new(RawErrno::NOSPC.raw_os_error())),
        }
    }
    Ok(())
}
