//! Whether a process has the placement that it should have.

use nodewise_machine::placement::Placement;
use nodewise_machine::{Bytes, MemPolicy, PolicyMode};

use super::decision::Row;
use super::known::Known;
use super::profile::Profile;

/// The part of the memory that must be where it should be: numad's own target.
const AT_HOME: f64 = 0.9;

/// Whether an advice is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InForce {
    Yes,
    /// The differences, in words.
    No(Vec<String>),
    /// The facts that would say so are missing.
    Unknown(Vec<String>),
}

impl InForce {
    /// Its word, in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No(_) => "no",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Compares; of placements for several instances, one must be in force.
pub(super) fn in_force(profile: &Profile, row: &Row, placements: &[Placement]) -> InForce {
    if placements.is_empty() {
        return nothing_set(profile, row);
    }
    let mut first = None;
    for placement in placements {
        let compared = compare(profile, placement);
        if compared == InForce::Yes {
            return compared;
        }
        first = first.or(Some(compared));
    }
    first.unwrap_or(InForce::Yes)
}

/// Of rows without a placement: the default row, and a study that found none better, ask for the default policy and all
/// CPUs, row 8 for a measurement.
fn nothing_set(profile: &Profile, row: &Row) -> InForce {
    match (row.number, &profile.placed) {
        ("8", _) => InForce::Unknown(vec!["one node or all of them: not decided".to_owned()]),
        ("14" | "0", Known::Unknown { reason }) => InForce::Unknown(vec![reason.clone()]),
        ("14" | "0", Known::Value { value: Some(who), .. }) => {
            InForce::No(vec![format!("it is placed: {who}")])
        }
        _ => InForce::Yes,
    }
}

fn compare(profile: &Profile, placement: &Placement) -> InForce {
    let (mut differs, mut unknown) = (Vec::new(), Vec::new());
    if let Some(wanted) = &placement.cpus {
        match profile.cpus.value() {
            None => unknown.push("the CPUs that it may use are not known".to_owned()),
            Some(cpus) if cpus.is_subset(wanted) => {}
            Some(cpus) => differs.push(format!("it may use CPUs {cpus}, not only {wanted}")),
        }
    }
    if let Some(policy) = &placement.policy {
        match memory(profile, policy) {
            None => unknown.push("the policy of its memory is not known".to_owned()),
            Some(Ok(())) => {}
            Some(Err(difference)) => differs.push(difference),
        }
    }
    match (differs.is_empty(), unknown.is_empty()) {
        (false, _) => InForce::No(differs),
        (true, false) => InForce::Unknown(unknown),
        (true, true) => InForce::Yes,
    }
}

/// Whether memory is where a policy would put it; `None` where that is not known.
fn memory(profile: &Profile, wanted: &MemPolicy) -> Option<Result<(), String>> {
    let held = profile.policy.value();
    if held.is_some_and(|held| held.as_ref() == Some(wanted)) {
        return Some(Ok(()));
    }
    let named = || match held.and_then(Option::as_ref) {
        Some(policy) => format!("the policy of its memory is {policy}, not {wanted}"),
        None => format!("the policy of its memory is the default, not {wanted}"),
    };
    match wanted.mode {
        PolicyMode::Bind | PolicyMode::Preferred | PolicyMode::PreferredMany => {
            let memory = profile.memory.value()?;
            let sum =
                |sizes: &mut dyn Iterator<Item = &Bytes>| sizes.map(|size| size.get() as f64).sum::<f64>();
            let all = sum(&mut memory.values());
            let there = sum(&mut memory
                .iter()
                .filter(|(node, _)| wanted.nodes.contains(**node))
                .map(|(_, size)| size));
            if all == 0.0 || there >= AT_HOME * all {
                return Some(Ok(()));
            }
            let share = 100.0 * (1.0 - there / all);
            let word = if wanted.nodes.len() == 1 { "node" } else { "nodes" };
            Some(Err(format!("{share:.0} % of its memory is not on {word} {}", wanted.nodes)))
        }
        PolicyMode::Local | PolicyMode::Default => {
            held?;
            let is_default = held.is_some_and(Option::is_none);
            Some(if is_default { Ok(()) } else { Err(named()) })
        }
        PolicyMode::Interleave | PolicyMode::WeightedInterleave => {
            held?;
            Some(Err(named()))
        }
    }
}
