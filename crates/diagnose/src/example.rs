//! Samples made by hand, for tests.

use std::sync::Arc;

use nodewise_machine::{Bytes, CpuId, MeminfoField, MeminfoValue, NodeId};
use nodewise_source::process::Pid;
use nodewise_source::sample::{Identity, Moment, NodeSample, ProcessSample, TaskSample};

/// A node with these CPUs.
pub(crate) fn node(number: u32, cpus: &[u32]) -> NodeSample {
    let mut node = NodeSample::new(NodeId::new(number));
    node.cpus = cpus.iter().copied().map(CpuId::new).collect();
    node
}

/// A line of `nodeN/meminfo`.
pub(crate) fn size(name: &str, size: Bytes) -> MeminfoField {
    MeminfoField { name: name.to_owned(), value: MeminfoValue::Size(size) }
}

/// A process of one thread, read when it had this CPU time.
pub(crate) fn process(pid: u32, cpu_ticks: u64) -> ProcessSample {
    let identity = Identity { pid: Pid::new(pid), started_ticks: 5 };
    ProcessSample { cpu_ticks, name: "x".into(), ..ProcessSample::new(identity) }
}

/// The process, read at the moment of a sample.
pub(crate) fn at(seconds: u64, process: ProcessSample) -> Arc<ProcessSample> {
    Arc::new(ProcessSample { polled: moment(seconds), ..process })
}

/// A thread.
pub(crate) fn task(tid: u32, cpu_ticks: u64) -> TaskSample {
    TaskSample {
        identity: Identity { pid: Pid::new(tid), started_ticks: 5 },
        name: "x".into(),
        cpu_ticks,
        run: None,
        processor: None,
        allowed: None,
        cpu_changes: None,
        balancing: None,
    }
}

/// A moment this many seconds after boot.
pub(crate) fn moment(seconds: u64) -> Moment {
    let since_boot = std::time::Duration::from_secs(seconds);
    Moment { since_boot, wall: since_boot + std::time::Duration::from_secs(1_700_000_000) }
}
