//! Symbols of the running kernel with their addresses.
//!
//! # Source
//! `/proc/kallsyms`, a line each: address, type, name, and the module behind a tab if it is a module's. Addresses are 0 for
//! whoever may not see them (`kernel.kptr_restrict`).

/// The address of a symbol of the kernel itself; `None` if it has none of that name, or hides where it is.
///
/// The text has a quarter of a million lines: it is searched for the name, and not taken apart.
pub fn address(text: &str, name: &str) -> Option<u64> {
    let wanted = format!(" {name}\n");
    let line = text[..text.find(&wanted)?].rsplit('\n').next()?;
    let digits = line.split(' ').next()?;
    u64::from_str_radix(digits, 16).ok().filter(|address| *address > 0)
}

/// Functions of the kernel and its modules, by address.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KernelFunctions(Vec<(u64, String)>);

impl KernelFunctions {
    /// Reads the functions of a text; lines that are none are left out. Of several names of an address it keeps one: a global one
    /// before others, the one with fewest underscores in front, the shortest.
    pub fn parse(text: &str) -> Self {
        let mut found: Vec<(u64, bool, usize, &str)> = text.lines().filter_map(function).collect();
        found.sort_unstable_by_key(|&(address, is_local, underscores, name)| {
            (address, is_local, underscores, name.len(), name)
        });
        found.dedup_by_key(|(address, ..)| *address);
        Self(found.into_iter().map(|(address, .., name)| (address, name.to_owned())).collect())
    }

    /// The function that an address is in: the last that begins there or before.
    pub fn at(&self, address: u64) -> Option<&str> {
        let behind = self.0.partition_point(|(start, _)| *start <= address);
        behind.checked_sub(1).map(|last| self.0[last].1.as_str())
    }
}

/// Address, whether it is local, underscores in front and name of a function. Of one that is a module's the module is left out.
fn function(line: &str) -> Option<(u64, bool, usize, &str)> {
    let mut words = line.split([' ', '\t']);
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address > 0)?;
    let kind = words.next().filter(|kind| ["T", "t", "W", "w"].contains(kind))?;
    let name = words.next().filter(|name| !name.is_empty())?;
    Some((address, kind != "T", name.len() - name.trim_start_matches('_').len(), name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    const SAMPLE: &str = "ffffffff81000000 T startup_64\nffffffff810a61c0 T __pfx_do_exit\nffffffff810a61d0 T do_exit\n\
                          ffffffff81c00a40 T __switch_to_asm\nffffffffc0405000 t do_exit2\t[other]\n\
                          0000000000000000 T begin_new_exec\n";

    #[test]
    fn a_symbol_is_found_by_its_whole_name() {
        for (name, expected) in [
            ("startup_64", Some(0xffff_ffff_8100_0000)),
            ("do_exit", Some(0xffff_ffff_810a_61d0)),
            ("__switch_to_asm", Some(0xffff_ffff_81c0_0a40)),
            ("exit", None),
            ("do_exit2", None),
            ("begin_new_exec", None),
        ] {
            assert_eq!(address(SAMPLE, name), expected, "{name}");
        }
    }

    #[test]
    fn an_address_is_in_the_last_function_before_it() {
        let text = format!(
            "{SAMPLE}ffffffff81c00a40 t a\nffffffff81c00a40 T __longer\nffffffff81d00000 D data\nx T y\n\
             ffffffff81e00000 T\nffffffff81e00000\n"
        );
        let functions = KernelFunctions::parse(&text);
        for (address, expected) in [
            (0, None),
            (0xffff_ffff_80ff_ffff, None),
            (0xffff_ffff_8100_0000, Some("startup_64")),
            (0xffff_ffff_810a_61cf, Some("__pfx_do_exit")),
            (0xffff_ffff_810a_6200, Some("do_exit")),
            (0xffff_ffff_81f0_0000, Some("__longer")),
            (u64::MAX, Some("do_exit2")),
        ] {
            assert_eq!(functions.at(address), expected, "{address:x}");
        }
        assert_eq!(KernelFunctions::parse("").at(u64::MAX), None);
    }

    proptest! {
        #[test]
        fn functions_are_read_from_any_text(
            text in any::<String>(),
            lines in proptest::collection::vec("[0-9a-f]{0,17}[ \t]?[tTwWdD]?[ \t]?[a-z_]{0,4}", 0..8),
            address in any::<u64>(),
        ) {
            KernelFunctions::parse(&text).at(address);
            let functions = KernelFunctions::parse(&lines.join("\n"));
            assert!(functions.0.is_sorted_by(|one, next| one.0 < next.0));
            functions.at(address);
        }

        #[test]
        fn any_text_is_searched(text in any::<String>(), name in any::<String>()) {
            address(&text, &name);
            address(&format!("{text} {name}\n"), &name);
        }
    }
}
