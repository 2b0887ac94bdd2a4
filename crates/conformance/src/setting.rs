//! A setting of the guest's kernel that is put back.

use std::fs;

use crate::kernel;

/// A file of settings with the text that it had; put back when dropped.
pub struct Setting {
    path: String,
    before: String,
}

impl Setting {
    /// Keeps a setting.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn keep(path: impl Into<String>) -> Result<Self, String> {
        let path = path.into();
        let line = kernel::line(&path)?;
        // Of several choices the one in brackets is in force.
        let chosen = line.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0.to_owned()));
        let before = chosen.unwrap_or(line);
        Ok(Self { before, path })
    }

    /// Keeps a setting and gives it another value.
    ///
    /// # Errors
    /// It cannot be read, or refuses the value.
    pub fn with(path: impl Into<String>, value: &str) -> Result<Self, String> {
        let setting = Self::keep(path)?;
        setting.set(value)?;
        Ok(setting)
    }

    /// Gives it another value.
    ///
    /// # Errors
    /// It refuses the value.
    pub fn set(&self, value: &str) -> Result<(), String> {
        write(&self.path, value)
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        let _ = self.set(&self.before);
    }
}

/// Writes a file of the kernel's.
///
/// # Errors
/// The kernel refuses it; the message names the file.
pub fn write(path: &str, value: &str) -> Result<(), String> {
    fs::write(path, value).map_err(|error| format!("{path}: {error}"))
}
