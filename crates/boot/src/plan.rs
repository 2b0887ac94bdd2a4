//! The changes to boot files, worked out before anything is changed.

use crate::error::{BootError, Refusal};
use crate::line::Change;
use crate::loader::{self, Loader, LoaderFileKind};
use crate::pool::differ_in_pools_only;
use crate::root::Root;
use crate::subject::Subject;
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
    /// Of a plan that takes back: why another change cannot be taken back with it.
    pub left: Option<String>,
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

/// The subject of an edit of a file of this kind.
fn subject_of(kind: LoaderFileKind, edit: &Edit) -> Subject {
    let (before, after) = (command_lines(kind, &edit.before), command_lines(kind, &edit.after));
    let is_of_pools = before.len() == after.len()
        && before != after
        && before.iter().zip(&after).all(|(before, after)| differ_in_pools_only(before, after));
    if is_of_pools { Subject::HugePages } else { Subject::Emulation }
}

/// Plans to take back the last change of every file that has one.
///
/// # Errors
/// A file that somebody else changed since, and one whose last change is of another subject.
pub fn undo(root: &Root, subject: Subject) -> Result<Plan, BootError> {
    let files = loader::candidates(root)?;
    let mut plan = Plan::default();
    for (path, kind) in &files {
        if let Some((edit, backup)) = store::backup_of(root, path)? {
            let of = subject_of(*kind, &edit);
            if of != subject && edit.before != edit.after {
                return Err(BootError::OtherChange { path: path.clone(), of });
            }
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
        let lines = command_lines(kind, &text);
        let of = |prefix| line::value(lines.first()?, prefix).map(str::to_owned);
        let (fake, policy) = (of(line::FAKE), of(line::POLICY));
        if fake.is_some() || policy.is_some() {
            asked.push(Asked { path, fake, policy });
        }
    }
    Ok(asked)
}

/// The command lines in a file, as far as they are clear.
fn command_lines(kind: LoaderFileKind, text: &str) -> Vec<String> {
    let only = match kind {
        LoaderFileKind::Line => Some(text.to_owned()),
        LoaderFileKind::Grub => grub::words(text),
        LoaderFileKind::Entry => entry::words(text),
        LoaderFileKind::Extlinux => {
            return extlinux::lines(text).unwrap_or_default().into_iter().map(str::to_owned).collect();
        }
        // Without the variable, nothing is added to the line.
        LoaderFileKind::Environment => Some(uboot_env::words(text).unwrap_or_default()),
    };
    only.into_iter().collect()
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
