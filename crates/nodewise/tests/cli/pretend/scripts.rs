//! Drawn scripts of calls, played in `pretend` and by the model that guests are held against.

use nodewise_conformance::{Arena, Copies, Drawer, Prediction, ScriptId, ScriptKind};
use nodewise_machine::spec;
use nodewise_model::{BuiltAt, Memory, Release};

use super::{can_separate, inside, is_inside};
use crate::nodewise::path;

/// Machines with nodes that lack CPUs or memory, and numbers of CPUs that no computer for tests has.
const MACHINES: [&str; 3] =
    ["2x(2c2t 8G) (4G); dist=10,21,17/21,10,28/17,28,10", "4x(3c 2G); dist=20", "(40c 8G) (2G) (8c 4G)"];
/// Scripts of each kind and machine.
const COUNT: u64 = 34;

#[test]
#[ignore = "runs in pretend, started by the test beside it"]
fn played_inside() {
    let Some(machine_text) = is_inside() else { return };
    let machine = spec::machine(&machine_text).unwrap();
    let memory = Memory::from_machine(&machine, BuiltAt::Boot, Release::REFERENCE);
    let program = [path(), "lab", "--pages"].map(str::to_owned).to_vec();
    let prediction = Prediction::new(Release::REFERENCE);
    let arena = Arena::without_system(machine, memory, prediction, program, "/dev/shm");
    let mut wrong = Vec::new();
    for kind in [ScriptKind::Calls, ScriptKind::Threads] {
        for number in 0..COUNT {
            let id = ScriptId { kind, number };
            // Which of parent and child has the copy of a page cannot be seen from outside.
            let script = Drawer::script(&arena.machine, id).of_one_program(Copies::LeaveOut);
            let (done, trace) = arena.play(&script);
            if let Err(why) = done {
                let played = script.without(trace.played..script.calls.len()).lines();
                wrong.push(format!("script {id}: {why}\n  after {}", played.join("\n        ")));
            }
        }
    }
    let count = wrong.len();
    wrong.truncate(3);
    assert!(wrong.is_empty(), "{count} scripts differ:\n{}", wrong.join("\n"));
}

#[test]
fn drawn_scripts_have_the_model_s_answers_and_pages() {
    if !can_separate() {
        return;
    }
    for machine in MACHINES {
        inside(machine, "pretend::scripts::played_inside");
    }
}
