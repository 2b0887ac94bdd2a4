//! Tables of perftest side by side, in words.

use nodewise_machine::Bytes;
use nodewise_measure::perftest::{Comparison, Kink, PerftestQuantity, Side, kinks};
use nodewise_stats::Direction;

use crate::digest::survey::digits;

/// Names the compared quantity, as a title.
pub const fn title(kind: PerftestQuantity) -> &'static str {
    match kind {
        PerftestQuantity::Latency => "Latency by size of message",
        PerftestQuantity::Bandwidth => "Bandwidth by size of message",
    }
}

/// Describes its numbers.
pub const fn remark(kind: PerftestQuantity) -> &'static str {
    match kind {
        PerftestQuantity::Latency => "us one way, median of the messages",
        PerftestQuantity::Bandwidth => "Gbit/s, average",
    }
}

/// The title of the axis of its numbers.
pub const fn axis(kind: PerftestQuantity) -> &'static str {
    match kind {
        PerftestQuantity::Latency => "latency, us one way",
        PerftestQuantity::Bandwidth => "bandwidth, Gbit/s",
    }
}

/// A size as tables and scales write it: `512`, `4K`, `8M`.
pub fn short(size: Bytes) -> String {
    size.exact()
}

/// The sizes at which a side has a kink.
pub fn kink_sizes(side: &Side) -> Vec<Bytes> {
    kinks(&side.table).iter().map(|kink| kink.sizes[1]).collect()
}

/// Everything that a comparison shows, as sentences: how far each side is from the first, and kinks.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    let far = (1..comparison.sides().len()).filter_map(|at| far_sentence(comparison, at));
    let kinks = comparison.kinks();
    let kinks =
        kinks.iter().map(|(at, kink)| kink_sentence(comparison.kind(), &comparison.sides()[*at], kink));
    far.chain(kinks).collect()
}

/// Lists the parts that could not be read, as sentences.
pub fn problems(comparison: &Comparison) -> Vec<String> {
    let of = |side: &Side| {
        let label = side.label.clone();
        side.table.problems.clone().into_iter().map(move |problem| format!("{label}: {problem}"))
    };
    comparison.sides().iter().flat_map(of).collect()
}

fn far_sentence(comparison: &Comparison, at: usize) -> Option<String> {
    let extremes = comparison.extremes(at)?;
    let (side, first) = (&comparison.sides()[at].label, &comparison.sides()[0].label);
    let ((best_size, best), (worst_size, worst)) = (extremes.best, extremes.worst);
    let what = comparison.kind().word();
    let (least, most) = (digits(best), digits(worst));
    if least == most {
        return Some(format!("{side}: {what} {least} times that of {first} at all sizes"));
    }
    let (best_size, worst_size) = (short(best_size), short(worst_size));
    Some(format!(
        "{side}: {what} from {least} (at {best_size} bytes) to {most} (at {worst_size}) times that of {first}"
    ))
}

fn kink_sentence(kind: PerftestQuantity, side: &Side, kink: &Kink) -> String {
    let [before, at, behind] = kink.sizes.map(short);
    let values = kink.values.map(digits).join(", ");
    let why = match (kind.direction(), kink.falls) {
        (Direction::LowerIsBetter, true) => "a larger message takes less time",
        (Direction::LowerIsBetter, false) => "a step that messages around it do not have",
        (Direction::HigherIsBetter, true) => "a larger message gets less bandwidth",
        (Direction::HigherIsBetter, false) => "bandwidth grows faster behind it than up to it",
    };
    format!("{}: kink at {at} bytes: {values} {} at {before}, {at}, {behind}: {why}", side.label, kind.unit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_measure::perftest::Table;

    fn side(label: &str, rows: &str) -> Side {
        let text = format!("#bytes #iterations t_typical[usec]\n{rows}");
        Side { label: label.to_owned(), node: None, table: Table::parse(&text).unwrap() }
    }

    #[test]
    fn distances_and_kinks_are_sentences() {
        let near = side("near", "8192 9 2.87\n16384 9 3.43\n32768 9 4.36\n");
        let far = side("far", "8192 9 7.37\n16384 9 11.42\nx\n32768 9 6.63\n");
        let comparison = Comparison::from_sides(vec![near, far]).remove(0);
        assert_eq!(
            sentences(&comparison),
            [
                "far: latency from 1.52 (at 32K bytes) to 3.33 (at 16K) times that of near",
                "far: kink at 16K bytes: 7.37, 11.4, 6.63 us at 8K, 16K, 32K: a larger message takes less time",
            ]
        );
        assert_eq!(problems(&comparison), ["far: line 4: expected a size in bytes, found \"x\""]);
        assert_eq!(kink_sizes(&comparison.sides()[1]), [Bytes::from_kib(16)]);
    }
}
