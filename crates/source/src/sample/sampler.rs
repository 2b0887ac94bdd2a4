//! One sample after the other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::{Bytes, CpuSet};

use super::bandwidth::{BandwidthScope, BandwidthTable};
use super::controllers::{ControllerTable, EventOpener};
use super::groups::GroupTable;
use super::interrupts::InterruptTable;
use super::missing::Missing;
use super::pages::{PageDrawer, PageOptions, Purse};
use super::processes::ProcessTable;
use super::reading::Reading;
use super::system::SystemFiles;
use super::users::UserTable;
use super::{Moment, Sample, refusal};
use crate::process::Pid;
use crate::tree::Tree;

/// The facts of a sample, beside those of the whole machine, its nodes and CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SampleOptions {
    pub processes: ProcessScope,
    pub threads: ThreadScope,
    /// Whether to read the control groups of the processes.
    pub groups: bool,
    pub interrupts: InterruptScope,
    pub bandwidth: BandwidthScope,
    /// The traffic of memory controllers, which [`Sampler::counting`] counts.
    pub controllers: BandwidthScope,
    /// Where the memory of the processes is; `None` leaves it out.
    pub pages: Option<PageOptions>,
}

/// The interrupts of devices in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum InterruptScope {
    #[default]
    None,
    /// Their number by CPU: a large text where CPUs are many.
    Counts,
    /// Also the CPUs that queues of network devices name: two or three files for each queue, every ten seconds.
    Queues,
    /// Also the CPUs that may serve each line: a file for each.
    All,
}

/// The processes of a sample.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ProcessScope {
    #[default]
    None,
    /// All; the idle ones are read less often, after 1, 2, 4 and then 8 samples, or 8 seconds where samples are
    /// rarer.
    All,
    /// These, each time.
    Only(BTreeSet<Pid>),
}

/// The processes of a sample whose threads are looked at.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum ThreadScope {
    #[default]
    None,
    /// Those that use more than 1 % of a CPU, and these.
    Busy(BTreeSet<Pid>),
    /// These.
    Only(BTreeSet<Pid>),
}

impl ThreadScope {
    /// The processes that are named, whose threads are looked at each time.
    pub(super) fn named(&self) -> impl Iterator<Item = &Pid> {
        match self {
            Self::None => None,
            Self::Busy(named) | Self::Only(named) => Some(named),
        }
        .into_iter()
        .flatten()
    }
}

/// Takes samples of a tree, the running system or a capture.
///
/// The first sample finds nodes and processes; later ones read on descriptors that stay open, and little of what
/// is idle. So a sampler costs less than 1 % of a CPU at one sample a second and 5,000 processes.
#[derive(Debug)]
pub struct Sampler {
    tree: Arc<Tree>,
    options: SampleOptions,
    /// Number of the next sample.
    tick: u64,
    buffer: Vec<u8>,
    system: SystemFiles,
    processes: ProcessTable,
    users: UserTable,
    groups: GroupTable,
    /// Files of groups that may stay open.
    group_room: usize,
    purse: Option<Purse>,
    interrupts: InterruptTable,
    bandwidth: BandwidthTable,
    controllers: ControllerTable,
}

impl Sampler {
    /// Prepares to take samples; reads nothing yet. For all processes of the running system the soft limit of open
    /// files rises to the hard one: programs that are started later inherit it.
    pub fn new(tree: impl Into<Arc<Tree>>, options: SampleOptions) -> Self {
        let tree = tree.into();
        let room = match options.processes {
            ProcessScope::All if tree.is_live() => super::limit::raise(),
            _ => FEW,
        };
        let group_room = room / 4;
        let purse = options.pages.clone().map(Purse::new);
        Self {
            system: SystemFiles::new(&tree),
            interrupts: InterruptTable::new(&tree),
            processes: ProcessTable::new(room - group_room),
            users: UserTable::default(),
            tree,
            options,
            tick: 0,
            buffer: Vec::new(),
            groups: GroupTable::default(),
            group_room,
            purse,
            bandwidth: BandwidthTable::default(),
            controllers: ControllerTable::default(),
        }
    }

    /// Draws pages of processes that are too large to be read exactly; without it they are read exactly, too.
    #[must_use]
    pub fn drawing(mut self, drawer: Box<dyn PageDrawer>) -> Self {
        if let Some(purse) = &mut self.purse {
            purse.draw_with(drawer);
        }
        self
    }

    /// Counts events with the help of the kernel; without it no traffic of memory controllers is known.
    #[must_use]
    pub fn counting(mut self, opener: Box<dyn EventOpener>) -> Self {
        self.controllers.open_with(opener);
        self
    }

    /// Takes a sample. `now` is [`Moment::now`] on the running system, and the moment that the tree shows
    /// otherwise; it never goes back.
    pub fn sample(&mut self, now: Moment) -> Sample {
        let mut missing = Missing::default();
        let tree = Arc::clone(&self.tree);
        let mut reading = Reading {
            tree: &tree,
            buffer: &mut self.buffer,
            missing: &mut missing,
            now,
            tick: self.tick,
            online: CpuSet::new(),
        };
        let mut sample = Sample { moment: now, ..Sample::default() };
        self.system.read(&mut reading, &mut sample);
        reading.online = sample.cpus.iter().map(|(cpu, _)| *cpu).collect();
        let page = self.system.page_size().unwrap_or(PAGE);
        self.processes.read(&mut reading, &self.options, sample.forks, page);
        if let Some(purse) = &mut self.purse {
            purse.spend(&mut reading, &mut self.processes, page);
        }
        sample.processes = self.processes.samples();
        sample.users = self.users.read(&mut reading, &sample.processes);
        if self.options.groups {
            let regrouped = self.processes.regrouped();
            sample.groups =
                self.groups.read(&mut reading, &sample.processes, regrouped, page, self.group_room);
        }
        if self.options.interrupts != InterruptScope::None {
            sample.interrupts = self.interrupts.read(&mut reading, self.options.interrupts);
        }
        if self.options.bandwidth != BandwidthScope::None {
            sample.bandwidth = self.bandwidth.read(&mut reading, &sample, self.options.bandwidth);
        }
        if self.options.controllers != BandwidthScope::None {
            sample.controllers = self.controllers.read(&mut reading, self.options.controllers);
        }
        self.tick += 1;
        sample.unread = refusal::for_this_process(&tree, missing.into_lines());
        sample
    }

    /// Changes whose threads the next samples have, and which interrupts of devices.
    pub fn look_at(&mut self, threads: ThreadScope, interrupts: InterruptScope) {
        self.options.threads = threads;
        self.options.interrupts = interrupts;
    }

    /// Changes whether the next samples have the control groups of the processes.
    pub fn look_at_groups(&mut self, wanted: bool) {
        if wanted && !self.options.groups {
            // Processes may have changed their groups meanwhile.
            self.groups = GroupTable::default();
        }
        self.options.groups = wanted;
    }

    /// Changes the CPU time that the next samples may take for the memory of processes, if they look at it.
    pub fn set_page_budget(&mut self, budget: Duration) {
        if let Some(purse) = &mut self.purse {
            purse.set_budget(budget);
        }
    }

    /// Changes the processes whose memory the next samples look at whatever it costs, if they look at it.
    pub fn always_locate(&mut self, processes: BTreeSet<Pid>) {
        if let Some(purse) = &mut self.purse {
            purse.set_always(processes);
        }
    }

    /// Goes on with another tree: the next moment of the same machine, where a tree is a recorded one.
    pub fn continue_with(&mut self, tree: impl Into<Arc<Tree>>) {
        self.tree = tree.into();
    }
}

/// Files that may stay open where the limit is not raised for them.
const FEW: usize = 256;
/// The page that the kernel counts in, where that is unknown: that of x86.
const PAGE: Bytes = Bytes::from_kib(4);

#[cfg(test)]
mod tests;
