//! Caches, each once.

use std::collections::BTreeMap;

use nodewise_machine::{Cache, CacheKind, CpuId, CpuSet, Machine, OddityKind};

use super::{Reader, cpus};
use crate::parse::{ParseError, cache_size, number};

/// Most caches of one CPU; the kernel knows five or six.
const MOST_INDEXES: usize = 16;
/// The highest level there is (`MAX_CACHE_LEVEL`).
const MOST_LEVELS: u8 = 7;

/// A cache's identity: CPUs list the caches they share under the same or different indexes.
type Key = (u8, CacheKind, CpuSet);

/// Fills the caches.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    let online = machine.online_cpus();
    let mut caches: BTreeMap<Key, Cache> = BTreeMap::new();
    // CPUs whose cache of an index is known already: on the running system the first CPU speaks for
    // all that share it.
    let mut known: BTreeMap<u32, CpuSet> = BTreeMap::new();
    let mut unshared = Unshared::default();
    for cpu in &online {
        let root = format!("{}/cache", cpus::folder(cpu));
        if reader.is_quick() && known.values().any(|cpus| cpus.contains(cpu)) {
            continue;
        }
        let mut indexes = reader.numbered(&root, "index");
        indexes.truncate(MOST_INDEXES);
        if reader.is_quick() {
            // Indexes ascend with the level.
            indexes.drain(..indexes.len().saturating_sub(1));
        }
        for index in indexes {
            let covered = known.entry(index).or_default();
            if reader.trusts_files() && covered.contains(cpu) {
                continue;
            }
            let folder = format!("{root}/index{index}");
            if let Some(cache) = read_cache(reader, &folder, cpu, &online, &mut unshared) {
                covered.extend(&cache.cpus);
                merge(reader, &mut caches, cache, &folder);
            }
        }
    }
    unshared.tell(reader);
    let mut caches: Vec<Cache> = caches.into_values().collect();
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    machine.caches = caches;
}

/// Adds a cache; what one CPU's files do not say of it, another's may. What they say differently is
/// told.
fn merge(reader: &mut Reader<'_>, caches: &mut BTreeMap<Key, Cache>, cache: Cache, folder: &str) {
    let known = caches.entry((cache.level, cache.kind, cache.cpus.clone())).or_insert_with(|| cache.clone());
    let same = agree(&mut known.size, cache.size)
        & agree(&mut known.line_size, cache.line_size)
        & agree(&mut known.ways, cache.ways)
        & agree(&mut known.sets, cache.sets);
    if !same {
        let text =
            format!("it is the {} of CPUs {}, of which another CPU says otherwise", known.name(), known.cpus);
        reader.note_in(OddityKind::Disagreement, folder, text);
    }
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

/// Caches whose map of sharing CPUs lacks the CPU that lists them; some firmware leaves it empty.
#[derive(Default)]
struct Unshared {
    first: Option<String>,
    count: usize,
}

impl Unshared {
    fn add(&mut self, path: String) {
        self.count += 1;
        self.first.get_or_insert(path);
    }

    fn tell(self, reader: &mut Reader<'_>) {
        let Some(path) = self.first else { return };
        let others = match self.count - 1 {
            0 => String::new(),
            1 => ", nor does one other".to_owned(),
            others => format!(", nor do {others} others"),
        };
        let text = format!("it does not name the cache's own CPU{others}: taken as not shared");
        reader.note_in(OddityKind::Disagreement, &path, text);
    }
}

fn read_cache(
    reader: &mut Reader<'_>,
    root: &str,
    cpu: CpuId,
    online: &CpuSet,
    unshared: &mut Unshared,
) -> Option<Cache> {
    let path = |file: &str| format!("{root}/{file}");
    let level = reader.value(&path("level"), level)?;
    let kind = reader.value(&path("type"), kind)?;
    let size = reader.value(&path("size"), cache_size::parse).flatten();
    let shared = reader.cpus(root, &["shared_cpu_map", "shared_cpu_list"]);
    let mut cpus = shared.clone().unwrap_or_default().intersection(online);
    if !cpus.contains(cpu) {
        if shared.is_some() {
            unshared.add(path("shared_cpu_map"));
        }
        cpus = CpuSet::from_iter([cpu]);
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
