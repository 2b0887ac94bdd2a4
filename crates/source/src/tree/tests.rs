use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use proptest::prelude::{Strategy, any, prop, prop_assert_eq, proptest};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

/// A small machine as entries of a tar archive, below a folder.
fn archive(folder: &str) -> tar::Builder<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    add(&mut builder, &format!("{folder}/sys/devices/system/node/online"), b"0-1\n");
    add(&mut builder, &format!("{folder}/proc/version"), b"Linux version 6.12\n");
    builder
}

fn add(builder: &mut tar::Builder<Vec<u8>>, name: &str, contents: &[u8]) {
    special(builder, name, tar::EntryType::Regular, "", contents);
}

/// Writes any header at all; the builder's own functions refuse hostile names.
fn special(
    builder: &mut tar::Builder<Vec<u8>>,
    name: &str,
    kind: tar::EntryType,
    target: &str,
    contents: &[u8],
) {
    let mut header = tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_entry_type(kind);
    header.set_size(contents.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    builder.append(&header, contents).unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn text(tree: &Tree, path: &str) -> Option<String> {
    tree.read_text(path).unwrap()
}

fn refusal(bytes: &[u8]) -> String {
    Tree::from_archive(bytes).unwrap_err().to_string()
}

#[test]
fn an_archive_is_known_by_its_content() {
    let tar = archive("any-name").into_inner().unwrap();
    for bytes in [tar.clone(), gzip(&tar), bzip2(&tar)] {
        let tree = Tree::from_archive(&bytes).unwrap();
        assert_eq!(text(&tree, "/sys/devices/system/node/online").as_deref(), Some("0-1\n"));
        assert_eq!(tree.list("/").unwrap().unwrap(), ["proc", "sys"]);
        assert!(tree.notes().is_empty());
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture.png");
    std::fs::write(&path, bzip2(&tar)).unwrap();
    assert!(Tree::open(&path).unwrap().exists("/proc/version"));
}

#[test]
fn the_machine_is_found_in_a_folder() {
    for folder in [".", "./a", "a/b", "/a"] {
        let tree = Tree::from_archive(&archive(folder).into_inner().unwrap()).unwrap();
        assert!(tree.exists("/sys/devices/system/node/online"), "{folder}");
    }
    assert_eq!(
        refusal(&archive("a/b/c/d").into_inner().unwrap()),
        "it holds neither sys/ nor proc/, so it is not a capture of a machine"
    );
}

#[test]
fn several_machines_are_told() {
    let mut builder = archive("one");
    add(&mut builder, "two/proc/version", b"");
    assert_eq!(
        refusal(&builder.into_inner().unwrap()),
        "it holds several machines (/one, /two): unpack it and give one of the folders"
    );
}

#[test]
fn the_inside_of_sys_is_told() {
    let mut builder = tar::Builder::new(Vec::new());
    add(&mut builder, "devices/system/node/online", b"0\n");
    assert_eq!(
        refusal(&builder.into_inner().unwrap()),
        "it is the inside of sys/, not a capture: expected the folder that holds sys/ (this machine itself is live)"
    );
}

/// `/proc` holds a folder `sys/kernel`, which is not the `sys` of a machine.
#[test]
fn the_inside_of_proc_is_no_machine() {
    for path in ["/proc", "/sys"] {
        let name = &path[1..];
        assert_eq!(
            Tree::open(Path::new(path)).unwrap_err().to_string(),
            format!(
                "it is the inside of {name}/, not a capture: expected the folder that holds {name}/ (this machine itself is live)"
            )
        );
    }
    assert!(Tree::open(Path::new("/")).is_ok(), "the folder that holds both is a machine");
}

#[test]
fn what_is_no_archive_is_told() {
    for (bytes, sentence) in [
        (&b""[..], "the file is empty"),
        (b"\x89PNG\r\n\x1a\n", "it is a PNG image, not a tar archive (.tar, .tar.gz or .tar.bz2)"),
        (b"{}", "it is a JSON file, not a tar archive (.tar, .tar.gz or .tar.bz2)"),
        (
            &gzip(b"hello"),
            "the archive is damaged: failed to read entire block (copy it again, or unpack what can be read of it and give the folder)",
        ),
        (&gzip(b""), "it holds no file: expected a tar archive of a machine's files"),
    ] {
        assert_eq!(refusal(bytes), sentence);
    }
}

#[test]
fn an_archive_that_was_cut_is_damaged() {
    let tar = archive("m").into_inner().unwrap();
    for bytes in [&tar[..700], &gzip(&tar)[..60], &bzip2(&tar)[..60]] {
        assert!(refusal(bytes).starts_with("the archive is damaged: "));
    }
}

/// One changed byte in the trailer, or in the data that it sums up, is never a machine.
#[test]
fn a_wrong_checksum_is_refused() {
    let tar = archive("m").into_inner().unwrap();
    let two = |compress: fn(&[u8]) -> Vec<u8>| [compress(&tar[..1000]), compress(&tar[1000..])].concat();
    for (bytes, sentence) in [
        (gzip(&tar), "the gzip data are corrupt (corrupt gzip stream does not have a matching checksum)"),
        (
            two(gzip),
            "the gzip data are corrupt in member 2 (corrupt gzip stream does not have a matching checksum)",
        ),
        (bzip2(&tar), "the bzip2 data are corrupt (bzip2: invalid data)"),
        (two(bzip2), "the bzip2 data are corrupt in member 2 (bzip2: invalid data)"),
    ] {
        assert!(Tree::from_archive(&bytes).unwrap().notes().is_empty());
        // The last bytes of gzip are CRC and length, those of bzip2 the CRC of the stream and up to 7 bits of padding.
        for back in 2..5 {
            let mut damaged = bytes.clone();
            let at = damaged.len() - back;
            damaged[at] ^= 0x10;
            let expected = format!("the archive is damaged: {sentence} (");
            let found = refusal(&damaged);
            assert!(found.starts_with(&expected), "{back} from the end: {found}");
            assert!(refusal(&bytes[..at]).contains("data end early"), "{back} from the end, cut");
        }
    }
}

#[test]
fn any_changed_byte_of_compressed_data_is_refused_or_changes_nothing() {
    let tar = archive("m").into_inner().unwrap();
    let facts = |tree: &Tree| (text(tree, "/sys/devices/system/node/online"), text(tree, "/proc/version"));
    let right = facts(&Tree::from_archive(&tar).unwrap());
    for bytes in [gzip(&tar), bzip2(&tar)] {
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            if let Ok(tree) = Tree::from_archive(&damaged) {
                assert_eq!(facts(&tree), right, "byte {at}");
            }
        }
    }
}

#[test]
fn a_wrong_checksum_of_a_tar_header_is_refused() {
    let mut tar = archive("m").into_inner().unwrap();
    // The second header: the first block of the first file's content is block 1.
    tar[1024] ^= 1;
    let error = refusal(&tar);
    assert!(error.starts_with("the archive is damaged: archive header checksum mismatch"), "{error}");
}

#[test]
fn the_end_of_an_archive_is_looked_at() {
    let notes = |bytes: &[u8]| Tree::from_archive(bytes).unwrap().notes().join("; ");
    let tar = archive("m").into_inner().unwrap();
    let open = &tar[..tar.len() - 1024];
    assert_eq!(notes(open), "the archive has no end mark: files at its end can be missing");
    assert_eq!(notes(&gzip(open)), "the archive has no end mark: files at its end can be missing");
    let mut twice = archive("m").into_inner().unwrap();
    twice.extend_from_slice(&tar);
    assert_eq!(notes(&twice), "data follow the end mark of the archive: left out");
    for compress in [gzip, bzip2] {
        let behind = [&compress(&tar)[..], b"hello"].concat();
        assert_eq!(notes(&behind), "5 bytes follow the compressed data: left out");
        let padded = [&compress(&tar)[..], &[0; 700]].concat();
        assert_eq!(notes(&padded), "", "tapes pad with zeros");
        let members = [compress(&tar[..1000]), compress(&[]), compress(&tar[1000..])].concat();
        assert_eq!(notes(&members), "");
    }
}

#[test]
fn a_bomb_is_not_unpacked() {
    let zeros = vec![0u8; 4 << 20];
    let mut builder = archive("m");
    add(&mut builder, "m/zeros", &zeros);
    let tar = builder.into_inner().unwrap();
    let limits = Limits { bytes: 1 << 20, entries: 100 };
    for bytes in [tar.clone(), gzip(&tar), bzip2(&tar)] {
        let error = Tree::from_archive_within(&bytes, &limits).unwrap_err();
        assert_eq!(error.to_string(), "the archive holds more than 1 MiB, the most that is read");
    }
    let few = Limits { entries: 5, ..Limits::default() };
    let error = Tree::from_archive_within(&tar, &few).unwrap_err();
    assert_eq!(error.to_string(), "the archive holds more than 5 files and folders, the most that are read");
}

#[test]
fn a_huge_file_in_an_archive_is_there_and_not_read() {
    let mut builder = archive("m");
    add(&mut builder, "m/proc/huge", &vec![b'x'; (MOST_FILE_BYTES + 1) as usize]);
    let tree = Tree::from_archive(&builder.into_inner().unwrap()).unwrap();
    let error = tree.read("/proc/huge").unwrap_err();
    assert_eq!(error.to_string(), "cannot read /proc/huge: it is larger than 16 MiB");
    assert!(tree.exists("/proc/huge"));
}

#[test]
fn names_that_lead_out_are_refused_and_told() {
    let mut builder = archive("m");
    add(&mut builder, "m/../../etc/passwd", b"root");
    add(&mut builder, "../x", b"root");
    special(&mut builder, "m/hard", tar::EntryType::Link, "/etc/passwd", b"");
    special(&mut builder, "m/fifo", tar::EntryType::Fifo, "", b"");
    special(&mut builder, "m/up", tar::EntryType::Symlink, "../../../../etc/passwd", b"");
    special(&mut builder, "m/loop", tar::EntryType::Symlink, "loop", b"");
    special(&mut builder, "m/top", tar::EntryType::Symlink, "/proc/version", b"");
    let tree = Tree::from_archive(&builder.into_inner().unwrap()).unwrap();
    assert_eq!(
        tree.notes(),
        ["\"m/../../etc/passwd\" leads out of the archive and was left out, and 2 other entries"]
    );
    assert_eq!((text(&tree, "/etc/passwd"), text(&tree, "/up"), text(&tree, "/hard")), (None, None, None));
    assert_eq!(text(&tree, "/top").as_deref(), Some("Linux version 6.12\n"), "/ is the top of the machine");
    assert_eq!(
        tree.read("/loop").unwrap_err().to_string(),
        "cannot read /loop: it lies behind too many symbolic links, or a loop of them"
    );
    assert_eq!(tree.read("/fifo").unwrap_err().cause, ReadCause::NotAFile("a FIFO"));
}

#[test]
fn hard_links_and_repeated_names_are_resolved() {
    let mut builder = archive("m");
    special(&mut builder, "m/proc/again", tar::EntryType::Link, "m/proc/version", b"");
    add(&mut builder, "m/proc/version", b"newer");
    add(&mut builder, "m/proc/version/below", b"");
    special(&mut builder, "m/proc/folder", tar::EntryType::Link, "m/proc", b"");
    let tree = Tree::from_archive(&builder.into_inner().unwrap()).unwrap();
    assert_eq!(text(&tree, "/proc/again").as_deref(), Some("Linux version 6.12\n"));
    assert_eq!(text(&tree, "/proc/version").as_deref(), Some("newer"));
    assert_eq!(
        tree.notes(),
        [
            "\"m/proc/version/below\" lies below a file or a link and was left out, and one other entry",
            "\"m/proc/version\" comes more than once, the last one counts",
        ]
    );
}

/// The same capture three ways: through `openat2(2)`, walked by hand, and in memory.
fn three_ways(path: &Path, files: Memory) -> [Tree; 3] {
    let kernel = Tree::open(path).unwrap();
    let mut walked = Tree::open(path).unwrap();
    if let Kind::Directory(directory) = &mut walked.kind {
        directory.without_openat2();
    }
    [kernel, walked, Tree::memory(files)]
}

#[test]
fn nothing_in_a_directory_leads_out_of_it() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    let root = outside.path().join("capture");
    std::fs::create_dir_all(root.join("proc")).unwrap();
    std::fs::write(root.join("proc/version"), "here").unwrap();
    let secret = outside.path().join("secret");
    symlink(&secret, root.join("proc/absolute")).unwrap();
    symlink("../../secret", root.join("proc/upwards")).unwrap();
    symlink("../../../../../../../..", root.join("proc/top")).unwrap();
    symlink("/proc/version", root.join("proc/inside")).unwrap();
    symlink("loop", root.join("proc/loop")).unwrap();
    symlink("/proc/self/root", root.join("proc/magic")).unwrap();
    for tree in &three_ways(&root, Memory::new())[..2] {
        for path in
            ["/proc/absolute", "/proc/upwards", "/proc/../../secret", "/proc/top/secret", "/proc/magic/etc"]
        {
            assert_eq!(tree.read(path).unwrap(), None, "{path}");
            assert!(!tree.exists(path), "{path}");
        }
        assert_eq!(text(tree, "/proc/inside").as_deref(), Some("here"));
        assert_eq!(text(tree, "/proc/top/proc/version").as_deref(), Some("here"));
        assert_eq!(tree.read("/proc/loop").unwrap_err().cause, ReadCause::TooManyLinks);
        assert_eq!(tree.link("/proc/upwards").unwrap().as_deref(), Some("../../secret"));
        assert_eq!(tree.target("/proc/upwards").unwrap().as_deref(), Some("/secret"));
        assert_eq!(tree.link("/proc/version").unwrap(), None);
        assert_eq!(tree.list("/proc/top").unwrap().unwrap(), ["proc"]);
    }
}

#[test]
fn what_is_no_file_is_refused_and_does_not_hang() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("proc/version")).unwrap();
    let fifo = root.path().join("proc/fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.path().join("proc/socket")).unwrap();
    std::fs::write(root.path().join("proc/huge"), vec![0; (MOST_FILE_BYTES + 1) as usize]).unwrap();
    for tree in &three_ways(root.path(), Memory::new())[..2] {
        let cause = |path| tree.read(path).unwrap_err().cause;
        assert_eq!(cause("/proc/fifo"), ReadCause::NotAFile("a FIFO"));
        assert_eq!(cause("/proc/version"), ReadCause::NotAFile("a directory"));
        assert_eq!(cause("/proc/socket"), ReadCause::NotAFile("a socket or a device without a driver"));
        assert_eq!(cause("/proc/huge"), ReadCause::TooLarge(MOST_FILE_BYTES));
        assert_eq!(tree.read("/proc/fifo/below").unwrap(), None);
        assert_eq!(tree.list("/proc/fifo").unwrap(), None);
    }
}

#[test]
fn the_running_system_answers_like_a_capture() {
    let tree = Tree::live();
    let mut buffer = Vec::new();
    assert!(tree.read_into("/proc/self/status", &mut buffer).unwrap());
    assert!(buffer.starts_with(b"Name:"));
    assert!(!tree.read_into("/proc/self/no-such-file", &mut buffer).unwrap());
    assert!(buffer.is_empty());
    assert!(tree.list("/proc/self").unwrap().unwrap().contains(&"status".to_owned()));
    assert!(tree.link("/proc/self").unwrap().is_some());
    assert_eq!(tree.link("/proc/version").unwrap(), None);
    assert!(tree.exists("/proc/version") && !tree.exists("/proc/nothing"));
    assert_eq!(tree.read("/proc/self").unwrap_err().cause, ReadCause::NotAFile("a directory"));
    assert_eq!(tree.read("/dev/null").unwrap_err().cause, ReadCause::NotAFile("a device"));
    assert_eq!(tree.list("/proc/version").unwrap(), None);
}

#[test]
fn lines_are_handed_over_in_pieces_of_bounded_size() {
    let long = "y".repeat(100_000);
    let files = Memory::new()
        .file("/proc/a", format!("one\n{long}\n\ntwo"))
        .unreadable("/proc/b", ReadCause::System(13));
    let mut lines = Vec::new();
    let tree = Tree::memory(files);
    assert!(tree.read_lines("/proc/a", &mut |line| lines.push(line.to_owned())).unwrap());
    assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [3, 65536, 0, 3]);
    assert!(!tree.read_lines("/proc/c", &mut |_| ()).unwrap());
    assert!(tree.read_lines("/proc/b", &mut |_| ()).unwrap_err().cause.is_permission());
    let mut whole = String::new();
    Tree::live().read_lines("/proc/self/status", &mut |line| whole += line).unwrap();
    assert!(whole.starts_with("Name:") && whole.contains("Threads:"));
}

#[test]
fn the_beginning_of_a_file_and_its_pieces_are_the_file() {
    let long: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("proc")).unwrap();
    std::fs::write(root.path().join("proc/version"), &long).unwrap();
    for tree in three_ways(root.path(), Memory::new().file("/proc/version", &long)) {
        let mut buffer = b"old".to_vec();
        assert!(tree.read_start("/proc/version", 5, &mut buffer).unwrap());
        assert_eq!(buffer, long[..5]);
        assert!(!tree.read_start("/proc/nothing", 5, &mut buffer).unwrap());
        assert!(buffer.is_empty());
        let mut whole = Vec::new();
        assert!(tree.read_chunks("/proc/version", &mut |chunk| whole.extend_from_slice(chunk)).unwrap());
        assert_eq!(whole, long);
        assert!(!tree.read_chunks("/proc/nothing", &mut |_| panic!("nothing is there")).unwrap());
    }
    let mut name = Vec::new();
    assert!(Tree::live().read_start("/proc/self/comm", 64, &mut name).unwrap());
    assert_eq!(Tree::live().read("/proc/self/comm").unwrap(), Some(name));
}

#[test]
fn link_targets_stay_inside() {
    for (path, target, expected) in [
        ("/sys/class/net/eth0", "../../devices/pci0000:00/net/eth0", "/sys/devices/pci0000:00/net/eth0"),
        ("/a", "../../..", "/"),
        ("/a/b", "/c/./d/", "/c/d"),
        ("/a/b", "x/../../../y", "/y"),
    ] {
        assert_eq!(join(path, target), expected);
    }
}

#[derive(Clone, Debug)]
enum Entry {
    File(Vec<u8>),
    Link(String),
    Folder,
}

fn part() -> impl Strategy<Value = String> {
    "[ab]|\\.\\.|\\."
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(part(), 1..5).prop_map(|parts| format!("/{}", parts.join("/")))
}

fn entries() -> impl Strategy<Value = Vec<(String, Entry)>> {
    let kind = proptest::prop_oneof![
        prop::collection::vec(any::<u8>(), 0..4).prop_map(Entry::File),
        path().prop_map(Entry::Link),
        path().prop_map(|path| Entry::Link(path[1..].to_owned())),
        proptest::prelude::Just(Entry::Folder),
    ];
    let name = prop::collection::vec("[ab]", 1..4).prop_map(|parts| parts.join("/"));
    prop::collection::vec((name, kind), 0..8)
}

/// Puts an entry on disk as long as its way is free; says whether it did.
fn put(root: &Path, name: &str, entry: &Entry) -> bool {
    let path = root.join(name);
    let mut way = root.to_owned();
    let mut parts = Path::new(name).components().peekable();
    while let Some(part) = parts.next() {
        way.push(part);
        let last = parts.peek().is_none();
        match way.symlink_metadata() {
            Ok(known) if !last && !known.is_dir() => return false,
            Ok(_) if last => return false,
            _ => (),
        }
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    match entry {
        Entry::File(contents) => std::fs::write(&path, contents).unwrap(),
        Entry::Link(target) => symlink(target, &path).unwrap(),
        Entry::Folder => std::fs::create_dir_all(&path).unwrap(),
    }
    true
}

proptest! {
    #[test]
    fn every_kind_of_tree_gives_the_same_answers(entries in entries(), paths in prop::collection::vec(path(), 1..12)) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/version"), "v").unwrap();
        let mut files = Memory::new().file("/proc/version", "v");
        for (name, entry) in &entries {
            if put(root.path(), name, entry) {
                files = match entry {
                    Entry::File(contents) => files.file(name, contents),
                    Entry::Link(target) => files.link_to(name, target),
                    Entry::Folder => files.directory(name),
                };
            }
        }
        let [kernel, walked, memory] = three_ways(root.path(), files);
        for path in &paths {
            let answers = |tree: &Tree| {
                (tree.read(path).map_err(|error| error.cause), tree.list(path).map_err(|error| error.cause), tree.link(path).map_err(|error| error.cause), tree.exists(path))
            };
            prop_assert_eq!(answers(&walked), answers(&kernel), "walked {}", path);
            prop_assert_eq!(answers(&memory), answers(&kernel), "memory {}", path);
        }
    }

    #[test]
    fn any_bytes_are_unpacked_or_refused_without_a_panic(bytes in any::<Vec<u8>>(), at in 0usize..2048, byte in any::<u8>()) {
        let _ = Tree::from_archive(&bytes);
        let mut tar = archive("m").into_inner().unwrap();
        tar[at] = byte;
        let _ = Tree::from_archive(&tar);
    }
}
