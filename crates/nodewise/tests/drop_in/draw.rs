//! Drawing command lines.

mod known;
mod line;
mod nodes;
mod numactl;
mod tools;

pub use known::{KNOWN, known};
pub use line::{Argument, Line};

use nodewise_stats::random::Random;

/// The command line of a number: the same for a seed, whatever else is drawn.
pub fn line(seed: u64, number: u64) -> Line {
    let mut dice = Dice(Random::stream(seed, number));
    match dice.below(20) {
        0..=12 => numactl::draw(&mut dice),
        13..=14 => tools::numastat(&mut dice),
        15 => tools::migratepages(&mut dice),
        16 => tools::migspeed(&mut dice),
        17..=18 => tools::memhog(&mut dice),
        _ => tools::friend_without_sense(&mut dice),
    }
}

/// Source of random draws.
pub struct Dice(Random);

impl Dice {
    /// A number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// Yes in this many of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.index(of.len())]
    }

    /// One of several texts.
    pub fn text(&mut self, of: &[&str]) -> String {
        self.one(of).to_owned()
    }
}
