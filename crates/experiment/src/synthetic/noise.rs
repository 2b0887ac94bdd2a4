//! Noise as on real machines: seven kinds, each with a strength of its own.

use std::f64::consts::TAU;

use nodewise_stats::random::Random;

/// A kind of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseKind {
    /// A machine of one's own: 0.1 to 0.5 %.
    Quiet,
    /// A shared one: 0.5 to 4 %.
    Loud,
    /// Temperature and neighbours: up to 10 % over some hundred runs, with a random walk on top.
    Drift,
    /// Now and then 5 to 40 % for a few runs: a backup, a neighbour.
    Bursts,
    /// Two speeds, 2 to 8 % apart, one of them by chance in each run: where pages or threads fell.
    Bimodal,
    /// Each run resembles the one before.
    Autocorrelated,
    /// Mostly quiet, with runs far off that come alone.
    HeavyTailed,
}

impl NoiseKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Quiet,
        Self::Loud,
        Self::Drift,
        Self::Bursts,
        Self::Bimodal,
        Self::Autocorrelated,
        Self::HeavyTailed,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Loud => "loud",
            Self::Drift => "drift",
            Self::Bursts => "bursts",
            Self::Bimodal => "bimodal",
            Self::Autocorrelated => "autocorrelated",
            Self::HeavyTailed => "heavy-tailed",
        }
    }

    /// Noise of this kind from its first run on.
    pub fn begin(self, seed: u64) -> Noise {
        let mut random = Random::stream(seed, u64::MAX);
        let mut between = |low: f64, high: f64| low + (high - low) * random.unit();
        let process = match self {
            Self::Quiet => Process::White { deviation: 10f64.powf(between(-3.0, -2.3)) },
            Self::Loud => Process::White { deviation: between(0.005, 0.04) },
            Self::Drift => Process::Drift {
                deviation: between(0.003, 0.01),
                swing: between(-0.1, 0.1),
                period: between(50.0, 400.0),
                runs: 0.0,
                walk: 0.0,
            },
            Self::Bursts => {
                Process::Bursts { chance: between(0.01, 0.05), height: between(0.05, 0.4), is_on: false }
            }
            Self::Bimodal => Process::Bimodal { chance: between(0.1, 0.5), height: between(0.02, 0.08) },
            Self::Autocorrelated => Process::Autocorrelated {
                memory: between(0.5, 0.95),
                deviation: between(0.005, 0.03),
                last: 0.0,
            },
            Self::HeavyTailed => Process::HeavyTailed { scale: between(0.002, 0.01) },
        };
        Noise { random, process }
    }
}

#[derive(Clone, Debug)]
enum Process {
    White { deviation: f64 },
    Drift { deviation: f64, swing: f64, period: f64, runs: f64, walk: f64 },
    Bursts { chance: f64, height: f64, is_on: bool },
    Bimodal { chance: f64, height: f64 },
    Autocorrelated { memory: f64, deviation: f64, last: f64 },
    HeavyTailed { scale: f64 },
}

/// The extra costs of the runs of one experiment, one after the other.
#[derive(Clone, Debug)]
pub struct Noise {
    random: Random,
    process: Process,
}

impl Noise {
    /// Draws the extra cost of the next run, as a logarithm.
    pub fn next_run(&mut self) -> f64 {
        let random = &mut self.random;
        match &mut self.process {
            Process::White { deviation } => *deviation * random.normal(),
            Process::Drift { deviation, swing, period, runs, walk } => {
                *runs += 1.0;
                *walk += 0.004 * random.normal();
                *walk + *swing * (TAU * *runs / *period).sin() + *deviation * random.normal()
            }
            Process::Bursts { chance, height, is_on } => {
                // One in four runs ends a burst.
                *is_on = random.unit() < if *is_on { 0.75 } else { *chance };
                if *is_on { *height + 0.005 * random.normal() } else { 0.005 * random.normal() }
            }
            Process::Bimodal { chance, height } => {
                let slow = random.unit() < *chance;
                0.003 * random.normal() + if slow { *height } else { 0.0 }
            }
            Process::Autocorrelated { memory, deviation, last } => {
                let fresh = *deviation * (1.0 - *memory * *memory).sqrt();
                *last = *memory * *last + fresh * random.normal();
                *last + 0.002 * random.normal()
            }
            // A normal value divided by a power of a uniform one has the tail of that power.
            Process::HeavyTailed { scale } => *scale * random.normal() / random.unit().max(1e-9).powf(0.4),
        }
    }
}
