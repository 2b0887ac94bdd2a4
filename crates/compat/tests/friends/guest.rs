//! Guests: each topology is booted once, and every record runs there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nodewise_lab::script::PROGRAMS_FOLDER;
use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;
use serde::{Deserialize, Serialize};

use crate::mask::Answer;
use crate::record::{self, Record};
use crate::{home, is_ours, places, program, release_of};

/// Where the guest has the programs.
const PROGRAMS: &str = "/run/nodewise-friends";
/// Precedes a line with an answer.
const MARK: &str = "answer ";
/// The programs that this one is in the guest.
const NAMES: [&str; 7] =
    ["numastat", "migratepages", "migspeed", "memhog", "uidrun", "seccomp-run", "holder"];

/// A machine of the records.
#[derive(Clone, Copy)]
pub struct Topology {
    /// Its files of records.
    pub files: &'static [&'static str],
    spec: &'static str,
    /// The recorder's processes that were looked at and moved.
    pids: [u32; 3],
    /// Whether pages can be moved, and so the checks of [`places`] made.
    pub several_nodes: bool,
}

pub const TOPOLOGIES: [Topology; 3] = [
    Topology {
        files: home::FRIENDS[0],
        spec: "4x(1c 512M); dist=10,11,20,20/11,10,20,20/20,20,10,11/20,20,11,10",
        pids: [180, 181, 182],
        several_nodes: true,
    },
    Topology {
        files: home::FRIENDS[1],
        spec: "2x(3c 512M) (2c) (512M)",
        pids: [207, 208, 209],
        several_nodes: true,
    },
    Topology {
        files: home::FRIENDS[2],
        spec: "(2c 1G)",
        // One process only was moved.
        pids: [15337, u32::MAX, u32::MAX],
        several_nodes: false,
    },
];

#[derive(Serialize, Deserialize)]
enum Line {
    Answer { file: String, at: usize, strict: bool, answer: Answer },
    Places(Result<(), String>),
}

#[derive(Default)]
struct Answers {
    records: BTreeMap<(String, usize, bool), Answer>,
    places: Option<Result<(), String>>,
}

enum Boot {
    /// Why there is no guest here.
    Skipped(String),
    Failed(String),
    Done(Answers),
}

/// A topology and, once it was booted, its answers.
#[derive(Clone)]
pub struct Guest {
    topology: Topology,
    folder: PathBuf,
    boot: Arc<OnceLock<Boot>>,
}

impl Guest {
    pub fn new(topology: Topology, folder: &Path) -> Self {
        Self { topology, folder: folder.to_owned(), boot: Arc::default() }
    }

    fn answers(&self) -> Result<Option<&Answers>, String> {
        match self.boot.get_or_init(|| self.boot()) {
            Boot::Skipped(why) => {
                eprintln!("{} {why}", self.topology.files[0]);
                Ok(None)
            }
            Boot::Failed(why) => Err(why.clone()),
            Boot::Done(answers) => Ok(Some(answers)),
        }
    }

    /// The answer to a record; `None`, with the reason printed, where no guest can be booted.
    pub fn answer(&self, file: &str, at: usize, strict: bool) -> Result<Option<Answer>, String> {
        let Some(answers) = self.answers()? else { return Ok(None) };
        let answer = answers.records.get(&(file.to_owned(), at, strict)).cloned();
        answer.map(Some).ok_or_else(|| format!("the guest did not get to record {at}"))
    }

    /// The outcome of the checks of [`places`].
    pub fn places(&self) -> Result<(), String> {
        let Some(answers) = self.answers()? else { return Ok(()) };
        answers.places.clone().unwrap_or_else(|| Err("the guest did not get to them".to_owned()))
    }

    fn boot(&self) -> Boot {
        let lab = match Lab::for_test(&KernelChoice::default()) {
            Ok(lab) => lab,
            Err(why) => return Boot::Skipped(why),
        };
        let machine = spec::machine(self.topology.spec).expect("the topologies are specs");
        let layout = Layout::new(&machine, &Limits::default()).expect("the topologies can be booted");
        let own = std::env::current_exe().expect("a test knows its own path");
        let own = program::stripped(&own, &format!("friends-{}", self.topology.files[0]));
        let copy = |name: &str| Path::new(PROGRAMS_FOLDER).join(name).into_os_string();
        let mut command = vec![copy("friends"), "--guest".into(), PROGRAMS_FOLDER.into()];
        command.push(self.topology.files[0].into());
        let mut guest = lab.guest(layout);
        guest.timeout = Duration::from_secs(1800);
        guest.programs = vec![("friends".to_owned(), own)];
        for file in self.topology.files {
            let name = format!("{file}.jsonl");
            guest.programs.push((name.clone(), self.folder.join(name)));
        }
        let (mut out, mut told) = (Vec::new(), Vec::new());
        match guest.stream(&command, &mut out, &mut told) {
            Ok(0) => Boot::Done(read(&String::from_utf8_lossy(&out))),
            Ok(_) => Boot::Failed(String::from_utf8_lossy(&told).into_owned()),
            Err(error) => Boot::Failed(error.to_string()),
        }
    }
}

fn read(text: &str) -> Answers {
    let mut answers = Answers::default();
    for line in text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix(MARK)?).ok()) {
        match line {
            Line::Answer { file, at, strict, answer } => {
                answers.records.insert((file, at, strict), answer);
            }
            Line::Places(result) => answers.places = Some(result),
        }
    }
    answers
}

/// Runs the part in the guest.
pub fn inside(words: &[OsString]) {
    let topology = TOPOLOGIES.into_iter().find(|topology| topology.files[0] == words[1]);
    let topology = topology.expect("the test names a topology of its own");
    let own = std::env::current_exe().expect("a program knows its own path");
    std::fs::create_dir_all(PROGRAMS).expect("/run can be written to");
    for name in NAMES {
        std::fs::hard_link(&own, Path::new(PROGRAMS).join(name)).expect("both are in the guest's memory");
    }
    let mut holders: Vec<Child> = [0, 0, 1000].into_iter().map(holder).collect();
    let pids: Vec<String> = holders.iter().map(|holder| holder.id().to_string()).collect();
    for file in topology.files {
        for (at, record) in record::read(Path::new(&words[0]), file).iter().enumerate() {
            if !is_ours(file, record) {
                continue;
            }
            for strict in [true, false] {
                let answer = run(record, strict, &topology.pids, &pids);
                write_line(&Line::Answer { file: (*file).to_owned(), at, strict, answer });
            }
        }
    }
    if topology.several_nodes {
        write_line(&Line::Places(places::check(&tool_paths())));
    }
    for holder in &mut holders {
        let _ = holder.kill();
        let _ = holder.wait();
    }
}

fn write_line(line: &Line) {
    println!("{MARK}{}", serde_json::to_string(line).expect("a line has no odd keys"));
}

/// A folder of tools in front of the others.
fn tool_paths() -> String {
    format!("{PROGRAMS}:{}", std::env::var("PATH").unwrap_or_default())
}

fn holder(user: u32) -> Child {
    let mut command = Command::new(Path::new(PROGRAMS).join("holder"));
    let mut child = command.stdout(Stdio::piped()).uid(user).gid(user).spawn().expect("holder starts");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("it was piped");
    BufReader::new(out).read_line(&mut line).expect("holder says when it is ready");
    assert_eq!(line, "ready\n");
    child
}

/// Runs the command of a record, with our processes in place of the recorder's.
fn run(record: &Record, strict: bool, recorded: &[u32; 3], pids: &[String]) -> Answer {
    let own = |word: &str| {
        let at = recorded.iter().position(|pid| pid.to_string() == word);
        at.map_or_else(|| word.to_owned(), |at| pids[at].clone())
    };
    let words: Vec<String> = record.cmd.split(' ').map(own).collect();
    let mut command;
    if record.cmd.contains(';') {
        command = Command::new("sh");
        command.args(["-c", &record.cmd]);
    } else {
        let variables = words.iter().take_while(|word| word.contains('=')).count();
        command = Command::new(&words[variables]);
        command.args(&words[variables + 1..]);
        command.envs(words[..variables].iter().filter_map(|word| word.split_once('=')));
    }
    command.env("PATH", tool_paths()).env("NODEWISE_NUMACTL_COMPAT", release_of(record));
    command.env("NODEWISE_STRICT_COMPAT", if strict { "1" } else { "0" });
    let output = command.output().expect("the programs are there");
    let status = output.status;
    let rc = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (rc, text(&output.stdout), text(&output.stderr))
}
