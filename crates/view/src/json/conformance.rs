//! `nodewise.kernel-check/1`.

use serde::Serialize;

use super::pretty;
use crate::digest::conformance::{CheckedMachine, CheckedScript, Inexact, KernelCheck, ScriptOutcome};

/// The schema of a check.
pub const SCHEMA: &str = "nodewise.kernel-check/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    kernel: Option<&'a str>,
    image: &'a str,
    model: &'a str,
    nearest_compared_release: &'a str,
    seed: Option<u64>,
    same: usize,
    different: usize,
    not_played: usize,
    #[serde(flatten)]
    inexact: InexactJson,
    kinds: Vec<KindJson>,
    machines: Vec<MachineJson<'a>>,
}

#[derive(Serialize)]
struct KindJson {
    kind: &'static str,
    same: usize,
    different: usize,
    not_played: usize,
    #[serde(flatten)]
    inexact: InexactJson,
}

/// Widths in thousandths of a limit.
#[derive(Serialize)]
struct InexactJson {
    steps_not_played: u64,
    intervals: u64,
    width_mean: Option<u64>,
    width_most: Option<u64>,
}

#[derive(Serialize)]
struct MachineJson<'a> {
    spec: &'a str,
    append: Option<&'a str>,
    qemu: Option<&'a str>,
    engine: Option<&'static str>,
    seconds: u64,
    scripts: Vec<ScriptJson<'a>>,
}

#[derive(Serialize)]
struct ScriptJson<'a> {
    kind: &'static str,
    number: u64,
    outcome: &'static str,
    #[serde(flatten)]
    inexact: InexactJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(flatten)]
    difference: Option<DifferenceJson<'a>>,
}

#[derive(Serialize)]
struct DifferenceJson<'a> {
    aspect: &'static str,
    what: &'a str,
    kernel: &'a str,
    model: &'a str,
    calls: &'a [String],
    calls_left: usize,
    calls_drawn: usize,
    repeated: u32,
    repeated_plays: u32,
    program: &'a str,
}

/// Writes a check of a kernel as JSON.
pub fn conformance(check: &KernelCheck) -> String {
    let (same, different, not_played) = check.counts();
    pretty(&Document {
        schema: SCHEMA,
        kernel: check.kernel.as_deref(),
        image: &check.image,
        model: &check.model,
        nearest_compared_release: &check.compared,
        seed: check.seed,
        same,
        different,
        not_played,
        inexact: inexact(check.inexact(None)),
        kinds: check.kinds.iter().map(|kind| counted(check, kind)).collect(),
        machines: check.machines.iter().map(machine).collect(),
    })
}

fn counted(check: &KernelCheck, kind: &'static str) -> KindJson {
    let (same, different, not_played) = check.counts_of(Some(kind));
    KindJson { kind, same, different, not_played, inexact: inexact(check.inexact(Some(kind))) }
}

fn inexact(inexact: Inexact) -> InexactJson {
    let Inexact { left_out: steps_not_played, intervals, widest, .. } = inexact;
    let width_mean = inexact.mean();
    InexactJson { steps_not_played, intervals, width_mean, width_most: width_mean.map(|_| widest) }
}

fn machine(machine: &CheckedMachine) -> MachineJson<'_> {
    MachineJson {
        spec: &machine.spec,
        append: machine.append.as_deref(),
        qemu: machine.qemu.as_deref(),
        engine: machine.engine,
        seconds: machine.seconds,
        scripts: machine.scripts.iter().map(script).collect(),
    }
}

fn script(script: &CheckedScript) -> ScriptJson<'_> {
    let CheckedScript { name, outcome, inexact: own } = script;
    let (outcome, reason, difference) = match outcome {
        ScriptOutcome::Same => ("same", None, None),
        ScriptOutcome::Failed(why) => ("not played", Some(why.as_str()), None),
        ScriptOutcome::Differs(found) => {
            let difference = DifferenceJson {
                aspect: found.aspect,
                what: &found.what,
                kernel: &found.kernel,
                model: &found.model,
                calls: &found.calls,
                calls_left: found.length,
                calls_drawn: found.drawn,
                repeated: found.repeated,
                repeated_plays: found.plays,
                program: &found.program,
            };
            ("different", None, Some(difference))
        }
    };
    ScriptJson { kind: name.kind, number: name.number, outcome, inexact: inexact(*own), reason, difference }
}
