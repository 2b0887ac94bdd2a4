//! Machines that `--machine` names, loaded; except tables of the firmware, which a kernel's model has
//! to turn into one.

use std::path::Path;

use nodewise_machine::printable::visible;
use nodewise_machine::spec::{self, SpecError};
use nodewise_machine::{Machine, Origin};

use crate::import::{self, ImportError};
use crate::machine_file::{self, MachineFileError};
use crate::numactl;
use crate::parse::ParseError;
use crate::smbios::saved as smbios;
use crate::sysfs::{self, Detail};
use crate::tree::format::Format;
use crate::tree::{OpenError, ReadCause, Tree, read_bounded};

/// The values that `--machine` accepts, for messages.
pub const FORMS: &str = "live, a machine file (.json), a capture (a folder, .tar, .tar.gz or .tar.bz2), tables of the firmware (acpi:DIR, dtb:FILE), an output of dmidecode, numactl -H, lscpu or likwid-topology, XML of hwloc, or a spec as \"4x(8c 64G)\"";
/// The largest file that is read: a large archive.
const MOST_BYTES: u64 = 256 << 20;

/// A machine, and the files it was read from, if it was.
#[derive(Debug)]
pub struct Input {
    pub machine: Machine,
    /// Its files; `None` for a machine file and a spec.
    pub tree: Option<Tree>,
}

/// Why a text names no machine. Every message begins with the text itself.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error("{0} does not exist: expected {FORMS}")]
    Missing(String),
    #[error("{0} is empty: expected {FORMS}")]
    Empty(String),
    /// A file of another kind.
    #[error("{path} is {what}: expected {FORMS}")]
    OtherKind {
        path: String,
        /// Its kind: `a PNG image`.
        what: &'static str,
    },
    /// A file that cannot be read.
    #[error("cannot read {path}: {cause}")]
    Unreadable { path: String, cause: String },
    /// A capture that is none.
    #[error("capture {path}: {source}")]
    Capture { path: String, source: OpenError },
    /// A machine file that is none.
    #[error("machine file {path}: {source}")]
    MachineFile { path: String, source: MachineFileError },
    /// An output of dmidecode without memory slots.
    #[error("{path} is an output of dmidecode without memory slots: {why}")]
    NoSlots { path: String, why: String },
    /// An output of numactl --hardware that is cut or changed.
    #[error("{path} is an output of numactl --hardware, line {}: {}", .source.line, .source.sentence())]
    Numactl { path: String, source: ParseError },
    /// An output of another tool whose main part is missing or damaged.
    #[error("{path} is {source}")]
    Import { path: String, source: ImportError },
    /// A spec that is none.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// Reads the machine that a text names.
///
/// # Errors
/// A text that names nothing, and what is wrong with the thing it names.
pub fn load(text: &str, detail: Detail) -> Result<Machine, InputError> {
    open(text, detail).map(|input| input.machine)
}

/// Reads the machine that a text names, and keeps its files open.
///
/// # Errors
/// Those of [`load`].
pub fn open(text: &str, detail: Detail) -> Result<Input, InputError> {
    let path = Path::new(text);
    if text == "live" {
        return Ok(from_tree(Tree::live(), Origin::Live, detail));
    }
    if path.is_dir() {
        return from_capture(text, Tree::open(path), detail);
    }
    if path.exists() {
        return open_file(text, path, detail);
    }
    if text.contains('(') {
        return Ok(Input { machine: spec::machine(text)?, tree: None });
    }
    Err(InputError::Missing(name(text)))
}

fn name(text: &str) -> String {
    visible(text).into_owned()
}

fn from_tree(tree: Tree, origin: Origin, detail: Detail) -> Input {
    Input { machine: sysfs::load(&tree, origin, detail), tree: Some(tree) }
}

fn from_capture(text: &str, tree: Result<Tree, OpenError>, detail: Detail) -> Result<Input, InputError> {
    match tree {
        Ok(tree) => Ok(from_tree(tree, Origin::Capture(text.to_owned()), detail)),
        Err(source) => Err(InputError::Capture { path: name(text), source }),
    }
}

/// Reads a file, which is what its content says, not its name. A pipe is as good as a file.
fn open_file(text: &str, path: &Path, detail: Detail) -> Result<Input, InputError> {
    let bytes = read_bounded(path, MOST_BYTES).map_err(|cause| match cause {
        ReadCause::TooLarge(most) => {
            InputError::Capture { path: name(text), source: OpenError::TooLarge("the file", most) }
        }
        cause => InputError::Unreadable { path: name(text), cause: cause.to_string() },
    })?;
    match Format::from_content(&bytes) {
        Format::Empty => Err(InputError::Empty(name(text))),
        Format::Other(what) => {
            let path = || name(text);
            if let Some(tree) = numactl::tree(&bytes) {
                let tree = tree.map_err(|source| InputError::Numactl { path: path(), source })?;
                return from_capture(text, Ok(tree), detail);
            }
            if let Some(machine) = imported(text, &bytes) {
                return machine;
            }
            if let Some(what) = import::figures(&bytes) {
                return Err(InputError::OtherKind { path: path(), what });
            }
            match smbios::machine(text, &bytes) {
                None => Err(InputError::OtherKind { path: path(), what }),
                Some(Err(why)) => Err(InputError::NoSlots { path: path(), why }),
                Some(Ok(machine)) => Ok(Input { machine, tree: None }),
            }
        }
        Format::Gzip | Format::Bzip2 | Format::Tar => from_capture(text, Tree::from_archive(&bytes), detail),
        Format::Json => {
            if let Some(machine) = imported(text, &bytes) {
                return machine;
            }
            let machine = machine_file::from_json(&String::from_utf8_lossy(&bytes))
                .map_err(|source| InputError::MachineFile { path: name(text), source })?;
            Ok(Input { machine, tree: None })
        }
    }
}

/// The machine in an output of another tool; `None` for other files.
fn imported(text: &str, bytes: &[u8]) -> Option<Result<Input, InputError>> {
    let machine = import::machine(text, bytes)?;
    let error = |source| InputError::Import { path: name(text), source };
    Some(machine.map(|machine| Input { machine, tree: None }).map_err(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(text: &str, message: &str) {
        assert_eq!(load(text, Detail::Full).unwrap_err().to_string(), message);
    }

    /// A file or folder of this name in a folder of its own, and its path.
    fn with<T>(file: &str, contents: &[u8], check: impl FnOnce(&str) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        std::fs::write(&path, contents).unwrap();
        check(path.to_str().unwrap())
    }

    #[test]
    fn every_form_is_loaded() {
        let machine = load("2x(4c 8G)", Detail::Full).unwrap();
        assert_eq!(machine.nodes.len(), 2);
        with("a.json", machine_file::to_json(&machine).as_bytes(), |path| {
            assert_eq!(load(path, Detail::Overview).unwrap(), machine);
        });
        let hardware = b"$ numactl -H\navailable: 1 nodes (2)\nnode 2 cpus: 0\nnode 2 size: 64 MB\n";
        with("h.txt", hardware, |path| {
            let input = open(path, Detail::Full).unwrap();
            assert_eq!(input.machine.memory_of(nodewise_machine::NodeId::new(2)).unwrap().mib(), 64);
            assert!(input.tree.is_some());
        });
        with("l.json", b"{ \"lscpu\": [{\"field\": \"On-line CPU(s) list:\", \"data\": \"0-3\"}]}", |path| {
            assert_eq!(load(path, Detail::Full).unwrap().cpus.len(), 4);
        });
        with("a.txt", b"Memory Device\n\tSize: 4 GB\n\tLocator: CPU1_DIMM_A1\n", |path| {
            let machine = load(path, Detail::Full).unwrap();
            assert_eq!(machine.memory_slots.slots[0].socket.as_deref(), Some("1"));
            assert_eq!(machine.origin, Origin::Firmware(path.to_owned()));
        });
        assert_eq!(load("live", Detail::Overview).unwrap().origin, Origin::Live);
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("machine/sys/devices/system/node/node3")).unwrap();
        let text = folder.path().to_str().unwrap();
        let input = open(text, Detail::Full).unwrap();
        assert_eq!(input.machine.origin, Origin::Capture(text.to_owned()));
        assert_eq!(input.machine.nodes.len(), 1);
        assert!(input.tree.unwrap().exists("/sys/devices/system/node/node3"));
    }

    #[test]
    fn a_file_with_a_parenthesis_in_its_name_is_a_file() {
        let machine = load("(1c 1G)", Detail::Full).unwrap();
        with("m(1).json", machine_file::to_json(&machine).as_bytes(), |path| {
            assert_eq!(load(path, Detail::Full).unwrap(), machine);
        });
    }

    #[test]
    fn what_names_no_machine_is_told_what_would() {
        refuse("rpi5.tar", &format!("rpi5.tar does not exist: expected {FORMS}"));
        refuse("", &format!("\"\" does not exist: expected {FORMS}"));
        let error = load("4x(8c 64Q)", Detail::Full).unwrap_err().to_string();
        assert!(error.contains("column"), "{error}");
        with("x.png", b"\x89PNG\r\n", |path| {
            refuse(path, &format!("{path} is a PNG image: expected {FORMS}"))
        });
        with("x", b"", |path| refuse(path, &format!("{path} is empty: expected {FORMS}")));
        with("x", b"# dmidecode 3.4\n/dev/mem: Permission denied\n", |path| {
            let why = "\"/dev/mem: Permission denied\" (run dmidecode as root)";
            refuse(path, &format!("{path} is an output of dmidecode without memory slots: {why}"));
        });
        with("x", b"available: 1 nodes (0)\nnode 0 size: 64 KB\n", |path| {
            let why = "line 2: expected a number of MB, or <not available>, found \"node 0 size: 64 KB\"";
            refuse(path, &format!("{path} is an output of numactl --hardware, {why}"));
        });
        with("x", b"Architecture: x86_64\nCPU(s): 4\n", |path| {
            let why = "line 2: expected a line \"On-line CPU(s) list\", found nothing";
            refuse(path, &format!("{path} is an output of lscpu, {why}"));
        });
        with("x", b"Intel(R) Memory Latency Checker - v3.9\n", |path| {
            let what = "an output of Intel Memory Latency Checker, which has measured figures and no machine (nodewise \
                        latency --from and bandwidth --from show them)";
            refuse(path, &format!("{path} is {what}: expected {FORMS}"));
        });
        with("x", b"hello", |path| refuse(path, &format!("{path} is a text file: expected {FORMS}")));
    }

    #[test]
    fn what_is_wrong_inside_is_told() {
        with("x.json", b"{\"schema\":\"nodewise.weather/1\"}", |path| {
            refuse(
                path,
                &format!(
                    "machine file {path}: its schema is \"nodewise.weather/1\", and this nodewise reads nodewise.machine/1"
                ),
            );
        });
        with("x.tar.gz", b"\x1f\x8b\x08\x00", |path| {
            let error = load(path, Detail::Full).unwrap_err().to_string();
            assert!(error.starts_with(&format!("capture {path}: the archive is damaged: ")), "{error}");
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        refuse(
            path,
            &format!("capture {path}: it holds neither sys/ nor proc/, so it is not a capture of a machine"),
        );
    }
}
