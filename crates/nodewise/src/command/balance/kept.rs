//! The journal of balance in its file, and the lock that keeps a second balance away.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::{io_words, quote};
use nodewise_source::balance_journal::{self, Entry, Line, OpenAction, SCHEMA, open_actions};
use nodewise_source::capture::{Overwrite, write_file};
use nodewise_source::process::Pid;
use nodewise_source::sample::{Identity, Life};
use nodewise_source::tree::{Tree, read_bounded};
use rustix::fs::{FlockOperation, flock};

use crate::failure::Failure;
use crate::journal::{create_folder, file_of, is_missing, state_file, this_boot, unusable};
use crate::output;

/// The name of the journal in the state folder.
const NAME: &str = "balance.journal";
/// The name of the lock in the folder of what runs; of others than root, in the state folder.
const LOCK: &str = "balance.lock";
/// The folder of root for what runs: every balance of the system must meet there, whatever its journal is.
const RUNNING: &str = "/run/nodewise";
/// The largest journal that is read.
const MOST_BYTES: u64 = 256 << 20;
/// A journal that grows by this much loses what is not open any more, and actions on processes that have ended.
const LARGE_BYTES: usize = 4 << 20;

/// The journal, opened for more lines.
pub(in crate::command) struct Kept {
    path: PathBuf,
    file: File,
    boot: String,
    next: u64,
    lines: Vec<Line>,
    /// Whether each line is printed too.
    prints: bool,
    /// Bytes of whole lines in the file.
    good: u64,
    /// Whether a line failed to be written and half of it may be there.
    is_broken: bool,
    /// Lines that are none of this journal.
    bad: Vec<String>,
    /// Bytes that were added since the journal was made smaller.
    added: usize,
}

impl Kept {
    /// Opens it; a missing file is an empty journal.
    pub(in crate::command) fn open(named: Option<&Path>, tree: &Tree, prints: bool) -> Result<Self, Failure> {
        let path = file_of(named, NAME)?;
        let boot = this_boot(tree)?;
        let wrong = |why: String| unusable(&path, &why);
        create_folder(&path)?;
        let file = append(&path).map_err(|error| wrong(io_words(&error)))?;
        let bytes = read_bounded(&path, MOST_BYTES).map_err(|cause| wrong(cause.to_string()))?;
        let (lines, bad) = parse(&path, &bytes)?;
        // The next line cannot begin behind a line that was cut.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(|error| wrong(io_words(&error)))?;
        let next = balance_journal::ids(&lines).last().map_or(1, |last| last.saturating_add(1));
        let mut kept = Self {
            path,
            file,
            boot,
            next,
            lines,
            prints,
            good: whole as u64,
            is_broken: false,
            bad,
            added: whole,
        };
        if kept.bad.is_empty() {
            kept.shrink_if_large(tree)?;
        }
        Ok(kept)
    }

    /// The file of a journal, its actions that were not taken back, the oldest first, and lines that are none of it. Nothing is
    /// created or changed; a missing file is an empty journal.
    pub(super) fn peek(named: Option<&Path>) -> Result<(PathBuf, Vec<OpenAction>, Vec<String>), Failure> {
        let path = file_of(named, NAME)?;
        let bytes = match read_bounded(&path, MOST_BYTES) {
            Err(cause) if is_missing(&cause) => Vec::new(),
            read => read.map_err(|cause| unusable(&path, &cause.to_string()))?,
        };
        let (lines, bad) = parse(&path, &bytes)?;
        Ok((path, open_actions(&lines), bad))
    }

    /// Its file.
    pub(in crate::command) fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// Actions that were not taken back, the oldest first.
    pub(in crate::command) fn open_actions(&self) -> Vec<OpenAction> {
        open_actions(&self.lines)
    }

    /// Its size in bytes.
    pub(super) const fn size(&self) -> u64 {
        self.good
    }

    /// Lines that are none of this journal.
    pub(in crate::command) fn bad(&self) -> &[String] {
        &self.bad
    }

    /// Whether an action may begin, whose lines would have to fit.
    pub(super) fn has_room(&self) -> Result<(), String> {
        if self.good < MOST_BYTES / 4 && !self.is_broken {
            return Ok(());
        }
        Err("the journal is full: balance undo --all empties it".to_owned())
    }

    /// Whether an action was begun in this boot.
    pub(super) fn is_of_this_boot(&self, action: &OpenAction) -> bool {
        action.boot == self.boot
    }

    /// The number of the next action.
    pub(in crate::command) fn next_id(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        id
    }

    /// Writes a step down; it is on the disk when this returns.
    pub(in crate::command) fn write(&mut self, id: Option<u64>, entry: Entry) -> Result<(), Failure> {
        let line = line(&self.boot, id, entry);
        let text = line.to_text();
        if self.is_broken {
            return Err(Failure::cannot("the journal ends in half a line: nothing more is done"));
        }
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            // The next line cannot begin behind half a line.
            self.is_broken = self.file.set_len(self.good).is_err();
            Failure::cannot(format_args!(
                "cannot write the journal {}: {}",
                quote(&self.path()),
                io_words(&error)
            ))
        })?;
        if self.prints {
            output::print_json(&text)?;
        }
        self.good += text.len() as u64;
        self.added += text.len();
        self.lines.push(line);
        Ok(())
    }

    /// Leaves out what cannot be taken back any more, where the journal has become large.
    pub(super) fn shrink_if_large(&mut self, tree: &Tree) -> Result<(), Failure> {
        if self.added < LARGE_BYTES || !self.bad.is_empty() {
            return Ok(());
        }
        self.added = 0;
        let is_alive = |action: &&OpenAction| {
            let process = &action.began.process;
            let identity = Identity { pid: Pid::new(process.pid), started_ticks: process.started_ticks };
            self.is_of_this_boot(action) && identity.life(tree) != Life::Ended
        };
        let open: BTreeSet<u64> =
            self.open_actions().iter().filter(is_alive).map(|action| action.id).collect_set();
        self.lines.retain(|line| line.id.is_some_and(|id| open.contains(&id)));
        let text: String = self.lines.iter().map(Line::to_text).collect();
        write_file(&self.path, text.as_bytes(), Overwrite::Replace).map_err(Failure::cannot)?;
        self.good = text.len() as u64;
        self.file = append(&self.path).map_err(|error| {
            Failure::cannot(format_args!("cannot open the journal again: {}", io_words(&error)))
        })?;
        Ok(())
    }
}

/// A line of now.
pub(super) fn line(boot: &str, id: Option<u64>, entry: Entry) -> Line {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Line { schema: SCHEMA.to_owned(), at_unix_s: now.as_secs(), boot: boot.to_owned(), id, entry }
}

/// The lines of a journal, and why others are none of it.
///
/// # Errors
/// A file without any line that is: it is another one.
fn parse(path: &Path, bytes: &[u8]) -> Result<(Vec<Line>, Vec<String>), Failure> {
    let (lines, bad) = balance_journal::parse_known(&String::from_utf8_lossy(bytes));
    match bad.first().filter(|_| lines.is_empty()) {
        Some(why) => Err(unusable(path, why)),
        None => Ok((lines, bad)),
    }
}

fn append(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// The right to change processes, which one balance has at a time; it ends with the process, however that ends.
pub(in crate::command) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes it.
    ///
    /// # Errors
    /// Another balance, by its number.
    pub(in crate::command) fn take() -> Result<Self, Failure> {
        let is_root = rustix::process::geteuid().is_root();
        let path = if is_root { Path::new(RUNNING).join(LOCK) } else { state_file(LOCK)? };
        Self::take_at(&path)
    }

    fn take_at(path: &Path) -> Result<Self, Failure> {
        let named = quote(&path.display().to_string()).to_string();
        let cannot = |error: std::io::Error| {
            Failure::cannot(format_args!("cannot lock {named}: {}", io_words(&error)))
        };
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(cannot)?;
        let opened =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path);
        let mut file = opened.map_err(cannot)?;
        if let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            let error = std::io::Error::from(error);
            if error.kind() != ErrorKind::WouldBlock {
                return Err(cannot(error));
            }
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            let holder: Option<u32> = holder.trim().parse().ok();
            let holder = holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            return Err(Failure::cannot(format_args!(
                "nodewise balance is already running: {holder} holds {named}"
            )));
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", std::process::id()));
        written.map_err(cannot)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_source::tree::Memory;

    fn tree() -> Tree {
        Tree::memory(Memory::new().file(nodewise_source::paths::BOOT_ID, "a\n"))
    }

    fn ended() -> Entry {
        Entry::Ended { ending: "done".to_owned(), moved_bytes: 1, failed_bytes: 0 }
    }

    #[test]
    fn lines_are_kept_and_numbers_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut kept = Kept::open(Some(&path), &tree(), false).unwrap();
        let id = kept.next_id();
        kept.write(Some(id), ended()).unwrap();
        drop(kept);
        // Half a line, as kill -9 or a power cut leaves it.
        append(&path).unwrap().write_all(b"{\"schema\":\"node").unwrap();
        let mut kept = Kept::open(Some(&path), &tree(), false).unwrap();
        assert_eq!((id, kept.next_id(), kept.lines.len()), (1, 2, 1));
        kept.write(Some(2), ended()).unwrap();
        assert_eq!(Kept::open(Some(&path), &tree(), false).unwrap().lines.len(), 2);
    }

    #[test]
    fn a_large_journal_keeps_what_can_still_be_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut kept = Kept::open(Some(&path), &tree(), false).unwrap();
        kept.write(Some(1), ended()).unwrap();
        kept.added = LARGE_BYTES;
        kept.shrink_if_large(&tree()).unwrap();
        kept.write(Some(2), ended()).unwrap();
        let again = Kept::open(Some(&path), &tree(), false).unwrap();
        assert_eq!(again.lines.iter().filter_map(|line| line.id).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_line_that_is_none_is_left_out_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut kept = Kept::open(Some(&path), &tree(), false).unwrap();
        kept.write(Some(1), ended()).unwrap();
        append(&path).unwrap().write_all(b"{\"schema\":\xff half of a line\n").unwrap();
        let mut kept = Kept::open(Some(&path), &tree(), false).unwrap();
        assert!(kept.bad()[0].starts_with("line 2 is "), "{:?}", kept.bad());
        kept.write(Some(1), ended()).unwrap();
        let again = Kept::open(Some(&path), &tree(), false).unwrap();
        assert_eq!((again.lines.len(), again.bad().len()), (2, 1));
    }

    #[test]
    fn a_look_at_a_journal_reads_as_its_opening_does_and_creates_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let (seen, open, bad) = Kept::peek(Some(&path)).unwrap();
        assert_eq!((seen.as_path(), open.len(), bad.len(), path.exists()), (path.as_path(), 0, 0, false));
        std::fs::write(&path, "another file\n").unwrap();
        let of = |read: Result<(), Failure>| read.unwrap_err().message;
        let why = of(Kept::peek(Some(&path)).map(drop));
        assert_eq!(why, of(Kept::open(Some(&path), &tree(), false).map(drop)));
        assert!(why.contains("line 1 is "), "{why}");
        std::fs::remove_file(&path).unwrap();
        let mut kept = Kept::open(Some(&path), &tree(), false).unwrap();
        kept.write(Some(1), ended()).unwrap();
        append(&path).unwrap().write_all(b"no line\n").unwrap();
        assert!(Kept::peek(Some(&path)).unwrap().2[0].starts_with("line 2 is "));
    }

    #[test]
    fn after_a_line_that_may_be_half_there_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut kept = Kept::open(Some(&path), &tree(), false).unwrap();
        kept.write(Some(1), ended()).unwrap();
        let good = kept.size();
        // Neither to be written nor to be cut.
        kept.file = File::open(&path).unwrap();
        kept.write(Some(2), ended()).unwrap_err();
        kept.file = append(&path).unwrap();
        assert!(kept.write(Some(2), ended()).unwrap_err().message.contains("half a line"));
        assert!(kept.has_room().is_err());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), good);
    }

    #[test]
    fn a_file_that_is_not_a_journal_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        std::fs::write(&path, "precious\n").unwrap();
        let refused = Kept::open(Some(&path), &tree(), false).err().unwrap().message;
        assert!(refused.contains("line 1 is \"precious\"") && refused.contains("--journal"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious\n");
    }

    #[test]
    fn the_second_balance_is_refused_with_the_number_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = Lock::take_at(&path).unwrap();
        let refused = Lock::take_at(&path).err().unwrap().message;
        let expected = format!("nodewise balance is already running: process {} holds", std::process::id());
        assert!(refused.starts_with(&expected), "{refused}");
        drop(first);
        // A child of another test has every open file of this process until its program starts.
        let free = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            Lock::take_at(&path).is_ok()
        });
        assert!(free, "the lock is not free after its holder has gone");
    }
}
