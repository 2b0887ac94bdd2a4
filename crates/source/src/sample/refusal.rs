//! Files that the kernel closes to this process, and the step that opens them: it is another one for root.

use super::{Remedy, Unread};
use crate::parse::proc_status::{self, ProcessStatus};
use crate::tree::Tree;

/// `CAP_SYS_PTRACE` of `include/uapi/linux/capability.h`, which opens files of other users' processes.
const SYS_PTRACE: u32 = 19;
/// The error of a closed file, in the words of [`ReadCause`](crate::tree::ReadCause).
pub(super) const DENIED: &str = "permission denied";

/// Rights of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    /// Those of an ordinary user, or unknown ones.
    User,
    /// Those of root in a container that keeps the capability from it.
    BareRoot,
    /// The capability.
    Root,
}

impl Rights {
    fn of(status: &ProcessStatus) -> Self {
        match (status.has_capability(SYS_PTRACE), status.user) {
            (Some(true), _) => Self::Root,
            (Some(false), Some(0)) => Self::BareRoot,
            _ => Self::User,
        }
    }

    /// The fact as this process lacks it.
    fn seen_by(self, unread: Unread) -> Unread {
        match self {
            Self::User => unread,
            Self::BareRoot => Unread { remedy: Some("add the capability CAP_SYS_PTRACE".into()), ..unread },
            // A security module can protect a process from everyone.
            Self::Root if unread.reason == DENIED => {
                Unread { reason: format!("{DENIED}, also for root"), remedy: None, ..unread }
            }
            Self::Root => Unread { remedy: None, ..unread },
        }
    }
}

/// Facts that root would see, as this process lacks them.
///
/// # Source
/// `/proc/self/status`, read only where root would see more.
pub(super) fn for_this_process(tree: &Tree, lines: Vec<Unread>) -> Vec<Unread> {
    if lines.iter().all(|unread| unread.remedy != Some(Remedy::Root)) {
        return lines;
    }
    let text = tree.read_text("/proc/self/status").ok().flatten().unwrap_or_default();
    let rights = Rights::of(&proc_status::parse(&text).value);
    let seen = |unread: Unread| match unread.remedy {
        Some(Remedy::Root) => rights.seen_by(unread),
        _ => unread,
    };
    lines.into_iter().map(seen).collect()
}

impl Unread {
    /// A fact that lies in files of processes which the kernel closes to this process.
    pub fn refused(tree: &Tree, fact: &str, objects: usize) -> Self {
        let unread =
            Self { fact: fact.to_owned(), reason: DENIED.to_owned(), objects, remedy: Some(Remedy::Root) };
        for_this_process(tree, vec![unread]).remove(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    #[test]
    fn the_step_that_opens_a_file_depends_on_who_is_refused() {
        let check = |status: &str, reason: &str, remedy: Option<&str>| {
            let tree = Tree::memory(Memory::default().file("/proc/self/status", status));
            let unread = Unread::refused(&tree, "memory", 3);
            assert_eq!((unread.reason.as_str(), unread.objects), (reason, 3), "{status:?}");
            assert_eq!(unread.remedy.map(|remedy| remedy.to_string()).as_deref(), remedy, "{status:?}");
        };
        let root = Some("run as root");
        check("Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n", DENIED, root);
        check("Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n", "permission denied, also for root", None);
        check(
            "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000080000\n",
            "permission denied, also for root",
            None,
        );
        // Docker's root.
        check(
            "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n",
            DENIED,
            Some("add the capability CAP_SYS_PTRACE"),
        );
        check("", DENIED, root);
        check("CapEff:\tgarbage\nUid:\t0\n", DENIED, root);
    }

    #[test]
    fn what_root_would_not_see_either_stays_as_it_is() {
        let tree = Tree::memory(
            Memory::default().file("/proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"),
        );
        let line =
            |reason: &str, remedy| Unread { fact: "f".into(), reason: reason.into(), objects: 1, remedy };
        let lines = vec![line("not looked at yet", None), line("this user may not", Some(Remedy::Root))];
        let seen = [line("not looked at yet", None), line("this user may not", None)];
        assert_eq!(for_this_process(&tree, lines), seen);
    }
}
