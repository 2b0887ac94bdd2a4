//! The power of bets: which shift they would find, and in how many rounds.
//!
//! The capital of a [`super::betting::Bet`] depends on how many rounds were won and lost and not on their order, so the
//! probability that it wins within some rounds is a sum over these two numbers: nothing is simulated and
//! nothing approximated. How often a round is won or lost after a shift is read from the differences that
//! were seen, for which every run of a round is in for the one that is compared: without a
//! difference they are alike.

use super::betting::{STAKES, score};
use super::power::POWER;

/// More rounds than this are not counted.
pub const MOST_ROUNDS: u32 = 1000;

/// Rounds that count as won as often as lost whatever the shift, beside those seen: of few rounds the
/// noise that is seen is less than there is. With this many the changes stated at the ends of simulated
/// races are found with 75 to 85 % power when they are played, on average over noises.
const UNSEEN: f64 = 1.0;

/// How often a range of shifts is halved: to a hundredth of a thousandth of itself.
const HALVINGS: u32 = 17;

/// The probability that a bet detects a difference, given noise like this.
#[derive(Clone, Debug)]
pub struct Detection {
    /// The differences of the compared run to the others of its round, one list for each choice of that run.
    rounds: Vec<Vec<f64>>,
    /// How many of these lists a round has.
    choices: usize,
    alpha: f64,
}

impl Detection {
    /// From the differences of each round's run to its others, which lie at `centre`, for a bet at the
    /// level `alpha` that they are above zero.
    pub fn new(rounds: &[Vec<f64>], centre: f64, alpha: f64) -> Self {
        let of_round = |round: &Vec<f64>| {
            let mut runs: Vec<f64> = round.iter().map(|difference| centre - difference).collect();
            runs.push(0.0);
            let less_than = |at: usize| -> Vec<f64> {
                let others = runs.iter().enumerate().filter(move |(other, _)| *other != at);
                others.map(|(_, other)| runs[at] - other).collect()
            };
            (0..runs.len()).map(less_than).collect::<Vec<_>>()
        };
        let all: Vec<Vec<f64>> = rounds.iter().flat_map(of_round).collect();
        Self { choices: all.len().div_ceil(rounds.len().max(1)).max(1), rounds: all, alpha }
    }

    /// The probability that the bet wins within this many rounds when the compared runs are this much higher.
    /// With skewed noise it is another one than when they are lower.
    pub fn power(&self, shift: f64, rounds: u32) -> f64 {
        let (played, won) = self.chances(shift);
        mixed(&won_within(won, rounds, self.alpha), played, rounds)
    }

    /// The smallest shift that the bet finds with the probability [`POWER`] within this many rounds; `None`
    /// where there are too few for any.
    pub fn smallest(&self, rounds: u32) -> Option<f64> {
        let farthest = self.rounds.iter().flatten().fold(0.0, |most: f64, value| most.max(value.abs()));
        let rounds = rounds.min(MOST_ROUNDS);
        let (mut low, mut high) = (0.0, 2.0 * farthest + 1e-9);
        if self.power(high, rounds) < POWER {
            return None;
        }
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if self.power(middle, rounds) < POWER {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(high)
    }

    /// How many rounds find a shift with the probability [`POWER`]; `None` for more than [`MOST_ROUNDS`].
    pub fn rounds_for(&self, shift: f64) -> Option<u32> {
        let (played, won) = self.chances(shift);
        let reached = won_within(won, MOST_ROUNDS, self.alpha);
        let is_enough = |rounds: u32| mixed(&reached, played, rounds) >= POWER;
        let (mut low, mut high) = (0, MOST_ROUNDS);
        if !is_enough(high) {
            return None;
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            if is_enough(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high)
    }

    /// After a shift: the share of rounds that are won or lost, and of these the share that is won.
    fn chances(&self, shift: f64) -> (f64, f64) {
        let (mut won, mut lost) = (0.0, 0.0);
        for round in &self.rounds {
            let score = score(round.iter().map(|difference| difference + shift));
            // A score between is taken as that share of rounds that are won or lost.
            won += score.max(0.0);
            lost += (-score).max(0.0);
        }
        let unseen = UNSEEN / 2.0 * self.choices as f64;
        let all = self.rounds.len() as f64 + 2.0 * unseen;
        won += unseen;
        lost += unseen;
        let played = (won + lost) / all;
        (played, if played > 0.0 { won / (won + lost) } else { 0.5 })
    }
}

/// The probability that a bet at the level `alpha` wins within this many rounds, each of which is won with the
/// probability `won` and otherwise lost.
pub fn power_of_signs(won: f64, rounds: u32, alpha: f64) -> f64 {
    won_within(won, rounds.min(MOST_ROUNDS), alpha).pop().unwrap_or(0.0)
}

/// The probability that a bet has won after this many rounds, each of which counts with the probability
/// `played`, from that after 0, 1, 2 ... rounds that count.
fn mixed(reached: &[f64], played: f64, rounds: u32) -> f64 {
    let (log_played, log_even) = (played.ln(), (1.0 - played).ln());
    let weigh = |count: f64, log: f64| if count == 0.0 { 0.0 } else { count * log };
    let (mut sum, mut log_ways) = (0.0, 0.0);
    for (count, reached) in (0..=rounds).zip(reached) {
        let (count, all) = (f64::from(count), f64::from(rounds));
        if count > 0.0 {
            log_ways += (all - count + 1.0).ln() - count.ln();
        }
        sum += (log_ways + weigh(count, log_played) + weigh(all - count, log_even)).exp() * reached;
    }
    sum.min(1.0)
}

/// Probabilities below this add nothing that is ever shown.
const NEGLIGIBLE: f64 = 1e-15;

/// The probability that a bet has won after 0, 1, 2 ... of this many rounds, each won with this chance.
fn won_within(chance: f64, rounds: u32, alpha: f64) -> Vec<f64> {
    let rounds = rounds as usize;
    let enough = wins_needed(rounds, alpha);
    // By how many were lost: the chance to be there without having won before.
    let mut open = vec![0.0; rounds + 2];
    open[0] = 1.0;
    let (mut first, mut last, mut reached) = (0, 0, 0.0);
    let mut after = Vec::with_capacity(rounds + 1);
    after.push(reached);
    for round in 1..=rounds {
        let mut from_before = 0.0;
        for lost in first..=last + 1 {
            let here = open[lost] * chance + from_before;
            from_before = open[lost] * (1.0 - chance);
            let has_won = round - lost.min(round) >= enough[lost];
            open[lost] = if has_won { 0.0 } else { here };
            reached += if has_won { here } else { 0.0 };
        }
        last += 1;
        while last > first && open[last] < NEGLIGIBLE {
            open[last] = 0.0;
            last -= 1;
        }
        while first < last && open[first] < NEGLIGIBLE {
            open[first] = 0.0;
            first += 1;
        }
        after.push(reached);
    }
    after
}

/// How many rounds must be won to win the bet, by how many were lost; more than can be where they cannot.
fn wins_needed(rounds: usize, alpha: f64) -> Vec<usize> {
    let (mut up, mut down) = ([1.0; STAKES.len()], [1.0; STAKES.len()]);
    let mut won = 0;
    let mut needed = Vec::with_capacity(rounds + 2);
    for lost in 0..rounds + 2 {
        let capital = |up: &[f64; STAKES.len()]| -> f64 {
            up.iter().zip(&down).map(|(up, down)| up * down).sum::<f64>() / STAKES.len() as f64
        };
        while won + lost <= rounds && capital(&up) * alpha < 1.0 {
            won += 1;
            up.iter_mut().zip(STAKES).for_each(|(up, stake)| *up *= 1.0 + stake);
        }
        needed.push(if won + lost <= rounds { won } else { usize::MAX });
        down.iter_mut().zip(STAKES).for_each(|(down, stake)| *down *= 1.0 - stake);
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::betting::Bet;
    use crate::random::Random;

    fn normal(random: &mut Random, rounds: usize, shift: f64) -> Vec<Vec<f64>> {
        let round = |_| {
            let run = random.normal() + shift;
            vec![run - random.normal(), run - random.normal()]
        };
        (0..rounds).map(round).collect()
    }

    #[test]
    fn the_power_of_signs_is_that_of_bets_that_are_played() {
        let mut random = Random::new(11);
        for (won, rounds) in [(0.9, 12), (0.8, 24), (0.5, 40)] {
            let played = (0..4000).filter(|_| {
                let mut bet = Bet::default();
                (0..rounds).for_each(|_| bet.place(if random.unit() < won { 1.0 } else { -1.0 }));
                bet.wins(0.025)
            });
            let played = played.count() as f64 / 4000.0;
            let expected = power_of_signs(won, rounds, 0.025);
            assert!((played - expected).abs() < 0.03, "{won}, {rounds} rounds: {played}, not {expected}");
        }
        assert_eq!(power_of_signs(1.0, crate::betting::fewest_rounds(0.025), 0.025), 1.0);
    }

    #[test]
    fn power_is_how_often_simulated_bets_win() {
        let mut random = Random::new(3);
        let detection = Detection::new(&normal(&mut random, 4000, 0.0), 0.0, 0.01);
        for (shift, rounds) in [(0.5, 40), (1.0, 20), (1.5, 12), (0.0, 40)] {
            let wins = (0..2000).filter(|_| {
                let mut bet = Bet::default();
                normal(&mut random, rounds, shift)
                    .iter()
                    .for_each(|round| bet.place(score(round.iter().copied())));
                bet.wins(0.01)
            });
            let (share, stated) = (wins.count() as f64 / 2000.0, detection.power(shift, rounds as u32));
            assert!((share - stated).abs() < 0.05, "{shift} in {rounds}: {share}, stated {stated}");
        }
    }

    // The runs of two levels with a rare upper one: lower runs are detected where higher ones are not.
    #[test]
    fn with_skewed_noise_the_power_is_that_of_the_direction() {
        let mut random = Random::new(6);
        let mut run = || if random.unit() < 0.2 { 1.0 } else { 0.01 * random.unit() };
        let mut rounds = |shift: f64, count: usize| -> Vec<Vec<f64>> {
            let round = |_| {
                let compared = run() + shift;
                vec![compared - run(), compared - run()]
            };
            (0..count).map(round).collect()
        };
        for shift in [0.005, -0.005] {
            let sign = f64::signum(shift);
            let oriented = |rounds: Vec<Vec<f64>>| -> Vec<Vec<f64>> {
                rounds
                    .iter()
                    .map(|round| round.iter().map(|difference| sign * difference).collect())
                    .collect()
            };
            let stated = Detection::new(&oriented(rounds(0.0, 4000)), 0.0, 0.01).power(shift.abs(), 30);
            let wins = (0..2000).filter(|_| {
                let mut bet = Bet::default();
                oriented(rounds(shift, 30)).iter().for_each(|round| bet.place(score(round.iter().copied())));
                bet.wins(0.01)
            });
            let share = wins.count() as f64 / 2000.0;
            assert!((share - stated).abs() < 0.05, "{shift}: {share}, stated {stated}");
        }
    }

    #[test]
    fn the_smallest_shift_has_its_power_and_the_rounds_for_it_are_those() {
        let detection = Detection::new(&normal(&mut Random::new(4), 200, 0.0), 0.0, 0.0125);
        let smallest = detection.smallest(40).unwrap();
        assert!((detection.power(smallest, 40) - POWER).abs() < 0.01);
        assert!(detection.rounds_for(smallest).unwrap().abs_diff(40) <= 2);
        assert!(detection.smallest(400).unwrap() < smallest / 2.0);
        assert_eq!(detection.smallest(5), None, "five rounds find nothing at this level");
        assert_eq!(detection.rounds_for(1e-6), None);
        assert!(detection.rounds_for(1e6).is_some_and(|rounds| (9..=11).contains(&rounds)));
    }
}
