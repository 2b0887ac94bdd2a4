//! The symbols of a library: name, version, whether it is the default version, type, binding, and
//! for variables the size, which is part of the interface (programs copy them).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::build::Tools;
use crate::platform::Platform;
use crate::program;

/// The file with the list that the result must equal. Platforms differ in the size of `nodemask_t` (numa.h) alone:
/// 128 bits on x86, 2048 on all others.
pub const fn list_of(platform: Platform) -> &'static str {
    match platform {
        Platform::Amd64 => "x86_64.txt",
        Platform::Arm64 | Platform::Riscv64 | Platform::Ppc64el => "aarch64.txt",
    }
}

fn list(root: &Path, platform: Platform) -> Result<BTreeSet<String>> {
    let path: PathBuf = root.join("crates/libnuma/link/abi").join(list_of(platform));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The names without versions, those of version 1 left out: what a static library has.
pub fn unversioned(root: &Path, platform: Platform) -> Result<Vec<String>> {
    let names = list(root, platform)?;
    Ok(names.iter().filter_map(|line| Some(line.split_once("@@")?.0.to_owned())).collect())
}

/// The names with their versions.
pub fn versioned(root: &Path, platform: Platform) -> Result<Vec<(String, String)>> {
    let names = list(root, platform)?;
    let name = |line: &String| line.split_whitespace().next().map(|word| word.replace("@@", "@"));
    let pair =
        |word: String| word.split_once('@').map(|(name, version)| (name.to_owned(), version.to_owned()));
    Ok(names.iter().filter_map(name).filter_map(pair).collect())
}

/// Lists the symbols that a library has and the list has not, and the other way round.
pub fn compare(root: &Path, platform: Platform, tools: &Tools, library: &Path) -> Result<Vec<String>> {
    let text = program::read(tools.command("readelf", root).args(["--dyn-syms", "--wide"]).arg(library))?;
    Ok(differences(&list(root, platform)?, &parse(&text)))
}

fn differences(expected: &BTreeSet<String>, found: &BTreeSet<String>) -> Vec<String> {
    let missing = expected.difference(found).map(|symbol| format!("missing: {symbol}"));
    missing.chain(found.difference(expected).map(|symbol| format!("unexpected: {symbol}"))).collect()
}

/// Reads readelf's table of symbols: `Num: Value Size Type Bind Vis Ndx Name`; on POWER with the distance to a second
/// entry of functions behind Vis, in brackets.
fn parse(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(symbol).collect()
}

/// Whether a word is a part of `[<localentry>: 8]`.
fn is_local_entry(word: &str) -> bool {
    word == "[<localentry>:" || word.ends_with(']')
}

fn symbol(line: &str) -> Option<String> {
    let [_, _, size, kind, binding, visibility, section, name] =
        line.split_whitespace().filter(|word| !is_local_entry(word)).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    // What is not defined here; the versions themselves and sections, which the linker adds.
    if matches!(section, "UND" | "Ndx" | "ABS") || kind == "SECTION" {
        return None;
    }
    let size = if kind == "OBJECT" { format!(" {size}") } else { String::new() };
    let visibility = if visibility == "DEFAULT" { String::new() } else { format!(" {visibility}") };
    Some(format!("{name} {kind} {binding}{size}{visibility}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\nSymbol table '.dynsym' contains 5 entries:\n   \
        Num:    Value          Size Type    Bind   Vis      Ndx Name\n     \
        0: 0000000000000000     0 NOTYPE  LOCAL  DEFAULT  UND \n    \
        26: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND exit@GLIBC_2.2.5 (2)\n    \
        45: 0000000000000000     0 OBJECT  GLOBAL DEFAULT  ABS libnuma_1.1\n    \
        46: 0000000000005a40    57 FUNC    WEAK   DEFAULT   14 numa_error@@libnuma_1.1\n    \
        47: 000000000000b2c0     5 FUNC    GLOBAL DEFAULT   14 numa_bind@libnuma_1.1\n    \
        48: 000000000000c0e0    16 OBJECT  GLOBAL DEFAULT   24 numa_no_nodes@@libnuma_1.1\n";

    #[test]
    fn symbols_are_read_with_what_makes_them_compatible() {
        let expected = [
            "numa_bind@libnuma_1.1 FUNC GLOBAL",
            "numa_error@@libnuma_1.1 FUNC WEAK",
            "numa_no_nodes@@libnuma_1.1 OBJECT GLOBAL 16",
        ];
        assert_eq!(parse(TABLE).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn functions_of_power_have_a_second_entry_which_is_left_out() {
        let line = " 176: 0000000000006b40   336 FUNC    GLOBAL DEFAULT [<localentry>: 8]    11 \
            numa_alloc_onnode@@libnuma_1.1";
        assert_eq!(symbol(line).unwrap(), "numa_alloc_onnode@@libnuma_1.1 FUNC GLOBAL");
    }

    #[test]
    fn what_is_missing_and_what_is_too_much_is_told() {
        let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        assert_eq!(differences(&set(&["a", "b"]), &set(&["b", "c"])), ["missing: a", "unexpected: c"]);
        assert_eq!(differences(&set(&["a"]), &set(&["a"])), [""; 0]);
    }

    #[test]
    fn both_lists_have_the_symbols_and_differ_in_the_size_of_a_nodemask_alone() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let x86 = list(root, Platform::Amd64).unwrap();
        let arm = list(root, Platform::Arm64).unwrap();
        assert_eq!((x86.len(), arm.len()), (112, 112));
        let different: Vec<&str> = x86.difference(&arm).map(String::as_str).collect();
        let expected =
            ["numa_all_nodes@@libnuma_1.1 OBJECT GLOBAL 16", "numa_no_nodes@@libnuma_1.1 OBJECT GLOBAL 16"];
        assert_eq!(different, expected);
        assert_eq!(unversioned(root, Platform::Amd64).unwrap().len(), 98);
    }
}
