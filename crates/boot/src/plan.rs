//! The changes to boot files, worked out before anything is changed.

use crate::error::{BootError, Refusal};
use crate::line::Change;
use crate::loader::{self, Loader, LoaderFileKind};
use crate::root::Root;
use crate::{cmdline_txt, entry, extlinux, grub, line, store, uboot_env};

/// A file as it is, and as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The file, seen from the root.
    pub path: String,
    pub before: String,
    pub after: String,
}

/// Changes to the files of one boot loader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The files, those that are right already among them.
    pub edits: Vec<Edit>,
    /// Of a plan that takes back: the backup behind each of the edits.
    pub backups: Vec<String>,
    /// The steps left for a person to do then, as commands or sentences, in this order.
    pub next: Vec<String>,
}

impl Plan {
    /// The files that are not yet as they are to be.
    pub fn changes(&self) -> impl Iterator<Item = &Edit> {
        self.edits.iter().filter(|edit| edit.before != edit.after)
    }
}

/// Plans a change of the command lines that the next start will use, in the files of [`loader::kept`].
///
/// # Errors
/// No boot loader that is known, and a file that is not understood: then nothing is to be changed,
/// and the error says what to do by hand.
pub fn change(root: &Root, loader: &Loader, change: &Change) -> Result<Plan, BootError> {
    loader::refuse_useless(root, loader, change)?;
    let mut edits = Vec::new();
    for (path, kind) in &loader.files {
        let refused = |refusal| BootError::Refused { path: path.clone(), refusal, by_hand: change.by_hand() };
        let Some(bytes) = root.read(path)? else { continue };
        let before = text(bytes).map_err(refused)?;
        let after = match kind {
            LoaderFileKind::Line => cmdline_txt::edit(&before, change).map(Some),
            LoaderFileKind::Grub => grub::edit(&before, change).map(Some),
            LoaderFileKind::Entry => entry::edit(&before, change),
            LoaderFileKind::Extlinux => extlinux::edit(&before, change).map(Some),
            LoaderFileKind::Environment => uboot_env::edit(&before, change).map(Some),
        };
        if let Some(after) = after.map_err(refused)? {
            edits.push(Edit { path: path.clone(), before, after });
        }
    }
    let next = next(root, loader, &edits)?;
    Ok(Plan { edits, next, ..Plan::default() })
}

/// Plans to take back the last change of every file that has one.
///
/// # Errors
/// A file that somebody else changed since.
pub fn undo(root: &Root) -> Result<Plan, BootError> {
    let files = loader::candidates(root)?;
    let mut plan = Plan::default();
    for (path, _) in &files {
        if let Some((edit, backup)) = store::backup_of(root, path)? {
            plan.edits.push(edit);
            plan.backups.push(backup);
        }
    }
    plan.next = next(root, &loader::kept_of(root, files)?, &plan.edits)?;
    Ok(plan)
}

/// The requests of a boot file to the next kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub path: String,
    /// The text behind `numa=fake=`.
    pub fake: Option<String>,
    /// The text behind `numa_policy=`.
    pub policy: Option<String>,
}

/// Lists the requests of the boot files to the next kernel; files that ask for nothing are left out.
///
/// # Errors
/// A file that cannot be read.
pub fn asked(root: &Root) -> Result<Vec<Asked>, BootError> {
    let mut asked = Vec::new();
    for (path, kind) in loader::kept(root)?.files {
        let Some(Ok(text)) = root.read(&path)?.map(text) else { continue };
        let words = match kind {
            LoaderFileKind::Line => Some(text),
            LoaderFileKind::Grub => grub::words(&text),
            LoaderFileKind::Entry => entry::words(&text),
            LoaderFileKind::Extlinux => extlinux::words(&text),
            LoaderFileKind::Environment => uboot_env::words(&text),
        };
        let of = |prefix| line::value(words.as_deref()?, prefix).map(str::to_owned);
        let (fake, policy) = (of(line::FAKE), of(line::POLICY));
        if fake.is_some() || policy.is_some() {
            asked.push(Asked { path, fake, policy });
        }
    }
    Ok(asked)
}

/// Lists the steps to take after these files have changed.
fn next(root: &Root, loader: &Loader, edits: &[Edit]) -> Result<Vec<String>, BootError> {
    let changed = |path: &str| edits.iter().any(|edit| edit.path == path && edit.before != edit.after);
    let mut next: Vec<String> = Vec::new();
    if changed(loader::GRUB) {
        next.extend(loader.grub_command.clone());
    }
    if changed(loader::KERNEL) && loader.grub_command.is_none() && !has_entry(root, loader)? {
        next.push(IMAGES.to_owned());
    }
    if edits.iter().any(|edit| edit.before != edit.after) {
        next.push("reboot".to_owned());
    }
    Ok(next)
}

/// Whether an entry holds a command line, so that none is built into images. An unchanged entry counts too.
fn has_entry(root: &Root, loader: &Loader) -> Result<bool, BootError> {
    for (path, _) in loader.files.iter().filter(|(_, kind)| *kind == LoaderFileKind::Entry) {
        let text = root.read(path)?.map(text);
        if text.is_some_and(|text| text.is_ok_and(|text| entry::words(&text).is_some())) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The step where the command line is built into the images that the firmware starts.
const IMAGES: &str =
    "rebuild the kernel images (kernel-install add-all, mkinitcpio -P or dracut --regenerate-all --uefi)";

/// A boot file as text.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String, Refusal> {
    let text = String::from_utf8(bytes).map_err(|_| Refusal::NotText)?;
    if text.contains('\0') { Err(Refusal::NotText) } else { Ok(text) }
}

#[cfg(test)]
mod tests;
