//! The figure of a cell: what its samples come to.

use nodewise_stats::Direction;
use nodewise_stats::{Interval, median, median_interval};

/// Summary of the samples of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The median over rounds of their medians: what a program gets.
    pub median: f64,
    /// Where the median lies with at least 95% certainty, by the rounds; `None` with too few of
    /// them, see [`nodewise_stats::order`].
    pub interval: Option<Interval>,
    /// The best sample of all: what the hardware does when nothing disturbs it.
    pub best: f64,
    pub rounds: usize,
    /// Samples in all of them.
    pub samples: usize,
}

/// A measured value with nine digits: more than any clock resolves, and few enough to be written as decimals
/// and read back exactly.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

impl Figure {
    /// The figure of samples by round; `None` without any.
    pub fn from_rounds(rounds: &[Vec<f64>], direction: Direction) -> Option<Self> {
        let medians: Vec<f64> = rounds.iter().filter_map(|samples| median(samples)).collect();
        let samples = || rounds.iter().flatten().copied();
        let best = match direction {
            Direction::LowerIsBetter => samples().reduce(f64::min)?,
            Direction::HigherIsBetter => samples().reduce(f64::max)?,
        };
        let interval = median_interval(&medians);
        Some(Self {
            median: rounded(median(&medians)?),
            interval: interval.map(|of| Interval { low: rounded(of.low), high: rounded(of.high) }),
            best: rounded(best),
            rounds: medians.len(),
            samples: samples().count(),
        })
    }

    /// Half the width of the interval as a share of the median.
    pub fn uncertainty(&self) -> Option<f64> {
        self.interval.map(|interval| interval.half_width() / self.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_made_of_the_medians_of_rounds() {
        let rounds = [vec![3.0, 1.0, 2.0], vec![5.0], vec![], vec![4.0, 40.0, 4.0]];
        let figure = Figure::from_rounds(&rounds, Direction::LowerIsBetter).unwrap();
        assert_eq!((figure.median, figure.best, figure.rounds, figure.samples), (4.0, 1.0, 3, 7));
        assert_eq!(figure.interval, None, "three rounds are too few");
        assert_eq!(Figure::from_rounds(&rounds, Direction::HigherIsBetter).unwrap().best, 40.0);
        assert_eq!(Figure::from_rounds(&[Vec::new()], Direction::LowerIsBetter), None);
    }

    #[test]
    fn a_value_keeps_nine_digits() {
        let check = |value: f64, expected: f64| assert_eq!(rounded(value), expected, "{value}");
        check(131.204_412_345_6, 131.204_412);
        check(-0.000_012_345_678_987, -0.000_012_345_679);
        check(0.0, 0.0);
        check(1e300 / 3.0, 3.333_333_33e299);
        check(f64::INFINITY, f64::INFINITY);
        assert!(rounded(f64::NAN).is_nan());
    }

    #[test]
    fn six_rounds_have_an_interval_from_the_least_to_the_most() {
        let rounds: Vec<Vec<f64>> = [10.0, 14.0, 11.0, 13.0, 12.0, 12.0].map(|value| vec![value]).to_vec();
        let figure = Figure::from_rounds(&rounds, Direction::LowerIsBetter).unwrap();
        assert_eq!(figure.interval, Some(Interval { low: 10.0, high: 14.0 }));
        assert_eq!(figure.uncertainty(), Some(2.0 / 12.0));
    }
}
