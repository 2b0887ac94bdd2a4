//! Some pages instead of all: small mappings are counted page by page, from the others pages are drawn.
//!
//! Each page of the large mappings is drawn with the same probability, with replacement. So the pages of any of
//! them, or of several together, are independent draws, and Wilson's interval holds however pages are clustered:
//! by huge pages, by interleaving. Runs of neighbouring pages would be one draw each (an interval from runs of
//! 50 pages held the share in 20 % of the cases where it should have in 95 %).

use std::collections::BTreeMap;

use nodewise_machine::mapping::{
    DrawnPages, MappedPages, Mapping, MappingKind, MappingPolicy, MappingsMethod,
};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeId};
use nodewise_stats::random::Random;
use nodewise_stats::share::wilson_interval;

use super::runs::{self, Present};
use super::{Found, MOST_COST, MappingsError, PageError, PageSource, Process, Run, RunState};
use crate::parse::{Problems, numa_maps};
use crate::paths;

/// Pages per question; the kernel goes through 16 of them at a time.
const BATCH: usize = 512;
/// Drawing ends when no share is less certain than this: half the width of its interval.
const CERTAIN: f64 = 0.01;
/// After this many draws with fewer hits than this share, all pages are counted instead.
const PATIENCE: u64 = 2000;
const FEW_HITS: f64 = 0.05;

/// The shortest words that `numa_maps` has for a mapping under the default policy behind its address, and those that
/// follow its file where one of its pages is present.
const WORDS: &str = " default file=";
const WORDS_OF_PAGES: &str = " mapped=1 N0=1 kernelpagesize_kB=4";

/// The sampling that is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    /// Pages to count, and to draw, at most about.
    pub(super) most: u64,
    /// Whether all of `numa_maps` is better where huge pages make it cheap.
    pub(super) unless_cheap: bool,
    /// Whether the kernel lists present pages first, which walks all page tables.
    pub(super) lists_pages: bool,
}

impl Wish {
    /// Pages that the kernel lists.
    pub(super) fn new(most: u64) -> Self {
        Self { most: most.max(1), unless_cheap: false, lists_pages: true }
    }
}

/// Counts and draws some pages; `None` where all of `numa_maps` is to be read instead, with the reason in the notes.
pub(super) fn read(
    process: &mut Process<'_>,
    pages: &mut dyn PageSource,
    wish: Wish,
    seed: u64,
) -> Result<Option<Found>, MappingsError> {
    match attempt(process, pages, wish, seed) {
        Ok(found) => Ok(Some(found)),
        Err(Stop::Cheap) => Ok(None),
        Err(Stop::Gone) => Err(MappingsError::Ended(process.pid)),
        Err(Stop::ReadAll(why)) => {
            process.notes.push(format!("all pages were counted instead of sampled: {why}"));
            Ok(None)
        }
    }
}

/// Why nothing was drawn.
enum Stop {
    Gone,
    /// Reading everything costs little.
    Cheap,
    ReadAll(String),
}

impl From<PageError> for Stop {
    fn from(error: PageError) -> Self {
        match error {
            PageError::Gone => Self::Gone,
            PageError::Unsupported => {
                Self::ReadAll("this kernel does not say where single pages are".to_owned())
            }
            PageError::Refused(why) => Self::ReadAll(why),
        }
    }
}

fn attempt(process: &Process<'_>, pages: &mut dyn PageSource, wish: Wish, seed: u64) -> Result<Found, Stop> {
    let most = wish.most;
    let kinds: Vec<MappingKind> = process.listed.iter().map(|listed| process.kinds.kind(listed)).collect();
    let listed =
        if wish.lists_pages { runs::scan(&process.listed, pages) } else { Err(PageError::Unsupported) };
    let (present, is_scanned) = match listed {
        Ok(present) => (present, true),
        Err(PageError::Unsupported) => (process.listed.iter().map(Present::whole).collect(), false),
        Err(error) => return Err(error.into()),
    };
    let mut sampling = Sampling::new(pages, &present, is_scanned);
    let entries = |at: usize| sampling.entries(&present[at]);
    let walk = super::price((0..present.len()).map(entries).sum(), present.len());
    if wish.unless_cheap && is_scanned && walk <= MOST_COST {
        return Err(Stop::Cheap);
    }
    let thread_policy =
        present.first().filter(|_| is_scanned).and_then(|first| thread_policy(process, first));
    let is_special = |at: usize| kinds[at] == MappingKind::Special;
    let drawn_from = sampling.count_small(most, is_special)?;
    sampling.draw(&drawn_from, most, seed)?;
    let Sampling { asked, found, .. } = sampling;
    let is_exact = drawn_from.is_empty();
    let mappings = found.into_iter().enumerate().map(|(at, pages)| {
        let (listed, present) = (&process.listed[at], &present[at]);
        Mapping {
            permissions: listed.permissions,
            file: listed.file,
            name: listed.name.clone(),
            pages,
            transparent: Some(present.huge).filter(|_| is_scanned && kinds[at] != MappingKind::HugePool),
            swapped: Some(present.swapped).filter(|_| is_scanned && runs::has_swapped(kinds[at])),
            ..Mapping::new(listed.start..listed.end, kinds[at])
        }
    });
    let method = if is_exact { MappingsMethod::Exact } else { MappingsMethod::Sampled { asked, seed } };
    Ok(Found { mappings: mappings.collect(), method, thread_policy })
}

/// The policy that the kernel shows for the first segment of the program, which has none of its own: that of the first
/// thread. Only bytes of that line are read: the kernel walks the pages of each mapping whose line is touched, and the
/// next one may be large.
fn thread_policy(process: &Process<'_>, present: &Present) -> Option<MappingPolicy> {
    let first = process.listed.first().filter(|first| process.kinds.kind(first) == MappingKind::File)?;
    let address = format!("{:08x}", first.start).len();
    let pages = if present.runs.is_empty() { 0 } else { WORDS_OF_PAGES.len() };
    let length = address + WORDS.len() + first.name.as_ref()?.len() + pages;
    let mut start = Vec::new();
    process.tree.read_start(&paths::numa_maps(process.pid), length, &mut start).ok()?;
    let text = String::from_utf8_lossy(&start);
    // What is behind the policy shows that it is not cut.
    let (line, _) = text.split_once(" file=")?;
    let read = numa_maps::parse_line(line, 1, &mut Problems::default())?;
    let policy = MappingPolicy { text: read.policy_text, policy: read.policy };
    (read.start == first.start).then_some(policy)
}

/// Questions about pages, and the answers so far.
struct Sampling<'a> {
    pages: &'a mut dyn PageSource,
    present: &'a [Present],
    asked: u64,
    found: Vec<MappedPages>,
}

impl<'a> Sampling<'a> {
    /// Nothing is known yet but the sizes from a scan.
    fn new(pages: &'a mut dyn PageSource, present: &'a [Present], is_scanned: bool) -> Self {
        let resident = |present: &Present| Some(present.resident).filter(|_| is_scanned);
        let found =
            present.iter().map(|present| MappedPages::Unknown { resident: resident(present) }).collect();
        Self { pages, present, asked: 0, found }
    }

    /// The distance between the pages of a run to ask for: a huge page is on one node.
    fn step(&self, run: &Run) -> u64 {
        let (small, huge) = (self.pages.page_size(), self.pages.huge_size());
        let is_whole = run.state == RunState::Huge && run.start % huge == 0 && run.end % huge == 0;
        if is_whole { huge } else { small }
    }

    /// The pages to ask for in a mapping, which are the entries that page tables have for it.
    fn entries(&self, present: &Present) -> u64 {
        present.runs.iter().map(|run| (run.end - run.start).div_ceil(self.step(run))).sum()
    }

    /// Counts mappings page by page, the smallest first, as long as there are few pages; returns the others.
    fn count_small(&mut self, most: u64, skips: impl Fn(usize) -> bool) -> Result<Vec<usize>, Stop> {
        let price = |at: usize| self.entries(&self.present[at]);
        let mut by_price: Vec<(u64, usize)> =
            (0..self.present.len()).filter(|at| !skips(*at)).map(|at| (price(at), at)).collect();
        by_price.sort_unstable();
        let mut sum = 0u64;
        let mut large = Vec::new();
        for (price, at) in by_price {
            sum = sum.saturating_add(price);
            if sum <= most {
                self.found[at] = MappedPages::Counted(self.count(at)?);
            } else {
                large.push(at);
            }
        }
        large.sort_unstable();
        Ok(large)
    }

    fn count(&mut self, at: usize) -> Result<BTreeMap<NodeId, Bytes>, Stop> {
        let present = self.present;
        let mut nodes: BTreeMap<NodeId, Bytes> = BTreeMap::new();
        for run in &present[at].runs {
            let step = self.step(run);
            let mut next = run.start;
            while next < run.end {
                let batch: Vec<u64> = (next..run.end).step_by(step as usize).take(BATCH).collect();
                next += step * batch.len() as u64;
                self.asked += batch.len() as u64;
                self.pages.locate(&batch, &mut |address, node| {
                    if let Some(node) = node {
                        *nodes.entry(node).or_default() += Bytes::new(step.min(run.end - address));
                    }
                })?;
            }
        }
        Ok(nodes)
    }

    /// Draws pages from these mappings until the shares of all nodes are certain enough.
    fn draw(&mut self, from: &[usize], most: u64, seed: u64) -> Result<(), Stop> {
        let small = self.pages.page_size();
        let pool = Pool::new(self.present, from, small);
        let mut drawn: BTreeMap<usize, DrawnPages> = from
            .iter()
            .map(|at| {
                (*at, DrawnPages { candidates: self.present[*at].candidates(), ..DrawnPages::default() })
            })
            .collect_map();
        let mut random = Random::new(seed);
        let mut nodes: BTreeMap<NodeId, u64> = BTreeMap::new();
        let (mut count, mut hits) = (0u64, 0u64);
        while pool.pages > 0 && count < most && !is_certain(&nodes, count) {
            let length = (most - count).min(BATCH as u64);
            let places: Vec<(usize, u64)> = (0..length).map(|_| pool.draw(&mut random, small)).collect();
            let addresses: Vec<u64> = places.iter().map(|(_, address)| *address).collect();
            let mut place = places.iter();
            self.pages.locate(&addresses, &mut |_, node| {
                let Some(drawn) = place.next().and_then(|(at, _)| drawn.get_mut(at)) else { return };
                drawn.drawn += 1;
                if let Some(node) = node {
                    *drawn.nodes.entry(node).or_default() += 1;
                    *nodes.entry(node).or_default() += 1;
                    hits += 1;
                }
            })?;
            count += length;
            if count >= PATIENCE.min(most) && (hits as f64) < FEW_HITS * count as f64 {
                return Err(Stop::ReadAll(format!("of {count} sampled pages only {hits} are present")));
            }
        }
        self.asked += count;
        for (at, drawn) in drawn {
            self.found[at] = MappedPages::Drawn(drawn);
        }
        Ok(())
    }
}

/// Whether the share of every node in what is present is known closely enough, after this many draws.
fn is_certain(nodes: &BTreeMap<NodeId, u64>, draws: u64) -> bool {
    let hits: u64 = nodes.values().sum();
    let present = hits as f64 / draws.max(1) as f64;
    let is_wide = |hits: &u64| {
        let interval = wilson_interval(*hits, draws);
        interval.high - interval.low > 2.0 * CERTAIN * present
    };
    hits > 0 && !nodes.values().any(is_wide)
}

/// The pages of several mappings, numbered.
struct Pool<'a> {
    /// For each run the number of pages up to its end, and its mapping.
    runs: Vec<(u64, usize, &'a Run)>,
    pages: u64,
}

impl<'a> Pool<'a> {
    fn new(present: &'a [Present], from: &[usize], small: u64) -> Self {
        let mut pool = Self { runs: Vec::new(), pages: 0 };
        for at in from {
            for run in &present[*at].runs {
                pool.pages += (run.end - run.start) / small;
                pool.runs.push((pool.pages, *at, run));
            }
        }
        pool
    }

    /// A page's mapping and address, each page with the same probability.
    fn draw(&self, random: &mut Random, small: u64) -> (usize, u64) {
        let number = random.below(self.pages);
        let place = self.runs.partition_point(|(end, ..)| *end <= number);
        let (end, at, run) = self.runs[place];
        (at, run.end - (end - number) * small)
    }
}
