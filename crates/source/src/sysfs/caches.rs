//! Caches, each once.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, Cache, CacheKind, Cpu, CpuId, CpuSet, Machine, OddityKind};

use super::nodes::cpu_names;
use super::{Reader, cpus};
use crate::parse::{ParseError, cache_size, number};

/// Most caches of one CPU; the kernel knows five or six.
const MOST_INDEXES: usize = 16;
/// The highest level there is (`MAX_CACHE_LEVEL`).
const MOST_LEVELS: u8 = 7;

/// A cache's identity: CPUs list the caches they share under the same or different indexes.
type Key = (u8, CacheKind, CpuSet);

/// A cache, the CPUs that list it, and the folder it was first seen in.
struct Listed {
    cache: Cache,
    by: CpuSet,
    folder: String,
}

/// The caches that were found so far.
#[derive(Default)]
struct Found {
    online: CpuSet,
    caches: BTreeMap<Key, Listed>,
    /// CPUs whose cache of an index is known already: on the running system the first CPU speaks for
    /// all that share it.
    known: BTreeMap<u32, CpuSet>,
    sharing: Sharing,
}

/// Fills the caches.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    let mut found = Found { online: machine.online_cpus(), ..Found::default() };
    for cpu in machine.cpus.values().filter(|cpu| cpu.online) {
        if !(reader.is_quick() && found.known.values().any(|cpus| cpus.contains(cpu.id))) {
            read_of_cpu(reader, cpu, &mut found);
        }
    }
    let Found { caches, mut sharing, .. } = found;
    let mut caches = without_overlaps(reader, caches.into_values().collect());
    caches.extend(sharing.of_nobody(&caches));
    sharing.note(reader);
    if !reader.is_quick() {
        check_sizes(reader, &caches);
    }
    let mut caches: Vec<Cache> = caches.into_iter().map(|listed| listed.cache).collect();
    caches.order_by_key(|cache| (cache.level, cache.kind, cache.cpus.first(), cache.size));
    machine.caches = caches;
}

/// Adds the caches that a CPU lists.
fn read_of_cpu(reader: &mut Reader<'_>, cpu: &Cpu, found: &mut Found) {
    let root = format!("{}/cache", cpus::folder(cpu.id));
    let (mut levels, mut are_known) = (BTreeSet::new(), true);
    for index in indexes(reader, &root) {
        let covered = found.known.entry(index).or_default();
        if reader.trusts_files() && covered.contains(cpu.id) {
            continue;
        }
        let folder = format!("{root}/index{index}");
        let Some(cache) = read_cache(reader, &folder, cpu, &found.online, &mut found.sharing) else {
            // What is wrong with it was noted, and its level is not known.
            are_known = false;
            continue;
        };
        levels.insert(cache.level);
        if cache.cpus.is_empty() {
            found.sharing.unsaid.push((cpu.id, folder, cache));
        } else {
            covered.extend(&cache.cpus);
            merge(reader, &mut found.caches, cache, cpu.id, folder);
        }
    }
    if are_known && !reader.trusts_files() {
        note_gap(reader, &root, &levels);
    }
}

/// The indexes of a CPU's caches: in a hurry only the last, as they ascend with the level.
fn indexes(reader: &mut Reader<'_>, root: &str) -> Vec<u32> {
    let mut indexes = reader.numbered(root, "index");
    indexes.truncate(MOST_INDEXES);
    if reader.is_quick() {
        indexes.drain(..indexes.len().saturating_sub(1));
    }
    indexes
}

/// Levels have no gap. On the running system not all are read.
fn note_gap(reader: &mut Reader<'_>, root: &str, levels: &BTreeSet<u8>) {
    let last = levels.last().copied().unwrap_or(0);
    if let Some(missing) = (1..last).find(|level| !levels.contains(level)) {
        let text = format!("it has a cache of level {last}, but none of level {missing}");
        reader.note_in(OddityKind::Disagreement, root, text);
    }
}

/// Adds a cache; what one CPU's files do not say of it, another's may. What they say differently is reported.
fn merge(
    reader: &mut Reader<'_>,
    caches: &mut BTreeMap<Key, Listed>,
    cache: Cache,
    cpu: CpuId,
    folder: String,
) {
    let Entry::Occupied(mut listed) = caches.entry((cache.level, cache.kind, cache.cpus.clone())) else {
        let by = CpuSet::from_iter([cpu]);
        caches.insert((cache.level, cache.kind, cache.cpus.clone()), Listed { cache, by, folder });
        return;
    };
    let Listed { cache: known, by, .. } = listed.get_mut();
    if by.contains(cpu) {
        let text = format!("CPU {cpu} has an {} already, of the same CPUs", known.name());
        reader.note_in(OddityKind::Disagreement, &folder, text);
    }
    by.insert(cpu);
    let same = agree(&mut known.size, cache.size)
        & agree(&mut known.line_size, cache.line_size)
        & agree(&mut known.ways, cache.ways)
        & agree(&mut known.sets, cache.sets);
    if !same {
        let text = format!(
            "it is the {} of CPUs {}, and another of these CPUs contradicts it",
            known.name(),
            known.cpus
        );
        reader.note_in(OddityKind::Disagreement, &folder, text);
    }
}

/// A CPU has one cache of a level and kind. Where the maps of several overlap, those that most CPUs list are
/// right, of equals the larger one; the others are left out.
fn without_overlaps(reader: &mut Reader<'_>, mut caches: Vec<Listed>) -> Vec<Listed> {
    let votes = |listed: &Listed| (Reverse(listed.by.len()), Reverse(listed.cache.cpus.len()));
    caches.order_by_key(votes);
    let mut taken: BTreeMap<(u8, CacheKind), CpuSet> = BTreeMap::new();
    let mut kept: Vec<Listed> = Vec::new();
    for listed in caches {
        let cache = &listed.cache;
        let taken = taken.entry((cache.level, cache.kind)).or_default();
        if taken.is_disjoint(&cache.cpus) {
            taken.extend(&cache.cpus);
            kept.push(listed);
            continue;
        }
        let is_other = |other: &&Listed| {
            (other.cache.level, other.cache.kind) == (cache.level, cache.kind)
                && !other.cache.cpus.is_disjoint(&cache.cpus)
        };
        let other = kept.iter().find(is_other).map(|other| other.cache.cpus.clone()).unwrap_or_default();
        let text = format!(
            "it is an {} of {}, but that of {} overlaps with it: left out",
            cache.name(),
            cpu_names(&cache.cpus),
            cpu_names(&other)
        );
        reader.note_in(OddityKind::Disagreement, &listed.folder, text);
    }
    kept
}

/// Compares each size with the product of ways, sets, line size and lines per tag, where all of them are given.
/// No way at all stands for a fully associative cache.
///
/// # Source
/// `Documentation/ABI/testing/sysfs-devices-system-cpu`; `physical_line_partition` is 2 on processors that keep
/// two lines under one tag, as the Pentium 4.
fn check_sizes(reader: &mut Reader<'_>, caches: &[Listed]) {
    let mut differing = Counted::default();
    for Listed { cache, folder, .. } in caches {
        let (Some(size), Some(line), Some(ways), Some(sets)) =
            (cache.size, cache.line_size, cache.ways, cache.sets)
        else {
            continue;
        };
        let product = u64::from(line).saturating_mul(u64::from(ways)).saturating_mul(u64::from(sets));
        if ways == 0 || product == size.get() {
            continue;
        }
        let path = format!("{folder}/physical_line_partition");
        let lines = reader.value(&path, number::number::<u64>).unwrap_or(1);
        if product.checked_mul(lines) != Some(size.get()) {
            differing.add(&format!("{folder}/size"), || {
                let made = Bytes::new(product.saturating_mul(lines));
                format!("it is {size}, but {ways} ways of {sets} sets with lines of {line} bytes make {made}")
            });
        }
    }
    differing.note(reader, "; one other cache differs too", "; N other caches differ too");
}

/// Fills in what was not known; says whether both agree.
fn agree<T: PartialEq>(known: &mut Option<T>, other: Option<T>) -> bool {
    match (&known, other) {
        (Some(known), Some(other)) => *known == other,
        (None, other) => {
            *known = other;
            true
        }
        (Some(_), None) => true,
    }
}

/// Findings that are alike: the first is shown, the others are counted.
#[derive(Default)]
struct Counted {
    first: Option<(String, String)>,
    count: usize,
}

impl Counted {
    fn add(&mut self, path: &str, text: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(|| (path.to_owned(), text()));
    }

    /// Notes them; `one` and `several` are put behind the sentence where there are others, with their number
    /// for N.
    fn note(self, reader: &mut Reader<'_>, one: &str, several: &str) {
        let Some((path, text)) = self.first else { return };
        let others = match self.count - 1 {
            0 => String::new(),
            1 => one.to_owned(),
            others => several.replace('N', &others.to_string()),
        };
        reader.note_in(OddityKind::Disagreement, &path, text + &others);
    }
}

/// Caches whose files do not say which CPUs share them.
#[derive(Default)]
struct Sharing {
    /// Maps of sharing CPUs that lack the CPU that lists them; some firmware leaves them empty.
    without_own: Counted,
    missing: Counted,
    /// Those without a map, with the CPU that lists each, and its folder.
    unsaid: Vec<(CpuId, String, Cache)>,
}

impl Sharing {
    /// The caches without a map that no other CPU's map covers. How many there are is not known: each size
    /// is kept once.
    fn of_nobody(&mut self, known: &[Listed]) -> Vec<Listed> {
        let mut caches: Vec<Listed> = Vec::new();
        for (cpu, folder, cache) in std::mem::take(&mut self.unsaid) {
            let same = |other: &Listed| (other.cache.level, other.cache.kind) == (cache.level, cache.kind);
            let is_known = known.iter().any(|other| same(other) && other.cache.cpus.contains(cpu));
            let is_there = caches.iter().any(|other| same(other) && other.cache.size == cache.size);
            if !is_known && !is_there {
                caches.push(Listed { cache, by: CpuSet::from_iter([cpu]), folder });
            }
        }
        caches
    }

    fn note(self, reader: &mut Reader<'_>) {
        self.without_own.note(reader, "; nor does one other", "; nor do N others");
        self.missing.note(reader, "; so is that of one other cache", "; so are those of N other caches");
    }
}

fn read_cache(
    reader: &mut Reader<'_>,
    root: &str,
    cpu: &Cpu,
    online: &CpuSet,
    sharing: &mut Sharing,
) -> Option<Cache> {
    let path = |file: &str| format!("{root}/{file}");
    let level = reader.value(&path("level"), level)?;
    let kind = reader.value(&path("type"), kind)?;
    let size = reader.value(&path("size"), cache_size::parse).flatten();
    let names = ["shared_cpu_map", "shared_cpu_list"];
    let shared = reader.agreeing_cpus(root, &names, Some(online));
    if shared.is_none() && !names.iter().any(|name| reader.exists(&path(name))) {
        sharing.missing.add(&path(names[0]), || {
            "it is missing: which CPUs share the cache is known from other CPUs or not at all".to_owned()
        });
    }
    let mut cpus = shared.clone().unwrap_or_default();
    if shared.is_some() && !cpus.contains(cpu.id) {
        sharing.without_own.add(&path(names[0]), || {
            format!("it does not name CPU {}, whose cache it is: taken as its core's", cpu.id)
        });
        // Threads of a core share all its caches.
        cpus = cpu.siblings.intersection(online).union(&CpuSet::from_iter([cpu.id]));
    }
    let mut cache = Cache { level, kind, size, line_size: None, ways: None, sets: None, cpus };
    if !reader.is_quick() {
        let positive = |value: Option<u32>| value.filter(|value| *value > 0);
        cache.line_size = positive(reader.value(&path("coherency_line_size"), number::number));
        cache.ways = reader.value(&path("ways_of_associativity"), number::number);
        cache.sets = positive(reader.value(&path("number_of_sets"), number::number));
    }
    Some(cache)
}

fn level(text: &str) -> Result<u8, ParseError> {
    let level = number::number(text).ok().filter(|level| (1..=MOST_LEVELS).contains(level));
    level.ok_or_else(|| ParseError::new(1, format!("a level from 1 to {MOST_LEVELS}"), text.trim()))
}

fn kind(text: &str) -> Result<CacheKind, ParseError> {
    let kinds = [CacheKind::Data, CacheKind::Instruction, CacheKind::Unified];
    kinds
        .into_iter()
        .find(|kind| kind.word() == text.trim())
        .ok_or_else(|| ParseError::new(1, "Data, Instruction or Unified", text.trim()))
}
