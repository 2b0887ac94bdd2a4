//! Time that passes while a program runs: kswapd demotes, and pages follow their CPU.
//!
//! It ends, as in [`crate::balancing`], when the kernel has marked all of the program's memory and the program has used
//! it often enough since; where the step says how it uses it, [`course`](crate::balancing::course) says how far that has come
//! after a time.

use std::time::Duration;

use nodewise_machine::{Bytes, NodeId};

use super::Simulation;
use super::act::MemoryUse;
use super::program::{Id, ObjectKind};
use super::step::{LocalAfter, Step};
use crate::balancing::course::{
    Costs, Draws, Program, Promotion, Settings, Thread, forecast, forecast_promotion,
};
use crate::balancing::{Balancing, User};
use crate::memory::ZoneState;
use crate::release::Change;
use crate::zones::ZoneKind;

/// Bytes of the pages that [`forecast`] knows.
const PAGE: u64 = 4096;
/// Draws of a forecast.
const DRAWS: Draws = Draws { count: 100, seed: 1 };
/// Mappings that a thread may not use, such as those of variables of shared libraries. An assumption.
const UNUSED_MAPPINGS: u64 = 100;
/// How a program may have been started.
const STARTS: [Thread; 3] = [Thread::Forked, Thread::Spawned, Thread::Started];

impl Simulation {
    /// A program runs, and uses its memory in some way.
    pub(super) fn balance_for(&mut self, id: Id, usage: MemoryUse) -> Step {
        let mut step = self.balance(id);
        // What the fast node has no room to spare for is promoted once it is hot.
        let hot = if self.balancing.promotes { self.balance_pages(id, true) } else { Step::default() };
        let way = match [step.promoted > 0, hot.promoted > 0] {
            [_, false] => Way::Touched,
            [false, true] => Way::Hot,
            [true, true] => Way::Either,
        };
        step.moved += hot.moved;
        step.promoted += hot.promoted;
        // With both bits of the setting fast pages are marked as well, which changes the pace of scans.
        let is_known = step.promoted == 0 || !self.balancing.places;
        if step.moved > 0 && is_known && self.memory.page_bytes() == PAGE {
            let most = if self.release.has(Change::UnusedMappingsLast) { UNUSED_MAPPINGS } else { 0 };
            step.local_after = local_after(step.moved, self.placement(id).pages(), usage, way, [0, most]);
        }
        step
    }

    /// A program runs for a while and uses all its memory.
    pub(super) fn balance(&mut self, id: Id) -> Step {
        let mut step = Step::default();
        self.kswapd(&mut step);
        let Step { moved, promoted, .. } = self.balance_pages(id, false);
        (step.moved, step.promoted) = (step.moved + moved, step.promoted + promoted);
        step
    }

    /// Pages of a program that follow its CPU, or are promoted.
    fn balance_pages(&mut self, id: Id, is_hot: bool) -> Step {
        let mut step = Step::default();
        let Some(tiers) = self.tiers.clone().filter(|_| self.balancing != Balancing::OFF) else {
            return step;
        };
        let program = &self.programs[&id];
        let (cpu_node, allowed) = (program.cpu_node, program.allowed.clone());
        for (object, pages) in program.mapped() {
            if self.objects.get(&object).is_none_or(|object| object.kind == ObjectKind::Pool) {
                continue;
            }
            for (part, policy) in self.policies(id, object, pages) {
                self.carve(object, &part);
                let balancing = self.balancing;
                let user = User { policy: &policy, cpu_node, allowed: &allowed, is_hot };
                // Pages that several programs use go to and fro, or stay: that is not said.
                let found = self.objects.get_mut(&object);
                let own = found.map(|found| found.movable((id, false), &part, &self.family));
                let balanced = self.rearrange(object, own.unwrap_or_default(), |memory, placed| {
                    memory.balance(placed, &user, balancing, &tiers)
                });
                step.moved += balanced.iter().map(|balanced| balanced.moved).sum::<u64>();
                step.promoted += balanced.iter().map(|balanced| balanced.promoted).sum::<u64>();
            }
            if let Some(object) = self.objects.get_mut(&object) {
                object.tidy(&self.family);
            }
        }
        step
    }

    /// kswapd, where slower memory takes what is demoted: a node whose zones are all below their low mark comes
    /// up until one of them is above the high one (`pgdat_balanced`).
    fn kswapd(&mut self, step: &mut Step) {
        if !self.demotion {
            return;
        }
        for node in &self.memory.nodes() {
            let Some(_) = self.lacking(node, |zone| zone.marks.low) else { continue };
            while let Some(wanted) = self.lacking(node, |zone| zone.marks.high) {
                if self.demote(node, wanted, step) == 0 {
                    break;
                }
            }
        }
    }

    /// How many pages a node lacks before one of its zones is above a mark; `None` where one is.
    fn lacking(&self, node: NodeId, mark: impl Fn(&ZoneState) -> u64) -> Option<u64> {
        let kept = |zone: &ZoneState| zone.kept(mark(zone), ZoneKind::Movable);
        let zones = self.memory.zones().iter().filter(|zone| zone.node == node);
        let lacking = zones.map(|zone| (kept(zone) + 1).saturating_sub(zone.free)).min();
        lacking.filter(|pages| *pages > 0)
    }
}

/// The touch that moves a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A touch after its mark.
    Touched,
    /// One soon after it.
    Hot,
    /// The first while there is room to spare, then the second.
    Either,
}

/// The part of pages that follow their CPU that has done so after a time, of a program with so much memory in all; `None` where
/// that is not known.
fn local_after(
    moved: u64,
    resident: u64,
    usage: MemoryUse,
    way: Way,
    unused_above: [u64; 2],
) -> Option<LocalAfter> {
    let part = moved as f64 / resident.max(moved) as f64;
    let program = |thread| Program {
        memory: Bytes::new(moved.saturating_mul(PAGE)),
        first_page: None,
        // Pages that are local are marked too, where there are several threads.
        below: match thread {
            Thread::Started => Bytes::new(resident.saturating_sub(moved).saturating_mul(PAGE)),
            Thread::Forked | Thread::Spawned => Bytes::new(0),
        },
        resident: Bytes::new(resident.saturating_mul(PAGE)),
        thread,
        before: Duration::ZERO,
        pattern: usage.pattern,
        sweep_from: None,
        touches_per_s: usage.touches_per_s.map(|touches| touches as f64 * part),
        cpu_share: 1.0,
        room: None,
        unused_above,
    };
    let (settings, costs, times) = (Settings::KERNEL, Costs::ASSUMED, [usage.time]);
    let mut shares = Vec::new();
    for thread in STARTS {
        let program = program(thread);
        if way != Way::Hot {
            shares.extend(forecast(&program, settings, costs, &times, DRAWS));
        }
        if way != Way::Touched {
            shares.extend(forecast_promotion(&program, Promotion::KERNEL, settings, costs, &times, DRAWS)?);
        }
    }
    let low = shares.iter().map(|share| share.low).fold(1.0, f64::min);
    let high = shares.iter().map(|share| share.high).fold(0.0, f64::max);
    Some(LocalAfter {
        time: usage.time,
        low_permille: (low * 1000.0).floor() as u16,
        high_permille: (high * 1000.0).ceil() as u16,
    })
}
