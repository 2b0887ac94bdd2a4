//! How a change of a text is shown: a unified diff, as `patch` reads it.

use std::fmt::Write as _;
use std::ops::Range;

/// Lines that stand around a change.
const CONTEXT: usize = 3;
/// Pairs of lines that are compared at most; a larger change is shown as all old and all new lines.
const MOST_PAIRS: usize = 1 << 20;

/// A piece of two texts: the same lines in both, or lines of one in place of those of the other.
#[derive(Clone, Debug)]
struct Piece {
    same: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// The difference between two texts of a file, empty where there is none.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    let (before, after) = (lines(old), lines(new));
    let hunks = hunks(&pieces(&before, &after));
    if hunks.is_empty() {
        return String::new();
    }
    let path = path.trim_start_matches('/');
    let mut text = format!("--- a/{path}\n+++ b/{path}\n");
    for hunk in hunks {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let old = first.old.start..last.old.end;
        let new = first.new.start..last.new.end;
        let _ = writeln!(text, "@@ -{} +{} @@", place(&old), place(&new));
        for piece in &hunk {
            if piece.same {
                add(&mut text, ' ', &before[piece.old.clone()]);
            } else {
                add(&mut text, '-', &before[piece.old.clone()]);
                add(&mut text, '+', &after[piece.new.clone()]);
            }
        }
    }
    text
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Where a range stands, in the form of hunks: an empty one is named by the line before it.
fn place(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        count => format!("{},{count}", range.start + 1),
    }
}

fn add(text: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        text.push(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Cuts two texts into pieces.
fn pieces(old: &[&str], new: &[&str]) -> Vec<Piece> {
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let (middle_old, middle_new) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let mut pairs: Vec<(usize, usize)> = (0..start).map(|at| (at, at)).collect();
    pairs.extend(common(middle_old, middle_new).into_iter().map(|(old, new)| (old + start, new + start)));
    pairs.extend((0..end).map(|at| (old.len() - end + at, new.len() - end + at)));
    pairs.push((old.len(), new.len()));
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut at_old, mut at_new) = (0, 0);
    for (same_old, same_new) in pairs {
        if at_old < same_old || at_new < same_new {
            pieces.push(Piece { same: false, old: at_old..same_old, new: at_new..same_new });
        }
        if same_old < old.len() {
            match pieces.last_mut() {
                Some(last) if last.same => (last.old.end, last.new.end) = (same_old + 1, same_new + 1),
                _ => pieces.push(Piece {
                    same: true,
                    old: same_old..same_old + 1,
                    new: same_new..same_new + 1,
                }),
            }
        }
        (at_old, at_new) = (same_old + 1, same_new + 1);
    }
    pieces
}

/// The longest run of lines that both have in this order, as pairs of places.
fn common(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let width = new.len() + 1;
    if old.len().saturating_add(1).saturating_mul(width) > MOST_PAIRS {
        return Vec::new();
    }
    let mut length = vec![0_u32; (old.len() + 1) * width];
    for at_old in (0..old.len()).rev() {
        for at_new in (0..new.len()).rev() {
            length[at_old * width + at_new] = if old[at_old] == new[at_new] {
                length[(at_old + 1) * width + at_new + 1] + 1
            } else {
                length[(at_old + 1) * width + at_new].max(length[at_old * width + at_new + 1])
            };
        }
    }
    let (mut at_old, mut at_new, mut pairs) = (0, 0, Vec::new());
    while at_old < old.len() && at_new < new.len() {
        if old[at_old] == new[at_new] {
            pairs.push((at_old, at_new));
            (at_old, at_new) = (at_old + 1, at_new + 1);
        } else if length[(at_old + 1) * width + at_new] >= length[at_old * width + at_new + 1] {
            at_old += 1;
        } else {
            at_new += 1;
        }
    }
    pairs
}

/// Groups pieces into hunks: changes with the lines around them.
fn hunks(pieces: &[Piece]) -> Vec<Vec<Piece>> {
    let mut hunks: Vec<Vec<Piece>> = Vec::new();
    let mut open: Vec<Piece> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if !piece.same {
            open.push(piece.clone());
            continue;
        }
        let (first, last) = (at == 0, at + 1 == pieces.len());
        let count = piece.old.len();
        if !first && !last && count <= 2 * CONTEXT {
            open.push(piece.clone());
            continue;
        }
        if !first {
            let end = count.min(CONTEXT);
            open.push(part(piece, 0..end));
            hunks.push(std::mem::take(&mut open));
        }
        if !last {
            open.push(part(piece, count.saturating_sub(CONTEXT)..count));
        }
    }
    if open.iter().any(|piece| !piece.same) {
        hunks.push(open);
    }
    hunks
}

fn part(piece: &Piece, part: Range<usize>) -> Piece {
    let shift = |range: &Range<usize>| range.start + part.start..range.start + part.end;
    Piece { same: true, old: shift(&piece.old), new: shift(&piece.new) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    #[test]
    fn a_changed_line_stands_between_its_neighbours() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        assert_eq!(
            unified("/etc/x", old, &old.replace('5', "five")),
            "--- a/etc/x\n+++ b/etc/x\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
    }

    #[test]
    fn a_line_without_an_end_is_marked() {
        assert_eq!(
            unified("/c", "a rootwait", "a b rootwait"),
            "--- a/c\n+++ b/c\n@@ -1 +1 @@\n-a rootwait\n\\ No newline at end of file\n+a b rootwait\n\\ No newline at end of file\n"
        );
        assert_eq!(unified("/c", "", "a\n"), "--- a/c\n+++ b/c\n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(unified("/c", "a\n", "a\n"), "");
    }

    /// Applies a diff by its line numbers.
    fn patch(old: &str, diff: &str) -> String {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut new, mut at) = (String::new(), 0);
        for line in diff.split_inclusive('\n').skip(2) {
            if let Some(hunk) = line.strip_prefix("@@ -") {
                let place = hunk.split(' ').next().unwrap_or_default();
                let (start, count) = place.split_once(',').unwrap_or((place, "1"));
                let start: usize = start.parse().expect("a number");
                let start = if count == "0" { start } else { start - 1 };
                new.extend(old[at..start].iter().copied());
                at = start;
            } else if line.starts_with('\\') {
                assert_eq!(new.pop(), Some('\n'));
            } else if let Some(added) = line.strip_prefix('+') {
                new.push_str(added);
            } else {
                let same = &line[1..];
                assert_eq!(old[at].trim_end_matches('\n'), same.trim_end_matches('\n'));
                at += 1;
                if line.starts_with(' ') {
                    new.push_str(same);
                } else {
                    // A mark that the line has no end belongs to this line, which is gone.
                    new.push_str(if old[at - 1].ends_with('\n') { "" } else { "\n" });
                }
            }
        }
        new.extend(old[at..].iter().copied());
        new
    }

    proptest! {
        #[test]
        fn the_new_text_follows_from_the_old_and_the_difference(old in "([abc]{0,1}\n){0,20}a?", new in "([abc]{0,1}\n){0,20}a?") {
            let diff = unified("/x", &old, &new);
            let patched = if diff.is_empty() { old.clone() } else { patch(&old, &diff) };
            prop_assert_eq!(patched, new, "{}", diff);
        }
    }
}
