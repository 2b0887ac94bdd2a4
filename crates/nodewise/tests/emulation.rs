//! Emulated nodes in real kernels: an image is changed, a guest is started with what was written there,
//! and its kernel must have cut memory where a plan said that was made under another emulation.

#![expect(clippy::print_stderr, reason = "a test that cannot run says why")]

#[path = "../../compat/tests/golden/program.rs"]
mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use libtest_mimic::{Arguments, Failed, Trial};
use nodewise_lab::script::{PROGRAMS_FOLDER, SCRATCH_FOLDER};
use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;
use serde_json::Value;

/// A machine below, and the request.
struct Machine {
    name: &'static str,
    spec: &'static str,
    /// How memory is to be cut, through which file of a boot loader, and the number of nodes that result.
    boots: [(&'static str, Writer, usize); 6],
}

/// One node of the hardware, and two. Pieces grow in steps of 32 MiB around holes, so fewer nodes can result
/// than were asked for; what is left behind the last whole piece of a size belongs to that.
const MACHINES: [Machine; 2] = [
    Machine {
        name: "one-node",
        spec: "(2c 768M)",
        boots: [
            ("--count=2", Writer::Grub, 2),
            ("--count=3", Writer::CmdlineTxt, 3),
            ("--count=4", Writer::Entry, 4),
            ("--count=7", Writer::Grub, 7),
            ("--count=8", Writer::CmdlineTxt, 8),
            ("--node-size=128M", Writer::Entry, 5),
        ],
    },
    Machine {
        name: "two-nodes",
        spec: "2x(1c 384M); dist=21",
        boots: [
            ("--count=2", Writer::Entry, 2),
            ("--count=3", Writer::Grub, 2),
            ("--count=4", Writer::CmdlineTxt, 4),
            ("--count=7", Writer::Entry, 6),
            ("--count=8", Writer::Grub, 8),
            ("--per-node=2", Writer::CmdlineTxt, 4),
        ],
    },
];

/// A file that holds a command line.
#[derive(Clone, Copy)]
enum Writer {
    Grub,
    CmdlineTxt,
    Entry,
}

impl Writer {
    /// Its path in an image, and its text before the change.
    const fn file(self) -> (&'static str, &'static str) {
        match self {
            Self::Grub => (
                "etc/default/grub",
                "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n",
            ),
            Self::CmdlineTxt => ("boot/firmware/cmdline.txt", "quiet\n"),
            Self::Entry => ("boot/loader/entries/a.conf", "title a\nlinux /vmlinuz\noptions quiet\n"),
        }
    }

    /// A shell command that prints the command line as the boot loader would read it from `$1`.
    const fn reading(self) -> &'static str {
        match self {
            // GRUB's scripts are shell scripts.
            Self::Grub => ". \"$1\"; echo $GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT",
            Self::CmdlineTxt => "head -n 1 \"$1\"",
            Self::Entry => "sed -n 's/^options //p' \"$1\"",
        }
    }
}

/// The script that runs in a guest: `$1` is nodewise, `$2` the folder that the host reads.
const SCRIPT: &str = "\
set -e
for cut in \"$3\" \"$4\"; do \"$1\" emulation plan \"$cut\" --json > \"$2/plan$cut\"; done
\"$1\" emulation verify --json > \"$2/verify\" || true
dmesg > \"$2/log\"
cd /sys/devices/system/node
for node in node[0-9]*; do
    echo \"$node:$(cat $node/cpulist):$(cat $node/distance)\"
done > \"$2/nodes\"
";

fn main() {
    let trials = MACHINES
        .iter()
        .map(|machine| Trial::test(format!("{}_is_cut_as_planned", machine.name), || check(machine)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn check(machine: &Machine) -> Result<(), Failed> {
    let lab = match Lab::for_test(&KernelChoice::default()) {
        Ok(lab) => lab,
        Err(why) => {
            eprintln!("emulation::{} {why}", machine.name);
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    // Each way of cutting is planned in a guest that runs with it, and in one that runs with another.
    let mut plans: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for (at, (cut, writer, _)) in machine.boots.iter().enumerate() {
        let other = machine.boots[(at + 1) % machine.boots.len()].0;
        let scratch = folder.path().join(cut);
        fs::create_dir(&scratch)?;
        boot(&lab, machine.spec, *writer, [cut, other], &scratch).map_err(|why| format!("{cut}: {why}"))?;
        for planned in [*cut, other] {
            plans.entry(planned).or_default().push(json(&scratch.join(format!("plan{planned}")))?);
        }
    }
    for (cut, _, expected) in &machine.boots {
        let scratch = &folder.path().join(cut);
        let kernel = Kernel::read(scratch)?;
        for plan in &plans[cut] {
            kernel.matches(plan).map_err(|why| format!("{cut}: {why}"))?;
        }
        if kernel.nodes.len() != *expected {
            return Err(format!("{cut}: there are {} nodes, {expected} expected", kernel.nodes.len()).into());
        }
        let verify = json(&scratch.join("verify"))?;
        // Every condition was looked at, and holds.
        let all = verify["checks"].as_array().ok_or("verify has no checks")?;
        if verify["holds"] != true || all.len() < 4 || all.iter().any(|check| check["holds"] != true) {
            return Err(format!("{cut}: verify says {verify}").into());
        }
    }
    Ok(())
}

/// Boots a guest with what `enable` wrote into an image.
fn boot(lab: &Lab, machine: &str, writer: Writer, cuts: [&str; 2], scratch: &Path) -> Result<(), String> {
    let machine = spec::machine(machine).map_err(|error| error.to_string())?;
    let layout = Layout::new(&machine, &Limits::default()).map_err(|error| error.to_string())?;
    let mut guest = lab.guest(layout);
    guest.append = vec![words_of_an_image(writer, cuts[0])?];
    guest.scratch = Some(scratch.to_owned());
    guest.programs = vec![("nodewise".to_owned(), nodewise().clone())];
    let nodewise = format!("{PROGRAMS_FOLDER}/nodewise");
    let words = ["sh", "-c", SCRIPT, "sh", &nodewise, SCRATCH_FOLDER, cuts[0], cuts[1]];
    let command: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let output = guest.run(&command).map_err(|error| error.to_string())?;
    if output.status == 0 {
        return Ok(());
    }
    Err(format!("status {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// nodewise, small enough to be copied into guests.
fn nodewise() -> &'static PathBuf {
    static SMALL: OnceLock<PathBuf> = OnceLock::new();
    SMALL.get_or_init(|| program::stripped(Path::new(env!("CARGO_BIN_EXE_nodewise")), "emulation"))
}

/// Changes an image and reads the command line as its boot loader does.
fn words_of_an_image(writer: Writer, cut: &str) -> Result<String, String> {
    let image = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (path, old) = writer.file();
    let file = image.path().join(path);
    let folder = file.parent().ok_or("a file without a folder")?;
    fs::create_dir_all(folder).and_then(|()| fs::write(&file, old)).map_err(|error| error.to_string())?;
    let mut enable = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    // The guests' kernels do not have the default policy of Raspberry Pi kernels.
    enable.args(["emulation", "enable", cut, "--policy=none", "--root"]).arg(image.path());
    let enabled = enable.output().map_err(|error| error.to_string())?;
    if !enabled.status.success() {
        return Err(String::from_utf8_lossy(&enabled.stderr).into_owned());
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", writer.reading(), "sh"]).arg(&file);
    let output = shell.output().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn json(path: &Path) -> Result<Value, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The nodes that a kernel made, read from its log and from sysfs without any parser of nodewise's.
struct Kernel {
    /// Node, first and last byte of every piece.
    pieces: BTreeSet<(u64, u64, u64)>,
    /// The fallback order of each node.
    orders: BTreeMap<u64, Vec<u64>>,
    /// CPUs and distances of each node.
    nodes: BTreeMap<u64, (String, Vec<u64>)>,
}

impl Kernel {
    fn read(folder: &Path) -> Result<Self, String> {
        let text =
            |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
        let numbers = |text: &str| text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let mut kernel = Self { pieces: BTreeSet::new(), orders: BTreeMap::new(), nodes: BTreeMap::new() };
        for line in text("log")?.lines() {
            if let Some((_, rest)) = line.split_once("] Faking node ") {
                let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
                let piece = rest.split_once(" at [mem ").and_then(|(node, rest)| {
                    let (start, rest) = rest.split_once('-')?;
                    Some((node.parse().ok()?, hex(start)?, hex(rest.split_once(']')?.0)?))
                });
                kernel.pieces.insert(piece.ok_or_else(|| line.to_owned())?);
            } else if let Some((_, rest)) = line.split_once("] Fallback order for Node ") {
                let (node, order) = rest.split_once(':').ok_or_else(|| line.to_owned())?;
                kernel.orders.insert(node.parse().map_err(|_| line.to_owned())?, numbers(order));
            }
        }
        for line in text("nodes")?.lines() {
            let parts: Vec<&str> = line.trim_start_matches("node").split(':').collect();
            let [node, cpus, distances] = parts[..] else { return Err(line.to_owned()) };
            let node = node.parse().map_err(|_| line.to_owned())?;
            kernel.nodes.insert(node, (cpus.to_owned(), numbers(distances)));
        }
        Ok(kernel)
    }

    /// Whether a plan named all of it.
    fn matches(&self, plan: &Value) -> Result<(), String> {
        let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX);
        let list = |value: &Value| value.as_array().into_iter().flatten().map(number).collect::<Vec<u64>>();
        let (mut pieces, mut orders, mut nodes) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        for (at, node) in plan["nodes"].as_array().into_iter().flatten().enumerate() {
            let id = number(&node["node"]);
            for range in node["ranges"].as_array().into_iter().flatten() {
                pieces.insert((id, number(&range["first_byte"]), number(&range["last_byte"])));
            }
            orders.insert(id, list(&node["fallback_nodes"]));
            let cpus = node["cpus"].as_str().unwrap_or_default().to_owned();
            nodes.insert(id, (cpus, list(&plan["distances"][at])));
        }
        if plan["ranges_from"] != "kernel" {
            return Err(format!("the plan did not know the kernel's log: {plan}"));
        }
        same("ranges", &pieces, &self.pieces)?;
        same("fallback orders", &orders, &self.orders)?;
        same("CPUs and distances", &nodes, &self.nodes)
    }
}

/// Fails with both values when they differ.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, planned: &T, kernels: &T) -> Result<(), String> {
    if planned == kernels {
        Ok(())
    } else {
        Err(format!("{what}: planned {planned:x?}, the kernel's {kernels:x?}"))
    }
}
