//! numactl, numastat and their friends: what this program is when it is called by one of their names
//! or with one of their names as its verb.

use std::ffi::OsString;
use std::io::{self, BufWriter};

use nodewise_compat::{Call, Tool};
use nodewise_source::Detail;
use nodewise_source::tree::Tree;

use crate::cli::Global;
use crate::failure::Outcome;

/// Runs the tool whose name this program was called by; `None` when it is not a tool's. Comes before
/// everything else in `main`: tools start a thousand times an hour, and have nothing to do with our
/// options.
pub fn by_name() -> Option<u8> {
    let name = std::env::args_os().next()?;
    Tool::named(&name)?;
    let tree = Tree::live();
    let call = Call::from_words(std::env::args_os(), &tree)?;
    Some(run(&call))
}

/// `nodewise numactl ...`: the tool on the machine that `--machine` names.
pub fn by_verb(tool: Tool, words: &[OsString], global: &Global) -> Outcome {
    let tree = if crate::input::is_live(&global.machine) {
        Tree::live()
    } else {
        crate::input::load(&global.machine, Detail::Overview)?.into_tree()
    };
    Ok(run(&Call::new(tool, words.to_vec(), &tree)))
}

/// Both streams are held back until they are full or the tool wants them seen: a table is one call
/// and not one per line.
fn run(call: &Call<'_>) -> u8 {
    let (stdout, stderr) = (io::stdout().lock(), io::stderr().lock());
    nodewise_compat::run(call, &mut BufWriter::new(stdout), &mut BufWriter::new(stderr))
}
