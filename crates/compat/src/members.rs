//! Members that strings of nodes and CPUs can name on this machine.
//!
//! | string of | may be named | `+` counts, `all` is | `!` inverts within |
//! |---|---|---|---|
//! | nodes for memory | nodes that the cpuset allows | the same | the nodes that are there |
//! | nodes for CPUs | these, and nodes with CPUs that it allows | nodes with CPUs that it allows | the nodes that are there |
//! | CPUs | CPUs that it allows | the same | the CPUs that are there |
//! | any of them with `--all` | what is there | the same | the same |
//!
//! The originals know one set of nodes for both purposes, and invert the numbers below the count of
//! what is there ([`Others`]): with [`Settings::strict`] this module does too.

use std::cell::RefCell;
use std::collections::BTreeMap;

use nodewise_machine::id::Id;
use nodewise_machine::{CpuId, CpuSet, IdSet, NodeId, NodeSet};
use nodewise_notation::device::Device;
use nodewise_notation::number::Base;
use nodewise_notation::string::Others;
use nodewise_source::facts;
use nodewise_source::tree::Tree;

use crate::device;
use crate::kernel::Kernel;
use crate::nodestring::{Invalid, Members};
use crate::release::{Release, Settings};
use crate::warning::Warnings;

/// The range of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Allowed,
    Everything,
}

/// The purpose of a set of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Memory,
    Cpus,
}

/// The CPUs of nodes, each node's file read once.
#[derive(Debug)]
pub struct NodeCpus<'t> {
    tree: &'t Tree,
    read: RefCell<BTreeMap<NodeId, Option<CpuSet>>>,
}

impl<'t> NodeCpus<'t> {
    /// Those of a machine.
    pub fn new(tree: &'t Tree) -> Self {
        Self { tree, read: RefCell::default() }
    }

    /// The CPUs of a node; `None` when they cannot be read.
    pub fn cpus(&self, node: NodeId) -> Option<CpuSet> {
        let mut read = self.read.borrow_mut();
        read.entry(node).or_insert_with(|| facts::cpus_of(self.tree, node).ok().flatten()).clone()
    }

    /// Those of the nodes that have one of the CPUs.
    pub fn nodes_with(&self, nodes: &NodeSet, cpus: &CpuSet) -> NodeSet {
        let has = |node: &NodeId| self.cpus(*node).is_some_and(|theirs| !theirs.is_disjoint(cpus));
        nodes.iter().filter(has).collect()
    }
}

/// The nodes that a set can be made of.
#[derive(Debug)]
pub struct Nodes<'t> {
    tree: &'t Tree,
    strict: bool,
    release: Release,
    nameable: NodeSet,
    counted: NodeSet,
    there: NodeSet,
}

impl<'t> Nodes<'t> {
    /// Looks at the machine and at this process. Where the kernel does not say what is allowed,
    /// because the call is blocked, the process's status does.
    pub fn new(
        node_cpus: &NodeCpus<'t>,
        kernel: &dyn Kernel,
        settings: Settings,
        scope: Scope,
        purpose: Purpose,
        cpus: &CpuSet,
    ) -> Self {
        let tree = node_cpus.tree;
        let there = facts::nodes(tree).unwrap_or_default();
        let Settings { strict, release, .. } = settings;
        if scope == Scope::Everything {
            let up_to = |last| NodeSet::range(NodeId::new(0), last);
            let all = if strict { there.last().map(up_to).unwrap_or_default() } else { there.clone() };
            return Self { tree, strict, release, nameable: all.clone(), counted: all, there };
        }
        let allowed = allowed_nodes(tree, kernel);
        if strict || purpose == Purpose::Memory {
            return Self { tree, strict, release, nameable: allowed.clone(), counted: allowed, there };
        }
        let runnable = node_cpus.nodes_with(&there, cpus);
        let counted = if runnable.is_empty() { allowed.clone() } else { runnable.clone() };
        Self { tree, strict, release, nameable: allowed.union(&runnable), counted, there }
    }

    /// How many nodes there are, as the originals count: 2.0.16 only those with memory.
    fn counted_by_the_originals(&self) -> usize {
        let has_memory = |node: &NodeId| {
            let total = facts::memory_of(self.tree, *node).ok().flatten().and_then(|memory| memory.total);
            total.is_some_and(|total| total.get() > 0)
        };
        match self.release {
            Release::V2_0_16 => self.there.iter().filter(has_memory).count(),
            Release::V2_0_19 => self.there.len(),
        }
    }

    /// The nodes that are there.
    pub fn there(&self) -> &NodeSet {
        &self.there
    }
}

/// The nodes that the cpuset allows.
pub fn allowed_nodes(tree: &Tree, kernel: &dyn Kernel) -> NodeSet {
    let status = || facts::allowed(tree).ok()?.nodes;
    kernel.allowed_nodes().ok().or_else(status).unwrap_or_else(|| facts::nodes(tree).unwrap_or_default())
}

/// Whether the originals cannot read the CPUs of a node: their masks are as wide as the kernel's own
/// (of 1,024 CPUs at least), and a simulated or captured machine can be wider.
pub fn is_too_wide(tree: &Tree, cpus: &CpuSet) -> bool {
    let Some(last) = cpus.last().filter(|last| last.number() >= 1024) else { return false };
    let possible = facts::possible_cpus(tree).ok().flatten().and_then(|possible| possible.last());
    possible.is_none_or(|possible| last > possible)
}

/// A number as an `int` of C, negative ones as their complement.
fn c_number(number: u64) -> u64 {
    i64::from(number as i32) as u64
}

/// Among which numbers `!` takes the others.
fn others(strict: bool) -> Others {
    if strict { Others::BelowTheCount } else { Others::Existing }
}

/// A set with its members below `count` exchanged for the others there; what is above stays.
fn invert_below<I: Id>(set: &IdSet<I>, count: usize) -> IdSet<I> {
    let Some(last) = u32::try_from(count).ok().and_then(|count| count.checked_sub(1)) else {
        return set.clone();
    };
    let below = IdSet::range(I::new(0), I::new(last));
    set.difference(&below).union(&below.difference(set))
}

impl Members<NodeId> for Nodes<'_> {
    fn may_name(&self, id: NodeId) -> bool {
        self.nameable.contains(id)
    }

    fn all(&self) -> &NodeSet {
        &self.counted
    }

    fn inverse(&self, set: &NodeSet) -> NodeSet {
        match others(self.strict) {
            Others::BelowTheCount => invert_below(set, self.counted_by_the_originals()),
            Others::Usable => self.nameable.difference(set),
            Others::Existing if self.there.is_empty() => self.nameable.difference(set),
            Others::Existing => self.there.difference(set),
        }
    }

    fn base(&self) -> Base {
        self.release.base()
    }

    fn counts(&self, number: u64) -> u64 {
        if self.strict { c_number(number) } else { number }
    }

    /// 2.0.16 prints an `int`.
    fn shown(&self, number: u64) -> i64 {
        match self.release {
            Release::V2_0_16 => i64::from(number as i32),
            Release::V2_0_19 => number as i64,
        }
    }

    fn beyond(&self) -> u64 {
        facts::node_mask_bits(self.tree).ok().flatten().unwrap_or(1024) as u64
    }

    fn device(&self, device: Device<'_>, warnings: &mut Warnings<'_>) -> Option<Result<NodeSet, Invalid>> {
        device::nodes(device, self.tree, &self.there, self.strict, warnings)
    }
}

/// The CPUs that a set can be made of.
#[derive(Debug)]
pub struct Cpus {
    strict: bool,
    release: Release,
    nameable: CpuSet,
    there: CpuSet,
}

impl Cpus {
    /// Looks at the machine; `allowed` are the CPUs that this process was started with.
    pub fn new(tree: &Tree, settings: Settings, scope: Scope, allowed: &CpuSet) -> Self {
        let there = facts::present_cpus(tree).ok().flatten().unwrap_or_else(|| allowed.clone());
        let nameable = match scope {
            Scope::Allowed => allowed.clone(),
            Scope::Everything => there.clone(),
        };
        Self { strict: settings.strict, release: settings.release, nameable, there }
    }
}

impl Members<CpuId> for Cpus {
    fn may_name(&self, id: CpuId) -> bool {
        self.nameable.contains(id)
    }

    fn all(&self) -> &CpuSet {
        &self.nameable
    }

    fn inverse(&self, set: &CpuSet) -> CpuSet {
        match others(self.strict) {
            Others::BelowTheCount => invert_below(set, self.there.len()),
            Others::Usable => self.nameable.difference(set),
            Others::Existing => self.there.difference(set),
        }
    }

    fn base(&self) -> Base {
        self.release.base()
    }

    fn counts(&self, number: u64) -> u64 {
        if self.strict { c_number(number) } else { number }
    }

    fn shown(&self, number: u64) -> i64 {
        number as i64
    }

    fn beyond(&self) -> u64 {
        u64::MAX
    }

    fn device(&self, _: Device<'_>, _: &mut Warnings<'_>) -> Option<Result<NodeSet, Invalid>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(set: &[u32], count: usize, expected: &str) {
        let set: NodeSet = set.iter().map(|number| NodeId::new(*number)).collect();
        assert_eq!(invert_below(&set, count).to_string(), expected);
    }

    #[test]
    fn the_originals_invert_numbers_below_the_count() {
        check(&[0], 4, "1-3");
        check(&[0], 1, "");
        // Without nodes nothing is inverted.
        check(&[0], 0, "0");
        // Nodes 0, 2 and 5 are three, so 5 stays what it was.
        check(&[0, 5], 3, "1-2,5");
    }
}
