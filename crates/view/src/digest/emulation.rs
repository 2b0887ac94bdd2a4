//! Emulated nodes: what a machine supports, was asked for and has, and the outcome of a change.

use nodewise_machine::{Bytes, NodeId};
use nodewise_model::fake::outcome::Emulation;

use super::walk::Basis;

/// Whether the kernel can emulate nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// `None`: nothing says.
    pub is_there: Option<bool>,
    /// By what this is known, or why it is not.
    pub by: String,
}

/// A place that can ask for an emulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The place: a file, or a program.
    pub place: String,
    /// Whether the running kernel was started with it, or the next one will be.
    pub when: When,
    /// The text behind `numa=fake=`.
    pub fake: Option<String>,
    /// The text behind `numa_policy=`.
    pub policy: Option<String>,
}

/// Which start of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The one that the running kernel results from.
    Running,
    Next,
}

impl When {
    /// The word in text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Next => "next",
        }
    }
}

/// The emulation in force, by its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub nodes: usize,
    /// Whether the nodes are emulated; `None` where the kernel log that says so is lost or may not be read.
    pub is_emulated: Option<bool>,
    /// Nodes of the hardware below, where they are known.
    pub hardware_nodes: Option<usize>,
    /// The policy of a new process, in the kernel's words.
    pub policy: Option<String>,
}

/// The peculiarities of a Raspberry Pi.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Board {
    pub model: String,
    /// `SDRAM_BANKLOW` as it is set, or why it is not known.
    pub banklow: Option<Result<BankLow, String>>,
    /// The day on which its boot loader was built: `2024-12-07`.
    pub boot_loader: Option<String>,
    /// Whether `config.txt` asks for the command queue of memory cards.
    pub card_queue_asked: Option<bool>,
    /// Whether the kernel uses it.
    pub card_queue_used: Option<bool>,
    /// The ways to sleep, and the chosen one.
    pub sleep: Option<(Vec<String>, String)>,
}

/// Which bits of an address choose a bank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BankLow {
    pub value: u8,
    /// Whether the value is set, or the boot loader's own.
    pub is_set: bool,
    /// The address from its highest bit down.
    pub layout: &'static str,
    /// Nodes that have banks of their own.
    pub nodes: u32,
}

/// All that is known of emulation on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The folder of an image that this is about instead of a machine.
    pub image: Option<String>,
    /// The release of its kernel.
    pub kernel: Option<String>,
    pub support: Support,
    pub requests: Vec<Request>,
    /// Why the boot files could not be read, in words.
    pub boot_files: Option<String>,
    /// The effect in force; `None` of an image, in which nothing runs.
    pub effect: Option<Effect>,
    /// Words of the command line on nodes that nothing in the kernel knows; `None` where the kernel
    /// log does not reach back.
    pub ignored: Option<Vec<String>>,
    /// Why the kernel log could not be read.
    pub no_log: Option<String>,
    pub board: Option<Board>,
    /// Files that set `numa_policy` where it does nothing, with the line.
    pub vain: Vec<(String, u32)>,
    pub advice: Vec<String>,
}

/// The result that an emulation would have.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// The word: `numa=fake=8`.
    pub word: &'a str,
    pub kernel: &'a str,
    /// Whether ranges are those of the kernel's log, or assumed.
    pub basis: Basis,
    /// Its outcome; `None`: the kernel gives up.
    pub made: Option<&'a Emulation>,
    /// Why it is not what was asked for.
    pub remark: Option<&'a str>,
}

/// One condition of an emulation that works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub what: &'static str,
    /// Whether the condition holds; `None` where that is not known.
    pub holds: Option<bool>,
    /// How this is known, or what is wrong.
    pub reason: String,
}

/// A machine before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brought {
    /// Nodes before, where that is known, and now.
    pub nodes: (Option<usize>, usize),
    /// Memory that programs can use, before and now.
    pub memory: Option<(Bytes, Bytes)>,
    /// The release before and now, where it is another.
    pub kernel: Option<(String, String)>,
    /// The policy of a new process before and now.
    pub policy: Option<(String, String)>,
    /// How much faster programs are.
    pub figures: Figures,
}

/// How to know how much faster programs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Figures {
    /// The command that shows it.
    Command(String),
    /// Nothing to compare with was saved; how it would have been, and will be.
    NotSaved(&'static str),
}

impl Figures {
    /// The words.
    pub fn text(&self) -> &str {
        match self {
            Self::Command(command) => command,
            Self::NotSaved(how) => how,
        }
    }
}

/// Whether an emulation works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub checks: Vec<Check>,
    /// The machine before and after, where there is something to compare with.
    pub brought: Option<Brought>,
    pub advice: Vec<String>,
}

impl Verified {
    /// Whether every condition that could be looked at holds.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.holds != Some(false))
    }
}

/// A file of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its path, seen from the root.
    pub path: String,
    /// The difference, as `patch` reads it.
    pub diff: String,
    /// Where the old one is kept; `None` where nothing was written.
    pub backup: Option<String>,
}

/// A change of boot files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    pub is_dry: bool,
    pub files: Vec<ChangedFile>,
    /// Files that were right already.
    pub right: Vec<String>,
    pub remarks: Vec<String>,
    pub next: Vec<String>,
}

/// Returns the consequences of nodes for programs: the opposite for emulated and for real ones.
///
/// # Source
/// Why interleaving pays on a board with one memory controller: the description of the patches that
/// brought emulation to the Raspberry Pi. That `mpirun` cancels it: published runs of HPL on a
/// Raspberry Pi 5, which were as slow as without emulation until they had `--bind-to none`.
pub fn advice(effect: &Effect, is_board: bool) -> Vec<String> {
    let mut advice = Vec::new();
    let emulated = effect.is_emulated == Some(true);
    if effect.nodes < 2 {
        return advice;
    }
    let several = effect.hardware_nodes.is_some_and(|nodes| nodes > 1);
    if emulated && several {
        advice.push(
            "These emulated nodes lie on several real ones: pages of the other hardware nodes stay remote. \
             Interleave among the nodes at distance 10 of each other, and keep the rest local."
                .to_owned(),
        );
    } else if emulated {
        let interleaves = effect.policy.as_deref().is_some_and(|policy| policy.starts_with("interleave"));
        let how = if interleaves {
            "New processes do so already."
        } else {
            "Use nodewise run --interleave=all -- COMMAND."
        };
        advice.push(format!(
            "Interleave: these nodes are slices of one memory, as near to every CPU, and pages spread over all of \
             them keep more of its banks busy at once. {how}"
        ));
        advice.push(
            "mpirun binds each rank to a node or a core by default, and its memory with it: that cancels \
             interleaving. Use mpirun --bind-to none."
                .to_owned(),
        );
    } else if effect.is_emulated == Some(false) && !is_board {
        advice.push(
            "Do not interleave by default: these nodes are real, so a page on the CPU's own node is nearer than \
             any other. Keep programs and memory together, and interleave what threads of all nodes share."
                .to_owned(),
        );
    }
    advice
}

/// Up to this many nodes a plan is shown in full.
pub const FEW: usize = 16;

/// The nodes of a planned emulation that a node falls back on; of many the first.
pub fn order_of(made: &Emulation, node: NodeId) -> String {
    let order = made.orders.from(node);
    let shown = if order.len() > FEW { FEW / 2 } else { order.len() };
    let mut words: Vec<String> = order.iter().take(shown).map(ToString::to_string).collect();
    if order.len() > shown {
        words.push(format!("and {} more", order.len() - shown));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(nodes: usize, is_emulated: Option<bool>, hardware_nodes: Option<usize>, expected: &[&str]) {
        let effect = Effect { nodes, is_emulated, hardware_nodes, policy: None };
        let advice = advice(&effect, false);
        let starts: Vec<&str> =
            advice.iter().map(|line| line.split(' ').next().unwrap_or_default()).collect();
        assert_eq!(starts, expected);
    }

    #[test]
    fn emulated_and_real_nodes_get_opposite_advice() {
        check(8, Some(true), Some(1), &["Interleave:", "mpirun"]);
        check(2, Some(false), None, &["Do"]);
        check(4, Some(true), Some(2), &["These"]);
        check(1, Some(false), None, &[]);
        check(4, None, None, &[]);
    }
}
