//! The options that a kernel was built with.
//!
//! # Source
//! `/boot/config-RELEASE`, or `/proc/config.gz` (Linux 2.6, where `CONFIG_IKCONFIG_PROC` is set).

use std::collections::BTreeMap;

/// Options that are kept at most; Debian's kernels have about 12 000.
const MOST_OPTIONS: usize = 1 << 16;

/// The options by name, without `CONFIG_`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KernelConfig {
    options: BTreeMap<String, String>,
}

impl KernelConfig {
    /// Whether an option is built in or a module; `None` where the file does not name it, as one that
    /// this release or architecture does not have.
    pub fn is_set(&self, name: &str) -> Option<bool> {
        Some(self.options.get(name)? != "n")
    }

    /// The value of an option: `y`, `m`, `n`, a number or a text in quotes.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }
}

/// Reads the file. Lines that are none of its two kinds say nothing.
pub fn parse(text: &str) -> KernelConfig {
    let mut options = BTreeMap::new();
    for line in text.lines() {
        let option = match line.strip_prefix("# CONFIG_") {
            Some(rest) => rest.strip_suffix(" is not set").map(|name| (name, "n")),
            None => line.strip_prefix("CONFIG_").and_then(|rest| rest.split_once('=')),
        };
        let Some((name, value)) = option else { continue };
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && options.len() < MOST_OPTIONS
        {
            options.insert(name.to_owned(), value.trim_end().to_owned());
        }
    }
    KernelConfig { options }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    const SAMPLE: &str = "#\n# Automatically generated file; DO NOT EDIT.\nCONFIG_NUMA=y\nCONFIG_NUMA_EMU=y\n\
                          # CONFIG_NUMA_BALANCING is not set\nCONFIG_NODES_SHIFT=10\nCONFIG_DAX=m\n";

    #[test]
    fn options_are_set_or_not_or_not_known() {
        let config = parse(SAMPLE);
        assert_eq!(config.is_set("NUMA_EMU"), Some(true));
        assert_eq!(config.is_set("DAX"), Some(true));
        assert_eq!(config.is_set("NUMA_BALANCING"), Some(false));
        assert_eq!(config.is_set("NUMA_EMULATION"), None);
        assert_eq!(config.value("NODES_SHIFT"), Some("10"));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>()) {
            prop_assert!(parse(&text).options.len() <= text.lines().count());
        }
    }
}
