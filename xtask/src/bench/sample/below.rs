//! below, which records all processes and control groups again and again, as a peer of the sampler.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nodewise_lab::Cache;
use nodewise_lab::tools::find_program;
use nodewise_source::parse::schedstat;

use crate::program;

/// The program, the crate that has it, and the release that [`Below::install`] builds.
const NAME: &str = "below";
const VERSION: &str = "0.9.0";
/// Packages without which it does not build.
const PACKAGES: [&str; 4] = [COMPILER, "libelf-dev", "pkg-config", "zlib1g-dev"];
/// The compiler of its BPF program, on which release 14 crashes. Debian 12 and 13 have this one.
const COMPILER: &str = "clang-19";
/// The shortest interval that it has. What it learns with BPF of processes that end is left out: the sampler has
/// no such thing.
const WORDS: [&str; 4] = ["record", "--interval-s", "1", "--disable-exitstats"];
/// Places where version 2 of control groups is mounted; it reads no other.
const GROUPS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// Samples that are averaged. The first, which finds everything, is not among them.
const SAMPLES: u32 = 5;
/// The longest time that a sample may take to be stored.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program, where it runs here.
pub struct Below {
    program: PathBuf,
    groups: &'static str,
}

impl Below {
    /// Looks for it, and lets it take a sample.
    ///
    /// # Errors
    /// The reason why it cannot be measured here.
    pub fn find() -> Result<Self> {
        let program = find_program(NAME)
            .or_else(|| Some(folder().ok()?.join("bin").join(NAME)).filter(|path| path.exists()))
            .with_context(|| format!("not installed; cargo xtask bench sample --install builds {VERSION}"))?;
        let has_groups = |folder: &&str| Path::new(folder).join("cgroup.controllers").exists();
        let groups = GROUPS.into_iter().find(has_groups);
        let groups = groups.context("it needs version 2 of control groups, which is not mounted")?;
        let below = Self { program, groups };
        below.start()?.sample()?;
        Ok(below)
    }

    /// Builds it in the cache folder, with packages that only root can install. No package of Debian's has it.
    pub fn install() -> Result<()> {
        if rustix::process::geteuid().is_root() {
            program::install_packages(&PACKAGES)?;
        }
        let folder = folder()?;
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut cargo = program::cargo(&folder);
        cargo.args(["install", NAME, "--version", VERSION, "--locked", "--root"]).arg(&folder);
        cargo.arg("--target-dir").arg(folder.join("target")).env("CLANG", COMPILER);
        program::show(&mut cargo).with_context(|| format!("{NAME} also needs {}", PACKAGES.join(" ")))
    }

    /// The command line, for the head of a column.
    pub fn name() -> String {
        format!("{NAME} {}", WORDS.join(" "))
    }

    /// CPU time of a sample in microseconds.
    pub fn cpu_us(&self) -> Result<f64> {
        let mut recorder = self.start()?;
        let first = recorder.sample()?;
        let mut last = first;
        for _ in 0..SAMPLES {
            last = recorder.sample()?;
        }
        Ok(last.saturating_sub(first).as_secs_f64() * 1e6 / f64::from(SAMPLES))
    }

    fn start(&self) -> Result<Recorder> {
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let path = |name: &str| folder.path().join(name);
        let settings = format!(
            "log_dir = \"{}\"\nstore_dir = \"{}\"\ncgroup_root = \"{}\"\n",
            path("log").display(),
            path("store").display(),
            self.groups
        );
        fs::create_dir(path("log"))?;
        fs::write(path("below.conf"), settings)?;
        let errors = fs::File::create(path("errors"))?;
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(path("below.conf")).args(WORDS);
        let child = command.stdin(Stdio::null()).stdout(errors.try_clone()?).stderr(errors).spawn();
        let child = child.with_context(|| format!("cannot start {}", self.program.display()))?;
        Ok(Recorder { child, folder, stored: 0 })
    }
}

fn folder() -> Result<PathBuf> {
    Ok(Cache::locate()?.root().join(NAME))
}

/// A process that records; it ends with this value.
struct Recorder {
    child: Child,
    folder: tempfile::TempDir,
    /// Bytes of its index after the last sample.
    stored: u64,
}

impl Recorder {
    /// Waits until another sample has been stored. Returns the CPU time of all its threads so far.
    fn sample(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let stored = index_length(&self.folder.path().join("store"));
            if stored > self.stored {
                self.stored = stored;
                return self.cpu_time();
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(anyhow!("it ended with {status}: {}", self.last_words()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("it stored no sample within {} s: {}", PATIENCE.as_secs(), self.last_words())
    }

    /// Its threads live as long as it does.
    fn cpu_time(&self) -> Result<Duration> {
        let mut sum = Duration::ZERO;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            sum += schedstat::parse(&fs::read_to_string(task?.path().join("schedstat"))?)?.run;
        }
        Ok(sum)
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(self.folder.path().join("errors")).unwrap_or_default();
        text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("without a word").trim().to_owned()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // One that has ended already needs nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The length of the index in a store: it grows by an entry for each sample.
fn index_length(store: &Path) -> u64 {
    let entries = fs::read_dir(store).into_iter().flatten().filter_map(Result::ok);
    let is_index = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("index");
    entries.filter(is_index).filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A program in the place of below's.
    fn check(script: &str) -> Result<f64> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(NAME);
        fs::write(&program, format!("#!/bin/sh\nstore=$(dirname $2)/store\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        Below { program, groups: GROUPS[0] }.cpu_us()
    }

    #[test]
    fn samples_are_counted_by_the_entries_of_the_index() {
        let recorder = "mkdir $store; while :; do printf %32s x >> $store/index_1; sleep 0.1; done";
        let us = check(recorder).unwrap();
        assert!(us > 0.0 && us.is_finite(), "{us}");
    }

    #[test]
    fn a_recorder_that_ends_says_why() {
        let error = check("echo starting; echo no version 2 >&2; exit 3").unwrap_err().to_string();
        assert_eq!(error, "it ended with exit status: 3: no version 2");
    }
}
