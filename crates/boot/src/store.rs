//! Writing: a file is the old one or the new one at every moment, and the old one is kept beside it.
//!
//! A backup is named after the file, the moment and the bytes that took its place:
//! `cmdline.txt.20261121-134000.0123456789abcdef.nodewise`. So taking back needs no record elsewhere:
//! it knows whether the file is still what was written, and refuses where somebody else changed it.
//! `.absent` before the end stands for a file that did not exist.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::os::fd::OwnedFd;

use nodewise_machine::fnv::fnv_1a;
use nodewise_machine::order::Order as _;
use rustix::fs::{
    AtFlags, FlockOperation, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fchmod, fchown, flock, fsync, openat,
    renameat, renameat_with, unlinkat,
};
use rustix::io::{Errno, write};

use crate::error::BootError;
use crate::loader;
use crate::plan::{Edit, Plan};
use crate::root::{Found, ResolvedPath, Root, there};
use crate::stamp::Stamp;

/// A file that is not whole yet. One name for all: what a killed process left is removed by the next.
const TEMPORARY: &str = ".nodewise-new";
/// The end of the names of backups.
const SUFFIX: &str = ".nodewise";
/// The part before that in the backup of a file that did not exist.
const ABSENT: &str = ".absent";

/// A file that was written, and where its old contents are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub path: String,
    /// The backup; for a restored file the one it was restored from, which is gone.
    pub backup: String,
}

/// Makes the changes of a plan, one file after the other.
///
/// # Errors
/// A file that changed meanwhile, or cannot be written: then those before it are restored.
pub fn apply(root: &Root, plan: &Plan, stamp: &Stamp) -> Result<Vec<Written>, BootError> {
    let mut written = Vec::new();
    for edit in plan.changes() {
        if let Err(error) = replace(root, edit, stamp, &mut written) {
            return Err(restore_all(root, &written, error));
        }
    }
    Ok(written)
}

/// Restores what was written before something failed, as far as that can be done; gives what is to be said.
fn restore_all(root: &Root, written: &[Written], error: BootError) -> BootError {
    let restored = |done: &Written| {
        let place = Locked::at(root, &done.path)?.ok_or(Errno::NOENT)?;
        restore(&place, &done.backup)
    };
    let failed = |done: &Written| Some((done.path.clone(), restored(done).err()?));
    let left: Vec<(String, Errno)> = written.iter().rev().filter_map(failed).collect();
    if left.is_empty() { unchanged(error) } else { BootError::HalfDone { source: Box::new(error), left } }
}

/// An error after which all files are as they were; where it does not say so itself, this does.
fn unchanged(error: BootError) -> BootError {
    match error {
        BootError::Write { .. } => BootError::Unchanged { source: Box::new(error) },
        error => error,
    }
}

/// Replaces one file, and adds it to what was written as soon as the new one is in place: also where it
/// is not known to last.
fn replace(root: &Root, edit: &Edit, stamp: &Stamp, written: &mut Vec<Written>) -> Result<(), BootError> {
    let fail = |errno| not_written(&edit.path, errno);
    let (place, found, before) = as_planned(root, edit)?;
    let name = backup_name(&place.name, stamp, edit.after.as_bytes());
    let kept = keep(&place, &name, &found, before).map_err(fail)?;
    let put = put(&place, &place.name, edit.after.as_bytes(), &found.stat, Over::Any);
    match &put {
        Err(Failed { in_place: false, .. }) => drop(unlinkat(&place.folder, &kept, AtFlags::empty())),
        _ => written.push(Written { path: edit.path.clone(), backup: place.beside(&kept) }),
    }
    put.map_err(|failed| fail(failed.errno))
}

/// Whether a file existed before its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Present,
    Absent,
}

/// A file that is still as it was when its change was planned.
fn as_planned(root: &Root, edit: &Edit) -> Result<(Locked, Found, Before), BootError> {
    let fail = |errno| not_written(&edit.path, errno);
    let changed = || BootError::Changed { path: edit.path.clone() };
    let place = Locked::at(root, &edit.path).map_err(fail)?.ok_or_else(changed)?;
    let (found, before) = match place.read(&place.name) {
        Err(Errno::NOENT) if edit.before.is_empty() => (absent(&place).map_err(fail)?, Before::Absent),
        read => (read.map_err(fail)?, Before::Present),
    };
    if found.bytes == edit.before.as_bytes() { Ok((place, found, before)) } else { Err(changed()) }
}

/// A file that a change makes: empty, readable by everyone, and owned as its folder.
fn absent(place: &Locked) -> Result<Found, Errno> {
    let mut stat = rustix::fs::fstat(&place.folder)?;
    stat.st_mode = 0o644;
    Ok(Found { bytes: Vec::new(), stat })
}

/// Puts a backup back and removes it. The backup of a file that did not exist removes the file.
fn restore(place: &Locked, backup: &str) -> Result<(), Errno> {
    let backup_name = backup.rsplit('/').next().unwrap_or_default();
    let (name, file_name) = (OsStr::new(backup_name), place.name.to_string_lossy());
    let old = place.read(name)?;
    let named = Named::from_name(backup_name, &file_name);
    let back = match named.map_or(Before::Present, |named| named.before) {
        // Lasting before the backup is removed: a crash between them must not leave the file alone.
        Before::Absent => unlinkat(&place.folder, &place.name, AtFlags::empty())
            .map_err(|errno| Failed { errno, in_place: false })
            .and_then(|()| synchronise(&place.folder)),
        Before::Present => put(place, &place.name, &old.bytes, &old.stat, Over::Any),
    };
    match back {
        // In place, if not yet permanently: that is what can be done on a disk that fails.
        Ok(()) | Err(Failed { in_place: true, .. }) => {}
        Err(failed) => return Err(failed.errno),
    }
    // What it held is in its place now; a crash before this line leaves one file too many.
    let _ = unlinkat(&place.folder, name, AtFlags::empty());
    let _ = fsync(&place.folder);
    Ok(())
}

/// Returns the change that taking back would make to a file: the file as it is and as it was, and the backup.
///
/// # Errors
/// A file that has backups, none of which was made when the file became what it is.
pub(crate) fn backup_of(root: &Root, path: &str) -> Result<Option<(Edit, String)>, BootError> {
    let error = |errno| BootError::Read { path: path.to_owned(), errno };
    let Some(place) = root.resolve(path).map_err(error)? else { return Ok(None) };
    let backups = backups(&place).map_err(error)?;
    if backups.is_empty() {
        return Ok(None);
    }
    let Some(found) = there(path, place.read(&place.name))? else { return Ok(None) };
    let kept = |backup: &str| place.read(OsStr::new(backup)).map_err(error);
    let now = hash(&found.bytes);
    let Some((backup, _)) = backups.iter().find(|(_, hash)| *hash == now) else {
        // A backup that equals the file is left of a change that did not come about.
        for (backup, _) in &backups {
            if kept(backup)?.bytes != found.bytes {
                let named = Named::from_name(backup, &place.name.to_string_lossy());
                let existed = named.is_some_and(|named| named.before == Before::Present);
                let backup = existed.then(|| place.beside(OsStr::new(backup)));
                return Err(BootError::Undone { path: path.to_owned(), backup });
            }
        }
        return Ok(None);
    };
    let (before, after) = (String::from_utf8(found.bytes), String::from_utf8(kept(backup)?.bytes));
    let (Ok(before), Ok(after)) = (before, after) else { return Ok(None) };
    Ok(Some((Edit { path: path.to_owned(), before, after }, place.beside(OsStr::new(backup)))))
}

/// Takes back what a plan of [`crate::plan::undo`] names.
///
/// # Errors
/// A file that changed meanwhile: then nothing is taken back. One that cannot be written: those before it
/// are taken back, and named.
pub fn take_back(root: &Root, plan: &Plan) -> Result<Vec<Written>, BootError> {
    // All of them before the first is touched: what is taken back has no backup any more.
    for edit in &plan.edits {
        as_planned(root, edit).map_err(unchanged)?;
    }
    let mut written: Vec<Written> = Vec::new();
    for (edit, backup) in plan.edits.iter().zip(&plan.backups) {
        let restored = as_planned(root, edit)
            .and_then(|(place, ..)| restore(&place, backup).map_err(|errno| not_written(&edit.path, errno)));
        if let Err(error) = restored {
            return Err(half_taken_back(&written, error));
        }
        written.push(Written { path: edit.path.clone(), backup: backup.clone() });
    }
    Ok(written)
}

fn half_taken_back(written: &[Written], error: BootError) -> BootError {
    if written.is_empty() {
        return unchanged(error);
    }
    let done = written.iter().map(|done| done.path.clone()).collect();
    BootError::HalfTakenBack { source: Box::new(error), done }
}

/// Removes what a process that was killed has left half written beside the files that could hold a command
/// line; gives the paths. Not where another nodewise is at work.
///
/// # Errors
/// What cannot be read or removed.
pub fn sweep(root: &Root) -> Result<Vec<String>, BootError> {
    let mut removed = Vec::new();
    for path in left_behind(root)? {
        let fail = |errno| not_written(&path, errno);
        let Some(place) = Locked::at(root, &path).map_err(fail)? else { continue };
        match unlinkat(&place.folder, &place.name, AtFlags::empty()) {
            Ok(()) => removed.push(path.clone()),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(fail(errno)),
        }
    }
    Ok(removed)
}

/// Lists the files that [`sweep`] would remove.
///
/// # Errors
/// What cannot be read.
pub fn left_behind(root: &Root) -> Result<Vec<String>, BootError> {
    let mut found = Vec::new();
    let candidates = loader::candidates(root)?;
    for path in candidates.iter().map(|(path, _)| path.as_str()).chain([loader::TMPFILES]) {
        let left = format!("{}/{TEMPORARY}", folder_of(path));
        if !found.contains(&left) && root.stat(&left)?.is_some() {
            found.push(left);
        }
    }
    Ok(found)
}

/// Writes a text that is not a file of this system, such as an EEPROM's configuration, as the backup that
/// a file at this path would have; gives the backup's path.
///
/// # Errors
/// What cannot be written.
pub fn keep_text(root: &Root, path: &str, old: &str, new: &str, stamp: &Stamp) -> Result<String, BootError> {
    let fail = |errno| not_written(path, errno);
    let place = Locked::at(root, path).map_err(fail)?.ok_or_else(|| fail(Errno::NOENT))?;
    let old = Found { bytes: old.as_bytes().to_vec(), ..absent(&place).map_err(fail)? };
    let kept = keep(&place, &backup_name(&place.name, stamp, new.as_bytes()), &old, Before::Present);
    Ok(place.beside(&kept.map_err(fail)?))
}

/// The newest text that was kept so, with what it is called; only those whose place `new` took, or that
/// are `new` themselves.
///
/// # Errors
/// What cannot be read.
pub fn kept_text(root: &Root, path: &str, new: &str) -> Result<Option<(String, String)>, BootError> {
    let error = |errno| BootError::Read { path: path.to_owned(), errno };
    let Some(place) = root.resolve(path).map_err(error)? else { return Ok(None) };
    for (backup, hash_of_new) in backups(&place).map_err(error)? {
        let old = place.read(OsStr::new(&backup)).map_err(error)?.bytes;
        if hash_of_new == hash(new.as_bytes()) || old == new.as_bytes() {
            return Ok(String::from_utf8(old).ok().map(|old| (old, place.beside(OsStr::new(&backup)))));
        }
    }
    Ok(None)
}

/// Removes a backup that has served.
///
/// # Errors
/// What cannot be removed.
pub fn forget(root: &Root, backup: &str) -> Result<(), BootError> {
    let fail = |errno| BootError::Write { path: backup.to_owned(), errno };
    let Some(place) = root.resolve(backup).map_err(fail)? else { return Ok(()) };
    unlinkat(&place.folder, &place.name, AtFlags::empty()).map_err(fail)
}

/// A place in a folder that no other nodewise writes in meanwhile. All of them write under one name at first,
/// so nothing is written without it.
struct Locked(ResolvedPath);

impl Locked {
    /// Follows a path and locks the folder at its end; `None` when a folder on the way is missing.
    ///
    /// # Errors
    /// `WOULDBLOCK` where another process has it.
    fn at(root: &Root, path: &str) -> Result<Option<Self>, Errno> {
        let Some(place) = root.resolve(path)? else { return Ok(None) };
        match flock(&place.folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(Errno::WOULDBLOCK),
            // A file system without locks has no second nodewise to be kept away.
            _ => Ok(Some(Self(place))),
        }
    }
}

impl Deref for Locked {
    type Target = ResolvedPath;

    fn deref(&self) -> &ResolvedPath {
        &self.0
    }
}

impl Drop for Locked {
    /// Closing the descriptor is not enough: a program that another thread is just starting has a copy of it
    /// until it runs, and the lock is held as long as any copy is open.
    fn drop(&mut self) {
        flock(&self.0.folder, FlockOperation::Unlock).ok();
    }
}

/// Why a file is not written.
fn not_written(path: &str, errno: Errno) -> BootError {
    match errno {
        Errno::WOULDBLOCK => BootError::Busy { folder: folder_of(path).to_owned() },
        errno => BootError::Write { path: path.to_owned(), errno },
    }
}

/// Writes a backup that does not exist yet; gives its name.
fn keep(place: &Locked, name: &str, old: &Found, before: Before) -> Result<OsString, Errno> {
    let suffix = match before {
        Before::Present => SUFFIX.to_owned(),
        Before::Absent => format!("{ABSENT}{SUFFIX}"),
    };
    for number in 1..=99 {
        // The same change within the same second, after it was taken back.
        let name = match number {
            1 => format!("{name}{suffix}"),
            _ => format!("{name}-{number}{suffix}"),
        };
        let name = OsString::from(name);
        match put(place, &name, &old.bytes, &old.stat, Over::Nothing) {
            Ok(()) => return Ok(name),
            Err(Failed { errno: Errno::EXIST, .. }) => {}
            Err(Failed { errno, in_place }) => {
                if in_place {
                    let _ = unlinkat(&place.folder, &name, AtFlags::empty());
                }
                return Err(errno);
            }
        }
    }
    Err(Errno::EXIST)
}

/// Whether a name that is taken may be taken over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Any,
    Nothing,
}

/// Why a file was not put in place, or not safely.
struct Failed {
    errno: Errno,
    in_place: bool,
}

/// Writes a file beside its place, synchronises it, gives it its name, and synchronises the folder.
fn put(place: &Locked, name: &OsStr, bytes: &[u8], like: &Stat, over: Over) -> Result<(), Failed> {
    let temporary = TEMPORARY;
    let folder = &place.folder;
    let renamed = fill(folder, temporary, bytes, like).and_then(|()| match over {
        Over::Any => renameat(folder, temporary, folder, name),
        Over::Nothing => rename_new(folder, temporary, name),
    });
    if let Err(errno) = renamed {
        let _ = unlinkat(folder, temporary, AtFlags::empty());
        return Err(Failed { errno, in_place: false });
    }
    synchronise(folder)
}

/// Makes the names in a folder last.
fn synchronise(folder: &OwnedFd) -> Result<(), Failed> {
    match fsync(folder) {
        // Some file systems cannot synchronise folders, and say so.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(errno) => Err(Failed { errno, in_place: true }),
    }
}

/// Renames where the name is free. FAT and others cannot be asked to see to that; there a look must do,
/// under the lock.
fn rename_new(folder: &OwnedFd, from: &str, to: &OsStr) -> Result<(), Errno> {
    match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => match rustix::fs::statat(folder, to, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => renameat(folder, from, folder, to),
            Err(errno) => Err(errno),
        },
        result => result,
    }
}

fn fill(folder: &OwnedFd, name: &str, bytes: &[u8], like: &Stat) -> Result<(), Errno> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::from_raw_mode(0o600))?;
    let mut rest = bytes;
    while !rest.is_empty() {
        match write(&file, rest) {
            // A file system that takes nothing is full.
            Ok(0) => return Err(Errno::NOSPC),
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    resemble(&file, like)?;
    fsync(&file)
}

/// Gives a file the owner and permissions of the one whose place it takes.
fn resemble(file: &OwnedFd, like: &Stat) -> Result<(), Errno> {
    let own = rustix::fs::fstat(file)?;
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid) {
        fchown(file, Some(Uid::from_raw(like.st_uid)), Some(Gid::from_raw(like.st_gid)))?;
    }
    match fchmod(file, Mode::from_raw_mode(like.st_mode & 0o7777)) {
        // On FAT the permissions are those of the mount.
        Err(Errno::PERM) => Ok(()),
        result => result,
    }
}

fn backup_name(name: &OsStr, stamp: &Stamp, new: &[u8]) -> String {
    format!("{}.{stamp}.{}", name.to_string_lossy(), hash(new))
}

/// The backups of a file, and the hash of what took the place of each; the newest first.
fn backups(place: &ResolvedPath) -> Result<Vec<(String, String)>, Errno> {
    let name = place.name.to_string_lossy();
    let names = place.names()?;
    let mut found: Vec<(Named<'_>, &String)> =
        names.iter().filter_map(|backup| Some((Named::from_name(backup, &name)?, backup))).collect();
    found.order_by_key(|(named, _)| Reverse((named.stamp, named.number)));
    Ok(found.into_iter().map(|(named, backup)| (backup.clone(), named.hash.to_owned())).collect())
}

/// The parts of a backup's name.
#[derive(Debug, PartialEq, Eq)]
struct Named<'a> {
    /// The moment: the later, the larger.
    stamp: &'a str,
    /// The hash of what took the place of the file.
    hash: &'a str,
    /// The how many-th of this moment and hash it is, from 1.
    number: u32,
    /// Whether the file existed.
    before: Before,
}

impl<'a> Named<'a> {
    /// Reads the name of a file's backup; `None` for any other name.
    fn from_name(backup: &'a str, name: &str) -> Option<Self> {
        let rest = backup.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(SUFFIX)?;
        let (stamp, rest) = rest.split_once('.')?;
        let (rest, before) = match rest.strip_suffix(ABSENT) {
            Some(rest) => (rest, Before::Absent),
            None => (rest, Before::Present),
        };
        let (hash, number) = match rest.split_once('-') {
            Some((hash, number)) => (hash, number.parse().ok()?),
            None => (rest, 1),
        };
        let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        (stamp.len() == 15 && is_hash).then_some(Self { stamp, hash, number, before })
    }
}

/// A hash as 16 digits: it distinguishes a file from an edited one.
fn hash(bytes: &[u8]) -> String {
    format!("{:016x}", fnv_1a(bytes))
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests;
