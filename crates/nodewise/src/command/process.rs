//! The process that words name.

use nodewise_machine::Pid;
use nodewise_machine::printable::quote;
use nodewise_source::process::search;
use nodewise_source::tree::Tree;

use crate::failure::Failure;

/// Processes that are listed.
const LISTED: usize = 20;

/// Finds the process with a number or a name.
///
/// # Errors
/// A name that no process has, or several have. A number is not looked up.
pub fn find(tree: &Tree, text: &str) -> Result<Pid, Failure> {
    if is_number(text) {
        let number =
            text.parse().map_err(|_| Failure::cannot(format_args!("process {text} does not exist")))?;
        return Ok(Pid::new(number));
    }
    let mut found = search::named(tree, text).map_err(Failure::cannot)?;
    found.retain(|pid| pid.number() != std::process::id());
    match found[..] {
        [] => Err(Failure::cannot(format_args!("no process is named {}", quote(text)))),
        [pid] => Ok(pid),
        _ => Err(several(text, &found)),
    }
}

/// Whether a text is the number of a process, and not a name.
pub fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The refusal of a name that several processes have.
pub fn several(name: &str, found: &[Pid]) -> Failure {
    Failure::usage(format_args!(
        "{} processes are named {}: expected one of the numbers {}",
        found.len(),
        quote(name),
        listed(found)
    ))
}

/// The first of many things, and how many more there are.
pub fn listed(things: &[impl ToString]) -> String {
    let mut words: Vec<String> = things.iter().take(LISTED).map(ToString::to_string).collect();
    if let Some(more) = things.len().checked_sub(LISTED).filter(|more| *more > 0) {
        words.push(format!("{more} more"));
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_source::tree::Memory;

    #[test]
    fn a_process_is_found_by_its_name() {
        let files = [(5, "one"), (6, "two"), (7, "two")].into_iter();
        let tree = files.fold(Memory::new(), |files, (pid, name)| {
            files.file(&format!("/proc/{pid}/comm"), format!("{name}\n"))
        });
        let tree = Tree::memory(tree);
        assert_eq!(find(&tree, "one").unwrap(), Pid::new(5));
        assert_eq!(find(&tree, "12").unwrap(), Pid::new(12));
        let refused = find(&tree, "two").unwrap_err().message;
        assert_eq!(refused, "2 processes are named \"two\": expected one of the numbers 6, 7");
        assert_eq!(find(&tree, "three").unwrap_err().message, "no process is named \"three\"");
        assert_eq!(find(&tree, "+12").unwrap_err().message, "no process is named \"+12\"");
    }
}
