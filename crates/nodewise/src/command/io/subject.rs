//! Subjects that a user names, or all that there are: devices and files, each with its node.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use nodewise_machine::printable::quote;
use nodewise_machine::{DeviceClass, DeviceRef};
use nodewise_measure::io::{DeviceKind, DeviceReport, Home, Target};

use crate::input::Input;

/// A device or a file.
pub struct Subject {
    /// The facts that are known before anything is read.
    pub report: DeviceReport,
    /// The path to read; `None` for a subject that has no blocks.
    pub path: Option<PathBuf>,
}

/// The devices and files of these words; without words all devices of the machine.
pub fn find(words: &[String], input: &Input) -> Vec<Subject> {
    let named = words.iter().map(|word| Subject::named(word, input));
    let mut subjects: Vec<Subject> = if words.is_empty() { all(input) } else { named.collect() };
    let mut seen = Vec::new();
    subjects.retain(|subject| {
        let same = (subject.report.kind, subject.report.name.clone(), subject.path.clone());
        let new = !seen.contains(&same);
        seen.push(same);
        new
    });
    subjects
}

/// Disks, network interfaces and RDMA devices.
fn all(input: &Input) -> Vec<Subject> {
    let classes = [DeviceClass::Block, DeviceClass::Net, DeviceClass::Infiniband];
    let names = |class| {
        let devices = input.machine.devices.iter();
        devices.flat_map(|device| &device.names).filter(move |name| name.class == class)
    };
    let of_class = |class| names(class).map(move |name| Subject::device(class, &name.name, input));
    classes.into_iter().flat_map(of_class).collect()
}

impl Subject {
    /// Finds the subject that a word names: `net:eth0`, a path, or a kernel name.
    fn named(word: &str, input: &Input) -> Self {
        if DeviceRef::starts(word) {
            return match word.parse() {
                Ok(DeviceRef::Net(name)) => Self::device(DeviceClass::Net, &name, input),
                Ok(DeviceRef::Infiniband(name)) => Self::device(DeviceClass::Infiniband, &name, input),
                Ok(DeviceRef::Block(name)) => Self::device(DeviceClass::Block, &name, input),
                Ok(DeviceRef::File(path)) => Self::file(&path, input),
                Ok(DeviceRef::Ip(_) | DeviceRef::Gpu(_) | DeviceRef::Pci(_)) => Self::missing(
                    word,
                    format!("{} has no blocks: expected block:, net:, ib: or a path", quote(word)),
                ),
                Err(error) => Self::missing(word, error.to_string()),
            };
        }
        let path = Path::new(word);
        if word.contains('/') || path.exists() {
            return Self::file(path, input);
        }
        let names = || input.machine.devices.iter().flat_map(|device| &device.names);
        let readable = [DeviceClass::Block, DeviceClass::Net, DeviceClass::Infiniband];
        match names().find(|known| known.name == word && readable.contains(&known.class)) {
            Some(known) => Self::device(known.class, word, input),
            None => {
                let devices: Vec<String> =
                    all(input).into_iter().map(|subject| subject.report.name).collect();
                let has = if devices.is_empty() { "no devices".to_owned() } else { devices.join(", ") };
                let why = format!("{} is neither a file nor a device: this machine has {has}", quote(word));
                Self::missing(word, why)
            }
        }
    }

    /// A device by its kernel name.
    fn device(class: DeviceClass, name: &str, input: &Input) -> Self {
        let (kind, reference) = match class {
            DeviceClass::Block => (DeviceKind::Block, DeviceRef::Block(name.to_owned())),
            DeviceClass::Infiniband => (DeviceKind::Rdma, DeviceRef::Infiniband(name.to_owned())),
            _ => (DeviceKind::Network, DeviceRef::Net(name.to_owned())),
        };
        let known = input.machine.device(&reference).is_some();
        let home = input.node_of(&reference);
        // What is made by software is not a device of the machine, but a disk anyway.
        let path = (class == DeviceClass::Block).then(|| device_file(name));
        let there = known || path.as_ref().is_some_and(|path| path.exists());
        match home {
            Err(why) if !there => Self::missing(&reference.to_string(), why),
            home => Self::new(reference.to_string(), kind, home, path),
        }
    }

    /// A file, or the file of a block device.
    fn file(path: &Path, input: &Input) -> Self {
        let is_block = fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
        let kind = if is_block { DeviceKind::Block } else { DeviceKind::File };
        let home = input.node_of(&DeviceRef::File(path.to_owned()));
        Self::new(path.to_string_lossy().into_owned(), kind, home, Some(path.to_owned()))
    }

    /// Something to read is opened once, so that what prevents it is said once.
    fn new(
        name: String,
        kind: DeviceKind,
        home: Result<nodewise_machine::NodeId, String>,
        path: Option<PathBuf>,
    ) -> Self {
        let opened = path.as_deref().map(Target::open);
        let (size, refused) = match opened {
            Some(Ok(target)) => (Some(target.size()), None),
            Some(Err(error)) => (None, Some(error.to_string())),
            None => (None, None),
        };
        let home = home.map_or_else(Home::Unknown, Home::Node);
        let (ways, perftest) = (Vec::new(), Vec::new());
        Self { report: DeviceReport { name, kind, home, size, refused, ways, perftest }, path }
    }

    fn missing(word: &str, why: String) -> Self {
        let home = Err(why.clone());
        let mut subject = Self::new(word.to_owned(), DeviceKind::Unknown, home, None);
        subject.report.refused = Some(why);
        subject
    }
}

/// The file of a block device: the kernel writes the slash in a name as an exclamation mark.
fn device_file(name: &str) -> PathBuf {
    Path::new("/dev").join(name.replace('!', "/"))
}
