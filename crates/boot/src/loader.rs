//! Which boot loader a system has, and the files that hold its command lines.

use crate::error::{BootError, Refusal};
use crate::grub;
use crate::line::Change;
use crate::root::Root;

/// The command line of a Raspberry Pi, where it is since 2023 and where it was before.
const RASPBERRY_PI: [&str; 2] = ["/boot/firmware/cmdline.txt", "/boot/cmdline.txt"];
/// The defaults of GRUB's menu.
pub(crate) const GRUB: &str = "/etc/default/grub";
/// Snippets that Debian's GRUB reads behind them.
const GRUB_SNIPPETS: &str = "/etc/default/grub.d";
/// The command line of kernels that are installed later.
pub(crate) const KERNEL: &str = "/etc/kernel/cmdline";
/// Folders of boot loader entries: `/boot`, and where the EFI partition is mounted.
const ENTRIES: [&str; 4] = [
    "/boot/loader/entries",
    "/efi/loader/entries",
    "/boot/efi/loader/entries",
    "/boot/firmware/loader/entries",
];

/// The most files that are read in place of one `config.txt`.
const MOST_CONFIGS: usize = 16;

/// How a file holds a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is one.
    Line,
    /// GRUB's defaults.
    Grub,
    /// An entry of the Boot Loader Specification.
    Entry,
}

/// The files of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loader {
    /// Path and kind of each.
    pub files: Vec<(String, Kind)>,
    /// Whether this is a Raspberry Pi's.
    pub raspberry_pi: bool,
    /// The command that makes GRUB's menu from its defaults, where there is GRUB.
    pub grub_command: Option<String>,
}

impl Loader {
    /// The folder of a Raspberry Pi's boot partition, with its last slash; `None` of others.
    pub fn firmware_folder(&self) -> Option<&str> {
        let (path, _) = self.files.first().filter(|_| self.raspberry_pi)?;
        path.strip_suffix("cmdline.txt")
    }
}

/// What looks as if the boot partition of an image were not where it belongs.
fn not_mounted(root: &Root) -> Result<Option<&'static str>, BootError> {
    // The firmware's own files, as they lie in that partition.
    if root.stat("/cmdline.txt")?.is_some() && root.stat("/config.txt")?.is_some() {
        return Ok(Some(
            "cmdline.txt lies in the folder itself: mount the boot partition at boot/firmware of a folder",
        ));
    }
    let is_empty = |folder| Ok::<_, BootError>(root.names_in(folder)?.is_some_and(|names| names.is_empty()));
    let hints = [
        ("/boot/firmware", "/boot/firmware is empty: the boot partition may not be mounted there"),
        ("/boot", "/boot is empty: the boot partition may not be mounted there"),
    ];
    for (folder, hint) in hints {
        if is_empty(folder)? {
            return Ok(Some(hint));
        }
    }
    Ok(None)
}

/// The files that are there and count.
///
/// # Errors
/// What cannot be read.
pub fn kept(root: &Root) -> Result<Loader, BootError> {
    kept_of(root, candidates(root)?)
}

/// Those of the candidates that count.
pub(crate) fn kept_of(root: &Root, all: Vec<(String, Kind)>) -> Result<Loader, BootError> {
    let pi = all.iter().find(|(path, _)| RASPBERRY_PI.contains(&path.as_str()));
    if let Some(file) = pi {
        // Its firmware reads nothing else, whatever else is installed.
        return Ok(Loader { files: vec![file.clone()], raspberry_pi: true, grub_command: None });
    }
    let has_grub = all.iter().any(|(_, kind)| *kind == Kind::Grub);
    let grub_command = if has_grub { Some(grub_command(root)?) } else { None };
    Ok(Loader { files: all, raspberry_pi: false, grub_command })
}

/// Every file that could hold a command line and is there.
pub(crate) fn candidates(root: &Root) -> Result<Vec<(String, Kind)>, BootError> {
    let fixed = RASPBERRY_PI
        .into_iter()
        .map(|path| (path, Kind::Line))
        .chain([(GRUB, Kind::Grub), (KERNEL, Kind::Line)]);
    let mut paths: Vec<(String, Kind)> = fixed.map(|(path, kind)| (path.to_owned(), kind)).collect();
    for folder in ENTRIES {
        let names = root.list(folder)?.into_iter().filter(|name| name.ends_with(".conf"));
        paths.extend(names.map(|name| (format!("{folder}/{name}"), Kind::Entry)));
    }
    // A partition can be mounted twice, and a link can lead to a file that has a path of its own.
    let (mut seen, mut found) = (Vec::new(), Vec::new());
    for (path, kind) in paths {
        let Some(stat) = root.stat(&path)? else { continue };
        let identity = (stat.st_dev, stat.st_ino);
        if !seen.contains(&identity) {
            seen.push(identity);
            found.push((path, kind));
        }
    }
    Ok(found)
}

/// Refuses a change that would be useless: no boot loader is known, or settings elsewhere overrule its files.
pub(crate) fn refuse_useless(root: &Root, loader: &Loader, change: &Change) -> Result<(), BootError> {
    if loader.files.is_empty() {
        let looked: Vec<&str> = RASPBERRY_PI.into_iter().chain([GRUB, KERNEL]).chain(ENTRIES).collect();
        let (looked, hint) = (looked.join(", "), not_mounted(root)?);
        return Err(BootError::NoLoader { looked, hint, by_hand: change.by_hand() });
    }
    let overrules = match (loader.firmware_folder(), &loader.grub_command) {
        (Some(folder), _) => other_config(root, folder)?,
        (None, Some(_)) => snippet_that_takes_away(root, change)?,
        (None, None) => None,
    };
    let Some((other, name)) = overrules else { return Ok(()) };
    let path = if loader.raspberry_pi { loader.files[0].0.clone() } else { GRUB.to_owned() };
    let refusal = Refusal::Overridden { path: other, name };
    Err(BootError::Refused { path, refusal, by_hand: change.by_hand() })
}

/// A `config.txt` in this folder, or a file that it includes, that takes the command line from elsewhere,
/// and the setting that does so.
fn other_config(root: &Root, folder: &str) -> Result<Option<(String, &'static str)>, BootError> {
    // What a file includes counts as if it stood in it.
    let mut configs = vec!["config.txt".to_owned()];
    let mut at = 0;
    while let Some(config) = configs.get(at).map(|name| format!("{folder}{name}")) {
        let text = root.read(&config)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        if let Some(name) = other_command_line(&text) {
            return Ok(Some((config, name)));
        }
        let more: Vec<String> =
            included(&text).filter(|name| !configs.iter().any(|one| one == name)).collect();
        configs.extend(more.into_iter().take(MOST_CONFIGS.saturating_sub(configs.len())));
        at += 1;
    }
    Ok(None)
}

/// A snippet that Debian's GRUB reads behind its defaults and that drops what a change writes there, and
/// the variable that it sets.
fn snippet_that_takes_away(
    root: &Root,
    change: &Change,
) -> Result<Option<(String, &'static str)>, BootError> {
    for name in root.list(GRUB_SNIPPETS)?.iter().filter(|name| name.ends_with(".cfg")) {
        let path = format!("{GRUB_SNIPPETS}/{name}");
        let text = root.read(&path)?.unwrap_or_default();
        if let Some(name) = grub::takes_away(&String::from_utf8_lossy(&text), change) {
            return Ok(Some((path, name)));
        }
    }
    Ok(None)
}

/// The files that a `config.txt` includes, as it names them.
fn included(config: &str) -> impl Iterator<Item = String> + '_ {
    let name =
        |line: &str| Some(line.trim().strip_prefix("include")?.strip_prefix([' ', '\t'])?.trim().to_owned());
    config.lines().filter_map(name)
}

/// A setting of `config.txt` that takes the command line from another file.
fn other_command_line(config: &str) -> Option<&'static str> {
    let set = |line: &str| {
        let (name, value) = line.split_once('=')?;
        match (name.trim(), value.trim()) {
            ("cmdline", file) if file != "cmdline.txt" => Some("cmdline"),
            ("os_prefix", folder) if !folder.is_empty() => Some("os_prefix"),
            _ => None,
        }
    };
    config.lines().find_map(set)
}

/// Debian's name for the command, or everybody else's.
fn grub_command(root: &Root) -> Result<String, BootError> {
    let debians = root.list("/usr/sbin")?.iter().any(|name| name == "update-grub");
    if debians {
        return Ok("update-grub".to_owned());
    }
    let (command, folder) = if root.list("/boot/grub2")?.is_empty() {
        ("grub-mkconfig", "grub")
    } else {
        ("grub2-mkconfig", "grub2")
    };
    Ok(format!("{command} -o /boot/{folder}/grub.cfg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_that_names_another_command_line_is_found() {
        let check =
            |text: &str, expected: Option<&str>| assert_eq!(other_command_line(text), expected, "{text}");
        check("arm_64bit=1\n[pi5]\nos_prefix=current/\n", Some("os_prefix"));
        check("cmdline=other.txt\n", Some("cmdline"));
        check("cmdline=cmdline.txt\n#os_prefix=a/\ndtparam=sd_cqe=on\n", None);
    }
}
