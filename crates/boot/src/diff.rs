//! How a change of a text is shown: a unified diff, as `patch` reads it.

use similar::TextDiff;

/// The difference between two texts of a file, empty where there is none.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    // Cut at line feeds alone, as `patch` does: similar's own lines end at a carriage return too.
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<&str>>();
    let (old, new) = (lines(old), lines(new));
    let diff = TextDiff::configure().newline_terminated(true).diff_slices(&old, &new);
    let path = path.trim_start_matches('/');
    diff.unified_diff().header(&format!("a/{path}"), &format!("b/{path}")).to_string()
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
