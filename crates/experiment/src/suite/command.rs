//! Commands of a suite: lines for the shell with places to fill in.
//!
//! | place | is |
//! |---|---|
//! | `{threads}` | the number of threads |
//! | `{inputs}` | the folder of the suite's inputs |
//! | `{nodewise}` | this program |
//!
//! Any other word of small letters in braces is refused, for it is a place mistyped more likely than a
//! word of the shell; `${name}` and braces with anything else in them are the shell's.

use std::path::Path;

use crate::shell;

/// The words that can be in braces.
const PLACES: [&str; 3] = ["threads", "inputs", "nodewise"];

/// A line for the shell with places to fill in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    text: String,
}

/// Why a text is not a command of a suite.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("the command is empty: expected a line for the shell")]
    Empty,
    /// A byte that no argument can hold.
    #[error("the command holds a NUL, which no argument can")]
    Nul,
    /// A place that there is not.
    #[error("unknown placeholder {{{0}}}: expected {{threads}}, {{inputs}} or {{nodewise}}")]
    NoSuchPlace(String),
}

/// The values of the places in a command.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    pub threads: u32,
    /// The folder of the inputs.
    pub inputs: &'a Path,
    pub nodewise: &'a Path,
}

impl Command {
    /// Reads a command.
    ///
    /// # Errors
    /// An empty line, and a place that there is not.
    pub fn new(text: &str) -> Result<Self, CommandError> {
        if text.trim().is_empty() {
            return Err(CommandError::Empty);
        }
        if text.contains('\0') {
            return Err(CommandError::Nul);
        }
        match places(text).find(|(_, word)| !PLACES.contains(word)) {
            Some((_, word)) => Err(CommandError::NoSuchPlace(word.to_owned())),
            None => Ok(Self { text: text.to_owned() }),
        }
    }

    /// The line as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the line has this word in braces in it: `{threads}`.
    pub fn names(&self, word: &str) -> bool {
        self.text.contains(word)
    }

    /// The line with everything filled in. Paths are quoted where the shell needs it.
    pub fn fill(&self, with: &Places<'_>) -> String {
        let mut filled = String::with_capacity(self.text.len());
        let mut end = 0;
        for (start, word) in places(&self.text) {
            filled.push_str(&self.text[end..start]);
            end = start + word.len() + 2;
            match word {
                "threads" => filled.push_str(&with.threads.to_string()),
                "inputs" => filled.push_str(&quoted(with.inputs)),
                _ => filled.push_str(&quoted(with.nodewise)),
            }
        }
        filled + &self.text[end..]
    }
}

/// A path as one word of the shell.
pub(super) fn quoted(path: &Path) -> String {
    shell::word(&path.to_string_lossy()).into_owned()
}

/// The words of small letters in braces, with where their brace opens.
fn places(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('{').filter_map(move |(at, _)| {
        let word = text[at + 1..].split_once('}')?.0;
        let is_place = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
        (is_place && !text[..at].ends_with('$')).then_some((at, word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn check(text: &str, expected: Result<&str, &str>) {
        let places =
            Places { threads: 4, inputs: Path::new("/tmp/a b"), nodewise: Path::new("/bin/nodewise") };
        let filled =
            Command::new(text).map(|command| command.fill(&places)).map_err(|error| error.to_string());
        assert_eq!(filled, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn places_are_filled_and_the_shells_braces_left_alone() {
        check(
            "xz -T{threads} {inputs}/text; {nodewise} show",
            Ok("xz -T4 '/tmp/a b'/text; /bin/nodewise show"),
        );
        check("awk '{ print $1 }' ${threads} {1..3} {", Ok("awk '{ print $1 }' ${threads} {1..3} {"));
        check("{{threads}}", Ok("{4}"));
    }

    #[test]
    fn places_that_there_are_not_are_named() {
        check(
            "xz -T{thraeds}",
            Err("unknown placeholder {thraeds}: expected {threads}, {inputs} or {nodewise}"),
        );
        check(" \n", Err("the command is empty: expected a line for the shell"));
        check("a\0b", Err("the command holds a NUL, which no argument can"));
    }

    #[test]
    fn a_quote_in_a_path_stays_inside_its_word() {
        assert_eq!(quoted(Path::new("it's")), "\"it's\"");
    }

    proptest! {
        #[test]
        fn a_text_without_places_is_filled_as_it_is(text in any::<String>()) {
            let places = Places { threads: 1, inputs: Path::new("i"), nodewise: Path::new("n") };
            if let Ok(command) = Command::new(&text) {
                let filled = command.fill(&places);
                let has_place = PLACES.iter().any(|place| text.contains(&format!("{{{place}}}")));
                prop_assert!(has_place || filled == text);
                prop_assert_eq!(command.text(), text);
            }
        }
    }
}
