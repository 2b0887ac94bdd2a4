//! The first program of a guest of arm64: mounts what programs expect, runs the command, sends its exit
//! status to the host and switches the machine off.
//!
//! See the library's module `arm64` for how it gets there. It is a static program, since there is nothing
//! beside it. What goes wrong is reported on the console; the host shows its end when a guest gives
//! no exit status.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use nodewise_lab::arm64::{COMMAND, PORTS, PROGRAMS};
use nodewise_lab::init_script::{BUSYBOX, MODULES};
use nodewise_lab::initramfs::named;
use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};

/// The kernel's console.
const CONSOLE: &str = "/dev/console";
/// The file systems to mount, and where below the root.
const MOUNTS: [(&str, &str); 7] = [
    ("proc", "proc"),
    ("sysfs", "sys"),
    ("cgroup2", "sys/fs/cgroup"),
    ("devtmpfs", "dev"),
    ("tmpfs", "dev/shm"),
    ("tmpfs", "run"),
    ("tmpfs", "tmp"),
];
/// Exit status of a command that cannot be executed, and of one that is missing, as shells give them.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

fn main() {
    if let Err(error) = run() {
        // There is no other place to report it.
        let console = File::options().write(true).open(CONSOLE);
        let _ = console.and_then(|mut console| writeln!(console, "lab-init: {error}"));
    }
    let _ = reboot(RebootCommand::PowerOff);
}

fn run() -> io::Result<()> {
    mount_all()?;
    load_modules()?;
    if Path::new(BUSYBOX).exists() {
        let named = Command::new(BUSYBOX).args(["--install", "-s", PROGRAMS]).status();
        named.map_err(|error| at(BUSYBOX, error))?;
    }
    let [stdout, stderr, mut status] = ports()?;
    let ended = command()?.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?).status();
    writeln!(status, "{}", code(ended)).map_err(|error| at(PORTS[2], error))?;
    for port in [stdout, stderr, status] {
        tcdrain(&port)?;
    }
    Ok(())
}

fn at(place: impl AsRef<Path>, error: impl Into<io::Error>) -> io::Error {
    named(place.as_ref(), &error.into())
}

/// Mounts the kernel's file systems, and memory for files.
fn mount_all() -> io::Result<()> {
    for (kind, place) in MOUNTS {
        let place = Path::new("/").join(place);
        fs::create_dir_all(&place).map_err(|error| at(&place, error))?;
        mount(kind, &place, kind, MountFlags::empty(), None).map_err(|error| at(&place, error))?;
    }
    Ok(())
}

/// Loads the modules that came along, in their order.
fn load_modules() -> io::Result<()> {
    for number in 0.. {
        let path = Path::new(MODULES).join(format!("{number}.ko"));
        let Ok(module) = File::open(&path) else { break };
        finit_module(&module, c"", 0).map_err(|error| at(&path, error))?;
    }
    Ok(())
}

/// The ports to the host, which pass bytes on as they are.
fn ports() -> io::Result<[File; 3]> {
    let open = |path: &str| -> io::Result<File> {
        let port = File::options().read(true).write(true).open(path)?;
        let mut settings = tcgetattr(&port)?;
        settings.make_raw();
        tcsetattr(&port, OptionalActions::Now, &settings)?;
        Ok(port)
    };
    let [stdout, stderr, status] = PORTS.map(|path| open(path).map_err(|error| at(path, error)));
    Ok([stdout?, stderr?, status?])
}

fn command() -> io::Result<Command> {
    let text = fs::read(COMMAND).map_err(|error| at(COMMAND, error))?;
    let mut words = text.split_inclusive(|byte| *byte == 0).filter_map(|word| word.strip_suffix(b"\0"));
    let word = |word: &[u8]| OsString::from_vec(word.to_vec());
    let program = words.next().ok_or_else(|| at(COMMAND, io::ErrorKind::UnexpectedEof))?;
    let mut command = Command::new(word(program));
    command.args(words.map(word)).env_clear().env("PATH", PROGRAMS).stdin(Stdio::null());
    Ok(command)
}

/// The exit status as a shell gives it.
fn code(ended: io::Result<ExitStatus>) -> i32 {
    match ended {
        Ok(status) => status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => NOT_FOUND,
        Err(_) => NOT_EXECUTABLE,
    }
}
