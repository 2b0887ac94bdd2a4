//! Files of the host that pin interrupts when it starts.

use super::{SiteFact, text};
use crate::tree::Tree;

/// Scripts that run at the end of a start.
const SCRIPTS: [&str; 2] = ["/etc/rc.local", "/etc/rc.d/rc.local"];
/// Folders of the administrator's own files, and how the names of those in force end.
const FOLDERS: [(&str, &str); 2] = [("/etc/udev/rules.d", ".rules"), ("/etc/systemd/system", ".service")];
/// Words of such lines: the kernel's file, and the scripts that come with network cards of Intel and NVIDIA.
const WORDS: [&str; 2] = ["smp_affinity", "set_irq_affinity"];
/// Most files of a folder that are read.
const MOST_FILES: usize = 256;

/// A line that pins interrupts. No text is fit for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PinningLine {
    pub path: String,
    pub line: usize,
}

/// Finds the first such line of each file; absent where there is none.
pub(super) fn read(tree: &Tree) -> SiteFact<Vec<PinningLine>> {
    let mut paths: Vec<String> = SCRIPTS.map(str::to_owned).into();
    for (folder, end) in FOLDERS {
        let mut names = tree.list(folder).ok().flatten().unwrap_or_default();
        names.retain(|name| name.ends_with(end));
        names.sort_unstable();
        paths.extend(names.iter().take(MOST_FILES).map(|name| format!("{folder}/{name}")));
    }
    let (mut found, mut is_denied) = (Vec::new(), false);
    for path in paths {
        match text(tree, &path) {
            SiteFact::Known(text) => found.extend(line(&text).map(|line| PinningLine { path, line })),
            other => is_denied |= other == SiteFact::Denied,
        }
    }
    match (found.is_empty(), is_denied) {
        (false, _) => SiteFact::Known(found),
        (true, true) => SiteFact::Denied,
        (true, false) => SiteFact::Absent,
    }
}

/// The first line that pins, from 1; comments do not.
fn line(text: &str) -> Option<usize> {
    let is_comment = |line: &str| line.trim_start().starts_with(['#', ';']);
    let pins = |line: &str| !is_comment(line) && WORDS.iter().any(|word| line.contains(word));
    text.lines().position(pins).map(|at| at + 1)
}
