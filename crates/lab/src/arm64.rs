//! Guests of arm64: a kernel, and static programs in a first file system of our own.
//!
//! The host has no programs that such a guest could run, so nothing of the host is seen inside. The guest
//! gets an [archive](crate::initramfs) that its kernel unpacks into memory: an init, which is this crate's
//! program `lab-init` built for arm64, files of the caller's, and the command; where [`Guest::has_tools`] says so also a busybox for
//! arm64, which `lab-init` gives the names of its programs, and modules, which it loads. Its streams and its exit
//! status leave through the ports of a serial card, each of which QEMU writes to where the
//! engine expects it: what comes back is the same as from a guest of x86-64.
//!
//! QEMU's machine `virt` is started without a firmware, so the kernel learns its nodes from a device
//! tree: `numa-node-id` of CPUs and memory, and `distance-map`.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nodewise_machine::KernelRelease;

use crate::arch::Arch;
use crate::cache::Cache;
use crate::engine;
use crate::guest::{GuestError, Output, appended, judge};
use crate::init_script::{BUSYBOX, MODULES};
use crate::initramfs::{Archive, read};
use crate::kernel::{Kernel, KernelChoice};
use crate::lab::{self, LabError};
use crate::layout::Layout;
use crate::modules;
use crate::qemu::{Emulator, FirmwareNodes};
use crate::script;
use crate::tools::{QEMU_ARM, SETSID, ToolsError, find_program, missing, search_path};

/// Where the kernel looks for its first program.
const INIT: &str = "/init";
/// File in the guest with the command: its words, each with a zero behind it.
pub const COMMAND: &str = "/etc/nodewise-command";
/// Folder in the guest for the caller's programs; the only one in `PATH`.
pub const PROGRAMS: &str = "/bin";
/// A static busybox for arm64, below the root of the kernel's installation.
pub const TOOLS: &str = "tools/busybox";
/// The modules that come with tools: swap and a file system in compressed memory.
const LOADED: [&str; 3] = ["zram", "crc32c_generic", "ext4"];
/// Devices in the guest that lead to the command's standard output and error, and to its exit status.
pub const PORTS: [&str; 3] = ["/dev/ttyS0", "/dev/ttyS1", "/dev/ttyS2"];

/// The CPU: one that all versions of QEMU's machine have, without what is slow to emulate (pointer
/// authentication).
const CPU: &str = "cortex-a57";
/// The kernel's command line: its console, its messages there, and that it ends when it panics.
const WORDS: &str = "console=ttyAMA0 loglevel=7 panic=-1";

/// Everything that a guest needs but its nodes and its programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lab {
    pub qemu: PathBuf,
    /// The kernel that its guests boot.
    pub kernel: Kernel,
}

impl Lab {
    /// Finds what guests need.
    ///
    /// # Errors
    /// Something is missing; the message names it and the command that fetches it.
    pub fn find(choice: &KernelChoice) -> Result<Self, LabError> {
        let cache = Cache::locate()?;
        let names = missing(&[QEMU_ARM, SETSID]);
        match find_program(QEMU_ARM.name) {
            Some(qemu) if names.is_empty() => {
                Ok(Self { qemu, kernel: Kernel::find(&cache, choice, Arch::Arm)? })
            }
            _ => Err(ToolsError::Missing { names }.into()),
        }
    }

    /// The lab for a test that needs it. `Err` is the one line to print when the test cannot run
    /// here.
    ///
    /// # Errors
    /// The lab is not set up, or `NODEWISE_LAB=skip` asks to leave it alone.
    ///
    /// # Panics
    /// The lab is not set up and `CI` is `true`: there a test that cannot run has failed.
    pub fn for_test(choice: &KernelChoice) -> Result<Self, String> {
        lab::for_test(|| Self::find(choice))
    }

    /// A guest with these nodes and this init, `lab-init` built for arm64 as a static program.
    pub fn guest(&self, layout: Layout, init: impl Into<PathBuf>) -> Guest {
        Guest {
            layout,
            lab: self.clone(),
            init: init.into(),
            programs: Vec::new(),
            has_tools: false,
            append: Vec::new(),
            qemu_arguments: Vec::new(),
            timeout: Duration::from_secs(600),
        }
    }
}

/// A guest that can be run.
#[derive(Clone, Debug)]
pub struct Guest {
    pub layout: Layout,
    lab: Lab,
    init: PathBuf,
    /// Static programs for arm64: the name in [`PROGRAMS`], and the file of the host.
    pub programs: Vec<(String, PathBuf)>,
    /// Puts busybox in it, and zram and ext4 in its kernel.
    pub has_tools: bool,
    /// Words to add to the kernel's command line.
    pub append: Vec<String>,
    /// Arguments to add to QEMU's.
    pub qemu_arguments: Vec<OsString>,
    /// How long a run may take, boot included.
    pub timeout: Duration,
}

impl Guest {
    /// Boots the guest, runs a command in it and collects what it writes. Its standard input is empty, and
    /// its only variable is `PATH`.
    ///
    /// # Errors
    /// The guest could not be started, or ended without the command's exit status.
    pub fn run(&self, command: &[OsString]) -> Result<Output, GuestError> {
        if command.is_empty() {
            return Err(GuestError::NoCommand);
        }
        let append = appended(&self.append)?;
        let folder = self.prepare(command).map_err(GuestError::Start)?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let emulator = self.emulator(&append);
        let report = engine::run(
            folder.path(),
            &emulator,
            &search_path(),
            (self.timeout, None),
            (&mut stdout, &mut stderr),
            &mut |_| {},
        )
        .map_err(GuestError::Start)?;
        Ok(Output { status: judge(report, self.timeout)?, stdout, stderr })
    }

    /// Makes the folder of a run, with the guest's first file system.
    fn prepare(&self, command: &[OsString]) -> io::Result<tempfile::TempDir> {
        let folder = engine::folder()?;
        fs::write(folder.path().join(engine::ARCHIVE), self.archive(command)?)?;
        Ok(folder)
    }

    fn archive(&self, command: &[OsString]) -> io::Result<Vec<u8>> {
        let mut archive = Archive::new();
        let mut add = |name: &str, content: &[u8]| archive.file(name, content).map_err(io::Error::other);
        add(INIT, &read(&self.init)?)?;
        for (name, path) in &self.programs {
            add(&format!("{PROGRAMS}/{name}"), &read(path)?)?;
        }
        if self.has_tools {
            let boot = self.lab.kernel.image.parent().and_then(Path::parent);
            let root = boot.unwrap_or(Path::new("/"));
            add(BUSYBOX, &read(&root.join(TOOLS))?)?;
            let release = self.lab.kernel.release.as_ref().map_or("", KernelRelease::text);
            for (number, module) in modules::of_release(root, release, &LOADED)?.iter().enumerate() {
                add(&format!("{MODULES}/{number}.ko"), &modules::content(module)?)?;
            }
        }
        let words: Vec<u8> =
            command.iter().flat_map(|word| word.as_encoded_bytes().iter().copied().chain([0])).collect();
        add(COMMAND, &words)?;
        Ok(archive.finish())
    }

    /// The command line of QEMU, to be started in the folder of a run.
    fn emulator(&self, append: &[&str]) -> Vec<OsString> {
        let mut devices = Vec::new();
        let status = format!("{}/{}", engine::SHARE, script::STATUS);
        let ends = [("stdout", engine::STDOUT), ("stderr", engine::STDERR), ("status", &status)];
        for (name, path) in ends {
            devices.push(("-chardev", format!("file,id={name},path={path}")));
        }
        devices.push(("-device", "pci-serial-4x,chardev1=stdout,chardev2=stderr,chardev3=status".to_owned()));
        let emulator = Emulator {
            qemu: &self.lab.qemu,
            kernel: &self.lab.kernel.image,
            machine: "virt,gic-version=3",
            cpu: CPU,
            // One thread for all CPUs, as in the guests of x86-64.
            accelerator: "tcg,thread=single",
            words: WORDS,
            append,
            devices,
            layout: &self.layout,
            nodes: FirmwareNodes::Described,
            arch: Arch::Arm,
            more: &self.qemu_arguments,
        };
        emulator.line()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Limits;
    use nodewise_machine::spec;

    /// A guest whose QEMU runs a shell script in the folder of a run.
    fn guest(folder: &Path, script: &str) -> Guest {
        let (image, init) = (folder.join("script"), folder.join("init"));
        fs::write(&image, script).unwrap();
        fs::write(&init, "the init").unwrap();
        let layout = Layout::new(&spec::machine("(1c 1G)").unwrap(), &Limits::default()).unwrap();
        let qemu = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/qemu");
        Lab { qemu, kernel: Kernel { image, release: None } }.guest(layout, init)
    }

    #[test]
    fn status_and_output_come_back_from_the_ports() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo out >&3; echo err >&4; echo 9 > share/status";
        let output = guest(folder.path(), script).run(&["true".into()]).unwrap();
        assert_eq!(output, Output { status: 9, stdout: b"out\n".to_vec(), stderr: b"err\n".to_vec() });
    }

    #[test]
    fn an_init_that_fails_is_heard_on_the_console() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo 'lab-init: /dev/ttyS0: no such device' > console; : > share/status";
        let error = guest(folder.path(), script).run(&["true".into()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the guest ended without a result; the end of its console:\n    lab-init: /dev/ttyS0: no such device"
        );
    }

    #[test]
    fn the_guest_gets_its_init_its_programs_and_the_words_of_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let mut guest = guest(folder.path(), "cat initramfs >&3; echo 0 > share/status");
        guest.programs = vec![("tool".to_owned(), folder.path().join("init"))];
        let archive = guest.run(&["/bin/tool".into(), "two words".into(), "".into()]).unwrap().stdout;
        let text = String::from_utf8(archive).unwrap();
        for part in ["init\0", "the init", "bin/tool\0", "/bin/tool\0two words\0\0"] {
            assert!(text.contains(part), "{part:?} is missing");
        }
    }

    #[test]
    fn a_guest_with_tools_gets_busybox_and_modules_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let release = "6.12.1-arm64";
        let modules = folder.path().join("lib/modules").join(release);
        fs::create_dir_all(&modules).unwrap();
        fs::create_dir_all(folder.path().join("boot")).unwrap();
        let mut guest = guest(folder.path(), "");
        guest.lab.kernel =
            Kernel { image: folder.path().join("boot/vmlinuz"), release: KernelRelease::new(release) };
        fs::write(&guest.lab.kernel.image, "cat initramfs >&3; echo 0 > share/status").unwrap();
        let failed = |guest: &Guest| guest.run(&["true".into()]).unwrap_err().to_string();
        guest.has_tools = true;
        assert!(failed(&guest).ends_with("tools/busybox: no such file or directory"), "{}", failed(&guest));
        fs::create_dir_all(folder.path().join("tools")).unwrap();
        fs::write(folder.path().join(TOOLS), "the busybox").unwrap();
        assert!(failed(&guest).ends_with("modules.dep: no such file or directory"), "{}", failed(&guest));
        fs::write(modules.join("modules.dep"), "zram.ko: lz4.ko\nlz4.ko:\n").unwrap();
        fs::write(modules.join("zram.ko"), "the second").unwrap();
        fs::write(modules.join("lz4.ko"), "the first").unwrap();
        let archive = String::from_utf8(guest.run(&["true".into()]).unwrap().stdout).unwrap();
        let parts =
            ["bin/busybox\0", "the busybox", "modules/0.ko\0", "the first", "modules/1.ko\0", "the second"];
        let places = parts.map(|part| archive.find(part).unwrap_or_else(|| panic!("{part:?} is missing")));
        assert!(places.is_sorted(), "{places:?}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut guest = guest(folder.path(), "echo 0 > share/status");
        assert_eq!(guest.run(&[]).unwrap_err().to_string(), "a guest needs a command to run");
        guest.programs = vec![("tool".to_owned(), "/no/such/tool".into())];
        assert_eq!(
            guest.run(&["true".into()]).unwrap_err().to_string(),
            "cannot start a guest: /no/such/tool: no such file or directory"
        );
    }

    #[test]
    fn qemu_gets_the_kernel_the_ports_and_the_nodes() {
        let folder = tempfile::tempdir().unwrap();
        let mut guest = guest(folder.path(), "");
        guest.lab.kernel.image = "/kernels/vmlinuz".into();
        guest.qemu_arguments = vec!["-device".into(), "pxb-pcie".into()];
        let words = guest.emulator(&["nohlt"]).into_iter().skip(1).map(|word| word.into_string().unwrap());
        assert_eq!(
            words.collect::<Vec<_>>().join(" "),
            "-kernel /kernels/vmlinuz -machine virt,gic-version=3 -cpu cortex-a57 -accel tcg,thread=single \
             -display none -initrd initramfs -append console=ttyAMA0 loglevel=7 panic=-1 nohlt -chardev \
             file,id=console,path=console -serial chardev:console -chardev file,id=stdout,path=/dev/fd/3 \
             -chardev file,id=stderr,path=/dev/fd/4 -chardev file,id=status,path=share/status -device \
             pci-serial-4x,chardev1=stdout,chardev2=stderr,chardev3=status -nodefaults -no-reboot -m size=1024M \
             -smp cpus=1,sockets=1,cores=1,threads=1 -object memory-backend-ram,id=node0,size=1024M -numa \
             node,nodeid=0,cpus=0-0,memdev=node0 -numa dist,src=0,dst=0,val=10 -device pxb-pcie"
        );
    }
}
