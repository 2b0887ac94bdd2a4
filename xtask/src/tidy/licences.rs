//! The licences of the packages that nodewise is built from, by cargo's word.
//!
//! The packages of Linux are checked, for both architectures. Others in Cargo.lock are for other systems and part of no
//! build. A tool such as cargo-deny would do the same, and has to be built from 300 packages first.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Breach;
use crate::program;

/// Licences under which nodewise may be given away as MIT or Apache-2.0: they ask for a notice, and for nothing that
/// binds the rest of a program.
const ALLOWED: [&str; 7] =
    ["Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "Unicode-3.0", "Zlib", "bzip2-1.0.6"];
/// Where packages are listed.
const LOCK: &str = "Cargo.lock";
/// The targets whose packages are checked.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// A package of somebody else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    name: String,
    /// The expression; `None` where only a file has the text.
    licence: Option<String>,
}

/// Reads the packages of others.
pub fn packages(root: &Path) -> Result<Vec<Package>> {
    let mut packages = Vec::new();
    for target in TARGETS {
        let metadata = program::resolved(root, target, &["--all-features"])?;
        packages.extend(parse_metadata(&metadata).context("cargo metadata is not what tidy expects")?);
    }
    packages.sort();
    packages.dedup();
    Ok(packages)
}

fn parse_metadata(metadata: &Value) -> Option<Vec<Package>> {
    let foreign = metadata["packages"].as_array()?.iter().filter(|package| !package["source"].is_null());
    foreign
        .map(|package| {
            let name = format!("{} {}", package["name"].as_str()?, package["version"].as_str()?);
            Some(Package { name, licence: package["license"].as_str().map(str::to_owned) })
        })
        .collect()
}

/// Compares the licences with those that are allowed, and names those that no package needs.
pub fn check(packages: &[Package]) -> Vec<Breach> {
    let mut findings = Vec::new();
    let mut find = |message: String| findings.push(Breach::new(LOCK, 1, message));
    for Package { name, licence } in packages {
        match licence.as_deref().map(|licence| (licence, is_allowed(licence))) {
            Some((_, Some(true))) => {}
            Some((licence, Some(false))) => {
                find(format!("{name} has the licence {licence}: expected {}", ALLOWED.join(", ")));
            }
            Some((licence, None)) => find(format!("{name}: {licence} is not a licence expression of SPDX")),
            None => find(format!("{name} names no licence")),
        }
    }
    let words = |expression: &str| words(expression).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let used: Vec<String> =
        packages.iter().filter_map(|package| package.licence.as_deref()).flat_map(words).collect();
    for idle in ALLOWED.iter().filter(|licence| !used.iter().any(|used| used == *licence)) {
        find(format!("no package has the licence {idle}: take it out of xtask/src/tidy/licences.rs"));
    }
    findings
}

/// Whether an expression of SPDX holds with the allowed licences; `None` where it is not one. `MIT/Apache-2.0` is the
/// older form of `MIT OR Apache-2.0`.
fn is_allowed(expression: &str) -> Option<bool> {
    let words = words(expression);
    let mut rest = words.as_slice();
    let allowed = either(&mut rest)?;
    rest.is_empty().then_some(allowed)
}

fn words(expression: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for word in expression.split_whitespace() {
        let mut word = word;
        while let Some(at) = word.find(['(', ')', '/']) {
            words.extend([&word[..at], &word[at..=at]].into_iter().filter(|part| !part.is_empty()));
            word = &word[at + 1..];
        }
        words.extend(Some(word).filter(|word| !word.is_empty()));
    }
    words
}

fn either(rest: &mut &[&str]) -> Option<bool> {
    let mut allowed = both(rest)?;
    while let ["OR" | "/", behind @ ..] = *rest {
        *rest = behind;
        allowed |= both(rest)?;
    }
    Some(allowed)
}

fn both(rest: &mut &[&str]) -> Option<bool> {
    let mut allowed = single(rest)?;
    while let ["AND", behind @ ..] = *rest {
        *rest = behind;
        allowed &= single(rest)?;
    }
    Some(allowed)
}

fn single(rest: &mut &[&str]) -> Option<bool> {
    match *rest {
        ["(", behind @ ..] => {
            *rest = behind;
            let allowed = either(rest)?;
            let [")", behind @ ..] = *rest else { return None };
            *rest = behind;
            Some(allowed)
        }
        ["OR" | "AND" | "WITH" | ")" | "/", ..] | [] => None,
        // An exception permits more than the licence alone.
        [licence, "WITH", exception, behind @ ..] => {
            *rest = behind;
            (!["(", ")", "OR", "AND", "/"].contains(exception)).then(|| ALLOWED.contains(licence))
        }
        [licence, behind @ ..] => {
            *rest = behind;
            Some(ALLOWED.contains(licence))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_hold_with_the_allowed_licences_or_do_not() {
        let check = |expression: &str, expected: Option<bool>| {
            assert_eq!(is_allowed(expression), expected, "{expression}");
        };
        for right in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR MIT",
            "(MIT OR GPL-2.0-only) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
        ] {
            check(right, Some(true));
        }
        // AND binds more closely than OR.
        check("MIT OR Apache-2.0 AND GPL-3.0-only AND (Zlib)", Some(true));
        for wrong in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT OR Zlib) AND MPL-2.0"] {
            check(wrong, Some(false));
        }
        for other in ["", "MIT OR", "(MIT", "MIT)", "MIT Zlib", "OR", "MIT WITH (", "see LICENSE file"] {
            check(other, None);
        }
    }

    #[test]
    fn a_package_is_named_with_its_licence() {
        let package = |name: &str, licence: Option<&str>| Package {
            name: format!("{name} 1.0.0"),
            licence: licence.map(str::to_owned),
        };
        let all = package("all", Some(&ALLOWED.join(" AND ")));
        assert_eq!(check(std::slice::from_ref(&all)), []);
        let found = check(&[all, package("left", Some("GPL-3.0-only")), package("none", None)]);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "Cargo.lock:1: left 1.0.0 has the licence GPL-3.0-only: expected Apache-2.0, BSD-2-Clause, BSD-3-Clause, \
                 MIT, Unicode-3.0, Zlib, bzip2-1.0.6",
                "Cargo.lock:1: none 1.0.0 names no licence",
            ]
        );
        let idle = check(&[package(
            "one",
            Some("MIT OR Apache-2.0 OR Zlib OR Unicode-3.0 OR BSD-2-Clause OR BSD-3-Clause"),
        )]);
        assert!(idle[0].to_string().contains("no package has the licence bzip2-1.0.6"), "{idle:?}");
    }

    #[test]
    fn packages_of_others_are_read() {
        let text = r#"{"packages": [{"name": "ours", "version": "1.0.0", "source": null, "license": "MIT"},
            {"name": "theirs", "version": "2.1.0", "source": "registry", "license": null}]}"#;
        let theirs = Package { name: "theirs 2.1.0".to_owned(), licence: None };
        assert_eq!(parse_metadata(&serde_json::from_str(text).unwrap()), Some(vec![theirs]));
        assert_eq!(parse_metadata(&serde_json::from_str("{}").unwrap()), None);
    }

    #[test]
    fn cargo_deny_allows_the_same_licences() {
        let deny = include_str!("../../../deny.toml");
        let quoted: Vec<String> = ALLOWED.iter().map(|licence| format!("\"{licence}\"")).collect();
        assert!(deny.contains(&format!("\nallow = [{}]\n", quoted.join(", "))), "{quoted:?}");
    }
}
