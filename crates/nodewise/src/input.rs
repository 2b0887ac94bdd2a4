//! Input: the machine that `--machine` names, and files that an option names.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nodewise_machine::{DeviceRef, Machine, NodeId, Origin};
use nodewise_source::devices::node_of_device;
use nodewise_source::tree::{Tree, read_bounded};
use nodewise_source::{Detail, input, written};

use crate::cli::Supplied;
use crate::failure::Failure;
use crate::{firmware, supplied};

/// A machine, and its files where it was read from some.
pub struct Input {
    pub machine: Machine,
    tree: Option<Tree>,
}

impl Input {
    /// No machine at all: for a verb that turns out not to need one.
    pub fn none() -> Self {
        Self { machine: Machine::new(Origin::Live), tree: None }
    }

    /// The node of a device; the error is a finished sentence.
    pub fn node_of(&self, device: &DeviceRef) -> Result<NodeId, String> {
        node_of_device(self.tree.as_ref(), &self.machine, device).map_err(|error| error.to_string())
    }

    /// The files, or those that a kernel of this machine would show.
    pub fn into_tree(self) -> Tree {
        self.tree.unwrap_or_else(|| written::tree_of(&self.machine))
    }

    /// The files, for a verb that wants to write them down.
    pub fn tree(&self) -> Option<&Tree> {
        self.tree.as_ref()
    }
}

/// Reads the machine that `--machine` names.
///
/// # Errors
/// A sentence that begins with the option.
pub fn open(text: &str, detail: Detail) -> Result<Input, String> {
    named(text, detail).map_err(firmware::of_machine)
}

/// Reads a machine that an argument names in the words of `--machine`.
///
/// # Errors
/// A sentence that begins with what was typed.
pub fn named(text: &str, detail: Detail) -> Result<Input, String> {
    if let Some(machine) = firmware::open(text) {
        return Ok(Input { machine: machine?, tree: None });
    }
    let input = input::open(text, detail).map_err(|error| error.to_string())?;
    Ok(Input { machine: input.machine, tree: input.tree })
}

/// As [`open`], for verbs whose wrong usage is exit code 2.
///
/// # Errors
/// As [`open`].
pub fn load(text: &str, detail: Detail) -> Result<Input, Failure> {
    open(text, detail).map_err(Failure::usage)
}

/// As [`load`], with the facts that were typed.
///
/// # Errors
/// As [`load`], and what is wrong with the facts.
pub fn load_for(typed: &Supplied, machine: &str, detail: Detail) -> Result<Input, Failure> {
    let mut input = load(machine, detail)?;
    supplied::add(&mut input.machine, typed).map_err(Failure::usage)?;
    Ok(input)
}

/// Reads a file of text as a whole.
///
/// # Errors
/// Why it cannot be read, without its name; one that is larger than `most` is not.
pub fn read_text(path: &Path, most: u64) -> Result<String, String> {
    let bytes = read_bounded(path, most).map_err(|cause| cause.to_string())?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("it is not text: byte {at} is not UTF-8")
    })
}

/// Dates the running machine, for forms that are kept: other sources give their own time, or none.
pub fn date(machine: &mut Machine, text: &str) {
    if is_live(text) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        machine.read_at = now.map(|now| UNIX_EPOCH + Duration::from_secs(now.as_secs()));
    }
}

/// Whether `--machine` names the running system.
pub fn is_live(text: &str) -> bool {
    text == "live"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "1234").unwrap();
        assert_eq!(read_text(&path, 4), Ok("1234".to_owned()));
        assert_eq!(read_text(&path, 3), Err("it is larger than 3 B".to_owned()));
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_text(&path, 4), Err("it is not text: byte 0 is not UTF-8".to_owned()));
        let none = read_text(&folder.path().join("none"), 4).unwrap_err();
        assert!(!none.contains("os error"), "{none}");
    }
}
