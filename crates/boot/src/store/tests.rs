use super::*;
use std::fs::{self, File};
use std::time::Duration;

#[test]
fn only_backups_of_this_file_are_taken_for_one() {
    let check = |name: &str, expected: bool| {
        assert_eq!(Named::from_name(name, "cmdline.txt").is_some(), expected, "{name}")
    };
    check("cmdline.txt.20261121-134000.0123456789abcdef.nodewise", true);
    check("cmdline.txt.20261121-134000.0123456789abcdef-2.nodewise", true);
    check("cmdline.txt.20261121-134000.0123456789abcdef-x.nodewise", false);
    check("cmdline.txt.20261121-134000.0123456789abcdef-2.absent.nodewise", true);
    check("cmdline.txt.20261121-134000.0123456789abcdef", false);
    check("cmdline.txt.bak.nodewise", false);
    check("cmdline.20261121-134000.0123456789abcdef.nodewise", false);
}

#[test]
fn the_newest_backup_comes_first_also_of_one_second() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let hash = "0123456789abcdef";
    let newest_first =
        ["20261121-134001.H", "20261121-134000.H-10", "20261121-134000.H-2", "20261121-134000.H"];
    let names = newest_first.map(|rest| format!("a.{}.nodewise", rest.replace('H', hash)));
    for name in &names {
        fs::write(folder.path().join(name), "").expect("written");
    }
    let root = Root::open(folder.path()).expect("it is there");
    let place = root.resolve("/a").expect("readable").expect("the folder is there");
    let found: Vec<String> = backups(&place).expect("readable").into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, names);
}

/// Files of an image, `old` at first and `new` when they are changed.
const FILES: [&str; 3] = ["/etc/a", "/etc/b", "/etc/c"];

/// An image with these files.
struct Image {
    folder: tempfile::TempDir,
    root: Root,
}

impl Image {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder of our own");
        fs::create_dir(folder.path().join("etc")).expect("made");
        for path in FILES {
            fs::write(folder.path().join(&path[1..]), "old").expect("written");
        }
        let root = Root::open(folder.path()).expect("it is there");
        Self { folder, root }
    }

    /// Changes the files; gives what is needed to take that back.
    fn changed() -> (Self, Vec<Written>, Plan) {
        let image = Self::new();
        let written = apply(&image.root, &plan(), &stamp()).expect("written");
        let edits = FILES.map(|path| edit(path, "new", "old")).to_vec();
        let backups = written.iter().map(|done| done.backup.clone()).collect();
        let plan = Plan { edits, backups, ..Plan::default() };
        (image, written, plan)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.folder.path().join(&path[1..]), text).expect("written");
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.folder.path().join(&path[1..])).expect("it was there");
    }

    /// Keeps every nodewise away from the files.
    fn lock(&self) -> File {
        let folder = File::open(self.folder.path().join("etc")).expect("it is there");
        flock(&folder, FlockOperation::NonBlockingLockExclusive).expect("nobody has it");
        folder
    }

    /// The contents of the files, and how many backups there are.
    #[track_caller]
    fn check(&self, expected: [&str; 3], backups: usize) {
        let texts = FILES.map(|path| fs::read_to_string(self.folder.path().join(&path[1..])).expect("there"));
        assert_eq!(texts, expected);
        assert_eq!(self.root.list("/etc").expect("readable").len(), FILES.len() + backups);
    }
}

fn edit(path: &str, before: &str, after: &str) -> Edit {
    Edit { path: path.to_owned(), before: before.to_owned(), after: after.to_owned() }
}

fn plan() -> Plan {
    Plan { edits: FILES.map(|path| edit(path, "old", "new")).to_vec(), ..Plan::default() }
}

fn stamp() -> Stamp {
    Stamp::since_1970(Duration::ZERO)
}

#[test]
fn files_before_one_that_fails_are_restored() {
    let image = Image::new();
    image.write("/etc/c", "of somebody else");
    let error = apply(&image.root, &plan(), &stamp()).expect_err("it changed").to_string();
    assert_eq!(error, "/etc/c was changed in the meantime: try again");
    image.check(["old", "old", "of somebody else"], 0);
    image.remove("/etc/c");
    let error = apply(&image.root, &plan(), &stamp()).expect_err("it is gone").to_string();
    assert_eq!(error, "cannot write /etc/c: no such file or directory; all files are as they were");
    image.write("/etc/c", "old");
    image.check(["old"; 3], 0);
}

#[test]
fn every_file_that_can_be_restored_is_and_the_others_are_named() {
    let (image, written, _) = Image::changed();
    image.remove(&written[2].backup);
    image.remove(&written[1].backup);
    let why = BootError::Changed { path: "/etc/d".to_owned() };
    assert_eq!(
        restore_all(&image.root, &written, why).to_string(),
        "/etc/d was changed in the meantime: try again; \
         /etc/c could not be restored (no such file or directory) and is the new one; \
         /etc/b could not be restored (no such file or directory) and is the new one"
    );
    image.check(["old", "new", "new"], 0);
}

#[test]
fn nothing_is_taken_back_where_one_file_has_changed() {
    let (image, _, plan) = Image::changed();
    image.write("/etc/c", "of somebody else");
    let error = take_back(&image.root, &plan).expect_err("it changed");
    assert!(matches!(error, BootError::Changed { .. }), "{error}");
    image.check(["new", "new", "of somebody else"], 3);
    image.remove("/etc/c");
    let error = take_back(&image.root, &plan).expect_err("it is gone").to_string();
    assert_eq!(error, "cannot write /etc/c: no such file or directory; all files are as they were");
    image.write("/etc/c", "new");
    image.check(["new"; 3], 3);
}

#[test]
fn what_was_taken_back_before_a_failure_is_named() {
    let (image, written, plan) = Image::changed();
    image.remove(&written[2].backup);
    assert_eq!(
        take_back(&image.root, &plan).expect_err("there is no backup").to_string(),
        "cannot write /etc/c: no such file or directory; taken back before that: /etc/a, /etc/b"
    );
    image.check(["old", "old", "new"], 0);
    let (image, written, plan) = Image::changed();
    image.remove(&written[0].backup);
    assert_eq!(
        take_back(&image.root, &plan).expect_err("there is no backup").to_string(),
        "cannot write /etc/a: no such file or directory; all files are as they were"
    );
    image.check(["new"; 3], 2);
}

#[test]
fn nothing_is_written_while_another_nodewise_does() {
    let (image, written, undo) = Image::changed();
    let _lock = image.lock();
    let check = |error: BootError| assert!(matches!(error, BootError::Busy { .. }), "{error}");
    let back = Plan { edits: undo.edits.clone(), ..Plan::default() };
    check(apply(&image.root, &back, &stamp()).expect_err("it is busy"));
    check(take_back(&image.root, &undo).expect_err("it is busy"));
    check(keep_text(&image.root, "/etc/text", "a", "b", &stamp()).expect_err("it is busy"));
    let why = BootError::Changed { path: "/etc/d".to_owned() };
    let error = restore_all(&image.root, &written[..1], why).to_string();
    let expected =
        "; /etc/a could not be restored (another nodewise is changing files beside it) and is the new one";
    assert!(error.ends_with(expected), "{error}");
    image.check(["new"; 3], 3);
}

#[test]
fn a_text_is_kept_beside_files_that_have_none_of_its_name() {
    let image = Image::new();
    let kept = keep_text(&image.root, "/etc/text", "a", "b", &stamp()).expect("written");
    let found = |new| kept_text(&image.root, "/etc/text", new).expect("readable");
    // Where the new text is in place, and where it never was.
    for new in ["b", "a"] {
        assert_eq!(found(new), Some(("a".to_owned(), kept.clone())));
    }
    assert_eq!(found("c"), None);
    forget(&image.root, &kept).expect("removed");
    assert_eq!(found("b"), None);
}
