//! Counts taken while the runs of a study went on: for each arm the median over its runs.

use nodewise_experiment::evidence::Counter;
use nodewise_experiment::schedule::ArmId;
use nodewise_experiment::study::{Record, Study};
use nodewise_machine::Bytes;
use nodewise_stats::median;

use super::study::seconds_words;

/// A counted quantity; the variants are in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    CpuTime,
    /// The most memory that a process had at once.
    MaxRss,
    /// Page faults that needed no reading.
    MinorFaults,
    /// Page faults that had to read.
    MajorFaults,
    /// The share of allocations that a CPU made on its own node.
    Local,
    /// Allocations that were made where they were wanted.
    Hit,
    /// Allocations that another node had wanted.
    Missed,
    /// Allocations that were wanted on a node and made on another.
    Foreign,
    /// Allocations that went where interleaving wanted them.
    Interleaved,
    /// Pages that were moved.
    Moved,
    /// Pages that NUMA balancing moved.
    Balanced,
    Event(Counter),
    /// The share of the CPUs' time that other programs used.
    Others,
    /// The share of the CPUs' time that the hypervisor took.
    Stolen,
}

impl Counted {
    /// Everything.
    pub const ALL: [Self; 16] = [
        Self::CpuTime,
        Self::MaxRss,
        Self::MinorFaults,
        Self::MajorFaults,
        Self::Local,
        Self::Hit,
        Self::Missed,
        Self::Foreign,
        Self::Interleaved,
        Self::Moved,
        Self::Balanced,
        Self::Event(Counter::NodeLoads),
        Self::Event(Counter::NodeLoadMisses),
        Self::Event(Counter::TlbLoadMisses),
        Self::Others,
        Self::Stolen,
    ];

    /// Returns the head of its column.
    pub const fn head(self) -> &'static str {
        match self {
            Self::CpuTime => "CPU time",
            Self::MaxRss => "memory",
            Self::MinorFaults => "faults",
            Self::MajorFaults => "major",
            Self::Local => "local",
            Self::Hit => "hit",
            Self::Missed => "missed",
            Self::Foreign => "foreign",
            Self::Interleaved => "interleaved",
            Self::Moved => "moved",
            Self::Balanced => "balanced",
            Self::Event(event) => event.name(),
            Self::Others => "others",
            Self::Stolen => "stolen",
        }
    }

    /// Its field in a document: the unit is in the name.
    pub const fn field(self) -> &'static str {
        match self {
            Self::CpuTime => "cpu_s",
            Self::MaxRss => "max_rss_bytes",
            Self::MinorFaults => "minor_faults",
            Self::MajorFaults => "major_faults",
            Self::Local => "local_share",
            Self::Hit => "numa_hit",
            Self::Missed => "numa_miss",
            Self::Foreign => "numa_foreign",
            Self::Interleaved => "interleave_hit",
            Self::Moved => "pgmigrate_success",
            Self::Balanced => "numa_pages_migrated",
            Self::Event(Counter::NodeLoads) => "node_loads",
            Self::Event(Counter::NodeLoadMisses) => "node_load_misses",
            Self::Event(Counter::TlbLoadMisses) => "dtlb_load_misses",
            Self::Event(Counter::PageFaults) => "page_faults",
            Self::Others => "others_share",
            Self::Stolen => "stolen_share",
        }
    }

    /// Returns the count of a run; `None` where it is not known.
    fn of(self, record: &Record) -> Option<f64> {
        let (usage, evidence) = (record.run.usage.as_ref(), &record.run.evidence);
        let count = |count: Option<u64>| count.map(|count| count as f64);
        match self {
            Self::CpuTime => usage.map(|usage| usage.cpu_time().as_secs_f64()),
            Self::MaxRss => count(usage.map(|usage| usage.max_rss.get())),
            Self::MinorFaults => count(usage.map(|usage| usage.minor_faults)),
            Self::MajorFaults => count(usage.map(|usage| usage.major_faults)),
            Self::Local => evidence.local_share(),
            Self::Hit => count(evidence.total(|node| node.hit)),
            Self::Missed => count(evidence.total(|node| node.miss)),
            Self::Foreign => count(evidence.total(|node| node.foreign)),
            Self::Interleaved => count(evidence.total(|node| node.interleave_hit)),
            Self::Moved => count(evidence.moves.migrated),
            Self::Balanced => count(evidence.moves.balanced),
            Self::Event(event) => count(evidence.events.get(&event).copied()),
            Self::Others => evidence.disturbance().map(|disturbance| disturbance.others),
            Self::Stolen => evidence.disturbance().and_then(|disturbance| disturbance.stolen),
        }
    }

    /// The median over the runs of an arm that count; `None` where nothing is known of any.
    pub fn median(self, study: &Study, arm: ArmId) -> Option<f64> {
        let done = study.measured(arm).filter(|record| record.run.ending.is_done());
        median(&done.filter_map(|record| self.of(record)).collect::<Vec<_>>())
    }

    /// A value in words: a share in percent, a count with three digits or more.
    pub fn words(self, value: f64) -> String {
        match self {
            Self::CpuTime => seconds_words(value),
            Self::MaxRss => Bytes::new(value as u64).to_string(),
            Self::Local | Self::Others | Self::Stolen => format!("{:.1} %", value * 100.0),
            _ => count_words(value),
        }
    }
}

/// The counts of several arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Medians {
    pub counted: Counted,
    /// The median of each arm; `None` where nothing is known of any of its runs.
    values: Vec<Option<f64>>,
}

impl Medians {
    /// Everything that says something of a study, for these arms: a share of what is local, and what was
    /// found where it was wanted, only where there is another node, and anything else where it was not
    /// nothing throughout.
    pub fn shown(study: &Study, arms: impl Iterator<Item = ArmId> + Clone) -> Vec<Self> {
        let of = |counted: Counted| {
            let values = arms.clone().map(|arm| counted.median(study, arm)).collect();
            Self { counted, values }
        };
        let several = study.records.iter().any(|record| record.run.evidence.allocations.len() > 1);
        let needs_another = |counted: &Counted| matches!(counted, Counted::Local | Counted::Hit);
        let candidates = Counted::ALL.into_iter().filter(|counted| several || !needs_another(counted));
        candidates.map(of).filter(Self::is_worth_showing).collect()
    }

    fn is_worth_showing(&self) -> bool {
        let least = if matches!(self.counted, Counted::Others | Counted::Stolen) { 0.001 } else { 0.0 };
        self.values.iter().flatten().any(|value| *value > least)
    }

    /// The median of the arm at this place, in words; nothing where it is not known.
    pub fn words(&self, at: usize) -> String {
        let value = self.values.get(at).copied().flatten();
        value.map_or_else(String::new, |value| self.counted.words(value))
    }
}

/// A count: as it is below ten thousand, then in thousands, millions, and so on.
pub(super) fn count_words(count: f64) -> String {
    if count < 10_000.0 {
        return format!("{count:.0}");
    }
    let mut scaled = count;
    let mut unit = "";
    for next in ["k", "M", "G", "T", "P", "E"] {
        if scaled < 999.5 {
            break;
        }
        scaled /= 1000.0;
        unit = next;
    }
    match scaled {
        scaled if scaled >= 99.95 => format!("{scaled:.0}{unit}"),
        _ => format!("{scaled:.1}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_keep_three_digits() {
        for (count, words) in [
            (0.0, "0"),
            (9_999.0, "9999"),
            (10_000.0, "10.0k"),
            (123_456.0, "123k"),
            (999_600.0, "1.0M"),
            (1e9, "1.0G"),
            (1.8e19, "18.0E"),
        ] {
            assert_eq!(count_words(count), words);
        }
    }
}
