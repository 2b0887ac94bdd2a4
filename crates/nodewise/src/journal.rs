//! The journal of settings in its file: where it is, what it holds of this boot, and taking changes back.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nodewise_machine::plural::plural;
use nodewise_machine::printable::{io_words, quote};
use nodewise_source::boot;
use nodewise_source::capture::{Overwrite, write_file};
use nodewise_source::settings::Setting;
use nodewise_source::settings::journal::{Change, Changed, Journal};
use nodewise_source::tree::{ReadCause, Tree, read_bounded};

use crate::failure::Failure;
use crate::output;

/// The largest journal that is read.
const MOST_BYTES: u64 = 1 << 20;
/// The name of the file in the state folder.
const NAME: &str = "settings.journal";
/// The state folder of root.
const OF_ROOT: &str = "/var/lib/nodewise";

/// The journal, opened.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    journal: Journal,
    boot: String,
}

impl Kept {
    /// Opens the journal that an option names, or that of the state folder. A missing file is an empty journal.
    ///
    /// # Errors
    /// A file that cannot be read, or is not a journal; no state folder; a kernel that does not name its boot.
    pub fn open(named: Option<&Path>, tree: &Tree) -> Result<Self, Failure> {
        let path = file_of(named, NAME)?;
        let boot = this_boot(tree)?;
        let wrong = |why: String| unusable(&path, &why);
        let journal = match read_bounded(&path, MOST_BYTES) {
            Err(cause) if !path.exists() && is_missing(&cause) => Journal::default(),
            Err(cause) => return Err(wrong(cause.to_string())),
            Ok(bytes) => String::from_utf8(bytes)
                .map_err(|_| "it is not text".to_owned())
                .and_then(|text| Journal::parse(&text))
                .map_err(wrong)?,
        };
        Ok(Self { path, journal, boot })
    }

    /// Its file.
    pub fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// Writes down a change that is about to be made. Changes of earlier boots are dropped: their settings are gone.
    ///
    /// # Errors
    /// A file that cannot be written; then nothing may be changed.
    pub fn begin(&mut self, settings: Vec<Changed>) -> Result<(), Failure> {
        let all = self.journal.changes.len();
        self.journal.changes.retain(|change| change.boot == self.boot);
        let dropped = all - self.journal.changes.len();
        if dropped > 0 {
            output::say(&format!(
                "dropped {} of an earlier boot from the journal",
                plural(dropped, "change")
            ));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let change = Change { at_unix_s: now.as_secs(), boot: self.boot.clone(), settings };
        self.journal.changes.push(change);
        self.save()
    }

    /// Writes down what was left there instead of what was meant, for the change at this place; settings that are as
    /// before are forgotten.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn settle(&mut self, at: usize, left: impl Fn(&Setting) -> Option<u64>) -> Result<(), Failure> {
        let Some(change) = self.journal.changes.get_mut(at) else { return Ok(()) };
        for changed in &mut change.settings {
            changed.after = left(&changed.setting).unwrap_or(changed.after);
        }
        change.settings.retain(|changed| changed.before != changed.after);
        if change.settings.is_empty() {
            self.journal.changes.remove(at);
        }
        self.save()
    }

    /// The place of the last change of such settings, and the change.
    pub fn last(&self, of: impl Fn(&Setting) -> bool) -> Option<(usize, &Change)> {
        let mut changes = self.journal.changes.iter().enumerate().rev();
        changes.find(|(_, change)| change.settings.iter().any(|changed| of(&changed.setting)))
    }

    /// The place of the change that was begun last.
    pub fn newest(&self) -> usize {
        self.journal.changes.len().saturating_sub(1)
    }

    /// Whether a change was made in this boot.
    pub fn is_of_this_boot(&self, change: &Change) -> bool {
        change.boot == self.boot
    }

    fn save(&self) -> Result<(), Failure> {
        create_folder(&self.path)?;
        write_file(&self.path, self.journal.to_text().as_bytes(), Overwrite::Replace).map_err(Failure::cannot)
    }
}

/// Whether a file is missing.
pub fn is_missing(cause: &ReadCause) -> bool {
    matches!(cause, ReadCause::System(errno) if *errno == rustix::io::Errno::NOENT.raw_os_error())
}

/// The name of this boot, under which a journal keeps what it did.
pub fn this_boot(tree: &Tree) -> Result<String, Failure> {
    let boot = boot::id(tree).map_err(Failure::cannot)?;
    boot.ok_or_else(|| Failure::cannot("the kernel does not name its boot: no journal can be kept"))
}

/// Why a journal cannot be used, and what can be.
pub fn unusable(path: &Path, why: &str) -> Failure {
    let path = quote(&path.display().to_string());
    Failure::cannot(format_args!("the journal {path} cannot be used: {why}; --journal names another file"))
}

/// The file that an option names, or one of this name in the state folder.
///
/// # Errors
/// A folder that the option names and that does not exist: a mistyped path is not created. No state folder.
pub fn file_of(named: Option<&Path>, name: &str) -> Result<PathBuf, Failure> {
    let Some(path) = named else { return state_file(name) };
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if folder.metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) => {
            let folder = quote(&folder.display().to_string()).to_string();
            Err(unusable(path, &format!("the folder {folder} does not exist")))
        }
        _ => Ok(path.to_owned()),
    }
}

/// Creates the folder of a journal: that of a state folder, because `file_of` lets no other one be missing.
pub fn create_folder(path: &Path) -> Result<(), Failure> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(|error| {
        let folder = quote(&folder.display().to_string());
        Failure::cannot(format_args!(
            "cannot create {folder} for the journal: {}; --journal names another file",
            io_words(&error)
        ))
    })
}

/// A file of this name in the state folder.
///
/// # Errors
/// No state folder.
pub fn state_file(name: &str) -> Result<PathBuf, Failure> {
    let journal = default_path(|name| std::env::var_os(name), rustix::process::geteuid().is_root())?;
    Ok(journal.with_file_name(name))
}

/// The journal of whoever runs this: root has one for the system.
fn default_path(
    variable: impl Fn(&str) -> Option<std::ffi::OsString>,
    is_root: bool,
) -> Result<PathBuf, Failure> {
    if is_root {
        return Ok(Path::new(OF_ROOT).join(NAME));
    }
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    state.map(|folder| folder.join("nodewise").join(NAME)).ok_or_else(|| {
        Failure::cannot(
            "no state folder: neither XDG_STATE_HOME nor HOME holds an absolute path; --journal names a file",
        )
    })
}

/// Why a setting is not to be restored: it has been changed by other means; `None` where it may be.
pub fn refusal(changed: &Changed, present: Option<u64>) -> Option<String> {
    let Changed { setting, before, after } = changed;
    match present {
        Some(present) if present == *after || present == *before => None,
        Some(present) => Some(format!(
            "{setting}: {present} now, nodewise left {after}: changed since by other means (--force restores {before} \
             anyway)"
        )),
        None => Some(format!("{setting}: this kernel has no such setting now")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;
    use nodewise_source::tree::Memory;

    const WEIGHT: Setting = Setting::InterleaveWeight { node: NodeId::new(0) };

    fn boot(id: &str) -> Tree {
        Tree::memory(Memory::new().file(nodewise_source::paths::BOOT_ID, format!("{id}\n")))
    }

    #[test]
    fn a_change_is_kept_until_it_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut kept = Kept::open(Some(&path), &boot("a")).unwrap();
        kept.begin(vec![Changed { setting: WEIGHT, before: 1, after: 5 }]).unwrap();
        kept.settle(kept.newest(), |_| Some(4)).unwrap();
        let mut again = Kept::open(Some(&path), &boot("a")).unwrap();
        let (at, change) = again.last(|setting| *setting == WEIGHT).unwrap();
        assert!(again.is_of_this_boot(change));
        assert_eq!((change.settings[0].before, change.settings[0].after), (1, 4));
        again.settle(at, |_| Some(1)).unwrap();
        assert!(Kept::open(Some(&path), &boot("a")).unwrap().last(|_| true).is_none());
    }

    #[test]
    fn the_folder_of_a_mistyped_path_is_named_and_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mistyped/journal");
        let refused = Kept::open(Some(&path), &boot("a")).unwrap_err().message;
        assert!(refused.contains("mistyped\" does not exist") && refused.contains("--journal"), "{refused}");
        assert!(!folder.path().join("mistyped").exists());
        assert_eq!(file_of(Some(Path::new("here")), NAME).unwrap(), Path::new("here"));
    }

    #[test]
    fn changes_of_an_earlier_boot_are_known_as_such_and_dropped_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let changed = || vec![Changed { setting: WEIGHT, before: 1, after: 5 }];
        Kept::open(Some(&path), &boot("a")).unwrap().begin(changed()).unwrap();
        let mut kept = Kept::open(Some(&path), &boot("b")).unwrap();
        let (_, change) = kept.last(|_| true).unwrap();
        assert!(!kept.is_of_this_boot(change));
        kept.begin(changed()).unwrap();
        assert_eq!((kept.newest(), kept.is_of_this_boot(kept.last(|_| true).unwrap().1)), (0, true));
    }

    #[test]
    fn a_file_that_is_not_a_journal_is_named_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        std::fs::write(&path, "precious\n").unwrap();
        let refused = Kept::open(Some(&path), &boot("a")).unwrap_err().message;
        assert!(refused.contains("line 1 is \"precious\"") && refused.contains("--journal"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious\n");
    }

    #[test]
    fn a_setting_that_was_changed_by_other_means_is_refused_with_both_values() {
        let changed = Changed { setting: WEIGHT, before: 1, after: 5 };
        assert_eq!(refusal(&changed, Some(5)), None);
        assert_eq!(refusal(&changed, Some(1)), None);
        assert_eq!(
            refusal(&changed, Some(7)).unwrap(),
            "interleave weight of node 0: 7 now, nodewise left 5: changed since by other means (--force restores 1 anyway)"
        );
    }

    #[test]
    fn root_and_others_have_a_folder_of_their_own() {
        let check = |set: &[(&str, &str)], is_root: bool, expected: Option<&str>| {
            let variable =
                |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
            let found = default_path(variable, is_root).ok().map(|path| path.display().to_string());
            assert_eq!(found.as_deref(), expected, "{set:?}");
        };
        check(&[("HOME", "/root")], true, Some("/var/lib/nodewise/settings.journal"));
        check(&[("HOME", "/h")], false, Some("/h/.local/state/nodewise/settings.journal"));
        check(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")], false, Some("/s/nodewise/settings.journal"));
        check(&[("XDG_STATE_HOME", "s")], false, None);
    }
}
