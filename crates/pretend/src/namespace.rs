//! Namespaces, and the picture mounted in them.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::devices;
use nodewise_machine::printable::io_words;
use nodewise_source::paths::{OWN_GID_MAP, OWN_MOUNTS, OWN_SETGROUPS, OWN_UID_MAP};
use nodewise_source::written::picture::{Content, Entry, LAYERS, Layer, Picture, REPLACED_FILES};
use nodewise_syscall::namespace;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind, mount_change,
    mount_remount, move_mount, open_tree,
};
use rustix::process::{getegid, geteuid};

/// Why a program cannot be given another machine's files.
#[derive(Debug, thiserror::Error)]
pub enum PretendError {
    #[error("this process is in a pretended machine already: another cannot be mounted over its files")]
    Nested,
    #[error("the kernel refuses a user namespace: {}", namespace_words(.0))]
    Namespace(#[source] io::Error),
    #[error("cannot map this user into the namespace: {path}: {}", io_words(.cause))]
    Map {
        path: &'static str,
        #[source]
        cause: io::Error,
    },
    #[error("cannot mount the machine's files over {path}: {}", io_words(.cause))]
    Mount {
        path: String,
        #[source]
        cause: io::Error,
    },
    #[error("cannot write {path} for the namespace: {}", io_words(.cause))]
    Write {
        path: String,
        #[source]
        cause: io::Error,
    },
}

/// `ENOSPC` is the limit of namespaces here: unshare(2).
fn namespace_words(error: &io::Error) -> String {
    if error.raw_os_error() == Some(rustix::io::Errno::NOSPC.raw_os_error()) {
        return "the limit of user.max_user_namespaces is reached".to_owned();
    }
    io_words(error)
}

/// Moves this process, which must have a single thread, into namespaces where the picture lies over the kernel's files.
/// They end with the last process in them; no other process sees the mounts.
///
/// # Errors
/// The kernel or a container forbids the namespace or a mount. The process may be in the namespace already.
pub fn enter(picture: &Picture) -> Result<(), PretendError> {
    // The type and the source that `cover` mounts with.
    if fs::read_to_string(OWN_MOUNTS).is_ok_and(|mounts| mounts.contains(" - tmpfs nodewise ")) {
        return Err(PretendError::Nested);
    }
    separate()?;
    // Without this the mounts would spread to the namespace of a privileged caller, and stay there.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|cause| not_mounted("/", cause))?;
    for layer in LAYERS.iter().filter(|layer| Path::new(layer.folder).is_dir()) {
        cover(layer, picture)?;
    }
    Ok(())
}

/// A namespace of mounts. Who may not make one gets a user namespace with it, as the same user inside.
fn separate() -> Result<(), PretendError> {
    if namespace::unshare_mounts().is_ok() {
        return Ok(());
    }
    // Read before the namespace begins: inside, they have no number until they are mapped.
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    namespace::unshare_user_and_mounts().map_err(PretendError::Namespace)?;
    // Without privileges a group can be mapped only where setgroups(2) is forbidden: user_namespaces(7).
    for (path, text) in [
        (OWN_SETGROUPS, "deny".to_owned()),
        (OWN_GID_MAP, format!("{group} {group} 1")),
        (OWN_UID_MAP, format!("{user} {user} 1")),
    ] {
        fs::write(path, text).map_err(|cause| PretendError::Map { path, cause })?;
    }
    Ok(())
}

/// Mounts a file system in memory over a folder, with the picture's files and what is kept of the folder.
fn cover(layer: &Layer, picture: &Picture) -> Result<(), PretendError> {
    let folder = layer.folder;
    let kept = kept(layer)?;
    let failed = |cause| not_mounted(folder, cause);
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("nodewise", folder, "tmpfs", flags, c"mode=0755").map_err(failed)?;
    for (name, tree) in kept {
        let path = format!("{folder}/{name}");
        fs::create_dir(&path).map_err(|cause| not_written(&path, cause))?;
        move_mount(&tree, "", CWD, &path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .map_err(|cause| not_mounted(&path, cause))?;
    }
    for entry in picture.entries.iter().filter(|entry| layer.has(&entry.path)) {
        write(entry)?;
    }
    if layer.has_files {
        REPLACED_FILES.iter().try_for_each(|file| replace(file, folder, picture))?;
        devices::unplace(picture, folder).map_err(|(path, cause)| PretendError::Mount { path, cause })?;
    }
    mount_remount(folder, flags | MountFlags::BIND | MountFlags::RDONLY, c"").map_err(failed)
}

/// The subfolders that stay, as mounts of their own. sysfs has folders only in these places.
fn kept(layer: &Layer) -> Result<Vec<(String, OwnedFd)>, PretendError> {
    let Some(replaced) = layer.replaced else { return Ok(Vec::new()) };
    let folder = layer.folder;
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mut kept = Vec::new();
    for entry in fs::read_dir(folder).map_err(|cause| not_written(folder, cause))? {
        let entry = entry.map_err(|cause| not_written(folder, cause))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !replaced.contains(&name.as_str()) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let path = format!("{folder}/{name}");
            let tree = open_tree(CWD, &path, flags).map_err(|cause| not_mounted(&path, cause))?;
            kept.push((name, tree));
        }
    }
    Ok(kept)
}

/// Writes a file or a link, and the folders above it.
fn write(entry: &Entry) -> Result<(), PretendError> {
    let path = Path::new(&entry.path);
    let written = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        match &entry.content {
            Content::Folder => fs::create_dir_all(path),
            Content::Link(target) => symlink(target, path),
            Content::Text(bytes) => {
                // A capture may come from anybody: a link of it never leads out of the picture.
                let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC | OFlags::CLOEXEC;
                let file = openat2(CWD, path, flags, Mode::from_raw_mode(0o600), ResolveFlags::NO_SYMLINKS)?;
                let mut file = fs::File::from(file);
                file.write_all(bytes)?;
                file.set_permissions(Permissions::from_mode(0o444))
            }
        }
    };
    written().map_err(|cause| not_written(&entry.path, cause))
}

/// Mounts a file of the picture over one of the kernel's. It is written in `folder`, and lives there without a name.
fn replace(file: &str, folder: &str, picture: &Picture) -> Result<(), PretendError> {
    let Some(entry) = picture.entries.iter().find(|entry| entry.path == file) else { return Ok(()) };
    let hidden = Entry { path: format!("{folder}/.replaced"), content: entry.content.clone() };
    write(&hidden)?;
    mount_bind(&hidden.path, file).map_err(|cause| not_mounted(file, cause))?;
    fs::remove_file(&hidden.path).map_err(|cause| not_written(&hidden.path, cause))
}

fn not_mounted(path: &str, cause: rustix::io::Errno) -> PretendError {
    PretendError::Mount { path: path.to_owned(), cause: cause.into() }
}

fn not_written(path: &str, cause: io::Error) -> PretendError {
    PretendError::Write { path: path.to_owned(), cause }
}
