//! A process of a sample as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuId, NodeId};
use serde::{Deserialize, Serialize};

use super::{Fault, clocks, cpu, cpus, earlier, moment, nanos, node, nodes};
use crate::process::Pid;
use crate::sample::{
    Allowed, BalancingFaults, BalancingSample, Denied, Identity, Moment, PageMethod, PageSample, PageShare,
    ProcessSample, TaskSample,
};

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct ProcessFrame {
    /// When it was read; left out where that is the moment of the sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    polled_us: Option<[u64; 2]>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
    state: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    kernel_thread: bool,
    threads: u32,
    cpu: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    processor: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident: Option<u64>,
    #[serde(skip_serializing_if = "is_zero")]
    major_faults: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<AllowedFrame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tasks: Option<BTreeMap<String, TaskFrame>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<PageFrame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    denied: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct AllowedFrame {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct TaskFrame {
    name: String,
    cpu: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    processor: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<AllowedFrame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_changes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    balancing: Option<BalancingFrame>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct BalancingFrame {
    #[serde(skip_serializing_if = "Option::is_none")]
    scans: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    migrated: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred: Option<u32>,
    /// Private and shared faults by node.
    faults: BTreeMap<u32, [u64; 2]>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct PageFrame {
    boot_us: u64,
    wall_us: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    drawn: Option<u32>,
    nodes: BTreeMap<u32, ShareFrame>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct ShareFrame {
    size: u64,
    /// Left out where it is the size.
    #[serde(skip_serializing_if = "Option::is_none")]
    low: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    own: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl From<&Allowed> for AllowedFrame {
    fn from(allowed: &Allowed) -> Self {
        Self {
            cpus: allowed.cpus.as_ref().map(ToString::to_string),
            nodes: allowed.nodes.as_ref().map(ToString::to_string),
        }
    }
}

impl TryFrom<AllowedFrame> for Allowed {
    type Error = Fault;

    fn try_from(frame: AllowedFrame) -> Result<Self, Fault> {
        Ok(Self {
            cpus: frame.cpus.as_deref().map(cpus).transpose()?,
            nodes: frame.nodes.as_deref().map(nodes).transpose()?,
        })
    }
}

/// `PID.TICKS`: a task, and not another one that has its number later.
pub(in crate::record) fn key(identity: Identity) -> String {
    format!("{}.{}", identity.pid, identity.started_ticks)
}

pub(super) fn identity(key: &str) -> Result<Identity, Fault> {
    let parts = key.split_once('.').and_then(|(pid, ticks)| Some((pid.parse().ok()?, ticks.parse().ok()?)));
    let (pid, started_ticks) =
        parts.ok_or_else(|| format!("{key:?}: expected the number of a process, a dot and its start"))?;
    Ok(Identity { pid: Pid::new(pid), started_ticks })
}

impl ProcessFrame {
    pub(super) fn new(process: &ProcessSample, now: Moment) -> Self {
        let tasks = |tasks: &Vec<TaskSample>| {
            tasks.iter().map(|task| (key(task.identity), TaskFrame::from(task))).collect_map()
        };
        Self {
            polled_us: earlier(process.polled, now),
            name: process.name.to_string(),
            parent: process.parent.map(Pid::number),
            user: process.user,
            state: process.state.to_string(),
            kernel_thread: process.kernel_thread,
            threads: process.threads,
            cpu: process.cpu_ticks,
            processor: process.processor.map(CpuId::number),
            resident: process.resident.map(Bytes::get),
            major_faults: process.major_faults,
            allowed: process.allowed.as_ref().map(AllowedFrame::from),
            group: process.group.as_deref().map(str::to_owned),
            tasks: process.tasks.as_ref().map(tasks),
            pages: process.pages.as_ref().map(PageFrame::from),
            denied: process.denied.map(|denied| word(denied).to_owned()),
        }
    }
}

fn word(denied: Denied) -> &'static str {
    match denied {
        Denied::Rights => "rights",
        Denied::NoFile => "no file",
        Denied::Unreadable => "unreadable",
    }
}

fn denied(text: &str) -> Result<Denied, Fault> {
    let all = [Denied::Rights, Denied::NoFile, Denied::Unreadable];
    let found = all.into_iter().find(|denied| word(*denied) == text);
    found.ok_or_else(|| format!("{text:?}: expected rights, no file, or unreadable"))
}

/// Texts that many processes of a recording share.
#[derive(Debug, Default)]
pub(in crate::record) struct Texts(BTreeSet<Arc<str>>);

impl Texts {
    pub(super) fn share(&mut self, text: String) -> Arc<str> {
        if let Some(known) = self.0.get(text.as_str()) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.0.insert(Arc::clone(&text));
        text
    }
}

impl ProcessFrame {
    pub(super) fn into_sample(
        self,
        identity: Identity,
        now: Moment,
        texts: &mut Texts,
    ) -> Result<ProcessSample, Fault> {
        let mut state = self.state.chars();
        let state = match (state.next(), state.next()) {
            (Some(state), None) => state,
            _ => return Err(format!("state {:?}: expected one letter", self.state)),
        };
        let mut task = |(id, task): (String, TaskFrame)| task.into_sample(self::identity(&id)?, texts);
        let tasks = self.tasks.map(|tasks| tasks.into_iter().map(&mut task).collect::<Result<Vec<_>, _>>());
        let mut tasks = tasks.transpose()?;
        if let Some(tasks) = &mut tasks {
            tasks.order_by_key(|task| task.identity);
        }
        Ok(ProcessSample {
            identity,
            polled: self.polled_us.map_or(now, |[boot, wall]| moment(boot, wall)),
            name: texts.share(self.name),
            parent: self.parent.map(Pid::new),
            user: self.user,
            state,
            kernel_thread: self.kernel_thread,
            threads: self.threads,
            cpu_ticks: self.cpu,
            processor: self.processor.map(cpu).transpose()?,
            resident: self.resident.map(Bytes::new),
            major_faults: self.major_faults,
            allowed: self.allowed.map(Allowed::try_from).transpose()?,
            group: self.group.map(|group| texts.share(group)),
            tasks,
            pages: self.pages.map(PageSample::try_from).transpose()?,
            denied: self.denied.as_deref().map(denied).transpose()?,
        })
    }
}

impl From<&TaskSample> for TaskFrame {
    fn from(task: &TaskSample) -> Self {
        Self {
            name: task.name.to_string(),
            cpu: task.cpu_ticks,
            run_ns: task.run.map(nanos),
            processor: task.processor.map(CpuId::number),
            allowed: task.allowed.as_ref().map(AllowedFrame::from),
            cpu_changes: task.cpu_changes,
            balancing: task.balancing.as_ref().map(BalancingFrame::from),
        }
    }
}

impl TaskFrame {
    fn into_sample(self, identity: Identity, texts: &mut Texts) -> Result<TaskSample, Fault> {
        Ok(TaskSample {
            identity,
            name: texts.share(self.name),
            cpu_ticks: self.cpu,
            run: self.run_ns.map(Duration::from_nanos),
            processor: self.processor.map(cpu).transpose()?,
            allowed: self.allowed.map(Allowed::try_from).transpose()?,
            cpu_changes: self.cpu_changes,
            balancing: self.balancing.map(BalancingSample::try_from).transpose()?,
        })
    }
}

impl From<&BalancingSample> for BalancingFrame {
    fn from(balancing: &BalancingSample) -> Self {
        let faults = balancing.faults.iter();
        Self {
            scans: balancing.scans,
            migrated: balancing.migrated_pages,
            preferred: balancing.preferred.map(NodeId::number),
            faults: faults
                .map(|(node, faults)| (node.number(), [faults.private, faults.shared]))
                .collect_map(),
        }
    }
}

impl TryFrom<BalancingFrame> for BalancingSample {
    type Error = Fault;

    fn try_from(frame: BalancingFrame) -> Result<Self, Fault> {
        let faults = frame.faults.into_iter();
        let faults = faults
            .map(|(number, [private, shared])| Ok((node(number)?, BalancingFaults { private, shared })));
        Ok(Self {
            scans: frame.scans,
            migrated_pages: frame.migrated,
            preferred: frame.preferred.map(node).transpose()?,
            faults: faults.try_collect_map::<_, _, Fault>()?,
        })
    }
}

impl From<&PageSample> for PageFrame {
    fn from(pages: &PageSample) -> Self {
        let (boot_us, wall_us) = clocks(pages.seen);
        let drawn = match pages.method {
            PageMethod::Exact => None,
            PageMethod::Drawn(pages) => Some(pages),
        };
        let shares = pages.nodes.iter().map(|(node, share)| (node.number(), ShareFrame::from(share)));
        Self { boot_us, wall_us, drawn, nodes: shares.collect_map() }
    }
}

impl TryFrom<PageFrame> for PageSample {
    type Error = Fault;

    fn try_from(frame: PageFrame) -> Result<Self, Fault> {
        let shares = frame.nodes.into_iter().map(|(number, share)| Ok((node(number)?, share.into())));
        Ok(Self {
            seen: moment(frame.boot_us, frame.wall_us),
            method: frame.drawn.map_or(PageMethod::Exact, PageMethod::Drawn),
            nodes: shares.try_collect_map::<_, _, Fault>()?,
        })
    }
}

impl From<&PageShare> for ShareFrame {
    fn from(share: &PageShare) -> Self {
        let other = |end: Bytes| (end != share.size).then_some(end.get());
        Self {
            size: share.size.get(),
            low: other(share.low),
            high: other(share.high),
            own: share.own.map(Bytes::get),
        }
    }
}

impl From<ShareFrame> for PageShare {
    fn from(share: ShareFrame) -> Self {
        let end = |end: Option<u64>| Bytes::new(end.unwrap_or(share.size));
        Self {
            size: Bytes::new(share.size),
            low: end(share.low),
            high: end(share.high),
            own: share.own.map(Bytes::new),
        }
    }
}
