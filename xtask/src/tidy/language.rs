//! The language of strings, help, pages, comments and commit subjects: phrases that a reader has to
//! read twice, with the wording that replaces each.

use std::fmt;

use super::Breach;
use super::rust::{Literal, Source};

/// The kinds of text, each with a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Area {
    /// String literals outside tests: messages, texts and pictures.
    Strings,
    /// Doc comments of clap types.
    Help,
    /// README, docs, scenarios and the other pages.
    Pages,
    Comments,
    /// First lines of doc comments that are a clause and not a noun phrase or an imperative.
    FirstLines,
    /// Subjects of the branch's commits.
    Subjects,
}

/// Each area, its name, and how many hits it may have. Limits only ever fall.
const LIMITS: [(Area, &str, usize); 6] = [
    (Area::Strings, "strings", 0),
    (Area::Help, "help", 0),
    (Area::Pages, "pages", 0),
    (Area::Comments, "comments", 10),
    (Area::FirstLines, "first lines", 0),
    (Area::Subjects, "commit subjects", 0),
];

/// Phrases to avoid, and what to write instead.
///
/// Blanks separate words; `a|b` matches either word, `*` any word, `^` the start of a heading or of a
/// doc comment, and a backquote a piece of code. Case is ignored. Sentences end a match.
const PATTERNS: [(&str, &str); 25] = [
    ("told|tell|tells|telling", "say, show, report; given as an option; distinguish"),
    ("said of|to", "applies to, holds for; is reported as"),
    ("asked of", "name the agent: requested from, required of"),
    ("is|are|was|were no *", "is not a ...; there is no ...; has no ..."),
    (", as `", ", such as; for example"),
    ("anew", "again, afresh"),
    ("all the same", "anyway, still"),
    ("so many", "the number; that many; N"),
    ("of which", "whose; two sentences"),
    ("come|comes|came|coming of", "results from, is caused by"),
    ("nobody", "no one; the passive; name the agent"),
    ("that|which is|are not there", "missing, absent, hypothetical"),
    ("is|are|was|were not there", "missing, absent; does not exist"),
    ("give|gives|gave|giving way", "falls back, yields, is replaced"),
    ("go|goes|going|went on behind", "resume after, continue after"),
    ("stand|stands|stood|standing", "is, lies, appears"),
    ("review found", "the noun: name the defect"),
    ("for good", "permanently"),
    ("for ever", "forever, without end"),
    ("has|have the last word", "takes precedence"),
    ("to speak of", "to inspect; considerable"),
    ("in vain", "without success"),
    (". here is|are", "this machine has; there is"),
    ("^ what *", "a noun phrase or an imperative"),
    ("^ whether it|they", "Whether the ... (name the subject)"),
];

/// Words around a match that make it idiomatic: the pattern's first words, the word before or after.
const IDIOMS: [(&str, Beside); 7] = [
    // The rule balancing-off-nobody-places, whose id never changes.
    ("nobody", Beside::After(&["places"])),
    // "There is no node 7", "there are no more than four".
    ("is|are|was|were no *", Beside::Before(&["there"])),
    // Comparison and not identity: "is no longer", "is no slower than".
    (
        "is|are|was|were no *",
        Beside::Last(&[
            "longer",
            "more",
            "less",
            "fewer",
            "better",
            "worse",
            "slower",
            "faster",
            "larger",
            "smaller",
            "higher",
            "lower",
            "other",
            "one",
            "exception",
        ]),
    ),
    // "X stands for Y", "still standing".
    ("stand|stands|stood|standing", Beside::After(&["for", "by", "out"])),
    // "Each of which": a quantifier makes it idiomatic; "of which one is read" is not.
    (
        "of which",
        Beside::Before(&[
            "all", "any", "both", "each", "either", "first", "half", "last", "many", "most", "neither",
            "none", "one", "part", "several", "some", "that", "two",
        ]),
    ),
    // "In the memory of which node": a question and not a relative clause.
    ("of which", Beside::After(&["kind", "mode", "node", "order", "process", "release", "size"])),
    // "As `patch` reads it" is a clause; ", as `x`" alone wants "such as".
    (
        ", as `",
        Beside::After(&[
            "asks",
            "begins",
            "calls",
            "can",
            "counts",
            "describes",
            "did",
            "displays",
            "do",
            "does",
            "finds",
            "gives",
            "has",
            "leave",
            "lists",
            "mangles",
            "means",
            "names",
            "on",
            "prints",
            "reads",
            "says",
            "shows",
            "takes",
            "tells",
            "wants",
            "without",
            "works",
            "would",
            "writes",
        ]),
    ),
];

/// A place beside a match, and the words there that excuse it.
#[derive(Clone, Copy)]
enum Beside {
    Before(&'static [&'static str]),
    /// The last word of the match itself.
    Last(&'static [&'static str]),
    After(&'static [&'static str]),
}

/// Files whose wording is not ours or whose subject is the wording, with the reason.
const EXCEPTIONS: [(&str, &str); 2] = [
    // The patterns themselves.
    ("xtask/src/tidy/language.rs", ""),
    // The rule quotes what it forbids.
    ("CONTRIBUTING.md", "^ what *"),
];

/// A phrase to replace.
#[derive(Clone, Debug)]
pub struct Hit {
    area: Area,
    finding: Breach,
}

/// Hits per area.
pub struct Counts([usize; LIMITS.len()]);

impl Counts {
    /// Counts hits.
    pub fn new(hits: &[Hit]) -> Self {
        Self(LIMITS.map(|(area, _, _)| hits.iter().filter(|hit| hit.area == area).count()))
    }

    /// The hits of areas over their limit, or all of them; and one finding for each area over its limit
    /// that is not 0.
    pub fn findings(&self, hits: Vec<Hit>, listed: bool) -> Vec<Breach> {
        let over = |area: Area| {
            LIMITS.iter().zip(self.0).any(|((other, _, limit), count)| *other == area && count > *limit)
        };
        hits.into_iter().filter(|hit| listed || over(hit.area)).map(|hit| hit.finding).collect()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "language:")?;
        for ((index, (_, name, limit)), count) in LIMITS.iter().enumerate().zip(self.0) {
            let separator = if index == 0 { "" } else { "," };
            write!(f, "{separator} {name} {count} of at most {limit}")?;
        }
        Ok(())
    }
}

/// Checks a file.
pub fn check(path: &str, text: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    if path.ends_with(".rs") {
        rust(path, text, &mut hits);
    } else if path.ends_with(".md") {
        for passage in pages(text) {
            find(path, Area::Pages, &passage, &mut hits);
        }
    } else if path.ends_with(".toml") && (path.starts_with("scenarios/") || path.starts_with("suites/")) {
        for (line, text) in (1..).zip(text.lines()) {
            find(path, Area::Pages, &Passage::new(line, text, Head::Body), &mut hits);
        }
    }
    hits
}

/// Checks commits: `(hash, subject)`.
pub fn subjects(commits: &[(String, String)]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (hash, subject) in commits {
        let subject = subject.split_once(": ").map_or(subject.as_str(), |(_, subject)| subject);
        find(&format!("commit {hash}"), Area::Subjects, &Passage::new(1, subject, Head::Heading), &mut hits);
    }
    hits
}

fn rust(path: &str, text: &str, hits: &mut Vec<Hit>) {
    let source = Source::new(path, text);
    for literal in source.literals.iter().filter(|literal| !source.is_test(literal.line)) {
        // A line's end is written as an escape, or hidden by a backslash.
        let text = literal.text.replace("\\\n", " \n").replace("\\n", ". ").replace("\\\"", "\"");
        let passage = Passage::new(literal.line, &text, Head::Body);
        find(path, Area::Strings, &passage, hits);
    }
    let is_help = path.starts_with("crates/nodewise/src/cli") || path == "xtask/src/main.rs";
    for block in blocks(&source.comments) {
        let is_help = is_help && block.kind == "///";
        let area = if is_help { Area::Help } else { Area::Comments };
        find(path, area, &block.passage, hits);
    }
}

/// A piece of prose as words with their lines.
struct Passage {
    head: Head,
    words: Vec<(usize, String)>,
}

/// The beginning of a passage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    /// A heading of a page, or a commit's subject.
    Heading,
    /// The first line of a doc comment.
    FirstLine,
    Body,
}

impl Passage {
    fn new(line: usize, text: &str, head: Head) -> Self {
        let mut passage = Self { head, words: Vec::new() };
        passage.push(line, text);
        passage
    }

    /// Appends text that starts on a line.
    fn push(&mut self, first: usize, text: &str) {
        for (line, text) in (first..).zip(text.split('\n')) {
            let mut rest = text;
            while let Some(c) = rest.chars().next() {
                let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'');
                let (word, length) = match c {
                    // A piece of code or a placeholder is one word.
                    '`' => ("`", closed(rest, '`')),
                    '{' => ("{", closed(rest, '}')),
                    ',' => (",", 1),
                    '.' | ';' | ':' | '!' | '?' | '(' | ')' | '|' => (".", 1),
                    c if is_word(c) => {
                        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                        (&rest[..length], length)
                    }
                    c => ("", c.len_utf8()),
                };
                if !word.is_empty() {
                    self.words.push((line, word.to_lowercase()));
                }
                rest = &rest[length..];
            }
        }
    }
}

/// The length of a piece that ends with a character; 1 where it does not end.
fn closed(text: &str, end: char) -> usize {
    text[1..].find(end).map_or(1, |at| at + 2)
}

/// Comments that belong together.
struct Block {
    /// `//`, `///`, `//!`, or `/*`.
    kind: &'static str,
    /// The line after the last.
    next: usize,
    passage: Passage,
}

/// Joins line comments of the same kind on successive lines.
fn blocks(comments: &[Literal]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fenced = false;
    for comment in comments {
        let kinds = ["///", "//!", "//", "/*"];
        let Some(kind) = kinds.into_iter().find(|kind| comment.text.starts_with(kind)) else { continue };
        let text = &comment.text[kind.len()..];
        let next = comment.line + 1;
        let follows =
            blocks.last().is_some_and(|last| last.kind == kind && last.next == comment.line && kind != "/*");
        if !follows {
            fenced = false;
            let head = if matches!(kind, "///" | "//!") { Head::FirstLine } else { Head::Body };
            blocks.push(Block { kind, next, passage: Passage::new(comment.line, "", head) });
        }
        let is_fence = text.trim_start().starts_with("```");
        fenced ^= is_fence;
        if let Some(last) = blocks.last_mut() {
            last.next = next;
            if text.trim().is_empty() {
                last.passage.push(comment.line, ".");
            } else if !fenced && !is_fence {
                last.passage.push(comment.line, text);
            }
        }
    }
    blocks
}

/// The prose of a page: headings, paragraphs, rows of tables, and recorded output of nodewise.
fn pages(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let mut paragraph = Passage::new(1, "", Head::Body);
    // Within a fence: whether its text is ours.
    let mut fence: Option<Option<bool>> = None;
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let number = at + 1;
        if line.trim_start().starts_with("```") {
            fence = match fence {
                None => Some(None),
                Some(_) => None,
            };
            paragraph.push(number, ".");
            continue;
        }
        if let Some(ours) = &mut fence {
            // The first line names the program whose output follows.
            let is_ours = *ours.get_or_insert(line.contains("nodewise "));
            if !is_ours {
                continue;
            }
        }
        if fence.is_none() && line.starts_with('#') {
            passages.push(Passage::new(number, line.trim_start_matches('#'), Head::Heading));
        } else if line.trim().is_empty() {
            paragraph.push(number, ".");
        } else {
            paragraph.push(number, line);
        }
    }
    passages.push(paragraph);
    passages
}

/// Adds the matches of all patterns in a passage.
fn find(path: &str, area: Area, passage: &Passage, hits: &mut Vec<Hit>) {
    for (pattern, instead) in PATTERNS {
        if EXCEPTIONS.iter().any(|(file, except)| *file == path && (except.is_empty() || *except == pattern))
        {
            continue;
        }
        let parts: Vec<&str> = pattern.split(' ').collect();
        if let ["^", parts @ ..] = parts.as_slice() {
            if passage.head != Head::Body && matches(parts, &passage.words) {
                let area = match (passage.head, area) {
                    (Head::FirstLine, Area::Comments) => Area::FirstLines,
                    _ => area,
                };
                hits.push(hit(path, area, &passage.words[..parts.len()], instead));
            }
            continue;
        }
        for at in 0..passage.words.len() {
            if matches(&parts, &passage.words[at..]) && !is_idiom(pattern, &passage.words, at, parts.len()) {
                hits.push(hit(path, area, &passage.words[at..at + parts.len()], instead));
            }
        }
    }
}

fn hit(path: &str, area: Area, words: &[(usize, String)], instead: &str) -> Hit {
    let phrase: Vec<&str> = words.iter().map(|(_, word)| word.as_str()).collect();
    let phrase = phrase.join(" ");
    let line = words.first().map_or(1, |(line, _)| *line);
    Hit { area, finding: Breach::new(path, line, format!("\"{phrase}\": {instead}")) }
}

/// Whether words begin with a pattern's parts.
fn matches(parts: &[&str], words: &[(usize, String)]) -> bool {
    words.len() >= parts.len()
        && parts.iter().zip(words).all(|(part, (_, word))| match *part {
            "*" => word.chars().all(char::is_alphanumeric),
            part => part.split('|').any(|choice| choice == word),
        })
}

fn is_idiom(pattern: &str, words: &[(usize, String)], at: usize, length: usize) -> bool {
    let word = |at: Option<usize>| at.and_then(|at| words.get(at)).map_or("", |(_, word)| word.as_str());
    IDIOMS.iter().filter(|(of, _)| *of == pattern).any(|(_, beside)| match beside {
        Beside::Before(list) => list.contains(&word(at.checked_sub(1))),
        Beside::Last(list) => list.contains(&word(Some(at + length - 1))),
        Beside::After(list) => list.contains(&word(Some(at + length))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_hits(path: &str, text: &str, expected: &[(Area, usize, &str)]) {
        let hits = check(path, text);
        let found: Vec<(Area, usize, &str)> = hits
            .iter()
            .map(|hit| {
                let phrase = hit.finding.message.split('"').nth(1).unwrap();
                (hit.area, hit.finding.line, phrase)
            })
            .collect();
        assert_eq!(found, expected, "{path}: {text}");
    }

    #[test]
    fn phrases_are_found_in_strings_outside_tests() {
        check_hits("crates/a/src/b.rs", "x\nf(\"it is told so\")", &[(Area::Strings, 2, "told")]);
        check_hits(
            "crates/a/src/b.rs",
            "f(\"a {x} \\\n so\\n many so \\\n many\")",
            &[(Area::Strings, 2, "so many")],
        );
        check_hits("crates/a/tests/b.rs", "f(\"it is told so\")", &[]);
        check_hits("crates/a/src/b.rs", "#[cfg(test)]\nmod tests { f(\"told\") }", &[]);
    }

    #[test]
    fn phrases_are_found_across_the_lines_of_a_comment() {
        check_hits(
            "crates/a/src/b.rs",
            "/// One so\n/// many.\nfn f() {}",
            &[(Area::Comments, 1, "so many")],
        );
        check_hits("crates/a/src/b.rs", "// One so\nfn f() {}\n// many", &[]);
        check_hits("crates/a/src/b.rs", "/// One so.\n///\n/// Many", &[]);
        check_hits("crates/a/src/b.rs", "/// X\n/// ```\n/// told();\n/// ```", &[]);
        check_hits("crates/a/tests/b.rs", "// told", &[(Area::Comments, 1, "told")]);
    }

    #[test]
    fn help_has_an_area_of_its_own() {
        check_hits("crates/nodewise/src/cli/show.rs", "/// What to show\nx", &[(Area::Help, 1, "what to")]);
        check_hits("crates/nodewise/src/cli/show.rs", "//! Anew.", &[(Area::Comments, 1, "anew")]);
    }

    #[test]
    fn first_lines_and_headings_are_phrases() {
        check_hits("crates/a/src/b.rs", "/// What it is.\nx", &[(Area::FirstLines, 1, "what it")]);
        check_hits("crates/a/src/b.rs", "/// Whether it is.\nx", &[(Area::FirstLines, 1, "whether it")]);
        check_hits("crates/a/src/b.rs", "/// Whether the node is.\n/// What it is.\nx", &[]);
        check_hits("docs/a.md", "## What it is\n\nWhat it is.", &[(Area::Pages, 1, "what it")]);
    }

    #[test]
    fn pages_are_checked_with_our_output_and_without_that_of_others() {
        check_hits("docs/a.md", "x\n```text\n$ nodewise show\ntold\n```\n", &[(Area::Pages, 4, "told")]);
        check_hits("docs/a.md", "x\n```text\n$ numactl -H\ntold\n```\n", &[]);
        check_hits("docs/a.md", "`told` and | so | many |", &[]);
        check_hits("scenarios/a.toml", "# one\n# told", &[(Area::Pages, 2, "told")]);
        check_hits("Cargo.toml", "# told", &[]);
    }

    #[test]
    fn idioms_are_accepted() {
        check_hits("docs/a.md", "There is no node 7, and it is no longer there.", &[]);
        check_hits("docs/a.md", "X stands for Y. X stands there.", &[(Area::Pages, 1, "stands")]);
        check_hits("docs/a.md", "This is no node.", &[(Area::Pages, 1, "is no node")]);
        check_hits("docs/a.md", "names, as `x`; names, such as `x`", &[(Area::Pages, 1, ", as `")]);
    }

    #[test]
    fn subjects_of_commits_are_checked_after_their_area() {
        let commit = |subject: &str| subjects(&[("1a2b3c".to_owned(), subject.to_owned())]).len();
        assert_eq!(commit("view: what a review found"), 2);
        assert_eq!(commit("view: captions of pictures"), 0);
    }

    #[test]
    fn hits_within_the_limit_are_counted_and_those_over_it_are_findings() {
        let comments = |count: usize| check("crates/a/src/b.rs", &"// told\n\n".repeat(count));
        let findings = |count: usize, listed| Counts::new(&comments(count)).findings(comments(count), listed);
        let limit = LIMITS.iter().find(|(area, _, _)| *area == Area::Comments).unwrap().2;
        assert_eq!(findings(limit, false), []);
        assert_eq!(findings(limit, true).len(), limit);
        assert_eq!(findings(limit + 1, false).len(), limit + 1);
        let counts = Counts::new(&comments(3)).to_string();
        assert!(counts.contains(&format!("comments 3 of at most {limit}")), "{counts}");
    }
}
