//! A disk for pages of programs, in compressed memory.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::kernel;
use crate::nodes::PAGE;
use crate::setting::write;

const DISK: &str = "/dev/zram0";
const SIZE: &str = "/sys/block/zram0/disksize";
const RESET: &str = "/sys/block/zram0/reset";

/// Swap on zram; gone when dropped.
pub struct Swap {
    /// Pages that it takes.
    pub pages: u64,
}

impl Swap {
    /// Switches it on.
    ///
    /// # Errors
    /// The kernel has no zram, or there is no `mkswap`.
    pub fn on() -> Result<Self, String> {
        if !Path::new(SIZE).exists() {
            run("modprobe", &["zram"])?;
        }
        write(SIZE, "512M")?;
        let mut swap = Self { pages: 0 };
        run("mkswap", &[DISK])?;
        run("swapon", &[DISK])?;
        let table = kernel::line("/proc/swaps")?;
        let kib = table.lines().find_map(|line| {
            let mut words = line.split_ascii_whitespace();
            (words.next()? == DISK).then(|| words.nth(1)?.parse::<u64>().ok())?
        });
        let kib = kib.ok_or_else(|| format!("{DISK} is not in /proc/swaps: {table}"))?;
        swap.pages = kib * 1024 / PAGE;
        Ok(swap)
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = run("swapoff", &[DISK]);
        for _ in 0..50 {
            if write(RESET, "1").is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Runs a program.
///
/// # Errors
/// It cannot be started, or fails; the message is what it prints.
pub fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(words).output().map_err(|error| format!("{program}: {error}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {}", complaint.trim())) }
}
