//! Machines to be damaged: their files, and what nodewise makes of them unharmed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nodewise_machine::{Machine, Origin};
use nodewise_source::tree::{Memory, ReadCause, Tree};
use nodewise_source::{Detail, machine_file, sysfs};
use serde_json::Value;

use super::grammar;

/// The content at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    File(Vec<u8>),
    Link(String),
    Folder,
    /// A file that cannot be read.
    Closed,
}

/// Everything below `/`, by path.
pub type Files = BTreeMap<String, Content>;

/// A machine.
pub struct Specimen {
    pub name: String,
    pub files: Files,
    /// The same as a tree.
    pub memory: Memory,
    pub machine: Machine,
    /// Its files that nodewise reads, by their place in the grammar.
    pub targets: Vec<(usize, Vec<String>)>,
}

impl Specimen {
    /// A specimen of these files.
    pub fn new(name: &str, files: Files) -> Self {
        let memory = files.iter().fold(Memory::new(), |memory, (path, content)| put(memory, path, content));
        let machine = load(memory.clone());
        let mut targets: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (path, content) in &files {
            // A text that has another form already, as lists of old kernels with a NUL behind them, proves nothing.
            if let Content::File(bytes) = content {
                if let Some(place) = grammar::place(path).filter(|_| grammar::is_well_formed(path, bytes)) {
                    targets.entry(place).or_default().push(path.clone());
                }
            }
        }
        Self { name: name.to_owned(), files, memory, machine, targets: targets.into_iter().collect() }
    }
}

/// Puts something into a tree, in place of what is there.
pub fn put(memory: Memory, path: &str, content: &Content) -> Memory {
    let memory = memory.without(path);
    match content {
        Content::File(bytes) => memory.file(path, bytes),
        Content::Link(target) => memory.link_to(path, target),
        Content::Folder => memory.directory(path),
        Content::Closed => memory.unreadable(path, ReadCause::System(13)),
    }
}

/// Reads a machine in full.
pub fn load(memory: Memory) -> Machine {
    sysfs::load(&Tree::memory(memory), Origin::Capture("damaged".to_owned()), Detail::Full)
}

/// Everything below `/` of a tree. Links are kept, not followed.
pub fn files_of(tree: &Tree) -> Files {
    let mut files = Files::new();
    let mut open = vec![String::new()];
    while let Some(folder) = open.pop() {
        let names =
            tree.list(if folder.is_empty() { "/" } else { &folder }).ok().flatten().unwrap_or_default();
        for name in names {
            let path = format!("{folder}/{name}");
            let content = if let Ok(Some(target)) = tree.link(&path) {
                Content::Link(target)
            } else if let Ok(Some(_)) = tree.list(&path) {
                open.push(path.clone());
                Content::Folder
            } else {
                tree.read(&path).ok().flatten().map_or(Content::Closed, Content::File)
            };
            files.insert(path, content);
        }
    }
    files
}

/// The facts of a machine by name: the leaves of its machine file, without oddities and origin. What is not known
/// has no leaf; a node without CPUs has an empty one.
pub fn facts(machine: &Machine) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let value: Value = serde_json::from_str(&machine_file::to_json(machine)).unwrap_or_default();
    for (name, value) in value.as_object().into_iter().flatten() {
        if name != "oddities" && name != "origin" {
            flatten(name, value, &mut facts);
        }
    }
    facts
}

fn flatten(name: &str, value: &Value, facts: &mut BTreeMap<String, String>) {
    match value {
        Value::Null => (),
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| flatten(&format!("{name}.{key}"), value, facts))
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                flatten(&format!("{name}[{}]", key_of(item).unwrap_or_else(|| at.to_string())), item, facts);
            }
        }
        Value::String(text) if text.is_empty() && !name.ends_with(".cpus") => (),
        value => {
            facts.insert(name.to_owned(), value.to_string());
        }
    }
}

/// The key that distinguishes an item of a list: a number of its own, or what it is made of.
fn key_of(item: &Value) -> Option<String> {
    let key = |names: &[&str]| -> Option<String> {
        let parts: Option<Vec<String>> =
            names.iter().map(|name| item.get(name).map(Value::to_string)).collect();
        parts.map(|parts| parts.join(","))
    };
    [
        &["id"][..],
        &["target", "class"],
        &["level", "kind", "cpus"],
        &["pci"],
        &["page_size_bytes"],
        &["level"],
    ]
    .into_iter()
    .find_map(key)
    .or_else(|| item.get("names").map(Value::to_string))
}

/// The folder of captures and tables.
pub fn corpus() -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data");
    std::env::var_os("NODEWISE_CORPUS").map_or(data, PathBuf::from)
}

/// The captures of the corpus below a size in bytes when packed, by name, and machines made by hand.
pub fn all(most_bytes: u64) -> Result<Vec<Specimen>> {
    let mut specimens = vec![Specimen::new("two nodes", super::synthetic::two_nodes())];
    for path in paths(&corpus().join("captures"))? {
        if std::fs::metadata(&path)?.len() > most_bytes {
            continue;
        }
        let tree = Tree::open(&path).with_context(|| path.display().to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        specimens.push(Specimen::new(&name, files_of(&tree)));
    }
    Ok(specimens)
}

/// The files in a folder, sorted.
pub fn paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths: std::io::Result<BTreeSet<PathBuf>> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect();
    Ok(paths?.into_iter().collect())
}
