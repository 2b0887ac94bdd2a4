//! Automatic balancing: which pages follow the CPU that uses them, and which are promoted to faster memory.
//!
//! ```text
//! Balancing::from_machine(machine) -> what kernel.numa_balancing says
//! Memory::balance(&mut pages, &user, balancing, tiers) -> Balanced { moved, promoted }     of runs
//! Task::balance(is_hot, balancing, tiers, &mut memory) -> Balanced                         page by page
//! Tiers::from_machine(machine, release) -> which nodes are on top
//! ```
//!
//! How soon pages move is a matter of time and of use: [`Balancing`] shows where they are when the kernel has
//! marked all of a program's memory, and the program has used each page often enough since; [`course`] how far
//! it has come after a time.
//!
//! # Source
//! `mpol_misplaced` and `vma_policy_mof` in `mm/mempolicy.c`, `task_numa_work` and
//! `should_numa_migrate_memory` in `kernel/sched/fair.c`, `migrate_misplaced_folio` in `mm/migrate.c`; 6.10 to
//! at least 7.2. Which policies let pages move was seen on 6.12.

pub mod course;

use nodewise_machine::{Machine, ModeFlags, NodeId, NodeSet, PolicyMode};

use crate::memory::{Memory, Placed, ZoneState};
use crate::policy::set::Policy;
use crate::release::Change;
use crate::tier::Tiers;
use crate::zones::ZoneKind;

/// The value of `kernel.numa_balancing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balancing {
    /// Bit 0: pages follow the CPU.
    pub places: bool,
    /// Bit 1: pages of slow memory are promoted when they are used.
    pub promotes: bool,
}

impl Balancing {
    /// No page moves.
    pub const OFF: Self = Self { places: false, promotes: false };

    /// Interprets a number in the file.
    pub const fn from_setting(setting: u32) -> Self {
        Self { places: setting & 1 != 0, promotes: setting & 2 != 0 }
    }

    /// The machine's settings; where they are unknown, those that the kernel starts with: pages follow the
    /// CPU on a machine of several nodes.
    pub fn from_machine(machine: &Machine) -> Self {
        let several = u32::from(machine.nodes.len() > 1);
        Self::from_setting(machine.settings.numa_balancing.unwrap_or(several))
    }
}

/// Who uses pages.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// The policy of the pages: of their mapping, else of the program.
    pub policy: &'a Policy,
    /// The node of the CPU.
    pub cpu_node: NodeId,
    /// Nodes that the cpuset allows.
    pub allowed: &'a NodeSet,
    /// Whether each page is used again within about a second of being marked (`hot_threshold_ms`). Slow
    /// memory is promoted only then, once the fast node has no room to spare.
    pub is_hot: bool,
}

/// Pages that balancing has moved.
///
/// # Units
/// Pages of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Balanced {
    /// All that were moved: `numa_pages_migrated`.
    pub moved: u64,
    /// Those of them that came from slow memory: `pgpromote_success`.
    pub promoted: u64,
}

/// The node to which balancing would move a page that a CPU of `cpu_node` uses, or `None` where it
/// has to stay. How soon it moves, and whether it does while the CPU changes, the kernel decides by
/// the faults it counts.
pub fn target(policy: &Policy, page: NodeId, cpu_node: NodeId, with_memory: &NodeSet) -> Option<NodeId> {
    let follows = match policy.mode {
        PolicyMode::Default => true,
        PolicyMode::Bind | PolicyMode::PreferredMany => {
            policy.flags.contains(ModeFlags::NUMA_BALANCING) && policy.nodes.contains(cpu_node)
        }
        _ => false,
    };
    (follows && page != cpu_node && with_memory.contains(cpu_node)).then_some(cpu_node)
}

/// Room beyond the promotion mark that lets slow pages come without being hot, for a node of this many pages:
/// 1 GiB, or a sixteenth of the node where that is more.
fn room_to_spare(managed: u64) -> u64 {
    (managed / 16).max(1 << 18)
}

/// The way of a page that balancing moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BalancingMove {
    pub(crate) to: NodeId,
    promotes: bool,
    /// Room beyond the promotion mark that there has to be.
    spare: Option<u64>,
}

impl BalancingMove {
    /// Returns the number of free pages that a zone has to exceed, for this many to come.
    fn mark(self, zone: &ZoneState, pages: u64) -> u64 {
        match self.spare {
            Some(spare) => zone.marks.promo + spare,
            // Those that come count as taken already.
            None => zone.marks.high + pages,
        }
    }
}

impl Balanced {
    pub(crate) fn add(&mut self, way: BalancingMove, pages: u64) {
        self.moved += pages;
        self.promoted += if way.promotes { pages } else { 0 };
    }
}

/// Free pages of a zone above a mark and what it keeps from programs.
fn above(zone: &ZoneState, mark: u64) -> u64 {
    zone.free.saturating_sub(zone.kept(mark, ZoneKind::Movable))
}

impl Memory {
    /// Moves those of these pages that follow the CPU, as far as its node has room.
    ///
    /// A page comes while a zone of the node has more free pages than its high watermark (and slow pages
    /// that are not hot, while it has more than [the promotion mark](crate::Watermarks) and room to spare).
    pub fn balance(
        &mut self,
        pages: &mut Placed,
        user: &User<'_>,
        balancing: Balancing,
        tiers: &Tiers,
    ) -> Balanced {
        let mut balanced = Balanced::default();
        let there: Vec<((NodeId, ZoneKind), u64)> =
            pages.iter().map(|(zone, count)| (*zone, *count)).collect();
        for ((node, kind), count) in there {
            let Some(way) = self.way_of(node, user, balancing, tiers) else { continue };
            let taken = self.take_above(way, count);
            balanced.add(way, self.exchange(pages, (node, kind), taken));
        }
        pages.retain(|_, count| *count > 0);
        balanced
    }

    /// Where balancing would bring a page of a node to; `None` where it stays.
    pub(crate) fn way_of(
        &self,
        node: NodeId,
        user: &User<'_>,
        balancing: Balancing,
        tiers: &Tiers,
    ) -> Option<BalancingMove> {
        let promotes = balancing.promotes && !tiers.is_top(node);
        let is_left_out = user.allowed.len() == 1 && self.release.has(Change::OneNodeNotBalanced);
        if is_left_out || !(balancing.places || promotes) {
            return None;
        }
        let with_memory = self.nodes().intersection(user.allowed);
        let to = target(user.policy, node, user.cpu_node, &with_memory)?;
        let spare = Some(room_to_spare(self.managed_of(to))).filter(|_| promotes && !user.is_hot);
        Some(BalancingMove { to, promotes, spare })
    }

    /// Whether a page of an order has room where it would go to. The oracle asks for each page.
    #[cfg(any(test, feature = "oracle"))]
    pub(crate) fn has_room_for(&self, way: BalancingMove, order: u32) -> bool {
        let mut own = self.zones.iter().filter(|zone| zone.node == way.to);
        own.any(|zone| above(zone, way.mark(zone, 1 << order)) > 0)
    }

    /// Takes pages of a node for its own CPU, while any of its zones has room for one more. They come from
    /// the highest zone above its low watermark, whichever zone it is that has the room.
    fn take_above(&mut self, way: BalancingMove, pages: u64) -> Vec<(NodeId, ZoneKind, u64)> {
        let mut own: Vec<&mut ZoneState> = self.zones.iter_mut().filter(|zone| zone.node == way.to).collect();
        let mut taken = Vec::new();
        let mut left = pages;
        while let Some(zone) = own.pop() {
            let has_room_below = own.iter().any(|lower| above(lower, way.mark(lower, 1)) > 0);
            let until = if has_room_below { zone.marks.low } else { way.mark(zone, 1).max(zone.marks.low) };
            let count = above(zone, until).min(left);
            if count > 0 {
                zone.free -= count;
                left -= count;
                taken.push((way.to, zone.kind, count));
            }
        }
        let counters = self.counters.entry(way.to).or_default();
        counters.hit += pages - left;
        counters.local += pages - left;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::set::Scope;
    use crate::release::Release;
    use crate::zonelist::BuiltAt;
    use nodewise_machine::{MemPolicy, spec};

    fn policy(text: &str, allowed: &NodeSet) -> Policy {
        let policy: MemPolicy = text.parse().unwrap();
        Policy::from_mem_policy(&policy, Scope { allowed, max_nodes: 1024, release: Release::REFERENCE })
            .unwrap()
    }

    #[test]
    fn interleaved_pages_and_those_of_local_stay() {
        let all = NodeSet::from([0, 1]);
        for text in ["interleave:0-1", "weighted interleave:0-1", "local", "prefer:0"] {
            let policy = policy(text, &all);
            assert_eq!(target(&policy, NodeId::new(0), NodeId::new(1), &all), None, "{policy:?}");
        }
        assert_eq!(target(&Policy::DEFAULT, NodeId::new(0), NodeId::new(2), &all), None, "no memory there");
    }

    /// Pages of node 2 used by a CPU of node 0; what moved, and what is then free on node 0 above `kept`.
    struct Case {
        machine: &'static str,
        balancing: u32,
        policy: &'static str,
        is_hot: bool,
        release: Release,
        allowed: &'static [u32],
    }

    const PLAIN: Case = Case {
        machine: "3x(1c 4G)",
        balancing: 1,
        policy: "default",
        is_hot: false,
        release: Release::REFERENCE,
        allowed: &[0, 1, 2],
    };

    const TIERED: Case = Case { machine: "2x(1c 4G) (4G tier=22)", balancing: 2, ..PLAIN };

    /// Plays a case with this many pages: what was moved, and what is left above the high watermark.
    fn play(case: &Case, pages: u64) -> (Balanced, u64) {
        let machine = spec::machine(case.machine).unwrap();
        let mut memory = Memory::from_machine(&machine, BuiltAt::Boot, case.release);
        let allowed: NodeSet = case.allowed.iter().copied().map(NodeId::new).collect();
        let policy = policy(case.policy, &memory.nodes());
        let user = User { policy: &policy, cpu_node: NodeId::new(0), allowed: &allowed, is_hot: case.is_hot };
        let mut placed = Placed::from([((NodeId::new(2), ZoneKind::Normal), pages)]);
        let before = memory.free_of(NodeId::new(0));
        let balanced = memory.balance(
            &mut placed,
            &user,
            Balancing::from_setting(case.balancing),
            &Tiers::from_machine(&machine, case.release),
        );
        assert_eq!(placed.values().sum::<u64>(), pages);
        assert_eq!(before - memory.free_of(NodeId::new(0)), balanced.moved);
        assert_eq!(memory.counters()[&NodeId::new(0)].local, balanced.moved);
        let above = |zone: &ZoneState| zone.free.saturating_sub(zone.marks.high + zone.reserves[3]);
        (balanced, memory.zones().iter().filter(|zone| zone.node.number() == 0).map(above).max().unwrap_or(0))
    }

    fn check(case: &Case, moved: u64, promoted: u64) {
        assert_eq!(play(case, 5000).0, Balanced { moved, promoted });
    }

    #[test]
    fn pages_follow_the_cpu_where_their_policy_lets_them() {
        check(&PLAIN, 5000, 0);
        check(&Case { balancing: 0, ..PLAIN }, 0, 0);
        check(&Case { policy: "bind:0-2", ..PLAIN }, 0, 0);
        check(&Case { policy: "bind=balancing:0,2", ..PLAIN }, 5000, 0);
        check(&Case { policy: "bind=balancing:1-2", ..PLAIN }, 0, 0);
        check(&Case { allowed: &[1, 2], ..PLAIN }, 0, 0);
    }

    #[test]
    fn a_program_in_a_cpuset_of_one_node_is_left_out_since_7_0() {
        check(&Case { allowed: &[0], ..PLAIN }, 5000, 0);
        check(&Case { allowed: &[0], release: Release::new(7, 0), ..PLAIN }, 0, 0);
        check(&Case { release: Release::new(7, 0), ..PLAIN }, 5000, 0);
    }

    #[test]
    fn only_slow_pages_move_where_balancing_is_for_tiers() {
        check(&TIERED, 5000, 5000);
        check(&Case { machine: "3x(1c 4G)", ..TIERED }, 0, 0);
        check(&Case { balancing: 3, ..TIERED }, 5000, 5000);
        check(&Case { balancing: 1, ..TIERED }, 5000, 0);
    }

    #[test]
    fn pages_come_while_a_zone_is_above_its_high_watermark() {
        let (balanced, left) = play(&PLAIN, 1 << 30);
        assert!(balanced.moved > 800_000, "{balanced:?}");
        assert_eq!(left, 1);
    }

    #[test]
    fn slow_pages_that_are_not_hot_leave_a_gibibyte() {
        let (balanced, left) = play(&TIERED, 1 << 30);
        assert!(left > 1 << 18, "{left}");
        let (hot, left) = play(&Case { is_hot: true, ..TIERED }, 1 << 30);
        assert_eq!(left, 1);
        assert!(hot.moved > balanced.moved + (1 << 17), "{hot:?} {balanced:?}");
    }
}
