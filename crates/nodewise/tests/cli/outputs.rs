//! Every option that names a file to be written: whether it can be is found out before there is anything to
//! lose, and what was found is printed whatever becomes of the file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::nodewise::{Ran, command, live, missing, output};
use crate::sandbox::{Public, is_root};

/// A command with an option that names a file.
#[derive(Clone)]
struct Case {
    /// Its words; `FILE` is the file, `FOLDER` a folder of the test's own.
    words: Vec<&'static str>,
    /// The ending that the name of the file needs.
    ending: &'static str,
    /// Whether the command prints what it found beside the file.
    prints: bool,
}

/// Small enough that nothing has to be waited for.
const SMALL: [&str; 4] = ["--quick", "--size=1M", "--huge=never", "--seed=1"];

/// The file that the programs of the cases make: a sign that something was run.
const MARK: &str = "ran";

/// A program that leaves the sign.
const LEAVES_MARK: [&str; 3] = ["sh", "-c", "echo >> FOLDER/ran"];

/// All verbs with all options that write a file, as far as this machine can run them.
fn cases() -> Vec<Case> {
    let case = |groups: &[&[&'static str]], ending, prints| Case { words: groups.concat(), ending, prints };
    let measured = |verb: &[&'static str]| case(&[verb, &SMALL, &["--svg", "FILE"]], "", true);
    let sized = |verb: &[&'static str]| {
        case(&[verb, &["--quick", "--huge=never", "--seed=1", "--svg", "FILE"]], "", true)
    };
    let suite = ["compare", "--suite", "FOLDER/suite.toml", "--runs=1"];
    let saved = ["compare", "--before", "FOLDER/saved.json", "--after", "FOLDER/saved.json"];
    let mut cases = vec![
        measured(&["latency"]),
        sized(&["latency", "--sweep", "--sizes=16K"]),
        sized(&["latency", "--table", "--sizes=2K"]),
        measured(&["bandwidth", "--matrix"]),
        case(&[&["bandwidth", "--file", "--quick", "--size=1M", "--seed=1", "--svg", "FILE"]], "", true),
        measured(&["io", "FOLDER/data"]),
        case(&[&suite, &["--save", "FILE"]], "", true),
        case(&[&suite, &["--placements=default,localalloc", "--svg", "FILE"]], "", true),
        case(&[&saved, &["--svg", "FILE"]], "", true),
        case(
            &[&["tune", "--runs=1", "--placement=localalloc", "--journal", "FILE", "--"], &LEAVES_MARK],
            "",
            true,
        ),
        case(
            &[&["tune", "--runs=1", "--placement=localalloc", "--svg", "FILE", "--"], &LEAVES_MARK],
            "",
            true,
        ),
        case(&[&["record", "-o", "FILE", "--force", "--every=1s", "--"], &LEAVES_MARK], "", false),
        case(&[&["maps", "SELF", "--svg", "FILE"]], "", true),
        case(&[&["show", "--svg", "FILE"]], "", false),
        case(&[&["simulate", "jvm", "--svg", "FILE"]], "", false),
        case(&[&["capture", "-o", "FILE", "--force"]], ".tar", false),
        case(&[&["capture", "-o", "FILE", "--force"]], ".json", false),
    ];
    if live().online_cpus().len() > 1 {
        cases.push(measured(&["latency", "--loaded", "--mix=read", "--pauses=0"]));
        cases.push(case(&[&["c2c", "--quick", "--seed=1", "--svg", "FILE"]], "", true));
    }
    if cfg!(feature = "png") {
        let as_png = |word: &&'static str| if *word == "--svg" { "--png" } else { word };
        let drawn = cases.iter().filter(|case| case.words.contains(&"--svg"));
        let twins: Vec<Case> = drawn
            .map(|case| Case { words: case.words.iter().map(as_png).collect(), ..case.clone() })
            .collect();
        cases.extend(twins);
    }
    cases
}

/// Makes the files for the cases: a suite whose benchmark leaves a mark, a session of it, and a data file.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let suite = format!(
        "title = \"tiny\"\n[[benchmark]]\nname = \"mark\"\ncommand = \"echo >> {path}/{MARK}\"\nthreads = [1]\n"
    );
    fs::write(folder.path().join("suite.toml"), suite).unwrap();
    let (suite, saved) = (format!("{path}/suite.toml"), format!("{path}/saved.json"));
    let ran = output(&mut command(["compare", "--suite", &suite, "--runs=1", "--save", &saved]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    fs::remove_file(folder.path().join(MARK)).unwrap();
    fs::write(folder.path().join("data"), vec![1; 1 << 20]).unwrap();
    folder
}

/// The words of a case with this file.
fn words(case: &Case, folder: &Path, file: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let file = file.display().to_string();
    let own = std::process::id().to_string();
    let fill = |word: &&str| word.replace("FILE", &file).replace("FOLDER", &folder).replace("SELF", &own);
    case.words.iter().map(fill).collect()
}

/// It has not even begun, and said why.
fn check_refused(case: &Case, folder: &Path, ran: &Ran, cause: &str) {
    let words = case.words.join(" ");
    assert!(ran.stderr.contains(cause), "{words}: expected {cause}: {}", ran.stderr);
    assert_eq!(ran.stdout, "", "{words}: {}", ran.stderr);
    assert_eq!(ran.code, Some(3), "{words}: {}", ran.stderr);
    assert!(!folder.join(MARK).exists(), "{words}: its program has run");
}

#[test]
fn a_file_that_cannot_be_written_is_noticed_before_anything_is_measured() {
    let folder = folder();
    let taken = tempfile::tempdir().unwrap();
    for case in cases() {
        let absent = folder.path().join("no/file").with_extension(case.ending.trim_start_matches('.'));
        let ran = output(&mut command(words(&case, folder.path(), &absent)));
        check_refused(&case, folder.path(), &ran, "no such file or directory");
        let folder_of_that_name = taken.path().join(format!("folder{}", case.ending));
        fs::create_dir_all(&folder_of_that_name).unwrap();
        let ran = output(&mut command(words(&case, folder.path(), &folder_of_that_name)));
        check_refused(&case, folder.path(), &ran, "is a directory");
    }
    assert!(
        fs::read_dir(taken.path()).unwrap().all(|entry| entry.unwrap().path().is_dir()),
        "nothing is left"
    );
}

#[test]
fn a_folder_that_may_not_be_written_to_is_noticed_before_anything_is_measured() {
    if !is_root() {
        return;
    }
    let (public, folder) = (Public::new(), folder());
    let closed = tempfile::tempdir().unwrap();
    for path in [folder.path(), closed.path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for case in cases() {
        let file = closed.path().join(format!("file{}", case.ending));
        let words = words(&case, folder.path(), &file);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = output(&mut public.as_nobody(&words));
        check_refused(&case, folder.path(), &ran, "permission denied");
    }
    assert_eq!(fs::read_dir(closed.path()).unwrap().count(), 0);
}

#[test]
fn figures_are_printed_although_the_disk_is_full_and_the_exit_code_says_so() {
    let folder = folder();
    // A journal is refused where it is not an ordinary file, before anything runs, and so is a recording.
    let grows = |case: &Case| case.words.contains(&"--journal") || case.words[0] == "record";
    for case in cases().iter().filter(|case| !grows(case)) {
        let full = folder.path().join(format!("full{}", case.ending));
        let _ = fs::remove_file(&full);
        std::os::unix::fs::symlink("/dev/full", &full).unwrap();
        let ran = output(&mut command(words(case, folder.path(), &full)));
        let words = case.words.join(" ");
        assert!(ran.stderr.contains("no space left on device"), "{words}: {}", ran.stderr);
        assert_eq!(ran.code, Some(3), "{words}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(!ran.stdout.is_empty(), case.prints, "{words}: {}", ran.stdout);
        assert!(full.is_symlink(), "{words}: what was a link is one");
    }
}

#[test]
fn a_file_that_is_there_is_replaced_and_keeps_its_permissions() {
    let folder = folder();
    for case in cases().iter().filter(|case| !case.words.contains(&"--journal")) {
        let file = folder.path().join(format!("old{}", case.ending));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let ran = output(&mut command(words(case, folder.path(), &file)));
        let words = case.words.join(" ");
        if ran.code != Some(0) {
            assert!(ran.stderr.starts_with("nodewise: "), "{words}: {:?} without a reason", ran.code);
            missing(&format!("{words} works here: {}", ran.stderr));
            continue;
        }
        assert_ne!(fs::read(&file).unwrap(), b"old", "{words}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640, "{words}");
    }
}
