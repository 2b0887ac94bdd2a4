//! The kernel's release, and its settings about memory.

use std::collections::BTreeMap;
use std::fmt;

use crate::id::NodeId;
use crate::set::CpuSet;
use crate::units::Bytes;

/// A kernel release: its text (`6.12.107+deb13-amd64`) and the numbers at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRelease {
    text: String,
    major: u16,
    minor: u16,
}

impl KernelRelease {
    /// Reads a release text; `None` when it does not start with two numbers.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut parts = text.splitn(3, '.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next()?;
        let digits = minor.find(|c: char| !c.is_ascii_digit()).unwrap_or(minor.len());
        let minor = minor[..digits].parse().ok()?;
        Some(Self { text: text.to_owned(), major, minor })
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Major and minor number.
    pub fn version(&self) -> (u16, u16) {
        (self.major, self.minor)
    }

    /// Whether the kernel is built for the Raspberry Pi: `6.12.25+rpt-rpi-2712`, `6.8.0-1013-raspi`,
    /// `6.6.31-v8+`.
    pub fn is_raspberry_pi(&self) -> bool {
        ["rpi", "raspi", "-v8"].iter().any(|word| self.text.contains(word))
    }

    /// Whether this release is the given one or newer.
    pub fn is_at_least(&self, major: u16, minor: u16) -> bool {
        self.version() >= (major, minor)
    }
}

impl fmt::Display for KernelRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// Kernel settings that decide where memory goes. `None`: the kernel does not say.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// `/proc/sys/kernel/numa_balancing`: 0 off, bit 0 normal, bit 1 memory tiering. Linux 3.13.
    pub numa_balancing: Option<u32>,
    /// `/proc/sys/vm/zone_reclaim_mode`: bits 1 reclaim, 2 write, 4 unmap.
    pub zone_reclaim_mode: Option<u32>,
    /// `/proc/sys/vm/watermark_boost_factor`: how far the watermarks of a fragmented zone are raised for a while, in
    /// ten-thousandths of the high one. Linux 5.0.
    pub watermark_boost_factor: Option<u32>,
    /// The chosen word of `/sys/kernel/mm/transparent_hugepage/enabled`.
    pub transparent_hugepage: Option<String>,
    /// The chosen word of `/sys/kernel/mm/transparent_hugepage/defrag`.
    pub transparent_hugepage_defrag: Option<String>,
    /// Size of a transparent huge page that fills a page table: `/sys/kernel/mm/transparent_hugepage/hpage_pmd_size`.
    /// Linux 4.8.
    pub transparent_hugepage_size: Option<Bytes>,
    /// Size of a page of the default pool: `Hugepagesize` of `/proc/meminfo`.
    pub default_huge_page_size: Option<Bytes>,
    /// `/sys/kernel/mm/numa/demotion_enabled`. Linux 5.15.
    pub demotion_enabled: Option<bool>,
    /// Whether pages are reclaimed by the multi-generational list: bit 0 of `/sys/kernel/mm/lru_gen/enabled`. Linux 6.1.
    pub lru_gen_enabled: Option<bool>,
    /// `/sys/kernel/mm/mempolicy/weighted_interleave/nodeN`. Linux 6.9; empty on older kernels.
    pub interleave_weights: BTreeMap<NodeId, u32>,
    /// `.../weighted_interleave/auto` (`__auto_type` in 6.18). Linux 6.16.
    pub interleave_weights_auto: Option<bool>,
    /// `/proc/sys/vm/swappiness`.
    pub swappiness: Option<u32>,
    /// `/proc/sys/vm/min_free_kbytes`, in KiB.
    pub min_free_kib: Option<u64>,
    /// `/proc/sys/vm/overcommit_memory`.
    pub overcommit_memory: Option<u32>,
    /// Frequency governors by name, with the CPUs that they drive: `cpuN/cpufreq/scaling_governor`. Linux 2.6.9;
    /// empty where the clock is not set by Linux.
    pub governors: BTreeMap<String, CpuSet>,
    /// `/proc/cmdline`.
    pub command_line: Option<String>,
}

/// Returns the values of a parameter on a kernel's command line, one by one. Words behind `--` are not the
/// kernel's.
pub fn parameter<'t>(line: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> {
    let words = line.split_ascii_whitespace().take_while(|word| *word != "--");
    words.filter_map(move |word| word.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_has_the_values_before_the_two_dashes() {
        let check = |line: &str, expected: &[&str]| {
            assert_eq!(parameter(line, "numa").collect::<Vec<_>>(), expected, "{line}");
        };
        check("quiet numa=off numa_policy=local numa numa=fake=2 -- numa=on", &["off", "fake=2"]);
        check("numa=", &[""]);
        check("", &[]);
    }

    #[test]
    fn kernels_for_the_raspberry_pi_are_known_by_their_text() {
        let check = |text: &str, expected: bool| {
            assert_eq!(KernelRelease::new(text).unwrap().is_raspberry_pi(), expected, "{text}");
        };
        check("6.12.25+rpt-rpi-2712", true);
        check("6.8.0-1013-raspi", true);
        check("6.6.31-v8+", true);
        check("6.12.107+deb13-arm64", false);
    }

    #[test]
    fn releases_compare_by_number_and_not_by_text() {
        let release = KernelRelease::new("6.12.107+deb13-amd64\n").unwrap();
        assert_eq!(release.version(), (6, 12));
        assert!(release.is_at_least(6, 9));
        assert!(!release.is_at_least(6, 16));
        assert_eq!(KernelRelease::new("7.2-rc1").unwrap().version(), (7, 2));
        assert_eq!(KernelRelease::new("linux"), None);
        assert_eq!(KernelRelease::new("6"), None);
    }
}
