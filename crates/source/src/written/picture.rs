//! All files that a program sees on a machine, with the links between them: those of a capture where it has them,
//! otherwise those that the machine's kernel would write.

mod cpuinfo;
mod places;

pub use places::{DEVICE_FOLDERS, padded_mask};

use nodewise_machine::{Machine, MeminfoField, MeminfoValue};

use super::{File, files};
use crate::paths::{MEMINFO, NODES, node, of_node};
use crate::tree::Tree;

const CPUS: &str = "/sys/devices/system/cpu";
const CPUINFO: &str = "/proc/cpuinfo";
const ZONEINFO: &str = "/proc/zoneinfo";
const TIERS: &str = "/sys/devices/virtual/memory_tiering";

/// Folders of a capture that are taken as they are.
const FOLDERS: [&str; 3] = [CPUS, NODES, TIERS];
/// Most levels of folders below one of them; the kernel has six.
const MOST_LEVELS: usize = 12;
/// Most files, folders and links of a picture: 8,192 CPUs have fewer.
const MOST_ENTRIES: usize = 1 << 20;

/// A folder that the picture lies over.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    pub folder: &'static str,
    /// Subfolders that the picture replaces, also by none; the others stay. `None`: nothing stays.
    pub replaced: Option<&'static [&'static str]>,
    /// Whether the files of [`REPLACED_FILES`] come with it.
    pub has_files: bool,
}

impl Layer {
    /// Whether the path is below the folder.
    pub fn has(&self, path: &str) -> bool {
        path.strip_prefix(self.folder).is_some_and(|rest| rest.starts_with('/'))
    }
}

/// The folders, each apart from the others. Control groups are hidden: the CPUs and nodes in them are real, and hwloc
/// would drop all others.
pub const LAYERS: &[Layer] = &[
    Layer { folder: "/sys/devices/system", replaced: Some(&["cpu", "memory", "node"]), has_files: true },
    Layer { folder: "/sys/devices/virtual", replaced: Some(&["memory_tiering"]), has_files: false },
    Layer { folder: "/sys/bus/cpu/devices", replaced: None, has_files: false },
    Layer { folder: "/sys/bus/node/devices", replaced: None, has_files: false },
    Layer { folder: "/sys/fs/cgroup", replaced: None, has_files: false },
];

/// Files that the picture replaces one by one.
pub const REPLACED_FILES: &[&str] = &[CPUINFO, MEMINFO, ZONEINFO];

/// All files that a program sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Folders above an entry need no entry.
    pub entries: Vec<Entry>,
    /// Files that place a device of this system, by name: on the machine it is near no node, because it has no place there.
    pub device_files: Vec<(&'static str, String)>,
}

/// A file, folder or link, and its absolute path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub path: String,
    pub content: Content,
}

/// A file's bytes, or the kind of an entry without any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(Vec<u8>),
    /// The target.
    Link(String),
    Folder,
}

impl Content {
    /// The bytes of a file.
    fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Text(bytes) => Some(bytes.as_slice()),
            Self::Link(_) | Self::Folder => None,
        }
    }
}

/// Bits of a mask such as `0000,00000003`: all groups but the first have 32.
fn mask_bits(text: &[u8]) -> Option<u32> {
    let line = text.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let groups: Vec<&str> = line.split(',').collect();
    let is_group =
        |group: &&str| (1..=8).contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    let first = groups.first().filter(|_| groups.iter().all(is_group))?;
    u32::try_from(4 * first.len() + 32 * (groups.len() - 1)).ok()
}

impl Picture {
    /// Bits of the masks of CPUs that the machine's kernel prints; `None` where the picture has none. Many kernels print more than
    /// there are CPUs, and libnuma refuses a mask that is longer than those of `sched_getaffinity(2)`.
    pub fn cpu_mask_bits(&self) -> Option<u32> {
        let is_mask = |path: &str| {
            path.starts_with(NODES) && path.ends_with("/cpumap") || path.ends_with("/thread_siblings")
        };
        let masks = self.entries.iter().filter(|entry| is_mask(&entry.path));
        masks.filter_map(|entry| entry.content.text()).find_map(mask_bits)
    }

    fn add(&mut self, path: String, content: Content) {
        self.entries.push(Entry { path, content });
    }

    fn has(&self, path: &str) -> bool {
        self.entries.iter().any(|entry| entry.path == path)
    }

    /// Adds a file that the machine's kernel would write.
    fn write(&mut self, machine: &Machine, here: &Tree, file: File) {
        let text = match file.path.as_str() {
            CPUINFO => cpuinfo::write(machine, here, &file.text),
            MEMINFO => with_pools(file.text, here),
            _ => file.text,
        };
        self.add(file.path, Content::Text(text.into_bytes()));
    }

    /// Copies a file, link or folder of a capture with all that is in it. What cannot be read is left out, as it would
    /// be for a user who may not read it.
    fn copy(&mut self, tree: &Tree, path: &str, levels: usize) {
        if self.entries.len() >= MOST_ENTRIES {
            return;
        }
        if let Ok(Some(target)) = tree.link(path) {
            self.add(path.to_owned(), Content::Link(target));
        } else if let Ok(Some(names)) = tree.list(path) {
            self.add(path.to_owned(), Content::Folder);
            let plain = |name: &&String| !name.contains('/') && *name != ".." && *name != ".";
            for name in names.iter().filter(plain).filter(|_| levels > 0) {
                self.copy(tree, &format!("{path}/{name}"), levels - 1);
            }
        } else if let Ok(Some(bytes)) = tree.read(path) {
            self.add(path.to_owned(), Content::Text(bytes));
        }
    }
}

/// The picture of a machine, with its own files where there are some. `here` is the running system, whose CPUs carry out
/// the instructions: a model of CPUs that the machine does not give is like these.
pub fn picture(machine: &Machine, own: Option<&Tree>, here: &Tree) -> Picture {
    let mut picture = Picture::default();
    let own = own.filter(|tree| tree.exists(CPUS) || tree.exists(NODES));
    match own {
        Some(tree) => {
            // A link in place of a whole folder would lead files that are added to it out of the picture.
            let folders = FOLDERS.iter().filter(|folder| !matches!(tree.link(folder), Ok(Some(_))));
            folders.for_each(|folder| picture.copy(tree, folder, MOST_LEVELS));
            REPLACED_FILES.iter().for_each(|file| picture.copy(tree, file, 0));
            complete(machine, here, &mut picture);
        }
        None => written(machine, here, &mut picture),
    }
    if !picture.has(ZONEINFO) {
        // Zones that are not known; the real ones are those of another node 0.
        picture.add(ZONEINFO.to_owned(), Content::Text(Vec::new()));
    }
    devices(machine, &mut picture);
    picture.device_files = places::of_devices(&machine.online_cpus(), picture.cpu_mask_bits());
    picture
}

/// Lists of CPUs and nodes, models and memory: every kernel has them, and some captures do not.
fn complete(machine: &Machine, here: &Tree, picture: &mut Picture) {
    let mut machine = machine.clone();
    if machine.possible_cpus.is_empty() {
        machine.possible_cpus = machine.cpu_ids();
    }
    let is_list = |path: &str| {
        let is_in = |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.rfind('/') == Some(0));
        is_in(CPUS) || is_in(NODES)
    };
    for file in files(&machine) {
        let is_wanted = is_list(&file.path) || REPLACED_FILES.contains(&file.path.as_str());
        if is_wanted && !picture.has(&file.path) {
            picture.write(&machine, here, file);
        }
    }
}

/// `/proc/meminfo` with the lines of this system about pools of huge pages, which are real, where the machine has none.
fn with_pools(mut text: String, here: &Tree) -> String {
    let real = here.read_text(MEMINFO).ok().flatten().unwrap_or_default();
    let name = |line: &str| line.split(':').next().map(str::to_owned);
    let known: Vec<Option<String>> = text.lines().map(name).collect();
    for line in real.lines().filter(|line| line.starts_with("Huge") && !known.contains(&name(line))) {
        text += &format!("{line}\n");
    }
    text
}

/// The machine at its start: memory that it does not describe is free.
fn started(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    for node in machine.nodes.values_mut() {
        if let (Some(total), None) = (node.memory_total(), node.size_of("MemFree")) {
            let value = MeminfoValue::Size(total);
            node.meminfo.push(MeminfoField { name: "MemFree".to_owned(), value });
        }
    }
    machine
}

/// The files that the machine's kernel would write.
fn written(machine: &Machine, here: &Tree, picture: &mut Picture) {
    for file in files(&started(machine)) {
        // The kernel has a link where `files` has a folder with this file.
        if let Some((folder, name)) = initiator(&file.path) {
            picture.add(format!("{folder}/{name}"), Content::Link(format!("../../../{name}")));
        } else {
            picture.write(machine, here, file);
        }
    }
    for (id, found) in &machine.nodes {
        // As at the start of the system.
        let counts =
            "numa_hit 0\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 0\n";
        picture.add(of_node(*id, "numastat"), Content::Text(counts.into()));
        for cpu in found.cpus.iter() {
            picture.add(of_node(*id, &format!("cpu{cpu}")), Content::Link(format!("../../cpu/cpu{cpu}")));
            picture.add(format!("{CPUS}/cpu{cpu}/node{id}"), Content::Link(format!("../../node/node{id}")));
        }
    }
}

/// The folder of initiators and the node's name, where the path is that of an initiator's file.
fn initiator(path: &str) -> Option<(&str, &str)> {
    let (folder, name) = path.strip_prefix(NODES)?.strip_suffix("/cpulist")?.rsplit_once('/')?;
    let folder = folder.ends_with("/initiators").then(|| &path[..NODES.len() + folder.len()])?;
    Some((folder, name))
}

/// The lists of devices, which are links.
fn devices(machine: &Machine, picture: &mut Picture) {
    for cpu in machine.cpus.keys() {
        let target = format!("../../..{}/cpu{cpu}", CPUS.trim_start_matches("/sys"));
        picture.add(format!("/sys/bus/cpu/devices/cpu{cpu}"), Content::Link(target));
    }
    for id in machine.nodes.keys() {
        let target = format!("../../..{}", node(*id).trim_start_matches("/sys"));
        picture.add(format!("/sys/bus/node/devices/node{id}"), Content::Link(target));
    }
}

#[cfg(test)]
mod tests;
