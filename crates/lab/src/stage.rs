//! How far the start of a guest is, read from what its kernel writes to its console. Pure.

use std::fmt;

/// A stage of a guest until its command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The emulator starts: the console is empty.
    Emulator,
    Kernel,
    /// The first program runs, which mounts and starts what the command needs.
    Init,
    /// The command runs, or has ended.
    Command,
}

impl Stage {
    /// The stage that a console shows, before the command has started.
    ///
    /// # Source
    /// `run_init_process()` writes `Run /init as init process` to the console: init/main.c, 5.6 to 6.18.
    pub fn of_console(console: &[u8]) -> Self {
        const INIT: &[u8] = b" as init process";
        if console.windows(INIT.len()).any(|part| part == INIT) {
            Self::Init
        } else if console.is_empty() {
            Self::Emulator
        } else {
            Self::Kernel
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Emulator => "starting QEMU",
            Self::Kernel => "booting the kernel",
            Self::Init => "starting the guest's system",
            Self::Command => "running the command",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_shows_how_far_the_start_is() {
        let check = |console: &str, expected: Stage| {
            assert_eq!(Stage::of_console(console.as_bytes()), expected, "{console}");
        };
        check("", Stage::Emulator);
        check("[    0.000000] Linux version 6.12.94+deb13-amd64\r\n", Stage::Kernel);
        check("[    3.1] Run /init as init pro", Stage::Kernel);
        check("[    3.1] Run /init as init process\r\nnetfs: FS-Cache loaded\r\n", Stage::Init);
        assert_eq!(Stage::of_console(&[0xff; 64]), Stage::Kernel);
    }
}
