//! Huge pages that are asked for while a node is full.

use nodewise_machine::{Bytes, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_model::walk::HUGE_ORDER;
use nodewise_model::{Memory, ZoneKind};
use nodewise_syscall::{NodeBuffer, PageKind, Task, pages};

use super::super::model::{Drawn, any_request, first_seen, memory, release};
use crate::nodewise::Context;

/// Huge pages that are asked for, one by one, in each guest.
const HUGE_REQUESTS: u64 = 40;
const BLOCK_KIB: u64 = 4 << HUGE_ORDER;

/// Memory that fills a node, first with huge pages and then with small ones, until neither is to be had.
fn fill(node: NodeId, free_kib: u64) -> Result<[NodeBuffer; 2], String> {
    let policy = MemPolicy::new(PolicyMode::Preferred, NodeSet::from_iter([node]));
    let filled = |kind: PageKind, step: usize| -> Result<NodeBuffer, String> {
        let size = Bytes::from_kib(free_kib + 2 * BLOCK_KIB);
        let mut buffer = NodeBuffer::reserve(size, kind, Some(&policy)).map_err(|error| error.to_string())?;
        for at in (0..buffer.length().get() as usize).step_by(step) {
            buffer.as_mut_slice()[at] = 1;
            let last = [buffer.address() + at + step - pages::page_size()];
            let there = pages::count(Task::CURRENT, last).map_err(|error| error.to_string())?;
            if there.on(node) == 0 {
                break;
            }
        }
        Ok(buffer)
    };
    Ok([filled(PageKind::TransparentHuge, (BLOCK_KIB << 10) as usize)?, filled(PageKind::Small, 4096)?])
}

/// The same memory with a node that has no huge page to give, though as many small ones as can be, and with
/// one that has some.
fn without_and_with(now: &Memory, node: NodeId, context: &Context) -> [Memory; 2] {
    let changed = |room: bool| {
        let mut zones = now.zones().to_vec();
        for zone in zones.iter_mut().filter(|zone| zone.node == node) {
            let reserve = zone.reserves[ZoneKind::Movable as usize];
            let least = zone.marks.min + reserve + (1 << HUGE_ORDER) - 1;
            zone.free =
                if room { zone.marks.low + reserve + (2 << HUGE_ORDER) } else { zone.free.min(least) };
        }
        Memory::new(zones, now.orders().clone(), release(context))
    };
    [changed(false), changed(true)]
}

/// Huge pages that are asked for while a node is full come from the node that the model says, be it another.
/// Whether the full one has a block of 2 MiB again by then is chance: the lists of the CPUs give pages back.
pub fn huge_pages(context: &Context) -> Result<(), String> {
    let nodes: Vec<NodeId> = context.seen.nodes_with_memory().iter().collect();
    let [.., _, node] = nodes[..] else { return Ok(()) };
    let _filled = fill(node, memory(context)?.free_of(node) * 4)?;
    let [without, with] = without_and_with(&memory(context)?, node, context);
    let mut random = context.random(4);
    for _ in 0..HUGE_REQUESTS {
        let drawn = Drawn { huge: true, kib: BLOCK_KIB, ..any_request(&mut random, context) };
        let ours = |memory: &Memory, address: u64| drawn.nodes_of_pages(context, memory, address);
        if ours(&without, 0)?.len() < 1 << HUGE_ORDER {
            // A program that may use no other node would be ended.
            continue;
        }
        let touched = drawn.touch(context)?;
        let (without, with) = (ours(&without, touched.address)?, ours(&with, touched.address)?);
        if touched.nodes != without && touched.nodes != with {
            return Err(format!(
                "{drawn:?} with node {node} full: pages are on {:?}, the model says {:?}, or with room {:?}",
                first_seen(touched.nodes.iter().copied()),
                first_seen(without.iter().copied()),
                first_seen(with.iter().copied())
            ));
        }
    }
    Ok(())
}
