//! Captures on disk: folders and archives, written whole or not at all.
//!
//! Equal captures give equal bytes: entries are sorted, owned by no one in particular, and as old as
//! time itself.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown, symlink};
use std::path::{Path, PathBuf};

use nodewise_machine::printable::{io_words, printable};
use rustix::fs::{Access, CWD, Mode, OFlags, RenameFlags, access, open, renameat_with};
use rustix::io::Errno;
use rustix::process::geteuid;
use tar::{EntryType, Header};

use super::{Capture, Entry};

/// The folder at the top of an archive, so that unpacking it makes one folder.
const TOP: &str = "machine";

/// Whether a file that is there may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// It stays, and writing fails.
    Refuse,
    Replace,
}

/// Size of what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub files: usize,
    /// Bytes on disk, as far as it is one file.
    pub bytes: u64,
}

/// Why nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// A name that says nothing about what to write.
    #[error(
        "cannot derive the format from the name {0}: expected .tar, .tar.gz, .tar.bz2, or no ending for a folder"
    )]
    UnknownForm(String),
    /// Something of this name is there.
    #[error("{0} exists already: nothing was written")]
    Exists(String),
    /// A folder of this name is there, with something in it.
    #[error("{0} is a folder with files in it, which is never replaced: nothing was written")]
    FolderExists(String),
    #[error("cannot write {path}: {cause}")]
    Write { path: String, cause: String },
}

/// The form of a capture, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Folder,
    Tar,
    Gzip,
    Bzip2,
}

fn form_of(path: &Path) -> Option<Form> {
    let text = path.to_string_lossy();
    let name = path.file_name()?.to_string_lossy();
    let ends =
        |endings: &[&str]| endings.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending));
    if text.ends_with('/') {
        Some(Form::Folder)
    } else if ends(&[".tar"]) {
        Some(Form::Tar)
    } else if ends(&[".tar.gz", ".tgz"]) {
        Some(Form::Gzip)
    } else if ends(&[".tar.bz2", ".tbz2"]) {
        Some(Form::Bzip2)
    } else {
        path.extension().is_none().then_some(Form::Folder)
    }
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}

fn failed(path: &Path) -> impl Fn(io::Error) -> CaptureError {
    move |error| CaptureError::Write { path: shown(path), cause: io_words(&error) }
}

impl Capture {
    /// The capture as a tar archive.
    pub fn to_tar(&self) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            let mut header = Header::new_gnu();
            header.set_mtime(0);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mode(if matches!(entry, Entry::Folder) { 0o755 } else { 0o644 });
            let name = format!("{TOP}{path}");
            let result = match entry {
                Entry::File(contents) => {
                    header.set_entry_type(EntryType::Regular);
                    header.set_size(contents.len() as u64);
                    builder.append_data(&mut header, &name, contents.as_slice())
                }
                Entry::Link(target) => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_size(0);
                    builder.append_link(&mut header, &name, target)
                }
                Entry::Folder => {
                    header.set_entry_type(EntryType::Directory);
                    header.set_size(0);
                    builder.append_data(&mut header, format!("{name}/"), io::empty())
                }
            };
            result.expect("paths of a capture are plain, and memory does not fail to be written");
        }
        builder.into_inner().expect("memory does not fail to be written")
    }

    /// Writes the capture: to a folder, or to an archive by the ending of its name. What is there is
    /// whole or not at all: it is written beside and renamed.
    ///
    /// # Errors
    /// A name without a known ending, something of that name that may not be replaced, a folder that
    /// is not empty, and what the system refuses.
    pub fn write(&self, path: &Path, overwrite: Overwrite) -> Result<Written, CaptureError> {
        let bytes = match form_of(path).ok_or_else(|| CaptureError::UnknownForm(shown(path)))? {
            Form::Folder => {
                self.write_folder(path)?;
                return Ok(Written { files: self.len(), bytes: 0 });
            }
            Form::Tar => self.to_tar(),
            Form::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
                encoder.write_all(&self.to_tar()).and_then(|()| encoder.finish()).map_err(failed(path))?
            }
            Form::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
                encoder.write_all(&self.to_tar()).and_then(|()| encoder.finish()).map_err(failed(path))?
            }
        };
        write_file(path, &bytes, overwrite)?;
        Ok(Written { files: self.len(), bytes: bytes.len() as u64 })
    }

    /// Whether [`Capture::write`] could write to this name, found out without changing anything.
    ///
    /// # Errors
    /// As there.
    pub fn check(path: &Path, overwrite: Overwrite) -> Result<(), CaptureError> {
        match form_of(path).ok_or_else(|| CaptureError::UnknownForm(shown(path)))? {
            Form::Folder => {
                check_folder(path)?;
                check_room_beside(path).map_err(failed(path))
            }
            Form::Tar | Form::Gzip | Form::Bzip2 => check_file(path, overwrite),
        }
    }

    fn write_folder(&self, path: &Path) -> Result<(), CaptureError> {
        check_folder(path)?;
        let temporary = beside(path);
        fs::create_dir(&temporary).map_err(failed(path))?;
        // A rename replaces an empty folder; one that filled up meanwhile does not.
        let result = self.fill(&temporary).and_then(|()| fs::rename(&temporary, path).map_err(failed(path)));
        if result.is_err() {
            // The folder is ours and new; what is left of it is of no use to anybody.
            let _ = fs::remove_dir_all(&temporary);
        }
        result
    }

    fn fill(&self, root: &Path) -> Result<(), CaptureError> {
        for (path, entry) in &self.entries {
            let path = root.join(path.trim_start_matches('/'));
            let folder = if *entry == Entry::Folder { Some(path.as_path()) } else { path.parent() };
            fs::create_dir_all(folder.unwrap_or(root)).map_err(failed(&path))?;
            match entry {
                Entry::File(contents) => fs::write(&path, contents),
                Entry::Link(target) => symlink(target, &path),
                Entry::Folder => Ok(()),
            }
            .map_err(failed(&path))?;
        }
        Ok(())
    }
}

/// Whether a folder can be put at this name.
fn check_folder(path: &Path) -> Result<(), CaptureError> {
    match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CaptureError::FolderExists(shown(path))),
        Err(_) if path.symlink_metadata().is_ok() => Err(CaptureError::Exists(shown(path))),
        Err(_) => Ok(()),
    }
}

/// Whether [`write_file`] could write to this name, found out without changing anything: what is there is not
/// touched, and nothing stays behind. A disk may still be full by then.
///
/// # Errors
/// As there.
pub fn check_file(path: &Path, overwrite: Overwrite) -> Result<(), CaptureError> {
    if overwrite == Overwrite::Refuse && path.symlink_metadata().is_ok() {
        return Err(CaptureError::Exists(shown(path)));
    }
    let check = || {
        let found = match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            found => Some(found?),
        };
        match found {
            None if path.as_os_str().as_bytes().ends_with(b"/") => Err(Errno::ISDIR.into()),
            Some(found) if found.is_dir() => Err(Errno::ISDIR.into()),
            // A device or a pipe is written into; one that is opened may wait for its other end.
            Some(found) if !found.is_file() => Ok(access(path, Access::WRITE_OK)?),
            _ => {
                let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
                check_room_beside(&target)?;
                found.map_or(Ok(()), |found| check_replaceable(&found, &target))
            }
        }
    };
    check().map_err(failed(path))
}

/// Whether something new can be made in the folder of this name: a file without a name is, where the file
/// system has such, and otherwise one that is removed at once.
fn check_room_beside(path: &Path) -> io::Result<()> {
    if path.file_name().is_none() {
        return Err(Errno::NOENT.into());
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    match open(folder_of(path), flags, Mode::RUSR | Mode::WUSR) {
        Ok(_) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {
            let temporary = beside(path);
            File::options().write(true).create_new(true).open(&temporary)?;
            fs::remove_file(temporary)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Whether a file can be replaced by a rename: in a folder with the sticky bit only by its owner, or the
/// folder's.
fn check_replaceable(file: &Metadata, path: &Path) -> io::Result<()> {
    let folder = fs::metadata(folder_of(path))?;
    let own = geteuid();
    let may = own.is_root() || [file.uid(), folder.uid()].contains(&own.as_raw());
    if folder.mode() & STICKY != 0 && !may { Err(Errno::PERM.into()) } else { Ok(()) }
}

/// `S_ISVTX` of `linux/stat.h`.
const STICKY: u32 = 0o1000;

/// The folder of a name.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name for a temporary file in the same folder.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

/// Writes a file whole or not at all: beside, synchronised, renamed. A file that may be replaced is
/// followed where it is a link, and its permissions and owner are kept; a device or a pipe of that name is
/// written into, for a rename would take its place.
///
/// # Errors
/// A file of that name that may not be replaced, and what the system refuses; then nothing is left
/// behind.
pub fn write_file(path: &Path, bytes: &[u8], overwrite: Overwrite) -> Result<(), CaptureError> {
    if overwrite == Overwrite::Refuse && path.symlink_metadata().is_ok() {
        return Err(CaptureError::Exists(shown(path)));
    }
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let written = File::options().write(true).open(path).and_then(|mut file| file.write_all(bytes));
        return written.map_err(failed(path));
    }
    // Through links to what they lead to; a name that does not exist yet is taken as it is.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let temporary = beside(&target);
    let result = write_beside(&temporary, bytes, fs::metadata(&target).ok())
        .map_err(failed(path))
        .and_then(|()| rename(&temporary, &target, overwrite));
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn write_beside(temporary: &Path, bytes: &[u8], replaced: Option<Metadata>) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(temporary)?;
    file.write_all(bytes)?;
    if let Some(replaced) = replaced {
        // Only root can give files away; whoever else replaces a file owns the new one.
        let _ = fchown(&file, Some(replaced.uid()), Some(replaced.gid()));
        file.set_permissions(Permissions::from_mode(replaced.mode() & 0o777))?;
    }
    file.sync_all()
}

fn rename(temporary: &Path, path: &Path, overwrite: Overwrite) -> Result<(), CaptureError> {
    let flags = match overwrite {
        Overwrite::Replace => RenameFlags::empty(),
        // Somebody may have made the file since we looked.
        Overwrite::Refuse => RenameFlags::NOREPLACE,
    };
    match renameat_with(CWD, temporary, CWD, path, flags) {
        Err(Errno::EXIST) => return Err(CaptureError::Exists(shown(path))),
        // A file system without the flag.
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(temporary, path).map_err(failed(path))?,
        result => result.map_err(|errno| failed(path)(errno.into()))?,
    }
    // The name is safe only when its folder is. A file system that cannot do that has done its best.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_what_is_written() {
        for (name, form) in [
            ("a.tar", Some(Form::Tar)),
            ("/x/a.b.tar.gz", Some(Form::Gzip)),
            ("a.tgz", Some(Form::Gzip)),
            ("a.tar.bz2", Some(Form::Bzip2)),
            ("folder", Some(Form::Folder)),
            ("a.d/", Some(Form::Folder)),
            ("a.zip", None),
            (".tar", Some(Form::Folder)),
            ("..", None),
        ] {
            assert_eq!(form_of(Path::new(name)), form, "{name}");
        }
    }

    #[test]
    fn a_device_is_written_into_and_stays_what_it_is() {
        let null = Path::new("/dev/null");
        assert!(matches!(write_file(null, b"x", Overwrite::Refuse), Err(CaptureError::Exists(_))));
        write_file(null, b"x", Overwrite::Replace).unwrap();
        assert!(!fs::metadata(null).unwrap().is_file());
        let full = write_file(Path::new("/dev/full"), b"x", Overwrite::Replace).unwrap_err();
        assert_eq!(full.to_string(), "cannot write /dev/full: no space left on device");
    }

    #[test]
    fn a_file_that_is_replaced_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for mode in [0o600, 0o644, 0o664] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            write_file(&path, b"new", Overwrite::Replace).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
            assert_eq!(fs::read(&path).unwrap(), b"new");
        }
    }

    #[test]
    fn what_cannot_be_written_is_found_out_without_changing_anything() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "kept").unwrap();
        fs::create_dir(at("folder")).unwrap();
        symlink("nothing", at("dangling")).unwrap();
        let check = |path: PathBuf, overwrite, expected: Option<&str>| {
            let found = check_file(&path, overwrite).err().map(|error| error.to_string());
            let matches = match (&found, expected) {
                (Some(found), Some(expected)) => found.ends_with(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(matches, "{}: {found:?}, expected {expected:?}", path.display());
            // It is what writing says.
            if expected.is_some() {
                write_file(&path, b"x", overwrite).unwrap_err();
            }
        };
        check(at("new"), Overwrite::Refuse, None);
        check(at("new"), Overwrite::Replace, None);
        check(at("file"), Overwrite::Replace, None);
        check(at("dangling"), Overwrite::Replace, None);
        check(at("file"), Overwrite::Refuse, Some("exists already: nothing was written"));
        check(at("folder"), Overwrite::Replace, Some("is a directory"));
        check(at("new/"), Overwrite::Replace, Some("is a directory"));
        check(at("no/new"), Overwrite::Replace, Some("no such file or directory"));
        check(at("file/new"), Overwrite::Replace, Some("not a directory"));
        check(PathBuf::new(), Overwrite::Replace, Some("no such file or directory"));
        check_file(Path::new("/dev/full"), Overwrite::Replace).unwrap();
        assert_eq!(fs::read(at("file")).unwrap(), b"kept");
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["dangling", "file", "folder"]);
    }

    #[test]
    fn a_file_is_replaced_only_when_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        write_file(&path, b"one", Overwrite::Refuse).unwrap();
        let error = write_file(&path, b"two", Overwrite::Refuse).unwrap_err();
        assert_eq!(error.to_string(), format!("{} exists already: nothing was written", path.display()));
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write_file(&path, b"two", Overwrite::Replace).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays behind");
        let link = folder.path().join("link");
        symlink("x", &link).unwrap();
        write_file(&link, b"three", Overwrite::Replace).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"three", "a link is followed, not replaced");
        let lost = write_file(&folder.path().join("no/x"), b"", Overwrite::Refuse).unwrap_err();
        assert!(lost.to_string().ends_with("no/x: no such file or directory"), "{lost}");
    }
}
