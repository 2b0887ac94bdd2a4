//! Changes of boot files, as the verbs that make some show and write them.

use std::time::{SystemTime, UNIX_EPOCH};

use nodewise_boot::store::{self, Written};
use nodewise_boot::{BootError, Plan, Root, Stamp, diff, plan};
use nodewise_view::digest::emulation::{Changed, ChangedFile};

use crate::cli::Global;
use crate::failure::Failure;
use crate::input;

/// Boot files are those of this system or of a folder, never of `--machine`.
pub fn only_here(global: &Global) -> Result<(), Failure> {
    if input::is_live(&global.machine) {
        return Ok(());
    }
    Err(Failure::usage("--machine: boot files are changed on this system, or in an image that --root names"))
}

/// The change as it is planned.
pub fn outline(plan: &Plan, is_dry: bool) -> Changed {
    let file = |edit: &plan::Edit| ChangedFile {
        path: edit.path.clone(),
        diff: diff::unified(&edit.path, &edit.before, &edit.after),
        backup: None,
    };
    let right = plan.edits.iter().filter(|edit| edit.before == edit.after);
    Changed {
        is_dry,
        files: plan.changes().map(file).collect(),
        right: right.map(|edit| edit.path.clone()).collect(),
        remarks: plan.left.iter().cloned().collect(),
        next: plan.next.clone(),
    }
}

/// Makes the changes of a plan, and notes where the old files are; a dry run makes none.
pub fn apply(root: &Root, plan: &Plan, shown: &mut Changed) -> Result<(), Failure> {
    sweep(root, shown)?;
    if shown.is_dry {
        return Ok(());
    }
    let written = store::apply(root, plan, &now()).map_err(|error: BootError| Failure::cannot(error))?;
    for Written { path, backup } in written {
        keep_note(&path, backup, shown);
    }
    Ok(())
}

/// Takes back what a plan names; a dry run takes nothing back.
pub fn undo(root: &Root, plan: &Plan, shown: &mut Changed) -> Result<(), Failure> {
    sweep(root, shown)?;
    if !shown.is_dry {
        store::take_back(root, plan).map_err(Failure::cannot)?;
    }
    Ok(())
}

/// Removes what a run that was killed has left half written, or names it.
fn sweep(root: &Root, shown: &mut Changed) -> Result<(), Failure> {
    let is_dry = shown.is_dry;
    let left = if is_dry { store::left_behind(root) } else { store::sweep(root) };
    let what = if is_dry {
        "is left of an interrupted change"
    } else {
        "was left of an interrupted change, and is removed"
    };
    let remark = |path: String| format!("{path} {what}");
    shown.remarks.extend(left.map_err(Failure::cannot)?.into_iter().map(remark));
    Ok(())
}

/// Notes where the old file is.
pub fn keep_note(path: &str, backup: String, shown: &mut Changed) {
    if let Some(file) = shown.files.iter_mut().find(|file| file.path == path) {
        file.backup = Some(backup);
    }
}

/// The moment, for the names of backups.
pub fn now() -> Stamp {
    Stamp::since_1970(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}
