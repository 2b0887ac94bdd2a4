//! A control group with limits of memory.

use std::fs;

use nodewise_machine::NodeSet;

use crate::cpuset::GROUPS;
use crate::group::Limits;
use crate::nodes::PAGE;
use crate::setting::write;

/// The group; gone when dropped, after its processes.
pub struct LimitedGroup {
    folder: String,
}

impl LimitedGroup {
    /// Makes a group with limits and memory nodes.
    ///
    /// # Errors
    /// The kernel has no such groups, or refuses a value.
    pub fn new(limits: &Limits, mems: &NodeSet, has_swap: bool) -> Result<Self, String> {
        write(&format!("{GROUPS}/cgroup.subtree_control"), "+cpuset +memory")?;
        let folder = format!("{GROUPS}/nodewise-limited");
        fs::create_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
        let group = Self { folder };
        group.set("cpuset.mems", &mems.to_string())?;
        group.limit("memory.max", limits.max)?;
        group.limit("memory.high", limits.high)?;
        if has_swap {
            group.limit("memory.swap.max", limits.swap_max)?;
        } else if fs::exists(group.path("memory.swap.max")).unwrap_or(false) {
            group.set("memory.swap.max", "0")?;
        }
        group.set("memory.oom.group", if limits.kills_all { "1" } else { "0" })?;
        Ok(group)
    }

    fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.folder)
    }

    /// Writes a file of the group.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn set(&self, file: &str, text: &str) -> Result<(), String> {
        write(&self.path(file), text)
    }

    /// Writes a limit in pages.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn limit(&self, file: &str, pages: Option<u64>) -> Result<(), String> {
        let text = pages.map_or_else(|| "max".to_owned(), |pages| (pages * PAGE).to_string());
        self.set(file, &text)
    }

    /// Reads a size in pages, such as `memory.current`.
    ///
    /// # Errors
    /// It cannot be read, or is not a number.
    pub fn pages(&self, file: &str) -> Result<u64, String> {
        let path = self.path(file);
        let text = crate::kernel::line(&path)?;
        text.parse().map(|bytes: u64| bytes / PAGE).map_err(|_| format!("{path}: {text}"))
    }

    /// Reads a count of `memory.events`.
    ///
    /// # Errors
    /// It cannot be read, or lacks the name.
    pub fn events(&self, name: &str) -> Result<u64, String> {
        let path = self.path("memory.events");
        let text = crate::kernel::line(&path)?;
        let count = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        count.ok_or_else(|| format!("{path}: no {name}"))
    }
}

impl Drop for LimitedGroup {
    fn drop(&mut self) {
        // The last process may take a moment to leave.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
