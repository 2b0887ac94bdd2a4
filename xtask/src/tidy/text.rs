//! Rules for every file that is text.

use super::Breach;

/// Folders of the machines on which people work, with what may follow them: nothing in the
/// repository may depend on where it lies.
const PLACES: [&str; 3] = ["/root/", "/home/", "/work/"];
/// Names for users in examples and tests.
const EXAMPLES: [&str; 4] = ["user", "me", "alice", "bob"];
/// tidy itself names what it looks for.
const OWN: &str = "xtask/src/tidy/";

/// Checks a file for paths of somebody's machine.
pub fn check(path: &str, text: &str) -> Vec<Breach> {
    if path.starts_with(OWN) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for place in PLACES {
            for (at, _) in line.match_indices(place) {
                if is_machine_path(&line[..at], place, &line[at + place.len()..]) {
                    let message = format!("a path below {place}: another machine does not have it");
                    findings.push(Breach::new(path, number, message));
                }
            }
        }
    }
    findings
}

fn is_machine_path(before: &str, place: &str, after: &str) -> bool {
    // Part of a longer path or of a pattern: upper/work/, {dir}/root/.
    let starts = !before.ends_with(|c: char| c.is_alphanumeric() || "._-}$~*".contains(c));
    let name: String = after.chars().take_while(|c| c.is_alphanumeric() || "._-".contains(*c)).collect();
    starts && !name.is_empty() && !(place == "/home/" && EXAMPLES.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_line(line: &str, expected: usize) {
        assert_eq!(check("README.md", line).len(), expected, "{line}");
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        check_line("see /root/.cache", 1);
        check_line("`/home/kim/src` and /work/main", 2);
        check_line("path=/work/x", 1);
        assert_eq!(check("a", "x\n/root/x")[0].line, 2);
    }

    #[test]
    fn what_looks_like_one_is_not() {
        check_line("/home/user/x, /home/alice", 0);
        check_line("upper/work/x {root}/root/x", 0);
        check_line("\"/root\" \"/home\" /workload/x", 0);
        check_line("/home/ and /root/ are folders", 0);
        check_line("https://example.org/work/x", 0);
    }
}
