//! Lines in a guest with four nodes, where wrong nodes are others than on a machine with one.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use nodewise_lab::script::PROGRAMS_FOLDER;
use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;

use crate::original::Original;
use crate::program;
use crate::verdict::{self, Plan, Verdict};

/// Four nodes; the third has no memory and the fourth no CPUs.
const MACHINE: &str = "2x(1c 512M) (1c) (512M); dist=20";

/// Precedes a line with the verdict on the lines so far.
const MARK: &str = "verdict ";

/// Time that a guest has for a line, on a machine that is busy with other work.
const SECONDS_PER_LINE: u64 = 20;

/// How many lines are played between two reports.
const REPORTED: u64 = 10;

/// Boots a guest and plays the lines there; `None`, with the reason said, where there is no lab. How far it is is
/// written to standard error.
pub fn boot(plan: Plan, original: &Original) -> Result<Option<Verdict>, String> {
    let lab = match Lab::for_test(&KernelChoice::default()) {
        Ok(lab) => lab,
        Err(why) => {
            eprintln!("{why}");
            return Ok(None);
        }
    };
    let machine = spec::machine(MACHINE).map_err(|error| error.to_string())?;
    let layout = Layout::new(&machine, &Limits::default()).map_err(|error| error.to_string())?;
    let mut guest = lab.guest(layout);
    guest.timeout = Duration::from_secs(600 + plan.lines * SECONDS_PER_LINE);
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let nodewise = Path::new(env!("CARGO_BIN_EXE_nodewise"));
    guest.programs = vec![
        ("drop_in".to_owned(), program::stripped(&own, "drop-in")),
        ("nodewise".to_owned(), program::stripped(nodewise, "drop-in-nodewise")),
    ];
    let words = [
        format!("{PROGRAMS_FOLDER}/drop_in"),
        format!("--nodewise={PROGRAMS_FOLDER}/nodewise"),
        format!("--in-guest={}", original.root.display()),
        format!("--lines={}", plan.lines),
        format!("--seed={}", plan.seed),
        format!("--first={}", plan.first),
    ];
    let mut out = Vec::new();
    let end = guest.stream(&words.map(OsString::from), &mut out, &mut io::stderr());
    let out = String::from_utf8_lossy(&out);
    let last = out.lines().rev().find_map(|line| serde_json::from_str(line.strip_prefix(MARK)?).ok());
    let verdict = last.as_ref().and_then(Verdict::from_json);
    let end = match (end, verdict) {
        (Ok(0), Some(verdict)) => return Ok(Some(verdict)),
        (Ok(status), verdict) => (format!("the guest's command ended with {status}"), verdict),
        (Err(error), verdict) => (error.to_string(), verdict),
    };
    let so_far =
        end.1.map_or_else(|| out.into_owned(), |verdict| format!("{verdict}{}", verdict.wrong.join("\n")));
    Err(format!("{}; until then: {so_far}", end.0))
}

/// Plays the lines in the guest. The last verdict on standard output is that on all lines.
pub fn inside(plan: Plan, root: &str, nodewise: &str) -> Result<(), String> {
    let original = Original::unpacked(root)?;
    let start = Instant::now();
    let report = |verdict: &Verdict| {
        if verdict.lines % REPORTED == 0 {
            let (lines, wrong, seconds) = (verdict.lines, verdict.wrong.len(), start.elapsed().as_secs());
            eprintln!("{lines} of {} lines, {seconds} s, {wrong} answers differ without a rule", plan.all());
            println!("{MARK}{}", verdict.json());
        }
    };
    let verdict = verdict::played(plan, &original, Path::new(nodewise), &report)?;
    println!("{MARK}{}", verdict.json());
    Ok(())
}
