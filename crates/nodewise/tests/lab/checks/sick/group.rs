//! Control groups of a guest, with a limit of CPU time or of memory, or a container's name.

use std::fs;

use crate::setting;

const GROUPS: &str = "/sys/fs/cgroup";

/// A control group; gone when dropped, if all that was inside has ended.
pub(in crate::checks) struct Group {
    folder: String,
}

impl Group {
    /// One of this name, with these settings.
    pub(in crate::checks) fn new(name: &str, settings: &[(&str, &str)]) -> Result<Self, String> {
        setting::write(&format!("{GROUPS}/cgroup.subtree_control"), "+cpuset +cpu")?;
        let folder = format!("{GROUPS}/{name}");
        fs::create_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
        let group = Self { folder };
        for (file, value) in settings {
            group.set(file, value)?;
        }
        Ok(group)
    }

    pub(in crate::checks) fn set(&self, file: &str, value: &str) -> Result<(), String> {
        setting::write(&format!("{}/{file}", self.folder), value)
    }

    /// The text of one of its files.
    pub(in crate::checks) fn text(&self, file: &str) -> Result<String, String> {
        let path = format!("{}/{file}", self.folder);
        fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))
    }

    /// The words that start a program inside, and these behind them.
    pub(in crate::checks) fn inside<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.folder);
        let shell = ["sh", "-c", &enter, "sh"].map(str::to_owned);
        shell.into_iter().chain(words.into_iter().map(str::to_owned)).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}
