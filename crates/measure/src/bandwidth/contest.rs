//! Which variant of a kernel is the fastest here: all are tried briefly, the best of them again.

use std::time::Duration;

use crate::cell::{Facts, Phase, Refusal};
use crate::kernel::bandwidth::{Kernel, Variant};
use crate::team::{self, Member, Task};
use crate::timer::Timer;
use nodewise_machine::order::Order as _;
use nodewise_stats::median;

/// How many of the variants are tried again, and how often: in another order each time, so that a
/// disturbance of some milliseconds decides nothing alone.
const FINALISTS: usize = 6;
const FINALS: usize = 3;

/// How long a variant is tried: some 20 MB on a slow core. A variant goes on where the one before has ended,
/// so that what is measured is memory and not what was left in a cache.
const TIME: Duration = Duration::from_millis(2);

/// How a contest is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contest {
    Whole,
    /// Every variant is tried once.
    Short,
}

/// The variant that is fastest for a team, whose members have parts of this memory.
///
/// # Errors
/// Those of the team; where no variant could be timed; and an end of the measurement meanwhile.
pub fn of_team<M>(
    kernel: Kernel,
    held: Contest,
    timer: &Timer,
    facts: &mut dyn Facts,
    memory: &mut M,
    members: impl for<'m> Fn(&'m mut M) -> Result<Vec<Member<'m>>, Refusal>,
) -> Result<Variant, Refusal> {
    facts.enter(Phase::Contest { kernel });
    hold(kernel, held, |variants| {
        facts.go_on()?;
        let task = Task { kernel, variants, time: TIME, stop: facts.stop() };
        let results = team::run(members(memory)?, task, timer)?;
        Ok(results.into_iter().map(|result| result.ok().map(|result| result.program)).collect())
    })
}

/// Finds the fastest variant of a kernel. `rates` runs variants one after the other and gives the rate
/// of each, where it has one.
///
/// # Errors
/// Those of `rates`; and where no variant had a rate.
fn hold(
    kernel: Kernel,
    held: Contest,
    mut rates: impl FnMut(&[Variant]) -> Result<Vec<Option<f64>>, Refusal>,
) -> Result<Variant, Refusal> {
    let all = Variant::all(kernel);
    let first: Vec<Vec<f64>> = rates(&all)?.into_iter().map(|rate| rate.into_iter().collect()).collect();
    let finalists: Vec<Variant> = fastest(&all, &first).into_iter().take(FINALISTS).collect();
    if held == Contest::Short {
        return finalists.first().copied().ok_or(Refusal::TooShort);
    }
    let turned = |round: usize| (0..finalists.len()).map(move |at| at + round);
    let order: Vec<usize> = (0..FINALS).flat_map(turned).map(|at| at % finalists.len()).collect();
    let variants: Vec<Variant> = order.iter().map(|at| finalists[*at]).collect();
    let mut of_finalists = vec![Vec::new(); finalists.len()];
    for (at, rate) in order.into_iter().zip(rates(&variants)?) {
        of_finalists[at].extend(rate);
    }
    fastest(&finalists, &of_finalists).first().copied().ok_or(Refusal::TooShort)
}

/// The variants by the medians of their rates, fastest first; those without rates are left out.
fn fastest(variants: &[Variant], rates: &[Vec<f64>]) -> Vec<Variant> {
    let mut rated: Vec<(f64, Variant)> =
        rates.iter().zip(variants).filter_map(|(rates, variant)| Some((median(rates)?, *variant))).collect();
    rated.order_by(|one, other| other.0.total_cmp(&one.0));
    rated.into_iter().map(|(_, variant)| variant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::bandwidth::{Instructions, Shape};

    #[test]
    fn the_fastest_by_median_comes_first_and_what_was_not_timed_nowhere() {
        let variant = |ahead| Variant { instructions: Instructions::Sse2, shape: Shape::Line, ahead };
        let variants = [variant(0), variant(1), variant(2), variant(3)];
        let rates = [vec![5.0, 6.0, 50.0], vec![], vec![7.0, 7.5, 1.0], vec![4.0]];
        assert_eq!(fastest(&variants, &rates), [variant(2), variant(0), variant(3)]);
        assert_eq!(fastest(&variants, &[]), []);
    }

    #[test]
    fn a_finalist_that_was_disturbed_at_first_still_wins() {
        let all = Variant::all(Kernel::Triad);
        for winner in &all {
            let mut calls = 0;
            let found = hold(Kernel::Triad, Contest::Whole, |variants| {
                calls += 1;
                let disturbed = calls == 1;
                let rate = |variant: &Variant| match variant == winner {
                    true if disturbed => 10.5,
                    true => 20.0,
                    // Five are faster at first than the winner seems.
                    false if all.iter().position(|of| of == variant) < Some(5) => 11.0,
                    false => 10.0,
                };
                Ok(variants.iter().map(|variant| Some(rate(variant))).collect())
            });
            assert_eq!((found, calls), (Ok(*winner), 2));
        }
    }

    #[test]
    fn a_contest_without_rates_has_no_winner() {
        for held in [Contest::Whole, Contest::Short] {
            let nothing = hold(Kernel::Read, held, |variants| Ok(vec![None; variants.len()]));
            assert_eq!(nothing, Err(Refusal::TooShort));
            assert_eq!(hold(Kernel::Read, held, |_| Err(Refusal::TooShort)), Err(Refusal::TooShort));
        }
    }

    #[test]
    fn a_short_contest_tries_every_variant_once() {
        let all = Variant::all(Kernel::Triad);
        for winner in &all {
            let mut tried = 0;
            let found = hold(Kernel::Triad, Contest::Short, |variants| {
                tried += variants.len();
                Ok(variants.iter().map(|variant| Some(if variant == winner { 2.0 } else { 1.0 })).collect())
            });
            assert_eq!((found, tried), (Ok(*winner), all.len()));
        }
    }
}
