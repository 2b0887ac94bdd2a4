//! The originals: those that are installed, or a release of Debian's that was unpacked into a folder.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tools.
pub const TOOLS: [&str; 5] = ["numactl", "numastat", "migratepages", "migspeed", "memhog"];

/// Where the originals are, and which release they are.
#[derive(Clone, Debug)]
pub struct Original {
    /// The root that they are installed below.
    pub root: PathBuf,
    /// The release, as `NODEWISE_NUMACTL_COMPAT` has it.
    pub release: String,
}

impl Original {
    /// Those of this system; an error says that there are none.
    pub fn installed() -> Result<Self, String> {
        Self::below(PathBuf::from("/"))
    }

    /// Those of packages that were unpacked into a folder, with their C library.
    pub fn unpacked(root: &str) -> Result<Self, String> {
        Self::below(PathBuf::from(root))
    }

    fn below(root: PathBuf) -> Result<Self, String> {
        let found = Self { root, release: String::new() };
        let missing =
            || format!("no numactl in {} (cargo xtask lab-setup)", found.program("numactl").display());
        if !found.program("numactl").exists() {
            return Err(missing());
        }
        let mut command = found.command("numactl");
        let output = command.arg("--version").output().map_err(|error| format!("{}: {error}", missing()))?;
        // 2.0.16 has no such option.
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let release = if output.status.success() { text } else { "2.0.16".to_owned() };
        Ok(Self { release, ..found })
    }

    fn program(&self, tool: &str) -> PathBuf {
        self.root.join("usr/bin").join(tool)
    }

    /// The words that start a tool; a tool that was unpacked needs the C library that came with it.
    fn words(&self, tool: &str) -> Vec<PathBuf> {
        let program = self.program(tool);
        if self.root == Path::new("/") {
            return vec![program];
        }
        let loader = self.root.join("usr/lib64/ld-linux-x86-64.so.2");
        let libraries = self.root.join("usr/lib/x86_64-linux-gnu");
        vec![loader, "--library-path".into(), libraries, "--argv0".into(), tool.into(), program]
    }

    fn command(&self, tool: &str) -> Command {
        let words = self.words(tool);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }

    /// Fills a folder with programs of the tools' names.
    pub fn install(&self, folder: &Path) -> io::Result<()> {
        for tool in TOOLS {
            let words = self.words(tool);
            let name = folder.join(tool);
            if let [program] = &words[..] {
                symlink(program, name)?;
                continue;
            }
            let words: Vec<String> = words.iter().map(|word| word.display().to_string()).collect();
            fs::write(&name, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" ")))?;
            fs::set_permissions(&name, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    }
}
