//! Events that CPUs and the kernel count in a program and its children, and events of devices such as memory controllers.
//!
//! A counter of programs is opened for the calling thread with the wish to be inherited and to begin with
//! `execve(2)`. The thread itself never counts anything, for it calls none; a program that it starts
//! does, from its first instruction on, and so does all that the program starts. What they counted is
//! added to the counter that was opened when they end.

use std::ffi::c_int;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};

use nodewise_machine::CpuId;

use crate::error::Errno;
use crate::raw;

/// An event, by the name that perf(1) has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Loads that went to the memory of any node.
    NodeLoads,
    /// Loads that went to the memory of another node.
    NodeLoadMisses,
    /// Loads for which the translation of their address was not at hand.
    TlbLoadMisses,
    /// Page faults, as the kernel counts them: there on every machine.
    PageFaults,
}

impl Counter {
    /// Every event.
    pub const ALL: [Self; 4] = [Self::NodeLoads, Self::NodeLoadMisses, Self::TlbLoadMisses, Self::PageFaults];

    /// Those that only a CPU can count.
    pub const HARDWARE: [Self; 3] = [Self::NodeLoads, Self::NodeLoadMisses, Self::TlbLoadMisses];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NodeLoads => "node-loads",
            Self::NodeLoadMisses => "node-load-misses",
            Self::TlbLoadMisses => "dTLB-load-misses",
            Self::PageFaults => "page-faults",
        }
    }

    /// The event with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| counter.name() == name)
    }

    /// Kind and number of the event.
    ///
    /// # Source
    /// `perf_event_open(2)`: `PERF_TYPE_HW_CACHE` (3) with cache, operation (0: read) and result (0:
    /// access, 1: miss) in its bytes; `PERF_TYPE_SOFTWARE` (1) with `PERF_COUNT_SW_PAGE_FAULTS` (2).
    const fn event(self) -> (u32, u64) {
        const DATA_TLB: u64 = 3;
        const NODE: u64 = 6;
        const MISS: u64 = 1 << 16;
        match self {
            Self::NodeLoads => (3, NODE),
            Self::NodeLoadMisses => (3, NODE | MISS),
            Self::TlbLoadMisses => (3, DATA_TLB | MISS),
            Self::PageFaults => (1, 2),
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why an event is not counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCounted {
    /// This process may not.
    #[error(
        "this process may not count events: kernel.perf_event_paranoid of 2 or less, or CAP_PERFMON, lets it"
    )]
    Forbidden,
    /// The CPU, or the virtual machine, does not count it.
    #[error("this CPU does not count it, as in most virtual machines")]
    NoSuchEvent,
    /// The kernel was built without.
    #[error("this kernel counts no events (CONFIG_PERF_EVENTS)")]
    NotInKernel,
    #[error("{0}")]
    Other(Errno),
}

impl From<Errno> for NotCounted {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::EPERM | Errno::EACCES => Self::Forbidden,
            Errno::ENOENT | Errno::EOPNOTSUPP | Errno::ENODEV | Errno::EINVAL => Self::NoSuchEvent,
            Errno::ENOSYS => Self::NotInKernel,
            other => Self::Other(other),
        }
    }
}

/// A counter for the programs that the calling thread starts from now on.
#[derive(Debug)]
pub struct Counting {
    file: File,
}

/// A counter of a device, such as a memory controller: whoever causes the events.
#[derive(Debug)]
pub struct DeviceCounter {
    file: File,
}

/// A count since it was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DeviceCount {
    pub value: u64,
    /// Nanoseconds since then.
    pub enabled_ns: u64,
    /// Nanoseconds in which the device counted: fewer where it counted something else, too.
    pub running_ns: u64,
}

impl DeviceCounter {
    /// Opens a counter of the PMU with this number (`type` in sysfs) through a CPU of its `cpumask`, and begins to
    /// count. `config` and `config1` say what.
    ///
    /// # Errors
    /// Those of `perf_event_open(2)`: what others cause may be counted with CAP_PERFMON, or where
    /// `kernel.perf_event_paranoid` is 0 or less.
    pub fn open(pmu: u32, config: u64, config1: u64, cpu: CpuId) -> Result<Self, Errno> {
        let attributes = Attributes { breakpoint_address: config1, ..Attributes::new(pmu, config, 0) };
        let cpu = c_int::try_from(cpu.number()).map_err(|_| Errno::EINVAL)?;
        Ok(Self { file: raw::perf_event_open(&attributes, Counted::AllOn(cpu))?.into() })
    }

    /// Reads the count up to now.
    ///
    /// # Errors
    /// A counter that cannot be read.
    pub fn read(&mut self) -> io::Result<DeviceCount> {
        let [value, enabled_ns, running_ns] = read(&mut self.file)?;
        Ok(DeviceCount { value, enabled_ns, running_ns })
    }
}

/// The tasks whose events are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counted {
    /// Those of the calling thread, on any CPU.
    ThisThread,
    /// All, on this CPU, or in the device that it stands for.
    AllOn(c_int),
}

/// The kernel's `struct perf_event_attr` in its first form, which every release reads.
///
/// # Source
/// `include/uapi/linux/perf_event.h`, `PERF_ATTR_SIZE_VER0`; Linux 2.6.31.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    /// `config1` of other events than breakpoints.
    breakpoint_address: u64,
}

impl Attributes {
    /// An event that is counted, and not sampled.
    fn new(kind: u32, config: u64, flags: u64) -> Self {
        Self {
            kind,
            size: size_of::<Self>() as u32,
            config,
            sample_period: 0,
            sample_type: 0,
            read_format: READ_FORMAT,
            flags,
            wakeup_events: 0,
            breakpoint_kind: 0,
            breakpoint_address: 0,
        }
    }
}

const _: () = assert!(size_of::<Attributes>() == 64, "PERF_ATTR_SIZE_VER0");

/// `disabled`, `inherit`, `exclude_kernel`, `exclude_hv`, `enable_on_exec`: bits of the flags in the order
/// of the header. Without what the kernel does for a program, users may count their own.
const FLAGS: u64 = 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 12;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `PERF_FORMAT_TOTAL_TIME_RUNNING`.
const READ_FORMAT: u64 = 3;

impl Counting {
    /// Opens a counter.
    ///
    /// # Errors
    /// Where the event cannot be counted, and why.
    pub fn open(counter: Counter) -> Result<Self, NotCounted> {
        let (kind, config) = counter.event();
        let attributes = Attributes::new(kind, config, FLAGS);
        Ok(Self { file: raw::perf_event_open(&attributes, Counted::ThisThread)?.into() })
    }

    /// Returns the count up to now; `None` where the CPU was too busy with other counters to count at
    /// all. One that counted part of the time is scaled up to all of it.
    ///
    /// # Errors
    /// A counter that cannot be read.
    pub fn read(&mut self) -> io::Result<Option<u64>> {
        let [value, enabled, running] = read(&mut self.file)?;
        Ok(scaled(value, enabled, running))
    }
}

/// Reads a count, and the times in [`READ_FORMAT`].
fn read(file: &mut File) -> io::Result<[u64; 3]> {
    let mut words = [[0; 8]; 3];
    file.read_exact(words.as_flattened_mut())?;
    Ok(words.map(u64::from_ne_bytes))
}

/// A count, scaled from the time in which it ran to the time in which it should have.
fn scaled(value: u64, enabled: u64, running: u64) -> Option<u64> {
    if running == 0 {
        // Nothing was started, or nothing was counted of what was.
        return (enabled == 0).then_some(value);
    }
    let scaled = u128::from(value) * u128::from(enabled) / u128::from(running);
    Some(u64::try_from(scaled).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn counts_of_part_of_the_time_are_scaled_to_all_of_it() {
        assert_eq!(scaled(100, 10, 5), Some(200));
        assert_eq!(scaled(7, 3, 3), Some(7));
        assert_eq!(scaled(0, 0, 0), Some(0));
        assert_eq!(scaled(0, 5, 0), None);
        assert_eq!(scaled(u64::MAX, u64::MAX, 1), Some(u64::MAX));
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
    fn a_counter_of_a_device_counts_for_all_programs() {
        // The kernel's own clock of a CPU (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK) takes the way of a device.
        let mut counter = match DeviceCounter::open(1, 0, 0, CpuId::new(0)) {
            Ok(counter) => counter,
            Err(why) => return eprintln!("counting on a CPU skipped: {why}"),
        };
        let before = counter.read().unwrap();
        let after = loop {
            let after = counter.read().unwrap();
            if after.value > before.value {
                break after;
            }
        };
        assert!(after.enabled_ns > before.enabled_ns && after.running_ns <= after.enabled_ns);
        assert!(DeviceCounter::open(u32::MAX, 0, 0, CpuId::new(0)).is_err());
    }

    #[test]
    fn names_are_read_back() {
        for counter in Counter::ALL {
            assert_eq!(Counter::named(counter.name()), Some(counter));
        }
        assert_eq!(Counter::named("cycles"), None);
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
    fn what_a_program_and_its_children_do_is_counted_and_what_this_thread_does_is_not() {
        let open = || Counting::open(Counter::PageFaults);
        let mut counting = match open() {
            Ok(counting) => counting,
            Err(why) => return eprintln!("counting page faults skipped: {why}"),
        };
        let faults: Vec<u8> = vec![1; 4 << 20];
        assert_eq!(counting.read().unwrap(), Some(0), "{} bytes were written by this thread", faults.len());
        let once = Command::new("sh").args(["-c", ":"]).status().unwrap();
        let of_one = counting.read().unwrap();
        assert!(once.success() && of_one > Some(0));
        let mut counting = open().unwrap();
        Command::new("sh").args(["-c", "sh -c 'sh -c :; :'; sh -c :"]).status().unwrap();
        assert!(counting.read().unwrap() > of_one.map(|faults| faults * 2), "its children count too");
    }

    #[test]
    fn an_event_that_is_not_there_says_why() {
        for counter in Counter::HARDWARE {
            match Counting::open(counter) {
                Ok(mut counting) => assert!(counting.read().unwrap().is_some()),
                Err(why) => assert!(!matches!(why, NotCounted::Other(_)), "{counter}: {why}"),
            }
        }
    }
}
