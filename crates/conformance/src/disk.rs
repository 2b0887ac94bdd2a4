//! A disk with a file system, in compressed memory: blocks of zeros take none.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::kernel;
use crate::nodes::PAGE;
use crate::setting::write;
use crate::swap::run;

const CONTROL: &str = "/sys/class/zram-control";
const FOLDER: &str = "/run/nodewise-disk";
/// Pages that are read or written by one call.
const AT_ONCE: u64 = 256;

/// ext4 on a zram device of its own; gone when dropped.
pub struct Disk {
    number: u32,
    is_mounted: bool,
}

impl Disk {
    /// Makes it.
    ///
    /// # Errors
    /// The kernel has no zram or no ext4, or there is no `mkfs.ext4`.
    pub fn new() -> Result<Self, String> {
        if !fs::exists(CONTROL).unwrap_or(false) {
            run("modprobe", &["zram"])?;
        }
        let text = kernel::line(&format!("{CONTROL}/hot_add"))?;
        let number = text.parse().map_err(|_| format!("{CONTROL}/hot_add: {text}"))?;
        let mut disk = Self { number, is_mounted: false };
        write(&format!("/sys/block/zram{number}/disksize"), "1G")?;
        let device = format!("/dev/zram{number}");
        // A guest that has busybox alone makes the older format, which ext4 mounts as well.
        let made = run("mkfs.ext4", &["-q", &device]);
        made.or_else(|why| run("mke2fs", &[&device]).map_err(|_| why))?;
        fs::create_dir_all(FOLDER).map_err(|error| format!("{FOLDER}: {error}"))?;
        run("mount", &["-t", "ext4", &device, FOLDER])?;
        disk.is_mounted = true;
        Ok(disk)
    }

    /// A file of this many pages, all of them holes.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn file(number: usize, pages: u64) -> Result<DiskFile, String> {
        let path = PathBuf::from(format!("{FOLDER}/f{number}"));
        let made = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = made.and_then(|file| file.set_len(pages * PAGE).map(|()| file));
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(DiskFile { file, path })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = run("umount", &[FOLDER]);
        }
        let number = self.number.to_string();
        for _ in 0..50 {
            let is_reset = write(&format!("/sys/block/zram{number}/reset"), "1").is_ok();
            if is_reset && write(&format!("{CONTROL}/hot_remove"), &number).is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A file of it; gone when dropped, with its pages in the cache.
pub struct DiskFile {
    file: File,
    path: PathBuf,
}

impl DiskFile {
    /// Reads pages, or writes zeros to them, a part after the other through a buffer of the caller's thread.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn pass(&self, first: u64, count: u64, writes: bool) -> Result<(), String> {
        let mut buffer = vec![0; (AT_ONCE * PAGE) as usize];
        for page in (first..first + count).step_by(AT_ONCE as usize) {
            let part = &mut buffer[..((first + count - page).min(AT_ONCE) * PAGE) as usize];
            let done = if writes {
                self.file.write_all_at(part, page * PAGE)
            } else {
                self.file.read_exact_at(part, page * PAGE)
            };
            done.map_err(|error| format!("{}: {error}", self.path.display()))?;
        }
        Ok(())
    }
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
