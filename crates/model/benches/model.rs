//! How long the model takes, and how that grows. `cargo bench -p nodewise-model` prints a table.

#![expect(clippy::print_stdout, reason = "a benchmark tells its figures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use nodewise_machine::{Machine, MemPolicy, NodeId, NodeSet, spec};
use nodewise_model::policy::interleave::Place;
use nodewise_model::policy::set::Scope;
use nodewise_model::walk::{Class, Request};
use nodewise_model::{BuiltAt, FallbackOrders, Memory, Policy, Release, Weights};

/// The least of several runs: what the work costs when nothing else is in the way.
fn least(runs: u32, mut work: impl FnMut()) -> Duration {
    let timed = (0..runs).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    timed.min().unwrap_or_default()
}

fn machine(text: &str) -> Machine {
    spec::machine(text).expect("the spec is right")
}

fn policy(text: &str, allowed: &NodeSet) -> Policy {
    let policy: MemPolicy = text.parse().expect("the kernel's words");
    let scope = Scope { allowed, max_nodes: 1024, release: Release::REFERENCE };
    Policy::of(&policy, scope).expect("the kernel takes it")
}

/// Pages of a program on a CPU of node 0.
fn request<'a>(policy: &'a Policy, weights: &'a Weights, allowed: &'a NodeSet, pages: u64) -> Request<'a> {
    let place = Place::Address(1 << 40);
    let cpu_node = NodeId::new(0);
    Request { policy, weights, cpu_node, allowed, pages, order: 0, place, class: Class::User }
}

/// One request of some size under each policy, on eight nodes that it nearly fills.
fn one_request() {
    let weights: Weights = (0..8).map(|node| (NodeId::new(node), node + 1)).collect();
    for gib in [64u64, 256, 1024] {
        let machine = machine(&format!("8x(16c {}G)", gib / 8 + 8));
        let allowed = machine.nodes_with_memory();
        let memory = Memory::of(&machine, BuiltAt::Boot, Release::REFERENCE);
        for text in [
            "default",
            "prefer:3",
            "bind:0-7",
            "prefer (many):2-5",
            "interleave:0-7",
            "weighted interleave:0-7",
        ] {
            let policy = policy(text, &allowed);
            let took = least(20, || {
                black_box(memory.clone().allocate(&request(&policy, &weights, &allowed, gib << 18)));
            });
            println!("{gib:>5} GiB of 4 KiB pages, 8 nodes, {text:<24} {took:>10.1?}");
        }
    }
}

/// Many requests of 16 pages each.
fn many_requests() {
    let machine = machine("8x(16c 512G)");
    let allowed = machine.nodes_with_memory();
    for count in [10_000u64, 100_000, 1_000_000] {
        for text in ["default", "interleave:0-7"] {
            let policy = policy(text, &allowed);
            let weights = Weights::new();
            let took = least(1, || {
                let mut memory = Memory::of(&machine, BuiltAt::Boot, Release::REFERENCE);
                for _ in 0..count {
                    black_box(memory.allocate(&request(&policy, &weights, &allowed, 16)));
                }
            });
            println!("{count:>9} requests of 16 pages, 8 nodes, {text:<16} {took:>10.1?}");
        }
    }
}

fn orders() {
    for nodes in [16, 64, 256, 1024] {
        let machine = machine(&format!("{nodes}x(1c 1G)"));
        let took = least(3, || {
            black_box(FallbackOrders::of(&machine, BuiltAt::Boot));
        });
        println!("fallback orders of {nodes:>4} nodes {took:>10.1?}");
    }
}

fn main() {
    one_request();
    many_requests();
    orders();
}
