//! The parts of a script that the model does not say exactly.

/// The width from which an interval says nothing, in thousandths of the limit that it belongs to.
pub const VOID: u64 = 250;

/// Steps that were left out, and intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Steps that were left out, for the model does not know their outcome.
    pub left_out: u64,
    /// Figures that the model states as an interval.
    pub intervals: u64,
    /// The sum of their widths and the largest, in thousandths of the limits that they belong to.
    pub widths: u64,
    pub widest: u64,
}

impl Tally {
    /// Counts an interval of this width beside a limit; gives the width in thousandths.
    pub fn interval(&mut self, width: u64, limit: u64) -> u64 {
        let width = width.saturating_mul(1000).checked_div(limit).unwrap_or(u64::MAX).min(1_000_000);
        self.intervals += 1;
        self.widths += width;
        self.widest = self.widest.max(width);
        width
    }

    /// The numbers in a line.
    pub fn text(&self) -> String {
        format!("{} {} {} {}", self.left_out, self.intervals, self.widths, self.widest)
    }

    /// Reads what [`Self::text`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map(|word| word.parse().ok());
        let mut next = || numbers.next()?;
        let tally = Self { left_out: next()?, intervals: next()?, widths: next()?, widest: next()? };
        numbers.next().is_none().then_some(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_summed_and_read_back() {
        let mut tally = Tally { left_out: 3, ..Tally::default() };
        assert_eq!(
            (tally.interval(5, 100), tally.interval(20, 100), tally.interval(1, 0)),
            (50, 200, 1_000_000)
        );
        assert_eq!((tally.intervals, tally.widths, tally.widest), (3, 1_000_250, 1_000_000));
        assert_eq!(Tally::parse(&tally.text()), Some(tally));
        for text in ["", "1 2 3", "1 2 3 4 5", "1 2 3 x"] {
            assert_eq!(Tally::parse(text), None, "{text}");
        }
    }
}
