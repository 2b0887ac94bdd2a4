//! The four questions that everybody asks of a request: does it fall back or die, what becomes of the page cache, which
//! process is killed, and when does swapping start. All else that `explain` shows is the proof.

use nodewise_machine::check::node_names;
use nodewise_machine::{NodeId, NodeSet, PolicyMode};
use nodewise_model::walk::{Constraint, OutOfMemory, Stretch};
use nodewise_model::{Interval, Verdict};

use super::groups::GroupAnswer;
use super::{Walk, size_of, sizes_of};
use crate::digest::counts::by_count;

/// The fate of the page cache of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheAnswer {
    /// All of it stays.
    Kept,
    /// Some of it may go: kswapd, which is woken at the low watermark, drops it in the background.
    Background,
    /// This many pages are dropped.
    Dropped(Interval),
    /// There is none.
    Empty,
    /// The machine does not say what there is.
    Unknown,
}

impl CacheAnswer {
    /// The word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Background => "may_be_dropped",
            Self::Dropped(_) => "dropped",
            Self::Empty => "none",
            Self::Unknown => "unknown",
        }
    }
}

/// The moment at which pages of programs go to swap, in pages of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swapping {
    /// Not for this request.
    Never,
    /// There is no swap.
    NoSwap,
    /// At this one at the earliest; it need not.
    Possible(u64),
    /// The same, if there is swap.
    IfAny(u64),
    /// Between these two.
    Certain { earliest: u64, latest: u64 },
}

impl Swapping {
    /// The word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Never => "no",
            Self::NoSwap => "no_swap",
            Self::Possible(_) => "possible",
            Self::IfAny(_) => "unknown",
            Self::Certain { .. } => "certain",
        }
    }

    /// Pages that are taken before it starts, at least and at most.
    pub const fn start(self) -> Option<(u64, Option<u64>)> {
        match self {
            Self::Never | Self::NoSwap => None,
            Self::Possible(after) | Self::IfAny(after) => Some((after, None)),
            Self::Certain { earliest, latest } => Some((earliest, Some(latest))),
        }
    }
}

/// The answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// Nodes that give pages which others were to give.
    pub fallback: NodeSet,
    /// Pages that are given before the first of them does.
    pub fallback_after: u64,
    /// Pages that are given without any reclaiming.
    pub given: u64,
    pub cache: CacheAnswer,
    /// Whether a process is killed.
    pub verdict: Verdict,
    /// Whether one is killed because the nodes have no room.
    pub of_nodes: Verdict,
    pub swapping: Swapping,
    /// The limits of control groups that end the request, or slow it down; `None` where it ends on the nodes before.
    pub group: Option<GroupAnswer>,
}

impl Answers {
    /// Reads them off the outcome of a request.
    pub fn from_walk(walk: &Walk<'_>) -> Self {
        let fallback = fallback(walk);
        let stretches = &walk.outcome.stretches;
        let sum = |stretches: &[Stretch]| stretches.iter().map(Stretch::pages).sum::<u64>();
        let first = stretches.iter().position(|stretch| has_fallen_back(walk, &fallback, stretch));
        let given = sum(stretches);
        let end = walk.outcome.out_of_memory.as_ref();
        let of_nodes = match (end, walk.relief) {
            (None, _) => Verdict::Survives,
            // Whoever takes all there is goes on until a process is killed.
            _ if walk.takes_all() => Verdict::Killed,
            (Some(_), Some(relief)) => relief.verdict(),
            (Some(_), None) => Verdict::Open,
        };
        let group = GroupAnswer::from_walk(walk).filter(|_| of_nodes != Verdict::Killed);
        let verdict = match (of_nodes, group.map(|group| group.verdict)) {
            (_, None | Some(Verdict::Survives)) => of_nodes,
            (_, Some(Verdict::Killed)) => Verdict::Killed,
            (_, Some(Verdict::Open)) => Verdict::Open,
        };
        // The kernel begins to reclaim when no zone of the list is above its low watermark.
        let pressure = walk.outcome.above_low().or(end.map(|_| given));
        Self {
            fallback_after: sum(&stretches[..first.unwrap_or(stretches.len())]),
            fallback,
            given,
            cache: cache(walk, pressure),
            verdict,
            of_nodes,
            group,
            swapping: pressure.map_or(Swapping::Never, |after| swapping(walk, after, given)),
        }
    }

    /// The answers in two to five sentences: the end of the request and who is killed, then page cache and swap, then the room
    /// that control groups leave.
    pub fn summary(&self, walk: &Walk<'_>) -> String {
        let killed = walk.victim.map(|victim| {
            let if_open = if self.verdict == Verdict::Open { "if so, " } else { "" };
            format!("{if_open}{}", victim.sentence(walk.before.page_bytes()))
        });
        let of_group = self.group.zip(walk.groups);
        let all = of_group.and_then(|(group, groups)| {
            let max = group.max.filter(|max| group.verdict != Verdict::Survives && groups.kills_all(max))?;
            Some(format!("with it all others of {} are killed (memory.oom.group)", groups.name(&max)))
        });
        // Where nothing happens on the nodes, what happens in the group is enough.
        let is_quiet = self.swapping == Swapping::Never && self.cache == CacheAnswer::Kept;
        let on_nodes = Some(self.reclaim(walk)).filter(|_| of_group.is_none() || !is_quiet);
        let in_group = of_group.map(|(group, groups)| group.reclaim(walk, groups));
        let left = walk.groups.filter(|_| of_group.is_none());
        let left = left.and_then(|groups| groups.left(walk.before.page_bytes()));
        let sentences = [Some(self.end(walk)), killed, all, on_nodes, in_group, left];
        let sentences: Vec<String> = sentences
            .iter()
            .flatten()
            .map(|sentence| format!("{}.", capital(sentence.trim_end_matches('.'))))
            .collect();
        sentences.join(" ")
    }

    /// The end of the request on the nodes, and in the control groups where these leave it less.
    fn end(&self, walk: &Walk<'_>) -> String {
        match self.group.zip(walk.groups) {
            Some((group, groups)) if self.of_nodes == Verdict::Survives => {
                let fallback = self.fallback_in_words(walk.before.page_bytes());
                group.end(walk, groups, Some(&fallback))
            }
            Some((group, groups)) => {
                format!("{} {}", self.end_on_nodes(walk), capital(&group.end(walk, groups, None)))
            }
            None => self.end_on_nodes(walk),
        }
    }

    fn end_on_nodes(&self, walk: &Walk<'_>) -> String {
        let page = walk.before.page_bytes();
        let Some(end) = &walk.outcome.out_of_memory else {
            return match walk.size_bytes {
                Some(_) if self.fallback.is_empty() => {
                    format!("no fallback, and no process is killed: {}.", self.givers(walk, None))
                }
                _ => format!("{}; no process is killed.", self.fallback_in_words(page)),
            };
        };
        let unplaced = walk.relief.map_or(Interval { least: 0, most: end.pages }, |relief| relief.unplaced);
        let (fallback, room) = (self.fallback_in_words(page), sizes_of(unplaced, page));
        if walk.takes_all() {
            let freed = walk.relief.map(|relief| relief.caches).unwrap_or_default();
            let swap = Interval::exactly(walk.swap.unwrap_or(0));
            let all = sizes_of(Interval::exactly(self.given).and(freed).and(swap), page);
            let later = if walk.swap.is_none() { ", later with swap" } else { "" };
            return format!("{fallback}; a process is killed after {all}{later}{}.", limit(end, "as"));
        }
        let limit = limit(end, "and");
        match self.verdict {
            Verdict::Survives if self.fallback.is_empty() => {
                format!("no fallback, and no process is killed: {}.", self.givers(walk, Some(end)))
            }
            Verdict::Survives => format!("{fallback}; no process is killed."),
            Verdict::Killed if self.fallback.is_empty() => {
                format!("a process is killed: {room} find no room{limit}.")
            }
            Verdict::Killed => {
                format!("{fallback}, and then a process is killed: {room} find no room{limit}.")
            }
            Verdict::Open if self.fallback.is_empty() => {
                format!("whether a process is killed is open: {room} may find no room{limit}.")
            }
            Verdict::Open => {
                format!("{fallback}; whether a process is killed is open: {room} may find no room{limit}.")
            }
        }
    }

    /// The nodes that give all of it.
    fn givers(&self, walk: &Walk<'_>, end: Option<&OutOfMemory>) -> String {
        let mut nodes: NodeSet = walk.outcome.nodes().into_iter().map(|(node, _)| node).collect();
        nodes = end.map_or(nodes.clone(), |end| nodes.union(&end.inside));
        let gives = by_count(&nodes.len(), "gives", "give");
        let size = size_of(self.given + end.map_or(0, |end| end.pages), walk.before.page_bytes());
        format!("{} {gives} all {size}", node_names(&nodes))
    }

    fn fallback_in_words(&self, page: u64) -> String {
        let nodes = node_names(&self.fallback);
        match self.fallback_after {
            _ if self.fallback.is_empty() => "no fallback".to_owned(),
            0 => format!("falls back to {nodes} from the first page on"),
            after => format!("falls back to {nodes} after {}", size_of(after, page)),
        }
    }

    /// Page cache and swap.
    fn reclaim(&self, walk: &Walk<'_>) -> String {
        let page = walk.before.page_bytes();
        let after = |pages| match pages {
            0 => "at once".to_owned(),
            pages => format!("after {}", size_of(pages, page)),
        };
        let swap = match self.swapping {
            Swapping::Never if self.cache == CacheAnswer::Kept => {
                return "page cache stays, and nothing is swapped".to_owned();
            }
            Swapping::Never => "nothing is swapped".to_owned(),
            Swapping::NoSwap => "there is no swap".to_owned(),
            Swapping::Possible(first) => format!("swapping may start {}", after(first)),
            Swapping::IfAny(first) => format!("swapping, if there is swap, may start {}", after(first)),
            Swapping::Certain { earliest, latest } if earliest == latest => {
                format!("swapping starts {}", after(earliest))
            }
            Swapping::Certain { earliest, latest } => {
                format!(
                    "swapping starts {} at the earliest and {} at the latest",
                    after(earliest),
                    after(latest)
                )
            }
        };
        let cache = match self.cache {
            CacheAnswer::Kept => "page cache stays".to_owned(),
            CacheAnswer::Background => "some page cache may be dropped".to_owned(),
            CacheAnswer::Dropped(pages) => {
                format!("the kernel drops {} of page cache and slab", sizes_of(pages, page))
            }
            CacheAnswer::Empty => "there is no page cache to drop".to_owned(),
            CacheAnswer::Unknown => "the machine does not say how much page cache can be dropped".to_owned(),
        };
        format!("{cache}; {swap}")
    }
}

/// Whether a policy has turns, which fall to another node where one is full.
const fn has_turns(walk: &Walk<'_>) -> bool {
    matches!(walk.policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave)
}

/// Whether in a stretch a node helps out; under a policy with turns, where one of its nodes gives none.
fn has_fallen_back(walk: &Walk<'_>, fallback: &NodeSet, stretch: &Stretch) -> bool {
    let nodes: NodeSet = stretch.shares.iter().map(|share| share.node).collect();
    if has_turns(walk) { !walk.policy.nodes.is_subset(&nodes) } else { !nodes.is_disjoint(fallback) }
}

/// The nodes that give pages which others were to give: misses, and nodes that a policy without turns comes to later.
fn fallback(walk: &Walk<'_>) -> NodeSet {
    let missed: NodeSet = walk
        .nodes()
        .into_iter()
        .filter(|change| change.counters.miss > 0)
        .map(|change| change.node)
        .collect();
    let used: Vec<NodeId> = walk.outcome.nodes().into_iter().map(|(node, _)| node).collect();
    let later = used.into_iter().skip(1).filter(|_| !has_turns(walk));
    missed.union(&later.collect())
}

/// The fate of the page cache, where the kernel begins to reclaim after this number of pages, or not.
fn cache(walk: &Walk<'_>, pressure: Option<u64>) -> CacheAnswer {
    if pressure.is_none() {
        return match walk.nodes().iter().map(|change| change.reclaimed).sum() {
            0 => CacheAnswer::Kept,
            // vm.zone_reclaim_mode drops caches before another node is tried.
            pages => CacheAnswer::Dropped(Interval::exactly(pages)),
        };
    }
    match (walk.droppable, walk.relief) {
        (None, _) => CacheAnswer::Unknown,
        (Some(Interval { most: 0, .. }), _) => CacheAnswer::Empty,
        (Some(caches), _) if walk.takes_all() => CacheAnswer::Dropped(caches),
        (Some(_), Some(relief)) => CacheAnswer::Dropped(relief.dropped),
        (Some(_), None) => CacheAnswer::Background,
    }
}

/// When swapping starts, where the kernel begins to reclaim after this number of pages, of those that are given without.
///
/// kswapd may swap as soon as it is woken, whatever cache there is (`vm.swappiness`), and has to when no cache is left.
fn swapping(walk: &Walk<'_>, after: u64, given: u64) -> Swapping {
    match (walk.swap, &walk.outcome.out_of_memory, walk.droppable) {
        (Some(0), ..) => Swapping::NoSwap,
        (None, ..) => Swapping::IfAny(after),
        (Some(_), Some(end), Some(caches)) if end.pages > caches.most || walk.takes_all() => {
            Swapping::Certain { earliest: after, latest: given.saturating_add(caches.most) }
        }
        (Some(_), ..) => Swapping::Possible(after),
    }
}

/// Why no other node helps out, behind a comma and this word.
fn limit(end: &OutOfMemory, word: &str) -> String {
    let nodes = node_names(&end.inside);
    match end.constraint {
        Constraint::None => String::new(),
        Constraint::MemoryPolicy => format!(", {word} the policy allows {nodes} alone"),
        Constraint::Cpuset => format!(", {word} the cpuset allows {nodes} alone"),
    }
}

/// The same with a capital letter at its beginning.
fn capital(sentence: &str) -> String {
    let mut sentence = sentence.to_owned();
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    sentence
}
