//! Devices of this system, which are near no node of the machine.
//!
//! They stay, and programs use them; but the nodes and CPUs that their files name are those of this system.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use nodewise_source::written::picture::{DEVICE_FOLDERS, Picture};
use rustix::io::Errno;
use rustix::mount::mount_bind;

/// Mounts the picture's files over those of each device. They are written in `folder`, and live there without a name.
///
/// # Errors
/// A file cannot be written or mounted, with its path.
pub fn unplace(picture: &Picture, folder: &str) -> Result<(), (String, std::io::Error)> {
    let devices = devices();
    for (name, text) in &picture.device_files {
        let found: Vec<String> = devices
            .iter()
            .map(|device| format!("{device}/{name}"))
            .filter(|path| fs::read_to_string(path).is_ok_and(|real| real != *text))
            .collect();
        if found.is_empty() {
            continue;
        }
        let hidden = format!("{folder}/.{name}");
        let written = File::create_new(&hidden).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| (hidden.clone(), error))?;
        for path in found {
            match mount_bind(&hidden, &path) {
                // The device was removed meanwhile.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err((path, error.into())),
            }
        }
        fs::remove_file(&hidden).map_err(|error| (hidden, error))?;
    }
    Ok(())
}

/// The folders of all devices.
fn devices() -> Vec<String> {
    let entries = DEVICE_FOLDERS.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    entries
        .filter_map(|entry| entry.path().to_str().filter(|path| Path::new(path).is_dir()).map(str::to_owned))
        .collect()
}
