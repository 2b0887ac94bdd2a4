//! The system during an action: it goes on up to the bytes of the plan, and as long as the process is what the plan saw.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nodewise_machine::{Bytes, NodeId};
use nodewise_source::mapped::MemoryKind;

use super::super::guard::Guard;
use crate::migration::engine::{MigrationReport, State, Surroundings};
use crate::migration::live::System;

/// Pauses after which an action ends: its plan is too old then.
const MOST_PAUSE: Duration = Duration::from_secs(30);
/// Bytes that are tried before failures count.
const TRIED: u64 = 64 << 20;

/// The system, up to the bytes of a plan, and as long as the process is what the plan saw.
pub(super) struct Bounded<'a, 'g> {
    pub(super) inner: System<'a>,
    pub(super) guard: &'a mut Guard<'g>,
    pub(super) until: Option<Instant>,
    pub(super) failed: f64,
    pub(super) page: Bytes,
    pub(super) left: Bytes,
    /// The room of its targets for the next chunk: the files that say it are long on a machine with many CPUs.
    pub(super) rooms: BTreeMap<NodeId, Option<Bytes>>,
    /// Why it ends early.
    pub(super) ended: Option<String>,
}

impl Bounded<'_, '_> {
    fn end(&mut self, why: &str) {
        self.ended.get_or_insert_with(|| why.to_owned());
    }
}

impl Surroundings for Bounded<'_, '_> {
    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn sleep(&mut self, time: Duration) {
        self.inner.sleep(time);
        self.rooms.clear();
    }

    fn is_interrupted(&self) -> bool {
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        self.ended.is_some() || is_over || self.left < self.page || self.inner.is_interrupted()
    }

    fn memory_pressure(&mut self) -> Option<f64> {
        if let Err(why) = self.guard.look() {
            self.end(&why);
        }
        let pressure = self.inner.memory_pressure();
        if pressure.is_none() {
            self.end("how long programs wait for memory is not readable any more");
        }
        pressure
    }

    fn room(&mut self, node: NodeId, kind: MemoryKind, page_size: Bytes) -> Option<Bytes> {
        // A chunk fits into the room.
        let mut room = match self.rooms.get(&node) {
            Some(room) => *room,
            None => self.guard.room(node, self.page),
        };
        self.rooms.insert(node, room);
        if kind == MemoryKind::Hugetlb {
            let pool = self.inner.room(node, kind, page_size);
            room = room.zip(pool).map(|(room, pool)| room.min(pool));
        }
        if room.is_none() {
            self.end("the room of its target is not readable any more");
        }
        let none = self.ended.is_some();
        Some(room.filter(|_| !none).unwrap_or_default().min(self.left))
    }

    fn progress(&mut self, report: &MigrationReport, state: State) {
        self.inner.progress(report, state);
        self.rooms.clear();
        if report.paused >= MOST_PAUSE {
            self.end("it waited for room or for the memory of others, until the plan was too old");
        }
        let failed = report.failed_of_its_own().get();
        let tried = failed + report.moved.get();
        if tried > TRIED && failed as f64 / tried as f64 > self.failed {
            self.end("too many pages fail to move");
        }
    }

    fn moved(&mut self, _page: u64, page_size: Bytes, _kind: MemoryKind, _from: NodeId) {
        self.left = Bytes::new(self.left.get().saturating_sub(page_size.get()));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use nodewise_diagnose::Pid;
    use nodewise_diagnose::balance::Limits;
    use nodewise_machine::{CpuSet, NodeSet};
    use nodewise_source::mapped::saved::Moved;
    use nodewise_source::sample::{Allowed, Identity};
    use nodewise_source::tree::Tree;

    use super::super::super::guard::Reason;
    use super::*;

    const NODE: NodeId = NodeId::new(1);
    const PAGE: Bytes = Bytes::from_kib(4);

    /// A system with swap whose node 1 has a gigabyte, so much of it free, and a high watermark of 4 MiB.
    fn write(root: &Path, free: Bytes) {
        let node = root.join("sys/devices/system/node/node1");
        let file = |path: &Path, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let kib = free.get() >> 10;
        let fields = [
            ("MemTotal", 1 << 20),
            ("MemFree", kib),
            ("Active(file)", 0),
            ("Inactive(file)", 0),
            ("SReclaimable", 0),
        ];
        let text: String = fields.iter().map(|(name, kib)| format!("Node 1 {name}: {kib} kB\n")).collect();
        file(&node.join("meminfo"), &text);
        file(&root.join("proc/meminfo"), "MemTotal: 1048576 kB\nSwapTotal: 1048576 kB\n");
        let zone =
            "Node 1, zone Normal\n  pages free 9\n        min 256\n        low 512\n        high 1024\n";
        file(&root.join("proc/zoneinfo"), zone);
    }

    /// A look at the room of node 1 by an action that may move so many bytes.
    fn with<T>(root: &Path, left: Bytes, look: impl FnOnce(&mut Bounded<'_, '_>) -> T) -> T {
        let tree = Tree::open(root).unwrap();
        let (limits, everyone) = (Limits::default(), Allowed { cpus: None, nodes: None });
        let identity = Identity { pid: Pid::new(7), started_ticks: 5 };
        let targets = NodeSet::from_iter([NODE]);
        let mut guard =
            Guard::new(&tree, &limits, Reason::Found, &everyone, CpuSet::new(), identity, targets);
        let noted = Moved::new(identity.pid, identity.started_ticks, String::new());
        look(&mut Bounded {
            inner: System::new(&tree, Arc::new(AtomicBool::new(false)), left, PAGE, noted),
            guard: &mut guard,
            until: None,
            failed: 0.1,
            page: PAGE,
            left,
            rooms: BTreeMap::new(),
            ended: None,
        })
    }

    #[test]
    fn the_room_of_a_target_is_read_once_a_chunk() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), Bytes::from_mib(900));
        with(folder.path(), Bytes::from_gib(8), |around| {
            let room = |around: &mut Bounded<'_, '_>| around.room(NODE, MemoryKind::Heap, PAGE).unwrap();
            let first = room(around);
            assert!((1..900).contains(&first.mib()), "{first}");
            write(folder.path(), Bytes::from_mib(600));
            assert_eq!(room(around), first, "of the same chunk");
            around.sleep(Duration::ZERO);
            assert_eq!(first.get() - room(around).get(), 300 << 20, "of the next");
        });
    }

    #[test]
    fn no_room_is_larger_than_what_is_left_of_the_plan_and_one_that_is_not_readable_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), Bytes::from_mib(900));
        with(folder.path(), PAGE.times(3), |around| {
            assert_eq!(around.room(NODE, MemoryKind::Heap, PAGE), Some(PAGE.times(3)));
            around.moved(0, PAGE, MemoryKind::Heap, NodeId::new(0));
            assert_eq!(around.room(NODE, MemoryKind::Heap, PAGE), Some(PAGE.times(2)));
            fs::remove_file(folder.path().join("proc/zoneinfo")).unwrap();
            around.sleep(Duration::ZERO);
            assert_eq!(around.room(NODE, MemoryKind::Heap, PAGE), Some(Bytes::new(0)));
            assert!(around.is_interrupted());
            assert_eq!(around.ended.as_deref(), Some("the room of its target is not readable any more"));
        });
    }
}
