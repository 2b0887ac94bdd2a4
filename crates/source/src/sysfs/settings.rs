//! Kernel settings that decide where memory goes.

use nodewise_machine::{Bytes, Machine, Settings};

use super::Reader;
use crate::parse::{ParseError, choice, meminfo, number};
use crate::paths::INTERLEAVE_WEIGHTS_AUTO;

const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

/// Fills the settings.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    let settings = &mut machine.settings;
    settings.transparent_hugepage = reader.value("/sys/kernel/mm/transparent_hugepage/enabled", chosen);
    if reader.wants_only_nodes() {
        return;
    }
    settings.command_line = reader.value("/proc/cmdline", command_line);
    settings.swappiness = reader.value("/proc/sys/vm/swappiness", number::number);
    settings.watermark_boost_factor = reader.value("/proc/sys/vm/watermark_boost_factor", number::number);
    settings.transparent_hugepage_defrag = reader.value("/sys/kernel/mm/transparent_hugepage/defrag", chosen);
    if !reader.is_quick() {
        let size = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
        settings.transparent_hugepage_size = reader.value(size, huge_page_size);
        let pool = reader.value("/proc/meminfo", meminfo::default_huge_page);
        settings.default_huge_page_size = pool.flatten();
        settings.min_free_kib = reader.value("/proc/sys/vm/min_free_kbytes", number::number);
        let lru_gen = reader.value("/sys/kernel/mm/lru_gen/enabled", number::hexadecimal);
        settings.lru_gen_enabled = lru_gen.map(|parts| parts & 1 != 0);
        settings.overcommit_memory = reader.value("/proc/sys/vm/overcommit_memory", number::number);
    }
    // The others choose between nodes: with one there is nothing that they could change.
    if machine.nodes.len() > 1 || !reader.is_quick() {
        read_between_nodes(reader, settings);
    }
}

/// Reads the settings that decide between nodes.
fn read_between_nodes(reader: &mut Reader<'_>, settings: &mut Settings) {
    settings.numa_balancing = reader.value("/proc/sys/kernel/numa_balancing", number::number);
    settings.zone_reclaim_mode = reader.value("/proc/sys/vm/zone_reclaim_mode", number::number);
    settings.demotion_enabled = reader.value("/sys/kernel/mm/numa/demotion_enabled", number::switch);
    for node in &reader.node_entries(WEIGHTS) {
        if let Some(weight) = reader.value(&format!("{WEIGHTS}/node{node}"), number::number) {
            settings.interleave_weights.insert(node, weight);
        }
    }
    settings.interleave_weights_auto =
        INTERLEAVE_WEIGHTS_AUTO.iter().find_map(|path| reader.value(path, number::switch));
}

/// The words of transparent huge pages.
///
/// # Source
/// `Documentation/admin-guide/mm/transhuge.rst`.
const WORDS: [&str; 5] = ["always", "madvise", "never", "defer", "defer+madvise"];

/// A size in bytes that a huge page can have: a power of two from 64 KiB on.
fn huge_page_size(text: &str) -> Result<Bytes, ParseError> {
    let size = number::number::<u64>(text).ok().filter(|size| size.is_power_of_two() && *size >= 64 << 10);
    size.map(Bytes::new).ok_or_else(|| ParseError::new(1, "a size in bytes, a power of two", text.trim()))
}

fn chosen(text: &str) -> Result<String, ParseError> {
    let choice = choice::parse(text)?;
    match choice.words.iter().find(|word| !WORDS.contains(&word.as_str())) {
        None => Ok(choice.chosen),
        Some(other) => Err(ParseError::new(1, format!("only the words {}", WORDS.join(", ")), other)),
    }
}

/// The command line, which is one line.
fn command_line(text: &str) -> Result<String, ParseError> {
    let line = text.strip_suffix('\n').unwrap_or(text);
    match line.split_once('\n') {
        None => Ok(line.to_owned()),
        Some((_, second)) => Err(ParseError::new(2, "one line only", second)),
    }
}
