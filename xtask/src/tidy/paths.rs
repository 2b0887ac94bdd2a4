//! The paths that code names: `use std::{fs, io::stdout}` names `std::fs` and `std::io::stdout`.

/// A path in code.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedPath {
    /// The line of its last part, from 1.
    pub line: usize,
    /// Its parts, joined by `::`. A single name is a path too.
    pub path: String,
    /// The first character behind it that is not blank: `!` for a macro, `(` for a call.
    pub next: Option<char>,
    /// The last character before it that is not blank: `.` for a method.
    pub previous: Option<char>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind<'a> {
    Word(&'a str),
    Separator,
    Other(char),
}

/// All paths in code whose comments and literals are blanked.
pub fn named_paths(code: &str) -> Vec<NamedPath> {
    let tokens = tokens(code);
    let mut walker = Walker { tokens: &tokens, at: 0, found: Vec::new() };
    while walker.at < tokens.len() {
        match walker.kind(0) {
            Some(Kind::Word(_)) => walker.path(""),
            _ => walker.at += 1,
        }
    }
    walker.found
}

fn tokens(code: &str) -> Vec<(usize, Kind<'_>)> {
    let mut tokens = Vec::new();
    for (line, text) in code.lines().enumerate() {
        let mut rest = text.trim_start();
        while let Some(c) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let (kind, length) = if is_word(c) {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                (Kind::Word(&rest[..length]), length)
            } else if rest.starts_with("::") {
                (Kind::Separator, 2)
            } else {
                (Kind::Other(c), c.len_utf8())
            };
            tokens.push((line + 1, kind));
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

struct Walker<'a> {
    tokens: &'a [(usize, Kind<'a>)],
    at: usize,
    found: Vec<NamedPath>,
}

impl<'a> Walker<'a> {
    fn kind(&self, ahead: usize) -> Option<Kind<'a>> {
        self.tokens.get(self.at + ahead).map(|(_, kind)| *kind)
    }

    /// A path that starts at a word, below a prefix that is empty or ends in `::`.
    fn path(&mut self, prefix: &str) {
        let start = self.at;
        let mut path = prefix.to_owned();
        let mut line = 0;
        while let Some(Kind::Word(word)) = self.kind(0) {
            line = self.tokens[self.at].0;
            path.push_str(word);
            self.at += 1;
            if self.kind(0) != Some(Kind::Separator) {
                break;
            }
            match self.kind(1) {
                Some(Kind::Word(_)) => {
                    path.push_str("::");
                    self.at += 1;
                }
                Some(Kind::Other('{')) => {
                    self.at += 2;
                    path.push_str("::");
                    return self.group(&path);
                }
                _ => break,
            }
        }
        let character = |token: Option<&(usize, Kind<'_>)>| match token {
            Some((_, Kind::Other(c))) => Some(*c),
            Some((_, Kind::Separator)) => Some(':'),
            _ => None,
        };
        let next = character(self.tokens.get(self.at));
        let previous = start.checked_sub(1).and_then(|before| character(self.tokens.get(before)));
        // `self` in a group names the group's own path.
        let path = path.strip_suffix("::self").map(str::to_owned).unwrap_or(path);
        self.found.push(NamedPath { line, path, next, previous });
    }

    /// The text between the braces of a `use`.
    fn group(&mut self, prefix: &str) {
        while let Some(kind) = self.kind(0) {
            match kind {
                Kind::Word(_) => self.path(prefix),
                Kind::Other('}') => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::proptest;

    fn check(code: &str, expected: &[&str]) {
        let found: Vec<String> = named_paths(code).into_iter().map(|path| path.path).collect();
        assert_eq!(found, expected, "{code}");
    }

    #[test]
    fn groups_are_spread_out() {
        check("use std::fs;", &["use", "std::fs"]);
        check(
            "use std::{\n    fs::{self, File},\n    io,\n};",
            &["use", "std::fs", "std::fs::File", "std::io"],
        );
        check("std :: fs\n  ::write(a)", &["std::fs::write", "a"]);
        check("Vec::<u8>::new()", &["Vec", "u8", "new"]);
    }

    #[test]
    fn neighbours_tell_macros_and_methods() {
        let paths = named_paths("println!(x); command.stdout(y)");
        assert_eq!((paths[0].path.as_str(), paths[0].next), ("println", Some('!')));
        let stdout = paths.iter().find(|path| path.path == "stdout").unwrap();
        assert_eq!((stdout.previous, stdout.next), (Some('.'), Some('(')));
    }

    #[test]
    fn lines_are_counted() {
        assert_eq!(named_paths("\nuse std::{\n    fs\n};")[1].line, 3);
    }

    proptest! {
        #[test]
        fn any_code_is_walked_to_its_end(code in "[a-z:{}, \\n]{0,60}") {
            named_paths(&code);
        }
    }
}
