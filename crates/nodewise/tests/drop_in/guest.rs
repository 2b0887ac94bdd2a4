//! Lines in a guest with four nodes, where wrong nodes are others than on a machine with one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;

use crate::original::Original;
use crate::verdict::{self, Plan, Verdict};

/// Four nodes; the third has no memory and the fourth no CPUs.
const MACHINE: &str = "2x(1c 512M) (1c) (512M); dist=20";

/// Stands before the line with the verdict.
const MARK: &str = "verdict ";

/// Time that a guest has for a line, on a machine that is busy with other work.
const SECONDS_PER_LINE: u64 = 20;

/// Boots a guest and plays the lines there; `None`, with the reason said, where there is no lab.
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
    let words = [
        stripped(&own),
        format!("--in-guest={}", original.root.display()).into(),
        format!("--lines={}", plan.lines).into(),
        format!("--seed={}", plan.seed).into(),
        format!("--first={}", plan.first).into(),
        format!("--nodewise={}", stripped(Path::new(env!("CARGO_BIN_EXE_nodewise"))).display()).into(),
    ];
    let output = guest.run(&words.map(PathBuf::into_os_string)).map_err(|error| error.to_string())?;
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = out.lines().find_map(|line| serde_json::from_str(line.strip_prefix(MARK)?).ok());
    let verdict = said.as_ref().and_then(Verdict::from_json);
    verdict.map(Some).ok_or_else(|| format!("{out}{}", String::from_utf8_lossy(&output.stderr)))
}

/// A program without what is for debuggers where that can be taken away: a guest reads it slowly.
fn stripped(program: &Path) -> PathBuf {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let small = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.drop-in"));
    let done = Command::new("strip").arg("-o").arg(&small).arg(program).status();
    if done.is_ok_and(|status| status.success()) { small } else { program.to_owned() }
}

/// What happens in the guest.
pub fn inside(plan: Plan, root: &str, nodewise: &str) {
    let original = Original::unpacked(root).expect("the host found the original");
    match verdict::played(plan, &original, Path::new(nodewise)) {
        Ok(verdict) => println!("{MARK}{}", verdict.json()),
        Err(error) => println!("{error}"),
    }
}
