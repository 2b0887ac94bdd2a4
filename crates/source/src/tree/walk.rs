//! Resolving a path inside a root by hand, for systems without `openat2(2)`.
//!
//! Component by component, never following a link in the kernel: each link is read and its words
//! are put in front of what is left of the path. `..` goes back along the way we came, so it never
//! leaves the root; `/` starts over at the root.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

/// Links that are followed on one path, as in the kernel (`MAXSYMLINKS`).
pub(super) const MOST_LINKS: usize = 40;

/// How a component on the way is opened.
const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a path below a root. `NOFOLLOW` among the flags opens a link itself, when it comes last.
pub(super) fn open(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut way: Vec<OwnedFd> = Vec::new();
    let mut pending: Vec<String> = parts(path);
    let mut links = 0;
    while let Some(part) = pending.pop() {
        match part.as_str() {
            "." => continue,
            ".." => {
                way.pop();
                continue;
            }
            _ => (),
        }
        let here = here(root, &way);
        let last = pending.is_empty();
        if !(last && flags.contains(OFlags::NOFOLLOW)) {
            if let Some(target) = link(here, &part)? {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP);
                }
                if target.starts_with('/') {
                    way.clear();
                }
                pending.extend(parts(&target));
                continue;
            }
        }
        if last {
            return openat(here, &part, flags | OFlags::NOFOLLOW, Mode::empty());
        }
        let next = openat(here, &part, STEP, Mode::empty())?;
        way.push(next);
    }
    openat(here(root, &way), ".", flags - OFlags::NOFOLLOW, Mode::empty())
}

/// The current place.
fn here<'a>(root: &'a OwnedFd, way: &'a [OwnedFd]) -> BorrowedFd<'a> {
    way.last().unwrap_or(root).as_fd()
}

/// The parts of a path, the first one last. A slash at the end asks for a folder, as `.` does.
fn parts(path: &str) -> Vec<String> {
    let folder = path.ends_with('/').then_some(".");
    let parts = path.split('/').rev().filter(|part| !part.is_empty());
    folder.into_iter().chain(parts).map(str::to_owned).collect()
}

fn link(folder: BorrowedFd<'_>, name: &str) -> Result<Option<String>, Errno> {
    match readlinkat(folder, name, Vec::new()) {
        Ok(target) => Ok(Some(target.to_string_lossy().into_owned())),
        Err(Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno),
    }
}
