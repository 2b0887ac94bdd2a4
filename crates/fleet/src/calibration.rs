//! Simulated groups of equal machines: the table of thresholds, and how often the rule is wrong.

use nodewise_stats::distribution::normal_cdf;
use nodewise_stats::random::Random;

use crate::outlier::{NORMAL, Slowness, judge};

/// Groups up to this size are simulated as they are. Of larger ones only the middle is: given that, the probability of
/// the largest value is known, and a hundredth of the groups gives the same precision.
const WHOLE: usize = 64;

/// The sizes of groups in the table of thresholds.
pub const SIZES: [u32; 30] = [
    8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 28, 32, 40, 48, 64, 96, 128, 256,
    512, 1024, 4096, 10_000,
];

/// Two values of the standard normal distribution.
///
/// # Source
/// Box and Muller, "A note on the generation of random normal deviates", Ann. Math. Stat. 29, 1958.
fn normals(random: &mut Random) -> [f64; 2] {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    let (sine, cosine) = (std::f64::consts::TAU * random.unit()).sin_cos();
    [radius * sine, radius * cosine]
}

fn fill(values: &mut [f64], random: &mut Random) {
    for pair in values.chunks_mut(2) {
        let drawn = normals(random);
        pair.copy_from_slice(&drawn[..pair.len()]);
    }
}

/// The median; the values are put into another order.
fn median_of(values: &mut [f64]) -> f64 {
    let (middle, is_even) = (values.len() / 2, values.len() % 2 == 0);
    let (below, at, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if is_even { (below.iter().copied().fold(f64::MIN, f64::max) + *at) / 2.0 } else { *at }
}

/// The median and the robust deviation of a group of normal values.
fn center(values: &mut [f64]) -> (f64, f64) {
    let median = median_of(values);
    for value in values.iter_mut() {
        *value = (*value - median).abs();
    }
    (median, NORMAL * median_of(values))
}

/// The thresholds that the slowest of `n` equal machines with normal noise exceeds with these probabilities, from as many
/// simulated groups.
///
/// # Panics
/// For a group without machines.
pub fn thresholds(n: usize, probabilities: &[f64], groups: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::stream(seed, n as u64);
    let mut values = vec![0.0; n];
    if n <= WHOLE {
        let mut largest: Vec<f64> = (0..groups)
            .map(|_| {
                fill(&mut values, &mut random);
                let most = values.iter().copied().fold(f64::MIN, f64::max);
                let (median, deviation) = center(&mut values);
                (most - median) / deviation
            })
            .collect();
        largest.sort_unstable_by(f64::total_cmp);
        let at = |probability: &f64| largest[groups - 1 - (groups as f64 * probability) as usize];
        return probabilities.iter().map(at).collect();
    }
    let centers: Vec<(f64, f64)> = (0..groups.div_ceil(100))
        .map(|_| {
            fill(&mut values, &mut random);
            center(&mut values)
        })
        .collect();
    probabilities.iter().map(|probability| solve(&centers, n, *probability)).collect()
}

/// The threshold that the largest of `n` values exceeds with this probability in groups with these centers.
fn solve(centers: &[(f64, f64)], n: usize, probability: f64) -> f64 {
    let exceeds = |threshold: f64| {
        let one = |(median, deviation): &(f64, f64)| {
            let tail = 1.0 - normal_cdf(median + threshold * deviation);
            -(n as f64 * (-tail).ln_1p()).exp_m1()
        };
        centers.iter().map(one).sum::<f64>() / centers.len() as f64
    };
    let (mut low, mut high) = (0.0, 12.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if exceeds(middle) > probability { low = middle } else { high = middle }
    }
    high
}

/// The noise between healthy machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    Normal,
    /// Student's t with 5 degrees of freedom, of the same standard deviation: rare values lie far out.
    Student,
    /// Exponential: never much faster, now and then much slower.
    Skewed,
    /// Normal, rounded to steps of 2.5 standard deviations.
    Rounded,
}

impl Noise {
    pub const ALL: [Self; 4] = [Self::Normal, Self::Student, Self::Skewed, Self::Rounded];

    /// Its name in a table.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Student => "Student's t, 5 degrees of freedom",
            Self::Skewed => "exponential",
            Self::Rounded => "normal, rounded to 2.5 deviations",
        }
    }

    /// A value with a standard deviation of 1.
    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Self::Normal => normals(random)[0],
            Self::Student => {
                let chi: f64 = (0..5).map(|_| normals(random)[0].powi(2)).sum();
                normals(random)[0] / (chi / 5.0).sqrt() * (3.0_f64 / 5.0).sqrt()
            }
            Self::Skewed => -(1.0 - random.unit()).ln(),
            Self::Rounded => (normals(random)[0] / 2.5).round() * 2.5,
        }
    }
}

/// A fleet to simulate: groups of equal machines, with one figure each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedGroup {
    pub machines: usize,
    pub noise: Noise,
    /// The standard deviation between healthy machines, as a part of the usual value.
    pub spread: f64,
    /// How many times slower the first machine is: 1 for a healthy group.
    pub effect: f64,
    /// The probability of a verdict against any machine of a healthy group.
    pub probability: f64,
}

/// How often the rule spoke.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Rates {
    /// Groups with a verdict against a healthy machine.
    pub false_alarms: f64,
    /// Groups with a verdict against the slow machine.
    pub found: f64,
    /// Groups that seemed to be two populations.
    pub split: f64,
}

/// Plays the rule for this many groups.
pub fn rates(group: SimulatedGroup, groups: usize, seed: u64) -> Rates {
    let mut random = Random::stream(seed, group.machines as u64);
    let mut rates = Rates::default();
    let mut slowness = vec![Slowness { value: 1.0, error: 0.0 }; group.machines];
    for _ in 0..groups {
        for machine in &mut slowness {
            machine.value = (1.0 + group.spread * group.noise.draw(&mut random)).max(0.1);
        }
        slowness[0].value *= group.effect;
        let populations = judge(&slowness, group.probability);
        let outliers: Vec<usize> = populations.iter().flat_map(|one| one.outliers.iter().copied()).collect();
        let is_sick = group.effect > 1.0;
        rates.false_alarms += f64::from(u8::from(outliers.iter().any(|at| *at > 0 || !is_sick)));
        rates.found += f64::from(u8::from(is_sick && outliers.contains(&0)));
        rates.split += f64::from(u8::from(populations.len() > 1));
    }
    for rate in [&mut rates.false_alarms, &mut rates.found, &mut rates.split] {
        *rate /= groups as f64;
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threshold::threshold;

    #[test]
    fn both_ways_to_calibrate_agree_where_they_meet() {
        let direct = thresholds(64, &[0.01, 0.001], 100_000, 1);
        let mut random = Random::stream(2, 64);
        let mut values = vec![0.0; 64];
        let centers: Vec<_> = (0..20_000)
            .map(|_| {
                fill(&mut values, &mut random);
                center(&mut values)
            })
            .collect();
        for (direct, probability) in direct.into_iter().zip([0.01, 0.001]) {
            let solved = solve(&centers, 64, probability);
            assert!((direct / solved - 1.0).abs() < 0.05, "{probability}: {direct} {solved}");
        }
    }

    #[test]
    fn a_healthy_group_has_an_outlier_as_seldom_as_the_table_promises() {
        for machines in [8, 11, 20, 40, 100, 700] {
            let limit = threshold(machines, 0.01).unwrap();
            let mut random = Random::stream(7, machines as u64);
            let mut values = vec![0.0; machines];
            let groups = 400_000 / machines;
            let exceeding = (0..groups)
                .filter(|_| {
                    fill(&mut values, &mut random);
                    let most = values.iter().copied().fold(f64::MIN, f64::max);
                    let (median, deviation) = center(&mut values);
                    most > median + limit * deviation
                })
                .count();
            // Four standard errors around 1 %.
            let error = 4.0 * (0.01 * 0.99 / groups as f64).sqrt();
            let share = exceeding as f64 / groups as f64;
            assert!((share - 0.01).abs() < error + 0.001, "{machines}: {share} of {groups}");
        }
    }

    #[test]
    fn what_is_found_grows_with_the_effect() {
        let group = SimulatedGroup {
            machines: 32,
            noise: Noise::Normal,
            spread: 0.02,
            effect: 1.0,
            probability: 0.01,
        };
        assert!(rates(group, 400, 3).false_alarms <= 0.03);
        let found = |effect| rates(SimulatedGroup { effect, ..group }, 400, 3).found;
        assert!(found(1.05) < found(1.1) && found(1.3) > 0.99, "{} {}", found(1.05), found(1.1));
    }
}
