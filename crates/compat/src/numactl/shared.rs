//! The options of shared memory: `--shm` and `--file` with their policy.
//!
//! A policy on such memory belongs to it. So numactl maps it, sets the policy, perhaps touches the
//! pages, and ends; programs find it placed.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use nodewise_machine::printable::printable;
use nodewise_machine::{MemPolicy, NodeSet, PolicyMode};
use nodewise_notation::number::{self, Base};
use nodewise_syscall::shared::{Segment, SegmentPages, SharedMemory};
use nodewise_syscall::{Advice, BindOptions, Errno, advice, mempolicy, pages};
use rustix::fs::{Mode, OFlags, fstat, ftruncate, open, stat};
use rustix::io::Errno as RawErrno;

use super::{Session, Step, Stop, strerror};
use crate::release::Release;

mod dump;

/// The request of `--length` and its like.
#[derive(Debug)]
pub(super) struct Request {
    /// The option that came last, for complaints.
    named: Option<&'static str>,
    /// In bytes; 0 when not given.
    length: u64,
    /// In bytes.
    offset: u64,
    mode: u32,
    id: u64,
    /// Whether a number was too large: `ERANGE`, which the C library leaves in `errno`.
    overflowed: bool,
    pages: SegmentPages,
    region: Option<Region>,
}

/// Shared memory that the policy options act on.
#[derive(Debug)]
struct Region {
    memory: SharedMemory,
    /// Where the policy's part begins in the mapping, in bytes: a file is mapped from its offset on,
    /// a segment whole.
    start: usize,
    length: usize,
    /// Where it begins in the file or segment, in bytes.
    offset: u64,
    /// The policy that was set here, for `--verify`.
    policy: Option<MemPolicy>,
    /// The mode that was asked for, which the originals compare with.
    asked: PolicyMode,
    status: u8,
}

impl Request {
    pub(super) const fn new() -> Self {
        Self {
            named: None,
            length: 0,
            offset: 0,
            mode: 0o600,
            id: 0,
            overflowed: false,
            pages: SegmentPages::Small,
            region: None,
        }
    }

    /// Whether policies act on shared memory.
    pub(super) const fn has_region(&self) -> bool {
        self.region.is_some()
    }

    /// The status that the options have led to, if they were about shared memory.
    pub(super) fn status(&self) -> Option<u8> {
        self.region.as_ref().map(|region| region.status)
    }

    /// The option about shared memory that was given, if any.
    pub(super) const fn named(&self) -> Option<&'static str> {
        self.named
    }
}

impl Session<'_> {
    /// `-L`, `-o`, `-M`, `-I` and `-u`: what the memory is to be like.
    pub(super) fn shape(&mut self, option: char, argument: &OsStr) -> Step {
        let text = argument.to_string_lossy();
        if self.shared.has_region() {
            let late = match option {
                'L' => Some("--length"),
                'o' => Some("--offset"),
                'u' => Some("--huge"),
                'M' => Some("--shmmode"),
                _ => None,
            };
            if let Some(late) = late {
                return Err(self.mistake(&format!("{late} must be before shared memory specification")));
            }
        }
        let base = self.call.settings.release.base();
        let shared = &mut self.shared;
        shared.overflowed |= match option {
            'u' => false,
            'M' => number::overflows(text.as_bytes(), Base::Octal),
            'I' => number::overflows(text.as_bytes(), base),
            _ => number::overflows(text.as_bytes(), Base::Prefixed),
        };
        match option {
            'L' => (shared.named, shared.length) = (Some("--length"), number::size(text.as_bytes())),
            'o' => (shared.named, shared.offset) = (Some("--offset"), number::size(text.as_bytes())),
            'u' => (shared.named, shared.pages) = (Some("--huge"), SegmentPages::Huge),
            'M' => match whole(&text, Base::Octal) {
                Some(mode) => (shared.named, shared.mode) = (Some("--shmmode"), mode as u32),
                None => return Err(self.usage()),
            },
            _ => match whole(&text, base) {
                Some(id) => shared.id = id,
                None => return Err(self.usage()),
            },
        }
        Ok(())
    }

    /// `--file`: a file of tmpfs or hugetlbfs, made and grown as needed.
    pub(super) fn file(&mut self, argument: &OsStr) -> Step {
        self.no_cpus_yet()?;
        self.no_policy_yet()?;
        self.need_running_system()?;
        let name = printable(&argument.to_string_lossy()).into_owned();
        let file = self.open_file(Path::new(argument), &name)?;
        let (offset, length) = (self.shared.offset, self.shared.length);
        self.grow(&file)?;
        if length == 0 {
            return Err(self.lament("policy region length not specified before --file"));
        }
        self.check_alignment(length)?;
        let length = usize::try_from(length).map_err(|_| Errno::EINVAL);
        match length.and_then(|length| SharedMemory::map(file.as_fd(), offset, length)) {
            Ok(memory) => {
                self.shared.region = Some(Region {
                    start: 0,
                    length: memory.length(),
                    memory,
                    offset,
                    policy: None,
                    asked: PolicyMode::Default,
                    status: 0,
                });
                Ok(())
            }
            Err(errno) => Err(self.lament(&format!("shm mmap: {}", strerror(errno)))),
        }
    }

    /// Makes a file long enough. An end that is not a number of 64 bits wraps around, as in the originals.
    fn grow(&mut self, file: &OwnedFd) -> Step {
        let end = self.shared.offset.wrapping_add(self.shared.length);
        let size = fstat(file).map_or(0, |status| u64::try_from(status.st_size).unwrap_or(0));
        if end <= size {
            return Ok(());
        }
        ftruncate(file, end).map_err(|error| {
            let error = strerror(Errno::new(error.raw_os_error()));
            let _ = writeln!(self.warnings.err(), "ftruncate: {error}");
            Stop(1)
        })
    }

    /// A policy of CPUs is not a property of memory.
    fn no_cpus_yet(&mut self) -> Step {
        if self.cpus_are_set {
            return Err(self.mistake("cannot do --cpubind on shared memory\n"));
        }
        Ok(())
    }

    /// Shared memory is that of the system that runs, which a capture is not about.
    fn need_running_system(&mut self) -> Step {
        if self.call.tree.is_live() {
            return Ok(());
        }
        Err(self.lament(&format!("shared memory: {}", strerror(Errno::EOPNOTSUPP))))
    }

    fn open_file(&mut self, path: &Path, name: &str) -> Result<OwnedFd, Stop> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let mode = file_mode(self.shared.mode);
        let answer = match open(path, flags, mode) {
            Err(_) if self.shared.length == 0 => {
                return Err(self.refuse("need a --length to create a shared file"));
            }
            Err(_) => open(path, flags | OFlags::CREATE, mode),
            answer => answer,
        };
        answer.map_err(|error| {
            let error = strerror(Errno::new(error.raw_os_error()));
            self.lament(&format!("cannot create file {name}: {error}"))
        })
    }

    fn check_alignment(&mut self, bytes: u64) -> Step {
        if bytes % pages::page_size() as u64 == 0 {
            return Ok(());
        }
        Err(self.lament("policy region not page aligned"))
    }

    /// `--shm`: a segment of System V, named by a file that stands for its key.
    pub(super) fn segment(&mut self, argument: &OsStr) -> Step {
        self.no_cpus_yet()?;
        self.no_policy_yet()?;
        self.need_running_system()?;
        let name = printable(&argument.to_string_lossy()).into_owned();
        let key = self.key(Path::new(argument), &name)?;
        let found = Segment::find(key);
        let segment = match found {
            Ok(Some(segment)) => Ok(segment),
            Ok(None) => self.create_segment(key, &name)?,
            Err(errno) => Err(errno),
        };
        let segment = segment.map_err(|errno| {
            self.lament(&format!("cannot create shared memory segment: {}", strerror(errno)))
        })?;
        self.check_alignment(self.shared.length | self.shared.offset)?;
        let memory = SharedMemory::attach(segment)
            .map_err(|errno| self.lament(&format!("cannot attach shared memory: {}", strerror(errno))))?;
        let whole = memory.length();
        let length = usize::try_from(self.shared.length).unwrap_or(usize::MAX);
        let start = usize::try_from(self.shared.offset).unwrap_or(usize::MAX);
        let length = if length == 0 { whole.saturating_sub(start) } else { length };
        let offset = self.shared.offset;
        self.shared.region = Some(Region {
            memory,
            start,
            length,
            offset,
            policy: None,
            asked: PolicyMode::Default,
            status: 0,
        });
        Ok(())
    }

    /// The key that a file stands for, which is made where it is missing. The originals take a negative key for
    /// none, so every one with an id from 128 on, and empty the file to make it.
    fn key(&mut self, path: &Path, name: &str) -> Result<i32, Stop> {
        let strict = self.call.settings.strict;
        let usable = |key: &i32| !strict || *key >= 0;
        let found = self.file_key(path);
        if let Some(key) = found.ok().filter(usable) {
            return Ok(key);
        }
        let mode = self.shared.mode;
        let _ = writeln!(self.warnings.err(), "numactl: Creating shm key file {name} mode {mode:04o}");
        let emptied = if strict { OFlags::TRUNC } else { OFlags::empty() };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | emptied;
        let made = open(path, flags, file_mode(mode));
        made.map_err(|error| {
            let error = strerror(Errno::new(error.raw_os_error()));
            self.lament(&format!("cannot create key for shm {name}\n: {error}"))
        })?;
        self.file_key(path).ok().filter(usable).ok_or_else(|| {
            // The originals name the error that came last, whatever it was about.
            let last =
                found.err().or(self.shared.overflowed.then_some(Errno::new(RawErrno::RANGE.raw_os_error())));
            let cause = last.map_or_else(String::new, |errno| format!(": {}", strerror(errno)));
            self.lament(&format!("cannot get key for newly created shm key file {name}{cause}"))
        })
    }

    /// `ftok(3)`: bits of the file's number, its device and the id.
    fn file_key(&self, path: &Path) -> Result<i32, Errno> {
        let status = stat(path).map_err(|error| Errno::new(error.raw_os_error()))?;
        let bits = |value: u64, mask: u64| u32::try_from(value & mask).expect("the mask leaves few bits");
        let (inode, device) = (bits(status.st_ino, 0xffff), bits(status.st_dev, 0xff));
        Ok((inode | device << 16 | bits(self.shared.id, 0xff) << 24) as i32)
    }

    fn create_segment(&mut self, key: i32, name: &str) -> Result<Result<Segment, Errno>, Stop> {
        let Request { length, offset, mode, id, pages, .. } = self.shared;
        if length == 0 {
            return Err(self.refuse("need a --length to create a sysv shared memory segment"));
        }
        let length = length.wrapping_add(offset);
        let megabytes = length as f64 / f64::from(1 << 20);
        let _ = writeln!(
            self.warnings.err(),
            "numactl: Creating shared memory segment {name} id {id} mode {mode:04o} length {megabytes:.0}MB"
        );
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(Segment::create(key, length, mode, pages))
    }

    /// Sets a policy on the shared memory.
    pub(super) fn bind_region(&mut self, policy: &MemPolicy, doing: &str) -> Step {
        let asked = policy.mode;
        let policy = self.shared_policy(policy);
        let options = BindOptions { strict: self.strict, moving: None };
        let bind = |region: &mut Region| {
            let (address, length) = region.range()?;
            mempolicy::bind_range(address, length, &policy, options).map_err(|error| error.errno)?;
            (region.policy, region.asked) = (Some(policy.clone()), asked);
            Ok(())
        };
        match self.shared.region.as_mut().map_or(Ok(()), bind) {
            Ok(()) => Ok(()),
            Err(errno) => Err(self.failed("mbind", doing, errno)),
        }
    }

    /// The outcome of a policy on shared memory. A preferred node is a set of one there. The
    /// originals keep only the first of several preferred nodes, 2.0.16 not even that, and know no
    /// weights.
    fn shared_policy(&self, policy: &MemPolicy) -> MemPolicy {
        let settings = self.call.settings;
        let first = || policy.nodes.first().into_iter().collect::<NodeSet>();
        match policy.mode {
            PolicyMode::Preferred | PolicyMode::PreferredMany
                if settings.strict && settings.release == Release::V2_0_16 =>
            {
                MemPolicy::new(PolicyMode::PreferredMany, NodeSet::new())
            }
            PolicyMode::Preferred => MemPolicy::new(PolicyMode::PreferredMany, first()),
            PolicyMode::PreferredMany if settings.strict => MemPolicy::new(policy.mode, first()),
            PolicyMode::WeightedInterleave if settings.strict => {
                MemPolicy::new(PolicyMode::Interleave, policy.nodes.clone())
            }
            _ => policy.clone(),
        }
    }

    /// `--touch`, `--dump`, `--dump-nodes` and `--verify`: what is done with the memory.
    pub(super) fn use_region(&mut self, option: char) -> Step {
        let Some(mut region) = self.shared.region.take() else {
            return Err(match option {
                'T' => self.mistake("--touch must be after shared memory specification"),
                'V' => self.mistake("--verify must be after shared memory specification"),
                'd' => self.refuse("Cannot do --dump without shared memory.\n"),
                _ => self.refuse("Cannot do --dump-nodes without shared memory.\n"),
            });
        };
        let done = self.use_this(option, &mut region);
        self.shared.region = Some(region);
        done
    }

    fn use_this(&mut self, option: char, region: &mut Region) -> Step {
        let settings = self.call.settings;
        match option {
            'T' => self.offset_within(region, "--touch")?,
            'V' => self.verifiable(region)?,
            _ => (),
        }
        let done = match option {
            'T' => region.touch(),
            'd' => dump::policies(region, settings, self.out),
            'D' => dump::nodes(region, self.out),
            _ => dump::verify(region, settings, self.out).map(|status| region.status = status),
        };
        done.map_err(|errno| {
            let _ = writeln!(self.warnings.err(), "numactl: shared memory: {}", strerror(errno));
            Stop(1)
        })
    }

    /// The originals compare the offset in the file with the length of the part.
    fn offset_within(&mut self, region: &Region, option: &str) -> Step {
        let (offset, length) = (region.offset, region.length as u64);
        if offset < length {
            return Ok(());
        }
        Err(self.lament(&format!("region offset {offset:#x} beyond its length {length:#x} at {option}")))
    }

    /// Whether there is something to verify: a policy, with nodes.
    fn verifiable(&mut self, region: &Region) -> Step {
        let Some(policy) = &region.policy else {
            return Err(self.refuse("Need a policy first to verify"));
        };
        if self.call.settings.strict {
            self.offset_within(region, "--verify")?;
        }
        if policy.nodes.is_empty() {
            // The originals look at pages first.
            let _ = region.touch();
            return Err(self.refuse("Need a mask to verify"));
        }
        Ok(())
    }

    /// Something that cannot be done with shared memory. The line feed is on stderr in every release.
    fn lament(&mut self, message: &str) -> Stop {
        let _ = writeln!(self.warnings.err(), "numactl: {message}");
        Stop(1)
    }
}

impl Region {
    /// Address and length in bytes of what the policy is for.
    ///
    /// # Errors
    /// As [`part`].
    fn range(&self) -> Result<(usize, usize), Errno> {
        let address = part((self.memory.address(), self.memory.length()), self.start, self.length)?;
        Ok((address, self.length))
    }

    /// Allocates every page.
    fn touch(&self) -> Result<(), Errno> {
        let (address, length) = self.range()?;
        match advice::advise(address, length, Advice::Populate) {
            Ok(()) => Ok(()),
            // Before Linux 5.14: asking for the node of a page brings it in.
            Err(error) if error.errno == Errno::EINVAL => {
                pages::addresses(address, length, pages::page_size())
                    .try_for_each(|page| mempolicy::node_at(page).map(drop))
                    .map_err(|error| error.errno)
            }
            Err(error) => Err(error.errno),
        }
    }
}

/// Address of a part of some memory, which is given by its address and length.
///
/// # Errors
/// Those of `mbind(2)`: `EINVAL` for a length below 0, with which a part ends before it begins; `EFAULT` for a part
/// that ends beyond the memory.
fn part((address, size): (usize, usize), start: usize, length: usize) -> Result<usize, Errno> {
    let from = address.checked_add(start).ok_or(Errno::EINVAL)?;
    from.checked_add(length).ok_or(Errno::EINVAL)?;
    let is_inside = start.checked_add(length).is_some_and(|end| end <= size);
    is_inside.then_some(from).ok_or(Errno::EFAULT)
}

/// The bits of a mode that files have.
fn file_mode(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o7777)
}

/// A number that is the whole text.
fn whole(text: &str, base: Base) -> Option<u64> {
    number::leading_str(text, base).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_with_a_length_below_zero_is_invalid_and_one_beyond_the_end_a_bad_address() {
        let memory = (0x7f00_0000_0000, 60 << 10);
        for (start, length, expected) in [
            (0, 60 << 10, Ok(0x7f00_0000_0000)),
            (4096, 4096, Ok(0x7f00_0000_1000)),
            (64 << 10, 4096usize.wrapping_neg(), Err(Errno::EINVAL)),
            (64 << 10, 4096, Err(Errno::EFAULT)),
            (4096, 60 << 10, Err(Errno::EFAULT)),
            (usize::MAX, 1, Err(Errno::EINVAL)),
        ] {
            assert_eq!(part(memory, start, length), expected, "{start:#x}, {length:#x}");
        }
    }
}
