//! Watermarks that the kernel raises for a while, since memory is fragmented.

use std::os::unix::net::UnixDatagram;

use nodewise_conformance::kernel;
use nodewise_machine::{Bytes, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_syscall::{NodeBuffer, PageKind};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::fragmented::PIECE;
use super::moving::{free, two};
use super::pools::run_on;
use super::same;
use crate::guest::FIGURE;
use crate::nodewise::Context;
use crate::zoneinfo::{self, Zone};

/// Pages by which watermarks of the node are raised, at least: as many make scripts of page cache differ.
const ENOUGH: u64 = 2560;
/// kswapd may lower them before all memory is free again.
const TRIES: usize = 8;
/// Memory that is left free, and the most sockets, which take about 2 KiB each.
const ROOM: Bytes = Bytes::from_mib(64);
const SOCKETS: u64 = 100_000;
/// Sockets that are made at once.
const AT_ONCE: u64 = 100;

/// Scripts of page cache begin with lowered watermarks, which are the ones from before they were raised.
pub fn lowered(context: &Context) -> Result<(), String> {
    let (node, _) = two(context)?;
    let marks =
        || -> Result<Vec<_>, String> { Ok(zoneinfo::zones()?.iter().map(|zone| zone.state.marks).collect()) };
    kernel::lower_watermarks()?;
    let before = marks()?;
    let tries = (0..TRIES).map(|_| raise(context, node));
    let raised = tries.into_iter().find(|raised| !matches!(raised, Ok(raised) if *raised < ENOUGH));
    let raised = raised.ok_or_else(|| format!("no {ENOUGH} pages more in {TRIES} tries"))??;
    println!("{FIGURE}watermarks of node {node} were raised by {raised} pages");
    kernel::lower_watermarks()?;
    same("pages by which watermarks are raised", raised_by(node)?, 0)?;
    same("watermarks", marks()?, before)
}

/// Has the kernel raise the watermarks of a node: memory for sockets, which cannot move, comes out of small pieces of memory that can.
/// The pages by which they are raised when all of it is free again.
fn raise(context: &Context, node: NodeId) -> Result<u64, String> {
    let limit = Rlimit { current: Some(2 * SOCKETS), maximum: Some(2 * SOCKETS) };
    setrlimit(Resource::Nofile, limit).map_err(|error| format!("open files: {error}"))?;
    let bound = MemPolicy::new(PolicyMode::Bind, NodeSet::from_iter([node]));
    let count = free(node)?.get().saturating_sub(ROOM.get()) / PIECE.get();
    let piece = |_| NodeBuffer::new(PIECE, PageKind::Small, Some(&bound)).map_err(|error| error.to_string());
    let pieces = (0..count).map(piece).collect::<Result<Vec<_>, String>>()?;
    let kept: Vec<NodeBuffer> = pieces.into_iter().step_by(2).collect();
    let make = || -> Result<(), String> {
        run_on(context, node)?;
        let mut sockets = Vec::new();
        while (sockets.len() as u64) < SOCKETS && raised_by(node)? < ENOUGH {
            for _ in 0..AT_ONCE {
                sockets.push(UnixDatagram::unbound().map_err(|error| format!("a socket: {error}"))?);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| scope.spawn(make).join()).map_err(|_| "a thread panicked")??;
    drop(kept);
    raised_by(node)
}

/// The pages by which watermarks of a node are raised, in all zones.
fn raised_by(node: NodeId) -> Result<u64, String> {
    let zones = zoneinfo::zones()?;
    Ok(zones.iter().filter(|zone| zone.state.node == node).map(Zone::raised).sum())
}
