//! The modules with which a guest reaches the host's files, found beside its kernel's image.
//!
//! A kernel is built with them or has them as files; which of the two, and what they need, its `modules.dep` says. A
//! guest's first program loads them from its first file system, in the order given here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use nodewise_machine::KernelRelease;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::{io_words, printable};

use crate::initramfs::{named, read};

/// The modules for PCI devices and ports of virtio, files of the host, folders in which a guest can write. A kernel can have
/// each of them built in.
const NEEDED: [&str; 5] = ["virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"];
/// Folders with modules of a release, below the root of an installation.
const FOLDERS: [&str; 2] = ["lib/modules", "usr/lib/modules"];

/// Bytes of an image that hold its header and, in every kernel that was seen, its release.
const HEADER: u64 = 64 << 10;
/// Largest `modules.dep` that is read; that of Debian's kernel has 0.8 MB.
const MOST_BYTES: u64 = 64 << 20;

/// The modules of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modules {
    pub release: KernelRelease,
    /// The folder of this release, without links in its path.
    pub folder: PathBuf,
    /// Those that a guest needs, each behind what it needs itself.
    pub needed: Vec<PathBuf>,
}

impl Modules {
    /// Finds the modules of a kernel image: those under the nearest `lib/modules` above it. `None` where the image
    /// names no release, or no folder has modules of it.
    ///
    /// # Errors
    /// The image or the list of modules cannot be read.
    pub fn find(image: &Path) -> io::Result<Option<Self>> {
        let mut header = Vec::new();
        File::open(image)?.take(HEADER).read_to_end(&mut header)?;
        let Some(release) = release(&header) else { return Ok(None) };
        let folders = image.ancestors().skip(1).flat_map(|above| FOLDERS.map(|folder| above.join(folder)));
        let folder = folders.map(|folder| folder.join(release.text())).find(|folder| folder.is_dir());
        let Some(folder) = folder else { return Ok(None) };
        let folder = folder.canonicalize()?;
        let needed = match in_folder(&folder, &NEEDED) {
            // A kernel without any module can have an empty folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            found => found?,
        };
        Ok(Some(Self { release, folder, needed }))
    }
}

/// Modules of a release below the root of an installation, each behind what it needs itself. One that is built into the kernel is not
/// among them.
///
/// # Errors
/// The list of the release's modules cannot be read; the message names it.
pub fn of_release(root: &Path, release: &str, names: &[&str]) -> io::Result<Vec<PathBuf>> {
    in_folder(&root.join(FOLDERS[0]).join(release), names)
}

/// The same in the folder of a release.
fn in_folder(folder: &Path, names: &[&str]) -> io::Result<Vec<PathBuf>> {
    let list = folder.join("modules.dep");
    let text = read_list(&list).map_err(|error| named(&list, &error))?;
    Ok(in_order(&parse_dependencies(&text), names).map(|path| folder.join(path)).collect())
}

fn read_list(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The release of a kernel, from the start of its image.
///
/// # Source
/// The boot protocol of x86 (`Documentation/arch/x86/boot.rst`, 6.12): `HdrS` at 0x202 and, since protocol 2.0, at
/// 0x20e the offset of a text behind the first 0x200 bytes that starts with the release.
pub fn release(header: &[u8]) -> Option<KernelRelease> {
    if header.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let offset = u16::from_le_bytes(header.get(0x20e..0x210)?.try_into().ok()?);
    let text = header.get(0x200 + usize::from(offset)..).filter(|_| offset > 0)?;
    let end = text.iter().position(|byte| *byte == b' ' || *byte == 0)?;
    let text = std::str::from_utf8(&text[..end]).ok()?;
    // It names a folder.
    KernelRelease::new(text).filter(|_| !text.contains('/') && text.starts_with(|c: char| c.is_ascii_digit()))
}

/// Reads modules.dep(5): a module and what it needs, all by their paths.
pub fn parse_dependencies(text: &str) -> BTreeMap<&str, Vec<&str>> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(module, needs)| (module, needs.split_ascii_whitespace().collect()))
        .collect_map()
}

/// The modules with these names and all that they need, each behind what it needs.
fn in_order<'a>(
    dependencies: &BTreeMap<&'a str, Vec<&'a str>>,
    names: &[&str],
) -> impl Iterator<Item = &'a str> {
    let named = |wanted: &&str| dependencies.keys().copied().find(|path| name(path) == *wanted);
    // A module is met twice: its needs are put above it, and it is taken when they are.
    let mut open: Vec<(&str, bool)> =
        names.iter().rev().filter_map(named).map(|path| (path, false)).collect();
    let (mut met, mut order) = (BTreeSet::new(), Vec::new());
    while let Some((path, is_ready)) = open.pop() {
        if is_ready {
            order.push(path);
        } else if met.insert(path) {
            open.push((path, true));
            open.extend(dependencies.get(path).into_iter().flatten().map(|need| (*need, false)));
        }
    }
    order.into_iter()
}

/// The name of a module by its path, as the kernel writes it.
fn name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split_once(".ko").map_or(file, |(name, _)| name).replace('-', "_")
}

/// The content of a module that can be loaded: decompressed where it is compressed.
///
/// # Errors
/// It cannot be read, or the program that decompresses it is missing or fails.
pub fn content(module: &Path) -> io::Result<Vec<u8>> {
    let program = match module.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return read(module),
    };
    let output = Command::new(program).args(["-d", "-c", "--"]).arg(module).output().map_err(|error| {
        let why = io_words(&error);
        io::Error::new(
            error.kind(),
            format!("{}: cannot run {program} to decompress it: {why}", module.display()),
        )
    })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let why =
            format!("{}: {program} cannot decompress it: {}", module.display(), printable(words.trim()));
        return Err(io::Error::other(why));
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};
    use std::fs;

    const TEXT: &str = "kernel/fs/netfs/netfs.ko.xz:\n\
        kernel/net/9p/9pnet.ko.xz: kernel/fs/netfs/netfs.ko.xz\n\
        kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz\n\
        kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz\n\
        kernel/fs/nfs/nfs.ko.xz: kernel/fs/netfs/netfs.ko.xz\n";

    /// The start of an image of this release.
    fn header(text: &str) -> Vec<u8> {
        let mut header = vec![0; 0x3000];
        header[0x202..0x206].copy_from_slice(b"HdrS");
        header[0x20e..0x210].copy_from_slice(&0x2c00u16.to_le_bytes());
        header[0x2e00..0x2e00 + text.len()].copy_from_slice(text.as_bytes());
        header
    }

    fn folder_of(release: &str, list: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let modules = root.path().join("lib/modules").join(release);
        fs::create_dir_all(&modules).unwrap();
        fs::write(modules.join("modules.dep"), list).unwrap();
        fs::create_dir(root.path().join("boot")).unwrap();
        fs::write(root.path().join("boot/vmlinuz"), header(&format!("{release} (me@here) #1 SMP"))).unwrap();
        root
    }

    #[test]
    fn an_image_tells_its_release() {
        let check = |text: &str, expected: Option<&str>| {
            let found = release(&header(text));
            assert_eq!(found.as_ref().map(KernelRelease::text), expected, "{text:?}");
        };
        check("6.12.117+deb13-amd64 (debian-kernel@lists.debian.org)", Some("6.12.117+deb13-amd64"));
        check("7.0.0-rc1", Some("7.0.0-rc1"));
        check("6.1/../../etc (me)", None);
        check("", None);
        assert_eq!(release(b"#!/bin/sh\n"), None);
        assert_eq!(release(&header("6.12 x")[..0x2e02]), None);
    }

    #[test]
    fn modules_come_behind_what_they_need() {
        let dependencies = parse_dependencies(TEXT);
        let order: Vec<String> =
            in_order(&dependencies, &["overlay", "9pnet_virtio", "9p"]).map(name).collect();
        assert_eq!(order, ["netfs", "9pnet", "9pnet_virtio", "9p"]);
        let circle = parse_dependencies("a.ko: b-c.ko\nb-c.ko: a.ko\n");
        assert_eq!(in_order(&circle, &["a"]).map(name).collect::<Vec<_>>(), ["b_c", "a"]);
    }

    #[test]
    fn they_are_found_above_the_image() {
        let root = folder_of("6.12.1-x", TEXT);
        let found = Modules::find(&root.path().join("boot/vmlinuz")).unwrap().unwrap();
        let folder = root.path().canonicalize().unwrap().join("lib/modules/6.12.1-x");
        assert_eq!((found.release.text(), &found.folder), ("6.12.1-x", &folder));
        assert_eq!(found.needed.last(), Some(&folder.join("kernel/fs/9p/9p.ko.xz")));
        fs::remove_file(folder.join("modules.dep")).unwrap();
        assert!(Modules::find(&root.path().join("boot/vmlinuz")).unwrap().unwrap().needed.is_empty());
        fs::remove_dir(&folder).unwrap();
        assert_eq!(Modules::find(&root.path().join("boot/vmlinuz")).unwrap(), None);
    }

    #[test]
    fn compressed_modules_are_decompressed_or_named() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("a.ko");
        fs::write(&plain, "a module").unwrap();
        assert_eq!(content(&plain).unwrap(), b"a module");
        assert!(Command::new("gzip").arg("-k").arg(&plain).status().unwrap().success());
        let packed = folder.path().join("a.ko.gz");
        assert_eq!(content(&packed).unwrap(), b"a module");
        fs::write(&packed, "no archive").unwrap();
        let error = content(&packed).unwrap_err().to_string();
        assert!(error.contains("a.ko.gz: gzip cannot decompress it: "), "{error}");
    }

    proptest! {
        #[test]
        fn any_image_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..1200), offset: u16) {
            release(&bytes);
            let mut image = header("6.12 x");
            image[0x20e..0x210].copy_from_slice(&offset.to_le_bytes());
            release(&image);
        }

        #[test]
        fn any_list_of_dependencies_is_read(text in any::<String>()) {
            let dependencies = parse_dependencies(&text);
            prop_assert!(in_order(&dependencies, &NEEDED).count() <= text.len());
        }
    }
}
