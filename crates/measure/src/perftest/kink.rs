//! Sizes at which a curve bends as it should not.
//!
//! What a message of n bytes costs is a fixed part and a part for each byte: `t = a + b n`. Drawn over n
//! with both scales logarithmic, that curve bends upwards everywhere: flat while `a` decides, as steep as n
//! itself when `b n` does. The rate `n / t` is the same curve mirrored: it bends downwards everywhere. Where
//! a curve bends the other way, another mechanism has set in or ended: data that are no longer sent with the
//! request, a path that is throttled, a cache that ends. One rule finds them in both kinds of table.

use nodewise_machine::Bytes;

use super::{PerftestQuantity, Table};
use nodewise_stats::Direction;

/// How much a curve may bend the wrong way. A point that is off by x bends the curve by (1 + x)^2, so a kink
/// is a point that is off by 14 %, or the edge of a step of 30 %. Noise is less: below 128 bytes, where a
/// latency should be flat, two recorded tables of 1000 messages a size bend by up to 1.26.
const BEND: f64 = 1.3;

/// A size at which a curve bends as it should not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kink {
    /// The sizes: the one before, the one of the kink, the one behind.
    pub sizes: [Bytes; 3],
    pub values: [f64; 3],
    /// How much the curve bends: how many times more the value would have to grow for each doubling of the
    /// size to go on as before.
    pub bend: f64,
    /// Whether a value is less than the one before it: neither latencies nor bandwidths should ever fall as
    /// messages grow.
    pub falls: bool,
}

/// The kinks of a table, ascending by size.
pub fn kinks(table: &Table) -> Vec<Kink> {
    let curve: Vec<(Bytes, f64)> =
        table.curve().into_iter().filter(|(size, value)| size.get() > 0 && *value > 0.0).collect();
    let kink = |window: &[(Bytes, f64)]| {
        let [before, at, behind] = window else { return None };
        let (towards, onwards) = (steepness(*before, *at), steepness(*at, *behind));
        let bend = match table.kind {
            PerftestQuantity::Latency => towards - onwards,
            PerftestQuantity::Bandwidth => onwards - towards,
        };
        let bend = bend.exp2();
        let (sizes, values) = ([before.0, at.0, behind.0], [before.1, at.1, behind.1]);
        let falls = at.1 < before.1 || behind.1 < at.1;
        (bend > BEND).then_some(Kink { sizes, values, bend, falls })
    };
    curve.windows(3).filter_map(kink).collect()
}

/// How many times the value doubles while the size does.
fn steepness(from: (Bytes, f64), to: (Bytes, f64)) -> f64 {
    let doublings = (to.0.get() as f64 / from.0.get() as f64).log2();
    (to.1 / from.1).log2() / doublings
}

/// Whether a value is a worse one.
pub(super) fn is_worse(kind: PerftestQuantity, value: f64, than: f64) -> bool {
    match kind.direction() {
        Direction::LowerIsBetter => value > than,
        Direction::HigherIsBetter => value < than,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(kind: PerftestQuantity, values: impl IntoIterator<Item = (u64, f64)>) -> Table {
        let head = match kind {
            PerftestQuantity::Latency => "t_typical[usec]",
            PerftestQuantity::Bandwidth => "BW average[Gb/sec]",
        };
        let rows = values.into_iter().map(|(size, value)| format!("{size} 1000 {value}\n"));
        let text = format!("#bytes #iterations {head}\n{}", rows.collect::<String>());
        Table::parse(&text).unwrap()
    }

    fn check(kind: PerftestQuantity, values: &[(u64, f64)], expected: &[(u64, bool)]) {
        let found = kinks(&table(kind, values.iter().copied()));
        let found: Vec<(u64, bool)> = found.iter().map(|kink| (kink.sizes[1].get(), kink.falls)).collect();
        assert_eq!(found, expected, "{values:?}");
    }

    #[test]
    fn what_a_fixed_part_and_a_part_for_each_byte_cost_has_no_kink() {
        let sizes = (1..24).map(|power| 1_u64 << power);
        for (fixed, per_byte) in [(1.2, 4e-5), (0.0, 1e-3), (5.0, 0.0), (0.3, 0.3)] {
            let cost = |size: u64| fixed + per_byte * size as f64;
            assert_eq!(
                kinks(&table(PerftestQuantity::Latency, sizes.clone().map(|size| (size, cost(size))))),
                []
            );
            let rates = sizes.clone().map(|size| (size, 8e-3 * size as f64 / cost(size)));
            assert_eq!(kinks(&table(PerftestQuantity::Bandwidth, rates)), []);
        }
    }

    #[test]
    fn a_step_and_a_fall_of_a_latency_are_kinks_at_their_top() {
        check(
            PerftestQuantity::Latency,
            &[(64, 1.3), (128, 1.38), (256, 2.09), (512, 2.11)],
            &[(256, false)],
        );
        check(PerftestQuantity::Latency, &[(8192, 7.4), (16_384, 11.4), (32_768, 6.6)], &[(16_384, true)]);
        check(PerftestQuantity::Latency, &[(16, 1.33), (32, 1.22), (64, 1.32)], &[]);
        check(PerftestQuantity::Latency, &[(64, 1.0), (128, 9.0)], &[]);
    }

    #[test]
    fn a_bandwidth_that_stops_to_grow_and_goes_on_has_its_kink_at_the_bottom() {
        check(PerftestQuantity::Bandwidth, &[(512, 12.0), (1024, 13.0), (2048, 26.0)], &[(1024, false)]);
        check(PerftestQuantity::Bandwidth, &[(512, 12.0), (1024, 9.0), (2048, 13.0)], &[(1024, true)]);
        check(PerftestQuantity::Bandwidth, &[(32_768, 201.0), (65_536, 189.0), (131_072, 196.0)], &[]);
    }

    #[test]
    fn sizes_that_are_not_doubled_are_weighed_by_how_far_they_are_apart() {
        let line = |size: u64| (size, 1.0 + size as f64 / 100.0);
        let uneven: Vec<(u64, f64)> = [1, 2, 700, 701, 5000].map(line).to_vec();
        check(PerftestQuantity::Latency, &uneven, &[]);
        // No size and no value of 0 has a place on such a scale.
        check(PerftestQuantity::Latency, &[(0, 1.0), (1, 0.0), (2, 2.0), (4, 2.0)], &[]);
    }
}
