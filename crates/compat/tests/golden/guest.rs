//! Records of guests: each topology is booted once, and every record runs there in both ways.
//!
//! The same program has more roles in the guest. Called `numactl` it is that; called `seccomp-run`
//! it is the program of that name of the recorder; started with `--guest` it prepares the guest and
//! starts itself with `--section` for each section of records, in namespaces of its own, so that
//! files and segments of one section are missing in the next.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nodewise_compat::Release;
use nodewise_lab::script::PROGRAMS_FOLDER;
use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::record::Record;
use crate::{program, words};

/// Where the guest has the programs.
const PROGRAMS: &str = "/run/nodewise-golden";
/// Precedes a line with an answer.
const MARK: &str = "answer ";

/// A machine of the records.
#[derive(Clone, Copy)]
pub struct Topology {
    /// Its file of records.
    pub file: &'static str,
    /// Its nodes.
    spec: &'static str,
    /// Further devices, as arguments of QEMU.
    devices: &'static [&'static str],
}

const FOUR_NODES: &str = "4x(1c 512M); dist=10,11,20,20/11,10,20,20/20,20,10,11/20,20,11,10";

pub const TOPOLOGIES: [Topology; 4] = [
    Topology { file: "numactl-4n", spec: FOUR_NODES, devices: &[] },
    Topology { file: "numactl-cpuset-4n", spec: FOUR_NODES, devices: &[] },
    Topology {
        file: "numactl-mixed",
        spec: "2x(3c 512M) (2c) (512M); dist=10,21,21,17/21,10,21,28/21,21,10,28/17,28,28,10",
        devices: &[],
    },
    Topology {
        file: "numactl-io-affinity-pci",
        spec: FOUR_NODES,
        devices: &[
            "-device",
            "pxb-pcie,id=pxb1,bus=pcie.0,bus_nr=0x20,numa_node=1",
            "-device",
            "pxb-pcie,id=pxb2,bus=pcie.0,bus_nr=0x40,numa_node=2",
            "-device",
            "pcie-root-port,id=port1,bus=pxb1,chassis=11,slot=11",
            "-device",
            "pcie-root-port,id=port2,bus=pxb2,chassis=12,slot=12",
            "-netdev",
            "user,id=net1",
            "-device",
            "virtio-net-pci,bus=port1,netdev=net1",
            "-drive",
            "if=none,id=disk1,file=null-co://,file.size=1M,format=raw",
            "-device",
            "virtio-blk-pci,bus=port2,drive=disk1",
        ],
    },
];

/// The answers of one guest: by number of the record, and whether the settings were strict.
type Answers = BTreeMap<(usize, bool), Answer>;

/// A topology and, once it was booted, its answers.
#[derive(Clone)]
pub struct Guest {
    topology: Topology,
    records: PathBuf,
    boot: Arc<OnceLock<Boot>>,
}

enum Boot {
    /// Why there is no guest here.
    Skipped(String),
    /// The error of the guest as a whole.
    Failed(String),
    Done(Answers),
}

#[derive(Serialize, Deserialize)]
struct Line {
    at: usize,
    strict: bool,
    rc: i32,
    stdout: String,
    stderr: String,
}

impl Guest {
    pub fn new(topology: Topology, folder: &Path) -> Self {
        let records = folder.join(format!("{}.jsonl", topology.file));
        Self { topology, records, boot: Arc::default() }
    }

    /// The answer to a record; `None`, with the reason printed, where no guest can be booted.
    pub fn answer(&self, at: usize, strict: bool) -> Result<Option<Answer>, String> {
        match self.boot.get_or_init(|| self.boot()) {
            Boot::Skipped(why) => {
                eprintln!("{} {why}", self.topology.file);
                Ok(None)
            }
            Boot::Failed(why) => Err(why.clone()),
            Boot::Done(answers) => match answers.get(&(at, strict)) {
                Some(answer) => Ok(Some(answer.clone())),
                None => Err(format!("the guest did not get to record {at}")),
            },
        }
    }

    fn boot(&self) -> Boot {
        let lab = match Lab::for_test(&KernelChoice::default()) {
            Ok(lab) => lab,
            Err(why) => return Boot::Skipped(why),
        };
        let machine = spec::machine(self.topology.spec).expect("the topologies are specs");
        let layout = Layout::new(&machine, &Limits::default()).expect("the topologies can be booted");
        // Which CPUs share a package is nothing that numactl shows.
        let differs = layout.notes.iter().any(|note| !note.starts_with("packages are not kept"));
        assert!(!differs, "the guest differs from its topology: {:?}", layout.notes);
        let own = std::env::current_exe().expect("a test knows its own path");
        let own = program::stripped(&own, self.topology.file);
        // All in the guest's memory: sections hide /tmp, where the clone may be, and each of them reads the records.
        let records = format!("{}.jsonl", self.topology.file);
        let [program, copy] = ["golden", records.as_str()].map(|name| Path::new(PROGRAMS_FOLDER).join(name));
        let words = [program.as_os_str(), "--guest".as_ref(), copy.as_os_str()];
        let command: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let mut guest = lab.guest(layout);
        guest.programs = vec![("golden".to_owned(), own), (records, self.records.clone())];
        guest.qemu_arguments = self.topology.devices.iter().map(OsString::from).collect();
        // Nearly a thousand processes on an emulated CPU, perhaps on a busy host.
        guest.timeout = Duration::from_secs(3600);
        // A file, so that what a failed guest answered can be looked at.
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.answers", self.topology.file));
        let mut file = File::create(&path).expect("cargo has made the folder");
        let mut told = Vec::new();
        let end = guest.stream(&command, &mut file, &mut told);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let answers: Answers = text.lines().filter_map(answer_of).collect();
        match end {
            Ok(0) => Boot::Done(answers),
            Ok(_) => Boot::Failed(String::from_utf8_lossy(&told).into_owned()),
            Err(error) => Boot::Failed(error.to_string()),
        }
    }
}

fn answer_of(line: &str) -> Option<((usize, bool), Answer)> {
    let Line { at, strict, rc, stdout, stderr } = serde_json::from_str(line.strip_prefix(MARK)?).ok()?;
    Some(((at, strict), Answer { rc, stdout, stderr }))
}

/// The program's other roles; comes back when it has none.
pub fn other_roles() {
    let words: Vec<String> = std::env::args().collect();
    match words.get(1).map(String::as_str) {
        Some("--guest") => {
            prepare();
            sections(&words[2]);
            std::process::exit(0);
        }
        Some("--section") => {
            section(&words[2], &words[3], &words[4]);
            std::process::exit(0);
        }
        _ => {}
    }
}

fn shell(script: &str) {
    let status = Command::new("sh").args(["-ec", script]).status().expect("there is a shell");
    assert!(status.success(), "{script}: {status}");
}

/// Puts the programs in place; makes the cpusets and the network of the records.
fn prepare() {
    let own = std::env::current_exe().expect("a program knows its own path");
    shell(&format!(
        "mkdir -p {PROGRAMS}; ln {} {PROGRAMS}/numactl; for name in migratepages seccomp-run; do
         ln -sf numactl {PROGRAMS}/$name; done",
        own.display()
    ));
    shell(
        "mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
         cd /sys/fs/cgroup; echo +cpuset > cgroup.subtree_control
         cpuset() { mkdir $1; echo $2 > $1/cpuset.cpus; echo $3 > $1/cpuset.mems; }
         [ -d /sys/devices/system/node/node3 ] || exit 0
         cpuset a 1-2 1-2; cpuset b 2 0-3; cpuset c 0-3 3; cpuset d 1,3 0,2",
    );
    shell(
        "cd /sys/class/net
         for link in *; do
             case $(readlink -f $link) in
             *0000:21:00.0*)
                 ip link set $link down; ip link set $link name eth0; ip link set eth0 up
                 ip addr add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2;;
             esac
         done; ip link set lo up",
    );
}

/// Runs every section of a file of records, with both settings.
fn sections(path: &str) {
    let records = crate::record::read_file(Path::new(path));
    let mut names: Vec<(&str, &str)> = Vec::new();
    for record in &records {
        let name = (record.tool.as_str(), record.section.as_str());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for (tool, section) in names {
        for strict in ["strict", "plain"] {
            let script = format!(
                "mount -t tmpfs none /tmp; mount -t tmpfs none /dev/shm; exec {PROGRAMS}/numactl \"$@\""
            );
            let key = format!("{tool}/{section}");
            // The first word is the program's name: not one of its roles by name.
            let status = Command::new("unshare")
                .args(["-im", "bash", "-ec", &script.replace("exec ", "exec -a golden "), "golden"])
                .args(["--section", path, &key, strict])
                .status()
                .expect("there is unshare");
            assert!(status.success(), "{key}: {status}");
        }
    }
}

/// Runs the records of one section and writes the answers.
fn section(path: &str, key: &str, settings: &str) {
    let strict = settings == "strict";
    let file = Path::new(path).file_stem().and_then(|name| name.to_str()).expect("a file of records");
    for (at, record) in crate::record::read_file(Path::new(path)).iter().enumerate() {
        if format!("{}/{}", record.tool, record.section) == key && crate::is_ours(file, record) {
            let Answer { rc, stdout, stderr } = run(record, strict);
            let line = Line { at, strict, rc, stdout, stderr };
            println!("{MARK}{}", serde_json::to_string(&line).expect("a line has no odd keys"));
        }
    }
}

fn run(record: &Record, strict: bool) -> Answer {
    let release = record.release().unwrap_or(Release::V2_0_19).number();
    let mut words = words::command_words(&record.cmd);
    let mut command;
    if words[0] == "incg" {
        let join = format!("echo $$ > /sys/fs/cgroup/{}/cgroup.procs; exec \"$@\"", words[1]);
        command = Command::new("sh");
        command.args(["-c", &join, "sh"]).args(&words[2..]);
    } else {
        command = Command::new(words.remove(0));
        command.args(words);
    }
    let path = format!("{PROGRAMS}:{}", std::env::var("PATH").unwrap_or_default());
    command.env("PATH", path).env("NODEWISE_NUMACTL_COMPAT", release);
    command.env("NODEWISE_STRICT_COMPAT", if strict { "1" } else { "0" });
    let output = command.output().expect("there is a shell");
    let mut answer = Answer::default();
    let rc = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0));
    answer.append(rc, &output.stdout, &output.stderr);
    if output.status.signal().is_some() {
        // The word of the recorder's shell.
        answer.stderr.push_str("Killed\n");
    }
    answer
}
