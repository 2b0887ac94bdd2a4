//! A guest that is booted when the first of its checks is asked for, and once only.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use libtest_mimic::Failed;
use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;

/// Stands before a line with the result of a check.
pub const MARK: &str = "check ";

/// A machine and, once it was booted, the result of every check.
#[derive(Clone)]
pub struct Guest {
    /// Its name.
    pub layout: String,
    spec: String,
    /// Whether it was drawn, for the checks of the model alone.
    pub drawn: bool,
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
    pub fn new(layout: String, spec: String, drawn: bool) -> Self {
        Self { layout, spec, drawn, results: Arc::default() }
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
        let lab = match Lab::for_test(&KernelChoice::default()) {
            Ok(lab) => lab,
            Err(why) => return Boot::Skipped(why),
        };
        let machine = spec::machine(&self.spec).expect("the layouts are specs");
        let layout = Layout::new(&machine, &Limits::default()).expect("the layouts can be booted");
        assert!(layout.notes.is_empty(), "the guest differs from the layout: {:?}", layout.notes);
        let own = std::env::current_exe().expect("a test knows its own path");
        let words = [
            own.as_os_str(),
            "--guest".as_ref(),
            self.spec.as_ref(),
            env!("CARGO_BIN_EXE_nodewise").as_ref(),
            if self.drawn { "drawn" } else { "fixed" }.as_ref(),
        ];
        let command: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        match lab.guest(layout).run(&command) {
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
