//! The times of the CPUs, by what they spent them on.
//!
//! # Source
//! `/proc/stat`.
//!
//! # Units
//! Jiffies of `USER_HZ`, 100 per second on every current architecture.

use nodewise_machine::CpuId;
use nodewise_machine::id::Id as _;

use super::{Parsed, digits, lines};

/// Time since boot by what it was spent on. `None`: this release does not count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CpuTimes {
    pub user: u64,
    /// In programs of low priority.
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    /// With nothing to do but a disk to wait for.
    pub iowait: Option<u64>,
    pub irq: Option<u64>,
    pub softirq: Option<u64>,
    /// Taken by the hypervisor for other machines. Linux 2.6.11.
    pub steal: Option<u64>,
}

impl CpuTimes {
    /// All time; guests' time is part of user time already.
    pub fn total(&self) -> u64 {
        let optional = [self.iowait, self.irq, self.softirq, self.steal];
        let parts = [self.user, self.nice, self.system, self.idle];
        parts.into_iter().chain(optional.into_iter().flatten()).fold(0, u64::saturating_add)
    }
}

/// The contents of `/proc/stat`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProcStat {
    pub total: Option<CpuTimes>,
    pub cpus: Vec<(CpuId, CpuTimes)>,
    /// Tasks that run or want to.
    pub running: Option<u64>,
    /// Tasks that wait for a disk.
    pub blocked: Option<u64>,
    /// Processes and threads made since boot: `processes`.
    pub forks: Option<u64>,
}

/// Reads the lines above; others (`intr` can be long) are passed over.
pub fn parse(text: &str) -> Parsed<ProcStat> {
    let mut parsed = Parsed::<ProcStat>::default();
    for (number, line) in lines(text) {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let taken = match name {
            "procs_running" => digits(rest.trim()).map(|count| parsed.value.running = Some(count)),
            "procs_blocked" => digits(rest.trim()).map(|count| parsed.value.blocked = Some(count)),
            "processes" => digits(rest.trim()).map(|count| parsed.value.forks = Some(count)),
            "cpu" => times(rest).map(|times| parsed.value.total = Some(times)),
            _ => match name.strip_prefix("cpu") {
                Some(cpu) => cpu_line(cpu, rest).map(|line| parsed.value.cpus.push(line)),
                None => Some(()),
            },
        };
        if taken.is_none() {
            parsed.problems.add(number, "a name and numbers", line);
        }
    }
    parsed
}

fn cpu_line(cpu: &str, rest: &str) -> Option<(CpuId, CpuTimes)> {
    let cpu = digits(cpu).filter(|cpu| *cpu < CpuId::LIMIT)?;
    Some((CpuId::new(cpu), times(rest)?))
}

fn times(text: &str) -> Option<CpuTimes> {
    let words = text.split_ascii_whitespace().take(10);
    let numbers: Vec<u64> = words.map(digits).collect::<Option<_>>()?;
    let [user, nice, system, idle, ..] = numbers[..] else { return None };
    let at = |place: usize| numbers.get(place).copied();
    Some(CpuTimes { user, nice, system, idle, iowait: at(4), irq: at(5), softirq: at(6), steal: at(7) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn times_are_read_per_cpu_and_together() {
        let parsed = parse(
            "cpu  8 0 4 100 1 0 2 9 3 0\ncpu0 4 0 2 50 1 0 1 5 0 0\ncpu12 4 0 2 50\nintr 1 2 3\nprocesses 77\nprocs_running 2\nprocs_blocked 0\n",
        );
        assert!(parsed.problems.is_empty());
        let total = parsed.value.total.unwrap();
        assert_eq!((total.steal, total.total()), (Some(9), 124), "guest time is not counted twice");
        assert_eq!(parsed.value.cpus[1].0, CpuId::new(12));
        assert_eq!(parsed.value.cpus[1].1.steal, None, "an old kernel does not count it");
        assert_eq!((parsed.value.running, parsed.value.blocked), (Some(2), Some(0)));
        assert_eq!((parsed.value.forks, parse("cpu 1 2 3 4\n").value.forks), (Some(77), None));
    }

    #[test]
    fn a_bad_line_costs_one_line() {
        let parsed =
            parse("cpu 1 2 3\ncpu0 1 2 3 x\ncpu99999999 1 2 3 4\ncpu1 1 2 3 4\nprocs_running many\n");
        assert_eq!((parsed.value.cpus.len(), parsed.problems.count()), (1, 4));
        let full = CpuTimes { user: u64::MAX, nice: 1, ..CpuTimes::default() };
        assert_eq!(full.total(), u64::MAX);
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(cpu in 0u32..8192, t in any::<[u64; 8]>()) {
            let numbers = t.map(|n| n.to_string()).join(" ");
            let parsed = parse(&format!("cpu{cpu} {numbers} 0 0\n"));
            prop_assert!(parsed.problems.is_empty());
            let times = CpuTimes { user: t[0], nice: t[1], system: t[2], idle: t[3], iowait: Some(t[4]), irq: Some(t[5]), softirq: Some(t[6]), steal: Some(t[7]) };
            prop_assert_eq!(parsed.value.cpus, [(CpuId::new(cpu), times)]);
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in r"(cpu[0-9]{0,7}( [0-9x]{0,21}){0,10}\n){0,3}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
