//! Facts that the files of a machine state twice, compared without nodewise.
//!
//! Each rule reads the raw texts again, in its own few lines, and gives a sentence for each contradiction. A damage
//! that adds one was one that could be seen.

use std::collections::{BTreeMap, BTreeSet};

use super::specimen::{Content, Files};

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

type Set = BTreeSet<u32>;

/// All contradictions between the files of a machine.
pub fn contradictions(files: &Files) -> BTreeSet<String> {
    let texts = Texts { files };
    let mut found = BTreeSet::new();
    lists(&texts, &mut found);
    nodes(&texts, &mut found);
    topology(&texts, &mut found);
    caches(&texts, &mut found);
    process(&texts, &mut found);
    found
}

struct Texts<'f> {
    files: &'f Files,
}

impl Texts<'_> {
    fn get(&self, path: &str) -> Option<&str> {
        match self.files.get(path)? {
            Content::File(bytes) => {
                Some(std::str::from_utf8(bytes).ok()?.trim_matches(|c| c == '\0' || c == '\n'))
            }
            _ => None,
        }
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.get(path)?.parse().ok()
    }

    fn set(&self, path: &str) -> Option<Set> {
        let text = self.get(path)?;
        if path.ends_with("list")
            || !text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b',')
            || is_list(path)
        {
            list(text)
        } else {
            mask(text)
        }
    }

    /// The numbers of the folders `nameN` in a folder.
    fn numbered(&self, folder: &str, name: &str) -> Set {
        let prefix = format!("{folder}/{name}");
        let range = self.files.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        range.filter_map(|(path, _)| path[prefix.len()..].split('/').next()?.parse().ok()).collect()
    }
}

/// Files of lists whose names do not say so.
fn is_list(path: &str) -> bool {
    ["possible", "present", "online", "has_cpu", "has_memory", "has_normal_memory"]
        .iter()
        .any(|name| path.ends_with(name))
}

fn list(text: &str) -> Option<Set> {
    let mut set = Set::new();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        set.extend((first..=last).take(8192));
    }
    Some(set)
}

fn mask(text: &str) -> Option<Set> {
    let digits: Vec<u32> =
        text.chars().filter(|c| *c != ',').map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let bits = |(at, digit): (usize, &u32)| -> Vec<u32> {
        (0..4).filter(|bit| digit >> bit & 1 != 0).map(|bit| at as u32 * 4 + bit).collect()
    };
    Some(digits.iter().rev().enumerate().flat_map(bits).collect())
}

/// Checks that what is online is there, and that what is there is possible.
fn lists(texts: &Texts<'_>, found: &mut BTreeSet<String>) {
    for folder in [CPUS, NODES] {
        let names = [
            (folder.to_owned() + "/online", folder.to_owned() + "/present"),
            (folder.to_owned() + "/present", folder.to_owned() + "/possible"),
            (folder.to_owned() + "/online", folder.to_owned() + "/possible"),
        ];
        for (inner, outer) in names {
            if let (Some(some), Some(all)) = (texts.set(&inner), texts.set(&outer)) {
                if !some.is_subset(&all) {
                    found.insert(format!("{inner} is more than {outer}"));
                }
            }
        }
    }
    let online = texts.set(&format!("{NODES}/online"));
    let there = texts.numbered(NODES, "node");
    if online.is_some_and(|online| online != there) {
        found.insert("nodes online are not the folders".to_owned());
    }
    for cpu in texts.numbered(CPUS, "cpu") {
        let off = texts.get(&format!("{CPUS}/cpu{cpu}/online")) == Some("0");
        if off && texts.set(&format!("{CPUS}/online")).is_some_and(|online| online.contains(&cpu)) {
            found.insert(format!("CPU {cpu} is off and online"));
        }
    }
}

fn nodes(texts: &Texts<'_>, found: &mut BTreeSet<String>) {
    let all = texts.numbered(NODES, "node");
    let mut owners: BTreeMap<u32, u32> = BTreeMap::new();
    let mut with_cpus = Set::new();
    let mut fields: BTreeSet<Vec<String>> = BTreeSet::new();
    for node in &all {
        let file = |name: &str| format!("{NODES}/node{node}/{name}");
        let (map, list) = (texts.set(&file("cpumap")), texts.set(&file("cpulist")));
        if map.is_some() && list.is_some() && map != list {
            found.insert(format!("cpumap and cpulist of node {node}"));
        }
        for cpu in map.or(list).unwrap_or_default() {
            with_cpus.insert(*node);
            if owners.insert(cpu, *node).is_some() {
                found.insert(format!("CPU {cpu} is in two nodes"));
            }
        }
        if let Some(row) = texts.get(&file("distance")) {
            let row: Vec<&str> = row.split_ascii_whitespace().collect();
            let own = all.iter().position(|other| other == node).and_then(|at| row.get(at).copied());
            if row.len() != all.len() || own != Some("10") {
                found.insert(format!("distances of node {node}: {} numbers, to itself {own:?}", row.len()));
            }
            for (at, other) in all.iter().enumerate() {
                let back = texts.get(&format!("{NODES}/node{other}/distance"));
                let back = back
                    .and_then(|row| row.split_ascii_whitespace().nth(all.iter().position(|n| n == node)?));
                if other != node && (back != row.get(at).copied() || row.get(at) == Some(&"10")) {
                    found.insert(format!("distance between {node} and {other}"));
                }
            }
        }
        if let Some(text) = texts.get(&file("meminfo")) {
            fields.insert(memory(*node, text, found));
        }
    }
    if fields.len() > 1 {
        found.insert("nodes have different fields of memory".to_owned());
    }
    let named = texts.set(&format!("{NODES}/has_cpu"));
    if named.is_some_and(|named| named != with_cpus) {
        found.insert("has_cpu".to_owned());
    }
    let online = texts.set(&format!("{CPUS}/online")).unwrap_or_default();
    let owned: Set = owners.keys().copied().collect();
    for cpu in online.symmetric_difference(&owned).filter(|_| !all.is_empty() && !online.is_empty()) {
        found.insert(format!("CPU {cpu} is online without a node, or in a node without being online"));
    }
}

/// Notes contradictions in the memory of a node, and gives the names of its fields.
fn memory(node: u32, text: &str, found: &mut BTreeSet<String>) -> Vec<String> {
    let value = |name: &str| -> Option<i128> {
        let line = text.lines().find(|line| line.contains(&format!(" {name}:")))?;
        line.split_ascii_whitespace().nth(3)?.parse().ok()
    };
    if let (Some(total), Some(free)) = (value("MemTotal"), value("MemFree")) {
        if free > total || value("MemUsed").is_some_and(|used| used != total - free) {
            found.insert(format!("memory of node {node}"));
        }
    }
    if text.lines().any(|line| !line.is_empty() && !line.starts_with(&format!("Node {node} "))) {
        found.insert(format!("memory of another node in that of node {node}"));
    }
    text.lines().filter_map(|line| line.split_ascii_whitespace().nth(2).map(str::to_owned)).collect()
}

/// Groups of CPUs: the files that list them, and that of their number.
const GROUPS: [(&[&str], &str); 2] = [
    (&["thread_siblings_list", "thread_siblings", "core_cpus_list", "core_cpus"], ""),
    (&["core_siblings_list", "core_siblings", "package_cpus_list"], "physical_package_id"),
];

fn topology(texts: &Texts<'_>, found: &mut BTreeSet<String>) {
    let cpus = texts.numbered(CPUS, "cpu");
    for (files, number) in GROUPS {
        let mut groups: BTreeMap<u32, Set> = BTreeMap::new();
        let mut numbers: BTreeMap<u32, &str> = BTreeMap::new();
        for cpu in &cpus {
            let root = format!("{CPUS}/cpu{cpu}/topology");
            let sets: Vec<Set> =
                files.iter().filter_map(|file| texts.set(&format!("{root}/{file}"))).collect();
            if sets.windows(2).any(|pair| pair[0] != pair[1]) {
                found.insert(format!("{} of CPU {cpu} and its other forms", files[0]));
            }
            if let Some(set) = sets.into_iter().next() {
                groups.insert(*cpu, set);
            }
            numbers.extend(texts.get(&format!("{root}/{number}")).map(|number| (*cpu, number)));
        }
        for (cpu, set) in &groups {
            let differs = |other: &u32| groups.get(other).is_some_and(|theirs| theirs != set);
            if !set.contains(cpu) || set.iter().any(differs) {
                found.insert(format!("{} of CPU {cpu} and of another", files[0]));
            }
            let own = numbers.get(cpu);
            let wrong = |other: &u32| {
                numbers.contains_key(other) && (numbers.get(other) == own) != set.contains(other)
            };
            if own.is_some_and(|own| *own != "-1") && groups.keys().any(wrong) {
                found.insert(format!("{number} of CPU {cpu}"));
            }
        }
    }
    same_files(texts, &cpus, found);
}

/// CPUs that are online have the same files of topology.
fn same_files(texts: &Texts<'_>, cpus: &Set, found: &mut BTreeSet<String>) {
    let mut kinds: BTreeSet<Vec<&str>> = BTreeSet::new();
    for cpu in cpus {
        let folder = format!("{CPUS}/cpu{cpu}/topology/");
        let inside = texts.files.range(folder.clone()..).take_while(|(path, _)| path.starts_with(&folder));
        let names: Vec<&str> = inside.map(|(path, _)| &path[folder.len()..]).collect();
        if !names.is_empty() {
            kinds.insert(names);
        }
    }
    if kinds.len() > 1 {
        found.insert("CPUs have different files of topology".to_owned());
    }
}

fn caches(texts: &Texts<'_>, found: &mut BTreeSet<String>) {
    let mut taken: BTreeMap<(String, String), BTreeMap<u32, Set>> = BTreeMap::new();
    for cpu in texts.numbered(CPUS, "cpu") {
        let root = format!("{CPUS}/cpu{cpu}/cache");
        for index in texts.numbered(&root, "index") {
            let file = |name: &str| format!("{root}/index{index}/{name}");
            let (map, list) = (texts.set(&file("shared_cpu_map")), texts.set(&file("shared_cpu_list")));
            if map.is_some() && list.is_some() && map != list {
                found.insert(format!("maps of cache {index} of CPU {cpu}"));
            }
            let key =
                (texts.get(&file("level")).unwrap_or_default(), texts.get(&file("type")).unwrap_or_default());
            let sets = taken.entry((key.0.to_owned(), key.1.to_owned())).or_default();
            if let Some(set) = map.or(list) {
                if !set.contains(&cpu) || sets.insert(cpu, set).is_some() {
                    found.insert(format!("cache {index} of CPU {cpu}"));
                }
            }
            size(texts, &file, &format!("size of cache {index} of CPU {cpu}"), found);
        }
    }
    for ((level, kind), sets) in &taken {
        for (cpu, set) in sets {
            if set.iter().any(|other| sets.get(other).is_some_and(|theirs| theirs != set)) {
                found.insert(format!("L{level} {kind} of CPU {cpu}"));
            }
        }
    }
}

fn size(texts: &Texts<'_>, file: &dyn Fn(&str) -> String, name: &str, found: &mut BTreeSet<String>) {
    let size = texts.get(&file("size")).and_then(|size| size.strip_suffix('K')?.parse::<u64>().ok());
    let parts = ["coherency_line_size", "ways_of_associativity", "number_of_sets"]
        .map(|name| texts.number(&file(name)));
    let lines = texts.number(&file("physical_line_partition")).unwrap_or(1);
    if let (Some(size), [Some(line), Some(ways), Some(sets)]) = (size, parts) {
        let made = [line, ways, sets, lines].into_iter().try_fold(1u64, u64::checked_mul);
        if size > 0 && line > 0 && sets > 0 && ways > 0 && made != size.checked_mul(1024) {
            found.insert(name.to_owned());
        }
    }
}

/// Checks that the CPUs and nodes the process may use are there as a mask and as a list.
fn process(texts: &Texts<'_>, found: &mut BTreeSet<String>) {
    let Some(text) = texts.get("/proc/self/status") else { return };
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
    for name in ["Cpus_allowed", "Mems_allowed"] {
        let both = value(name).and_then(mask).zip(value(&format!("{name}_list")).and_then(list));
        if both.is_some_and(|(mask, list)| mask != list) {
            found.insert(name.to_owned());
        }
    }
}
