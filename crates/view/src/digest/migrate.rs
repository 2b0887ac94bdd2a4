//! A migration of a process's pages: what was planned, what moved, and what stayed.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::{Bytes, NodeId};

/// Memory of one kind on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount {
    /// `heap`, `stack`, `anon`, `shmem`, `file` or `hugetlb`.
    pub kind: &'static str,
    pub node: NodeId,
    pub size: Bytes,
}

/// Memory that leaves a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pub from: NodeId,
    /// Where it goes, as people read it: `node 1`, `nodes 0-3 in turn`.
    pub to: String,
    pub size: Bytes,
}

/// Memory that stayed where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// One word: `shared`, `busy`, `no_room`, `error`, `unknown`.
    pub reason: &'static str,
    pub errno: Option<i32>,
    /// Why, and what would help.
    pub sentence: String,
    pub size: Bytes,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    DryRun,
    Done,
    Interrupted,
    ProcessEnded,
    Refused,
}

impl Ending {
    /// The word for it in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::DryRun => "dry_run",
            Self::Done => "done",
            Self::Interrupted => "interrupted",
            Self::ProcessEnded => "process_ended",
            Self::Refused => "refused",
        }
    }
}

/// A migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    pub pid: u32,
    pub name: String,
    pub started_at_ticks: u64,
    pub plan: Vec<Flow>,
    pub before: Vec<Amount>,
    /// `None`: nothing was moved, or the process has ended.
    pub after: Option<Vec<Amount>>,
    pub moved: Bytes,
    /// Pages that were freed or swapped out meanwhile.
    pub gone: Bytes,
    pub failed: Vec<Failed>,
    /// Calls that moved pages.
    pub calls: u64,
    pub took: Duration,
    pub paused: Duration,
    /// Time to list pages, before any of them moved.
    pub listing: Duration,
    pub ending: Ending,
    /// Sentences on the end and on what follows.
    pub notes: Vec<String>,
    /// The file that takes it back.
    pub undo: Option<String>,
}

impl Migration {
    /// Bytes that moved in a second, without pauses and lists of pages; `None` where that took no time.
    pub fn rate(&self) -> Option<Bytes> {
        let seconds = self.took.saturating_sub(self.paused).saturating_sub(self.listing).as_secs_f64();
        (seconds > 0.0).then(|| Bytes::new((self.moved.get() as f64 / seconds) as u64))
    }

    /// Memory before and after, by kind and node, in the order of the kinds.
    pub fn rows(&self) -> Vec<(&'static str, NodeId, Bytes, Option<Bytes>)> {
        let order: Vec<&'static str> =
            self.before.iter().chain(self.after.iter().flatten()).map(|of| of.kind).fold(
                Vec::new(),
                |mut kinds, kind| {
                    if !kinds.contains(&kind) {
                        kinds.push(kind);
                    }
                    kinds
                },
            );
        let none = (Bytes::new(0), self.after.as_ref().map(|_| Bytes::new(0)));
        let mut rows: BTreeMap<(usize, NodeId), (Bytes, Option<Bytes>)> = BTreeMap::new();
        let rank = |kind| order.iter().position(|known| *known == kind).unwrap_or(order.len());
        for of in &self.before {
            rows.entry((rank(of.kind), of.node)).or_insert(none).0 += of.size;
        }
        for of in self.after.iter().flatten() {
            let row = rows.entry((rank(of.kind), of.node)).or_insert(none);
            row.1 = row.1.map(|size| size + of.size);
        }
        rows.into_iter().map(|((kind, node), (before, after))| (order[kind], node, before, after)).collect()
    }
}
