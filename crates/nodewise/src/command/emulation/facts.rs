//! Facts about emulation on this machine: its kernel's options and log, its command lines, its board.

use nodewise_boot::eeprom::BankLow;
use nodewise_boot::line;
use nodewise_machine::{KernelRelease, Machine};
use nodewise_source::boot;
use nodewise_source::parse::boot_log::BootLog;
use nodewise_source::parse::kernel_config::KernelConfig;
use nodewise_syscall::mempolicy;
use nodewise_view::digest::emulation::{Effect, Support};

use super::ground::Ground;
use crate::input::Input;

/// Options that bring `numa=fake=`: Linux's own, and that of the first Raspberry Pi kernels.
const OPTIONS: [&str; 2] = ["NUMA_EMU", "NUMA_EMULATION"];

/// The known facts about a machine.
pub(super) struct Facts {
    /// The log that its kernel wrote while it started.
    pub(super) log: Option<BootLog>,
    /// Why that is not known.
    pub(super) no_log: Option<String>,
    /// Whether its kernel emulates nodes.
    pub(super) support: Support,
    /// The model of its board.
    pub(super) board: Option<String>,
    /// The request of its firmware's device tree.
    pub(super) firmware: Option<String>,
    pub(super) command_line: Option<String>,
    /// The policy of a new process.
    pub(super) policy: Option<String>,
}

impl Facts {
    /// Looks at a machine. What cannot be read counts as not there, except for the log, whose reason is kept.
    pub(super) fn from_input(input: &Input, is_live: bool) -> Self {
        let tree = input.tree();
        let release = input.machine.kernel.as_ref().map(KernelRelease::text);
        let config =
            tree.zip(release).and_then(|(tree, release)| boot::kernel_config(tree, release).ok().flatten());
        let (log, no_log) = match tree.map(boot::log) {
            Some(Ok(log)) => (log, None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        let own_policy = is_live.then(|| mempolicy::thread_policy().ok()).flatten();
        let policy = log.as_ref().and_then(|log| log.policy.clone());
        Self {
            support: support(&input.machine, config.as_ref(), log.as_ref()),
            board: tree.and_then(|tree| boot::board(tree).ok().flatten()),
            firmware: tree.and_then(|tree| boot::firmware_arguments(tree).ok().flatten()),
            command_line: input.machine.settings.command_line.clone(),
            policy: own_policy.map(|policy| policy.to_string()).or(policy),
            log,
            no_log,
        }
    }

    /// The text behind the last `numa=fake=` of the running kernel's command line.
    pub(super) fn command_line_fake(&self) -> Option<&str> {
        line::value(self.command_line.as_deref()?, line::FAKE)
    }

    /// The text behind the last `numa_policy=`.
    pub(super) fn command_line_policy(&self) -> Option<&str> {
        line::value(self.command_line.as_deref()?, line::POLICY)
    }

    /// The number in a Raspberry Pi's name: `5` of `Raspberry Pi 5 Model B`, also of `Raspberry Pi 500`.
    pub(super) fn raspberry_pi(&self) -> Option<u8> {
        raspberry_pi(self.board.as_deref()?)
    }

    /// As many nodes as the board's boot loader asks for where nothing is set.
    pub(super) fn board_nodes(&self) -> Option<u32> {
        BankLow::default_of(self.raspberry_pi()?).map(BankLow::nodes)
    }

    /// Returns the emulation in force.
    pub(super) fn effect(&self, machine: &Machine) -> Effect {
        let log = self.log.as_ref();
        let by_log =
            log.and_then(|log| if log.emulated.is_empty() { log.whole.then_some(false) } else { Some(true) });
        // A board with one memory controller has no other way to several nodes.
        let by_board = (self.raspberry_pi().is_some() && machine.nodes.len() > 1).then_some(true);
        // No one asked, so no one did.
        let by_request = match (&self.command_line, self.command_line_fake()) {
            (Some(_), None) => Some(false),
            _ => None,
        };
        let is_emulated = by_board.or(by_log).or(by_request);
        let below = if by_board.is_some() {
            Some(1)
        } else {
            log.filter(|log| !log.emulated.is_empty())
                .map(|log| Ground::from_machine(machine, Some(log)).hardware.nodes.len())
        };
        Effect { nodes: machine.nodes.len(), is_emulated, hardware_nodes: below, policy: self.policy.clone() }
    }

    /// Words on nodes that the running kernel does not know; `None` where its log does not reach back.
    pub(super) fn ignored(&self) -> Option<Vec<String>> {
        let log = self.log.as_ref().filter(|log| log.whole)?;
        let ours = log.unknown.iter().filter(|word| word.starts_with("numa"));
        Some(ours.cloned().collect())
    }
}

fn raspberry_pi(model: &str) -> Option<u8> {
    let rest = model.strip_prefix("Raspberry Pi ")?;
    let rest = rest.strip_prefix("Compute Module ").unwrap_or(rest);
    let digit = rest.chars().next()?.to_digit(10)?;
    u8::try_from(digit).ok()
}

/// Whether a kernel that was built so emulates nodes.
pub(super) fn of_config(config: &KernelConfig) -> Support {
    let told = |is_there, by: String| Support { is_there: Some(is_there), by };
    match OPTIONS.into_iter().find(|option| config.is_set(option) == Some(true)) {
        Some(option) => told(true, format!("built with CONFIG_{option}")),
        None if config.is_set("NUMA") != Some(true) => told(false, "built without CONFIG_NUMA".to_owned()),
        None => told(false, "built without CONFIG_NUMA_EMU".to_owned()),
    }
}

fn support(machine: &Machine, config: Option<&KernelConfig>, log: Option<&BootLog>) -> Support {
    if log.is_some_and(|log| !log.emulated.is_empty()) {
        return Support { is_there: Some(true), by: "it has emulated nodes".to_owned() };
    }
    if let Some(config) = config {
        return of_config(config);
    }
    let release = machine.kernel.as_ref().map_or("", KernelRelease::text);
    let by = if release.is_empty() {
        "which kernel this is, is not known".to_owned()
    } else {
        format!("its options are unknown: /boot/config-{release} is missing")
    };
    Support { is_there: None, by }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_are_told_by_their_names() {
        let check = |model: &str, expected: Option<u8>| assert_eq!(raspberry_pi(model), expected, "{model}");
        check("Raspberry Pi 5 Model B Rev 1.0", Some(5));
        check("Raspberry Pi 4 Model B Rev 1.4", Some(4));
        check("Raspberry Pi 500 Rev 1.0", Some(5));
        check("Raspberry Pi Compute Module 4 Rev 1.1", Some(4));
        check("Raspberry Pi Zero 2 W Rev 1.0", None);
        check("Radxa ROCK 5B", None);
    }
}
