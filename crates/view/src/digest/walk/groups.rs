//! The control groups of the program of a request: their limits, and what happens where one is met.

use nodewise_machine::Bytes;
use nodewise_machine::check::node_names;
use nodewise_model::charge::{ChargedGroup, GroupRooms, LimitRoom};
use nodewise_model::simulate::GroupLimit;
use nodewise_model::{Interval, Verdict};

use super::{MemoryKind, Walk, size_of, sizes_of};
use crate::digest::counts::by_count;

/// A control group with a limit of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkGroup {
    /// Its path, fit for a terminal; `None` for the group of a limit that was typed.
    pub path: Option<String>,
    pub memory: ChargedGroup,
    /// Pages of its `memory.swap.max`.
    pub swap_max: Option<u64>,
    pub swap_used: u64,
    /// Whether all its programs are killed with one of them.
    pub kills_all: bool,
}

/// The control groups of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkGroups {
    /// Those with a limit, the program's own first.
    pub groups: Vec<WalkGroup>,
    pub rooms: GroupRooms,
    /// Pages that the nodes give, where the groups leave fewer than the request has.
    pub cut: Option<u64>,
    /// Why limits are not known, fit for a terminal.
    pub unknown: Option<String>,
}

/// Longer paths are cut in sentences: those of containers have hundreds of characters.
const LONG: usize = 40;

impl WalkGroup {
    /// Its name in a sentence.
    pub fn name(&self) -> String {
        let Some(path) = &self.path else { return "the container".to_owned() };
        let last = path.rsplit('/').next().unwrap_or(path);
        match (path.chars().count() > LONG, last.chars().count() > LONG) {
            (false, _) => format!("group {path}"),
            (true, false) => format!("group …/{last}"),
            (true, true) => format!("group …/{}…", last.chars().take(LONG).collect::<String>()),
        }
    }

    /// Its limits and its memory in words.
    pub fn in_words(&self, page: u64) -> String {
        let ChargedGroup { max, high, used, caches, .. } = &self.memory;
        let limit = |name: &str, pages: &Option<u64>| {
            pages.map(|pages| format!("memory.{name} {}", size_of(pages, page)))
        };
        let mut words: Vec<String> = [("max", max), ("high", high), ("swap.max", &self.swap_max)]
            .iter()
            .filter_map(|(name, pages)| limit(name, pages))
            .collect();
        words.push(match used {
            _ if used.least == used.most => format!("{} charged", sizes_of(*used, page)),
            _ => "what is charged is not known".to_owned(),
        });
        if caches.most > 0 {
            words.push(format!("{} of page cache and slab in it", sizes_of(*caches, page)));
        }
        if self.swap_used > 0 {
            words.push(format!("{} swapped out", size_of(self.swap_used, page)));
        }
        let path = self.path.as_ref().map_or_else(|| self.name(), |path| format!("group {path}"));
        format!("{path}: {}", words.join(", "))
    }
}

/// The limits that a request meets in the groups of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupAnswer {
    /// Whether a process of a group is killed.
    pub verdict: Verdict,
    /// The limit where the kernel begins to reclaim inside a group.
    pub first: LimitRoom,
    /// The `memory.max` that the request comes to first.
    pub max: Option<LimitRoom>,
    /// The `memory.high` that slows the program down, with whether that is certain.
    pub slows: Option<(LimitRoom, Verdict)>,
}

impl GroupAnswer {
    /// The answer for a request that meets a limit; `None` where it does not.
    pub fn from_walk(walk: &Walk<'_>) -> Option<Self> {
        let groups = walk.groups?;
        let pages = wanted(walk);
        let GroupRooms { max, high } = groups.rooms;
        let is_met = |limit: &LimitRoom| pages > limit.free;
        // Pages of the page cache make room for one another: who reads a file meets no end.
        let is_cache = walk.kind == MemoryKind::Cache;
        let verdict = |limit: LimitRoom| match walk.size_bytes {
            _ if is_cache => Verdict::Survives,
            Some(_) => limit.verdict(pages),
            // Whoever takes all there is gets past every limit but the last.
            None => Verdict::Killed,
        };
        let (max, high) = (max.filter(is_met), high.filter(is_met));
        let first = [high, max].into_iter().flatten().min_by_key(|limit| limit.free)?;
        let slows = high.map(|high| (high, verdict(high))).filter(|(_, slows)| *slows != Verdict::Survives);
        Some(Self { verdict: max.map_or(Verdict::Survives, verdict), first, max, slows })
    }

    /// The end of the request, where the nodes give what the groups let it have: behind what is said about fallback, or where
    /// it is open whether the nodes give that, behind what is said about them.
    pub(super) fn end(&self, walk: &Walk<'_>, groups: &WalkGroups, fallback: Option<&str>) -> String {
        let page = walk.before.page_bytes();
        let head = fallback.map_or_else(|| "besides,".to_owned(), |fallback| format!("{fallback};"));
        let Some(max) = self.max.filter(|_| self.verdict != Verdict::Survives) else {
            let head = fallback.map_or(head, |fallback| format!("{fallback}, and no process is killed:"));
            let (name, limit) = (groups.name(&self.first), groups.limit(&self.first, page));
            return format!("{head} {name} meets its {limit} {}.", start(self.first.free, page));
        };
        let (name, limit, room) = (groups.name(&max), groups.limit(&max, page), room(max.room, page));
        let free = beside(walk);
        match self.verdict {
            Verdict::Open => format!(
                "{head} whether a process of {name} is killed is open: its {limit} leaves room for {room}{free}."
            ),
            _ => format!("{head} a process of {name} is killed after {room}, by its {limit}{free}."),
        }
    }

    /// Page cache and swap inside the group, and programs that are slowed down.
    pub(super) fn reclaim(&self, walk: &Walk<'_>, groups: &WalkGroups) -> String {
        let page = walk.before.page_bytes();
        let pages = wanted(walk);
        let (dropped, swapped) = self.first.reclaimed(pages);
        let cache = match dropped.most {
            0 => "has no page cache to drop".to_owned(),
            _ => format!("drops {} of page cache and slab", sizes_of(dropped, page)),
        };
        let after = start(self.first.free, page);
        let swap = match swapped {
            None => format!("swapping, if there is swap, may start {after}"),
            Some(Interval { most: 0, .. }) => "nothing can be swapped".to_owned(),
            Some(Interval { least: 0, .. }) => format!("swapping may start {after}"),
            Some(_) => {
                let latest = self.first.free.saturating_add(self.first.relief.caches.most);
                format!("swapping starts {} at the latest", start(latest, page))
            }
        };
        let slows = self.slows.map_or_else(String::new, |(high, verdict)| {
            let may = if verdict == Verdict::Open { "may slow" } else { "slows" };
            let (limit, name) = (groups.limit(&high, page), groups.name(&high));
            format!(
                " The {limit} of {name} {may} its programs down after {}, and kills none.",
                room(high.room, page)
            )
        });
        let name = groups.name(&self.first);
        let inside = match self.first.relief.caches.most {
            0 => format!("inside {name} the kernel {cache}; {swap}."),
            _ => format!("the kernel {cache} inside {name}; {swap}."),
        };
        format!("{inside}{slows}")
    }
}

impl WalkGroups {
    /// The name of the group of a limit.
    pub fn name(&self, limit: &LimitRoom) -> String {
        self.groups.get(limit.group).map_or_else(String::new, WalkGroup::name)
    }

    /// A limit with its size: `memory.max of 8 GiB`.
    fn limit(&self, limit: &LimitRoom, page: u64) -> String {
        let memory = self.groups.get(limit.group).map(|group| &group.memory);
        let size = memory.and_then(|memory| match limit.limit {
            GroupLimit::Max => memory.max,
            GroupLimit::High => memory.high,
        });
        format!("{} of {}", file(limit.limit), size_of(size.unwrap_or_default(), page))
    }

    /// How much more the groups allow, for a request that stays below their limits.
    pub(super) fn left(&self, page: u64) -> Option<String> {
        let max = self.rooms.max.or(self.rooms.high)?;
        let (name, limit, room) = (self.name(&max), self.limit(&max, page), room(max.room, page));
        Some(format!("{name} may have {room} more ({limit})"))
    }

    /// Whether all programs of the group of a limit are killed together.
    pub(super) fn kills_all(&self, limit: &LimitRoom) -> bool {
        self.groups.get(limit.group).is_some_and(|group| group.kills_all)
    }
}

/// The file of a limit.
pub const fn file(limit: GroupLimit) -> &'static str {
    match limit {
        GroupLimit::Max => "memory.max",
        GroupLimit::High => "memory.high",
    }
}

/// Pages of the request; without a size as many as there can be.
fn wanted(walk: &Walk<'_>) -> u64 {
    walk.size_bytes.map_or(u64::MAX, |size| size.div_ceil(walk.before.page_bytes()))
}

/// The room below a limit; its upper end is open where it is not known whether there is swap.
fn room(room: Interval, page: u64) -> String {
    match room.most {
        u64::MAX => format!("{} (with swap later)", size_of(room.least, page)),
        _ => sizes_of(room, page),
    }
}

fn start(pages: u64, page: u64) -> String {
    match pages {
        0 => "at once".to_owned(),
        pages => format!("after {}", size_of(pages, page)),
    }
}

/// The memory that is free then on the nodes that may be used.
fn beside(walk: &Walk<'_>) -> String {
    let nodes = walk.after.nodes().intersection(walk.allowed);
    let free: u64 = nodes.iter().map(|node| walk.after.free_of(node)).sum();
    let have = by_count(&nodes.len(), "has", "have");
    let free = Bytes::new(walk.before.page_bytes()).times(free);
    format!(", while {} {have} {free} free", node_names(&nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(path: Option<&str>) -> WalkGroup {
        WalkGroup {
            path: path.map(str::to_owned),
            memory: ChargedGroup {
                max: Some(2 << 18),
                high: Some(1 << 18),
                used: Interval::exactly(512 << 8),
                caches: Interval { least: 256, most: 512 },
                swap_left: Some(0),
            },
            swap_max: Some(0),
            swap_used: 0,
            kills_all: false,
        }
    }

    #[test]
    fn a_group_is_named_in_a_sentence_and_in_full_in_its_line() {
        let path = format!("/kubepods.slice/kubepods-burstable.slice/cri-{}.scope", "1f".repeat(32));
        let long = group(Some(&path));
        assert!(long.name().starts_with("group …/cri-1f1f") && long.name().chars().count() < 60);
        assert!(long.in_words(4096).starts_with(&format!("group {path}: ")));
        assert_eq!(group(Some("/a/b")).name(), "group /a/b");
        let short = group(Some(&format!("/{}/b", "a".repeat(60))));
        assert_eq!(short.name(), "group …/b");
        assert_eq!(
            group(None).in_words(4096),
            "the container: memory.max 2 GiB, memory.high 1 GiB, memory.swap.max 0 B, 512 MiB charged, 1 MiB to 2 MiB of \
             page cache and slab in it"
        );
        let mut unknown = group(Some("/a"));
        unknown.memory.used = Interval { least: 0, most: 9 };
        unknown.swap_used = 256;
        let words = unknown.in_words(4096);
        assert!(
            words.contains("what is charged is not known") && words.ends_with("1 MiB swapped out"),
            "{words}"
        );
    }
}
