//! A control group of the guest, for what a cpuset does.

use std::fs;
use std::process::Command;

pub(crate) const GROUPS: &str = "/sys/fs/cgroup";

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}

/// A control group that may use some CPUs and memory nodes; gone when dropped.
pub struct Cpuset {
    folder: String,
}

impl Cpuset {
    /// Makes a group with these CPUs and memory nodes.
    ///
    /// # Errors
    /// The kernel has no cpusets, or refuses the lists.
    pub fn new(cpus: &str, mems: &str) -> Result<Self, String> {
        write(&format!("{GROUPS}/cgroup.subtree_control"), "+cpuset")?;
        let folder = format!("{GROUPS}/nodewise-test");
        fs::create_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
        let group = Self { folder };
        write(&format!("{}/cpuset.cpus", group.folder), cpus)?;
        group.allow(mems)?;
        Ok(group)
    }

    /// Changes the memory nodes of all that are inside.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn allow(&self, mems: &str) -> Result<(), String> {
        write(&format!("{}/cpuset.mems", self.folder), mems)
    }

    /// Puts this process inside, until the group is gone.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn enter(&self) -> Result<(), String> {
        write(&self.tasks(), &std::process::id().to_string())
    }

    /// The file that takes the numbers of processes to put inside.
    pub fn tasks(&self) -> String {
        format!("{}/cgroup.procs", self.folder)
    }

    /// Runs a command inside the group.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.folder), "sh"])
            .args(words);
        command
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        // Only an empty group can be removed; leaving does no harm to a process that is not inside.
        let _ = write(&format!("{GROUPS}/cgroup.procs"), &std::process::id().to_string());
        let _ = fs::remove_dir(&self.folder);
    }
}
