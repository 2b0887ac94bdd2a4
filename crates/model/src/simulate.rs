//! A machine over time: programs that start, take memory, give it back, move it, and end.
//!
//! Memory is handled as runs, so that a step costs what the walk costs and not what its pages are. What a
//! program asks for and the kernel has no page for is counted as missing: a real kernel reclaims and
//! swaps by then, and in the end kills, which the model does not play on.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use nodewise_machine::{MemPolicy, NodeId, NodeSet, PolicyMode};

use crate::errno::Errno;
use crate::memory::Memory;
use crate::migrate;
use crate::policy::interleave::{Place, Weights};
use crate::policy::set::{Policy, Scope};
use crate::release::Release;
use crate::walk::{Class, HUGE_ORDER, OutOfMemory, Outcome, Request};
use crate::zones::ZoneKind;

/// Where a program's first mapping is, as a page number: a place for which every turn begins anew.
const FIRST_PAGE: u64 = 1 << 28;

/// What a program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// It starts on a CPU of a node, inside a cpuset.
    Start {
        /// The node of the CPU.
        cpu_node: NodeId,
        /// Its own policy.
        policy: MemPolicy,
        /// The nodes that its cpuset allows.
        allowed: NodeSet,
    },
    /// It touches new memory.
    Allocate {
        /// What the memory is called.
        region: String,
        /// How many pages of 4 KiB.
        pages: u64,
        /// Whether the memory consists of huge pages where there are any.
        huge: bool,
        /// The policy of the memory, if it has one of its own.
        policy: Option<MemPolicy>,
    },
    /// It gives memory back.
    Free {
        /// What the memory is called.
        region: String,
    },
    /// It sets its own policy. Memory that is there stays.
    SetPolicy(MemPolicy),
    /// It goes to a CPU of another node.
    RunOn(NodeId),
    /// Its pages are moved as `migrate_pages(2)` does.
    Migrate {
        /// From these nodes.
        old: NodeSet,
        /// To these.
        new: NodeSet,
    },
    /// It ends.
    End,
}

/// Why a program cannot do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has not started.
    NotThere,
    /// It has started already.
    Started,
    /// It has no memory of this name.
    NoRegion(String),
    /// It has memory of this name already.
    Taken(String),
    /// The kernel refuses the call.
    Kernel(Errno),
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Step {
    /// The pages that were taken.
    pub outcome: Outcome,
    /// Pages of 4 KiB that were moved.
    pub moved: u64,
}

impl Step {
    /// What could not be given, and why.
    pub const fn missing(&self) -> Option<&OutOfMemory> {
        self.outcome.out_of_memory.as_ref()
    }
}

/// A program and its memory.
#[derive(Clone, Debug)]
struct Program {
    policy: Policy,
    cpu_node: NodeId,
    allowed: NodeSet,
    next_page: u64,
    /// Pages of 4 KiB by the zone that they are in.
    regions: BTreeMap<String, BTreeMap<(NodeId, ZoneKind), u64>>,
}

/// Programs on a machine.
#[derive(Clone, Debug)]
pub struct Simulation {
    memory: Memory,
    weights: Weights,
    max_nodes: u32,
    release: Release,
    programs: BTreeMap<String, Program>,
}

impl Simulation {
    /// A machine without programs.
    pub fn new(memory: Memory, weights: Weights, max_nodes: u32, release: Release) -> Self {
        Self { memory, weights, max_nodes, release, programs: BTreeMap::new() }
    }

    /// The memory as it is now.
    pub const fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The programs that run, each with its pages of 4 KiB by node.
    pub fn programs(&self) -> BTreeMap<&str, BTreeMap<NodeId, u64>> {
        let of = |program: &Program| {
            let mut nodes = BTreeMap::new();
            for ((node, _), pages) in program.regions.values().flatten() {
                *nodes.entry(*node).or_default() += pages;
            }
            nodes
        };
        self.programs.iter().map(|(name, program)| (name.as_str(), of(program))).collect()
    }

    /// Plays a step of a program.
    ///
    /// # Errors
    /// What cannot be done; nothing is changed then.
    pub fn play(&mut self, name: &str, act: &Act) -> Result<Step, Refused> {
        if let Act::Start { cpu_node, policy, allowed } = act {
            if self.programs.contains_key(name) {
                return Err(Refused::Started);
            }
            let allowed = allowed.intersection(&self.memory.nodes());
            let policy = self.accepted(policy, &allowed)?;
            let (cpu_node, regions) = (*cpu_node, BTreeMap::new());
            let program = Program { policy, cpu_node, allowed, next_page: FIRST_PAGE, regions };
            self.programs.insert(name.to_owned(), program);
            return Ok(Step::default());
        }
        let mut program = self.programs.remove(name).ok_or(Refused::NotThere)?;
        if *act == Act::End {
            for region in program.regions.values() {
                self.give_back(region);
            }
            return Ok(Step::default());
        }
        let result = self.act(&mut program, act);
        self.programs.insert(name.to_owned(), program);
        result
    }

    fn act(&mut self, program: &mut Program, act: &Act) -> Result<Step, Refused> {
        match act {
            Act::Allocate { region, pages, huge, policy } => {
                if program.regions.contains_key(region) {
                    return Err(Refused::Taken(region.clone()));
                }
                let own =
                    policy.as_ref().map(|policy| self.accepted(policy, &program.allowed)).transpose()?;
                let (outcome, zones) = self.take(program, own.as_ref(), *pages, *huge);
                program.regions.insert(region.clone(), zones);
                return Ok(Step { outcome, moved: 0 });
            }
            Act::Free { region } => {
                let zones =
                    program.regions.remove(region).ok_or_else(|| Refused::NoRegion(region.clone()))?;
                self.give_back(&zones);
            }
            Act::SetPolicy(policy) => program.policy = self.accepted(policy, &program.allowed)?,
            Act::RunOn(node) => program.cpu_node = *node,
            Act::Migrate { old, new } => {
                migrate::check_migration(new, &program.allowed).map_err(Refused::Kernel)?;
                let plan = migrate::moves(old, &new.intersection(&program.allowed));
                let moved = plan.iter().map(|(from, to)| self.migrate(program, *from, *to)).sum();
                return Ok(Step { moved, ..Step::default() });
            }
            Act::Start { .. } | Act::End => {}
        }
        Ok(Step::default())
    }

    fn accepted(&self, policy: &MemPolicy, allowed: &NodeSet) -> Result<Policy, Refused> {
        let scope = Scope { allowed, max_nodes: self.max_nodes, release: self.release };
        Policy::of(policy, scope).map_err(Refused::Kernel)
    }

    /// Takes pages for a program; gives what became of it, and the pages by zone.
    fn take(
        &mut self,
        program: &mut Program,
        own: Option<&Policy>,
        pages: u64,
        huge: bool,
    ) -> (Outcome, BTreeMap<(NodeId, ZoneKind), u64>) {
        let order = if huge { HUGE_ORDER } else { 0 };
        let size = 1 << order;
        program.next_page = program.next_page.next_multiple_of(size);
        let request = Request {
            policy: own.unwrap_or(&program.policy),
            weights: &self.weights,
            cpu_node: program.cpu_node,
            allowed: &program.allowed,
            pages: pages.div_ceil(size),
            order,
            place: Place::Address(program.next_page << 12),
            class: Class::User,
        };
        let outcome = self.memory.allocate(&request);
        program.next_page = program.next_page.saturating_add(pages);
        let zones = outcome.zones().into_iter().map(|(node, kind, pages)| ((node, kind), pages)).collect();
        (outcome, zones)
    }

    fn give_back(&mut self, zones: &BTreeMap<(NodeId, ZoneKind), u64>) {
        for ((node, kind), pages) in zones {
            self.memory.free(*node, *kind, *pages);
        }
    }

    /// Moves what a program has on a node to another, as far as there is room; gives the pages moved.
    fn migrate(&mut self, program: &mut Program, from: NodeId, to: NodeId) -> u64 {
        let only = Policy { mode: PolicyMode::Bind, nodes: NodeSet::from_iter([to]), ..Policy::DEFAULT };
        let mut moved = 0;
        for region in program.regions.values_mut() {
            let there: Vec<(ZoneKind, u64)> = region
                .iter()
                .filter(|((node, _), _)| *node == from)
                .map(|((_, kind), pages)| (*kind, *pages))
                .collect();
            for (kind, pages) in there {
                let request = Request {
                    policy: &only,
                    weights: &self.weights,
                    cpu_node: program.cpu_node,
                    allowed: &program.allowed,
                    pages,
                    order: 0,
                    place: Place::Address(0),
                    class: Class::User,
                };
                let taken = self.memory.allocate(&request).zones();
                let count: u64 = taken.iter().map(|(.., pages)| pages).sum();
                for (node, kind, pages) in taken {
                    *region.entry((node, kind)).or_default() += pages;
                }
                self.memory.free(from, kind, count);
                if let Some(left) = region.get_mut(&(from, kind)) {
                    *left -= count;
                }
                moved += count;
            }
            region.retain(|_, pages| *pages > 0);
        }
        moved
    }
}
