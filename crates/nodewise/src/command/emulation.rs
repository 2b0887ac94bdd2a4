//! `nodewise emulation`: emulated nodes, from the boot loader's files to what a kernel made of them.

mod before;
mod change;
mod facts;
mod ground;
mod image;
mod status;
mod verify;

use nodewise_machine::{KernelRelease, Machine, NodeSet};
use nodewise_model::fake::Fake;
use nodewise_model::fake::outcome::{Emulation, EmulationVariant, emulate, remark};
use nodewise_model::ram::Architecture;
use nodewise_model::{Change, Release};
use nodewise_source::Detail;
use nodewise_view::digest::emulation::Planned;
use nodewise_view::{json, text};

use crate::cli::Global;
use crate::cli::emulation::{Cut, Emulation as Verb, EmulationStep, Plan};
use crate::failure::{Failure, Outcome};
use crate::{input, output, zones};
use facts::Facts;
use ground::Ground;

/// Runs `emulation`.
pub fn run(args: &Verb, global: &Global) -> Outcome {
    match &args.kind {
        EmulationStep::Status(args) => status::run(args, global),
        EmulationStep::Plan(args) => plan(args, global),
        EmulationStep::Enable(args) => change::enable(args, global),
        EmulationStep::Disable(args) => change::disable(args, global),
        EmulationStep::Undo(args) => change::undo(args, global),
        EmulationStep::Verify(args) => verify::run(args, global),
    }
}

/// Runs `emulation plan`.
fn plan(args: &Plan, global: &Global) -> Outcome {
    let mut input = input::load_for(&args.supplied, &global.machine, Detail::Full)?;
    let mut facts = Facts::from_input(&input, input::is_live(&global.machine));
    if let Some(kernel) = &args.kernel {
        input.machine.kernel = Some(kernel.clone());
        // What this machine's kernel was built with says nothing of another.
        facts.support.is_there = None;
    }
    let machine = &input.machine;
    let asked = facts.command_line_fake().map(str::to_owned);
    let text = asked_for(&args.cut, facts.board_nodes()).map_err(Failure::usage)?.or(asked);
    let text = with_distances(text.ok_or_else(|| Failure::usage(NOTHING_ASKED))?, &args.distances);
    let fake = parsed(&text)?;
    let ground = Ground::from_machine(machine, facts.log.as_ref());
    ground.check(machine).map_err(|unknown| Failure::cannot(zones::missing(&unknown)))?;
    let (made, why) = foresee(&fake, machine, &facts, &ground);
    let kernel = machine.kernel.as_ref().map(KernelRelease::text);
    let kernel = kernel.map_or_else(|| "a kernel as 6.12".to_owned(), |text| format!("kernel {text}"));
    let planned = Planned {
        word: &format!("numa=fake={text}"),
        kernel: &kernel,
        basis: ground.basis,
        made: made.as_ref(),
        remark: why.as_deref(),
    };
    let json = || json::emulation::plan(&planned);
    output::show(args.json, global.color, json, |style| text::emulation::plan(&planned, style))?;
    Ok(0)
}

/// The text behind `numa=fake=` with these distances; without any, with those that it has.
fn with_distances(text: String, distances: &[u8]) -> String {
    if distances.is_empty() {
        return text;
    }
    // The kernel counts an entry only with a comma behind it.
    let entries: String = distances.iter().map(|distance| format!("{distance},")).collect();
    let cut = text.split(':').next().unwrap_or_default();
    format!("{cut}:{entries}")
}

/// Parses the text that follows `numa=fake=`.
fn parsed(text: &str) -> Result<Fake, Failure> {
    text.parse().map_err(|error| Failure::usage(format_args!("numa=fake={error}")))
}

/// The nodes that a machine's kernel makes of such words, and why not as many as they ask for, or none.
fn foresee(
    fake: &Fake,
    machine: &Machine,
    facts: &Facts,
    ground: &Ground,
) -> (Option<Emulation>, Option<String>) {
    let kind = EmulationVariant::from_machine(machine);
    // The command's own words for what the kernel lacks as a whole.
    let lacks = if facts.support.is_there == Some(false) {
        Some(format!("this kernel emulates no nodes: {}", facts.support.by))
    } else if is_before_arm(machine, kind) {
        Some("Linux before 6.12 emulates nodes on x86-64 only".to_owned())
    } else {
        None
    };
    let made = emulate(fake, kind, &ground.hardware, &ground.ram, &ground.blocks);
    let made = made.filter(|_| !is_before_arm(machine, kind));
    let why = lacks.or_else(|| remark(fake, kind, made.as_ref()));
    (made, why)
}

/// Whether a kernel for arm64 is too old to emulate nodes.
fn is_before_arm(machine: &Machine, kind: EmulationVariant) -> bool {
    let is_old = !Release::from_kernel(machine.kernel.as_ref()).has(Change::GenericEmulation);
    kind == EmulationVariant::Mainline && Architecture::from_machine(machine) == Architecture::Arm && is_old
}

/// The message when no option says how to cut memory.
const NOTHING_ASKED: &str = "how is memory to be cut? --count N, --node-size SIZE or --per-node N says so; only a Raspberry Pi 4 or 5 has a usual number";

/// The text behind `numa=fake=` for what was typed, or for the board; `None` where neither says.
fn asked_for(cut: &Cut, board_nodes: Option<u32>) -> Result<Option<String>, String> {
    const MIB: u64 = 1 << 20;
    if let Some(size) = cut.size {
        return match size.get() {
            bytes if bytes > 0 && bytes % MIB == 0 => Ok(Some(format!("{}M", bytes / MIB))),
            _ => Err(format!("--node-size: {size} is not a whole number of MiB, in which the kernel counts")),
        };
    }
    let per_node = cut.per_node.map(|count| format!("{count}U"));
    Ok(cut.nodes.or(board_nodes.filter(|_| per_node.is_none())).map(|count| count.to_string()).or(per_node))
}

/// Nodes as the kernel lists them, for a sentence: `node 0`, `nodes 0-3`.
fn named(nodes: &NodeSet) -> String {
    nodewise_machine::check::node_names(nodes)
}
