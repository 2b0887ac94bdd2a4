//! The folder of a suite's inputs.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use nodewise_experiment::suite::input::InputStore;

/// Bytes that are written between two looks at the interrupt.
const PART: usize = 1 << 20;

/// A folder for inputs.
pub struct Folder<'a> {
    path: PathBuf,
    interrupt: &'a AtomicBool,
}

impl<'a> Folder<'a> {
    /// Makes it. Writing into it fails when the interrupt becomes true.
    ///
    /// # Errors
    /// What the system says.
    pub fn make(path: PathBuf, interrupt: &'a AtomicBool) -> io::Result<Self> {
        fs::create_dir(&path)?;
        Ok(Self { path, interrupt })
    }
}

impl InputStore for Folder<'_> {
    fn folder(&mut self, path: &str) -> io::Result<()> {
        fs::create_dir(self.path.join(path))
    }

    fn file(&mut self, path: &str, fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let file = File::create(self.path.join(path))?;
        let mut file = BufWriter::with_capacity(PART, Interruptible { file, interrupt: self.interrupt });
        fill(&mut file)?;
        file.flush()
    }
}

/// A file that takes nothing any more once the user wants an end.
struct Interruptible<'a> {
    file: File,
    interrupt: &'a AtomicBool,
}

impl Write for Interruptible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Not `ErrorKind::Interrupted`, after which writing is tried once more.
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(io::Error::other("ended early"));
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_experiment::suite::input::{Content, Input};
    use nodewise_machine::Bytes;

    #[test]
    fn an_input_that_is_being_made_ends_when_the_user_wants_it() {
        let folder = tempfile::tempdir().unwrap();
        let interrupt = AtomicBool::new(false);
        let mut place = Folder::make(folder.path().join("inputs"), &interrupt).unwrap();
        let size = Bytes::from_mib(4);
        let input = |name: &str| Input { name: name.to_owned(), content: Content::Text { size }, seed: 1 };
        input("whole").generate(&mut place).unwrap();
        assert_eq!(fs::metadata(folder.path().join("inputs/whole")).unwrap().len(), size.get());
        interrupt.store(true, Ordering::Relaxed);
        input("part").generate(&mut place).unwrap_err();
        assert_eq!(fs::metadata(folder.path().join("inputs/part")).unwrap().len(), 0);
    }
}
