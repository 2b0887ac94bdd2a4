//! Scripts without some of their mappings or pages: what refers to them goes too.

use crate::cache::CacheScript;
use crate::group::GroupScript;
use crate::script::{BLOCK, Call, MappingKind, Part, PoolStep, Script, Step};

/// Writes of a child and its parent to pages that they share after `fork(2)`, of memory that is their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    Keep,
    LeaveOut,
}

/// A mapping in the smaller script: its number and pages; `None` where it is gone.
type Place<'a> = &'a dyn Fn(usize) -> Option<(usize, u64)>;

impl Script {
    /// The script without the calls of a range.
    #[must_use]
    pub fn without(&self, range: std::ops::Range<usize>) -> Self {
        let mut kept = Vec::new();
        let mut mappings = 0;
        let mut calls = Vec::new();
        for (at, call) in self.calls.iter().enumerate() {
            let stays = !range.contains(&at);
            if let Call::Map(_, pages) = call {
                kept.push(stays.then_some((mappings, *pages)));
                mappings += usize::from(stays);
            }
            if stays {
                calls.extend(call.adapted(&|mapping| kept.get(mapping).copied().flatten()));
            }
        }
        Self { weights: self.weights.clone(), calls }
    }

    /// The script without what belongs to the whole system: weights, cpusets, settings and pools.
    #[must_use]
    pub fn of_one_program(&self, copies: Copies) -> Self {
        let mut shared = Vec::new();
        let mut calls = Vec::new();
        for call in &self.calls {
            match call {
                Call::Restrict(_) | Call::Pool { .. } | Call::HugePages(..) => continue,
                Call::Map(kind, _) => shared.push(matches!(kind, MappingKind::File(_))),
                Call::Fork(steps) if copies == Copies::LeaveOut => {
                    let copies = |step: &Step| match step {
                        Step::Write(_, mapping, _) => !shared.get(*mapping).copied().unwrap_or(false),
                        _ => false,
                    };
                    calls.push(Call::Fork(steps.iter().filter(|step| !copies(step)).cloned().collect()));
                    continue;
                }
                _ => {}
            }
            calls.push(call.clone());
        }
        Self { weights: Vec::new(), calls }
    }

    /// The script with other calls in place of one.
    #[must_use]
    pub fn with(&self, at: usize, call: Call) -> Self {
        let mut calls = self.calls.clone();
        calls[at] = call;
        Self { weights: self.weights.clone(), calls }
    }

    /// The script with fewer pages of a mapping, by the place of its call; huge mappings keep whole huge pages.
    #[must_use]
    pub fn with_pages(&self, at: usize, pages: u64) -> Self {
        let Some(Call::Map(kind, _)) = self.calls.get(at) else { return self.clone() };
        let smaller = self.with(at, Call::Map(*kind, pages));
        let sizes: Vec<u64> = smaller.calls.iter().filter_map(mapped_pages).collect();
        let place = |mapping: usize| Some((mapping, *sizes.get(mapping)?));
        let calls = smaller.calls.iter().filter_map(|call| call.adapted(&place)).collect();
        Self { weights: self.weights.clone(), calls }
    }
}

/// The pages of a call that maps some.
const fn mapped_pages(call: &Call) -> Option<u64> {
    if let Call::Map(_, pages) = call { Some(*pages) } else { None }
}

/// Pages of a mapping of a kind that are not too many to be halved.
pub fn fewer_pages(kind: MappingKind, pages: u64) -> Vec<u64> {
    let unit = if kind == MappingKind::Huge { BLOCK } else { 1 };
    let half = pages / 2 / unit * unit;
    let mut fewer = vec![unit, half, pages.saturating_sub(unit)];
    fewer.retain(|count| *count >= unit && *count < pages);
    fewer.dedup();
    fewer
}

impl Call {
    /// The call in a script whose mappings are these; `None` where nothing of it is left.
    fn adapted(&self, place: Place<'_>) -> Option<Self> {
        Some(match self {
            Self::Touch(mapping, pages) => {
                let (mapping, pages) = some_pages(*mapping, pages, place)?;
                Self::Touch(mapping, pages)
            }
            Self::Bind(part, policy, options) => Self::Bind(part.adapted(place)?, policy.clone(), *options),
            Self::SetHome(part, node) => Self::SetHome(part.adapted(place)?, *node),
            Self::Move(mapping, moves) => {
                let (mapping, count) = place(*mapping)?;
                let moves: Vec<_> = moves.iter().copied().filter(|(page, _)| *page < count).collect();
                Self::Move(mapping, (!moves.is_empty()).then_some(moves)?)
            }
            Self::Keep(mapping) => Self::Keep(place(*mapping)?.0),
            Self::Fork(steps) => Self::Fork(steps.iter().filter_map(|step| step.adapted(place)).collect()),
            _ => self.clone(),
        })
    }

    /// The call with only these of its steps; `None` for a call without steps.
    pub fn with_steps(&self, keeps: &dyn Fn(usize) -> bool) -> Option<Self> {
        fn kept<T: Clone>(steps: &[T], keeps: &dyn Fn(usize) -> bool) -> Vec<T> {
            steps.iter().enumerate().filter(|(at, _)| keeps(*at)).map(|(_, step)| step.clone()).collect()
        }
        match self {
            Self::Fork(steps) => Some(Self::Fork(kept(steps, keeps))),
            Self::Pool { pools, pages, steps } => {
                let steps = kept(steps, keeps);
                Some(Self::Pool { pools: pools.clone(), pages: *pages, steps })
            }
            Self::Group(script) => {
                let steps = kept(&script.steps, keeps);
                Some(Self::Group(GroupScript { steps, ..script.clone() }))
            }
            Self::Cache(script) => {
                let steps = kept(&script.steps, keeps);
                Some(Self::Cache(CacheScript { steps, ..script.clone() }))
            }
            _ => None,
        }
    }

    /// The number of its steps.
    pub fn steps(&self) -> usize {
        match self {
            Self::Fork(steps) => steps.len(),
            Self::Pool { steps, .. } => steps.len(),
            Self::Group(script) => script.steps.len(),
            Self::Cache(script) => script.steps.len(),
            _ => 0,
        }
    }
}

impl Step {
    fn adapted(&self, place: Place<'_>) -> Option<Self> {
        Some(match self {
            Self::Write(member, mapping, pages) => {
                let (mapping, pages) = some_pages(*mapping, pages, place)?;
                Self::Write(*member, mapping, pages)
            }
            Self::Bind(part, policy) => Self::Bind(part.adapted(place)?, policy.clone()),
            Self::RunOn(..) | Self::SetPolicy(_) => self.clone(),
        })
    }
}

impl PoolStep {
    /// Whether all pages that the step names are among the first ones.
    pub const fn is_within(&self, pages: u64) -> bool {
        match self {
            Self::Touch(page) | Self::Move(page, _) => *page < pages,
            Self::Bind(..) | Self::Migrate(..) | Self::Resize(..) => true,
        }
    }
}

impl Part {
    fn adapted(self, place: Place<'_>) -> Option<Self> {
        let (mapping, pages) = place(self.mapping)?;
        let count = self.count.min(pages.checked_sub(self.first)?);
        (count > 0).then_some(Self { mapping, first: self.first, count })
    }
}

/// Pages of a mapping that are left, unless there are none.
fn some_pages(mapping: usize, pages: &[u64], place: Place<'_>) -> Option<(usize, Vec<u64>)> {
    let (mapping, count) = place(mapping)?;
    let pages: Vec<u64> = pages.iter().copied().filter(|page| *page < count).collect();
    (!pages.is_empty()).then_some((mapping, pages))
}
