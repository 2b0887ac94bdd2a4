//! Engines of guests: KVM, or QEMU's own translator TCG; which one is tried first, and how a KVM that does not work is found.
//!
//! That `/dev/kvm` can be opened does not say that a guest runs: in a virtual machine KVM may refuse registers, or stop while the
//! guest's kernel starts. So the guest itself is the trial. Until its first script runs, nothing has happened that could not be
//! repeated with TCG.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nodewise_machine::printable::{io_words, printable};

use crate::arch::Arch;
use crate::engine::{CONSOLE, LOG, tail};
use crate::stage::Stage;

/// The device of KVM.
const DEVICE: &str = "/dev/kvm";
/// How long a guest may be silent before its init starts, where TCG is there to take over: with a KVM that works the whole boot
/// takes less.
const SILENCE: Duration = Duration::from_secs(3);
/// The same, where nothing takes over.
const LONG_SILENCE: Duration = Duration::from_secs(30);
/// Longest reason, in characters.
const WIDTH: usize = 120;
/// Messages of QEMU when KVM stops a guest that it had begun. QEMU itself goes on then, and waits for someone to look at it.
///
/// # Source
/// QEMU 10.0: `kvm_handle_internal_error`, `kvm_cpu_exec` (accel/kvm/kvm-all.c), `kvm_arch_handle_exit`
/// (target/i386/kvm/kvm.c).
const STOPS: [&str; 3] = ["KVM internal error", "error: kvm run failed", "KVM: entry failed"];

/// How the instructions of a guest are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// By the host's CPUs.
    Kvm,
    /// By QEMU, which translates them. The only engine that counts cache lines or lets time follow instructions.
    Tcg,
}

impl Engine {
    /// QEMU's word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The engine that a guest shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// KVM where it works, else TCG.
    Auto,
    /// KVM or an error.
    Kvm,
    /// The same everywhere.
    #[default]
    Tcg,
}

/// The engine of a guest, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineTaken {
    pub engine: Engine,
    /// One line; empty where the engine was asked for.
    pub reason: String,
}

impl fmt::Display for EngineTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, reason } = self;
        if reason.is_empty() { write!(f, "{engine}") } else { write!(f, "{engine}: {reason}") }
    }
}

/// The choice of an engine for several guests. Clones share what was learnt: where KVM failed once, it is not tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engines {
    pub choice: EngineChoice,
    device: PathBuf,
    silence: Duration,
    failure: Arc<OnceLock<String>>,
}

impl Default for Engines {
    fn default() -> Self {
        Self::new(EngineChoice::default())
    }
}

impl Engines {
    /// A choice whose outcome is not known yet.
    pub fn new(choice: EngineChoice) -> Self {
        let silence = if choice == EngineChoice::Kvm { LONG_SILENCE } else { SILENCE };
        Self { choice, device: DEVICE.into(), silence, failure: Arc::default() }
    }

    /// The same with another device and another time of silence, for tests.
    #[cfg(test)]
    pub(crate) fn with(self, device: &Path, silence: Duration) -> Self {
        Self { device: device.into(), silence, ..self }
    }

    /// The engine to begin with for a guest of an architecture; `demand` is why it needs TCG, if it does. Starts nothing.
    ///
    /// # Errors
    /// KVM is demanded and cannot be had: why.
    pub fn first(&self, arch: Arch, demand: Option<&str>) -> Result<EngineTaken, String> {
        let obstacle = || {
            let known = self.failure.get().map(|reason| failed(reason));
            demand.map(str::to_owned).or(known).or_else(|| unusable(&self.device, arch))
        };
        let tcg = |reason| EngineTaken { engine: Engine::Tcg, reason };
        match (self.choice, obstacle) {
            (EngineChoice::Tcg, _) => Ok(tcg(String::new())),
            (EngineChoice::Kvm, obstacle) => match obstacle() {
                Some(reason) => Err(reason),
                None => Ok(EngineTaken { engine: Engine::Kvm, reason: String::new() }),
            },
            (EngineChoice::Auto, obstacle) => Ok(match obstacle() {
                Some(reason) => tcg(reason),
                None => EngineTaken {
                    engine: Engine::Kvm,
                    reason: format!("{} can be opened", self.device.display()),
                },
            }),
        }
    }

    /// The engine after KVM failed for this reason, which is remembered.
    pub(crate) fn after_failure(&self, reason: String) -> EngineTaken {
        let reason = failed(self.failure.get_or_init(|| reason));
        EngineTaken { engine: Engine::Tcg, reason }
    }

    /// The watch over a guest that begins.
    pub(crate) fn guard(&self) -> KvmGuard {
        KvmGuard { silence: self.silence, length: 0, since: Instant::now() }
    }
}

fn failed(reason: &str) -> String {
    format!("KVM failed: {reason}")
}

/// Why KVM cannot be used for guests of an architecture; `None` where the device can be opened.
fn unusable(device: &Path, arch: Arch) -> Option<String> {
    if Arch::from_compiler(std::env::consts::ARCH) != Some(arch) {
        return Some(format!("KVM runs guests of the host's architecture, {}", std::env::consts::ARCH));
    }
    let opened = OpenOptions::new().read(true).write(true).open(device);
    opened.err().map(|error| format!("{}: {}", device.display(), io_words(&error)))
}

/// Looks whether KVM still runs a guest.
pub(crate) struct KvmGuard {
    silence: Duration,
    /// Bytes of the console, and when there were fewer.
    length: u64,
    since: Instant,
}

impl KvmGuard {
    /// Why the guest of the run with this folder does not go on; `None` while it does.
    pub fn failure(&mut self, folder: &Path, stage: Stage) -> Option<String> {
        let log = tail(&folder.join(LOG));
        let text = String::from_utf8_lossy(&log);
        if let Some(line) = text.lines().find(|line| STOPS.iter().any(|stop| line.contains(stop))) {
            return Some(plain(line));
        }
        let length = fs::metadata(folder.join(CONSOLE)).map_or(0, |console| console.len());
        if length > self.length || stage >= Stage::Init {
            (self.length, self.since) = (length, Instant::now());
        }
        let is_silent = self.since.elapsed() >= self.silence;
        is_silent.then(|| format!("the guest wrote nothing for {} s", self.silence.as_secs_f64()))
    }
}

/// The reason in the log of QEMU: its first line besides warnings; assertions and dumps follow it.
pub(crate) fn reason(log: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(log);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.contains("warning: "));
    lines.next().map(plain)
}

/// A line of QEMU's without the name of the program, made fit for a terminal.
fn plain(line: &str) -> String {
    let line = line.trim();
    let named = line.split_once(": ").filter(|(name, _)| name.contains("qemu-system"));
    let line = named.map_or(line, |(_, rest)| rest);
    let line = line.strip_prefix("error: ").unwrap_or(line);
    printable(&line.chars().take(WIDTH).collect::<String>()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NULL: &str = "/dev/null";
    const NOTHING: &str = "/nonexistent/kvm";

    fn engines(choice: EngineChoice, device: &str) -> Engines {
        Engines::new(choice).with(Path::new(device), Duration::from_secs(600))
    }

    /// Compares the engine to begin with, as text; the host's own architecture unless it is another's.
    fn check(choice: EngineChoice, device: &str, demand: Option<&str>, expected: Result<&str, &str>) {
        let own = Arch::from_compiler(std::env::consts::ARCH).unwrap();
        let first = engines(choice, device).first(own, demand).map(|taken| taken.to_string());
        assert_eq!(first.as_deref().map_err(String::as_str), expected, "{choice:?} {device} {demand:?}");
    }

    #[test]
    fn kvm_is_tried_where_its_device_can_be_opened() {
        use EngineChoice::{Auto, Kvm, Tcg};
        let missing = "/nonexistent/kvm: no such file or directory";
        check(Auto, NULL, None, Ok("kvm: /dev/null can be opened"));
        check(Auto, NOTHING, None, Ok(&format!("tcg: {missing}")));
        check(Auto, NULL, Some("-icount needs TCG"), Ok("tcg: -icount needs TCG"));
        check(Kvm, NULL, None, Ok("kvm"));
        check(Kvm, NOTHING, None, Err(missing));
        check(Kvm, NULL, Some("-icount needs TCG"), Err("-icount needs TCG"));
        check(Tcg, NULL, None, Ok("tcg"));
        check(Tcg, NOTHING, Some("-icount needs TCG"), Ok("tcg"));
    }

    #[test]
    fn a_guest_of_another_architecture_takes_tcg() {
        let other = Arch::ALL.into_iter().find(|arch| arch.compiler() != std::env::consts::ARCH).unwrap();
        let taken = engines(EngineChoice::Auto, NULL).first(other, None).unwrap();
        assert_eq!(taken.engine, Engine::Tcg);
        assert!(taken.reason.starts_with("KVM runs guests of the host's architecture"), "{taken}");
    }

    #[test]
    fn a_failure_is_remembered_by_all_that_share_the_choice() {
        let engines = engines(EngineChoice::Auto, NULL);
        let other = engines.clone();
        let own = Arch::from_compiler(std::env::consts::ARCH).unwrap();
        assert_eq!(engines.after_failure("why".to_owned()).to_string(), "tcg: KVM failed: why");
        assert_eq!(other.first(own, None).unwrap().to_string(), "tcg: KVM failed: why");
        assert_eq!(other.after_failure("again".to_owned()).to_string(), "tcg: KVM failed: why");
    }

    #[test]
    fn the_reason_is_qemus_first_line_that_is_no_warning() {
        for (log, expected) in [
            (
                "qemu-system-x86_64: warning: host doesn't support requested feature: CPUID.01H:ECX.pni [bit 0]\n\
                 qemu-system-x86_64: error: failed to set MSR 0x10a to 0x0\n\
                 qemu-system-x86_64: ../target/i386/kvm/kvm.c:3266: kvm_buf_set_msrs: Assertion `x' failed.\n",
                Some("failed to set MSR 0x10a to 0x0"),
            ),
            (
                "KVM internal error. Suberror: 1\nextra data[0]: 0x1\n",
                Some("KVM internal error. Suberror: 1"),
            ),
            (
                "Could not access KVM kernel module: \u{1b}[2J\n",
                Some("Could not access KVM kernel module: \\x1b[2J"),
            ),
            ("\n\n", None),
        ] {
            assert_eq!(reason(log.as_bytes()).as_deref(), expected, "{log}");
        }
    }

    #[test]
    fn a_guest_is_stuck_where_kvm_stopped_it_or_its_kernel_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let guard = |silence| engines(EngineChoice::Auto, NULL).with(Path::new(NULL), silence).guard();
        let mut patient = guard(Duration::from_secs(600));
        assert_eq!(patient.failure(folder.path(), Stage::Emulator), None);
        let mut hasty = guard(Duration::ZERO);
        let silent = Some("the guest wrote nothing for 0 s".to_owned());
        assert_eq!(hasty.failure(folder.path(), Stage::Emulator), silent);
        fs::write(
            folder.path().join(LOG),
            "qemu-system-x86_64: warning: x\nKVM internal error. Suberror: 1\nRAX=0\n",
        )
        .unwrap();
        let stopped = Some("KVM internal error. Suberror: 1".to_owned());
        assert_eq!(patient.failure(folder.path(), Stage::Kernel), stopped);
        // Also while the command runs, for QEMU does not end then.
        assert_eq!(patient.failure(folder.path(), Stage::Command), stopped);
    }
}
