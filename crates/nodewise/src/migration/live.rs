//! A process of this system and what is around it, as the engine asks for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeId};
use nodewise_source::mapped::saved::Moved;
use nodewise_source::mapped::{MemoryKind, started_at_ticks};
use nodewise_source::mappings::{PageSource as _, RunState};
use nodewise_source::process::{Pid, status};
use nodewise_source::system::pressure;
use nodewise_source::tree::Tree;
use nodewise_source::{facts, spare};
use nodewise_syscall::clock::{Clock as _, Monotonic};
use nodewise_syscall::pages::{PageLocation, Tried, locate, try_moves};
use nodewise_syscall::{CallError, PageScope, Task};

use super::engine::{Memory, MigrationReport, State, Surroundings};
use crate::live_pages::LivePages;
use crate::{output, progress};

/// Free memory that a target keeps: one part in this number of its size.
pub(crate) const KEPT: u64 = 100;

/// The memory of a process.
pub struct Process<'a> {
    pub tree: &'a Tree,
    pub pid: Pid,
    pub task: Task,
    /// When it was started: another process may get its number.
    pub started_at_ticks: u64,
    pub scope: PageScope,
}

impl Memory for Process<'_> {
    fn locate(&mut self, pages: &[u64]) -> Result<Vec<PageLocation>, CallError> {
        let mut places = Vec::with_capacity(pages.len());
        let addresses = pages.iter().map(|page| *page as usize);
        locate(self.task, addresses, |_, place| places.push(place))?;
        Ok(places)
    }

    fn present(&mut self, range: (u64, u64)) -> Option<Vec<(u64, u64)>> {
        let mut present: Vec<(u64, u64)> = Vec::new();
        let listed = LivePages::open(self.pid).runs(range, &mut |run| match present.last_mut() {
            _ if run.state == RunState::Swapped => {}
            Some((_, end)) if *end == run.start => *end = run.end,
            _ => present.push((run.start, run.end)),
        });
        listed.ok().map(|()| present)
    }

    fn move_pages(&mut self, moves: &[(u64, NodeId)]) -> Tried {
        let moves: Vec<(usize, NodeId)> = moves.iter().map(|(page, node)| (*page as usize, *node)).collect();
        try_moves(self.task, &moves, self.scope)
    }

    fn is_alive(&mut self) -> bool {
        let is_same = started_at_ticks(self.tree, self.pid).ok().flatten() == Some(self.started_at_ticks);
        let state = status(self.tree, self.pid).ok().flatten().and_then(|parsed| parsed.value.state);
        is_same && !has_ended(state)
    }
}

/// Whether the state is that of a process without memory.
pub const fn has_ended(state: Option<char>) -> bool {
    matches!(state, None | Some('Z' | 'X'))
}

/// This system.
pub struct System<'a> {
    tree: &'a Tree,
    clock: Monotonic,
    interrupt: Arc<AtomicBool>,
    bar: ProgressBar,
    /// Memory that is to move, as far as it is known.
    expected: Bytes,
    /// The size of each node.
    sizes: BTreeMap<NodeId, Bytes>,
    /// The size of a small page.
    page: Bytes,
    last: Option<State>,
    /// Where pages were that have moved.
    pub noted: Moved,
}

impl<'a> System<'a> {
    /// The system, before anything moves.
    pub fn new(
        tree: &'a Tree,
        interrupt: Arc<AtomicBool>,
        expected: Bytes,
        page: Bytes,
        noted: Moved,
    ) -> Self {
        let bar = ProgressBar::with_draw_target(None, progress::target());
        let nodes = facts::nodes(tree).unwrap_or_default();
        let size = |node| Some((node, facts::memory_of(tree, node).ok()??.total?));
        let sizes = nodes.iter().filter_map(size).collect_map();
        Self { tree, clock: Monotonic::start(), interrupt, bar, expected, sizes, page, last: None, noted }
    }

    /// Takes the line of progress away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn words(&self, report: &MigrationReport, state: State) -> String {
        match state {
            State::WaitsForPressure => "waiting: programs wait for memory (--pause-psi)".to_owned(),
            State::WaitsForRoom(node) => format!("waiting: node {node} has no free memory"),
            State::Moving => {
                let took = self.now().as_secs_f64();
                let rate = Bytes::new((report.moved.get() as f64 / took.max(1e-3)) as u64);
                let left = self.expected.get().saturating_sub(report.moved.get());
                let seconds = left as f64 / rate.get().max(1) as f64;
                format!("moved {} of {}, {rate}/s, about {seconds:.0} s left", report.moved, self.expected)
            }
        }
    }
}

impl Surroundings for System<'_> {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    fn memory_pressure(&mut self) -> Option<f64> {
        let pressure = pressure(self.tree, nodewise_source::system::Resource::Memory).ok()??;
        pressure.value.some.map(|stall| stall.avg10)
    }

    fn room(&mut self, node: NodeId, kind: MemoryKind, page_size: Bytes) -> Option<Bytes> {
        if kind == MemoryKind::Hugetlb {
            let free = spare::huge_pages(self.tree, node, page_size).ok()??;
            return Some(page_size.times(free));
        }
        let spare = spare::of_node(self.tree, node, Some(self.page)).ok()??;
        let kept = self.sizes.get(&node).map_or(0, |size| size.get() / KEPT);
        Some(Bytes::new(spare.get().saturating_sub(kept)))
    }

    fn progress(&mut self, report: &MigrationReport, state: State) {
        let words = self.words(report, state);
        // Without a terminal a wait is still worth a line, once.
        if self.bar.is_hidden() && state != State::Moving && self.last != Some(state) {
            output::say(&words);
        }
        self.last = Some(state);
        self.bar.set_style(line_style());
        self.bar.set_message(words);
        self.bar.tick();
    }

    fn moved(&mut self, page: u64, page_size: Bytes, kind: MemoryKind, from: NodeId) {
        self.noted.add(page, page_size, kind, from);
    }
}

fn line_style() -> indicatif::ProgressStyle {
    indicatif::ProgressStyle::with_template("{wide_msg}")
        .unwrap_or_else(|_| indicatif::ProgressStyle::default_spinner())
}
