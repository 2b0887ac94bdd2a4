//! How the kernel counts the allocations of a node.

/// The allocation counters of a node: since boot, or between two moments.
///
/// `N` is `u64` where every counter is known, as in a model, and `Option<u64>` where the kernel may not
/// have one.
///
/// # Source
/// `/sys/devices/system/node/nodeN/numastat`.
///
/// # Units
/// Events: one for each page that was given, whatever its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NodeCounters<N = u64> {
    /// `numa_hit`: given where it was wanted first.
    pub hit: N,
    /// `numa_miss`: given by this node, wanted from another.
    pub miss: N,
    /// `numa_foreign`: wanted from this node, given by another.
    pub foreign: N,
    /// `interleave_hit`: given by the node whose turn it was.
    pub interleave_hit: N,
    /// `local_node`: given to a CPU of this node.
    pub local: N,
    /// `other_node`: given to a CPU of another node.
    pub other: N,
}

impl<N> NodeCounters<N> {
    /// The counters that a lookup by the kernel's names gives.
    pub fn from_names(mut counter: impl FnMut(&str) -> N) -> Self {
        Self {
            hit: counter("numa_hit"),
            miss: counter("numa_miss"),
            foreign: counter("numa_foreign"),
            interleave_hit: counter("interleave_hit"),
            local: counter("local_node"),
            other: counter("other_node"),
        }
    }

    fn zip(self, before: Self, counter: impl Fn(N, N) -> N) -> Self {
        Self {
            hit: counter(self.hit, before.hit),
            miss: counter(self.miss, before.miss),
            foreign: counter(self.foreign, before.foreign),
            interleave_hit: counter(self.interleave_hit, before.interleave_hit),
            local: counter(self.local, before.local),
            other: counter(self.other, before.other),
        }
    }
}

impl NodeCounters {
    /// The events since an earlier moment.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.zip(before, |now, before| now - before)
    }
}

impl NodeCounters<Option<u64>> {
    /// The events since an earlier moment. A counter that went back, as when the node was taken offline and
    /// came again, says nothing.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        self.zip(before, |now, before| now?.checked_sub(before?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_its_name_and_its_own_difference() {
        const NAMES: [&str; 6] =
            ["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"];
        let place = |name: &str| NAMES.iter().position(|known| *known == name).unwrap() as u64;
        let before = NodeCounters::from_names(place);
        let now = NodeCounters::from_names(|name| place(name) * 11);
        let expected =
            NodeCounters { hit: 0, miss: 10, foreign: 20, interleave_hit: 30, local: 40, other: 50 };
        assert_eq!(now.since(before), expected);
    }

    #[test]
    fn a_counter_that_is_missing_or_went_back_says_nothing() {
        let before = NodeCounters { hit: Some(5), miss: Some(2), ..NodeCounters::default() };
        let now = NodeCounters { hit: Some(9), miss: Some(1), local: Some(3), ..NodeCounters::default() };
        assert_eq!(now.since(before), NodeCounters { hit: Some(4), ..NodeCounters::default() });
    }
}
