//! The first program of a guest of x86-64: a script for busybox that puts the host's files under the guest and starts the
//! [command](crate::script). Pure text.
//!
//! It runs from the first file system, in memory, where nothing but busybox, this script and modules are. No daemon is
//! started: under an emulator a udev alone takes three times as long as the kernel does to boot. What udev would do is done
//! here once, without it: modules are loaded for the devices that are there. Devices appear in `/dev` by themselves
//! (devtmpfs).

use std::path::{Path, PathBuf};

use crate::script;

/// Where the kernel looks for the script.
pub const INIT: &str = "/init";
/// Where the script finds its shell, whose other names are the commands.
pub const BUSYBOX: &str = "/bin/busybox";
/// Folder of the first file system with the modules to load, each named by its place in the order.
pub const MODULES: &str = "/modules";

/// Tags of the host's folders: all of its files, the folder of the run, the scratch folder.
pub const ROOT_TAG: &str = "root";
pub const RUN_TAG: &str = "run";
pub const SCRATCH_TAG: &str = "scratch";
/// Ports for the command's output. A port can be open once at a time, so what opens `/dev/stdout` gets another one.
pub const PORTS: [&str; 4] = ["stdout", "stderr", "dev_stdout", "dev_stderr"];

/// Options of the host's folders: the protocol, and bytes of one message.
const FOLDER: &str = "trans=virtio,version=9p2000.L,msize=512000";
/// Where the script puts the file system that the guest will have; the texts below name it, too.
const NEW_ROOT: &str = "/r";

/// File systems of the kernel's without which nothing runs: type, options, place.
const NEEDED: [(&str, &str, &str); 4] = [
    ("proc", "nosuid,nodev,noexec", "proc"),
    ("sysfs", "nosuid,nodev,noexec", "sys"),
    ("tmpfs", "mode=755", "run"),
    ("devtmpfs", "nosuid,noexec", "dev"),
];
/// Those that a kernel can be built without.
const FURTHER: [(&str, &str, &str); 6] = [
    ("devpts", "nosuid,noexec,mode=600", "dev/pts"),
    ("tmpfs", "nosuid,nodev", "dev/shm"),
    ("cgroup2", "nosuid,nodev,noexec", "sys/fs/cgroup"),
    ("debugfs", "nosuid,nodev,noexec", "sys/kernel/debug"),
    ("tracefs", "nosuid,nodev,noexec", "sys/kernel/tracing"),
    ("securityfs", "nosuid,nodev,noexec", "sys/kernel/security"),
];

/// The start of the script: what a failed step does.
const START: &str = r#"export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
b=/bin/busybox
stop() { echo "nodewise: the guest cannot start: $1"; $b poweroff -f; }
must() { $b "$@" || stop "$* failed"; }
"#;
/// The host's name, which the host's /etc/hosts knows: mpirun refuses a machine without a name, or with one that has no
/// address.
const NAME: &str = "$b hostname -F /r/etc/hostname 2> /dev/null || $b hostname localhost\n";
/// Loads the modules of the devices that are there. Those of CPUs are left out: they encrypt, or save power, and no guest
/// uses them.
const LOAD: &str = "$b chroot /r modprobe -a -b -q -- \
$($b cat /r/sys/bus/*/devices/*/modalias 2> /dev/null | $b grep -v ^cpu: | $b sort -u) 2> /dev/null\n";
/// Finds the ports, whose names come a moment after their devices, and gives the place of this script to the shell of the
/// command.
const END: &str = r#"tries=0
until [ -n "$stdout" ] && [ -n "$stderr" ]; do
    [ $tries -lt 100 ] || stop "the ports for its output do not appear"
    [ $tries -eq 0 ] || $b sleep 0.1
    tries=$((tries + 1))
    for port in /r/sys/class/virtio-ports/*; do
        device=/dev/${port##*/}
        read -r name < $port/name || continue
        case $name in
            stdout) stdout=/r$device ;;
            stderr) stderr=/r$device ;;
            dev_*) $b ln -sf $device /r/dev/${name#dev_} ;;
        esac
    done
done 2> /dev/null
"#;

/// The parts of a guest beside the host's files. Paths are the host's, without links in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guest<'a> {
    /// How many modules are in [`MODULES`].
    pub modules: usize,
    /// The folder with all modules of its kernel, and the place where it is to be seen; `None` where it is seen there
    /// anyway, or is not.
    pub all_modules: Option<(&'a Path, PathBuf)>,
    /// Whether the guest can load further modules.
    pub loads_modules: bool,
    /// Folders in which it can write: an overlay in its memory takes what is written.
    pub writable: Vec<PathBuf>,
    /// Folders that the emulator cannot read, such as `/root` for an ordinary user: they are empty in the guest, and it can write
    /// in them.
    pub unreadable: Vec<PathBuf>,
    pub has_scratch: bool,
}

/// Writes the script.
pub fn init(guest: &Guest<'_>) -> Vec<u8> {
    let mut script = Script(format!("#!{BUSYBOX} sh\n{START}").into_bytes());
    for module in 0..guest.modules {
        script.step(&["insmod", &format!("{MODULES}/{module}.ko")]);
    }
    script.step(&["mkdir", NEW_ROOT]);
    // The host's files are taken for unchanging: what was read once is not asked for again. Otherwise each program
    // that starts fetches its pages again.
    script.step(&["mount", "-t", "9p", "-o", &format!("ro,{FOLDER},cache=loose"), ROOT_TAG, NEW_ROOT]);
    for (kind, options, place) in NEEDED {
        script.step(&["mount", "-t", kind, "-o", options, kind, &format!("{NEW_ROOT}/{place}")]);
    }
    script.step(&["mkdir", &format!("{NEW_ROOT}/dev/pts"), &format!("{NEW_ROOT}/dev/shm")]);
    for (kind, options, place) in FURTHER {
        script.attempt(&["mount", "-t", kind, "-o", options, kind, &format!("{NEW_ROOT}/{place}")]);
    }
    script.folder(RUN_TAG, script::RUN_FOLDER);
    if guest.has_scratch {
        script.folder(SCRATCH_TAG, script::SCRATCH_FOLDER);
    }
    for (number, folder) in guest.writable.iter().enumerate() {
        script.overlay(number, folder);
    }
    for folder in &guest.unreadable {
        script.step(&["mount", "-t", "tmpfs", "-o", "mode=700", "unreadable", &inside(folder)]);
    }
    if let Some((folder, place)) = &guest.all_modules {
        script.modules(folder, place);
    }
    script.text("must ln -sf /proc/self/fd /r/dev/fd\nmust ln -sf fd/0 /r/dev/stdin\n");
    script.attempt(&["ip", "link", "set", "lo", "up"]);
    script.text(NAME);
    if guest.loads_modules {
        script.text(LOAD);
    }
    script.text(END);
    script.text(&format!(
        "exec $b switch_root {NEW_ROOT} /bin/sh {}/{} < {NEW_ROOT}/dev/null > $stdout 2> $stderr\n",
        script::RUN_FOLDER,
        script::START
    ));
    script.0
}

/// A script that grows by lines.
struct Script(Vec<u8>);

impl Script {
    fn text(&mut self, text: &str) {
        self.0.extend(text.bytes());
    }

    /// A command of busybox without which a guest cannot go on.
    fn step(&mut self, words: &[&str]) {
        self.words("must", words);
        self.text("\n");
    }

    /// A command of busybox that may fail.
    fn attempt(&mut self, words: &[&str]) {
        self.words("$b", words);
        self.text(" 2> /dev/null\n");
    }

    fn words(&mut self, first: &str, words: &[&str]) {
        self.text(first);
        for word in words {
            self.0.push(b' ');
            self.0.extend(script::quote(word.as_ref()));
        }
    }

    /// A folder of the host's in which the guest writes: nothing of it is kept in the guest's memory.
    fn folder(&mut self, tag: &str, place: &str) {
        let place = format!("{NEW_ROOT}{place}");
        self.step(&["mkdir", "-p", &place]);
        self.step(&["mount", "-t", "9p", "-o", FOLDER, tag, &place]);
    }

    fn overlay(&mut self, number: usize, folder: &Path) {
        let place = inside(folder);
        let layers = format!("{NEW_ROOT}/run/nodewise/overlay/{number}");
        let (upper, work) = (format!("{layers}/upper"), format!("{layers}/work"));
        self.step(&["mkdir", "-p", &upper, &work]);
        let options = format!("lowerdir={place},upperdir={upper},workdir={work}");
        self.step(&["mount", "-t", "overlay", "-o", &options, "overlay", &place]);
    }

    fn modules(&mut self, folder: &Path, place: &Path) {
        let parent = inside(place.parent().unwrap_or(place));
        self.step(&["mkdir", "-p", &parent]);
        self.step(&["mount", "-t", "tmpfs", "-o", "mode=755", "modules", &parent]);
        self.step(&["ln", "-s", &folder.to_string_lossy(), &inside(place)]);
    }
}

/// Where a path of the host is while the script runs.
fn inside(path: &Path) -> String {
    format!("{NEW_ROOT}{}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn script(guest: &Guest<'_>) -> String {
        String::from_utf8(init(guest)).unwrap()
    }

    #[test]
    fn a_guest_gets_its_modules_and_folders() {
        let folder = Path::new("/cache/a kernel/6.12");
        let guest = Guest {
            modules: 2,
            all_modules: Some((folder, "/usr/lib/modules/6.12".into())),
            loads_modules: true,
            writable: vec!["/etc".into(), "/data/home".into()],
            unreadable: vec!["/root".into()],
            has_scratch: true,
        };
        let text = script(&guest);
        for line in [
            "must insmod /modules/0.ko\nmust insmod /modules/1.ko\nmust mkdir /r\n",
            "must mount -t 9p -o 'ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose' root /r\n",
            "must mount -t 9p -o 'trans=virtio,version=9p2000.L,msize=512000' scratch /r/run/nodewise/scratch\n",
            "must mount -t overlay -o 'lowerdir=/r/data/home,upperdir=/r/run/nodewise/overlay/1/upper,\
             workdir=/r/run/nodewise/overlay/1/work' overlay /r/data/home\n",
            "must mount -t tmpfs -o 'mode=700' unreadable /r/root\n",
            "must ln -s '/cache/a kernel/6.12' /r/usr/lib/modules/6.12\n",
            "modprobe -a -b",
            "$b hostname -F /r/etc/hostname",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(text.ends_with(
            "exec $b switch_root /r /bin/sh /run/nodewise/lab/start < /r/dev/null > $stdout 2> $stderr\n"
        ));
    }

    #[test]
    fn a_guest_without_modules_loads_none() {
        let text = script(&Guest::default());
        assert!(
            !text.contains("insmod") && !text.contains("modprobe") && !text.contains("scratch"),
            "{text}"
        );
    }

    #[test]
    fn a_shell_reads_it() {
        let guest =
            Guest { modules: 1, writable: vec!["/it's".into()], loads_modules: true, ..Guest::default() };
        let shell = Command::new("sh").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut shell = shell.unwrap();
        std::io::Write::write_all(&mut shell.stdin.take().unwrap(), &init(&guest)).unwrap();
        let output = shell.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
