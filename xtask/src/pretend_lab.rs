//! `cargo xtask pretend-lab`: the same scripts by the same program, in `nodewise pretend` and in a guest of the same machine.
//!
//! The guest writes down its machine as nodewise sees it, and `pretend` takes that: the release of the kernel and its settings are
//! the guest's. The program prints the answer to each call, the policies and the node of each page; both outputs are compared
//! line by line.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use nodewise_conformance::probe::{self, Comparison, MemoryChanges};
use nodewise_conformance::{Copies, Drawer, Script, ScriptId, ScriptKind};
use nodewise_lab::Arch;
use nodewise_lab::tools::find_program;
use nodewise_machine::{Machine, spec};
use nodewise_source::machine_file;

use crate::libnuma::build::target_folder;
use crate::{program, setup};

/// Two nodes, four nodes with two distances, and one without CPUs.
pub const MACHINES: [&str; 3] = [
    "2x(2c 512M); dist=21",
    "4x(1c 384M); dist=10,16,21,21/16,10,21,21/21,21,10,16/21,21,16,10",
    "2x(2c 512M) (384M); dist=10,21,17/21,10,28/17,28,10",
];

/// Kinds of scripts whose calls `pretend` answers.
const KINDS: [ScriptKind; 2] = [ScriptKind::Calls, ScriptKind::Threads];
/// Differences that are shown for each kind.
const SHOWN: usize = 1;

/// Which scripts are played, and where.
#[derive(clap::Args)]
pub struct PretendLab {
    /// The machine; may be repeated
    #[arg(long = "machine", value_name = "SPEC", default_values = MACHINES)]
    machines: Vec<String>,
    /// The kernel of the guests, by the start of its release
    #[arg(long, default_value = nodewise_lab::kernel::DEFAULT_VERSION)]
    kernel: String,
    /// Scripts of each kind on each machine
    #[arg(long, default_value_t = 40)]
    scripts: u64,
    /// Random seed: the number of the first script; the next ones follow it
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Have children and parents write to the pages that they share: pretend does not see the copies
    #[arg(long)]
    copies: bool,
    /// Replace, move and give back memory between the calls
    #[arg(long)]
    changes: bool,
    /// The nodewise to try, instead of one that is built here
    #[arg(long, value_name = "FILE")]
    nodewise: Option<PathBuf>,
}

/// Plays them; fails when any differs.
pub fn run(root: &Path, play: &PretendLab) -> Result<()> {
    let missing = find_program("gcc").is_none().then_some("gcc");
    program::need_packages(missing.as_slice())?;
    setup::run(&[(play.kernel.clone(), Arch::X86)])?;
    let target = target_folder(root);
    let nodewise = match &play.nodewise {
        Some(nodewise) => nodewise.clone(),
        None => {
            program::show(program::cargo(root).args(["build", "-q", "--package", "nodewise"]))?;
            target.join("debug/nodewise")
        }
    };
    let folder = target.join("pretend-lab");
    fs::create_dir_all(&folder)?;
    let players = Players { nodewise, probe: compiled(&folder)?, folder };
    let mut different = 0;
    for (number, machine) in play.machines.iter().enumerate() {
        // Other scripts on each machine.
        let first = play.seed + number as u64 * 1000;
        let compared = players.compare(play, machine, first)?;
        println!("{machine}, Linux {}", play.kernel);
        report(&compared);
        different += compared.different.len();
    }
    ensure!(different == 0, "{different} scripts differ between pretend and the guest");
    Ok(())
}

/// Compiles the program that plays scripts.
fn compiled(folder: &Path) -> Result<PathBuf> {
    let (source, program) = (folder.join("probe.c"), folder.join("probe"));
    fs::write(&source, probe::source())?;
    let mut compile = Command::new("gcc");
    // Static: the same pages of the program itself in both places.
    compile.args(["-O2", "-static", "-pthread", "-Wall", "-Wextra", "-Werror", "-o"]);
    program::quiet(compile.args([&program, &source]))?;
    Ok(program)
}

struct Players {
    nodewise: PathBuf,
    probe: PathBuf,
    folder: PathBuf,
}

impl Players {
    fn compare(&self, play: &PretendLab, machine_text: &str, first: u64) -> Result<Comparison> {
        let machine = spec::machine(machine_text)?;
        let scripts = drawn(&machine, play, first);
        let lines = self.folder.join("scripts");
        let (changes, own) =
            if play.changes { (MemoryChanges::Drawn, probe::REPLACED) } else { (MemoryChanges::None, "") };
        fs::write(&lines, probe::lines(&machine, &scripts, changes) + own)?;
        let (guest, seen) = self.in_guest(play, machine_text, &lines)?;
        let booted = machine_file::from_json(&fs::read_to_string(&seen)?)?;
        ensure!(
            homes(&booted) == homes(&machine) && booted.nodes_with_memory() == machine.nodes_with_memory(),
            "the guest of {machine_text} has other CPUs or nodes: take a machine that lab need not scale"
        );
        let pretended = self.in_pretend(&seen, &lines)?;
        Ok(probe::compare(&guest, &pretended))
    }

    /// The output in a guest, and the machine file that was written there.
    fn in_guest(&self, play: &PretendLab, machine: &str, lines: &Path) -> Result<(String, PathBuf)> {
        let scratch = tempfile::tempdir_in(&self.folder)?;
        let mut command = Command::new(&self.nodewise);
        command.args([
            "lab",
            "--engine=tcg",
            "--machine",
            machine,
            "--kernel",
            &play.kernel,
            "--timeout",
            "30m",
            "--scratch",
        ]);
        command.arg(scratch.path()).args(["--", "sh", "-c"]);
        let script = "\"$0\" show --json > \"$NODEWISE_SCRATCH/machine.json\" && \
                      \"$1\" \"$2\" \"$3\" > \"$NODEWISE_SCRATCH/output\"";
        command.arg(script).args([&self.nodewise, &self.probe]).arg(lines).arg(huge_pages());
        program::quiet(&mut command)?;
        let (output, seen) = (self.folder.join("guest.txt"), self.folder.join("machine.json"));
        fs::copy(scratch.path().join("output"), &output)?;
        fs::copy(scratch.path().join("machine.json"), &seen)?;
        Ok((fs::read_to_string(output)?, seen))
    }

    /// The output on the machine of a file.
    fn in_pretend(&self, machine: &Path, lines: &Path) -> Result<String> {
        let output = self.folder.join("pretend.txt");
        let mut command = Command::new(&self.nodewise);
        command.arg("pretend").arg("--machine").arg(machine).arg("--").arg(&self.probe).arg(lines);
        let line = program::line(&command);
        let ran = command.stdin(Stdio::null()).stdout(File::create(&output)?).status();
        let status = ran.with_context(|| format!("cannot start: {line}"))?;
        if !status.success() {
            bail!("{line}: {status}");
        }
        Ok(fs::read_to_string(output)?)
    }
}

/// The setting of huge pages in a guest, so that memory with advice gets them there where it gets them here.
fn huge_pages() -> &'static str {
    let here = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if here.contains("[madvise]") || here.contains("[always]") { "madvise" } else { "never" }
}

fn drawn(machine: &Machine, play: &PretendLab, first: u64) -> Vec<(ScriptId, Script)> {
    let ids = KINDS
        .into_iter()
        .flat_map(|kind| (first..first + play.scripts).map(move |number| ScriptId { kind, number }));
    let copies = if play.copies { Copies::Keep } else { Copies::LeaveOut };
    ids.map(|id| (id, Drawer::script(machine, id).of_one_program(copies))).collect()
}

/// The first CPU of each node that has any.
fn homes(machine: &Machine) -> Vec<(u32, Option<u32>)> {
    let nodes = machine.nodes_with_cpus();
    let first = |node| machine.cpus_of(node).first().map(nodewise_machine::CpuId::number);
    nodes.iter().map(|node| (node.number(), first(node))).collect()
}

fn report(compared: &Comparison) {
    println!(
        "  {} scripts the same, {} different; {} lines compared",
        compared.same,
        compared.different.len(),
        compared.lines
    );
    for (kind, count) in compared.by_kind() {
        println!("  first difference in {kind}: {count} scripts");
        for unlike in compared.different.iter().filter(|unlike| unlike.kind == kind).take(SHOWN) {
            println!("    kernel   {}", unlike.kernel);
            println!("    pretend  {}", unlike.other);
        }
    }
}
