//! The program whose pages are looked at: it takes memory, touches it, and says where it is.

use nodewise_machine::Bytes;
use nodewise_syscall::{NodeBuffer, PageKind, PageLocation, Task, affinity, mempolicy, pages};
use serde_json::json;

/// `--probe KIB [small|huge]`: prints the address, the node of every page, CPUs and policy.
pub fn run(words: &[String]) {
    let kib: u64 = words[0].parse().expect("a number of KiB");
    let kind = if words.get(1).is_some_and(|word| word == "huge") {
        PageKind::TransparentHuge
    } else {
        PageKind::Small
    };
    let buffer = NodeBuffer::new(Bytes::from_kib(kib), kind, None).expect("memory for the probe");
    let step = pages::page_size();
    let mut nodes = Vec::new();
    let addresses = pages::addresses(buffer.address(), buffer.length().get() as usize, step);
    pages::locate(Task::CURRENT, addresses, |_, location| match location {
        PageLocation::Node(node) => nodes.push(i64::from(node.number())),
        _ => nodes.push(-1),
    })
    .expect("pages can be located");
    let cpus = affinity::cpus(Task::CURRENT).expect("the binding can be read");
    let policy = mempolicy::thread_policy().expect("the policy can be read");
    let (cpu, node) = affinity::current_cpu().expect("the CPU can be read");
    let result = json!({
        "address": buffer.address(),
        "nodes": nodes,
        "cpus": cpus.to_string(),
        "policy": policy.to_string(),
        "cpu": cpu.number(),
        "cpu_node": node.number(),
    });
    println!("{result}");
}
