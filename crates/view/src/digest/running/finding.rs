//! The conclusions of a reading.

use nodewise_machine::check::node_names;
use nodewise_machine::{Bytes, NodeId, NodeSet};

use super::Running;
use crate::digest::counts::plural;

/// A process whose stranded memory is at least this share of its own is named first.
const MOSTLY: f64 = 0.5;

/// A conclusion.
#[derive(Clone, Debug, PartialEq)]
pub enum RunningFinding {
    /// The free memory of a node is below the watermark up to which the kernel reclaims.
    LowMemory { node: NodeId, free: Bytes, high_watermark: Bytes },
    /// Most memory of a process is on nodes where it does not run.
    Stranded { pid: u32, name: String, size: Bytes, share: f64, nodes: NodeSet, ran: bool },
    /// CPUs of other nodes take most interrupts of a device.
    Interrupts { device: String, node: NodeId, share: f64, per_second: f64 },
    /// The kernel has not initialised all memory of a node yet.
    Uninitialised { node: NodeId, size: Bytes, present: Option<Bytes> },
    /// A sum that must hold does not.
    Check { name: String },
}

impl RunningFinding {
    /// The name of its kind, for scripts.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::LowMemory { .. } => "low_memory",
            Self::Stranded { .. } => "stranded_memory",
            Self::Interrupts { .. } => "interrupts_on_other_nodes",
            Self::Uninitialised { .. } => "uninitialised_memory",
            Self::Check { .. } => "identity",
        }
    }

    /// The conclusion as a sentence. Foreign names in it are as they were read.
    pub fn sentence(&self) -> String {
        match self {
            Self::LowMemory { node, free, high_watermark } => format!(
                "node {node} is nearly full: {free} free, below its high watermark of {high_watermark}, so the kernel \
                 reclaims memory there"
            ),
            Self::Stranded { pid, name, size, share, nodes, ran } => {
                let where_ = node_names(nodes);
                let why = if *ran { "it did not run there" } else { "it may not run there" };
                format!("{pid} {name} has {size} of its memory ({}) on {where_}: {why}", percent(*share))
            }
            Self::Interrupts { device, node, share, per_second } => format!(
                "{device} is on node {node}, and CPUs of other nodes take {} of its {per_second:.0} interrupts per \
                 second",
                percent(*share)
            ),
            Self::Uninitialised { node, size, present } => {
                let of = present.map(|present| format!(" of {present} present")).unwrap_or_default();
                format!(
                    "node {node}: {size}{of} not yet initialised: the system's free memory includes it, the nodes' does \
                     not"
                )
            }
            Self::Check { name } => format!("a sum does not hold: {name}"),
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The conclusions, the weightiest kind first.
pub fn findings(running: &Running) -> Vec<RunningFinding> {
    let checks = running.checks.iter().filter(|check| !check.holds);
    let mut findings: Vec<RunningFinding> =
        checks.map(|check| RunningFinding::Check { name: check.name.clone() }).collect();
    findings.extend(running.nodes.iter().filter_map(|row| {
        let (free, high_watermark) = (row.memory?.free, row.high_watermark?);
        row.is_low().then_some(RunningFinding::LowMemory { node: row.node, free, high_watermark })
    }));
    findings.extend(running.processes.iter().filter_map(|row| {
        row.notably_stranded()?;
        let stranded =
            row.locality.as_ref()?.stranded.as_ref().filter(|stranded| stranded.share >= MOSTLY)?;
        Some(RunningFinding::Stranded {
            pid: row.identity.pid.number(),
            name: row.name.to_string(),
            size: stranded.size,
            share: stranded.share,
            nodes: stranded.nodes.clone(),
            ran: row.cpu.as_ref().is_some_and(|cpu| !cpu.used.is_zero())
                && matches!(row.window, nodewise_diagnose::Window::Interval(_)),
        })
    }));
    findings.extend(running.devices.iter().filter_map(|row| {
        Some(RunningFinding::Interrupts {
            share: row.notably_wrong(running.window)?,
            device: row.change.device.clone(),
            node: row.change.node?,
            per_second: running.rate(Some(row.change.count))?,
        })
    }));
    findings.extend(running.nodes.iter().filter_map(|row| {
        let size = row.size.filter(|size| size.uninitialised > Bytes::new(0))?;
        Some(RunningFinding::Uninitialised {
            node: row.node,
            size: size.uninitialised,
            present: size.present,
        })
    }));
    findings
}

/// The conclusion in one line: the first finding and the number of others, or what was looked at.
pub fn headline(running: &Running, findings: &[RunningFinding]) -> String {
    match findings {
        [only] => only.sentence(),
        [first, others @ ..] => {
            format!("{}; {} below", first.sentence(), plural(others.len(), "other finding"))
        }
        [] if running.nodes.is_empty() => "this kernel describes no NUMA node".to_owned(),
        [] => {
            let room = running.nodes.iter().any(|row| row.memory.is_some() && row.high_watermark.is_some());
            let places = running.processes.iter().any(|row| row.stranded_share().is_some());
            let seen = [
                (room, "no node is short of memory"),
                (places, "no process listed has most of its memory where it does not run"),
            ];
            let seen: Vec<&str> =
                seen.into_iter().filter(|(seen, _)| *seen).map(|(_, words)| words).collect();
            if seen.is_empty() {
                "no finding".to_owned()
            } else {
                format!("nothing unusual: {}", seen.join(", and "))
            }
        }
    }
}
