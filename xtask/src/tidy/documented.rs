//! Public functions, types and files have a documentation comment.
//!
//! rustc's `missing_docs` asks for one on every field and variant too, and gets "The name." for `name`. Here a
//! field has a comment where its name and type leave something to say: a unit, a source, the meaning of `None`.

use super::Breach;
use super::rust::Source;

/// Checks a file of a crate's sources.
pub fn check(path: &str, text: &str) -> Vec<Breach> {
    // A program has no public interface, and the comment of a type of options is the text of `--help`.
    let is_library =
        path.starts_with("crates/") && path.contains("/src/") && !path.starts_with("crates/nodewise/");
    if !is_library {
        return Vec::new();
    }
    let source = Source::new(path, text);
    let lines: Vec<&str> = text.lines().collect();
    let mut findings = Vec::new();
    if lines.first().is_some_and(|line| !line.starts_with("//")) && !source.is_test(1) {
        findings.push(Breach::new(path, 1, "a file without a first line that says what it holds: //! ..."));
    }
    for (at, code) in source.code.lines().enumerate() {
        // Of a macro that makes items the name is a `$name`.
        let Some(item) = public_item(code).filter(|item| !item.ends_with(' ')) else { continue };
        if !source.is_test(at + 1) && !is_documented(&lines[..at]) {
            let message = format!("{item} is public and has no documentation comment");
            findings.push(Breach::new(path, at + 1, message));
        }
    }
    findings
}

/// Returns the item that a line of code makes public: `fn open`, `struct Tree`. Not modules, whose files
/// have a first line of their own, and not what `use` passes on.
fn public_item(code: &str) -> Option<String> {
    let mut words = code.trim_start().strip_prefix("pub ")?.split_ascii_whitespace();
    loop {
        let word = words.next()?;
        match word {
            "unsafe" | "async" | "extern" | "\"C\"" => {}
            "const" => match words.next()? {
                "fn" => return Some(format!("fn {}", name(words.next()?))),
                "unsafe" | "extern" => {}
                // A constant spelled as the kernel spells it needs no more.
                _ => return None,
            },
            "fn" | "struct" | "enum" | "union" | "trait" | "type" => {
                return Some(format!("{word} {}", name(words.next()?)));
            }
            _ => return None,
        }
    }
}

fn name(word: &str) -> &str {
    word.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or(word)
}

/// Whether the lines in front of an item end in a documentation comment, attributes between them set aside.
fn is_documented(before: &[&str]) -> bool {
    for line in before.iter().rev().map(|line| line.trim_start()) {
        if line.starts_with("///") || line.starts_with("#[doc") {
            return true;
        }
        // An attribute may have several lines: `#[error(`, its text, `)]`.
        let ends_something = line.is_empty() || line.ends_with(['}', ';', '{']);
        if ends_something {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(text: &str) -> Vec<usize> {
        check("crates/lab/src/a.rs", text).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn what_is_public_is_documented() {
        for item in ["pub fn a() {", "pub enum A {", "pub(crate) fn a() {", "    pub const fn a() {"] {
            assert_eq!(missing(&format!("//! Head.\n\n/// Says.\n{item}")), [0; 0], "{item}");
            let expected = if item.starts_with("pub(") { vec![] } else { vec![3] };
            assert_eq!(missing(&format!("//! Head.\n\n{item}")), expected, "{item}");
        }
        assert_eq!(
            missing("//! H.\n/// Says.\n#[derive(\n    Clone,\n)]\npub struct A {\n    pub b: u8,\n}\n"),
            [0; 0]
        );
        assert_eq!(missing("//! H.\nstruct B;\npub struct A {\n"), [3]);
        assert_eq!(missing("//! H.\npub mod a;\npub use a::B;\n"), [0; 0]);
        assert_eq!(missing("//! H.\n#[cfg(test)]\nmod tests {\n    pub fn a() {}\n}\n"), [0; 0]);
        assert_eq!(missing("use std::fmt;\n"), [1]);
        assert_eq!(check("xtask/src/a.rs", "pub fn a() {}\n"), []);
        let message = check("crates/lab/src/a.rs", "//! H.\npub unsafe fn a() {}\n")[0].to_string();
        assert_eq!(message, "crates/lab/src/a.rs:2: fn a is public and has no documentation comment");
    }
}
