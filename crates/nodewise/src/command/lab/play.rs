//! The part of `nodewise lab --check` that runs in a guest.

use nodewise_conformance::{
    Arena, Outcome as Played, Prediction, ScriptId, ScriptKind, Shrinking, kernel, program,
};
use nodewise_machine::KernelRelease;
use nodewise_model::{BuiltAt, Release};
use nodewise_source::Detail;

use super::fail;
use crate::failure::{Failure, Outcome};
use crate::zones::Zones;
use crate::{input, output};

/// The option that names the scripts to play, and the one that names the pages of a program.
pub const PLAY: &str = "--play";
const PAGES: &str = "--pages";
/// Scripts of a guest that are shrunk; each takes some seconds to two minutes.
const SHRUNK: usize = 8;

/// Plays scripts, given as `FIRST-LAST`, of some kinds, by the rules of a release or of this kernel's, and reports each in a line.
pub fn run(scripts: &str, kinds: &[ScriptKind], model: Option<&KernelRelease>) -> Outcome {
    let number = |text: &str| text.parse::<u64>().ok();
    let range = scripts.split_once('-').and_then(|(first, last)| Some((number(first)?, number(last)?)));
    let (first, last) = range.ok_or_else(|| Failure::usage(format_args!("{PLAY} takes FIRST-LAST")))?;
    let arena = arena(model)?;
    let mut differ = 0;
    for id in kinds.iter().flat_map(|kind| (first..=last).map(|number| ScriptId { kind: *kind, number })) {
        let shrinking = if differ < SHRUNK { Shrinking::Fully } else { Shrinking::Not };
        let played = Played::new(&arena, id, shrinking);
        differ += usize::from(matches!(played, Played::Differs(_)));
        output::print(&(played.line(id) + "\n"))?;
    }
    Ok(0)
}

/// The running system with its memory as it is now.
fn arena(model: Option<&KernelRelease>) -> Result<Arena, Failure> {
    // A small node may be full of what was read while the guest was booted, which the kernel drops for programs.
    kernel::drop_page_cache().map_err(fail)?;
    // The kernel reports watermarks with the pages by which they are raised.
    kernel::lower_watermarks().map_err(fail)?;
    let input = input::load("live", Detail::Full)?;
    let release = Release::from_kernel(model.or(input.machine.kernel.as_ref()));
    let zones = Zones::from_input(&input, release)?;
    let memory = zones.memory(&input.machine, BuiltAt::Boot, release);
    let own = std::env::current_exe().map_err(fail)?;
    let program = [own.to_string_lossy().as_ref(), "lab", PAGES].map(str::to_owned).to_vec();
    Arena::new(input.machine.clone(), memory, Prediction::new(release), program).map_err(fail)
}

/// Is the program that a script starts.
pub fn pages(count: u64) -> Outcome {
    let text = program::run(count).map_err(fail)?;
    output::print(&(text + "\n"))?;
    Ok(0)
}
