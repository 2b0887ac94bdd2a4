//! `nodewise tune --machine`: placements ranked by the lines that were counted under each.

use std::process::Command;

use libtest_mimic::Failed;
use nodewise_lab::{KernelChoice, Lab};
use serde_json::Value;

use super::{BESIDE, LINES, compile};

/// A program that touches memory, then walks over its lines in scattered order, in a phase each.
const RANKED: &str = r#"
#include <nodewise.h>
#include <stdlib.h>

#define LINES (131072ul)

int main(void)
{
	volatile char *start = malloc(LINES * 64);

	nodewise_phase("touch");
	for (unsigned long at = 0; at < LINES * 64; at += 4096)
		start[at] = 1;
	nodewise_phase("walk");
	/* An odd factor: each line has its turn. */
	for (unsigned long at = 0; at < 4 * LINES; at++)
		(void)start[at * 40503 % LINES * 64];
	nodewise_phase("");
	return 0;
}
"#;
/// Rounds of its walk.
const RANKED_ROUNDS: u64 = 4;

/// `nodewise tune --machine` counts a walk under each placement, and ranks the one that is local before the one that is not,
/// in the phase of the walk; judged again for a machine whose memory is as far as the own, it cannot be ranked.
pub fn placements() -> Result<(), Failed> {
    if let Err(line) = Lab::for_test(&KernelChoice::default()) {
        eprintln!("{line}");
        return Ok(());
    }
    let folder = tempfile::Builder::new().prefix("ranked").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let program = compile(folder.path(), "ranked", RANKED)?;
    let saved = folder.path().join("counts.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    command.args(["tune", "--machine", "2x(8c 64G); dist=21", "--max-cpus=2", "--memory=1G", "--json"]);
    command.args(["--placement", "cpunodebind=0 membind=1", "--placement", "cpunodebind=0 membind=0", "--"]);
    let output = command.arg(program).output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    std::fs::write(&saved, &output.stdout)?;
    let json: Value = serde_json::from_slice(&output.stdout)?;
    if json["phases"] != serde_json::json!(["", "touch", "walk"]) {
        return Err(format!("{:#}", json["phases"]).into());
    }
    let phases = json["ranked_phases"].as_array().into_iter().flatten();
    let walk = phases.clone().find(|phase| phase["phase_index"] == 2).ok_or("no phase of the walk")?;
    let of = |name: &str| {
        let placements = walk["placements"].as_array().into_iter().flatten();
        let found =
            placements.clone().find(|placement| placement["name"] == name).cloned().unwrap_or_default();
        ["lines", "local_lines", "first_place", "last_place"]
            .map(|key| found[key].as_u64().unwrap_or_default())
    };
    let (near, far) = (of("local to node 0"), of("CPUs of node 0, memory of node 1"));
    let walked = RANKED_ROUNDS * LINES;
    let most = walked + BESIDE;
    let is_counted = [near[1], far[0] - far[1]].iter().all(|lines| (walked..=most).contains(lines));
    // The default is the third: its thread may be moved away from its memory, and its place between the two is open then.
    if !is_counted || near[3] >= far[3] || far[2] == 1 {
        return Err(format!("expected {walked} to {most} lines near, then far: {near:?} {far:?}").into());
    }
    let judged = |phase: &str| {
        let mut again = Command::new(env!("CARGO_BIN_EXE_nodewise"));
        again
            .args(["tune", "--machine", "2x(8c 64G); dist=11", "--phase", phase, "--from"])
            .arg(&saved)
            .output()
    };
    let output = judged("walk")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if !text.starts_with("Cannot be ranked: the bounds of 3 placements")
        || !words.contains("of the phase walk")
    {
        return Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let output = judged("wlak")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_refused = output.status.code() == Some(125) && said.contains("expected one of touch, walk");
    if is_refused { Ok(()) } else { Err(format!("{}: {said}", output.status).into()) }
}
