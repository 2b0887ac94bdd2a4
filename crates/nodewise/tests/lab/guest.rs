//! A guest that is booted when the first of its checks is asked for, and once only.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libtest_mimic::Failed;
use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;

/// Time that a guest has for each script, on a machine that is busy with other work; it needs a second.
const SECONDS_PER_SCRIPT: u64 = 30;

/// Stands before a line with the result of a check.
pub const MARK: &str = "check ";

/// What a guest is, and what is done in it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its machine.
    pub spec: String,
    /// Words for its kernel's command line.
    pub append: Option<String>,
    /// Words for QEMU.
    pub qemu: Option<String>,
    /// Whether it was drawn, for the checks of the model alone.
    pub drawn: bool,
    /// Numbers of the scripts that are played there.
    pub scripts: Range<u64>,
}

impl Plan {
    /// The words behind `--guest`, which [`Plan::read`] reads in the guest.
    fn words(&self) -> [String; 4] {
        let drawn = if self.drawn { "drawn" } else { "fixed" };
        let Range { start, end } = self.scripts;
        [self.spec.clone(), drawn.to_owned(), start.to_string(), end.to_string()]
    }

    pub fn read(words: &[String]) -> Self {
        let number = |at: usize| words[at].parse().expect("the host passes numbers");
        Self {
            spec: words[0].clone(),
            append: None,
            qemu: None,
            drawn: words[1] == "drawn",
            scripts: number(2)..number(3),
        }
    }
}

/// A machine and, once it was booted, the result of every check.
#[derive(Clone)]
pub struct Guest {
    /// Its name.
    pub layout: String,
    pub plan: Plan,
    kernel: KernelChoice,
    results: Arc<OnceLock<Boot>>,
}

enum Boot {
    /// Why there is no guest here; one line.
    Skipped(String),
    /// What went wrong with the guest as a whole.
    Failed(String),
    /// Result by check; the empty text is good.
    Done(BTreeMap<String, String>),
}

impl Guest {
    pub fn new(layout: String, plan: Plan, kernel: KernelChoice) -> Self {
        Self { layout, plan, kernel, results: Arc::default() }
    }

    /// The result of one check.
    pub fn result(&self, check: &str) -> Result<(), Failed> {
        match self.results.get_or_init(|| self.boot()) {
            Boot::Skipped(why) => {
                eprintln!("{}::{check} {why}", self.layout);
                Ok(())
            }
            Boot::Failed(why) => Err(why.clone().into()),
            Boot::Done(results) => match results.get(check) {
                None => Err("the guest did not get to this check".into()),
                Some(message) if message.is_empty() => Ok(()),
                Some(message) => Err(message.clone().into()),
            },
        }
    }

    fn boot(&self) -> Boot {
        let lab = match Lab::for_test(&self.kernel) {
            Ok(lab) => lab,
            Err(why) => return Boot::Skipped(why),
        };
        let machine = spec::machine(&self.plan.spec).expect("the layouts are specs");
        let layout = Layout::new(&machine, &Limits::default()).expect("the layouts can be booted");
        assert!(layout.notes.is_empty(), "the guest differs from the layout: {:?}", layout.notes);
        let own = std::env::current_exe().expect("a test knows its own path");
        let words = [own.into_os_string(), "--guest".into(), env!("CARGO_BIN_EXE_nodewise").into()];
        let command: Vec<OsString> = words.into_iter().chain(self.plan.words().map(OsString::from)).collect();
        let mut guest = lab.guest(layout);
        guest.append.extend(self.plan.append.clone());
        guest.qemu_arguments.extend(
            self.plan.qemu.iter().flat_map(|words| words.split_ascii_whitespace()).map(OsString::from),
        );
        let scripts = self.plan.scripts.end - self.plan.scripts.start;
        guest.timeout = guest.timeout.max(Duration::from_secs(scripts * SECONDS_PER_SCRIPT));
        match guest.run(&command) {
            Err(error) => Boot::Failed(error.to_string()),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                let results: BTreeMap<String, String> = text.lines().filter_map(result_of).collect();
                if results.is_empty() {
                    return Boot::Failed(format!(
                        "no result:\n{text}\n{}",
                        String::from_utf8_lossy(&output.stderr)
                    ));
                }
                Boot::Done(results)
            }
        }
    }
}

/// `check NAME MESSAGE`, the message with its line ends written as `\n`.
fn result_of(line: &str) -> Option<(String, String)> {
    let (name, message) = line.strip_prefix(MARK)?.split_once(' ')?;
    Some((name.to_owned(), message.replace("\\n", "\n")))
}
