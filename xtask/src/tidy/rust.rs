//! Rust as far as tidy must understand it: what is code, what a string, what a comment, what a test.

/// The text of a string literal or a comment.
#[derive(Debug, PartialEq, Eq)]
pub struct Literal {
    /// The line on which it starts, from 1.
    pub line: usize,
    /// For a literal, the text between its quotes with escapes as written; for a comment, all of it.
    pub text: String,
}

/// A file of Rust, taken apart.
#[derive(Debug)]
pub struct Source {
    /// The text with comments and the contents of literals blanked; lines and columns stay.
    pub code: String,
    pub literals: Vec<Literal>,
    /// Its comments: one entry per line comment, one per block comment.
    pub comments: Vec<Literal>,
    /// For each line, whether it belongs to a test.
    tests: Vec<bool>,
}

impl Source {
    /// Takes a file apart. Text that is not Rust gives some result, never a panic.
    pub fn new(path: &str, text: &str) -> Self {
        let mut scanner =
            Scanner { rest: text, line: 1, code: String::new(), literals: Vec::new(), comments: Vec::new() };
        scanner.run();
        let Scanner { code, literals, comments, .. } = scanner;
        let lines = text.lines().count();
        let tests = if is_test_file(path) { vec![true; lines] } else { test_lines(&code, lines) };
        Self { code, literals, comments, tests }
    }

    /// Whether a line (from 1) belongs to a test.
    pub fn is_test(&self, line: usize) -> bool {
        self.tests.get(line.wrapping_sub(1)).copied().unwrap_or(false)
    }
}

/// Whether all of a file is tests, or no part of the program either: cargo's folders, fuzz targets,
/// and a module's own `tests.rs`.
fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "benches" | "examples" | "fuzz" | "tests.rs"))
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
    code: String,
    literals: Vec<Literal>,
    comments: Vec<Literal>,
}

impl<'a> Scanner<'a> {
    fn run(&mut self) {
        while !self.rest.is_empty() {
            if self.rest.starts_with("//") {
                self.comment(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                self.comment(comment_length(self.rest));
            } else if let Some((prefix, hashes)) = literal_start(self.rest, &self.code) {
                self.literal(prefix, hashes);
            } else if self.rest.starts_with('\'') {
                self.quote();
            } else {
                self.keep(self.rest.chars().next().map_or(0, char::len_utf8));
            }
        }
    }

    /// Copies text as code.
    fn keep(&mut self, length: usize) {
        let (text, rest) = self.rest.split_at(length);
        self.line += text.matches('\n').count();
        self.code.push_str(text);
        self.rest = rest;
    }

    /// Replaces text by blanks and keeps its line breaks.
    fn blank(&mut self, length: usize) {
        let (text, rest) = self.rest.split_at(length);
        self.line += text.matches('\n').count();
        self.code.extend(text.chars().map(|c| if c == '\n' { c } else { ' ' }));
        self.rest = rest;
    }

    fn comment(&mut self, length: usize) {
        self.comments.push(Literal { line: self.line, text: self.rest[..length].to_owned() });
        self.blank(length);
    }

    /// A string: `prefix` bytes up to and with its opening quote. `hashes` is `None` for one with
    /// escapes, the number of `#` for a raw one.
    fn literal(&mut self, prefix: usize, hashes: Option<usize>) {
        self.keep(prefix);
        let end = match hashes {
            Some(hashes) => self.rest.find(&format!("\"{}", "#".repeat(hashes))),
            None => escaped_end(self.rest, '"'),
        };
        let end = end.unwrap_or(self.rest.len());
        self.literals.push(Literal { line: self.line, text: self.rest[..end].to_owned() });
        self.blank(end);
        self.keep((1 + hashes.unwrap_or(0)).min(self.rest.len()));
    }

    /// A character literal or a lifetime.
    fn quote(&mut self) {
        let inside = &self.rest[1..];
        let mut chars = inside.chars();
        let (first, second) = (chars.next(), chars.next());
        let end = match (first, second) {
            (Some('\\'), _) => escaped_end(inside, '\''),
            (Some(c), Some('\'')) => Some(c.len_utf8()),
            _ => None,
        };
        self.keep(1);
        if let Some(end) = end {
            self.blank(end);
            self.keep(1.min(self.rest.len()));
        }
    }
}

/// The length of a block comment; they nest.
fn comment_length(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let step = if rest.starts_with("/*") {
            depth += 1;
            2
        } else if rest.starts_with("*/") {
            depth -= 1;
            2
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

/// The place of the closing quote in text with escapes.
fn escaped_end(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let end = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        end.then_some(at)
    })
}

/// Whether a string starts here: the bytes up to and with its quote, and how many `#` close it.
fn literal_start(rest: &str, before: &str) -> Option<(usize, Option<usize>)> {
    if rest.starts_with('"') {
        return Some((1, None));
    }
    // The r of r"..." must not be the end of a name.
    if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let prefix = ["br", "cr", "r", "b", "c"]
        .into_iter()
        .find(|prefix| rest.strip_prefix(prefix).is_some_and(|after| after.starts_with(['"', '#'])))?;
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let raw = prefix.ends_with('r');
    let is_string = after[hashes..].starts_with('"') && (raw || hashes == 0);
    is_string.then_some((prefix.len() + hashes + 1, raw.then_some(hashes)))
}

/// Marks the lines of items under `#[cfg(test)]`.
fn test_lines(code: &str, lines: usize) -> Vec<bool> {
    const ATTRIBUTE: &str = "#[cfg(test)]";
    let mut tests = vec![false; lines];
    for (start, _) in code.match_indices(ATTRIBUTE) {
        let item = &code[start..];
        let mut depth = 0usize;
        let end = item
            .char_indices()
            .find_map(|(at, c)| {
                match c {
                    '{' => depth += 1,
                    '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                let whole = depth == 0 && matches!(c, '}' | ';');
                whole.then_some(at)
            })
            .unwrap_or(item.len());
        let first = code[..start].matches('\n').count();
        let last = first + item[..end].matches('\n').count();
        tests.iter_mut().take(last + 1).skip(first).for_each(|line| *line = true);
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn check(text: &str, code: &str, literals: &[(usize, &str)]) {
        let source = Source::new("crates/x/src/a.rs", text);
        assert_eq!(source.code, code);
        let found: Vec<(usize, &str)> =
            source.literals.iter().map(|literal| (literal.line, literal.text.as_str())).collect();
        assert_eq!(found, literals);
    }

    #[test]
    fn comments_and_strings_are_blanked() {
        check("a // b\nc", "a     \nc", &[]);
        check("a /* b /* c\n */ */ d", "a          \n       d", &[]);
        check("f(\"// no\", 1)", "f(\"     \", 1)", &[(1, "// no")]);
        check("\"a\\\"b\" c", "\"    \" c", &[(1, "a\\\"b")]);
        check("x\nr#\"a\"b\"# c", "x\nr#\"   \"# c", &[(2, "a\"b")]);
        check("br\"\\\" b'x' c\"z\"", "br\" \" b' ' c\" \"", &[(1, "\\"), (1, "z")]);
        check("\"a\nb\" \"c\"", "\" \n \" \" \"", &[(1, "a\nb"), (2, "c")]);
    }

    #[test]
    fn lifetimes_are_no_characters() {
        check("fn f<'a>(x: &'a str) { '\"' }", "fn f<'a>(x: &'a str) { ' ' }", &[]);
        check("'\\'' '\\n' \"s\"", "'  ' '  ' \" \"", &[(1, "s")]);
    }

    #[test]
    fn items_under_cfg_test_are_tests() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"}\" }\n}\nfn c() {}\n#[cfg(test)]\nuse x;\ny";
        let source = Source::new("crates/x/src/a.rs", text);
        let tests: Vec<usize> = (1..=9).filter(|line| source.is_test(*line)).collect();
        assert_eq!(tests, [2, 3, 4, 5, 7, 8]);
        assert!(Source::new("crates/x/tests/a.rs", "x").is_test(1));
        assert!(Source::new("crates/x/src/a/tests.rs", "x").is_test(1));
        assert!(!Source::new("crates/x/src/contests/a.rs", "x").is_test(1));
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart_and_keeps_its_lines(
            text in proptest::collection::vec("[a-z '\"#/*\\\\{}\n]|r#\"|/\\*|#\\[cfg\\(test\\)\\]|é", 0..60)
        ) {
            let text = text.concat();
            let source = Source::new("crates/x/src/a.rs", &text);
            prop_assert_eq!(source.code.matches('\n').count(), text.matches('\n').count());
            prop_assert!(source.literals.iter().all(|literal| text.contains(&literal.text)));
        }

        #[test]
        fn hostile_text_does_not_panic(text in any::<String>()) {
            Source::new("crates/x/src/a.rs", &text);
        }
    }
}
