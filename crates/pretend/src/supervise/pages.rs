//! Policies and nodes of memory, by address or by place in a file.

use std::ops::Range;

use nodewise_machine::{NodeId, NodeSet, PolicyMode};
use nodewise_model::policy::interleave::InterleavePosition;
use nodewise_model::policy::set::Policy;
use nodewise_model::walk::{Class, Request};
use nodewise_model::zones::ZoneKind;
use nodewise_model::{Memory, Release, Weights};
use rangemap::{RangeMap, RangeSet};

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    pub node: NodeId,
    kind: ZoneKind,
    /// Whether somebody else gives the page back, or the machine never had it.
    borrowed: bool,
}

/// Homes of bytes, in their order.
type Homes = Vec<(Range<u64>, Home)>;

/// Bytes with their policies and homes.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    pub policies: RangeMap<u64, Policy>,
    pub homes: RangeMap<u64, Home>,
    /// How far away memory was when its turns were given out, of memory that `mremap(2)` has moved since: to be added to its address.
    pub moved: RangeMap<u64, u64>,
}

/// Who gets pages, and from where.
#[derive(Debug)]
pub struct Giver<'a> {
    pub memory: &'a mut Memory,
    pub weights: &'a Weights,
    pub allowed: &'a NodeSet,
    /// The policy of memory that has none.
    pub policy: &'a Policy,
    pub cpu_node: NodeId,
}

/// The turns that memory takes in an interleaving policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    Address,
    /// By the address that the memory had before it was moved: so far away.
    Moved(u64),
    /// By place in the file with this inode.
    File(u64),
}

/// The origin of pages.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub turns: Turns,
    /// Whether policies place it.
    pub has_policies: bool,
    /// Bytes in huge pages.
    pub huge: &'a RangeSet<u64>,
}

impl Source<'_> {
    /// The origin of pages that `mbind(2)` moves.
    #[must_use]
    pub fn when_moved(self, release: Release) -> Self {
        Self { turns: self.turns.when_moved(release), ..self }
    }
}

impl Turns {
    const fn position(self, at: u64) -> InterleavePosition {
        match self {
            Self::Address => InterleavePosition::Address(at),
            Self::Moved(distance) => InterleavePosition::Address(at.wrapping_add(distance)),
            Self::File(inode) => InterleavePosition::File { inode, page: at >> 12 },
        }
    }

    /// The turns that pages take when `mbind(2)` moves them ([`InterleavePosition::when_moved`]).
    fn when_moved(self, release: Release) -> Self {
        match self.position(0).when_moved(release) {
            InterleavePosition::File { inode, .. } => Self::File(inode),
            _ => self,
        }
    }
}

impl<'a> Giver<'a> {
    /// Homes for these bytes, in their order.
    fn give(&mut self, policy: &Policy, bytes: &Range<u64>, source: &Source<'_>) -> Homes {
        let block = self.memory.page_bytes() << self.memory.huge_order();
        let turns = source.turns;
        let mut homes = Homes::new();
        let mut start = bytes.start;
        for run in source.huge.overlapping(bytes) {
            // Whole huge pages; of others a part is asked for.
            let first = run.start.max(bytes.start).next_multiple_of(block);
            let end = run.end.min(bytes.end) / block * block;
            for huge in (first..end).step_by(block as usize) {
                homes.extend(self.give_small(policy, start..huge, turns));
                homes.extend(self.give_huge(policy, huge..huge + block, turns));
                start = huge + block;
            }
        }
        homes.extend(self.give_small(policy, start..bytes.end, turns));
        homes
    }

    fn request<'r>(
        &self,
        policy: &'r Policy,
        pages: u64,
        order: u32,
        place: InterleavePosition,
    ) -> Request<'r>
    where
        'a: 'r,
    {
        let (weights, allowed, cpu_node) = (self.weights, self.allowed, self.cpu_node);
        Request { policy, weights, cpu_node, allowed, pages, order, place, class: Class::User }
    }

    fn give_huge(&mut self, policy: &Policy, bytes: Range<u64>, turns: Turns) -> Homes {
        let (order, place) = (self.memory.huge_order(), turns.position(bytes.start));
        let request = self.request(policy, 1, order, place);
        let outcome = self.memory.allocate(&request);
        let huge = outcome.stretches.iter().find(|stretch| stretch.order == order);
        if let Some(share) = huge.and_then(|stretch| stretch.shares.first()) {
            return vec![(bytes, Home { node: share.node, kind: share.kind, borrowed: false })];
        }
        // Small ones, each by its own turn.
        for (node, kind, pages) in outcome.zones() {
            self.memory.free(node, kind, pages);
        }
        self.give_small(policy, bytes, turns)
    }

    fn give_small(&mut self, policy: &Policy, bytes: Range<u64>, turns: Turns) -> Homes {
        let page = self.memory.page_bytes();
        let takes_turns = matches!(policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave);
        let step = if takes_turns { page } else { u64::MAX };
        let mut homes = Homes::new();
        let mut start = bytes.start;
        while start < bytes.end {
            // Up to the next page where pages take turns.
            let end = (start - start % page).saturating_add(step).min(bytes.end);
            self.give_run(policy, start..end, turns, &mut homes);
            start = end;
        }
        homes
    }

    /// Pages whose zones change only when one is full.
    fn give_run(&mut self, policy: &Policy, bytes: Range<u64>, turns: Turns, homes: &mut Homes) {
        let page = self.memory.page_bytes();
        let pages = (bytes.end - bytes.start).div_ceil(page);
        let request = self.request(policy, pages, 0, turns.position(bytes.start));
        let outcome = self.memory.allocate(&request);
        let mut start = bytes.start;
        for share in outcome.stretches.iter().flat_map(|stretch| &stretch.shares) {
            let end = start.saturating_add(share.pages.saturating_mul(page)).min(bytes.end);
            if start < end {
                homes.push((start..end, Home { node: share.node, kind: share.kind, borrowed: false }));
            }
            start = end;
        }
        if start < bytes.end {
            // The machine has no page left, and its kernel would kill. The memory is there nevertheless.
            let node = policy.nodes.first().unwrap_or(self.cpu_node);
            homes.push((start..bytes.end, Home { node, kind: ZoneKind::Normal, borrowed: true }));
        }
    }
}

/// The part of a map within these bytes.
fn clipped<T: Clone + Eq>(map: &RangeMap<u64, T>, bytes: &Range<u64>) -> Vec<(Range<u64>, T)> {
    let clip = |range: &Range<u64>| range.start.max(bytes.start)..range.end.min(bytes.end);
    map.overlapping(bytes).map(|(range, value)| (clip(range), value.clone())).collect()
}

impl Pages {
    /// Gives homes to those of these bytes that have none, by their own policy or the giver's.
    pub fn fill(&mut self, bytes: &Range<u64>, source: &Source<'_>, giver: &mut Giver<'_>) {
        let without: Vec<Range<u64>> = self.homes.gaps(bytes).collect();
        for (piece, policy) in without.iter().flat_map(|gap| self.pieces(gap)).collect::<Vec<_>>() {
            let policy = match policy {
                _ if !source.has_policies => Policy::DEFAULT,
                Some(policy) => policy,
                None => giver.policy.clone(),
            };
            let homes = self.give(giver, &policy, &piece, source);
            self.homes.extend(homes);
        }
    }

    /// Homes for these bytes, each by its own turn.
    fn give(&self, giver: &mut Giver<'_>, policy: &Policy, bytes: &Range<u64>, source: &Source<'_>) -> Homes {
        if source.turns != Turns::Address || !self.moved.overlaps(bytes) {
            return giver.give(policy, bytes, source);
        }
        let mut pieces: Vec<(Range<u64>, Turns)> =
            self.moved.gaps(bytes).map(|gap| (gap, Turns::Address)).collect();
        let moved = clipped(&self.moved, bytes);
        pieces.extend(moved.into_iter().map(|(range, distance)| (range, Turns::Moved(distance))));
        pieces.sort_by_key(|(range, _)| range.start);
        let given =
            pieces.into_iter().map(|(range, turns)| giver.give(policy, &range, &Source { turns, ..*source }));
        given.flatten().collect()
    }

    /// These bytes by their policies.
    pub fn pieces(&self, bytes: &Range<u64>) -> Vec<(Range<u64>, Option<Policy>)> {
        let clip = |range: &Range<u64>| range.start.max(bytes.start)..range.end.min(bytes.end);
        let mut pieces: Vec<(Range<u64>, Option<Policy>)> = self
            .policies
            .overlapping(bytes)
            .map(|(range, policy)| (clip(range), Some(policy.clone())))
            .chain(self.policies.gaps(bytes).map(|range| (range, None)))
            .collect();
        pieces.sort_by_key(|(range, _)| range.start);
        pieces
    }

    /// Sets the policy of bytes; `Default` takes it away.
    pub fn set_policy(&mut self, bytes: Range<u64>, policy: &Policy) {
        if bytes.is_empty() {
            return;
        }
        match policy.mode {
            PolicyMode::Default => self.policies.remove(bytes),
            _ => self.policies.insert(bytes, policy.clone()),
        }
    }

    /// Takes homes away, and gives their pages back.
    pub fn release(&mut self, bytes: Range<u64>, memory: &mut Memory) {
        if bytes.is_empty() {
            return;
        }
        let page = memory.page_bytes();
        for (range, home) in self.homes.overlapping(&bytes).filter(|(_, home)| !home.borrowed) {
            let length = range.end.min(bytes.end) - range.start.max(bytes.start);
            memory.free(home.node, home.kind, length.div_ceil(page));
        }
        self.homes.remove(bytes);
    }

    /// Forgets all about bytes, and gives their pages back.
    pub fn clear(&mut self, bytes: Range<u64>, memory: &mut Memory) {
        if !bytes.is_empty() {
            self.release(bytes.clone(), memory);
            self.policies.remove(bytes.clone());
            self.moved.remove(bytes);
        }
    }

    /// Follows memory to another address, with its policy and its pages; what is known of the target goes. Where there is more of it
    /// than before, that has the policy of its end. Policies can stay behind as well.
    ///
    /// # Source
    /// `copy_vma` in `mm/vma.c`: memory without a page has its turns by its new address, other memory by its first one.
    pub fn follow(&mut self, from: &Range<u64>, to: Range<u64>, policies_stay: bool, memory: &mut Memory) {
        let distance = from.start.wrapping_sub(to.start);
        let to_new = |range: Range<u64>| range.start.wrapping_sub(distance)..range.end.wrapping_sub(distance);
        let homes = clipped(&self.homes, from);
        let policies = clipped(&self.policies, from);
        let moved = clipped(&self.moved, from);
        self.homes.remove(from.clone());
        self.moved.remove(from.clone());
        if !policies_stay {
            self.policies.remove(from.clone());
        }
        self.clear(to.clone(), memory);
        if !homes.is_empty() {
            self.moved.insert(to.clone(), distance);
        }
        self.moved
            .extend(moved.into_iter().map(|(range, before)| (to_new(range), before.wrapping_add(distance))));
        self.homes.extend(homes.into_iter().map(|(range, home)| (to_new(range), home)));
        self.policies.extend(policies.into_iter().map(|(range, policy)| (to_new(range), policy)));
        self.grow(to_new(from.clone()).end, to.end);
    }

    /// Memory that ends at an address gets longer, up to another.
    pub fn grow(&mut self, end: u64, new_end: u64) {
        if end >= new_end {
            return;
        }
        if let Some(policy) = self.policies.get(&(end - 1)).cloned() {
            self.policies.insert(end..new_end, policy);
        }
        if let Some(distance) = self.moved.get(&(end - 1)).copied() {
            self.moved.insert(end..new_end, distance);
        }
    }

    /// Moves the pages of these bytes that a node makes move, to where a policy would put them. A huge page moves as one.
    pub fn move_where(
        &mut self,
        bytes: &Range<u64>,
        moves: impl Fn(NodeId) -> bool,
        policy: &Policy,
        source: &Source<'_>,
        giver: &mut Giver<'_>,
    ) {
        let clip = |range: &Range<u64>| range.start.max(bytes.start)..range.end.min(bytes.end);
        let leaves = |(range, home): (&Range<u64>, &Home)| moves(home.node).then(|| clip(range));
        let there: Vec<Range<u64>> = self.homes.overlapping(bytes).filter_map(leaves).collect();
        for range in there {
            // Where no page is to be had the old one stays.
            let given = self.give(giver, policy, &range, source);
            for (bytes, home) in given.into_iter().filter(|(_, home)| !home.borrowed) {
                self.release(bytes.clone(), giver.memory);
                self.homes.insert(bytes, home);
            }
        }
    }

    /// The same memory in a child, which gives none of it back.
    pub fn inherited(&self) -> Self {
        let borrowed =
            |(range, home): (&Range<u64>, &Home)| (range.clone(), Home { borrowed: true, ..*home });
        let homes = self.homes.iter().map(borrowed).collect();
        Self { policies: self.policies.clone(), homes, moved: self.moved.clone() }
    }

    /// The node of a page that has one.
    pub fn node_at(&self, at: u64) -> Option<NodeId> {
        self.homes.get(&at).map(|home| home.node)
    }
}
