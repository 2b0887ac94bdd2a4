//! A guest: a layout with a kernel, and a command to run in it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nodewise_machine::Bytes;
use nodewise_machine::printable::{io_words, quote};

use crate::accelerator::{self, Engine, EngineChoice, EngineTaken, Engines};
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
/// The CPU with TCG: all that QEMU can emulate but a fifth level of page tables, which makes each way through them longer, and
/// fast string operations: a kernel that sees these fills and copies pages byte by byte, which an emulator does at a third of
/// the speed of words.
const CPU: &str = "max,la57=off,erms=off,fsrm=off";
/// The CPU with KVM: that of the host.
const HOST_CPU: &str = "host";
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

/// How TCG runs the CPUs of a guest. With KVM each of them has a thread of the host.
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
    /// Engine that runs them; TCG unless another choice is made.
    pub engines: Engines,
}

/// A message about a guest that starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootEvent<'a> {
    /// How far it is, several times a second until its command runs.
    Stage(Stage),
    /// The engine that runs it: TCG before it starts, KVM once it has been seen to work.
    Engine(&'a EngineTaken),
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
    /// KVM was demanded, or it ran the command and failed.
    #[error("KVM cannot run this guest: {reason} (--engine=tcg needs no KVM)")]
    Kvm { reason: String },
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
            engines: Engines::default(),
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

    /// As [`Guest::stream`]; `watch` hears which engine the guest has, and several times a second how far it is, until its command
    /// runs.
    ///
    /// # Errors
    /// As there.
    pub fn stream_watched(
        &self,
        command: &[OsString],
        stdout: &mut (dyn Write + Send),
        stderr: &mut (dyn Write + Send),
        watch: &mut dyn FnMut(BootEvent<'_>),
    ) -> Result<i32, GuestError> {
        judge(self.boot(None, command, (stdout, stderr), watch)?, self.timeout)
    }

    /// Boots the guest until it ends; again where the emulator failed before the command started, and with TCG where KVM did.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn boot(
        &self,
        counting: Option<&Counting>,
        command: &[OsString],
        (stdout, stderr): (&mut (dyn Write + Send), &mut (dyn Write + Send)),
        watch: &mut dyn FnMut(BootEvent<'_>),
    ) -> Result<BootReport, GuestError> {
        if command.is_empty() {
            return Err(GuestError::NoCommand);
        }
        let append = appended(&self.append)?;
        let mut taken = self.first_engine(counting)?;
        let mut is_known = false;
        let mut attempt = 1;
        loop {
            if taken.engine == Engine::Tcg && !is_known {
                watch(BootEvent::Engine(&taken));
                is_known = true;
            }
            let folder = self.prepare(counting, command)?;
            let emulator = self.emulator(taken.engine, counting, &append);
            let path = &self.tools.path;
            let streams: (&mut (dyn Write + Send), &mut (dyn Write + Send)) = (&mut *stdout, &mut *stderr);
            let guard = (taken.engine == Engine::Kvm).then(|| self.engines.guard());
            let mut watch_run = |stage| {
                if stage == Stage::Command && !is_known {
                    watch(BootEvent::Engine(&taken));
                    is_known = true;
                }
                watch(BootEvent::Stage(stage));
            };
            let limits = (self.timeout, guard);
            let report = engine::run(folder.path(), &emulator, path, limits, streams, &mut watch_run)
                .map_err(GuestError::Start)?;
            if report.started && !is_known {
                watch(BootEvent::Engine(&taken));
            }
            if taken.engine == Engine::Kvm && !report.started {
                if let Some(reason) = kvm_failure(&report) {
                    if self.engines.choice == EngineChoice::Kvm {
                        return Err(GuestError::Kvm { reason });
                    }
                    taken = self.engines.after_failure(reason);
                    continue;
                }
            }
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

    /// The engine to begin with.
    ///
    /// # Errors
    /// KVM is demanded and cannot be had.
    fn first_engine(&self, counting: Option<&Counting>) -> Result<EngineTaken, GuestError> {
        let follows = self.qemu_arguments.iter().any(|word| word == "-icount");
        let demand = match counting {
            Some(_) => Some("cache lines are counted by TCG alone"),
            None => follows.then_some("time that follows instructions (-icount) needs TCG"),
        };
        self.engines.first(Arch::X86, demand).map_err(|reason| GuestError::Kvm { reason })
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
        let folders = WRITABLE.iter().filter_map(|folder| Path::new(folder).canonicalize().ok());
        // The emulator reads as the caller: no overlay can be laid over a folder that it may not read.
        let (writable, unreadable) = folders.partition(|folder| folder.read_dir().is_ok());
        let mut guest = init_script::Guest {
            modules: needed.len(),
            loads_modules: modules.is_some(),
            writable,
            unreadable,
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
    fn emulator(&self, engine: Engine, counting: Option<&Counting>, append: &[&str]) -> Vec<OsString> {
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
        let (accelerator, cpu) = match (engine, self.threads) {
            (Engine::Kvm, _) => ("kvm", HOST_CPU),
            (_, Threads::PerCpu) if crate::tools::qemu_version(&self.tools.qemu) >= Some((8, 0)) => {
                ("tcg,thread=multi", CPU)
            }
            _ => ("tcg,thread=single", CPU),
        };
        let emulator = Emulator {
            qemu: &self.tools.qemu,
            kernel: &self.kernel.image,
            machine: "q35",
            cpu,
            accelerator,
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

/// Why KVM did not bring a guest to its command; `None` where the reason is another one.
fn kvm_failure(report: &BootReport) -> Option<String> {
    match &report.end {
        End::Kvm(why) => Some(why.clone()),
        // TCG would take even longer, and would not pass the output on either.
        End::TimedOut | End::Output(_) => None,
        End::Ended => {
            let panic =
                console::panic(&report.console).map(|(why, _)| format!("the guest's kernel panicked: {why}"));
            let reason = panic.or_else(|| accelerator::reason(&report.log));
            Some(reason.unwrap_or_else(|| "QEMU ended before the guest's init reported".to_owned()))
        }
    }
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
    if let End::Kvm(reason) = report.end {
        return Err(GuestError::Kvm { reason });
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
mod tests;
