//! Damages to the bytes of archives.

use anyhow::Result;
use nodewise_machine::{Machine, Origin};
use nodewise_source::capture::{Capture, Identity, Overwrite};
use nodewise_source::tree::Tree;
use nodewise_source::{Detail, sysfs};
use nodewise_stats::random::Random;

use super::captures::{guarded, new_oddities, same_facts, silent};
use super::kinds::Damage;
use super::specimen::{Content, Files, Specimen, files_of};
use super::{Class, Verdict};

/// Kinds of damage that bytes can have.
const DAMAGES: [Damage; 6] = [
    Damage::BitFlipped,
    Damage::ByteReplaced,
    Damage::CutOff,
    Damage::CutOut,
    Damage::Zeroed,
    Damage::LineDoubled,
];

/// An archive, and what it holds.
pub struct Archive {
    name: String,
    bytes: Vec<u8>,
    is_compressed: bool,
    machine: Machine,
    files: Files,
}

/// The captures of specimens as archives of every form.
pub fn all(specimens: &[Specimen], most_files: usize) -> Result<Vec<Archive>> {
    let folder = tempfile::tempdir()?;
    let mut archives = Vec::new();
    for specimen in specimens.iter().filter(|specimen| specimen.files.len() <= most_files) {
        let capture = Capture::from_tree(&Tree::memory(specimen.memory.clone()), Identity::Without);
        for ending in ["tar", "tar.gz", "tar.bz2"] {
            let path = folder.path().join(format!("capture.{ending}"));
            capture.write(&path, Overwrite::Replace)?;
            let bytes = std::fs::read(&path)?;
            let tree = Tree::from_archive(&bytes)?;
            archives.push(Archive {
                name: format!("{} as {ending}", specimen.name),
                bytes,
                is_compressed: ending != "tar",
                machine: load(&tree),
                files: files_of(&tree),
            });
        }
    }
    Ok(archives)
}

fn load(tree: &Tree) -> Machine {
    sysfs::load(tree, Origin::Capture("damaged".to_owned()), Detail::Full)
}

/// Damages an archive in one place, and judges.
pub fn play(archive: &Archive, random: &mut Random) -> Verdict {
    let damage = DAMAGES[random.index(DAMAGES.len())];
    let bytes = damage.of_bytes(&archive.bytes, random);
    let class = match guarded(|| judge(archive, &bytes)) {
        Ok(class) => class,
        Err(why) => return Verdict { class: Class::Crashed, damage: None, detail: why },
    };
    let detail =
        if class.is_failure() { format!("{}: {}", archive.name, damage.name()) } else { String::new() };
    Verdict { class, damage: None, detail }
}

fn judge(archive: &Archive, bytes: &[u8]) -> Class {
    let Ok(tree) = Tree::from_archive(bytes) else { return Class::Refused };
    let machine = load(&tree);
    let is_noticed = !new_oddities(&archive.machine, &machine).is_empty();
    match same_facts(&archive.machine, &machine) {
        true if is_noticed => Class::Named,
        true => Class::Unchanged,
        false if is_noticed => Class::Named,
        // Checksums cover all that is compressed.
        false if archive.is_compressed => Class::Silent,
        false => uncompressed(archive, &tree, &machine),
    }
}

/// The contents of files have no checksum in a plain archive: each file that changed is judged for itself.
fn uncompressed(archive: &Archive, tree: &Tree, machine: &Machine) -> Class {
    let after = files_of(tree);
    let paths = archive.files.keys().chain(after.keys());
    let changed = paths.filter(|path| archive.files.get(*path) != after.get(*path));
    let judged = changed.map(|path| {
        let content: Option<&Content> = after.get(path);
        silent(&archive.files, &after, path, content, &archive.machine, machine)
    });
    judged.max().unwrap_or(Class::Silent)
}
