//! Disturbances for the runs of equal arms: shapes of noise that no advice may fall for.
//!
//! Other than [`super::NoiseKind`], whose strengths are drawn from what real machines show, these are fixed and
//! go to extremes: each broke, or could break, a test that trusts a model of the noise.

use std::f64::consts::TAU;

use super::series::SECONDS;
use nodewise_stats::random::Random;

/// A shape of noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// Normal, 2 %.
    Normal,
    /// Lognormal: the logarithm of what is lost has a deviation of 1.
    Lognormal,
    /// Pareto with the index 1.5: no variance.
    Pareto,
    /// Exponential, 3 %.
    Exponential,
    /// Two levels that are this far apart, the upper one in this share of runs, with this jitter.
    Levels(f64, f64, f64),
    /// This share of runs is longer by anything up to a half.
    Spikes(f64),
    /// The machine becomes slower by 40 % over some hundred runs, and faster again.
    Drift,
    /// Now and then 30 % for about five runs.
    Bursts,
    /// Each run resembles the one before: 90 % of its deviation stays.
    Autocorrelated,
    /// Normal, 2 %, read from a clock with steps of 2 %.
    Quantised,
    /// Three values, and most runs have the same.
    Ties,
    /// Every run takes the same time.
    Constant,
    /// One of two values, 10 % apart, without any jitter.
    TwoValued,
    /// The recorded runs of one unchanged program, in their order.
    Recorded,
}

impl Disturbance {
    /// All that are played.
    pub const ALL: [Self; 20] = [
        Self::Normal,
        Self::Lognormal,
        Self::Pareto,
        Self::Exponential,
        Self::Levels(0.02, 0.5, 0.002),
        Self::Levels(0.1, 0.3, 0.005),
        Self::Levels(0.35, 0.5, 0.02),
        Self::Levels(0.35, 0.5, 0.005),
        Self::Levels(0.5, 0.1, 0.01),
        Self::Spikes(0.05),
        Self::Spikes(0.2),
        Self::Spikes(0.3),
        Self::Drift,
        Self::Bursts,
        Self::Autocorrelated,
        Self::Quantised,
        Self::Ties,
        Self::Constant,
        Self::TwoValued,
        Self::Recorded,
    ];

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Levels(apart, share, jitter) => format!(
                "two levels {:.0} % apart, {:.0} % slow, jitter {} %",
                apart * 100.0,
                share * 100.0,
                jitter * 100.0
            ),
            Self::Spikes(share) => format!("spikes in {:.0} % of runs", share * 100.0),
            Self::Normal => "normal, 2 %".to_owned(),
            Self::Lognormal => "lognormal".to_owned(),
            Self::Pareto => "Pareto 1.5".to_owned(),
            Self::Exponential => "exponential, 3 %".to_owned(),
            Self::Drift => "drift".to_owned(),
            Self::Bursts => "bursts".to_owned(),
            Self::Autocorrelated => "autocorrelated".to_owned(),
            Self::Quantised => "quantised".to_owned(),
            Self::Ties => "ties".to_owned(),
            Self::Constant => "constant".to_owned(),
            Self::TwoValued => "two values".to_owned(),
            Self::Recorded => "recorded series".to_owned(),
        }
    }

    /// Whether runs at one time resemble each other, and differ from runs at another.
    pub fn depends_on_time(self) -> bool {
        matches!(self, Self::Drift | Self::Bursts | Self::Autocorrelated | Self::Recorded)
    }

    /// Whether most of the noise is in at most one run of ten.
    pub fn is_rare(self) -> bool {
        match self {
            Self::Pareto | Self::Levels(_, 0.1, _) => true,
            Self::Spikes(share) => share < 0.1,
            _ => false,
        }
    }

    /// The disturbance of this seed, from its first run on.
    pub fn begin(self, seed: u64) -> Disturbed {
        let mut random = Random::stream(seed, u64::MAX - 1);
        let from = random.index(SECONDS.len());
        Disturbed { what: self, random, runs: from, level: 0.0 }
    }
}

/// The extra costs of the runs of one experiment, one after the other.
#[derive(Clone, Debug)]
pub struct Disturbed {
    what: Disturbance,
    random: Random,
    /// How many there were; the recorded series begins at any of its runs.
    runs: usize,
    level: f64,
}

impl Disturbed {
    /// Draws the extra cost of the next run, as a logarithm.
    pub fn next_run(&mut self) -> f64 {
        self.runs += 1;
        let random = &mut self.random;
        match self.what {
            Disturbance::Normal => 0.02 * random.normal(),
            Disturbance::Lognormal => (0.02 * random.normal().exp()).ln_1p(),
            Disturbance::Pareto => (0.03 * ((1.0 - random.unit()).powf(-1.0 / 1.5) - 1.0)).ln_1p(),
            Disturbance::Exponential => (-0.03 * (1.0 - random.unit()).ln()).ln_1p(),
            Disturbance::Levels(apart, share, jitter) => {
                let slow = if random.unit() < share { apart.ln_1p() } else { 0.0 };
                slow + jitter * random.normal()
            }
            Disturbance::Spikes(share) => {
                let spike = if random.unit() < share { (0.5 * random.unit()).ln_1p() } else { 0.0 };
                spike + 0.01 * random.normal()
            }
            Disturbance::Drift => 0.2 * (TAU * self.runs as f64 / 300.0).sin() + 0.005 * random.normal(),
            Disturbance::Bursts => {
                // One in five runs ends a burst.
                let is_on = random.unit() < if self.level > 0.0 { 0.8 } else { 0.05 };
                self.level = if is_on { 0.3 } else { 0.0 };
                self.level + 0.005 * random.normal()
            }
            Disturbance::Autocorrelated => {
                self.level = 0.9 * self.level + 0.01 * random.normal();
                self.level
            }
            Disturbance::Quantised => (50.0 * (1.0 + 0.02 * random.normal())).round().max(1.0).ln(),
            Disturbance::Ties => match random.index(10) {
                0 => 0.05,
                1 => -0.05,
                _ => 0.0,
            },
            Disturbance::Constant => 0.0,
            Disturbance::TwoValued => {
                if random.unit() < 0.5 {
                    0.1f64.ln_1p()
                } else {
                    0.0
                }
            }
            Disturbance::Recorded => SECONDS[self.runs % SECONDS.len()].ln(),
        }
    }
}
