//! The folder of a suite's inputs.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use nodewise_measure::suite::input::Place;

/// A folder for inputs.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes it.
    ///
    /// # Errors
    /// What the system says.
    pub fn make(path: PathBuf) -> io::Result<Self> {
        fs::create_dir(&path)?;
        Ok(Self { path })
    }
}

impl Place for Folder {
    fn folder(&mut self, path: &str) -> io::Result<()> {
        fs::create_dir(self.path.join(path))
    }

    fn file(&mut self, path: &str, fill: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(self.path.join(path))?);
        fill(&mut file)?;
        file.flush()
    }
}
