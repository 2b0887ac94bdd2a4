//! A guest that is booted when the first of its checks is asked for, and once only.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use libtest_mimic::Failed;
use nodewise_conformance::ScriptKind;
use nodewise_lab::script::PROGRAMS_FOLDER;
use nodewise_lab::{Arch, GuestError, KernelChoice, Lab, Layout, Limits, Output, Threads};
use nodewise_machine::{Bytes, spec};

use crate::arm64;
use crate::checks::{Extent, Load};
use crate::{program, watchdog};

/// Time that a guest has for each script, on a machine that is busy with other work; it needs a second.
const SECONDS_PER_SCRIPT: u64 = 30;
/// The time for all else that a guest checks: ten times what a quiet host needs.
const CHECKS: Duration = Duration::from_secs(1200);

/// The time that a check has, several times that of the longest on a busy host: one that hangs leaves time for the others.
const LIMIT: Duration = Duration::from_secs(420);

/// The time of a check of memory that follows its programs, in the guest's own time: 31 runs, one after the other, of
/// up to 20 s, and as many forecasts.
const COURSE: Duration = Duration::from_secs(3600);

/// Memory that a guest may have.
const MEMORY: Bytes = Bytes::from_gib(4);

/// Precedes the path of another nodewise than the one that was built with these tests, which is not optimised.
pub const PROGRAM: &str = "--nodewise=";

/// The word for every check of an extent.
const ALL: &str = "all";

/// Precedes a line with the result of a check.
pub const MARK: &str = "check ";
/// Precedes a line with what did not hold at the first of two tries of a check.
pub const FIRST: &str = "first ";
/// Precedes a line with a figure, which is shown with the times.
pub const FIGURE: &str = "figure ";

/// The machine of a guest, and the work that is done in it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub arch: Arch,
    /// Its machine.
    pub spec: String,
    /// Words for its kernel's command line.
    pub append: Option<String>,
    /// Words for QEMU.
    pub qemu: Option<String>,
    /// The checks that run there.
    pub checks: Extent,
    /// Numbers of the scripts that are played there.
    pub scripts: Range<u64>,
    /// The kinds of these scripts.
    pub kinds: Vec<ScriptKind>,
    /// The only checks that run, by name; `None`: all of its extent.
    pub only: Option<Vec<String>>,
    /// Memory that moves there, where that is all it does.
    pub load: Option<Load>,
    /// How long programs run there under each manager, where that is all it does.
    pub length: Option<Duration>,
    /// The size of its disk.
    pub disk: Option<Bytes>,
}

/// Reads kinds of scripts.
pub fn kinds(text: &str) -> Option<Vec<ScriptKind>> {
    text.split(',').map(ScriptKind::from_word).collect()
}

impl Plan {
    /// A machine of an architecture for these checks, without scripts or a load.
    pub fn new(arch: Arch, spec: impl Into<String>, checks: Extent) -> Self {
        let spec = spec.into();
        Self {
            arch,
            spec,
            append: None,
            qemu: None,
            checks,
            scripts: 0..0,
            kinds: vec![ScriptKind::Calls],
            only: None,
            load: None,
            length: None,
            disk: None,
        }
    }

    /// The words behind `--guest`, which [`Plan::read`] reads in the guest.
    fn words(&self) -> [String; 9] {
        let Range { start, end } = self.scripts;
        let only = self.only.as_ref().map_or_else(|| ALL.to_owned(), |names| names.join(","));
        let load = self.load.map_or([0, 0], |load| [load.size.get(), load.rate.get()]);
        let [size, rate] = load.map(|bytes| bytes.to_string());
        [
            self.spec.clone(),
            self.checks.word().to_owned(),
            start.to_string(),
            end.to_string(),
            only,
            size,
            rate,
            self.length.map_or(0, |length| length.as_secs()).to_string(),
            self.kinds.iter().map(|kind| kind.word()).collect::<Vec<_>>().join(","),
        ]
    }

    pub fn read(words: &[String]) -> Self {
        let number = |at: usize| words[at].parse().expect("the host passes numbers");
        let load = Load { size: Bytes::new(number(5)), rate: Bytes::new(number(6)) };
        let checks = Extent::of_word(&words[1]).expect("the host passes such a word");
        Self {
            scripts: number(2)..number(3),
            kinds: kinds(&words[8]).expect("the host passes such words"),
            length: Some(Duration::from_secs(number(7))).filter(|length| !length.is_zero()),
            load: Some(load).filter(|load| load.size.get() > 0),
            only: (words[4] != ALL).then(|| words[4].split(',').map(str::to_owned).collect()),
            // The guest does not ask for its architecture: it is what it is.
            ..Self::new(Arch::default(), words[0].clone(), checks)
        }
    }

    /// The time of its scripts and of its load, which whoever asks for them makes as long as they like.
    fn time_asked(&self) -> Duration {
        let scripts = (self.scripts.end - self.scripts.start) * self.kinds.len() as u64;
        // It moves there and back at a rate, and in half and a quarter again; filling it takes time, too.
        let moving = self.load.map_or(0, |load| 10 * load.size.get() / load.rate.get());
        // Each check of managers has one length; the guest has four of them.
        let managed = self.length.unwrap_or_default() * 5;
        let is_course = matches!(self.checks, Extent::Course | Extent::TierCourse);
        let course = if is_course { COURSE } else { Duration::ZERO };
        Duration::from_secs(scripts * SECONDS_PER_SCRIPT + moving) + managed + course
    }

    /// The time that each of its checks has.
    pub fn limit(&self) -> Duration {
        LIMIT.max(self.time_asked())
    }

    /// Whether a check runs.
    pub fn has(&self, check: &str) -> bool {
        self.only.as_ref().is_none_or(|names| names.iter().any(|name| name == check))
    }
}

/// A machine and, once it was booted, the result of every check.
#[derive(Clone)]
pub struct Guest {
    /// Its name.
    pub layout: String,
    pub plan: Plan,
    pub kernel: KernelChoice,
    /// Whether the time that each check took is reported.
    tells_times: bool,
    results: Arc<OnceLock<Boot>>,
}

/// The outcome of a guest.
#[derive(Clone)]
pub enum Boot {
    /// Why there is no guest here; one line.
    Skipped(String),
    /// The error of the guest as a whole.
    Failed(String),
    /// Result by check.
    Done(BTreeMap<String, Checked>),
}

/// The outcome of a check.
#[derive(Clone)]
pub struct Checked {
    /// How long it took in the guest.
    seconds: String,
    /// A description of what does not hold; empty where all does.
    message: String,
    /// The same of the first try, where there were two.
    first: Option<String>,
}

impl Guest {
    pub fn new(layout: String, plan: Plan, kernel: KernelChoice, tells_times: bool) -> Self {
        Self { layout, plan, kernel, tells_times, results: Arc::default() }
    }

    /// The result of one check.
    pub fn result(&self, check: &str) -> Result<(), Failed> {
        match self.results.get_or_init(|| self.boot()) {
            Boot::Skipped(why) => {
                eprintln!("{}::{check} {why}", self.layout);
                Ok(())
            }
            Boot::Failed(why) => Err(why.clone().into()),
            Boot::Done(results) => {
                let checked = results.get(check).ok_or("the guest did not get to this check")?;
                if self.tells_times {
                    eprintln!("{:>7} s  {}::{check}", checked.seconds, self.layout);
                }
                if checked.message.is_empty() {
                    if let Some(first) = &checked.first {
                        eprintln!("second try: {}::{check}: {}", self.layout, first.replace('\n', "; "));
                    }
                    return Ok(());
                }
                let words = self.plan.append.as_ref().map_or_else(String::new, |words| format!(" {words}"));
                let first = checked.first.iter().map(|first| format!("\nat the first try: {first}"));
                let first: String = first.collect();
                Err(format!("{}{first}\non {}{words}", checked.message, self.plan.spec).into())
            }
        }
    }

    fn boot(&self) -> Boot {
        let machine = spec::machine(&self.plan.spec).expect("the layouts are specs");
        // Of gigabytes that move there are two nodes full.
        let loaded = self.plan.load.map_or(Bytes::new(0), |load| load.size.times(4));
        let limits = Limits { memory: MEMORY.max(loaded), ..Limits::default() };
        let layout = Layout::new(&machine, &limits).expect("the layouts can be booted");
        assert!(layout.notes.is_empty(), "the guest differs from the layout: {:?}", layout.notes);
        let ran = match self.plan.arch {
            Arch::X86 => self.run(layout),
            Arch::Arm => arm64::run(self, layout),
        };
        if let (Ok(output), true) = (&ran, self.tells_times) {
            let text = String::from_utf8_lossy(&output.stdout);
            text.lines()
                .filter_map(|line| line.strip_prefix(FIGURE))
                .for_each(|figure| eprintln!("{figure}"));
        }
        ran.map_or_else(|without| without, |output| results(&output))
    }

    /// Runs the checks in a guest of x86-64. `Err` is what became of the guest without any of them.
    fn run(&self, layout: Layout) -> Result<Output, Boot> {
        let lab = Lab::for_test(&self.kernel).map_err(Boot::Skipped)?;
        let [own, nodewise] = programs();
        let mut guest = lab.guest(layout);
        guest.programs = vec![("lab".to_owned(), own.clone()), ("nodewise".to_owned(), nodewise.clone())];
        let copy = |name: &str| Path::new(PROGRAMS_FOLDER).join(name).into_os_string();
        let command = self.command(copy("lab"), copy("nodewise"));
        guest.append.extend(self.plan.append.clone());
        if self.plan.load.is_some() || self.plan.length.is_some() {
            // On one thread a CPU at work keeps the others waiting for a tenth of a second at a time, and each huge page
            // that moves waits for all of them.
            guest.threads = Threads::PerCpu;
        }
        guest.qemu_arguments = self.qemu_words();
        guest.disk = self.plan.disk;
        guest.timeout = self.timeout(guest.timeout);
        guest.run(&command).map_err(Boot::failed)
    }

    /// The command that runs the checks, with the paths that this program and nodewise have in the guest.
    pub fn command(&self, own: OsString, nodewise: OsString) -> Vec<OsString> {
        let words = [own, "--guest".into(), nodewise];
        words.into_iter().chain(self.plan.words().map(OsString::from)).collect()
    }

    pub fn qemu_words(&self) -> Vec<OsString> {
        self.plan.qemu.iter().flat_map(|words| words.split_ascii_whitespace()).map(OsString::from).collect()
    }

    /// The time that a guest has, at least what others have.
    pub fn timeout(&self, others: Duration) -> Duration {
        others.max(CHECKS + self.plan.time_asked())
    }
}

/// This program and nodewise, small enough to be copied into guests.
pub fn programs() -> &'static [PathBuf; 2] {
    static SMALL: OnceLock<[PathBuf; 2]> = OnceLock::new();
    SMALL.get_or_init(|| {
        let named = std::env::args().find_map(|word| word.strip_prefix(PROGRAM).map(PathBuf::from));
        let nodewise = named.unwrap_or_else(|| env!("CARGO_BIN_EXE_nodewise").into());
        let own = std::env::current_exe().expect("a test knows its own path");
        [program::stripped(&own, "lab"), program::stripped(&nodewise, "lab-nodewise")]
    })
}

impl Boot {
    pub fn failed(error: GuestError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Runs the checks in the guest, with the words behind `--guest`: the path of nodewise, and the plan.
pub fn supervise(words: &[String]) {
    let limit = Plan::read(&words[1..]).limit();
    let own = std::env::current_exe().expect("a program knows its own path");
    let mut checks = Command::new(own);
    checks.arg("--checks").args(words);
    watchdog::supervise(&mut checks, limit, &mut std::io::stdout()).expect("the host reads");
}

/// The results that a guest wrote.
fn results(output: &Output) -> Boot {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut results: BTreeMap<String, Checked> = text.lines().filter_map(result_of).collect();
    for (name, message) in text.lines().filter_map(|line| line.strip_prefix(FIRST)?.split_once(' ')) {
        if let Some(checked) = results.get_mut(name) {
            checked.first = Some(message.replace("\\n", "\n"));
        }
    }
    if results.is_empty() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Boot::Failed(format!("no result, status {}:\n{text}\n{complaint}", output.status));
    }
    Boot::Done(results)
}

/// `check NAME SECONDS MESSAGE`, the message with its line ends written as `\n`.
fn result_of(line: &str) -> Option<(String, Checked)> {
    let mut words = line.strip_prefix(MARK)?.splitn(3, ' ');
    let (name, seconds, message) = (words.next()?, words.next()?, words.next()?);
    let checked = Checked { seconds: seconds.to_owned(), message: message.replace("\\n", "\n"), first: None };
    Some((name.to_owned(), checked))
}
