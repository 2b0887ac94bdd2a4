//! A thread on one CPU: put there, warmed up, and proven to have stayed.

use std::hint::black_box;
use std::time::Duration;

use nodewise_machine::{CpuId, CpuSet};
use nodewise_syscall::{Task, affinity};

use super::Refusal;
use crate::timer::Timer;

/// Steps of the probe's loop per look at the clock: some 10 us.
const STEPS: u32 = 10_000;
/// How often it is timed; the least counts.
const TIMES: u32 = 5;

/// How fast a CPU goes, by a loop that uses nothing but registers: neither caches nor memory, so that
/// only the clock of the core, and who shares it, decide.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Probe {
    /// Time of one step, ns: the same few cycles on every run.
    pub ns_per_step: f64,
}

impl Probe {
    /// Runs the loop in the calling thread for some 50 us.
    pub fn take(timer: &Timer) -> Self {
        let mut least = Duration::MAX;
        let mut seed = 1;
        for _ in 0..TIMES {
            let begin = timer.now();
            seed = spin(seed, STEPS);
            least = least.min(timer.now().since(begin));
        }
        black_box(seed);
        Self { ns_per_step: least.as_nanos() as f64 / f64::from(STEPS) }
    }

    /// How many steps take so long, to the next one.
    pub fn steps(&self, ns: u32) -> u32 {
        // A number that does not fit becomes the largest that does.
        (f64::from(ns) / self.ns_per_step.max(1e-3)).round() as u32
    }
}

/// This many steps of a chain of multiplications, each of which needs the one before: nothing but
/// registers is used.
pub(crate) fn spin(seed: u64, steps: u32) -> u64 {
    let mut value = black_box(seed);
    for _ in 0..steps {
        value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1;
    }
    black_box(value)
}

/// The calling thread, bound to one CPU until this is dropped or given up.
#[derive(Debug)]
pub struct Seat {
    cpu: CpuId,
    before: CpuSet,
}

impl Seat {
    /// Binds the calling thread to a CPU and lets it spin there for so long, so that the CPU is awake
    /// and at speed.
    ///
    /// # Errors
    /// [`Refusal::CpuLost`] for a CPU that is offline or not allowed, and refused calls.
    pub fn take(cpu: CpuId, warm_up: Duration, timer: &Timer) -> Result<Self, Refusal> {
        let before = affinity::cpus(Task::CURRENT)?;
        affinity::set_cpus(Task::CURRENT, &CpuSet::from([cpu.number()])).map_err(|error| {
            // Only that is what the kernel says of a missing CPU.
            if error.errno == nodewise_syscall::Errno::EINVAL {
                Refusal::CpuLost { cpu }
            } else {
                Refusal::Call(error)
            }
        })?;
        let seat = Self { cpu, before };
        let begin = timer.now();
        while timer.now().since(begin) < warm_up {
            black_box(spin(1, STEPS));
        }
        seat.check()?;
        Ok(seat)
    }

    /// The CPU.
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// Whether the thread is still there: a CPU that is switched off gives its threads to others,
    /// bound or not.
    ///
    /// # Errors
    /// [`Refusal::CpuLost`] when it runs elsewhere, and a refused call.
    pub fn check(&self) -> Result<(), Refusal> {
        let (now, _) = affinity::current_cpu()?;
        if now == self.cpu { Ok(()) } else { Err(Refusal::CpuLost { cpu: self.cpu }) }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // Where the old CPUs are gone, the thread stays where it is: nothing depends on it.
        let _ = affinity::set_cpus(Task::CURRENT, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::id::Id as _;

    #[test]
    fn a_thread_sits_on_its_cpu_and_gets_its_others_back() {
        std::thread::spawn(|| {
            let timer = Timer::choose();
            let before = affinity::cpus(Task::CURRENT).unwrap();
            for cpu in before.iter().take(2) {
                let seat = Seat::take(cpu, Duration::ZERO, &timer).unwrap();
                assert_eq!(affinity::cpus(Task::CURRENT).unwrap(), CpuSet::from([cpu.number()]));
                assert!(seat.check().is_ok());
                drop(seat);
                assert_eq!(affinity::cpus(Task::CURRENT).unwrap(), before);
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        let timer = Timer::choose();
        let cpu = CpuId::new(CpuId::LIMIT - 1);
        assert_eq!(Seat::take(cpu, Duration::ZERO, &timer).unwrap_err(), Refusal::CpuLost { cpu });
    }

    #[test]
    fn a_thread_that_was_moved_away_is_noticed() {
        std::thread::spawn(|| {
            let timer = Timer::choose();
            let (here, _) = affinity::current_cpu().unwrap();
            let seat = Seat::take(here, Duration::ZERO, &timer).unwrap();
            let elsewhere = Seat { cpu: CpuId::new(here.number() + 1), before: seat.before.clone() };
            assert_eq!(elsewhere.check(), Err(Refusal::CpuLost { cpu: elsewhere.cpu }));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_probe_has_a_speed() {
        let probe = Probe::take(&Timer::choose());
        assert!(probe.ns_per_step > 0.0);
        assert_eq!(probe.steps(0), 0);
        assert_eq!(Probe { ns_per_step: 0.5 }.steps(100), 200);
        assert_eq!(Probe { ns_per_step: 0.0 }.steps(u32::MAX), u32::MAX);
    }
}
