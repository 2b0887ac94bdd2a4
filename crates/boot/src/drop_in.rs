//! The placement of a service of systemd: a drop-in, written and taken back as boot files are.
//!
//! # Source
//! `systemd.unit(5)`: files in `/etc/systemd/system/UNIT.d` add to a unit, and the later name wins.

use nodewise_machine::printable::quote;
use rustix::fs::{Mode, mkdirat};
use rustix::io::Errno;

use crate::error::{BootError, Refusal};
use crate::plan::{self, Edit, Plan};
use crate::root::Root;
use crate::store;

const FOLDER: &str = "/etc/systemd/system";
const NAME: &str = "50-nodewise.conf";
const HEAD: &str =
    "# The placement that nodewise advise found; nodewise advise --revert --unit takes it back.\n";
/// The longest name that systemd takes: `UNIT_NAME_MAX`.
const MOST: usize = 255;

/// The path of the drop-in.
///
/// # Errors
/// A name that is not one of a service.
pub fn path(unit: &str) -> Result<String, BootError> {
    Ok(format!("{}/{NAME}", folder(unit)?))
}

fn folder(unit: &str) -> Result<String, BootError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    let stem = unit.strip_suffix(".service").unwrap_or_default();
    if stem.is_empty() || unit.len() > MOST || !unit.chars().all(is_plain) || stem.starts_with('.') {
        return Err(BootError::NoUnit { name: quote(unit).to_string() });
    }
    Ok(format!("{FOLDER}/{unit}.d"))
}

/// Plans the drop-in of a service, whose folder need not exist yet.
///
/// # Errors
/// A name that is not one of a service, a system without systemd, and a file that is not text.
pub fn change(root: &Root, unit: &str, text: &str) -> Result<Plan, BootError> {
    let path = path(unit)?;
    let by_hand = || format!("systemctl edit {unit}");
    let refused = |refusal| BootError::Refused { path: path.clone(), refusal, by_hand: by_hand() };
    if root.names_in(FOLDER)?.is_none() {
        return Err(refused(Refusal::NoSystemd));
    }
    let before = root.read(&path)?.map_or(Ok(String::new()), plan::text).map_err(refused)?;
    let edit = Edit { path: path.clone(), before, after: format!("{HEAD}{}\n", text.trim_end()) };
    Ok(Plan { next: next(&edit, unit), edits: vec![edit], ..Plan::default() })
}

/// Makes the folder of the drop-in.
///
/// # Errors
/// What cannot be made.
pub fn make_folder(root: &Root, unit: &str) -> Result<(), BootError> {
    let path = folder(unit)?;
    let fail = |errno| BootError::Write { path: path.clone(), errno };
    let place = root.resolve(&path).map_err(fail)?.ok_or_else(|| fail(Errno::NOENT))?;
    match mkdirat(&place.folder, &place.name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(fail(errno)),
    }
}

/// Plans to take the last change back.
///
/// # Errors
/// A name that is not one of a service, and a file that somebody else changed since.
pub fn undo(root: &Root, unit: &str) -> Result<Plan, BootError> {
    let found = store::backup_of(root, &path(unit)?)?;
    Ok(found.map_or_else(Plan::default, |(edit, backup)| Plan {
        next: next(&edit, unit),
        edits: vec![edit],
        backups: vec![backup],
        ..Plan::default()
    }))
}

/// The steps for a person: they restart a service that others may be using.
fn next(edit: &Edit, unit: &str) -> Vec<String> {
    if edit.before == edit.after {
        return Vec::new();
    }
    vec!["systemctl daemon-reload".to_owned(), format!("systemctl restart {unit}")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;
    use std::fs;
    use std::time::Duration;

    #[test]
    fn a_drop_in_is_written_replaced_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let unit = "postgresql@15-main.service";
        assert!(change(&root, unit, "x").unwrap_err().to_string().contains("does not use systemd"));
        let units = folder.path().join("etc/systemd/system");
        fs::create_dir_all(&units).unwrap();
        let file = units.join("postgresql@15-main.service.d/50-nodewise.conf");
        let write = |text: &str, seconds| {
            make_folder(&root, unit).unwrap();
            let plan = change(&root, unit, text).unwrap();
            store::apply(&root, &plan, &Stamp::since_1970(Duration::from_secs(seconds))).unwrap();
            plan.next.len()
        };
        assert_eq!(write("[Service]\nNUMAPolicy=bind\n", 1), 2);
        let first = fs::read_to_string(&file).unwrap();
        assert_eq!(first, format!("{HEAD}[Service]\nNUMAPolicy=bind\n"));
        assert_eq!(write("[Service]\nNUMAPolicy=bind", 2), 0, "the same again");
        assert_eq!(write("[Service]\nNUMAPolicy=local\n", 3), 2);
        store::take_back(&root, &undo(&root, unit).unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), first);
        store::take_back(&root, &undo(&root, unit).unwrap()).unwrap();
        assert!(!file.exists());
        assert_eq!(undo(&root, unit).unwrap(), Plan::default());
        write("a", 4);
        fs::write(&file, "mine").unwrap();
        assert!(undo(&root, unit).unwrap_err().to_string().contains("was changed since"));
    }

    #[test]
    fn a_name_that_is_no_service_is_no_path() {
        for name in
            ["../../x.service", "a/b.service", ".service", "..service", "x.socket", "x", "a b.service", ""]
        {
            assert!(path(name).is_err(), "{name}");
        }
        assert!(path(&format!("{}.service", "x".repeat(250))).is_err());
        assert_eq!(
            path("a-b_c:1.service").unwrap(),
            "/etc/systemd/system/a-b_c:1.service.d/50-nodewise.conf"
        );
    }
}
