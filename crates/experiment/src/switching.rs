//! Something that is switched on and off in blocks of time: does it help?
//!
//! Blocks come in pairs, one with it and one without, and which of the two is first is drawn for each pair. If it
//! makes no difference, the one that is on is better in a pair with the probability 1/2 given everything else that
//! happened, whatever the noise is like and whatever it was before: so two bettors, one for each direction, are each
//! wrong with at most half of [`ALPHA`], however often one looks and whenever one ends. What a block leaves to the
//! next must be over before that is measured: each block begins with a time that does not count.
//!
//! # Source
//! The bets: `nodewise_stats::betting`. Pairs of treatments whose order is drawn, with a wash-out between them: Senn,
//! "Cross-over trials in clinical research", 2002.

use std::time::Duration;

use nodewise_stats::betting::{self, Bet};
use nodewise_stats::detection::{Detection, MOST_ROUNDS, power_of_signs};
use nodewise_stats::distribution::normal_quantile;
use nodewise_stats::power::POWER;
use nodewise_stats::random::Random;
use nodewise_stats::{Direction, Interval, median};

/// The probability of a wrong verdict, of either kind together, where there is no difference.
pub const ALPHA: f64 = 0.05;

/// The level of each of the two directions.
const EACH: f64 = ALPHA / 2.0;

/// How often a range of probabilities is halved.
const HALVINGS: u32 = 40;

/// The state of it in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    Off,
    On,
}

impl Switch {
    /// Its word, in text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
        }
    }
}

/// The blocks of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The most pairs.
    pub pairs: u32,
    /// The length of each block, and the time at its beginning that does not count.
    pub length: Duration,
    pub wash_out: Duration,
    pub seed: u64,
}

/// Why a time holds no evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pairs} pairs of blocks fit into this time: at least {FEWEST} are needed to find anything")]
pub struct TooFewPairs {
    pub pairs: u32,
    /// The time that would be enough for the fewest.
    pub needed: Duration,
}

/// The fewest pairs of blocks that can show a difference; a test compares it with the bets.
pub const FEWEST: u32 = 7;

impl Blocks {
    /// As many pairs as fit into a time.
    ///
    /// # Errors
    /// [`TooFewPairs`] where no outcome could be distinguished from chance.
    pub fn within(
        time: Duration,
        length: Duration,
        wash_out: Duration,
        seed: u64,
    ) -> Result<Self, TooFewPairs> {
        let pair = length.saturating_mul(2).max(Duration::from_nanos(1));
        let pairs = u32::try_from(time.as_nanos() / pair.as_nanos()).unwrap_or(MOST_ROUNDS);
        if pairs < FEWEST {
            return Err(TooFewPairs { pairs, needed: pair.saturating_mul(FEWEST) });
        }
        Ok(Self { pairs: pairs.min(MOST_ROUNDS), length, wash_out, seed })
    }

    /// The order of a pair, counted from 1.
    pub fn order(&self, pair: u32) -> [Switch; 2] {
        let mut order = [Switch::Off, Switch::On];
        Random::stream(self.seed, u64::from(pair)).shuffle(&mut order);
        order
    }

    /// The difference that these blocks find with the probability [`POWER`].
    pub fn findable(&self) -> Findable {
        findable(self.pairs)
    }
}

/// The smallest difference that is found with the probability [`POWER`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Findable {
    /// The share of pairs in which the block that is on is the better one.
    pub share: f64,
    /// The difference in units of the standard deviation of a pair's difference, where that is normal.
    pub deviations: f64,
}

/// The difference that this number of pairs finds.
///
/// # Panics
/// Below [`FEWEST`] pairs, which find nothing.
pub fn findable(pairs: u32) -> Findable {
    assert!(pairs >= FEWEST, "{pairs} pairs find nothing");
    let (mut low, mut high) = (0.5, 1.0);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if power_of_signs(middle, pairs, EACH) < POWER { low = middle } else { high = middle }
    }
    Findable { share: high, deviations: normal_quantile(high) }
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// By their ratio: values are above zero.
    Ratio,
    /// By their difference: shares, which may be zero.
    Difference,
}

/// The outcome that is measured in each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub scale: Scale,
    pub direction: Direction,
}

/// The values of a pair of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    pub off: f64,
    pub on: f64,
}

/// The result of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The blocks that are on are better.
    Helps,
    /// They are worse.
    Harms,
    /// No difference was detected.
    Open,
}

impl Verdict {
    /// Its word, in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Helps => "helps",
            Self::Harms => "harms",
            Self::Open => "no difference detected",
        }
    }
}

/// The pairs so far, and the bets on them.
#[derive(Clone, Debug)]
pub struct Evaluation {
    outcome: Outcome,
    pairs: Vec<Pair>,
    better: Bet,
    worse: Bet,
}

/// A difference of on to off, on the outcome's own scale: a ratio, or a number of the outcome's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    pub off: f64,
    pub on: f64,
    /// The median of the pairs' differences.
    pub estimate: f64,
    /// 95 %; `None` where few pairs leave an end open.
    pub interval: Option<Interval>,
    /// Of the verdict that is more likely; right whenever one looks.
    pub p: f64,
    /// The median difference from one block that is off to the next one: noise, as a ratio or a number.
    pub noise: Option<f64>,
    /// The smallest improvement that would be found with the probability [`POWER`], on the same scale.
    pub detectable: Option<f64>,
}

impl Evaluation {
    /// An evaluation without any pair.
    pub fn new(outcome: Outcome) -> Self {
        Self { outcome, pairs: Vec::new(), better: Bet::default(), worse: Bet::default() }
    }

    /// The pairs so far.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Takes in a pair; `false` where its values cannot be compared: it does not count then.
    pub fn add(&mut self, pair: Pair) -> bool {
        let Some(gain) = self.gain(pair) else { return false };
        let score = betting::score([gain].into_iter());
        self.better.place(score);
        self.worse.place(-score);
        self.pairs.push(pair);
        true
    }

    /// The result of the pairs; once shown, it stays.
    pub fn verdict(&self) -> Verdict {
        match (self.better.wins(EACH), self.worse.wins(EACH)) {
            (true, false) => Verdict::Helps,
            (false, true) => Verdict::Harms,
            // Both: neither is believed.
            _ => Verdict::Open,
        }
    }

    /// The difference as far as it is known; `None` without a pair. `planned` pairs are what the power is that of.
    pub fn effect(&self, planned: u32) -> Option<Effect> {
        let differences: Vec<f64> = self.pairs.iter().filter_map(|pair| self.difference(*pair)).collect();
        let middle = median(&differences)?;
        let back = |value: f64| match self.outcome.scale {
            Scale::Ratio => value.exp(),
            Scale::Difference => value,
        };
        let sign = self.sign();
        let gains: Vec<Vec<f64>> = differences.iter().map(|difference| vec![sign * difference]).collect();
        let rounds: Vec<Vec<f64>> = differences.iter().map(|difference| vec![*difference]).collect();
        let detection = Detection::new(&gains, sign * middle, EACH);
        let planned = planned.max(self.pairs.len() as u32);
        let offs: Vec<f64> = self.pairs.iter().map(|pair| pair.off).collect();
        let between = offs.windows(2).filter_map(|two| self.difference(Pair { off: two[0], on: two[1] }));
        let between: Vec<f64> = between.map(f64::abs).collect();
        Some(Effect {
            off: median(&offs)?,
            on: median(&self.pairs.iter().map(|pair| pair.on).collect::<Vec<_>>())?,
            estimate: back(middle),
            interval: betting::interval(&rounds, 1.0 / EACH).map(|interval| interval.map(back)),
            p: (2.0 * self.better.p().min(self.worse.p())).min(1.0),
            noise: median(&between).map(back),
            detectable: detection.smallest(planned).map(|shift| back(sign * shift)),
        })
    }

    /// Above zero where on is more.
    fn difference(&self, pair: Pair) -> Option<f64> {
        let difference = match self.outcome.scale {
            Scale::Ratio if pair.off > 0.0 && pair.on > 0.0 => (pair.on / pair.off).ln(),
            Scale::Ratio => return None,
            Scale::Difference => pair.on - pair.off,
        };
        difference.is_finite().then_some(difference)
    }

    /// Above zero where on is better.
    fn gain(&self, pair: Pair) -> Option<f64> {
        Some(self.sign() * self.difference(pair)?)
    }

    const fn sign(&self) -> f64 {
        match self.outcome.direction {
            Direction::HigherIsBetter => 1.0,
            Direction::LowerIsBetter => -1.0,
        }
    }
}

#[cfg(test)]
mod tests;
