//! The generator behind every shuffled order, resample and chain, and its seed.
//!
//! It is part of the results: a study, its order and its intervals can be made again from the seed
//! that is printed with them. The sequences are therefore fixed permanently, on every platform and in
//! every release; the tests hold them to published values.
//!
//! # Source
//! xoshiro256** 1.0 (Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM
//! TOMS 47, 2021), its state filled by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014); both are in
//! the public domain.

use crate::distribution::normal_quantile;

/// A generator of pseudorandom numbers; not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

/// Advances a SplitMix64 state and gives its next value.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        // SplitMix64 gives each value once in its period, so the state is never all zero.
        Self { state: std::array::from_fn(|_| split_mix(&mut mix)) }
    }

    /// The generator of one use of a seed, independent of the other uses.
    ///
    /// Block 7 of a schedule is the same whether blocks 1 to 6 were drawn or not, and a longer
    /// study begins as the shorter one did.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut mix = stream;
        let salt = split_mix(&mut mix);
        Self::new(seed ^ salt)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [_, s1, ..] = self.state;
        let result = s1.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s1 << 17;
        self.state[2] ^= self.state[0];
        self.state[3] ^= self.state[1];
        self.state[1] ^= self.state[2];
        self.state[0] ^= self.state[3];
        self.state[2] ^= t;
        self.state[3] = self.state[3].rotate_left(45);
        result
    }

    /// A number below `bound`, each equally likely; 0 for a bound of 0.
    ///
    /// # Source
    /// Lemire, "Fast random integer generation in an interval", ACM TOMACS 29, 2019: a wide
    /// product, and the few values that would favour small numbers are drawn again.
    pub fn below(&mut self, bound: u64) -> u64 {
        let mut product = u128::from(self.bits()) * u128::from(bound);
        if (product as u64) < bound {
            let unfair = bound.wrapping_neg() % bound;
            while (product as u64) < unfair {
                product = u128::from(self.bits()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// An index into a collection of this length; 0 for an empty one.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number of [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A value of the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        // 0 has no quantile; the least that is drawn instead lies 38 deviations from the mean.
        normal_quantile(self.unit().max(f64::MIN_POSITIVE))
    }

    /// Puts the items in an order; all orders are equally likely (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn the_seeding_sequence_is_the_published_one() {
        let mut state = 1_234_567;
        let drawn: [u64; 5] = std::array::from_fn(|_| split_mix(&mut state));
        assert_eq!(
            drawn,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821,
            ]
        );
    }

    #[test]
    fn the_sequence_is_the_published_one() {
        // From the authors' C code with the state 1, 2, 3, 4.
        let mut random = Random { state: [1, 2, 3, 4] };
        let drawn: [u64; 6] = std::array::from_fn(|_| random.bits());
        assert_eq!(
            drawn,
            [
                11_520,
                0,
                1_509_978_240,
                1_215_971_899_390_074_240,
                1_216_172_134_540_287_360,
                607_988_272_756_665_600,
            ]
        );
    }

    #[test]
    fn a_bound_of_three_is_met_evenly() {
        let mut random = Random::new(5);
        let mut counts = [0u32; 3];
        for _ in 0..30_000 {
            counts[random.index(3)] += 1;
        }
        // Standard deviation 82; five of them.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 410), "{counts:?}");
    }

    #[test]
    fn every_order_of_three_is_equally_likely() {
        let mut random = Random::new(6);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..60_000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        // Standard deviation 91; five of them.
        assert!(counts.values().all(|count| count.abs_diff(10_000) < 457), "{counts:?}");
    }

    #[test]
    fn streams_of_one_seed_differ() {
        assert_ne!(Random::stream(1, 0).bits(), Random::stream(1, 1).bits());
        assert_ne!(Random::stream(1, 0).bits(), Random::stream(2, 0).bits());
        assert_eq!(Random::stream(1, 7), Random::stream(1, 7));
    }

    proptest! {
        #[test]
        fn numbers_stay_below_their_bound(seed in any::<u64>(), bound in 1u64..) {
            prop_assert!(Random::new(seed).below(bound) < bound);
            prop_assert!((0.0..1.0).contains(&Random::new(seed).unit()));
        }

        #[test]
        fn a_shuffle_keeps_every_item(seed in any::<u64>(), length in 0usize..50) {
            let mut items: Vec<usize> = (0..length).collect();
            Random::new(seed).shuffle(&mut items);
            items.sort_unstable();
            prop_assert_eq!(items, (0..length).collect::<Vec<_>>());
        }
    }
}
