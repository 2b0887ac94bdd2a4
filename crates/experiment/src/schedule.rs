//! The order of runs: randomised complete blocks.
//!
//! A block runs every arm once, in an order drawn afresh for each block, so that whatever drifts
//! (temperature, other tenants, the page cache) meets all arms alike and no arm always follows the
//! same other. The baseline runs twice in every block: the difference of these two, which are the
//! same thing, is what this machine's noise looks like today (an A/A control).
//!
//! # Source
//! Fisher, "The arrangement of field experiments", 1926, for the blocks and the drawing.

use std::fmt;

use nodewise_stats::random::Random;

/// How often the baseline runs in a block.
pub const BASELINE_RUNS: u8 = 2;

/// One of the things compared, by its place in the plan; the baseline is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArmId(u32);

impl ArmId {
    /// The arm that all others are compared with.
    pub const BASELINE: Self = Self(0);

    /// The arm with this number; 0 is the baseline.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Whether the arm is the baseline.
    pub fn is_baseline(self) -> bool {
        self == Self::BASELINE
    }
}

/// A block: the warm-up, whose results are not compared, or one of those that are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Block {
    /// Fills caches, wakes the CPU, and shows how long a block takes.
    WarmUp,
    /// Counted from 1.
    Measured(u32),
}

impl Block {
    /// Its number, 0 for the warm-up.
    pub const fn number(self) -> u32 {
        match self {
            Self::WarmUp => 0,
            Self::Measured(number) => number,
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WarmUp => f.write_str("warm-up"),
            Self::Measured(number) => write!(f, "block {number}"),
        }
    }
}

/// One run in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    pub arm: ArmId,
    /// Which of its runs in this block, from 0; only the baseline has more than one.
    pub replicate: u8,
}

/// The runs of a block in their order.
///
/// The order of a measured block depends on the seed, on the number of arms and on the block's own
/// number, and on nothing that happened before. To go on without an arm, leave out its slots: an
/// order drawn at random stays one. The warm-up is in the order of the plan: nothing of it is
/// compared, and a program that does not work at all shows that in the first run.
pub fn order(block: Block, arms: u32, seed: u64) -> Vec<Slot> {
    let replicates = |arm| if arm == 0 { BASELINE_RUNS } else { 1 };
    let mut slots: Vec<Slot> = (0..arms)
        .flat_map(|arm| (0..replicates(arm)).map(move |replicate| Slot { arm: ArmId(arm), replicate }))
        .collect();
    if let Block::Measured(number) = block {
        Random::stream(seed, u64::from(number)).shuffle(&mut slots);
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn check(block: Block, arms: u32, seed: u64, expected: &str) {
        let name = |slot: &Slot| match (slot.arm.number(), slot.replicate) {
            (0, replicate) => ["A", "a"][usize::from(replicate)].to_owned(),
            (arm, _) => arm.to_string(),
        };
        assert_eq!(order(block, arms, seed).iter().map(name).collect::<String>(), expected);
    }

    #[test]
    fn the_warm_up_begins_with_the_baseline() {
        check(Block::WarmUp, 4, 1, "Aa123");
        check(Block::WarmUp, 4, 2, "Aa123");
    }

    // A release that changes these orders can no longer repeat the studies of an older one.
    #[test]
    fn the_orders_of_a_seed_are_fixed_for_good() {
        check(Block::Measured(1), 4, 1, "21a3A");
        check(Block::Measured(2), 4, 1, "312Aa");
        check(Block::Measured(1), 4, 2, "A32a1");
    }

    #[test]
    fn every_arm_takes_every_place_about_equally_often() {
        let mut counts = [[0u32; 4]; 4];
        for number in 1..=8000 {
            for (place, slot) in order(Block::Measured(number), 3, 9).into_iter().enumerate() {
                let row = if slot.replicate == 1 { 3 } else { slot.arm.number() as usize };
                counts[row][place] += 1;
            }
        }
        // 2,000 each; standard deviation 39, five of them.
        assert!(counts.iter().flatten().all(|count| count.abs_diff(2000) < 195), "{counts:?}");
    }

    proptest! {
        #[test]
        fn a_block_holds_each_arm_once_and_the_baseline_twice(
            arms in 1u32..40, seed in any::<u64>(), number in any::<u32>(),
        ) {
            let mut slots = order(Block::Measured(number), arms, seed);
            slots.sort_unstable();
            prop_assert_eq!(slots, order(Block::WarmUp, arms, seed));
        }
    }
}
