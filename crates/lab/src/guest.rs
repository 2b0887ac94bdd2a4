//! A guest: a layout with a kernel, and a command to run in it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nodewise_machine::Bytes;
use nodewise_machine::printable::{io_words, quote};

use crate::arch::Arch;
use crate::console::{self, Tail};
use crate::counting::{Counting, CountsError};
use crate::engine::{self, BootReport, End};
use crate::init_script;
use crate::initramfs::{Archive, read};
use crate::kernel::Kernel;
use crate::layout::Layout;
use crate::modules::{self, Modules};
use crate::qemu::{Emulator, FirmwareNodes};
use crate::script;
use crate::stage::Stage;
use crate::tools::Tools;

/// Folders in which a guest can write although it sees the host's files: an overlay in the guest's
/// memory takes what is written. Not `/usr`: an overlay there makes every program slower to load.
const WRITABLE: [&str; 7] = ["/etc", "/home", "/opt", "/root", "/srv", "/tmp", "/var"];
/// Where a guest finds its kernel's modules.
const MODULES: &str = "/lib/modules";
/// Link in the folder of a run to the scratch folder.
const SCRATCH: &str = "scratch";
/// The file of a guest's disk, in the folder of a run.
const DISK: &str = "disk";
/// The CPU: all that QEMU can emulate but a fifth level of page tables, which makes each way through them longer, and
/// fast string operations: a kernel that sees these fills and copies pages byte by byte, which an emulator does at a third of
/// the speed of words.
const CPU: &str = "max,la57=off,erms=off,fsrm=off";
/// The kernel's command line: its console; its messages, which cost no time that could be measured, and a guest that
/// hangs has nothing else to say; the end when it panics. Where the host gives the emulator no time for a while, the check
/// of the timer finds none, and the kernel panics. A guest needs no protection, and an emulator has no quick way
/// through the returns and flushes that keep attackers out: a fork takes half of the time without them.
const WORDS: &str = "console=ttyS0 loglevel=7 panic=-1 no_timer_check mitigations=off";
/// Variables that a command gets from the caller.
const KEPT_VARIABLES: [&str; 3] = ["HOME", "LANG", "LC_ALL"];
/// Bytes that may be added to a kernel's command line: x86 takes 2048 (`COMMAND_LINE_SIZE`).
const MOST_APPENDED: usize = 1024;
/// How often a guest is booted at most when the emulator fails before the command started.
const ATTEMPTS: u32 = 4;

/// How QEMU runs the CPUs of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Threads {
    /// All CPUs take turns on one thread of the host. Slower for parallel programs, and free of the
    /// faults that the other has.
    #[default]
    Shared,
    /// Each CPU has a thread of the host. QEMU 10.0 then fails now and then while a guest boots;
    /// such a boot is repeated. QEMU before 8 cannot boot Linux 6.12 in this way (it breaks code
    /// patching, an `int3` in the kernel), so it gets [`Threads::Shared`].
    PerCpu,
}

/// A guest that can be run.
#[derive(Clone, Debug)]
pub struct Guest {
    pub layout: Layout,
    pub kernel: Kernel,
    /// The programs it is built with.
    pub tools: Tools,
    /// Words to add to the kernel's command line: `numa=fake=4`.
    pub append: Vec<String>,
    /// Arguments to add to QEMU's: expander bridges, hot-plugged memory, CXL.
    pub qemu_arguments: Vec<OsString>,
    /// Whether its firmware describes the nodes of the layout.
    pub nodes: FirmwareNodes,
    /// An archive in front of its first file system, for the kernel alone: tables in place of the firmware's.
    pub early: Vec<u8>,
    /// A folder of the host that the guest can write to, at [`script::SCRATCH_FOLDER`]; the command
    /// finds that path in the variable [`script::SCRATCH_VARIABLE`].
    pub scratch: Option<PathBuf>,
    /// The size of an empty disk, `/dev/vda` in the guest; nothing of it stays. Files of the host are read over 9p, whose
    /// page cache is the protocol's: only a disk fills page cache as it does on a server.
    pub disk: Option<Bytes>,
    /// Files that are copied into the guest's memory, to [`script::PROGRAMS_FOLDER`], each under the name there: for
    /// commands that hide the host's folders, and for programs whose pages are not to be read again once memory was short.
    pub programs: Vec<(String, PathBuf)>,
    /// The folder in which the command starts, when the guest has it; else `/`.
    pub directory: Option<PathBuf>,
    /// All variables that the command gets, besides that of the scratch folder.
    pub variables: Vec<(OsString, OsString)>,
    /// How long a run may take, boot included.
    pub timeout: Duration,
    /// How its CPUs are run.
    pub threads: Threads,
}

/// Result of a command in a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its exit status as a shell gives it: 126 when it cannot be executed, 127 when it does not
    /// exist, 128 and the number of the signal that killed it.
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Why a guest gave no result.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// There is nothing to run.
    #[error("a guest needs a command to run")]
    NoCommand,
    /// The kernel's command line cannot hold this.
    #[error("{} cannot be added to the kernel's command line: {reason}", quote(words))]
    Append { words: String, reason: &'static str },
    /// This guest cannot be counted.
    #[error("cannot count cache lines: {reason}")]
    Uncountable { reason: String },
    /// It ended, and its counts are missing or wrong.
    #[error("the cache lines were not counted: {source}; the command's exit status is {status}")]
    Counts { status: i32, source: CountsError },
    /// The scratch folder cannot be shared.
    #[error("the scratch folder {} cannot be shared with the guest: {}", quote(&path.to_string_lossy()), io_words(source))]
    Scratch { path: PathBuf, source: io::Error },
    /// The host could not prepare or start it.
    #[error("cannot start a guest: {}", io_words(.0))]
    Start(#[source] io::Error),
    /// Output of the command that could not be passed on.
    #[error("cannot write the output of the guest's command: {}", io_words(.0))]
    Output(#[source] io::Error),
    #[error("the guest's kernel panicked: {reason}; its console:{console}")]
    Panicked {
        reason: String,
        /// The lines of its console around that.
        console: Tail,
    },
    #[error("the guest was stopped after {} s{}", after.as_secs_f64(), appended_tail("the end of its console", console))]
    TimedOut {
        /// How long it was given.
        after: Duration,
        /// The last lines of its console.
        console: Tail,
    },
    /// It ended before the command did: it did not boot, or was switched off.
    #[error(
        "the guest ended without a result{}{}",
        appended_tail("QEMU says", log),
        appended_tail("the end of its console", console)
    )]
    Ended {
        /// The last lines of what QEMU wrote.
        log: Tail,
        /// The last lines of its console.
        console: Tail,
    },
}

fn appended_tail(what: &str, tail: &Tail) -> String {
    if tail.is_empty() { String::new() } else { format!("; {what}:{tail}") }
}

impl Guest {
    /// A guest in which a command starts where the caller is, with the caller's `PATH`, `HOME` and
    /// language and no other variable, and ten minutes of time.
    pub fn new(layout: Layout, kernel: Kernel, tools: Tools) -> Self {
        let mut variables = vec![(OsString::from("PATH"), OsString::from(&tools.path))];
        variables.extend(
            KEPT_VARIABLES.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))),
        );
        Self {
            layout,
            kernel,
            tools,
            append: Vec::new(),
            qemu_arguments: Vec::new(),
            nodes: FirmwareNodes::default(),
            early: Vec::new(),
            scratch: None,
            disk: None,
            programs: Vec::new(),
            directory: std::env::current_dir().ok(),
            variables,
            timeout: Duration::from_secs(600),
            threads: Threads::default(),
        }
    }

    /// Boots the guest, runs a command in it and collects what it writes.
    ///
    /// # Errors
    /// The guest could not be started, or ended without the command's exit status.
    pub fn run(&self, command: &[OsString]) -> Result<Output, GuestError> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let status = self.stream(command, &mut stdout, &mut stderr)?;
        Ok(Output { status, stdout, stderr })
    }

    /// Boots the guest, runs a command in it and passes on what it writes while it runs. The
    /// command's standard input is empty.
    ///
    /// # Errors
    /// The guest could not be started, or ended without the command's exit status.
    pub fn stream(
        &self,
        command: &[OsString],
        stdout: &mut (dyn Write + Send),
        stderr: &mut (dyn Write + Send),
    ) -> Result<i32, GuestError> {
        self.stream_watched(command, stdout, stderr, &mut |_| {})
    }

    /// As [`Guest::stream`]; `watch` hears several times a second how far the guest is, until its command
    /// runs.
    ///
    /// # Errors
    /// As there.
    pub fn stream_watched(
        &self,
        command: &[OsString],
        stdout: &mut (dyn Write + Send),
        stderr: &mut (dyn Write + Send),
        watch: &mut dyn FnMut(Stage),
    ) -> Result<i32, GuestError> {
        judge(self.boot(None, command, (stdout, stderr), watch)?, self.timeout)
    }

    /// Boots the guest until it ends, again where the emulator failed before the command started.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn boot(
        &self,
        counting: Option<&Counting>,
        command: &[OsString],
        (stdout, stderr): (&mut (dyn Write + Send), &mut (dyn Write + Send)),
        watch: &mut dyn FnMut(Stage),
    ) -> Result<BootReport, GuestError> {
        if command.is_empty() {
            return Err(GuestError::NoCommand);
        }
        let append = appended(&self.append)?;
        let mut attempt = 1;
        loop {
            let folder = self.prepare(counting, command)?;
            let emulator = self.emulator(counting, &append);
            let path = &self.tools.path;
            let streams: (&mut (dyn Write + Send), &mut (dyn Write + Send)) = (&mut *stdout, &mut *stderr);
            let report = engine::run(folder.path(), &emulator, path, self.timeout, streams, watch)
                .map_err(GuestError::Start)?;
            let again = attempt < ATTEMPTS
                && !report.started
                && matches!(report.end, End::Ended)
                && console::is_emulator_fault(&report.log);
            if !again {
                return Ok(report);
            }
            attempt += 1;
        }
    }

    /// Makes the folder of a run, with what the guest starts.
    fn prepare(
        &self,
        counting: Option<&Counting>,
        command: &[OsString],
    ) -> Result<tempfile::TempDir, GuestError> {
        let folder = engine::folder().map_err(GuestError::Start)?;
        if let Some(scratch) = &self.scratch {
            // A link, because an option of QEMU's ends at a comma.
            fs::read_dir(scratch)
                .and_then(|_| symlink(scratch.canonicalize()?, folder.path().join(SCRATCH)))
                .map_err(|source| GuestError::Scratch { path: scratch.clone(), source })?;
        }
        if let Some(size) = self.disk {
            // Blocks that the guest does not write to take no room.
            let disk = fs::File::create(folder.path().join(DISK)).and_then(|disk| disk.set_len(size.get()));
            disk.map_err(GuestError::Start)?;
        }
        let mut variables = self.variables.clone();
        if self.scratch.is_some() {
            variables.push((script::SCRATCH_VARIABLE.into(), script::SCRATCH_FOLDER.into()));
        }
        let busybox = &self.tools.busybox;
        let mut before = Vec::new();
        if let Some(counting) = counting {
            Counting::prepare(folder.path()).map_err(GuestError::Start)?;
            before = counting.words();
        }
        let directory = self.directory.as_deref();
        let text = script::script(directory, &variables, &self.programs, &before, command, busybox);
        let start = folder.path().join(engine::SHARE).join(script::START);
        fs::write(start, text).map_err(GuestError::Start)?;
        let archive = self.archive().map_err(GuestError::Start)?;
        let archive = [&self.early[..], &archive].concat();
        fs::write(folder.path().join(engine::ARCHIVE), archive).map_err(GuestError::Start)?;
        Ok(folder)
    }

    /// The guest's first file system.
    fn archive(&self) -> io::Result<Vec<u8>> {
        let modules = Modules::find(&self.kernel.image)?;
        let needed = modules.as_ref().map_or(&[][..], |modules| &modules.needed);
        let mut archive = Archive::new();
        let mut add = |name: &str, content: &[u8]| archive.file(name, content).map_err(io::Error::other);
        add(init_script::BUSYBOX, &read(&self.tools.busybox)?)?;
        for (number, module) in needed.iter().enumerate() {
            add(&format!("{}/{number}.ko", init_script::MODULES), &modules::content(module)?)?;
        }
        let mut guest = init_script::Guest {
            modules: needed.len(),
            loads_modules: modules.is_some(),
            writable: WRITABLE.iter().filter_map(|folder| Path::new(folder).canonicalize().ok()).collect(),
            has_scratch: self.scratch.is_some(),
            all_modules: None,
        };
        if let Some(Modules { release, folder, .. }) = &modules {
            let of_host = Path::new(MODULES).canonicalize().ok();
            // Without it a folder is made, in the guest's memory.
            if of_host.is_none() {
                guest.writable.extend(Path::new(MODULES).parent().and_then(|lib| lib.canonicalize().ok()));
            }
            let place = of_host.unwrap_or_else(|| MODULES.into()).join(release.text());
            guest.all_modules = (place != *folder).then_some((folder.as_path(), place));
        }
        add(init_script::INIT, &init_script::init(&guest))?;
        Ok(archive.finish())
    }

    /// The command line of QEMU, to be started in the folder of a run.
    fn emulator(&self, counting: Option<&Counting>, append: &[&str]) -> Vec<OsString> {
        let mut devices = Vec::new();
        let mut add = |option, value| devices.push((option, value));
        let scratch = self.scratch.as_ref().map(|_| (init_script::SCRATCH_TAG, SCRATCH, ""));
        let folders =
            [(init_script::ROOT_TAG, "/", ",readonly=on"), (init_script::RUN_TAG, engine::SHARE, "")];
        for (tag, path, rights) in folders.into_iter().chain(scratch) {
            add("-fsdev", format!("local,id={tag},path={path},security_model=none,multidevs=remap{rights}"));
            add("-device", format!("virtio-9p-pci,fsdev={tag},mount_tag={tag}"));
        }
        add("-device", "virtio-serial-pci".to_owned());
        let ends = [engine::STDOUT, engine::STDERR];
        for (port, path) in init_script::PORTS.into_iter().zip(ends.iter().cycle()) {
            add("-chardev", format!("file,id={port},path={path}"));
            add("-device", format!("virtserialport,chardev={port},name={port}"));
        }
        if self.disk.is_some() {
            // Nothing of it outlives the guest, so nothing waits for the host's disk.
            add("-drive", format!("file={DISK},if=none,id={DISK},format=raw,cache=unsafe"));
            add("-device", format!("virtio-blk-pci,drive={DISK}"));
        }
        devices.extend(counting.map(Counting::option));
        let threads = match self.threads {
            Threads::PerCpu if crate::tools::qemu_version(&self.tools.qemu) >= Some((8, 0)) => "multi",
            _ => "single",
        };
        let emulator = Emulator {
            qemu: &self.tools.qemu,
            kernel: &self.kernel.image,
            machine: "q35",
            cpu: CPU,
            threads,
            words: WORDS,
            append,
            devices,
            layout: &self.layout,
            nodes: self.nodes,
            arch: Arch::X86,
            more: &self.qemu_arguments,
        };
        emulator.line()
    }
}

/// The words to add to a kernel's command line, checked.
///
/// # Errors
/// Words that would not reach the kernel as they are.
pub(crate) fn appended(texts: &[String]) -> Result<Vec<&str>, GuestError> {
    let words: Vec<&str> = texts.iter().flat_map(|words| words.split_ascii_whitespace()).collect();
    let length: usize = words.iter().map(|word| word.len() + 1).sum();
    let reason = if length > MOST_APPENDED {
        "more than 1024 bytes do not fit"
    } else if words.iter().any(|word| word.contains('"')) {
        "quotes cannot be passed"
    } else if words.contains(&"--") {
        "what follows \"--\" would go to the guest's init"
    } else {
        return Ok(words);
    };
    Err(GuestError::Append { words: words.join(" "), reason })
}

/// The exit status of a guest's command.
///
/// # Errors
/// What kept the guest from giving one.
pub(crate) fn judge(report: BootReport, timeout: Duration) -> Result<i32, GuestError> {
    if let End::Output(source) = report.end {
        return Err(GuestError::Output(source));
    }
    if let Some(status) = report.status {
        return Ok(status);
    }
    if let Some((reason, console)) = console::panic(&report.console) {
        return Err(GuestError::Panicked { reason, console });
    }
    let console = Tail::from_text(&report.console);
    Err(match report.end {
        End::TimedOut => GuestError::TimedOut { after: timeout, console },
        _ => GuestError::Ended { log: Tail::from_text(&report.log), console },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Limits;
    use nodewise_machine::spec;

    /// A guest whose QEMU runs a shell script in the folder of a run; `$HERE` is a folder that
    /// outlives it.
    fn guest(folder: &Path, script: &str) -> Guest {
        let image = folder.join("script");
        fs::write(&image, script).unwrap();
        let qemu = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/qemu");
        let layout = Layout::new(&spec::machine("(1c 1G)").unwrap(), &Limits::default()).unwrap();
        let path = std::env::var("PATH").unwrap();
        Guest::new(layout, Kernel { image, release: None }, Tools { qemu, busybox: "/bin/sh".into(), path })
    }

    fn run(script: &str) -> Result<Output, String> {
        let folder = tempfile::tempdir().unwrap();
        guest(folder.path(), script).run(&["true".into()]).map_err(|error| error.to_string())
    }

    #[test]
    fn the_commands_status_and_output_come_back() {
        let output = run("echo out >&3; echo err >&4; : > share/started; echo 9 > share/status").unwrap();
        assert_eq!(output, Output { status: 9, stdout: b"out\n".to_vec(), stderr: b"err\n".to_vec() });
    }

    #[test]
    fn a_boot_that_the_emulator_spoiled_is_repeated() {
        let fault = "echo \"qemu: x.c:1: f: Assertion \\`a' failed.\" >&2; exit 1";
        let twice = format!(
            "[ -e $HERE/b ] && {{ echo 0 > share/status; exit 0; }}\n\
             [ -e $HERE/a ] && : > $HERE/b\n: > $HERE/a\n{fault}"
        );
        assert_eq!(run(&twice).unwrap().status, 0);
        let always = run(&format!("echo x >> $HERE/count; {fault}")).unwrap_err();
        assert_eq!(
            always,
            "the guest ended without a result; QEMU says:\n    qemu: x.c:1: f: Assertion `a' failed."
        );
    }

    #[test]
    fn a_command_is_never_started_twice() {
        let folder = tempfile::tempdir().unwrap();
        let script = ": > share/started; echo x >> $HERE/count\n\
                      echo \"qemu: x.c:1: f: Assertion \\`a' failed.\" >&2; exit 1";
        guest(folder.path(), script).run(&["true".into()]).unwrap_err();
        assert_eq!(fs::read_to_string(folder.path().join("count")).unwrap(), "x\n");
    }

    #[test]
    fn failures_are_told_apart() {
        assert_eq!(
            run("echo 'Kernel panic - not syncing: why' > console").unwrap_err(),
            "the guest's kernel panicked: why; its console:\n    Kernel panic - not syncing: why"
        );
        assert_eq!(
            run("echo no such device >&2; echo booting > console").unwrap_err(),
            "the guest ended without a result; QEMU says:\n    no such device; the end of its console:\n    booting"
        );
        assert_eq!(run("exit 0").unwrap_err(), "the guest ended without a result");
        let folder = tempfile::tempdir().unwrap();
        let mut slow = guest(folder.path(), "exec sleep 1000");
        slow.timeout = Duration::from_millis(1);
        let error = slow.run(&["true".into()]).unwrap_err().to_string();
        assert_eq!(error, "the guest was stopped after 0.001 s");
    }

    #[test]
    fn what_cannot_be_passed_on_is_refused_before_anything_starts() {
        let folder = tempfile::tempdir().unwrap();
        let refuse = |change: &dyn Fn(&mut Guest), command: &[OsString], expected: &str| {
            let mut guest = guest(folder.path(), "echo started > $HERE/started");
            change(&mut guest);
            assert_eq!(guest.run(command).unwrap_err().to_string(), expected);
            assert!(!folder.path().join("started").exists());
        };
        let command = ["true".into()];
        refuse(&|_| {}, &[], "a guest needs a command to run");
        refuse(
            &|guest| guest.append = vec!["a=\"b c\"".into()],
            &command,
            "\"a=\"b c\"\" cannot be added to the kernel's command line: quotes cannot be passed",
        );
        refuse(
            &|guest| guest.append = vec!["a -- b".into()],
            &command,
            "\"a -- b\" cannot be added to the kernel's command line: what follows \"--\" would go to the \
             guest's init",
        );
        refuse(
            &|guest| guest.append = vec!["x".repeat(1024)],
            &command,
            &format!(
                "\"{}…\" cannot be added to the kernel's command line: more than 1024 bytes do not fit",
                "x".repeat(80)
            ),
        );
        refuse(
            &|guest| guest.scratch = Some("/no/such/folder".into()),
            &command,
            "the scratch folder \"/no/such/folder\" cannot be shared with the guest: no such file or directory",
        );
    }

    #[test]
    fn qemu_gets_the_kernel_the_folders_and_the_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let mut guest = guest(folder.path(), "");
        guest.kernel.image = "/kernels/vmlinuz".into();
        guest.scratch = Some(folder.path().to_owned());
        guest.qemu_arguments = vec!["-device".into(), "pxb-pcie".into()];
        let words = guest.emulator(None, &["numa=fake=4"]).into_iter().skip(1);
        let line = words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ");
        assert_eq!(
            line,
            "-kernel /kernels/vmlinuz -machine q35 -cpu max,la57=off,erms=off,fsrm=off -accel tcg,thread=single -display none -initrd \
             initramfs -append console=ttyS0 loglevel=7 panic=-1 no_timer_check mitigations=off numa=fake=4 \
             -chardev file,id=console,path=console -serial chardev:console \
             -fsdev local,id=root,path=/,security_model=none,multidevs=remap,readonly=on \
             -device virtio-9p-pci,fsdev=root,mount_tag=root \
             -fsdev local,id=run,path=share,security_model=none,multidevs=remap \
             -device virtio-9p-pci,fsdev=run,mount_tag=run \
             -fsdev local,id=scratch,path=scratch,security_model=none,multidevs=remap \
             -device virtio-9p-pci,fsdev=scratch,mount_tag=scratch -device virtio-serial-pci \
             -chardev file,id=stdout,path=/dev/fd/3 -device virtserialport,chardev=stdout,name=stdout \
             -chardev file,id=stderr,path=/dev/fd/4 -device virtserialport,chardev=stderr,name=stderr \
             -chardev file,id=dev_stdout,path=/dev/fd/3 -device virtserialport,chardev=dev_stdout,name=dev_stdout \
             -chardev file,id=dev_stderr,path=/dev/fd/4 -device virtserialport,chardev=dev_stderr,name=dev_stderr \
             -nodefaults -no-reboot -m size=1024M -smp cpus=1,sockets=1,cores=1,threads=1 -object \
             memory-backend-ram,id=node0,size=1024M -numa node,nodeid=0,cpus=0-0,memdev=node0 -numa \
             dist,src=0,dst=0,val=10 -device pxb-pcie"
        );
    }

    #[test]
    fn a_disk_is_an_empty_file_of_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let mut guest = guest(folder.path(), "stat -c '%s %b' disk >&3; echo 0 > share/status");
        guest.disk = Some(Bytes::from_gib(1));
        let words = guest.emulator(None, &[]).into_iter().map(|word| word.into_string().unwrap());
        let line = words.collect::<Vec<_>>().join(" ");
        assert!(
            line.contains(
                "-drive file=disk,if=none,id=disk,format=raw,cache=unsafe -device virtio-blk-pci,drive=disk"
            ),
            "{line}"
        );
        assert_eq!(guest.run(&["true".into()]).unwrap().stdout, b"1073741824 0\n");
    }

    #[test]
    fn a_firmware_without_nodes_has_memory_and_cpus_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut guest = guest(folder.path(), "");
        guest.nodes = FirmwareNodes::Missing;
        let words = guest.emulator(None, &[]).into_iter().map(|word| word.into_string().unwrap());
        let line = words.collect::<Vec<_>>().join(" ");
        assert!(line.ends_with("-no-reboot -m size=1024M -smp cpus=1,sockets=1,cores=1,threads=1"), "{line}");
    }

    #[test]
    fn a_guest_has_its_first_script_and_shell_behind_an_early_archive() {
        let folder = tempfile::tempdir().unwrap();
        let mut guest = guest(folder.path(), "cat initramfs >&3; echo 0 > share/status");
        guest.early = b"early".to_vec();
        let archive = guest.run(&["true".into()]).unwrap().stdout;
        assert!(archive.starts_with(b"early070701"));
        let has = |part: &[u8]| archive.windows(part.len()).any(|window| window == part);
        assert!(has(b"bin/busybox\0") && has(b"\x7fELF") && has(b"switch_root"));
    }
}
