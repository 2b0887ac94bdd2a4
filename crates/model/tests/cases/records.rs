//! Every recorded case has its test.
//!
//! The records are in `data/kernel-cases`.

use std::fs;
use std::path::{Path, PathBuf};

/// The names of all tests of this program: functions behind `#[test]`.
fn tests() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let files =
        fs::read_dir(folder).expect("the tests are there").map(|entry| entry.expect("it is listed").path());
    let texts: Vec<String> = files.map(|path| fs::read_to_string(path).expect("it is text")).collect();
    let behind = texts.iter().flat_map(|text| text.split("#[test]\n").skip(1));
    let name = |text: &str| Some(text.trim_start().strip_prefix("fn ")?.split_once('(')?.0.to_owned());
    behind.filter_map(name).collect()
}

/// `09-local` as `case_09_local`.
fn test_of(id: &str) -> String {
    format!("case_{}", id.replace('-', "_"))
}

#[test]
fn every_recorded_case_is_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/kernel-cases");
    let files =
        fs::read_dir(folder).expect("it is a folder").map(|entry| entry.expect("it is listed").path());
    let files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    assert!(files.len() >= 34, "{} cases", files.len());
    let tests = tests();
    for path in files {
        let id = path.file_stem().and_then(|stem| stem.to_str()).expect("it has a plain name");
        let text = fs::read_to_string(&path).expect("it is text");
        assert!(text.contains(&format!("\"id\": \"{id}\"")), "{id} has another id inside");
        assert!(tests.contains(&test_of(id)), "no test {} for case {id}", test_of(id));
    }
}
