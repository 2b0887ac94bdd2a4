//! Where a curve of latency against bandwidth bends up.

/// The bandwidth from which on a load takes this many times as long as on an idle machine.
///
/// # Source
/// A convention: Mess and the vendors' tools draw whole curves, and twice the idle latency is where
/// their texts say that memory is saturated.
pub const TIMES_IDLE: f64 = 2.0;

/// Where a curve bends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Knee {
    /// A load takes [`TIMES_IDLE`] its idle time from this bandwidth on, GB/s.
    At {
        /// Between the points on either side, in proportion.
        gb_per_s: f64,
    },
    /// It never does: the traffic does not load this memory so much.
    NotReached {
        /// The most that a load took, in parts of its idle time.
        most: f64,
        /// The traffic at that, GB/s.
        gb_per_s: f64,
    },
}

/// Finds the knee of a curve: points of bandwidth (GB/s) and latency (ns) in the order of shorter and
/// shorter pauses. `None` without points.
///
/// Bandwidth need not grow: an overloaded memory gives less. Only the first crossing counts.
pub fn knee(idle_ns: f64, points: &[(f64, f64)]) -> Option<Knee> {
    let limit = TIMES_IDLE * idle_ns;
    let mut before = (0.0, idle_ns);
    for (gb_per_s, ns) in points.iter().copied() {
        if ns >= limit {
            let share = (limit - before.1) / (ns - before.1);
            return Some(Knee::At { gb_per_s: before.0 + share * (gb_per_s - before.0) });
        }
        before = (gb_per_s, ns);
    }
    let (gb_per_s, ns) = points.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(Knee::NotReached { most: ns / idle_ns, gb_per_s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    fn check(points: &[(f64, f64)], expected: Option<Knee>) {
        assert_eq!(knee(100.0, points), expected);
    }

    #[test]
    fn the_knee_is_where_latency_is_twice_the_idle_one() {
        check(&[(10.0, 110.0), (20.0, 150.0), (30.0, 250.0)], Some(Knee::At { gb_per_s: 25.0 }));
        check(&[(10.0, 110.0), (20.0, 200.0)], Some(Knee::At { gb_per_s: 20.0 }));
        // The first point is beyond it: somewhere between nothing and that.
        check(&[(8.0, 300.0)], Some(Knee::At { gb_per_s: 4.0 }));
    }

    #[test]
    fn an_overloaded_memory_has_its_knee_where_it_was_first_reached() {
        check(
            &[(20.0, 120.0), (30.0, 180.0), (28.0, 220.0), (25.0, 400.0)],
            Some(Knee::At { gb_per_s: 29.0 }),
        );
    }

    #[test]
    fn a_curve_that_stays_below_says_how_far_it_went() {
        check(
            &[(10.0, 104.0), (20.0, 130.0), (21.0, 125.0)],
            Some(Knee::NotReached { most: 1.3, gb_per_s: 20.0 }),
        );
        check(&[], None);
    }

    proptest! {
        #[test]
        fn a_knee_lies_between_no_bandwidth_and_the_most(
            idle in 1.0_f64..1000.0,
            points in prop::collection::vec((0.0_f64..500.0, 0.5_f64..20.0), 1..20),
        ) {
            let points: Vec<(f64, f64)> = points.into_iter().map(|(rate, times)| (rate, idle * times)).collect();
            let most = points.iter().map(|point| point.0).fold(0.0, f64::max);
            let reached = points.iter().any(|point| point.1 >= 2.0 * idle);
            match knee(idle, &points) {
                Some(Knee::At { gb_per_s }) => {
                    prop_assert!(reached && gb_per_s >= -1e-9 && gb_per_s <= most + 1e-9);
                }
                Some(Knee::NotReached { most: times, .. }) => prop_assert!(!reached && times < 2.0),
                None => prop_assert!(false, "there are points"),
            }
        }
    }
}
