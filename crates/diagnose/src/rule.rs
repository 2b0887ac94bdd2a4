//! A rule: what it finds, what it must know, where its thresholds come from.

use nodewise_machine::Origin;
use nodewise_source::sample::{InterruptSample, Remedy, Sample, Unread};
use nodewise_source::site::SiteFact;

use crate::finding::{RuleFinding, Severity};
use crate::situation::{Class, ProcessState, Situation};
use crate::thresholds::RuleThreshold;

/// A fact that a rule must know. Without it the rule is not examined, which is not the same as silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact {
    /// Two samples.
    Rates,
    /// Sizes and free memory of nodes.
    NodeMemory,
    /// The zones' watermarks.
    Watermarks,
    /// Counters of the whole system.
    Events,
    /// Allocations of nodes.
    Allocations,
    /// Where pages of processes are.
    Pages,
    /// Kinds of mappings, and where their pages are.
    Mappings,
    /// Policies of processes. Unknown is not none: what has no policy is known to have none.
    Policies,
    /// Interrupts of devices.
    Interrupts,
    /// CPUs that queues of network devices name.
    Queues,
    /// CPUs that may serve interrupts.
    Affinities,
    /// Devices with their nodes.
    Devices,
    /// Pools of huge pages.
    Pools,
    /// The kernel's command line.
    CommandLine,
    /// Distances between nodes.
    Distances,
    /// Packages of CPUs.
    Packages,
    /// The kernel's release.
    Release,
    /// The setting of automatic balancing.
    Balancing,
    /// The setting of node reclaim.
    ZoneReclaim,
    /// The setting of demotion.
    Demotion,
    /// Names of all processes.
    Processes,
    /// Memory slots of the firmware's tables.
    Slots,
    /// Tiers of memory.
    Tiers,
    /// Latency and bandwidth of nodes, by the firmware's tables.
    Access,
    /// The machine itself, with all of its files.
    RunningSystem,
    /// Whether the machine is a virtual one.
    Hypervisor,
    /// The mode of transparent huge pages.
    HugePageMode,
    /// Programs of processes: how they were started, and what limits them.
    Programs,
    /// Variables of processes.
    Variables,
    /// Files that processes have open.
    OpenFiles,
    /// Zones of nodes, with the pages that they manage.
    Zones,
    /// Blocks of memory that can be taken offline.
    Blocks,
    /// The kubelet's configuration.
    Kubelet,
    /// Slurm's configuration.
    Slurm,
    /// The active profile of tuned.
    Profile,
    /// Hints of a board.
    Board,
}

/// Why a rule could not speak.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lack {
    /// The fact, in words.
    pub fact: &'static str,
    pub reason: String,
    pub remedy: Option<String>,
}

impl Fact {
    /// The fact in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Rates => "rates",
            Self::NodeMemory => "memory of nodes",
            Self::Watermarks => "watermarks of zones",
            Self::Events => "events of the system",
            Self::Allocations => "allocations of nodes",
            Self::Pages => "memory of processes by node",
            Self::Mappings => "mappings of processes",
            Self::Policies => "policies of processes",
            Self::Interrupts => "interrupts of devices",
            Self::Queues => "queues of network devices",
            Self::Affinities => "CPUs that may serve interrupts",
            Self::Devices => "devices",
            Self::Pools => "pools of huge pages",
            Self::CommandLine => "the kernel's command line",
            Self::Distances => "distances",
            Self::Packages => "packages of CPUs",
            Self::Release => "the kernel's release",
            Self::Balancing => "the setting of automatic balancing",
            Self::ZoneReclaim => "the setting of node reclaim",
            Self::Demotion => "the setting of demotion",
            Self::Processes => "processes",
            Self::Slots => "memory slots",
            Self::Tiers => "memory tiers",
            Self::Access => "latency and bandwidth of nodes",
            Self::RunningSystem => "the running system",
            Self::Hypervisor => "whether the machine is a virtual one",
            Self::HugePageMode => "the mode of transparent huge pages",
            Self::Programs => "programs of processes",
            Self::Variables => "variables of processes",
            Self::OpenFiles => "open files of processes",
            Self::Zones => "zones of nodes",
            Self::Blocks => "blocks of memory",
            Self::Kubelet => "the kubelet's configuration",
            Self::Slurm => "Slurm's configuration",
            Self::Profile => "the active profile of tuned",
            Self::Board => "hints of the board",
        }
    }

    fn is_known(self, situation: &Situation<'_>) -> bool {
        let (machine, now) = (situation.machine, situation.now);
        let settings = &machine.settings;
        match self {
            Self::Rates => situation.delta.is_some(),
            Self::NodeMemory => !situation.nodes.is_empty(),
            Self::Watermarks => situation.nodes.values().any(|node| node.high.is_some()),
            Self::Events => !now.events.is_empty(),
            Self::Allocations => now.nodes.iter().any(|node| node.allocations.hit.is_some()),
            Self::Pages => !situation.processes.is_empty(),
            Self::Programs | Self::Variables | Self::OpenFiles if situation.programs.is_none() => false,
            Self::Mappings | Self::Policies | Self::Programs | Self::Variables | Self::OpenFiles => {
                let mut significant = situation.significant().peekable();
                let is_needed = significant.peek().is_some();
                let is_known = |process: &ProcessState<'_>| self.lack_of(process).is_none();
                // Programs are read of small processes, too: of those at work, and of those that were named.
                let known = match self {
                    Self::Mappings | Self::Policies => significant.any(is_known),
                    _ => situation.processes.iter().any(is_known),
                };
                !situation.processes.is_empty() && (!is_needed || known)
            }
            Self::Interrupts => !now.interrupts.is_empty(),
            Self::Affinities => now.interrupts.iter().any(|device| !device.allowed.is_empty()),
            // Without a network device there is none that they could belong to.
            Self::Queues => {
                let is_net = |device: &&InterruptSample| device.device.starts_with("net:");
                let mut net = now.interrupts.iter().filter(is_net).peekable();
                net.peek().is_none() || net.any(|device| !device.queues.is_empty())
            }
            Self::Devices => !machine.devices.is_empty(),
            Self::Pools => now.nodes.iter().any(|node| !node.pools.is_empty()),
            Self::CommandLine => settings.command_line.is_some(),
            Self::Distances => !machine.distances.is_empty(),
            Self::Packages => !machine.packages().is_empty(),
            Self::Release => machine.kernel.is_some(),
            Self::Balancing => settings.numa_balancing.is_some(),
            Self::ZoneReclaim => settings.zone_reclaim_mode.is_some(),
            Self::Demotion => settings.demotion_enabled.is_some(),
            Self::Processes => !now.processes.is_empty(),
            Self::Slots => !machine.memory_slots.slots.is_empty(),
            Self::Tiers => !machine.tiers.is_empty(),
            Self::Access => !machine.accesses.is_empty(),
            Self::RunningSystem => machine.origin == Origin::Live,
            Self::Hypervisor => situation.virtual_machine.is_some(),
            Self::HugePageMode => settings.transparent_hugepage.is_some(),
            Self::Zones | Self::Blocks | Self::Kubelet | Self::Slurm | Self::Profile | Self::Board => {
                self.at_site(situation) == Some(Held::Yes)
            }
        }
    }

    /// Whether the site has it; `None` where it was not read, and for facts of something else.
    fn at_site(self, situation: &Situation<'_>) -> Option<Held> {
        let site = situation.site?;
        Some(match self {
            Self::Zones => Held::from_fact(&site.movable_only),
            Self::Blocks => Held::from_fact(&site.offline),
            Self::Kubelet => Held::from_fact(&site.kubelet),
            Self::Slurm => Held::from_fact(&site.task_plugins),
            Self::Profile => Held::from_fact(&site.tuned),
            Self::Board => Held::from_fact(&site.board),
            _ => return None,
        })
    }

    /// Why it is not known of a process; `None` where it is, and for facts that are not about one process.
    pub fn lack_of(self, process: &ProcessState<'_>) -> Option<Lack> {
        let lack = |reason: &str, remedy: Option<&str>| {
            Some(Lack { fact: self.words(), reason: reason.to_owned(), remedy: remedy.map(str::to_owned) })
        };
        let names_it = Some("nodewise doctor --pid PID reads them");
        let of_program = process.program.map(|program| match self {
            Self::Variables => program.variables.is_some(),
            Self::OpenFiles => program.devices.is_some(),
            _ => true,
        });
        match (self, of_program) {
            (Self::Mappings | Self::Policies, _) if process.mappings.is_none() => {
                lack("its mappings were not read", None)
            }
            (Self::Policies, _) if process.known_policy().is_none() => {
                lack("reading them walks all of its pages, and it has too many small ones", names_it)
            }
            (Self::Variables | Self::OpenFiles, Some(false)) => {
                lack("permission denied", Some("run as root"))
            }
            (Self::Programs | Self::Variables | Self::OpenFiles, None) => {
                lack("its program was not read", names_it)
            }
            _ => None,
        }
    }

    /// Why it is not known here; `None` where it is.
    pub fn lack(self, situation: &Situation<'_>) -> Option<Lack> {
        if self.is_known(situation) {
            return None;
        }
        let lack = |reason: &str, remedy: Option<&str>| Lack {
            fact: self.words(),
            reason: reason.to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        Some(match (self, unread(situation.now, self)) {
            (_, Some(unread)) => Lack {
                fact: self.words(),
                reason: unread.reason.clone(),
                remedy: unread.remedy.as_ref().map(Remedy::to_string),
            },
            (Self::Rates, _) => {
                lack("one moment only", Some("watch for some seconds: nodewise doctor --window 10s"))
            }
            (Self::Pages | Self::Mappings | Self::Policies | Self::Processes, _)
                if situation.now.processes.is_empty() =>
            {
                lack("this source holds no processes", None)
            }
            (Self::Mappings | Self::Policies, _) if !situation.now.mappings.is_empty() => {
                return situation.significant().find_map(|process| self.lack_of(process));
            }
            (Self::Programs | Self::Variables | Self::OpenFiles, _) if situation.programs.is_some() => {
                return situation.significant().find_map(|process| self.lack_of(process));
            }
            (Self::Programs | Self::Variables | Self::OpenFiles, _) => {
                lack("recordings and saved machines do not hold them", None)
            }
            (Self::Pages | Self::Mappings | Self::Policies, _)
                if situation.now.processes.iter().any(|process| process.pages.is_some()) =>
            {
                lack("nothing says which of their pages are of files", None)
            }
            (Self::Pages | Self::Mappings | Self::Policies, _) => {
                lack("permission denied", Some("run as root"))
            }
            (Self::Slots, _) => match &situation.machine.memory_slots.not_read {
                Some(reason) => lack(reason, None),
                None if situation.machine.origin == Origin::Live => {
                    lack("the firmware has no tables of them", None)
                }
                None => lack("this source does not hold them", None),
            },
            (_, None) if self.at_site(situation) == Some(Held::Denied) => {
                lack("permission denied", Some("run as root"))
            }
            (Self::Queues | Self::Affinities, _) if situation.machine.origin != Origin::Live => {
                lack("this recording does not hold them", None)
            }
            (Self::RunningSystem, _) => lack("a saved machine can lack the files in question", None),
            (Self::Hypervisor, _) => lack("only the running system says it, on x86", None),
            _ => lack("not available from this kernel or source", None),
        })
    }
}

/// Whether a site has a fact. A program that it does not have is a fact, too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    Yes,
    No,
    Denied,
}

impl Held {
    fn from_fact<T>(fact: &SiteFact<T>) -> Self {
        match fact {
            SiteFact::Known(_) | SiteFact::Absent => Self::Yes,
            SiteFact::Unknown => Self::No,
            SiteFact::Denied => Self::Denied,
        }
    }
}

/// The line of a sample about a fact that is missing.
fn unread(sample: &Sample, fact: Fact) -> Option<&Unread> {
    // Policies come with mappings.
    let is_read_as = if fact == Fact::Policies { Fact::Mappings } else { fact };
    sample.unread.iter().find(|unread| unread.fact == is_read_as.words())
}

/// A rule.
pub struct Rule {
    /// Never changes its meaning, and is never used again.
    pub id: &'static str,
    /// The disease, in a line.
    pub title: &'static str,
    /// The usual severity; the effect can raise or lower it.
    pub severity: Severity,
    /// The machines on which it can speak.
    pub on: fn(Class) -> bool,
    pub needs: &'static [Fact],
    /// The sign, with its thresholds unless a file replaces them.
    pub sign: &'static str,
    /// The numbers that it compares with.
    pub thresholds: &'static [&'static RuleThreshold],
    /// Healthy states that look like it.
    pub traps: &'static str,
    /// Rules whose findings it explains where they touch the same nodes or the same process.
    pub explains: &'static [&'static str],
    pub sources: &'static [&'static str],
    pub check: fn(&Situation<'_>) -> Vec<RuleFinding>,
}

impl Rule {
    /// The facts that are missing for it here.
    pub fn lacks(&self, situation: &Situation<'_>) -> Vec<Lack> {
        self.needs.iter().filter_map(|fact| fact.lack(situation)).collect()
    }

    /// The facts that are missing for it about one process.
    pub fn lacks_of(&self, process: &ProcessState<'_>) -> Vec<Lack> {
        self.needs.iter().filter_map(|fact| fact.lack_of(process)).collect()
    }
}

/// Machines with several nodes.
pub fn several_nodes(class: Class) -> bool {
    matches!(class, Class::Real | Class::Tiered | Class::Emulated)
}

/// Machines on which memory can be far away.
pub fn with_distance(class: Class) -> bool {
    class.has_distance()
}

/// Machines with memory of several speeds.
pub fn tiered(class: Class) -> bool {
    class == Class::Tiered
}

/// Machines whose nodes share a memory controller.
pub fn emulated(class: Class) -> bool {
    class == Class::Emulated
}

/// Every machine.
pub fn any(_: Class) -> bool {
    true
}
