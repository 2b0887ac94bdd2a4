//! The answer of a command, and the parts of it that may vary.

use nodewise_compat::numactl::USAGE;

use crate::record::Record;

/// An exit status and two texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub rc: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// Adds what a later command of the same process wrote.
    pub fn append(&mut self, rc: i32, stdout: &[u8], stderr: &[u8]) {
        self.rc = rc;
        self.stdout.push_str(&String::from_utf8_lossy(stdout));
        self.stderr.push_str(&String::from_utf8_lossy(stderr));
    }

    pub fn from_record(record: &Record) -> Self {
        Self { rc: record.rc, stdout: record.stdout.clone(), stderr: record.stderr.clone() }
    }

    /// The answer without what differs from run to run: sizes of memory, where an interleaved set
    /// begins, and our own words in the usage text.
    pub fn masked(&self, command: &str) -> Self {
        let mut stdout: Vec<String> = self.stdout.split('\n').map(mask_line).collect();
        if command.contains("--dump-nodes") {
            mask_places(&mut stdout);
        }
        let stderr = mask_root(&self.stderr.replace(USAGE, "<NUMACTL-USAGE>\n"));
        Self { rc: self.rc, stdout: stdout.join("\n"), stderr }
    }
}

/// Sizes; and the position of a process in an interleaved set, which depends on its allocations.
fn mask_line(line: &str) -> String {
    for name in [" size: ", " free: "] {
        if let Some((node, _)) = line.split_once(name).filter(|(_, size)| size.ends_with(" MB")) {
            return format!("{node}{name}N MB");
        }
    }
    if line.starts_with("preferred node: ") && line.ends_with(" (interleave next)") {
        return "preferred node: N (interleave next)".to_owned();
    }
    if line.starts_with("interleavenode: ") {
        return "interleavenode: N".to_owned();
    }
    line.to_owned()
}

/// The device of the root folder, which is another one in every guest.
fn mask_root(text: &str) -> String {
    let (before, after) = ("Cannot find block device ", " in sysfs for `/'");
    match text.split_once(before).and_then(|(head, rest)| Some((head, rest.split_once(after)?))) {
        Some((head, (_, tail))) => format!("{head}{before}M:m{after}{tail}"),
        None => text.to_owned(),
    }
}

/// Nodes of pages: which comes first varies, their order does not. Each is written as a letter, in
/// the order in which they appear.
fn mask_places(lines: &mut [String]) {
    let mut seen: Vec<String> = Vec::new();
    for line in lines {
        let Some((range, node)) = line.split_once(": ").filter(|(_, node)| node.parse::<u32>().is_ok())
        else {
            continue;
        };
        let at = seen.iter().position(|known| known == node).unwrap_or_else(|| {
            seen.push(node.to_owned());
            seen.len() - 1
        });
        *line = format!("{range}: place {at}");
    }
}
