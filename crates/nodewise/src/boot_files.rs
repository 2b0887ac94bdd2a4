//! Changes of boot files, as the verbs that make some show and write them.

use std::time::{SystemTime, UNIX_EPOCH};

use nodewise_boot::store::{self, Written};
use nodewise_boot::{BootError, Plan, Root, Stamp, diff, plan};
use nodewise_view::digest::emulation::{Changed, ChangedFile};

use crate::failure::Failure;

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

/// Removes what a run that was killed has left half written, or names it.
pub fn sweep(root: &Root, is_dry: bool, shown: &mut Changed) -> Result<(), Failure> {
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

/// Writes the changes of a plan, and notes where the old files are.
pub fn write(root: &Root, plan: &Plan, shown: &mut Changed) -> Result<(), Failure> {
    let written = store::apply(root, plan, &now()).map_err(|error: BootError| Failure::cannot(error))?;
    for Written { path, backup } in written {
        keep_note(&path, backup, shown);
    }
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
