//! What `--machine` names: the one place where a verb gets its machine.

use nodewise_machine::{DeviceRef, Machine, NodeId, Origin};
use nodewise_source::devices::node_of_device;
use nodewise_source::tree::Tree;
use nodewise_source::{Detail, input, written};

use crate::failure::Failure;
use crate::firmware;

/// A machine, and its files where it was read from some.
pub struct Input {
    /// The machine.
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
/// A sentence that begins with what was typed.
pub fn open(text: &str, detail: Detail) -> Result<Input, String> {
    if let Some(machine) = firmware::open(text) {
        return Ok(Input { machine: machine?, tree: None });
    }
    let input = input::open(text, detail).map_err(|error| format!("--machine: {error}"))?;
    Ok(Input { machine: input.machine, tree: input.tree })
}

/// As [`open`], for verbs whose wrong usage is exit code 2.
///
/// # Errors
/// As [`open`].
pub fn load(text: &str, detail: Detail) -> Result<Input, Failure> {
    open(text, detail).map_err(Failure::usage)
}

/// Whether `--machine` names the running system.
pub fn is_live(text: &str) -> bool {
    text == "live"
}
