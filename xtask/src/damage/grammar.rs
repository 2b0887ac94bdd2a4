//! The forms in which the kernel writes the files that nodewise reads, written down a second time.
//!
//! Strict, and without a line of the parsers that are being tested: a text that fits here is one that a kernel could
//! have written. Ranges are those of the kernel: fewer than 8,192 CPUs (`NR_CPUS`) and 1,024 nodes.
//!
//! # Source
//! `Documentation/ABI/{stable,testing}/sysfs-devices-*`, `Documentation/admin-guide/cputopology.rst`, proc(5).

/// Whether a text has the form of a file.
type Form = fn(&str) -> bool;

/// Files by their path, and their form. `#` stands for a number, `*` for a component, `**` for any folders.
pub const GRAMMAR: [(&str, Form); 72] = [
    ("/sys/devices/system/node/possible", nodes),
    ("/sys/devices/system/node/online", nodes),
    ("/sys/devices/system/node/has_cpu", nodes),
    ("/sys/devices/system/node/has_memory", nodes),
    ("/sys/devices/system/node/has_normal_memory", nodes),
    ("/sys/devices/system/node/has_generic_initiator", nodes),
    ("/sys/devices/system/node/node#/cpumap", mask),
    ("/sys/devices/system/node/node#/cpulist", cpus),
    ("/sys/devices/system/node/node#/distance", distances),
    ("/sys/devices/system/node/node#/meminfo", meminfo),
    ("/sys/devices/system/node/node#/hugepages/*/nr_hugepages", number),
    ("/sys/devices/system/node/node#/hugepages/*/free_hugepages", number),
    ("/sys/devices/system/node/node#/hugepages/*/surplus_hugepages", number),
    ("/sys/devices/system/node/node#/access#/initiators/read_latency", number),
    ("/sys/devices/system/node/node#/access#/initiators/write_latency", number),
    ("/sys/devices/system/node/node#/access#/initiators/read_bandwidth", number),
    ("/sys/devices/system/node/node#/access#/initiators/write_bandwidth", number),
    ("/sys/devices/system/node/node#/memory_side_cache/index#/size", number),
    ("/sys/devices/system/node/node#/memory_side_cache/index#/line_size", number),
    ("/sys/devices/system/node/node#/memory_side_cache/index#/indexing", number),
    ("/sys/devices/system/node/node#/memory_side_cache/index#/write_policy", number),
    ("/sys/devices/virtual/memory_tiering/memory_tier#/nodelist", nodes),
    ("/sys/devices/system/cpu/possible", cpus),
    ("/sys/devices/system/cpu/present", cpus),
    ("/sys/devices/system/cpu/online", cpus),
    ("/sys/devices/system/cpu/cpu#/online", |text| matches!(text, "0\n" | "1\n")),
    ("/sys/devices/system/cpu/cpu#/cpu_capacity", number),
    ("/sys/devices/system/cpu/cpu#/topology/core_id", id),
    ("/sys/devices/system/cpu/cpu#/topology/cluster_id", id),
    ("/sys/devices/system/cpu/cpu#/topology/die_id", id),
    ("/sys/devices/system/cpu/cpu#/topology/physical_package_id", id),
    ("/sys/devices/system/cpu/cpu#/topology/thread_siblings_list", cpus),
    ("/sys/devices/system/cpu/cpu#/topology/thread_siblings", mask),
    ("/sys/devices/system/cpu/cpu#/topology/core_cpus_list", cpus),
    ("/sys/devices/system/cpu/cpu#/topology/core_cpus", mask),
    ("/sys/devices/system/cpu/cpu#/topology/core_siblings_list", cpus),
    ("/sys/devices/system/cpu/cpu#/topology/core_siblings", mask),
    ("/sys/devices/system/cpu/cpu#/topology/package_cpus_list", cpus),
    ("/sys/devices/system/cpu/cpu#/cache/index#/level", |text| matches!(text, "1\n" | "2\n" | "3\n" | "4\n")),
    ("/sys/devices/system/cpu/cpu#/cache/index#/type", |text| {
        matches!(text, "Data\n" | "Instruction\n" | "Unified\n")
    }),
    ("/sys/devices/system/cpu/cpu#/cache/index#/size", |text| {
        text.strip_suffix("K\n").is_some_and(|size| is_number(size, u64::MAX >> 10))
    }),
    ("/sys/devices/system/cpu/cpu#/cache/index#/shared_cpu_map", mask),
    ("/sys/devices/system/cpu/cpu#/cache/index#/shared_cpu_list", cpus),
    ("/sys/devices/system/cpu/cpu#/cache/index#/coherency_line_size", number),
    ("/sys/devices/system/cpu/cpu#/cache/index#/ways_of_associativity", number),
    ("/sys/devices/system/cpu/cpu#/cache/index#/number_of_sets", number),
    ("/sys/devices/**/numa_node", id),
    ("/sys/devices/pci**/class", |text| hexadecimal(text, 6)),
    ("/sys/devices/pci**/vendor", |text| hexadecimal(text, 4)),
    ("/sys/devices/pci**/device", |text| hexadecimal(text, 4)),
    ("/sys/devices/pci**/current_link_speed", link_speed),
    ("/sys/devices/pci**/max_link_speed", link_speed),
    ("/sys/devices/pci**/current_link_width", link_width),
    ("/sys/devices/pci**/max_link_width", link_width),
    ("/sys/devices/pci**/local_cpulist", cpus),
    ("/sys/devices/pci**/local_cpus", mask),
    ("/sys/kernel/mm/mempolicy/weighted_interleave/node#", number),
    ("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", |text| {
        // A power of two by its digits: no other size has been built.
        ["1048576\n", "2097152\n", "16777216\n", "33554432\n", "536870912\n"].contains(&text)
    }),
    ("/sys/kernel/mm/transparent_hugepage/enabled", choice),
    ("/sys/kernel/mm/transparent_hugepage/defrag", choice),
    ("/sys/kernel/mm/numa/demotion_enabled", |text| matches!(text, "true\n" | "false\n")),
    ("/sys/kernel/mm/lru_gen/enabled", |text| hexadecimal(text, 4)),
    ("/proc/sys/vm/swappiness", number),
    ("/proc/sys/vm/min_free_kbytes", number),
    ("/proc/sys/vm/zone_reclaim_mode", number),
    ("/proc/sys/vm/overcommit_memory", number),
    ("/proc/sys/kernel/numa_balancing", number),
    ("/proc/sys/kernel/osrelease", |text| text.strip_suffix('\n').is_some_and(is_release)),
    ("/proc/version", version),
    ("/proc/cmdline", |text| text.strip_suffix('\n').is_some_and(is_plain)),
    ("/proc/hwloc-nofile-info", no_file_info),
    ("/proc/self/status", status),
];

/// The place in [`GRAMMAR`] of a file; `None` for one that nodewise does not read as part of a machine.
pub fn place(path: &str) -> Option<usize> {
    GRAMMAR.iter().position(|(pattern, _)| fits(pattern, path))
}

/// Whether a text has the form that a file of this path must have.
pub fn is_well_formed(path: &str, bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    place(path).is_some_and(|place| GRAMMAR[place].1(text))
}

fn fits(pattern: &str, path: &str) -> bool {
    if let Some((start, end)) = pattern.split_once("**") {
        return path.starts_with(start) && path.len() >= start.len() + end.len() && path.ends_with(end);
    }
    let (mut patterns, mut parts) = (pattern.split('/'), path.split('/'));
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) => return true,
            (Some("*"), Some(_)) => (),
            (Some(pattern), Some(part)) => {
                let same = match pattern.strip_suffix('#') {
                    Some(name) => part.strip_prefix(name).is_some_and(|rest| is_number(rest, u64::MAX)),
                    None => pattern == part,
                };
                if !same {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Decimal digits without a leading zero, at most `most`.
fn is_number(text: &str, most: u64) -> bool {
    let canonical = text == "0" || !text.starts_with('0');
    canonical
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse::<u64>().is_ok_and(|number| number <= most)
}

fn number(text: &str) -> bool {
    text.strip_suffix('\n').is_some_and(|text| is_number(text, u64::MAX))
}

/// A number of 31 bits; -1 where the kernel knows none.
fn id(text: &str) -> bool {
    text == "-1\n" || text.strip_suffix('\n').is_some_and(|text| is_number(text, i32::MAX as u64))
}

fn link_speed(text: &str) -> bool {
    let known = ["2.5", "5.0", "8.0", "16.0", "32.0", "64.0"];
    text == "Unknown\n" || text.strip_suffix(" GT/s PCIe\n").is_some_and(|speed| known.contains(&speed))
}

fn link_width(text: &str) -> bool {
    let known = ["0", "1", "2", "4", "8", "12", "16", "32", "255"];
    text.strip_suffix('\n').is_some_and(|width| known.contains(&width))
}

fn hexadecimal(text: &str, digits: usize) -> bool {
    let digits_of = text.strip_suffix('\n').and_then(|text| text.strip_prefix("0x"));
    digits_of.is_some_and(|text| text.len() == digits && text.bytes().all(is_lower_hex))
}

const fn is_lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}

fn cpus(text: &str) -> bool {
    text.strip_suffix('\n').is_some_and(|text| is_list(text, 8191))
}

fn nodes(text: &str) -> bool {
    text.strip_suffix('\n').is_some_and(|text| is_list(text, 1023))
}

/// Ascending ranges with a hole before each, as `%*pbl` prints them. Nothing for an empty set.
fn is_list(text: &str, most: u64) -> bool {
    let mut least = 0;
    text.is_empty()
        || text.split(',').all(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let right = is_number(first, most) && is_number(last, most);
            let (first, last) = (first.parse().unwrap_or(0), last.parse().unwrap_or(0));
            let ascending = first >= least && (first < last || !range.contains('-'));
            least = last + 2;
            right && ascending
        })
}

fn mask(text: &str) -> bool {
    text.strip_suffix('\n').is_some_and(is_mask)
}

/// Words of 32 bits, all but the first with all digits, as `%*pb` prints them.
fn is_mask(text: &str) -> bool {
    text.split(',').enumerate().all(|(at, word)| {
        let width = if at == 0 { (1..=8).contains(&word.len()) } else { word.len() == 8 };
        width && word.bytes().all(is_lower_hex)
    })
}

/// Numbers of 8 bits, separated by single blanks.
fn distances(text: &str) -> bool {
    text.strip_suffix('\n')
        .is_some_and(|row| row.trim_end_matches(' ').split(' ').all(|one| is_number(one, 255)))
}

fn meminfo(text: &str) -> bool {
    let mut names = Vec::new();
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (node, id, name, value) = (words.next(), words.next(), words.next(), words.next());
        let unit = words.next();
        let name = name.and_then(|name| name.strip_suffix(':')).unwrap_or_default();
        let is_first = !names.contains(&name.to_owned());
        names.push(name.to_owned());
        node == Some("Node")
            && id.is_some_and(|id| is_number(id, 1023))
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_()".contains(&byte))
            && is_first
            && value.is_some_and(|value| is_number(value, u64::MAX >> 10))
            && matches!(unit, None | Some("kB"))
            && words.next().is_none()
    };
    // Linux before 2.6.2x begins with an empty line.
    text.ends_with('\n') && text.trim_start_matches('\n').lines().all(line)
}

fn choice(text: &str) -> bool {
    let is_word = |word: &str| {
        let bare = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')).unwrap_or(word);
        ["always", "madvise", "never", "defer", "defer+madvise"].contains(&bare)
    };
    let words = text.strip_suffix('\n').map(|text| text.split(' '));
    words.is_some_and(|mut words| words.all(is_word)) && text.matches('[').count() == 1
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn is_release(text: &str) -> bool {
    let mut parts = text.splitn(3, '.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let minor = minor.trim_end_matches(|c: char| !c.is_ascii_digit());
    is_plain(text) && !text.contains(' ') && is_number(major, 99) && is_number(minor, 999)
}

fn version(text: &str) -> bool {
    let rest = text.strip_suffix('\n').and_then(|text| text.strip_prefix("Linux version "));
    rest.is_some_and(|rest| is_plain(rest) && rest.split(' ').next().is_some_and(is_release))
}

/// Whether the text has the form that hwloc-gather-topology writes.
fn no_file_info(text: &str) -> bool {
    let line = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap_or_default();
        is_plain(line)
            && match name {
                "OSName" | "OSVersion" | "HostName" | "Architecture" => !value.is_empty(),
                "OSRelease" => is_release(value),
                "FallbackNbProcessors" => is_number(value, 8192),
                "CaptureTime" => is_number(value, 253_402_300_799),
                "PageSize" => {
                    value.parse::<u64>().is_ok_and(|size| is_number(value, 1 << 30) && size.is_power_of_two())
                }
                _ => false,
            }
    };
    text.ends_with('\n') && text.lines().all(line)
}

/// `Name:`, a tab, and a value; of the sets this process may use their forms.
fn status(text: &str) -> bool {
    let line = |line: &str| {
        let (name, value) = line.split_once(":\t").unwrap_or_default();
        let known = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && !name.is_empty();
        known
            && is_plain(&value.replace('\t', " "))
            && match name {
                "Cpus_allowed" | "Mems_allowed" => is_mask(value),
                "Cpus_allowed_list" => is_list(value, 8191),
                "Mems_allowed_list" => is_list(value, 1023),
                _ => true,
            }
    };
    text.ends_with('\n') && text.lines().all(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_strict() {
        let check = |path: &str, text: &str, expected: bool| {
            assert_eq!(is_well_formed(path, text.as_bytes()), expected, "{path} {text:?}");
        };
        let list = "/sys/devices/system/cpu/online";
        for text in ["0-3,8\n", "\n", "0,2\n", "0-1,3-8191\n"] {
            check(list, text, true);
        }
        for text in
            ["0-3", "0-3,4\n", "3-1\n", "3,1\n", "00-3\n", "0-3\0\n", "0-8192\n", "0-0\n", "0,,2\n", "-1\n"]
        {
            check(list, text, false);
        }
        let mask = "/sys/devices/system/node/node12/cpumap";
        for (text, right) in
            [("f\n", true), ("00,0000000f\n", true), ("f,f\n", false), ("F\n", false), ("\n", false)]
        {
            check(mask, text, right);
        }
        check("/sys/devices/system/node/nodex/cpumap", "f\n", false);
        let size = "/sys/devices/system/cpu/cpu3/cache/index2/size";
        for (text, right) in [("32K\n", true), ("32\n", false), ("032K\n", false), ("32K", false)] {
            check(size, text, right);
        }
        let meminfo = "/sys/devices/system/node/node0/meminfo";
        check(meminfo, "Node 0 MemTotal:  8 kB\nNode 0 HugePages_Total:  0\n", true);
        check(meminfo, "Node 0 MemTotal:  8 kB\nNode 0 MemTotal:  8 kB\n", false);
        check(meminfo, "Node 0 MemTotal:  8 k\n", false);
        check("/sys/devices/pci0000:00/0000:00:01.0/vendor", "0x8086\n", true);
        check("/sys/devices/pci0000:00/0000:00:01.0/vendor", "0x086\n", false);
        check("/proc/version", "Linux version 6.12.1 (x@y)\n", true);
        check("/proc/self/status", "Name:\tx\nCpus_allowed:\tff\n", true);
        check("/proc/self/status", "Name:\tx\nCpus_allowed:\tfg\n", false);
    }
}
