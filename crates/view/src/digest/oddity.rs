//! Which oddities are told as such.

use nodewise_machine::{Machine, Oddity, OddityKind};

/// The oddities that are told as such: all but limits of the process without a file, which have a
/// section of their own.
pub fn worth_telling(machine: &Machine) -> impl Iterator<Item = &Oddity> {
    machine.oddities.iter().filter(|oddity| oddity.kind != OddityKind::Restricted || oddity.path.is_some())
}

/// How many there are, and where to read them: `3 oddities: see nodewise show`. `None` without any.
pub fn pointer(machine: &Machine) -> Option<String> {
    match worth_telling(machine).count() {
        0 => None,
        1 => Some("1 oddity: see nodewise show".to_owned()),
        count => Some(format!("{count} oddities: see nodewise show")),
    }
}
