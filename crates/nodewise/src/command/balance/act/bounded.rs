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
