//! The modules of a kernel that a guest can need, and no others: a kernel has over four thousand.
//!
//! What a module needs is in `modules.dep`, and what it asks for by an algorithm's name while it runs, in `modules.softdep`:
//! ext4 loads nothing that has "crc32c", and mounts nothing without.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail};
use nodewise_lab::modules::parse_dependencies;

use crate::program;

/// Modules that are kept, by the start of their path under `kernel/`; what they depend on is kept
/// too. A pattern that matches nothing is built into the kernel, or this kernel does not have it.
const KEPT: [&str; 35] = [
    // The host's files, and folders in which a guest can write.
    "fs/9p/",
    "net/9p/9pnet_virtio",
    "fs/fuse/",
    "fs/overlayfs/",
    // Devices of QEMU's.
    "drivers/virtio/",
    "drivers/char/virtio_console",
    "drivers/char/hw_random/virtio-rng",
    "drivers/block/virtio_blk",
    "drivers/scsi/virtio_scsi",
    "drivers/scsi/sd_mod",
    "drivers/net/virtio_net",
    "drivers/net/ethernet/intel/e1000",
    "drivers/net/ethernet/intel/igb",
    "drivers/nvme/host/",
    "drivers/gpu/drm/virtio/",
    "drivers/gpu/drm/tiny/bochs",
    "drivers/watchdog/i6300esb",
    "drivers/input/keyboard/atkbd",
    "drivers/input/serio/",
    "net/unix/",
    // Memory that comes and goes, and is of several kinds.
    "drivers/dax/",
    "drivers/cxl/",
    "drivers/nvdimm/",
    "drivers/acpi/",
    "drivers/block/zram/",
    "mm/",
    // Devices without hardware, for tests of placement.
    "drivers/block/null_blk/",
    "drivers/block/brd",
    "drivers/block/loop",
    "drivers/net/dummy",
    "drivers/net/veth",
    "drivers/infiniband/sw/rxe/",
    // File systems of disk images.
    "fs/ext4/",
    "fs/xfs/",
    // Registers and identification of CPUs.
    "arch/x86/kernel/",
];

/// The file beside the modules that says by which list they were chosen, and the number of this list.
const STAMP: &str = "modules.nodewise";
const LIST: &str = "2\n";

/// Whether a kernel that was fetched before has the modules that guests need now.
pub fn are_current(tree: &Path, release: &str) -> bool {
    let stamp = tree.join("lib/modules").join(release).join(STAMP);
    fs::read_to_string(stamp).is_ok_and(|text| text == LIST)
}

/// Leaves only the modules that guests need, decompressed, so that no start of a guest waits for that.
pub fn prepare(tree: &Path, release: &str) -> Result<()> {
    let modules = tree.join("lib/modules").join(release);
    if !modules.is_dir() {
        bail!("the package of {release} has no modules");
    }
    let all = module_files(&modules.join("kernel"))?;
    let compressed: Vec<&PathBuf> = all.iter().filter(|path| has_extension(path, "xz")).collect();
    decompress(&compressed)?;
    depmod(tree, release)?;
    let list =
        |name: &str| fs::read_to_string(modules.join(name)).with_context(|| format!("depmod left no {name}"));
    let (dependencies, soft, aliases) =
        (list("modules.dep")?, list("modules.softdep")?, list("modules.alias")?);
    let lists = Lists {
        needs: parse_dependencies(&dependencies),
        asks: parse_soft(&soft),
        aliases: parse_aliases(&aliases),
    };
    let kept = lists.closure(&KEPT);
    for path in module_files(&modules.join("kernel"))? {
        let name = path.strip_prefix(&modules).unwrap_or(&path).to_string_lossy().into_owned();
        if !kept.contains(name.as_str()) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    depmod(tree, release)?;
    fs::write(modules.join(STAMP), LIST).context("cannot write down which modules are kept")
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// All modules below a folder.
fn module_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().to_string_lossy().contains(".ko") {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// Decompresses files in place, on all CPUs.
fn decompress(files: &[&PathBuf]) -> Result<()> {
    let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get());
    thread::scope(|scope| {
        let jobs: Vec<_> = files
            .chunks(files.len().div_ceil(cpus).max(1))
            .map(|share| {
                scope.spawn(move || {
                    // Short enough for a command line.
                    share.chunks(500).try_for_each(|files| {
                        program::quiet(Command::new("xz").args(["-d", "--"]).args(files))
                    })
                })
            })
            .collect();
        jobs.into_iter().try_for_each(|job| match job.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// Writes the lists by which modules find each other.
fn depmod(tree: &Path, release: &str) -> Result<()> {
    let path =
        nodewise_lab::tools::find_program("depmod").context("depmod is missing: package kmod has it")?;
    program::quiet(Command::new(path).arg("-b").arg(tree).arg(release))
}

/// Lists of depmod's.
struct Lists<'a> {
    /// Modules with what they need, all by their paths.
    needs: BTreeMap<&'a str, Vec<&'a str>>,
    /// Names of modules with the names that they ask for.
    asks: BTreeMap<String, Vec<String>>,
    /// Names that can be asked for, with the modules that answer.
    aliases: BTreeMap<String, Vec<String>>,
}

impl<'a> Lists<'a> {
    /// The modules whose paths start with one of the patterns, and all that they need or ask for.
    fn closure(&self, patterns: &[&str]) -> BTreeSet<&'a str> {
        let wanted = |module: &&str| {
            let path = module.strip_prefix("kernel/").unwrap_or(module);
            patterns.iter().any(|pattern| path.starts_with(pattern))
        };
        let by_name: BTreeMap<String, &'a str> =
            self.needs.keys().map(|path| (file_name(path), *path)).collect();
        let mut open: Vec<&str> = self.needs.keys().copied().filter(wanted).collect();
        let mut kept = BTreeSet::new();
        while let Some(module) = open.pop() {
            if !kept.insert(module) {
                continue;
            }
            open.extend(self.needs.get(module).into_iter().flatten());
            for asked in self.asks.get(&file_name(module)).into_iter().flatten() {
                let answers = self.aliases.get(asked).into_iter().flatten().chain([asked]);
                open.extend(answers.filter_map(|name| by_name.get(name)));
            }
        }
        kept
    }
}

/// The name of a module as modprobe compares it.
fn file_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    underscored(file.split_once(".ko").map_or(file, |(name, _)| name))
}

fn underscored(name: &str) -> String {
    name.replace('-', "_")
}

/// Reads modules.softdep: `softdep ext4 pre: crypto-crc32c post: other`.
fn parse_soft(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut asks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some("softdep"), Some(module)) = (words.next(), words.next()) else { continue };
        let asked = words.filter(|word| !word.ends_with(':')).map(underscored);
        asks.entry(underscored(module)).or_default().extend(asked);
    }
    asks
}

/// Reads the names in modules.alias: `alias crypto-crc32c crc32c_generic`. Patterns for devices are left out: no module asks for those.
fn parse_aliases(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut aliases: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some("alias"), Some(name), Some(module)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if !name.contains(['*', '?', '[']) {
            aliases.entry(underscored(name)).or_default().push(underscored(module));
        }
    }
    aliases
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    const TEXT: &str = "kernel/fs/netfs/netfs.ko:\n\
        kernel/net/9p/9pnet.ko: kernel/fs/netfs/netfs.ko\n\
        kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/netfs/netfs.ko\n\
        kernel/fs/nfs/nfs.ko: kernel/fs/netfs/netfs.ko\n";

    fn closure<'a>(text: &'a str, patterns: &[&str]) -> BTreeSet<&'a str> {
        let needs = parse_dependencies(text);
        Lists { needs, asks: BTreeMap::new(), aliases: BTreeMap::new() }.closure(patterns)
    }

    #[test]
    fn what_a_kept_module_asks_for_is_kept() {
        let needs = parse_dependencies(
            "kernel/fs/ext4/ext4.ko: kernel/fs/mbcache.ko\nkernel/fs/mbcache.ko:\nkernel/crypto/crc32c_generic.ko:\n\
             kernel/arch/x86/crypto/crc32c-intel.ko: kernel/lib/pcl.ko\nkernel/lib/pcl.ko:\nkernel/crypto/aes.ko:\n",
        );
        let asks =
            parse_soft("# Soft dependencies.\nsoftdep ext4 pre: crypto-crc32c\nsoftdep aes pre: nothing\n");
        let aliases = parse_aliases(
            "# Aliases.\nalias crypto-crc32c crc32c_generic\nalias crypto-crc32c crc32c_intel\nalias pci:v1d* aes\n",
        );
        let kept = Lists { needs, asks, aliases }.closure(&["fs/ext4/"]);
        let expected = [
            "kernel/arch/x86/crypto/crc32c-intel.ko",
            "kernel/crypto/crc32c_generic.ko",
            "kernel/fs/ext4/ext4.ko",
            "kernel/fs/mbcache.ko",
            "kernel/lib/pcl.ko",
        ];
        assert_eq!(kept, BTreeSet::from(expected));
    }

    #[test]
    fn what_a_kept_module_needs_is_kept() {
        let kept = closure(TEXT, &["fs/9p/", "fs/none/"]);
        let expected = ["kernel/fs/9p/9p.ko", "kernel/fs/netfs/netfs.ko", "kernel/net/9p/9pnet.ko"];
        assert_eq!(kept, BTreeSet::from(expected));
    }

    #[test]
    fn modules_that_need_each_other_do_not_loop() {
        let kept = closure("kernel/a.ko: kernel/b.ko\nkernel/b.ko: kernel/a.ko\n", &["a"]);
        assert_eq!(kept, BTreeSet::from(["kernel/a.ko", "kernel/b.ko"]));
    }

    proptest! {
        #[test]
        fn any_list_of_dependencies_is_read(text in any::<String>()) {
            prop_assert!(closure(&text, &[""]).len() >= parse_dependencies(&text).len());
            parse_soft(&text);
            parse_aliases(&text);
        }
    }
}
