//! The size of commits: one that is too long to read in a sitting, or to bisect, is a finding.
//!
//! Lines count once, whether they are new, replaced or deleted. Lines that only move, from file to file or
//! within one, do not count, and neither do files that a program writes or that record an answer.

use std::collections::HashMap;

use super::Breach;

/// Most changed lines of a commit (CONTRIBUTING.md, "Commits").
const MOST_LINES: usize = 1_500;
/// Marks the line of a commit in the output of `git log`; no line of a diff begins so.
const MARK: char = '\u{1}';
/// The form in which `git log` is to print a commit: its mark, hash, parents and subject.
pub const FORMAT: &str = "--format=%x01%h%x09%p%x09%s";

/// Parts of paths whose files do not count: recorded answers and data, pictures, lists of versions, pages that tests write.
const EXEMPT: [&str; 9] = [
    "/golden",
    "data/",
    "fuzz/seeds/",
    ".svg",
    "Cargo.lock",
    "-regressions",
    "docs/options.md",
    "docs/rules.md",
    "packaging/man/nodewise",
];

/// A commit, and the lines that it changes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Commit {
    hash: String,
    subject: String,
    changed: usize,
}

/// The commits of a `git log -p -U0 -M` in [`FORMAT`] that change more than [`MOST_LINES`].
///
/// A commit without a parent is passed over: it is the first of all, or the end of a shallow clone, where it
/// seems to add every file.
pub fn check(log: &str) -> Vec<Breach> {
    let large = log.split(MARK).filter_map(Commit::parse).filter(|commit| commit.changed > MOST_LINES);
    large
        .map(|commit| {
            let Commit { hash, subject, changed } = commit;
            let message = format!(
                "\"{subject}\" changes {changed} lines: expected at most {MOST_LINES}, without moved lines, recorded \
                 answers and data"
            );
            Breach::new(format!("commit {hash}"), 1, message)
        })
        .collect()
}

impl Commit {
    fn parse(entry: &str) -> Option<Self> {
        let (head, diff) = entry.split_once('\n').unwrap_or((entry, ""));
        let mut fields = head.splitn(3, '\t');
        let (hash, parents, subject) = (fields.next()?, fields.next()?, fields.next()?);
        if parents.is_empty() {
            return None;
        }
        Some(Self { hash: hash.to_owned(), subject: subject.to_owned(), changed: changed(diff) })
    }
}

/// The lines that a diff without context changes.
fn changed(diff: &str) -> usize {
    let (mut counts, mut in_header) = (false, true);
    let (mut added, mut removed) = (0_usize, 0_usize);
    // How often each text was added, and removed.
    let mut texts: HashMap<&str, (usize, usize)> = HashMap::new();
    for line in diff.lines() {
        if let Some(paths) = line.strip_prefix("diff --git ") {
            (in_header, counts) = (true, !EXEMPT.iter().any(|part| paths.contains(part)));
        } else if line.starts_with("@@") {
            in_header = false;
        } else if counts && !in_header {
            match line.split_at_checked(1) {
                Some(("+", text)) if !text.trim().is_empty() => {
                    added += 1;
                    texts.entry(text.trim()).or_default().0 += 1;
                }
                Some(("-", text)) if !text.trim().is_empty() => {
                    removed += 1;
                    texts.entry(text.trim()).or_default().1 += 1;
                }
                _ => {}
            }
        }
    }
    let moved: usize = texts.values().map(|(added, removed)| added.min(removed)).sum();
    added.max(removed) - moved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(path: &str, added: &[String], removed: &[String]) -> String {
        let lines = |sign: char, lines: &[String]| {
            lines.iter().map(|line| format!("{sign}{line}\n")).collect::<String>()
        };
        format!(
            "\ndiff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n{}{}",
            lines('-', removed),
            lines('+', added)
        )
    }

    fn numbered(name: &str, count: usize) -> Vec<String> {
        (0..count).map(|number| format!("{name} {number}")).collect()
    }

    fn check_size(expected: usize, diffs: &[String]) {
        let log = format!("\u{1}1a2b\t3c4d\tview: captions{}", diffs.concat());
        let commit = Commit::parse(log.strip_prefix('\u{1}').unwrap()).unwrap();
        assert_eq!(commit.changed, expected, "{log}");
    }

    #[test]
    fn changed_lines_count_once_and_moved_ones_do_not() {
        let (old, new) = (numbered("old", 3), numbered("new", 5));
        check_size(0, &[]);
        check_size(5, &[diff("src/a.rs", &new, &old)]);
        check_size(3, &[diff("src/a.rs", &[], &old)]);
        check_size(0, &[diff("src/a.rs", &[], &old), diff("src/b.rs", &old, &[])]);
        check_size(0, &[diff("src/a.rs", &[String::new(), "  ".to_owned()], &[])]);
        check_size(0, &[diff("crates/a/tests/golden/x.txt", &new, &old), diff("docs/svg/a.svg", &new, &[])]);
        // A line of the file that looks like a header of the diff is one of the file.
        check_size(1, &[diff("src/a.rs", &["++ b/src/b.rs".to_owned()], &[])]);
    }

    #[test]
    fn a_large_commit_is_a_finding_with_its_subject_and_one_without_parents_is_none() {
        let large = diff("src/a.rs", &numbered("line", MOST_LINES + 1), &[]);
        let small = diff("src/a.rs", &numbered("line", MOST_LINES), &[]);
        let log = format!(
            "\u{1}1a2b\t3c4d\tview: all of it\n{large}\n\u{1}3c4d\t5e6f\tview: a part\n{small}\n\u{1}5e6f\t\tthe tree\n{large}"
        );
        let found: Vec<String> = check(&log).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "commit 1a2b:1: \"view: all of it\" changes 1501 lines: expected at most 1500, without moved lines, \
              recorded answers and data"
            ]
        );
        assert_eq!(check(""), []);
    }
}
