//! Pools of huge pages that systemd sets at every boot: a file in `/etc/tmpfiles.d`.
//!
//! # Source
//! `tmpfiles.d(5)`: a line of type `w` writes its argument to a file, early at every boot, if the file exists.

use nodewise_machine::{Bytes, NodeId};

use crate::error::{BootError, Refusal};
use crate::loader;
use crate::plan::{self, Edit, Plan};
use crate::pool::BootPools;
use crate::root::Root;
use crate::store;
use crate::subject::Subject;

/// The file.
pub const PATH: &str = loader::TMPFILES;
const FOLDER: &str = "/etc/tmpfiles.d";
const HEAD: &str = "# Pools of huge pages, written by nodewise hugepages persist.\n";

/// Plans the lines for the pools of a size; those of other sizes stay.
///
/// # Errors
/// A system without `/etc/tmpfiles.d`, and a file that is not text.
pub fn change(root: &Root, pools: &BootPools) -> Result<Plan, BootError> {
    let by_hand = || format!("put these lines into {PATH}: {}", lines(pools).join("; "));
    let before = match root.read(PATH)? {
        Some(bytes) => plan::text(bytes).map_err(|refusal| BootError::Refused {
            path: PATH.to_owned(),
            refusal,
            by_hand: by_hand(),
        })?,
        None if root.names_in(FOLDER)?.is_none() => {
            return Err(BootError::Refused {
                path: PATH.to_owned(),
                refusal: Refusal::NoSystemd,
                by_hand: by_hand(),
            });
        }
        None => String::new(),
    };
    let is_own = |line: &&str| line.contains(&folder_of_size(pools.size)) && is_write(line);
    let mut after: String = before.split_inclusive('\n').filter(|line| !is_own(line)).collect();
    if !after.is_empty() && !after.ends_with('\n') {
        after.push('\n');
    }
    let new = lines(pools);
    if after.is_empty() && !new.is_empty() {
        after.push_str(HEAD);
    }
    new.iter().for_each(|line| after.extend([line, "\n"]));
    let edit = Edit { path: PATH.to_owned(), before, after };
    Ok(Plan { next: next(&edit, !new.is_empty()), edits: vec![edit], ..Plan::default() })
}

/// Plans to take back the last change of pools: in this file and in those of the boot loader.
///
/// # Errors
/// A file that somebody else changed since, and one whose last change was of something else, unless the others
/// can be taken back without it.
pub fn undo(root: &Root) -> Result<Plan, BootError> {
    let own = store::backup_of(root, PATH).map(|found| {
        found.map_or_else(Plan::default, |(edit, backup)| Plan {
            next: next(&edit, edit.after.lines().any(is_write)),
            edits: vec![edit],
            backups: vec![backup],
            ..Plan::default()
        })
    });
    match (own, plan::undo(root, Subject::HugePages)) {
        (Ok(own), Ok(mut plan)) => {
            plan.next.splice(0..0, own.next);
            plan.edits.extend(own.edits);
            plan.backups.extend(own.backups);
            Ok(plan)
        }
        (Ok(plan), Err(error)) | (Err(error), Ok(plan)) => match error {
            BootError::OtherChange { .. } | BootError::Undone { .. } if !plan.edits.is_empty() => {
                Ok(Plan { left: Some(error.to_string()), ..plan })
            }
            error => Err(error),
        },
        (Err(_), Err(error)) => Err(error),
    }
}

/// The steps after a change of the file, by whether it sets the pools that changed: one without lines leaves
/// them as they are.
fn next(edit: &Edit, sets_pools: bool) -> Vec<String> {
    let is_changed = edit.before != edit.after && sets_pools;
    is_changed.then(|| format!("systemd-tmpfiles --create {PATH} for these pools now")).into_iter().collect()
}

/// Whether a line writes a value.
fn is_write(line: &str) -> bool {
    line.trim_start().starts_with('w')
}

fn lines(pools: &BootPools) -> Vec<String> {
    let line = |(node, pages): (&NodeId, &u64)| {
        let folder = folder_of_size(pools.size);
        format!("w /sys/devices/system/node/node{node}{folder}nr_hugepages - - - - {pages}")
    };
    pools.pages.iter().filter(|(_, pages)| **pages > 0).map(line).collect()
}

fn folder_of_size(size: Bytes) -> String {
    format!("/hugepages/hugepages-{}kB/", size.get() >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;
    use std::fs;
    use std::time::Duration;

    fn pools(size: Bytes, pages: &[u64]) -> BootPools {
        let pages = (0..).map(NodeId::new).zip(pages.iter().copied()).collect();
        BootPools { size, is_default: false, pages }
    }

    #[test]
    fn a_file_is_made_changed_and_taken_away_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        let small = pools(Bytes::from_mib(2), &[512, 0, 256]);
        let refused = change(&root, &small).unwrap_err().to_string();
        assert!(
            refused.contains("does not use systemd") && refused.contains("node2/hugepages/"),
            "{refused}"
        );
        let tmpfiles = folder.path().join("etc/tmpfiles.d");
        fs::create_dir_all(&tmpfiles).unwrap();
        let file = tmpfiles.join("nodewise-hugepages.conf");
        let write = |pools: &BootPools, seconds| {
            let plan = change(&root, pools).unwrap();
            store::apply(&root, &plan, &Stamp::since_1970(Duration::from_secs(seconds))).unwrap();
            fs::read_to_string(&file).unwrap()
        };
        let line = |node, size, pages| {
            format!(
                "w /sys/devices/system/node/node{node}/hugepages/hugepages-{size}kB/nr_hugepages - - - - {pages}\n"
            )
        };
        let first = format!("{HEAD}{}{}", line(0, 2048, 512), line(2, 2048, 256));
        assert_eq!(write(&small, 1), first);
        assert_eq!(write(&pools(Bytes::from_gib(1), &[0, 4]), 2), format!("{first}{}", line(1, 1 << 20, 4)));
        let less = format!("{HEAD}{}{}", line(1, 1 << 20, 4), line(1, 2048, 7));
        assert_eq!(write(&pools(Bytes::from_mib(2), &[0, 7]), 3), less);
        assert_eq!(change(&root, &pools(Bytes::from_mib(2), &[0, 7])).unwrap().changes().count(), 0);
        for steps in [1, 1, 0] {
            let plan = undo(&root).unwrap();
            assert_eq!(plan.next.len(), steps, "{plan:?}");
            store::take_back(&root, &plan).unwrap();
        }
        assert_eq!(fs::read_dir(&tmpfiles).unwrap().count(), 0);
        assert_eq!(undo(&root).unwrap(), Plan::default());
    }

    #[test]
    fn no_pools_need_no_step_and_an_empty_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("etc/tmpfiles.d")).unwrap();
        let root = Root::open(folder.path()).unwrap();
        let write = |pools: &BootPools, seconds| {
            let plan = change(&root, pools).unwrap();
            store::apply(&root, &plan, &Stamp::since_1970(Duration::from_secs(seconds))).unwrap();
            plan.next.len()
        };
        assert_eq!(write(&pools(Bytes::from_gib(1), &[4]), 1), 1);
        assert_eq!(write(&pools(Bytes::from_mib(2), &[4]), 2), 1);
        // The lines of the other size set nothing of this one.
        assert_eq!(write(&pools(Bytes::from_mib(2), &[0]), 3), 0);
        fs::write(folder.path().join("etc/tmpfiles.d/.nodewise-new"), "half").unwrap();
        assert_eq!(store::sweep(&root).unwrap(), ["/etc/tmpfiles.d/.nodewise-new"]);
        while !undo(&root).unwrap().edits.is_empty() {
            store::take_back(&root, &undo(&root).unwrap()).unwrap();
        }
        assert_eq!(root.read(PATH).unwrap(), None);
        write(&pools(Bytes::from_mib(2), &[4]), 5);
        fs::write(folder.path().join(PATH.trim_start_matches('/')), "mine").unwrap();
        let refused = undo(&root).unwrap_err().to_string();
        assert_eq!(refused, format!("{PATH} was changed since: to restore it nevertheless, remove it"));
        for name in root.list(FOLDER).unwrap() {
            fs::remove_file(folder.path().join("etc/tmpfiles.d").join(name)).unwrap();
        }
        fs::write(folder.path().join(PATH.trim_start_matches('/')), "").unwrap();
        write(&pools(Bytes::from_mib(2), &[4]), 4);
        store::take_back(&root, &undo(&root).unwrap()).unwrap();
        assert_eq!(root.read(PATH).unwrap().as_deref(), Some(&b""[..]));
    }

    #[test]
    fn another_change_is_not_taken_back_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("etc/default")).unwrap();
        let grub = folder.path().join("etc/default/grub");
        fs::write(&grub, "GRUB_CMDLINE_LINUX=\"quiet\"\n").unwrap();
        let root = Root::open(folder.path()).unwrap();
        let write = |change: &crate::Change, seconds| {
            let loader = loader::kept(&root).unwrap();
            let plan = plan::change(&root, &loader, change).unwrap();
            store::apply(&root, &plan, &Stamp::since_1970(Duration::from_secs(seconds))).unwrap();
        };
        write(&crate::Change::pools(pools(Bytes::from_mib(2), &[8, 4])), 1);
        let with = "GRUB_CMDLINE_LINUX=\"quiet hugepagesz=2M hugepages=0:8,1:4\"\n";
        assert_eq!(fs::read_to_string(&grub).unwrap(), with);
        write(&crate::tests::two(), 2);
        let refused = undo(&root).unwrap_err().to_string();
        let last = "the last change of /etc/default/grub was of emulated nodes: nodewise emulation undo takes it back first";
        assert_eq!(refused, last);
        // The other file can be restored without it.
        fs::create_dir_all(folder.path().join(FOLDER.trim_start_matches('/'))).unwrap();
        let plan = change(&root, &pools(Bytes::from_mib(2), &[3])).unwrap();
        store::apply(&root, &plan, &Stamp::since_1970(Duration::from_secs(3))).unwrap();
        let plan = undo(&root).unwrap();
        assert_eq!((plan.edits.len(), plan.left.as_deref()), (1, Some(last)));
        store::take_back(&root, &plan).unwrap();
        assert_eq!(root.read(PATH).unwrap(), None);
        store::take_back(&root, &plan::undo(&root, Subject::Emulation).unwrap()).unwrap();
        let pools = plan::undo(&root, Subject::Emulation).unwrap_err().to_string();
        assert!(pools.contains("was of huge pages: nodewise hugepages undo --boot takes it"), "{pools}");
        store::take_back(&root, &undo(&root).unwrap()).unwrap();
        assert_eq!(fs::read_to_string(&grub).unwrap(), "GRUB_CMDLINE_LINUX=\"quiet\"\n");
    }
}
