//! One boot: QEMU under a supervisor that leaves nothing behind.
//!
//! The supervisor is a shell in a process group of its own. It starts the emulator as a group (a
//! session) apart, and waits until its standard input closes. That happens when we let go of it,
//! and also when this process dies of whatever signal; either way it kills the emulator's group and
//! removes the folder of the run. So a guest outlives neither a time-out nor Ctrl-C.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::accelerator::KvmGuard;
use crate::counting::{self, Counting};
use crate::script;
use crate::stage::Stage;

/// Folder in the folder of a run that the guest can write to.
pub(crate) const SHARE: &str = "share";
/// File in the folder of a run: the guest's first file system.
pub(crate) const ARCHIVE: &str = "initramfs";
/// File with what the guest's kernel writes to its console.
pub(crate) const CONSOLE: &str = "console";
/// File with what QEMU has to say.
pub(crate) const LOG: &str = "log";
/// Descriptors at which the emulator finds our pipes for the command's output; its own output goes
/// to the log, so that the two never mix.
pub(crate) const STDOUT: &str = "/dev/fd/3";
/// The command's standard error.
pub(crate) const STDERR: &str = "/dev/fd/4";

/// `$1` is the folder of the run, the rest the emulator's command line. Killing the process itself
/// besides its group covers the moment before `setsid` made the group.
const SUPERVISOR: &str = r#"
folder=$1
shift
setsid -- "$@" < /dev/null 3>&1 4>&2 > log 2>&1 &
emulator=$!
exec > /dev/null 2>&1
cat
kill -s KILL -- "-$emulator"
kill -s KILL "$emulator"
wait
cd /
rm -rf -- "$folder"
"#;

/// How often a guest is looked at while it starts.
const LOOK: Duration = Duration::from_millis(200);

/// Bytes of a console or log that are kept: their ends show what went wrong.
const KEPT: u64 = 256 << 10;

/// Makes the folder of a run, gone when dropped, with a folder for what the guest writes.
///
/// # Errors
/// It cannot be made.
pub(crate) fn folder() -> io::Result<tempfile::TempDir> {
    let folder = tempfile::Builder::new().prefix("nodewise-lab-").tempdir()?;
    fs::create_dir(folder.path().join(SHARE))?;
    Ok(folder)
}

/// How a boot ended.
pub(crate) enum End {
    Ended,
    /// It was stopped because its time was over.
    TimedOut,
    /// It was stopped because its output could not be passed on.
    Output(io::Error),
    /// It was stopped because KVM does not run it any more: why.
    Kvm(String),
}

/// Result of a boot.
pub(crate) struct BootReport {
    pub end: End,
    /// Whether the guest came as far as starting the command.
    pub started: bool,
    /// The exit status of the command.
    pub status: Option<i32>,
    /// The end of the guest's console.
    pub console: Vec<u8>,
    /// The end of what QEMU wrote.
    pub log: Vec<u8>,
    /// The counts; empty where nothing was counted.
    pub counts: String,
    /// Symbols of the guest's kernel; empty where they were not asked for.
    pub symbols: String,
}

/// Runs an emulator in a folder and passes the output of the guest's command on while it comes; with a guard where KVM runs it.
/// The folder is gone afterwards.
///
/// # Errors
/// The supervisor cannot be started.
pub(crate) fn run(
    folder: &Path,
    emulator: &[OsString],
    path: &str,
    (timeout, mut guard): (Duration, Option<KvmGuard>),
    (stdout, stderr): (&mut (dyn Write + Send), &mut (dyn Write + Send)),
    watch: &mut dyn FnMut(Stage),
) -> io::Result<BootReport> {
    let mut supervisor = Supervisor::start(folder, emulator, path)?;
    let (from_stdout, from_stderr) = (supervisor.child.stdout.take(), supervisor.child.stderr.take());
    let (sender, ends) = mpsc::channel();
    thread::scope(|scope| {
        let other = sender.clone();
        // A channel that is closed means that no one waits any more.
        scope.spawn(move || sender.send(from_stdout.map_or(Ok(()), |pipe| pass_on(pipe, stdout))));
        scope.spawn(move || other.send(from_stderr.map_or(Ok(()), |pipe| pass_on(pipe, stderr))));
        let end = wait(&ends, timeout, &mut || {
            let stage = stage(folder);
            watch(stage);
            guard.as_mut()?.failure(folder, stage)
        });
        let report = BootReport {
            end,
            started: folder.join(SHARE).join(script::STARTED).exists(),
            status: script::parse_status(&String::from_utf8_lossy(&tail(
                &folder.join(SHARE).join(script::STATUS),
            ))),
            console: tail(&folder.join(CONSOLE)),
            log: tail(&folder.join(LOG)),
            counts: Counting::read(folder),
            symbols: counting::symbols(&folder.join(SHARE)),
        };
        // Closes both pipes, which the threads wait for.
        drop(supervisor);
        Ok(report)
    })
}

/// The running supervisor; dropping it ends the guest.
struct Supervisor {
    child: Child,
}

impl Supervisor {
    fn start(folder: &Path, emulator: &[OsString], path: &str) -> io::Result<Self> {
        let child = Command::new("sh")
            .args(["-c", SUPERVISOR, "nodewise-lab"])
            .arg(folder)
            .args(emulator)
            .current_dir(folder)
            .env_clear()
            .env("PATH", path)
            .env("LANG", "C.UTF-8")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Self { child })
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // Closing its input is the sign to clean up. Nothing can be done about a failure here.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Copies what comes, as it comes.
fn pass_on(mut from: impl Read, to: &mut (dyn Write + Send)) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                to.write_all(&buffer[..length])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits until both streams ended: the emulator holds them until it is gone. Meanwhile looks at the guest, which does not run any
/// more where a look returns why.
fn wait(
    ends: &mpsc::Receiver<io::Result<()>>,
    timeout: Duration,
    look: &mut dyn FnMut() -> Option<String>,
) -> End {
    let start = Instant::now();
    let mut open = 2;
    let mut failure = look();
    while open > 0 {
        if let Some(why) = failure {
            return End::Kvm(why);
        }
        let left = timeout.saturating_sub(start.elapsed());
        match ends.recv_timeout(left.min(LOOK)) {
            Ok(Ok(())) => open -= 1,
            Ok(Err(error)) => return End::Output(error),
            Err(mpsc::RecvTimeoutError::Timeout) if left <= LOOK => return End::TimedOut,
            Err(mpsc::RecvTimeoutError::Timeout) => failure = look(),
            Err(mpsc::RecvTimeoutError::Disconnected) => return End::Ended,
        }
    }
    End::Ended
}

/// How far the guest is whose run has this folder.
fn stage(folder: &Path) -> Stage {
    if folder.join(SHARE).join(script::STARTED).exists() {
        return Stage::Command;
    }
    Stage::of_console(&tail(&folder.join(CONSOLE)))
}

/// The last bytes of a file; nothing when it cannot be read.
pub(crate) fn tail(path: &Path) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        let length = fs::metadata(path)?.len();
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(length.saturating_sub(KEPT)))?;
        let mut bytes = Vec::new();
        file.take(KEPT).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a shell script in the place of an emulator.
    fn boot(script: &str, timeout: Duration) -> (BootReport, String, String, bool) {
        let folder = tempfile::tempdir().unwrap().keep();
        fs::create_dir(folder.join(SHARE)).unwrap();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let emulator = ["sh".into(), "-c".into(), script.into()];
        let path = std::env::var("PATH").unwrap();
        let streams: (&mut (dyn Write + Send), &mut (dyn Write + Send)) = (&mut stdout, &mut stderr);
        let report = run(&folder, &emulator, &path, (timeout, None), streams, &mut |_| {}).unwrap();
        (report, String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), folder.exists())
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn output_errors_and_the_emulators_own_words_stay_apart() {
        let (report, stdout, stderr, left) = boot(
            "echo out > /dev/fd/3; echo err > /dev/fd/4; echo words; echo warning >&2; echo booting > console; \
             : > share/started; echo 7 > share/status",
            LONG,
        );
        assert!(matches!(report.end, End::Ended));
        assert!(report.started);
        assert_eq!(report.status, Some(7));
        assert_eq!((stdout.as_str(), stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(report.log, b"words\nwarning\n");
        assert_eq!(report.console, b"booting\n");
        assert!(!left, "the folder of the run stays behind");
    }

    #[test]
    fn an_emulator_that_does_not_end_is_stopped_with_its_children() {
        let mark = format!("nodewise-lab-test-{}", std::process::id());
        let script =
            format!("sh -c 'while :; do read line < /dev/zero; done' {mark} & sleep 1000 3>&1; wait");
        let (report, _, _, left) = boot(&script, Duration::from_millis(1));
        assert!(matches!(report.end, End::TimedOut));
        assert_eq!(report.status, None);
        assert!(!left);
        let alive = fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|entry| {
            fs::read(entry.path().join("cmdline")).is_ok_and(|line| {
                String::from_utf8_lossy(&line).split('\0').next_back().is_some_and(|last| last == mark)
            })
        });
        assert!(!alive, "a child of the emulator outlives it");
    }

    #[test]
    fn output_that_nobody_takes_ends_the_run() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let folder = tempfile::tempdir().unwrap().keep();
        let emulator = ["sh".into(), "-c".into(), "echo out > /dev/fd/3; sleep 1000".into()];
        let path = std::env::var("PATH").unwrap();
        let mut stderr = Vec::new();
        let report =
            run(&folder, &emulator, &path, (LONG, None), (&mut Full, &mut stderr), &mut |_| {}).unwrap();
        assert!(matches!(report.end, End::Output(error) if error.kind() == io::ErrorKind::StorageFull));
        assert!(!folder.exists());
    }

    #[test]
    fn whoever_watches_hears_each_stage_until_the_command_runs() {
        let folder = tempfile::tempdir().unwrap().keep();
        fs::create_dir(folder.join(SHARE)).unwrap();
        // The guest goes on when its stage was heard: it waits for a file.
        let until = |name: &str| format!("until [ -e {name} ]; do :; done; ");
        let script = until("Emulator")
            + "echo Linux version > console; "
            + &until("Kernel")
            + "echo Run /init as init process >> console; "
            + &until("Init")
            + ": > share/started; "
            + &until("Command")
            + "echo 0 > share/status";
        let mut heard = Vec::new();
        let mut watch = |stage| {
            if heard.last() != Some(&stage) {
                heard.push(stage);
            }
            fs::write(folder.join(format!("{stage:?}")), "").unwrap();
        };
        let emulator = ["sh".into(), "-c".into(), script.into()];
        let path = std::env::var("PATH").unwrap();
        let streams: (&mut (dyn Write + Send), &mut (dyn Write + Send)) = (&mut Vec::new(), &mut Vec::new());
        let report = run(&folder, &emulator, &path, (LONG, None), streams, &mut watch).unwrap();
        assert_eq!(report.status, Some(0));
        assert_eq!(heard, [Stage::Emulator, Stage::Kernel, Stage::Init, Stage::Command]);
    }

    #[test]
    fn the_end_of_a_long_console_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CONSOLE);
        let mut text = vec![b'x'; KEPT as usize];
        text.extend(b"end");
        fs::write(&path, &text).unwrap();
        assert_eq!(tail(&path).len() as u64, KEPT);
        assert!(tail(&path).ends_with(b"xend"));
        assert!(tail(&folder.path().join("missing")).is_empty());
    }
}
