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

    proptest! {
        #[test]
        fn any_text_is_searched(text in any::<String>(), name in any::<String>()) {
            address(&text, &name);
            address(&format!("{text} {name}\n"), &name);
        }
    }
}
