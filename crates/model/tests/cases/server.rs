//! The four-node server most cases were recorded on, and the shortest ways to ask about it.

use nodewise_machine::{Machine, MemPolicy, NodeId, NodeSet, spec};
use nodewise_model::oracle::Task;
use nodewise_model::oracle::task::Surroundings;
use nodewise_model::policy::interleave::InterleavePosition;
use nodewise_model::policy::set::Scope;
use nodewise_model::walk::{Class, Outcome, Request};
use nodewise_model::{BuiltAt, Memory, Policy, Release, Weights};

/// Two packages with two nodes each; a CPU and 512 MiB on every node.
pub fn machine() -> Machine {
    spec::machine("2x(2x(1c 512M)); dist=11,20").expect("the spec is right")
}

pub fn n(number: u32) -> NodeId {
    NodeId::new(number)
}

pub fn numbers(nodes: &[NodeId]) -> Vec<u32> {
    nodes.iter().map(|node| node.number()).collect()
}

pub fn all() -> NodeSet {
    NodeSet::from([0, 1, 2, 3])
}

pub fn scope(allowed: &NodeSet) -> Scope<'_> {
    Scope { allowed, max_nodes: 1024, release: Release::REFERENCE }
}

/// A policy in the kernel's words, set without a cpuset.
pub fn policy(text: &str) -> Policy {
    let policy: MemPolicy = text.parse().expect("the kernel's words");
    Policy::from_mem_policy(&policy, scope(&all())).expect("the kernel takes it")
}

pub fn memory() -> Memory {
    Memory::from_machine(&machine(), BuiltAt::Boot, Release::REFERENCE)
}

/// A program without memory, on a CPU of node 0.
pub fn task() -> Task {
    let around = Surroundings::new(&machine(), Release::REFERENCE);
    Task::new(around, n(0))
}

/// A request for small pages of a program.
pub fn request<'a>(
    policy: &'a Policy,
    weights: &'a Weights,
    cpu_node: u32,
    allowed: &'a NodeSet,
    pages: u64,
) -> Request<'a> {
    let place = InterleavePosition::Address(0x100_0000_0000);
    Request { policy, weights, cpu_node: n(cpu_node), allowed, pages, order: 0, place, class: Class::User }
}

/// The node of each page, touched one after the other.
pub fn nodes_of_pages(memory: &mut Memory, request: Request<'_>) -> Vec<u32> {
    let size = 1 << request.order;
    let one = |at: u64| Request { pages: 1, place: request.place.after(at * size), ..request };
    (0..request.pages).map(|at| first_node(&memory.allocate(&one(at)))).collect()
}

fn first_node(outcome: &Outcome) -> u32 {
    outcome.nodes().first().expect("the page is given").0.number()
}
