//! A chain of dependent loads through memory in random order: nanoseconds per load.

use std::time::Duration;

use nodewise_machine::Bytes;

use super::{WorkloadError, resolved};
use crate::kernel::chase::{Chain, LINE, TURN};
use crate::timer::Timer;
use nodewise_stats::median;
use nodewise_stats::random::Random;

/// Loads in one sample: some 80 us where every load hits the first cache, some 15 ms in memory.
const LOADS: u64 = 1 << 16;

/// The command to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChaseOptions {
    pub size: Bytes,
    /// How many times 65,536 loads are timed; a first, untimed lap proves that the chain is one
    /// cycle.
    pub samples: u32,
    /// The seed of the order of the chain.
    pub seed: u64,
}

impl ChaseOptions {
    /// A run over this size: 32 samples, half a second at 250 ns per load, after about as long for
    /// making and proving a chain of 128 MiB.
    pub fn new(size: Bytes) -> Self {
        Self { size, samples: 32, seed: 1 }
    }
}

/// The measured values.
#[derive(Clone, Debug, PartialEq)]
pub struct ChaseResult {
    /// Size of the chain: of whole lines.
    pub size: Bytes,
    pub lines: u64,
    /// Nanoseconds per load of each sample, in order.
    pub ns_per_load: Vec<f64>,
    /// Time to make the chain and to prove it.
    pub setup: Duration,
    pub timed: Duration,
    pub timer: Timer,
}

impl ChaseResult {
    /// The median over samples: what a program gets.
    pub fn median_ns(&self) -> f64 {
        median(&self.ns_per_load).expect("there is at least one sample")
    }

    /// The least over samples: what the hardware does when nothing disturbs it.
    pub fn least_ns(&self) -> f64 {
        self.ns_per_load.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Makes a chain, proves that it is one cycle, and follows it.
///
/// # Errors
/// Without memory, for sizes below one line, and when a check fails.
pub fn run(options: &ChaseOptions) -> Result<ChaseResult, WorkloadError> {
    let ChaseOptions { size, samples, seed } = *options;
    let lines = usize::try_from(size.get() / LINE as u64).unwrap_or(usize::MAX);
    if lines == 0 {
        return Err(WorkloadError::TooSmall { size, threads: 1, least: Bytes::new(LINE as u64) });
    }
    if samples == 0 {
        return Err(WorkloadError::Nothing { what: "samples" });
    }
    let timer = Timer::choose();
    let begin = timer.now();
    let chain = Chain::new(lines, &mut Random::new(seed)).ok_or(WorkloadError::NoMemory { size })?;
    let turns = LOADS / TURN;
    let expected = chain.prove(turns * u64::from(samples)).map_err(|steps| broken(lines, steps))?;
    let setup = timer.now().since(begin);
    let (mut ns_per_load, mut timed) = (Vec::new(), Duration::ZERO);
    let mut at = chain.start();
    for _ in 0..samples {
        let begin = timer.now();
        at = chain.follow(at, turns);
        let elapsed = resolved(timer.now().since(begin), &timer)?;
        ns_per_load.push(elapsed.as_nanos() as f64 / LOADS as f64);
        timed += elapsed;
    }
    if at != expected {
        return Err(WorkloadError::Wrong { what: "the loads did not lead where the chain leads".to_owned() });
    }
    let size = Bytes::new((lines * LINE) as u64);
    Ok(ChaseResult { size, lines: lines as u64, ns_per_load, setup, timed, timer })
}

fn broken(lines: usize, steps: usize) -> WorkloadError {
    let what = if steps > lines {
        format!("the chain of {lines} lines does not come back")
    } else {
        format!("the chain of {lines} lines comes back after {steps} steps")
    };
    WorkloadError::Wrong { what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_gives_every_sample() {
        let options = ChaseOptions { size: Bytes::from_mib(8), samples: 3, seed: 4 };
        let result = run(&options).unwrap();
        assert_eq!((result.size, result.lines), (Bytes::from_mib(8), 1 << 17));
        assert_eq!(result.ns_per_load.len(), 3);
        assert!(result.least_ns() > 0.0 && result.least_ns() <= result.median_ns());
        let total: f64 = result.ns_per_load.iter().sum::<f64>() * LOADS as f64;
        assert!((result.timed.as_nanos() as f64 / total - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_chain_in_the_first_cache_is_long_enough_for_the_clock() {
        assert_eq!(run(&ChaseOptions::new(Bytes::from_kib(4))).unwrap().ns_per_load.len(), 32);
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let check = |size, samples, expected: &str| {
            let error = run(&ChaseOptions { size, samples, seed: 1 }).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check(Bytes::new(63), 1, "63 B is too small for 1 thread: expected at least 64 B");
        check(Bytes::from_mib(1), 0, "0 samples were asked for: expected 1 or more");
        check(Bytes::new(u64::MAX), 1, "no memory for 16384 PiB: expected a smaller size");
    }
}
