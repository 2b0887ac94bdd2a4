//! Drawn scripts, played by the kernel and by the model side by side: the answer to every call, the
//! node of every page after it, and the policies.

use nodewise_conformance::{Arena, Drawer, Prediction, program};

use super::model::{memory, release};
use crate::nodewise::Context;

/// Scripts that are reported in full when many differ.
const MOST_TOLD: usize = 3;
/// The word that makes this program the one that a script starts.
pub const PROGRAM: &str = "--pages";

/// Plays the scripts of the guest.
pub fn play(context: &Context) -> Result<(), String> {
    let arena = arena(context, Prediction::new(release(context)))?;
    let mut wrong = Vec::new();
    for number in context.scripts.clone() {
        let script = Drawer::script(&context.seen, number);
        let (done, trace) = arena.play(&script);
        if let Err(why) = done {
            let played = script.without(trace.played..script.calls.len()).lines();
            wrong.push(format!("script {number}: {why}\n  after {}", played.join("\n        ")));
        }
    }
    let count = wrong.len();
    wrong.truncate(MOST_TOLD);
    if wrong.is_empty() { Ok(()) } else { Err(format!("{count} scripts differ:\n{}", wrong.join("\n"))) }
}

fn arena(context: &Context, prediction: Prediction) -> Result<Arena, String> {
    let own = std::env::current_exe().expect("a test knows its own path");
    let program = vec![own.to_string_lossy().into_owned(), PROGRAM.to_owned()];
    Arena::new(context.seen.clone(), memory(context)?, prediction, program)
}

/// Is the program that a script starts.
pub fn program(pages: &str) {
    let pages = pages.parse().expect("a number of pages");
    println!("{}", program::run(pages).expect("pages for a program of a script"));
}
