//! The tables of four real machines.

use std::path::{Path, PathBuf};

use nodewise_machine::firmware::{SratEntry, Tables, srat};
use nodewise_source::acpi::{encode, files};

/// The folder of the dumps.
pub fn folder() -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    std::env::var_os("NODEWISE_CORPUS").map_or(data, PathBuf::from).join("acpi")
}

/// The tables of every dump, by the name of its file.
pub fn dumps() -> Vec<(String, Tables)> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), files::from_paths(&[path]).unwrap())).collect()
}

/// Domains of CPUs and of memory, each as often as it is named by an enabled structure.
fn domains(tables: &Tables) -> (Vec<u32>, Vec<u32>) {
    let entries = tables.srat().unwrap().bodies();
    let enabled: Vec<(&SratEntry, u32)> = entries
        .filter_map(|entry| Some((entry, entry.domain_and_flags()?)))
        .filter(|(_, (_, flags))| flags & srat::ENABLED != 0)
        .map(|(entry, (domain, _))| (entry, domain))
        .collect();
    let (memory, cpus): (Vec<_>, Vec<_>) =
        enabled.into_iter().partition(|(entry, _)| matches!(entry, SratEntry::Memory(_)));
    let plain = |list: Vec<(&SratEntry, u32)>| list.into_iter().map(|(_, domain)| domain).collect();
    (plain(cpus), plain(memory))
}

#[test]
fn tables_of_real_machines_are_read_and_written_back() {
    for (name, tables) in dumps() {
        assert_eq!(tables.findings, [], "{name}");
        for table in &tables.tables {
            let mut findings = Vec::new();
            let bytes = encode(table);
            let again = nodewise_source::acpi::decode(&bytes, &mut findings);
            // The checksum of the maker's is right, so it is found again.
            assert_eq!(again.as_ref(), Some(table), "{name}");
            assert_eq!(findings, [], "{name}");
        }
    }
}

#[test]
fn real_machines_are_as_strange_as_they_were_seen() {
    let dumps = dumps();
    let of = |part: &str| dumps.iter().find(|(name, _)| name.contains(part)).map(|(_, tables)| tables);
    if let Some(tables) = of("R820") {
        assert_eq!(tables.slit().unwrap().localities, 5);
        assert_eq!(domains(tables).1.into_iter().max(), Some(4));
    }
    if let Some(tables) = of("H8DGU") {
        let (cpus, memory) = domains(tables);
        assert_eq!(tables.slit().unwrap().localities, 4);
        assert_eq!((cpus.into_iter().max(), memory), (Some(3), vec![0, 0, 0, 3]));
    }
    if let Some(tables) = of("DL360") {
        assert!(tables.slit().is_none() && tables.srat().is_some());
    }
    if let Some(tables) = of("X10DAi") {
        // Room for four domains; three are declared twice, the second time with nothing in them.
        let msct = tables.msct().unwrap();
        assert_eq!((msct.fixed.max_proximity_domains, msct.entries.len()), (3, 4));
    }
}
