//! Which boot loader a system has, and the files that hold its command lines.

use crate::error::{BootError, Refusal};
use crate::grub;
use crate::line::Change;
use crate::root::Root;
use crate::uboot_env;

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

/// The file of systemd with pools of huge pages. No boot loader reads it, but it is written as their files are.
pub(crate) const TMPFILES: &str = "/etc/tmpfiles.d/nodewise-hugepages.conf";
/// The entries of U-Boot and extlinux.
const EXTLINUX: &str = "/boot/extlinux/extlinux.conf";
/// Variables for boot scripts of U-Boot that are made alike.
const ENVIRONMENTS: [&str; 3] = ["/boot/armbianEnv.txt", "/boot/orangepiEnv.txt", "/boot/dietpiEnv.txt"];
/// The source of such a script.
const SCRIPT: &str = "/boot/boot.cmd";
/// Files of boot loaders that are not changed, because which of their lines count depends on more than is
/// in them, and where the words belong.
const BY_HAND: [(&str, &str); 11] = [
    ("/boot/armbianEnv.txt", "in its extraargs= line, if the boot script adds that to bootargs"),
    ("/boot/orangepiEnv.txt", "in its extraargs= line, if the boot script adds that to bootargs"),
    ("/boot/dietpiEnv.txt", "in its extraargs= line, if the boot script adds that to bootargs"),
    ("/boot/uEnv.txt", "in its cmdline= or optargs= line, whichever the boot script reads"),
    ("/boot/firmware/uEnv.txt", "in its cmdline= or optargs= line, whichever the boot script reads"),
    ("/uEnv.txt", "in its cmdline= or optargs= line, whichever the boot script reads"),
    ("/boot/boot.ini", "in the line that sets bootargs"),
    ("/boot/boot.cmd", "in the line that sets bootargs; then make boot.scr from it with mkimage"),
    ("/boot/refind_linux.conf", "in the second text of its first line"),
    ("/boot/limine.conf", "in its cmdline: lines"),
    ("/etc/zipl.conf", "in its parameters= line; then run zipl"),
];

/// The most files that are read in place of one `config.txt`.
const MOST_CONFIGS: usize = 16;

/// How a file holds a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoaderFileKind {
    Line,
    Grub,
    /// An entry of the Boot Loader Specification.
    Entry,
    /// Entries of U-Boot and extlinux.
    Extlinux,
    /// Variables for a boot script of U-Boot.
    Environment,
}

/// The files of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loader {
    /// Path and kind of each.
    pub files: Vec<(String, LoaderFileKind)>,
    /// Whether this is a Raspberry Pi's.
    pub raspberry_pi: bool,
    /// The folder in a Raspberry Pi's boot partition that holds what is started, such as `current/`; empty
    /// where that is the partition itself.
    pub prefix: String,
    /// The command that makes GRUB's menu from its defaults, where there is GRUB.
    pub grub_command: Option<String>,
}

impl Loader {
    /// The folder of a Raspberry Pi's boot partition, with its last slash; `None` of others.
    pub fn firmware_folder(&self) -> Option<&str> {
        let (path, _) = self.files.first().filter(|_| self.raspberry_pi)?;
        path.strip_suffix("cmdline.txt")?.strip_suffix(self.prefix.as_str())
    }
}

/// Returns a hint where the boot partition of an image does not seem to be where it belongs.
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
pub(crate) fn kept_of(root: &Root, all: Vec<(String, LoaderFileKind)>) -> Result<Loader, BootError> {
    for plain in RASPBERRY_PI {
        let folder = plain.trim_end_matches("cmdline.txt");
        for prefix in [prefix(root, folder)?, String::new()] {
            let path = format!("{folder}{prefix}cmdline.txt");
            // Its firmware reads nothing else, whatever else is installed.
            if let Some(file) = all.iter().find(|(known, _)| *known == path) {
                let files = vec![file.clone()];
                return Ok(Loader { files, raspberry_pi: true, prefix, grub_command: None });
            }
        }
    }
    let has_grub = all.iter().any(|(_, kind)| *kind == LoaderFileKind::Grub);
    let grub_command = if has_grub { Some(grub_command(root)?) } else { None };
    let has_others = all.iter().any(|(_, kind)| !is_of_uboot(*kind));
    let has_extlinux = all.iter().any(|(_, kind)| *kind == LoaderFileKind::Extlinux);
    // U-Boot looks for extlinux.conf before it looks for a script; beside GRUB and its like both are leftovers.
    let counts = |kind: LoaderFileKind| match kind {
        LoaderFileKind::Extlinux => !has_others,
        LoaderFileKind::Environment => !has_others && !has_extlinux,
        LoaderFileKind::Line | LoaderFileKind::Grub | LoaderFileKind::Entry => true,
    };
    let files = all.into_iter().filter(|(_, kind)| counts(*kind)).collect();
    Ok(Loader { files, raspberry_pi: false, prefix: String::new(), grub_command })
}

const fn is_of_uboot(kind: LoaderFileKind) -> bool {
    matches!(kind, LoaderFileKind::Extlinux | LoaderFileKind::Environment)
}

/// The folder from which a Raspberry Pi starts by `os_prefix` in the `config.txt` of this folder, as Ubuntu has
/// it; empty where there is none, or where it depends on the board.
///
/// # Source
/// Raspberry Pi documentation, config.txt, `os_prefix`; `[tryboot]` counts for a single start that was asked
/// for.
fn prefix(root: &Root, folder: &str) -> Result<String, BootError> {
    let text = root.read(&format!("{folder}config.txt"))?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let (mut section, mut found) = ("all", Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name;
        }
        match line.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            Some(("os_prefix", value)) if section != "tryboot" => found.push((section, value)),
            _ => {}
        }
    }
    Ok(match found.as_slice() {
        [("all", value)] if is_folder(value) => (*value).to_owned(),
        _ => String::new(),
    })
}

/// Whether a prefix is a folder and nothing else.
fn is_folder(prefix: &str) -> bool {
    let name = prefix.strip_suffix('/').unwrap_or_default();
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
}

/// Every file that could hold a command line and is there.
pub(crate) fn candidates(root: &Root) -> Result<Vec<(String, LoaderFileKind)>, BootError> {
    let mut paths: Vec<(String, LoaderFileKind)> = Vec::new();
    for plain in RASPBERRY_PI {
        let folder = plain.trim_end_matches("cmdline.txt");
        let prefix = prefix(root, folder)?;
        if !prefix.is_empty() {
            paths.push((format!("{folder}{prefix}cmdline.txt"), LoaderFileKind::Line));
        }
        paths.push((plain.to_owned(), LoaderFileKind::Line));
    }
    paths.extend(
        [(GRUB, LoaderFileKind::Grub), (KERNEL, LoaderFileKind::Line)]
            .map(|(path, kind)| (path.to_owned(), kind)),
    );
    for folder in ENTRIES {
        let names = root.list(folder)?.into_iter().filter(|name| name.ends_with(".conf"));
        paths.extend(names.map(|name| (format!("{folder}/{name}"), LoaderFileKind::Entry)));
    }
    paths.push((EXTLINUX.to_owned(), LoaderFileKind::Extlinux));
    let script = root.read(SCRIPT)?.unwrap_or_default();
    if uboot_env::is_read_by(&String::from_utf8_lossy(&script)) {
        paths.extend(ENVIRONMENTS.map(|path| (path.to_owned(), LoaderFileKind::Environment)));
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
        for (path, place) in BY_HAND {
            if root.stat(path)?.is_some() {
                return Err(BootError::ByHand { path, place, by_hand: change.by_hand() });
            }
        }
        let looked: Vec<&str> =
            RASPBERRY_PI.into_iter().chain([GRUB, KERNEL, EXTLINUX]).chain(ENTRIES).collect();
        let (looked, hint) = (looked.join(", "), not_mounted(root)?);
        return Err(BootError::NoLoader { looked, hint, by_hand: change.by_hand() });
    }
    let overrules = match (loader.firmware_folder(), &loader.grub_command) {
        (Some(folder), _) => other_config(root, folder, &loader.prefix)?,
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
fn other_config(
    root: &Root,
    folder: &str,
    prefix: &str,
) -> Result<Option<(String, &'static str)>, BootError> {
    // What a file includes counts as if it were in it.
    let mut configs = vec!["config.txt".to_owned()];
    let mut at = 0;
    while let Some(config) = configs.get(at).map(|name| format!("{folder}{name}")) {
        let text = root.read(&config)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        if let Some(name) = other_command_line(&text, prefix) {
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

/// A setting of `config.txt` that takes the command line from another file than that in the folder of this
/// prefix.
fn other_command_line(config: &str, prefix: &str) -> Option<&'static str> {
    let mut tries = false;
    let mut set = |line: &str| {
        if line.trim().starts_with('[') {
            tries = line.trim() == "[tryboot]";
        }
        let (name, value) = line.split_once('=')?;
        match (name.trim(), value.trim()) {
            ("os_prefix", folder) if folder == prefix || tries && !prefix.is_empty() => None,
            ("cmdline", file) if file != "cmdline.txt" => Some("cmdline"),
            ("os_prefix", folder) if !folder.is_empty() => Some("os_prefix"),
            _ => None,
        }
    };
    config.lines().find_map(&mut set)
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
            |text: &str, expected: Option<&str>| assert_eq!(other_command_line(text, ""), expected, "{text}");
        check("arm_64bit=1\n[pi5]\nos_prefix=current/\n", Some("os_prefix"));
        check("cmdline=other.txt\n", Some("cmdline"));
        check("cmdline=cmdline.txt\n#os_prefix=a/\ndtparam=sd_cqe=on\n", None);
        let ubuntus = "[all]\nos_prefix=current/\n[tryboot]\nos_prefix=new/\n";
        assert_eq!(other_command_line(ubuntus, "current/"), None);
        assert_eq!(other_command_line(ubuntus, ""), Some("os_prefix"));
    }
}
