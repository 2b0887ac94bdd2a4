//! Emulated nodes in real kernels: an image is changed, a guest is started with what was written there,
//! and its kernel must have cut memory where a plan said that was made under another emulation.

#![expect(clippy::print_stderr, reason = "a test that cannot run says why")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;
use serde_json::Value;

/// The machines below: one node of the hardware, and two.
const MACHINES: [(&str, &str); 2] = [("one-node", "(2c 768M)"), ("two-nodes", "2x(1c 384M); dist=21")];
/// Numbers of nodes that are asked for.
const COUNTS: [u32; 5] = [2, 3, 4, 7, 8];

/// What runs in a guest: `$1` is nodewise, `$2` the folder that the host reads.
const SCRIPT: &str = "\
set -e
for count in \"$3\" \"$4\"; do \"$1\" emulation plan --nodes \"$count\" --json > \"$2/plan-$count\"; done
\"$1\" emulation verify --json > \"$2/verify\" || true
dmesg > \"$2/log\"
cd /sys/devices/system/node
for node in node[0-9]*; do
    echo \"$node:$(cat $node/cpulist):$(cat $node/distance)\"
done > \"$2/nodes\"
";

fn main() {
    let trials = MACHINES.into_iter().map(|(name, machine)| {
        Trial::test(format!("{name}_is_cut_as_planned"), move || check(name, machine))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn check(name: &str, machine: &str) -> Result<(), Failed> {
    let lab = match Lab::for_test(&KernelChoice::default()) {
        Ok(lab) => lab,
        Err(why) => {
            eprintln!("emulation::{name} {why}");
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let mut plans: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    let mut seen = BTreeMap::new();
    for (at, count) in COUNTS.into_iter().enumerate() {
        let other = COUNTS[(at + 1) % COUNTS.len()];
        let scratch = folder.path().join(count.to_string());
        fs::create_dir(&scratch)?;
        boot(&lab, machine, count, other, &scratch).map_err(|why| format!("{count} nodes: {why}"))?;
        for planned in [count, other] {
            plans.entry(planned).or_default().push(json(&scratch.join(format!("plan-{planned}")))?);
        }
        seen.insert(count, scratch);
    }
    for (count, scratch) in &seen {
        let kernel = Kernel::read(scratch)?;
        for plan in &plans[count] {
            kernel.matches(plan).map_err(|why| format!("{count} nodes: {why}"))?;
        }
        let verify = json(&scratch.join("verify"))?;
        // Every condition was looked at, and holds.
        let all = verify["checks"].as_array().ok_or("verify has no checks")?;
        if verify["holds"] != true || all.len() < 4 || all.iter().any(|check| check["holds"] != true) {
            return Err(format!("{count} nodes: verify says {verify}").into());
        }
        if count.is_power_of_two() && kernel.nodes.len() != *count as usize {
            return Err(format!("{count} nodes: there are {}", kernel.nodes.len()).into());
        }
    }
    Ok(())
}

/// Boots a guest with what `enable` wrote into an image.
fn boot(lab: &Lab, machine: &str, count: u32, other: u32, scratch: &Path) -> Result<(), String> {
    let machine = spec::machine(machine).map_err(|error| error.to_string())?;
    let layout = Layout::new(&machine, &Limits::default()).map_err(|error| error.to_string())?;
    let mut guest = lab.guest(layout);
    guest.append = vec![words_of_an_image(count)?];
    guest.scratch = Some(scratch.to_owned());
    let nodewise = env!("CARGO_BIN_EXE_nodewise");
    let (count, other) = (count.to_string(), other.to_string());
    let folder = nodewise_lab::script::SCRATCH_FOLDER;
    let words = ["sh", "-c", SCRIPT, "sh", nodewise, folder, &count, &other];
    let command: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let output = guest.run(&command).map_err(|error| error.to_string())?;
    if output.status == 0 {
        return Ok(());
    }
    Err(format!("status {}: {}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Changes an image and reads the command line as GRUB's scripts do: the shell gives it.
fn words_of_an_image(count: u32) -> Result<String, String> {
    let image = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = image.path().join("etc/default/grub");
    let old = "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n";
    let made = fs::create_dir_all(image.path().join("etc/default")).and_then(|()| fs::write(&file, old));
    made.map_err(|error| error.to_string())?;
    let mut enable = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    enable.args(["emulation", "enable", "--nodes", &count.to_string(), "--root"]).arg(image.path());
    let enabled = enable.output().map_err(|error| error.to_string())?;
    if !enabled.status.success() {
        return Err(String::from_utf8_lossy(&enabled.stderr).into_owned());
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", ". \"$1\"; echo $GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT", "sh"]).arg(&file);
    let output = shell.output().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn json(path: &Path) -> Result<Value, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// What a kernel made, read from its log and from sysfs without any parser of nodewise's.
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
