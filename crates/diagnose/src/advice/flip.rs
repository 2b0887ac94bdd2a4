//! Values that would lead to another row: found by changing the profile and asking the table again.

use nodewise_machine::Bytes;
use nodewise_machine::order::Order as _;

use super::decision::{Edge, Quantity, Row, decide};
use super::known::{Known, Quality};
use super::profile::Profile;
use super::rows::ROWS;

/// A value from which on another row decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Flip {
    pub quantity: Quantity,
    /// The value now.
    pub value: f64,
    pub at: f64,
    /// Whether the value would have to rise.
    pub is_above: bool,
    pub row: &'static Row,
}

impl Flip {
    /// The change that it takes, as a part of the value.
    fn distance(&self) -> f64 {
        (self.at - self.value).abs() / self.value.abs().max(f64::MIN_POSITIVE)
    }
}

/// The flips of a profile whose row is known, the nearest first; one for each quantity, direction and row.
pub(super) fn flips(profile: &Profile, decided: &'static Row) -> Vec<Flip> {
    let mut found: Vec<Flip> = Vec::new();
    for edge in edges(profile) {
        let is_above = edge.value <= edge.at;
        // A little beyond the edge; a whole byte for sizes.
        let step = (edge.at.abs() * 1e-9).max(if edge.quantity == Quantity::Need { 1.0 } else { 1e-9 });
        let to = if is_above { edge.at + step } else { (edge.at - step).max(0.0) };
        let Some(other) = with(profile, edge.quantity, to) else { continue };
        let row = decide(&other).row;
        if row != decided {
            found.push(Flip { quantity: edge.quantity, value: edge.value, at: edge.at, is_above, row });
        }
    }
    found.order_by(|one, other| one.distance().total_cmp(&other.distance()));
    let mut nearest: Vec<Flip> = Vec::new();
    for flip in found {
        let same = |known: &Flip| {
            (known.quantity, known.is_above, known.row.number)
                == (flip.quantity, flip.is_above, flip.row.number)
        };
        if !nearest.iter().any(same) {
            nearest.push(flip);
        }
    }
    nearest
}

/// Every number of the table against its limit.
fn edges(profile: &Profile) -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    for edge in ROWS.iter().flat_map(|row| (row.conditions)(profile)).filter_map(|condition| condition.edge) {
        if !edges.contains(&edge) {
            edges.push(edge);
        }
    }
    edges
}

/// The profile with another value; `None` where it cannot have that one.
fn with(profile: &Profile, quantity: Quantity, to: f64) -> Option<Profile> {
    let mut other = profile.clone();
    if !to.is_finite() {
        return None;
    }
    match quantity {
        Quantity::Need => other.need = Known::new(Bytes::new(to as u64), Quality::Certain),
        Quantity::Parallelism => other.parallelism = Known::new(to, Quality::Certain),
        Quantity::Growth => other.growth = Known::new(to, Quality::Certain),
        Quantity::Bandwidth => other.bandwidth = Known::new(to, Quality::Certain),
    }
    Some(other)
}
