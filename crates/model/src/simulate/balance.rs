//! Time that passes while a program runs: kswapd demotes, and pages follow their CPU.
//!
//! How long that takes is not said: it ends, as in [`crate::balancing`], when the kernel has marked all of
//! the program's memory and the program has used it often enough since.

use nodewise_machine::NodeId;

use super::Simulation;
use super::program::{Extent, Id, ObjectKind};
use super::step::Step;
use crate::balancing::{Balancing, User};
use crate::memory::ZoneState;
use crate::zones::ZoneKind;

impl Simulation {
    /// A program runs for a while and uses all its memory.
    pub(super) fn balance(&mut self, id: Id) -> Step {
        let mut step = Step::default();
        self.kswapd(&mut step);
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
                let user = User { policy: &policy, cpu_node, allowed: &allowed, is_hot: false };
                // Pages that several programs use go to and fro, or stay: that is not said.
                let own = |extent: &Extent| extent.is_movable_by(id, false) && extent.is_inside(&part);
                let balanced = self.rearrange(object, own, |memory, placed| {
                    memory.balance(placed, &user, balancing, &tiers)
                });
                step.moved += balanced.iter().map(|balanced| balanced.moved).sum::<u64>();
                step.promoted += balanced.iter().map(|balanced| balanced.promoted).sum::<u64>();
            }
            if let Some(object) = self.objects.get_mut(&object) {
                object.tidy();
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
