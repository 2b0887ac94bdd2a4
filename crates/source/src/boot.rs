//! How the running kernel was started, and what it wrote while it did.
//!
//! Each function reads one kind of file and answers `None` where this machine does not have it.

use std::io::Read as _;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, read};

use crate::parse::boot_log::{self, BootLog};
use crate::parse::choice::{self, Choice};
use crate::parse::kernel_config::{self, KernelConfig};
use crate::parse::memory_map;
use crate::paths;
use crate::tree::{MOST_FILE_BYTES, ReadCause, ReadError, Tree};

const KERNEL_LOG: &str = "/dev/kmsg";
/// Where Debian's boot messages lie, and those of a capture.
pub(crate) const KEPT_LOG: &str = "/var/log/dmesg";
/// The map of the firmware, a folder per range.
const FIRMWARE_MAP: &str = "/sys/firmware/memmap";
/// The device tree's `/chosen`, where the firmware leaves its words.
const CHOSEN: &str = "/sys/firmware/devicetree/base/chosen";
/// The folder in which administrators set parameters at start, and the file of old.
const SYSCTL: (&str, &str) = ("/etc/sysctl.d", "/etc/sysctl.conf");
/// The longest id of a boot; the kernel's has 36 letters.
const MOST_ID_BYTES: usize = 64;
/// Longer than any record of the kernel log.
const RECORD: usize = 16 << 10;

/// The boot that the system is in, a random number that no other start has; `None` where the kernel does not say.
///
/// # Source
/// `/proc/sys/kernel/random/boot_id`.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn id(tree: &Tree) -> Result<Option<String>, ReadError> {
    Ok(tree.read_text(paths::BOOT_ID)?.map(|text| text.trim().to_owned()))
}

/// The first eight digits of a boot's id.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn mark(tree: &Tree) -> Result<Option<String>, ReadError> {
    let digits = |id: String| id.chars().take_while(char::is_ascii_hexdigit).take(8).collect::<String>();
    Ok(id(tree)?.map(digits).filter(|mark| mark.len() == 8))
}

/// Whether a word in a file of ours can be the id of a boot.
pub(crate) fn is_id(word: &str) -> bool {
    (1..=MOST_ID_BYTES).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The options of the running kernel.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn kernel_config(tree: &Tree, release: &str) -> Result<Option<KernelConfig>, ReadError> {
    if let Some(packed) = tree.read("/proc/config.gz")? {
        let mut text = String::new();
        let unpacked = flate2::read::GzDecoder::new(&packed[..]).take(MOST_FILE_BYTES);
        if { unpacked }.read_to_string(&mut text).is_ok() {
            return Ok(Some(kernel_config::parse(&text)));
        }
    }
    // The name comes from the kernel, or from a capture.
    if release.contains('/') {
        return Ok(None);
    }
    Ok(tree.read_text(&format!("/boot/config-{release}"))?.map(|text| kernel_config::parse(&text)))
}

/// Reads the log that the kernel wrote while it started.
///
/// # Errors
/// A log that this user may not read.
pub fn log(tree: &Tree) -> Result<Option<BootLog>, ReadError> {
    let text = if tree.is_live() { live_log() } else { tree.read_text(KERNEL_LOG) };
    match text {
        Ok(Some(text)) => Ok(Some(boot_log::parse(&text))),
        other => match tree.read_text(KEPT_LOG) {
            Ok(Some(text)) => Ok(Some(boot_log::parse(&text))),
            _ => other.map(|_| None),
        },
    }
}

/// The log of the running kernel: a read gives a record, and none is waited for.
fn live_log() -> Result<Option<String>, ReadError> {
    let error = |errno: Errno| ReadError::new(KERNEL_LOG, ReadCause::from(errno));
    let file =
        match openat(CWD, KERNEL_LOG, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NXIO) => return Ok(None),
            Err(errno) => return Err(error(errno)),
        };
    let (mut text, mut record) = (Vec::new(), vec![0; RECORD]);
    while (text.len() as u64) < MOST_FILE_BYTES {
        match read(&file, &mut record[..]) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(count) => text.extend_from_slice(&record[..count]),
            // A record that was overwritten while we read: the next is there.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(errno) => return Err(error(errno)),
        }
    }
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

/// Where RAM was when the kernel started, each range with the first byte behind it: the firmware's own map,
/// and where there is none (arm64) what the kernel shows of its addresses, to root only.
///
/// # Source
/// `/sys/firmware/memmap/N/{start,end,type}` (x86, Linux 2.6.27), `/proc/iomem`.
///
/// # Errors
/// A file that is there and cannot be read.
pub fn ram(tree: &Tree) -> Result<Option<Vec<(u64, u64)>>, ReadError> {
    let mut ranges = Vec::new();
    for name in tree.list(FIRMWARE_MAP)?.unwrap_or_default() {
        let field = |field: &str| tree.read_text(&format!("{FIRMWARE_MAP}/{name}/{field}"));
        let (Some(start), Some(last), Some(kind)) = (field("start")?, field("end")?, field("type")?) else {
            continue;
        };
        let digits = |text: &str| text.trim().strip_prefix("0x").map(str::to_owned);
        let range = digits(&start).zip(digits(&last));
        let range = range.and_then(|(start, last)| memory_map::range_of(&start, &last));
        ranges.extend(range.filter(|_| kind.trim() == memory_map::RAM));
    }
    ranges.sort_unstable();
    if !ranges.is_empty() {
        return Ok(Some(ranges));
    }
    Ok(tree.read_text("/proc/iomem")?.and_then(|text| memory_map::parse(&text).ok()))
}

/// The command line that the firmware's device tree asks for, before the boot loader adds to it.
///
/// # Errors
/// A file that cannot be read.
pub fn firmware_arguments(tree: &Tree) -> Result<Option<String>, ReadError> {
    device_tree_text(tree, &format!("{CHOSEN}/bootargs"))
}

/// The model of a board: `Raspberry Pi 5 Model B Rev 1.0`.
///
/// # Errors
/// A file that cannot be read.
pub fn board(tree: &Tree) -> Result<Option<String>, ReadError> {
    device_tree_text(tree, "/sys/firmware/devicetree/base/model")
}

/// When the boot loader in a Raspberry Pi's EEPROM was built, since the beginning of 1970.
///
/// # Source
/// `bootloader/build-timestamp` in the device tree's `/chosen`, a number of four bytes.
///
/// # Errors
/// A file that cannot be read.
pub fn boot_loader_built(tree: &Tree) -> Result<Option<Duration>, ReadError> {
    let bytes = tree.read(&format!("{CHOSEN}/bootloader/build-timestamp"))?;
    let seconds = bytes.and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).map(u32::from_be_bytes);
    Ok(seconds.map(|seconds| Duration::from_secs(seconds.into())))
}

/// How the machine can sleep: `s2idle [deep]`. `None` also where the file is not as it should be.
///
/// # Errors
/// A file that cannot be read.
pub fn sleep(tree: &Tree) -> Result<Option<Choice>, ReadError> {
    Ok(tree.read_text("/sys/power/mem_sleep")?.and_then(|text| choice::parse(&text).ok()))
}

/// Files that set a kernel parameter of the command line as if it could be set at run time, each with
/// the line.
///
/// # Errors
/// A file that cannot be read.
pub fn vain_settings(tree: &Tree, name: &str) -> Result<Vec<(String, u32)>, ReadError> {
    let (folder, file) = SYSCTL;
    let names = tree.list(folder)?.unwrap_or_default();
    let snippets = names.iter().filter(|name| name.ends_with(".conf"));
    let paths = snippets.map(|name| format!("{folder}/{name}")).chain([file.to_owned()]);
    let mut found = Vec::new();
    for path in paths {
        let text = tree.read_text(&path)?.unwrap_or_default();
        for (number, line) in (1..).zip(text.lines()) {
            let key = line.split('=').next().unwrap_or_default().trim().trim_start_matches('-');
            // Both separators are usual: kernel.x and kernel/x.
            if line.contains('=') && key.rsplit(['.', '/']).next() == Some(name) {
                found.push((path.clone(), number));
            }
        }
    }
    Ok(found)
}

/// Texts of a device tree end with a zero byte.
fn device_tree_text(tree: &Tree, path: &str) -> Result<Option<String>, ReadError> {
    Ok(tree.read_text(path)?.map(|text| text.trim_end_matches(['\0', '\n']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    fn tree(files: &[(&str, &str)]) -> Tree {
        Tree::memory(files.iter().fold(Memory::new(), |tree, (path, text)| tree.file(path, text)))
    }

    #[test]
    fn a_raspberry_pi_says_what_its_firmware_asked_for() {
        let pi = tree(&[
            ("/sys/firmware/devicetree/base/model", "Raspberry Pi 5 Model B Rev 1.0\0"),
            (
                "/sys/firmware/devicetree/base/chosen/bootargs",
                "reboot=w numa_policy=interleave numa=fake=8\0",
            ),
            ("/sys/firmware/devicetree/base/chosen/bootloader/build-timestamp", "gH\x3e\x60"),
            ("/sys/power/mem_sleep", "[s2idle]\n"),
        ]);
        assert_eq!(board(&pi).unwrap().as_deref(), Some("Raspberry Pi 5 Model B Rev 1.0"));
        assert!(firmware_arguments(&pi).unwrap().unwrap().ends_with("numa=fake=8"));
        assert_eq!(boot_loader_built(&pi).unwrap(), Some(Duration::from_secs(0x6748_3e60)));
        assert_eq!(sleep(&pi).unwrap().unwrap().chosen, "s2idle");
    }

    #[test]
    fn ram_is_where_the_firmware_says_or_else_the_kernel() {
        let map = [
            ("/sys/firmware/memmap/0/start", "0x100000\n"),
            ("/sys/firmware/memmap/0/end", "0xbfffffff\n"),
            ("/sys/firmware/memmap/0/type", "System RAM\n"),
            ("/sys/firmware/memmap/1/start", "0x0\n"),
            ("/sys/firmware/memmap/1/end", "0x9fbff\n"),
            ("/sys/firmware/memmap/1/type", "System RAM\n"),
            ("/sys/firmware/memmap/2/start", "0x9fc00\n"),
            ("/sys/firmware/memmap/2/end", "0xfffff\n"),
            ("/sys/firmware/memmap/2/type", "Reserved\n"),
            ("/sys/firmware/memmap/3/start", "hello\n"),
            ("/sys/firmware/memmap/3/end", "0x1\n"),
            ("/sys/firmware/memmap/3/type", "System RAM\n"),
        ];
        assert_eq!(ram(&tree(&map)).unwrap().unwrap(), [(0, 0x9fc00), (0x10_0000, 0xc000_0000)]);
        let arm = [("/proc/iomem", "40000000-7fffffff : System RAM\n")];
        assert_eq!(ram(&tree(&arm)).unwrap().unwrap(), [(0x4000_0000, 0x8000_0000)]);
        let hidden = [("/proc/iomem", "00000000-00000000 : System RAM\n")];
        assert_eq!(ram(&tree(&hidden)).unwrap(), None);
    }

    #[test]
    fn what_a_machine_does_not_have_is_none() {
        let bare = tree(&[]);
        assert_eq!(ram(&bare).unwrap(), None);
        assert_eq!(board(&bare).unwrap(), None);
        assert_eq!(kernel_config(&bare, "6.12.1").unwrap(), None);
        assert_eq!(kernel_config(&bare, "../../etc/x").unwrap(), None);
        assert_eq!(log(&bare).unwrap(), None);
        assert_eq!(
            boot_loader_built(&tree(&[(
                "/sys/firmware/devicetree/base/chosen/bootloader/build-timestamp",
                "abc"
            )]))
            .unwrap(),
            None
        );
        assert_eq!(vain_settings(&bare, "numa_policy").unwrap(), []);
    }

    #[test]
    fn a_setting_that_does_nothing_is_found_with_its_line() {
        let files = tree(&[
            (
                "/etc/sysctl.d/90-numa.conf",
                "# numa_policy=x\nkernel.numa_balancing=0\nkernel.numa_policy = interleave\n",
            ),
            ("/etc/sysctl.d/README", "numa_policy=interleave\n"),
            ("/etc/sysctl.conf", "numa_policy=interleave\n"),
        ]);
        let found = vain_settings(&files, "numa_policy").unwrap();
        assert_eq!(found, [("/etc/sysctl.d/90-numa.conf".to_owned(), 3), ("/etc/sysctl.conf".to_owned(), 1)]);
    }

    #[test]
    fn a_boot_has_an_id_and_its_beginning_is_a_mark() {
        let of = |text: &str| {
            let tree = tree(&[(paths::BOOT_ID, text)]);
            (id(&tree).unwrap(), mark(&tree).unwrap())
        };
        let text = "6f1d2c3b-0000-4000-8000-123456789abc";
        assert_eq!(of(&format!("{text}\n")), (Some(text.to_owned()), Some("6f1d2c3b".to_owned())));
        assert_eq!(of("6f1d\n"), (Some("6f1d".to_owned()), None));
        assert_eq!(id(&tree(&[])).unwrap(), None);
        assert!(is_id(text) && is_id(&"a".repeat(64)));
        assert!(!is_id("") && !is_id("a b") && !is_id("../x") && !is_id(&"a".repeat(65)));
    }

    #[test]
    fn a_log_is_read_wherever_it_is_kept() {
        let line = "[    0.000000] Linux version 6.12\n";
        for path in [KERNEL_LOG, KEPT_LOG] {
            assert!(log(&tree(&[(path, line)])).unwrap().unwrap().whole, "{path}");
        }
        let config = tree(&[("/boot/config-6.12.1", "CONFIG_NUMA_EMU=y\n")]);
        assert_eq!(kernel_config(&config, "6.12.1").unwrap().unwrap().is_set("NUMA_EMU"), Some(true));
    }
}
