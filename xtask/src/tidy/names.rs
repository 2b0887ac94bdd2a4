//! Names that say their subject where they are used: types that other modules import, and constructors.

use super::Breach;
use super::rust::Source;

/// Type names that say nothing without the module they come from.
const BARE: [&str; 5] = ["Finding", "Kind", "Place", "Report", "Way"];

/// Checks a file of Rust.
pub fn check(path: &str, text: &str) -> Vec<Breach> {
    let source = Source::new(path, text);
    let mut breaches = Vec::new();
    for (at, code) in source.code.lines().enumerate() {
        if let Some(message) = public_item(code).and_then(|(sort, name)| fault(sort, name)) {
            breaches.push(Breach::new(path, at + 1, message));
        }
    }
    breaches
}

/// The keyword and the name of an item that a line of code shows to other modules.
fn public_item(code: &str) -> Option<(&str, &str)> {
    let rest = code.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')')?.1,
        None => rest,
    };
    let mut words = rest.strip_prefix(' ')?.split_ascii_whitespace();
    let keywords = ["const", "unsafe", "async", "extern", "\"C\""];
    let sort = words.by_ref().find(|word| !keywords.contains(word))?;
    if sort == "use" {
        let name = code.trim_end().strip_suffix(';')?.rsplit_once(" as ")?.1;
        return Some((sort, name));
    }
    let name = words.next()?;
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
    Some((sort, &name[..end]))
}

fn fault(sort: &str, name: &str) -> Option<String> {
    match sort {
        "struct" | "enum" | "union" | "trait" | "type" | "use" if BARE.contains(&name) => {
            Some(format!("other modules can import {name}: a name with the subject, such as Latency{name}"))
        }
        "fn" if name == "of" => {
            Some("a function named of: from_... or new for a constructor, a noun for a fact".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<usize> {
        check("crates/lab/src/a.rs", text).iter().map(|breach| breach.line).collect()
    }

    #[test]
    fn a_type_that_others_import_carries_its_subject() {
        for name in BARE {
            for item in
                ["pub enum", "pub(crate) struct", "    pub(super) type", "pub trait", "pub(in a::b) struct"]
            {
                assert_eq!(faults(&format!("\n{item} {name}<'a> {{\n")), [2], "{item} {name}");
                assert_eq!(faults(&format!("{item} Latency{name} {{\n{item} {name}s {{\n")), [0; 0]);
            }
            assert_eq!(faults(&format!("enum {name} {{\nstruct {name};\n")), [0; 0]);
            assert_eq!(faults(&format!("pub use a::Latency{name} as {name};\n")), [1]);
            assert_eq!(faults(&format!("use a::Latency{name} as {name};\n// pub enum {name}\n")), [0; 0]);
        }
    }

    #[test]
    fn no_public_function_is_named_of() {
        for item in ["pub fn of(", "    pub(super) const fn of(", "pub unsafe fn of<T>(", "pub(crate) fn of("]
        {
            assert_eq!(faults(item), [1], "{item}");
        }
        for item in ["fn of(", "pub fn of_node(", "pub fn from_plan(", "    \"pub fn of(\"", "pub", "pub("] {
            assert_eq!(faults(item), [0; 0], "{item}");
        }
        let message = check("xtask/src/a.rs", "pub fn of() {}\n")[0].to_string();
        assert!(message.starts_with("xtask/src/a.rs:1: a function named of: from_..."), "{message}");
    }
}
