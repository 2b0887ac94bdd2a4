//! The messages of a guest's console and of its emulator when a run went wrong. Pure.

use std::fmt;

use nodewise_machine::printable::printable;

/// Lines of a console that a message shows.
const LINES: usize = 20;
/// Longest line that a message shows, in characters; a guest can write what it likes.
const WIDTH: usize = 200;

/// The last lines of a text that a guest or its emulator wrote, made fit for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tail(Vec<String>);

impl Tail {
    /// The last lines that say something.
    pub fn from_text(text: &[u8]) -> Self {
        let text = String::from_utf8_lossy(text);
        let mut lines: Vec<String> = text
            .lines()
            .rev()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .take(LINES)
            .map(|line| printable(&line.chars().take(WIDTH).collect::<String>()).into_owned())
            .collect();
        lines.reverse();
        Self(lines)
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lines.
    pub fn lines(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Tail {
    /// Writes each line after a line break and four blanks, to be under a message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// The reason of a kernel's panic and the lines around it; `None` when the console has none.
///
/// # Source
/// `panic()` writes `Kernel panic - not syncing: <reason>` to every console: kernel/panic.c, 6.12.
/// A dump of registers and stack follows, so the last lines alone would not show what happened.
pub fn panic(console: &[u8]) -> Option<(String, Tail)> {
    let text = String::from_utf8_lossy(console);
    let at = text.find("Kernel panic - not syncing")?;
    let line = text[at..].lines().next()?;
    let reason = line.split_once(": ").map_or(line, |(_, reason)| reason).trim();
    let reason = printable(&reason.chars().take(WIDTH).collect::<String>()).into_owned();
    let after = text[at..].char_indices().filter(|(_, c)| *c == '\n').nth(LINES / 2);
    let end = after.map_or(text.len(), |(newline, _)| at + newline);
    Some((reason, Tail::from_text(&text.as_bytes()[..end])))
}

/// Whether an emulator stopped because of a fault of its own and not of its guest.
///
/// # Source
/// QEMU's `assert()` and GLib's `g_assert()`. One of them, `iotlb_to_section`, strikes about one
/// boot in ten when every CPU has a thread of its own (QEMU 10.0.2).
pub fn is_emulator_fault(log: &[u8]) -> bool {
    let text = String::from_utf8_lossy(log);
    text.lines().any(|line| {
        line.contains("Assertion `") && line.ends_with("' failed.") || line.starts_with("Bail out! ERROR:")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn the_last_lines_are_shown_without_what_drives_a_terminal() {
        let mut console = String::new();
        for line in 0..100 {
            console.push_str(&format!("[    0.{line:06}] line {line}\r\n\r\n"));
        }
        console.push_str("\u{1b}[2Jbad\n");
        let tail = Tail::from_text(console.as_bytes());
        assert_eq!(tail.lines().len(), LINES);
        assert_eq!(tail.lines()[0], "[    0.000081] line 81");
        assert_eq!(tail.lines()[LINES - 1], "\\x1b[2Jbad");
        assert!(tail.to_string().starts_with("\n    [    0.000081] line 81\n    "));
        assert!(Tail::from_text(b"\n\r\n").is_empty());
    }

    #[test]
    fn a_panic_is_told_by_its_reason() {
        for (console, expected) in [
            (
                "[   13.1] sysrq: Trigger a crash\n[   13.2] Kernel panic - not syncing: sysrq triggered crash\n[",
                Some("sysrq triggered crash"),
            ),
            (
                "[    1.0] Kernel panic - not syncing: VFS: Unable to mount root fs\r\n",
                Some("VFS: Unable to mount root fs"),
            ),
            ("Kernel panic - not syncing", Some("Kernel panic - not syncing")),
            ("[   12.3] reboot: Power down\n", None),
        ] {
            let told = panic(console.as_bytes()).map(|(reason, _)| reason);
            assert_eq!(told.as_deref(), expected, "{console}");
        }
    }

    #[test]
    fn the_lines_around_a_panic_are_shown_and_not_the_dump_behind_it() {
        let dump = "register\n".repeat(100);
        let console = format!("{}cause\nKernel panic - not syncing: reason\n{dump}", "before\n".repeat(50));
        let (_, lines) = panic(console.as_bytes()).unwrap();
        assert_eq!(
            lines.lines()[LINES / 2 - 2..][..3],
            ["cause", "Kernel panic - not syncing: reason", "register"]
        );
        assert_eq!(lines.lines().len(), LINES);
    }

    #[test]
    fn faults_of_the_emulator_are_told_from_its_refusals() {
        for (log, expected) in [
            (
                "qemu-system-x86_64: system/physmem.c:2678: iotlb_to_section: Assertion `section_index < \
                 d->map.sections_nb' failed.\n",
                true,
            ),
            ("Bail out! ERROR:system/cpus.c:504:qemu_mutex_lock_iothread_impl: assertion failed\n", true),
            ("qemu-system-x86_64: -numa dist,src=0: Invalid parameter\n", false),
            ("", false),
        ] {
            assert_eq!(is_emulator_fault(log.as_bytes()), expected, "{log}");
        }
    }

    proptest! {
        #[test]
        fn any_console_can_be_shown(console in proptest::collection::vec(any::<u8>(), 0..400)) {
            let shown = Tail::from_text(&console).to_string();
            assert!(shown.lines().all(|line| printable(line) == line));
            panic(&console);
            is_emulator_fault(&console);
        }
    }
}
