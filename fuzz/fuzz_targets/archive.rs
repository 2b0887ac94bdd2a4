//! Archives of any content unpack within their limits, load to a machine that survives its JSON, and
//! a capture of a capture is the same capture. A third of the runs are raw bytes, a third well-formed
//! archives of hostile entries, and a third such archives in two compressed members with one byte changed or none: a
//! changed byte, those of the trailers included, is refused, noted, or changes no fact.
#![no_main]

use std::io::Write as _;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use nodewise_machine::{Machine, Origin};
use nodewise_source::capture::{Capture, Identity};
use nodewise_source::machine_file::{from_json, to_json};
use nodewise_source::tree::{Limits, Tree};
use nodewise_source::{Detail, sysfs};

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    Raw(&'a [u8]),
    Entries(Vec<Entry<'a>>),
    Compressed(Compressed<'a>),
}

#[derive(Arbitrary, Debug)]
struct Compressed<'a> {
    entries: Vec<Entry<'a>>,
    is_bzip2: bool,
    /// Where the second member begins.
    split: u16,
    /// Which byte is changed, and how; 0 changes nothing.
    at: u16,
    change: u8,
}

#[derive(Arbitrary, Debug)]
struct Entry<'a> {
    kind: Kind,
    folder: Folder,
    name: &'a str,
    number: u16,
    content: &'a str,
}

#[derive(Arbitrary, Debug)]
enum Kind {
    File,
    Link,
    HardLink,
    Folder,
    Fifo,
}

/// Where a machine is looked for, so that entries are more than noise.
#[derive(Arbitrary, Debug)]
enum Folder {
    Top,
    Node,
    NodeN,
    Cpu,
    Topology,
    Cache,
    Pci,
    Class,
    Proc,
    SelfProc,
}

/// Names that the loader asks for.
const NAMES: [&str; 32] = [
    "online",
    "possible",
    "present",
    "has_cpu",
    "has_memory",
    "cpulist",
    "cpumap",
    "distance",
    "meminfo",
    "core_id",
    "physical_package_id",
    "thread_siblings_list",
    "core_cpus",
    "level",
    "type",
    "size",
    "shared_cpu_map",
    "class",
    "numa_node",
    "local_cpulist",
    "version",
    "cmdline",
    "mounts",
    "status",
    "cpuset",
    "cgroup",
    "node1",
    "cpu1",
    "hwloc-nofile-info",
    "0000:00:01.0",
    "eth0",
    "../../etc/passwd",
];

fn path(entry: &Entry<'_>) -> String {
    let number = entry.number % 70;
    let folder = match entry.folder {
        Folder::Top => "m".to_owned(),
        Folder::Node => "m/sys/devices/system/node".to_owned(),
        Folder::NodeN => format!("m/sys/devices/system/node/node{number}"),
        Folder::Cpu => format!("m/sys/devices/system/cpu/cpu{number}"),
        Folder::Topology => format!("m/sys/devices/system/cpu/cpu{number}/topology"),
        Folder::Cache => format!("m/sys/devices/system/cpu/cpu{number}/cache/index{}", entry.number % 5),
        Folder::Pci => "m/sys/bus/pci/devices".to_owned(),
        Folder::Class => "m/sys/class/net".to_owned(),
        Folder::Proc => "m/proc".to_owned(),
        Folder::SelfProc => "m/proc/self".to_owned(),
    };
    let name = if entry.name.is_empty() { NAMES[entry.number as usize % NAMES.len()] } else { entry.name };
    format!("{folder}/{name}")
}

fn archive(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for entry in entries {
        let (kind, link) = match entry.kind {
            Kind::File => (tar::EntryType::Regular, false),
            Kind::Link => (tar::EntryType::Symlink, true),
            Kind::HardLink => (tar::EntryType::Link, true),
            Kind::Folder => (tar::EntryType::Directory, false),
            Kind::Fifo => (tar::EntryType::Fifo, false),
        };
        let mut header = tar::Header::new_gnu();
        let copy = |field: &mut [u8], text: &str| {
            let length = text.len().min(field.len());
            field[..length].copy_from_slice(&text.as_bytes()[..length]);
        };
        copy(&mut header.as_old_mut().name, &path(entry));
        if link {
            copy(&mut header.as_old_mut().linkname, entry.content);
        }
        let content = if matches!(entry.kind, Kind::File) { entry.content.as_bytes() } else { &[] };
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content).expect("memory does not fail to be written");
    }
    builder.into_inner().expect("memory does not fail to be written")
}

const LIMITS: Limits = Limits { bytes: 1 << 20, entries: 10_000 };

fn load(tree: &Tree) -> Machine {
    sysfs::load(tree, Origin::Capture("fuzz".to_owned()), Detail::Full)
}

fn compress(bytes: &[u8], is_bzip2: bool) -> Vec<u8> {
    if is_bzip2 {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(bytes).expect("memory does not fail to be written");
        encoder.finish().expect("memory does not fail to be written")
    } else {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory does not fail to be written");
        encoder.finish().expect("memory does not fail to be written")
    }
}

fn check_compressed(input: &Compressed<'_>) {
    let tar = archive(&input.entries);
    let (first, second) = tar.split_at(input.split as usize % tar.len().max(1));
    let mut bytes = [compress(first, input.is_bzip2), compress(second, input.is_bzip2)].concat();
    let at = input.at as usize % bytes.len();
    bytes[at] ^= input.change;
    let plain = Tree::from_archive_within(&tar, &LIMITS);
    let compressed = Tree::from_archive_within(&bytes, &LIMITS);
    if input.change == 0 {
        assert_eq!(plain.is_ok(), compressed.is_ok(), "compressing changes nothing");
    }
    if let (Ok(plain), Ok(compressed)) = (plain, compressed) {
        let facts = |tree: &Tree| Machine { oddities: Vec::new(), ..load(tree) };
        assert!(plain.notes() != compressed.notes() || facts(&plain) == facts(&compressed), "byte {at}");
    }
}

fuzz_target!(|input: Input<'_>| {
    let built;
    let bytes = match &input {
        Input::Compressed(compressed) => return check_compressed(compressed),
        Input::Raw(bytes) => *bytes,
        Input::Entries(entries) => {
            built = archive(entries);
            &built
        }
    };
    let Ok(tree) = Tree::from_archive_within(bytes, &LIMITS) else { return };
    let machine = load(&tree);
    assert!(machine.oddities.iter().all(|oddity| !oddity.to_string().chars().any(char::is_control)));
    assert_eq!(from_json(&to_json(&machine)).expect("what was written is a machine file"), machine);
    // What a capture holds, a capture of it holds too. It costs more than all the rest, so one input in
    // four has to do.
    if bytes.len() / 512 % 4 != 0 {
        return;
    }
    let identity = if bytes.len() % 1024 == 0 { Identity::With } else { Identity::Without };
    let capture = Capture::from_tree(&tree, identity);
    let again = Capture::from_tree(&capture.tree(), identity);
    assert_eq!(again.to_tar(), capture.to_tar());
});
