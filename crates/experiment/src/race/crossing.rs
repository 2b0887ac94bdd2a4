//! The second stage of a race: what helps alone, tried together.
//!
//! The placements that are tried first differ from the baseline in one thing each: where memory comes
//! from, which CPUs are used, huge pages. What is best together need not be the best alone. So when a
//! race is settled for an arm, and not for the baseline, that arm is crossed with the best of every
//! other kind that looks better than the baseline, each with each, and the race goes on with those.
//!
//! A quarter of the error is kept for the crosses ([`super::Shares`]), and divided among all pairs that
//! they bring. They have blocks of their own, so that which of them there are depends on nothing that they
//! are judged by; the old arms keep their evidence, which may be looked at whenever one likes. A cross is
//! named only when it is shown to be better than every simpler arm that is left, its parts among them;
//! where a part is within the margin of it, the part is named.
//!
//! # Source
//! To divide the error among stages that are chosen by what came before: Bauer and Köhne, "Evaluation of
//! experiments with adaptive interim analyses", Biometrics 50, 1994. To try the single factors first
//! and the combinations of those that matter afterwards: Box, Hunter and Hunter, "Statistics for
//! experimenters", 1978, chapter 15 (sequential assembly of designs).

use crate::executor::Arm;
use crate::race::{Costs, median_difference};
use crate::schedule::{ArmId, Block};
use crate::study::Treatment;
use nodewise_machine::placement::Placement;

/// The state in which a race was settled when it went on with crosses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossed {
    /// The arm that was within the margin of the best of those tried alone.
    pub best: ArmId,
    pub block: Block,
    pub arms: Vec<ArmId>,
}

/// Whether any two of these can be crossed.
pub(crate) fn can_cross(arms: &[Arm]) -> bool {
    arms.iter().enumerate().any(|(at, one)| arms[at + 1..].iter().any(|other| cross(&[one, other]).is_some()))
}

/// The crosses of the arm that a race was settled for. `costs` holds all arms that worked, those that
/// have dropped out too: what is worse than the best may still add to it.
pub(crate) fn crosses(arms: &[Arm], costs: &Costs, best: ArmId) -> Vec<Treatment> {
    let Some(best) = arms.iter().find(|arm| arm.id == best) else { return Vec::new() };
    let partners = partners(arms, costs, best);
    let mut made: Vec<Treatment> = Vec::new();
    // One bit for each partner.
    for chosen in 1u32..1 << partners.len() {
        let some = partners.iter().enumerate().filter(|(at, _)| chosen & 1 << at != 0);
        let parts: Vec<&Arm> = std::iter::once(best).chain(some.map(|(_, arm)| *arm)).collect();
        let Some(treatment) = cross(&parts) else { continue };
        let is_there = arms.iter().any(|arm| arm.placement == treatment.placement);
        if !is_there && made.iter().all(|other| other.placement != treatment.placement) {
            made.push(treatment);
        }
    }
    made
}

/// Of every kind of arm that can be crossed with this one the best, where it looks better than the
/// baseline.
fn partners<'a>(arms: &'a [Arm], costs: &Costs, best: &Arm) -> Vec<&'a Arm> {
    let mut partners: Vec<(&Arm, f64)> = Vec::new();
    for arm in arms.iter().filter(|arm| cross(&[best, arm]).is_some()) {
        let Some(more) = median_difference(costs, arm.id, ArmId::BASELINE).filter(|more| *more < 0.0) else {
            continue;
        };
        match partners.iter_mut().find(|(other, _)| parts(&other.placement) == parts(&arm.placement)) {
            Some(other) if more < other.1 => *other = (arm, more),
            Some(_) => {}
            None => partners.push((arm, more)),
        }
    }
    partners.into_iter().map(|(arm, _)| arm).collect()
}

/// Which parts of a placement are set.
pub(crate) const fn parts(placement: &Placement) -> [bool; 3] {
    [placement.policy.is_some(), placement.cpus.is_some(), placement.huge.is_some()]
}

/// Arms as one treatment, where no two set the same thing. With numbers of threads of their own they
/// cannot be: how many belong to the cross is not said.
fn cross(arms: &[&Arm]) -> Option<Treatment> {
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    let mut crossed = Treatment::new(names.join(" + "), Placement::DEFAULT);
    for arm in arms {
        let both = parts(&crossed.placement).into_iter().zip(parts(&arm.placement));
        let sets_nothing = arm.placement == Placement::DEFAULT;
        if arm.threads.is_some() || sets_nothing || both.into_iter().any(|(one, other)| one && other) {
            return None;
        }
        let Placement { policy, cpus, huge } = arm.placement.clone();
        let there = crossed.placement;
        crossed.placement = Placement {
            policy: there.policy.or(policy),
            cpus: there.cpus.or(cpus),
            huge: there.huge.or(huge),
        };
        for (name, value) in &arm.environment {
            let before = crossed.environment.insert(name.clone(), value.clone());
            if before.is_some_and(|before| before != *value) {
                return None;
            }
        }
    }
    Some(crossed)
}

#[cfg(test)]
mod tests;
