//! The load of CPUs: the differences of their times, summed by node as `mpstat -N` does.

use std::collections::BTreeMap;

use nodewise_machine::{CpuId, CpuSet};
use nodewise_source::parse::proc_stat::CpuTimes;

/// Shares of the time of several CPUs, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuLoad {
    /// CPUs whose times are known.
    pub cpus: usize,
    /// Everything but idle time and waiting for a disk.
    pub busy: f64,
    /// Programs, those of low priority included.
    pub user: f64,
    pub system: f64,
    /// Interrupts, soft ones included; `None`: this release does not count them.
    pub interrupts: Option<f64>,
    pub waiting: Option<f64>,
    pub stolen: Option<f64>,
    /// The busiest of them.
    pub busiest: (CpuId, f64),
}

/// The times that CPUs spent between two samples.
pub(super) struct Times {
    cpus: BTreeMap<CpuId, CpuTimes>,
    /// CPUs whose idle time ran backwards.
    pub(super) idle_went_back: usize,
}

impl Times {
    /// CPUs that are in one sample only, or whose time of work ran backwards, are left out.
    pub(super) fn between(before: Option<&[(CpuId, CpuTimes)]>, now: &[(CpuId, CpuTimes)]) -> Self {
        let earlier: Option<BTreeMap<CpuId, CpuTimes>> = before.map(|cpus| cpus.iter().copied().collect());
        let mut times = Self { cpus: BTreeMap::new(), idle_went_back: 0 };
        for (cpu, now) in now {
            let change = match &earlier {
                None => Some((*now, false)),
                Some(earlier) => earlier.get(cpu).and_then(|earlier| since(now, earlier)),
            };
            if let Some((change, went_back)) = change {
                times.idle_went_back += usize::from(went_back);
                times.cpus.insert(*cpu, change);
            }
        }
        times
    }

    /// The load of these CPUs; `None` where the time of none is known.
    pub(super) fn load(&self, cpus: &CpuSet) -> Option<CpuLoad> {
        let known: Vec<(CpuId, &CpuTimes)> = cpus
            .iter()
            .filter_map(|cpu| Some((cpu, self.cpus.get(&cpu)?)))
            .filter(|(_, times)| times.total() > 0)
            .collect();
        let sum =
            |part: &dyn Fn(&CpuTimes) -> u64| known.iter().map(|(_, times)| part(times) as f64).sum::<f64>();
        let all = sum(&CpuTimes::total);
        let share = |part: &dyn Fn(&CpuTimes) -> u64| sum(part) / all;
        let optional = |part: &dyn Fn(&CpuTimes) -> Option<u64>| {
            let is_known = known.iter().any(|(_, times)| part(times).is_some());
            is_known.then(|| share(&|times| part(times).unwrap_or(0)))
        };
        let busy_of = |times: &CpuTimes| busy(times) as f64 / times.total() as f64;
        let busiest = known.iter().map(|(cpu, times)| (*cpu, busy_of(times)));
        let busiest = busiest.max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)))?;
        Some(CpuLoad {
            cpus: known.len(),
            busy: share(&busy),
            user: share(&|times| times.user.saturating_add(times.nice)),
            system: share(&|times| times.system),
            interrupts: optional(&|times| Some(times.irq?.saturating_add(times.softirq.unwrap_or(0)))),
            waiting: optional(&|times| times.iowait),
            stolen: optional(&|times| times.steal),
            busiest,
        })
    }
}

fn busy(times: &CpuTimes) -> u64 {
    times.total().saturating_sub(times.idle).saturating_sub(times.iowait.unwrap_or(0))
}

/// The times between two readings, and whether idle time ran backwards, as it and the time of waiting do in some
/// releases: that part counts as 0.
fn since(now: &CpuTimes, before: &CpuTimes) -> Option<(CpuTimes, bool)> {
    let part = |now: Option<u64>, before: Option<u64>| match (now, before) {
        (Some(now), Some(before)) => now.checked_sub(before).map(Some),
        _ => Some(None),
    };
    let waiting = now.iowait.zip(before.iowait);
    let went_back = now.idle < before.idle || waiting.is_some_and(|(now, before)| now < before);
    let times = CpuTimes {
        user: now.user.checked_sub(before.user)?,
        nice: now.nice.checked_sub(before.nice)?,
        system: now.system.checked_sub(before.system)?,
        idle: now.idle.saturating_sub(before.idle),
        iowait: waiting.map(|(now, before)| now.saturating_sub(before)),
        irq: part(now.irq, before.irq)?,
        softirq: part(now.softirq, before.softirq)?,
        steal: part(now.steal, before.steal)?,
    };
    Some((times, went_back))
}
