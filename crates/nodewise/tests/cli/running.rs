//! Verbs that change the running system: what they show of other machines, and what they refuse.

use crate::nodewise::run;

const MACHINE: &str = "2x(2c 8G huge=2M:64)";

#[test]
fn pools_of_another_machine_are_shown_in_three_forms_that_agree() {
    let text = run(&["hugepages", "--machine", MACHINE]).ok();
    assert!(text.starts_with("Huge pages  256 MiB in pools, 256 MiB of it free\n"), "{text}");
    let json = run(&["hugepages", "--json", "--machine", MACHINE]).ok_json();
    assert_eq!(json["schema"], "nodewise.hugepages/1");
    let csv = run(&["hugepages", "--csv", "--machine", MACHINE]).ok();
    assert_eq!(csv.lines().count(), 3, "{csv}");
    for (line, pool) in csv.lines().skip(1).zip(json["pools"].as_array().unwrap()) {
        let node = &pool["node"];
        assert!(line.starts_with(&format!("{node},2097152,64,64,")), "{line}");
    }
}

#[test]
fn pools_of_another_machine_are_not_set() {
    for words in [&["hugepages", "set", "0=1"][..], &["hugepages", "undo"][..]] {
        let refused = run(&[words, &["--machine", MACHINE]].concat());
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("on the running system only"), "{}", refused.stderr);
    }
}

#[test]
fn a_journal_without_a_change_has_nothing_to_restore() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let words = ["hugepages", "undo", "--journal", journal.to_str().unwrap()];
    let refused = run(&words);
    assert_eq!(refused.code, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("nothing to restore"), "{}", refused.stderr);
    assert!(!journal.exists(), "looking writes nothing");
    std::fs::write(&journal, "something else\n").unwrap();
    let refused = run(&words);
    assert!(refused.stderr.contains("line 1 is \"something else\""), "{}", refused.stderr);
}

#[test]
fn pools_of_every_boot_are_written_and_taken_back() {
    let root = tempfile::tempdir().unwrap();
    let grub = root.path().join("etc/default/grub");
    std::fs::create_dir_all(root.path().join("etc/tmpfiles.d")).unwrap();
    std::fs::create_dir_all(grub.parent().unwrap()).unwrap();
    let before = "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX=\"quiet\"\n";
    std::fs::write(&grub, before).unwrap();
    let persist = |words: &[&str]| {
        let own = ["hugepages", "persist", "--machine", MACHINE, "--root", root.path().to_str().unwrap()];
        run(&[&own, words].concat())
    };
    let undo = || run(&["hugepages", "undo", "--boot", "--root", root.path().to_str().unwrap()]).ok();
    let with = |pools: &str| format!("GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX=\"quiet {pools}\"\n");
    let shown = persist(&["1=7", "--dry-run", "--json"]).ok_json();
    assert_eq!((&shown["schema"], &shown["is_dry"]), (&"nodewise.hugepages-boot/1".into(), &true.into()));
    assert!(shown["files"][0]["diff"].as_str().unwrap().contains("hugepages=1:7"), "{shown}");
    assert_eq!(std::fs::read_to_string(&grub).unwrap(), before);
    // The pools as they are now.
    let text = persist(&[]).ok();
    assert!(text.contains("kept as") && text.contains("reboot"), "{text}");
    assert_eq!(std::fs::read_to_string(&grub).unwrap(), with("hugepagesz=2M hugepages=0:64,1:64"));
    persist(&["1=7"]).ok();
    assert_eq!(std::fs::read_to_string(&grub).unwrap(), with("hugepagesz=2M hugepages=1:7"));
    undo();
    undo();
    assert_eq!(std::fs::read_to_string(&grub).unwrap(), before);
    persist(&["total=10", "--through=systemd"]).ok();
    let conf = root.path().join("etc/tmpfiles.d/nodewise-hugepages.conf");
    let lines = std::fs::read_to_string(&conf).unwrap();
    assert!(lines.ends_with("node1/hugepages/hugepages-2048kB/nr_hugepages - - - - 5\n"), "{lines}");
    undo();
    assert!(!conf.exists());
    let undo = ["hugepages", "undo", "--boot", "--root", root.path().to_str().unwrap()];
    let nothing = run(&undo);
    assert_eq!(nothing.code, Some(3), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("nothing to restore: no boot file"), "{}", nothing.stderr);
    let others = run(&[&undo[..], &["--machine", MACHINE]].concat());
    assert_eq!(others.code, Some(2), "{}", others.stderr);
    assert!(others.stderr.contains("boot files are changed on this system"), "{}", others.stderr);
    // The kernels of the image count, not the one of this system.
    let modules = root.path().join("lib/modules");
    std::fs::create_dir_all(modules.join("6.12.1")).unwrap();
    persist(&["1=7", "--dry-run"]).ok();
    std::fs::create_dir_all(modules.join("5.15.0-91-generic")).unwrap();
    let old = persist(&["1=7"]);
    assert_eq!(old.code, Some(3), "{}", old.stderr);
    assert!(old.stderr.contains("Linux 5.15.0-91-generic takes no numbers per node"), "{}", old.stderr);
    persist(&["1=7", "--through=systemd", "--dry-run"]).ok();
    let refused = persist(&["3=1"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let live_only = run(&["hugepages", "persist", "0=1", "--machine", MACHINE]);
    assert_eq!(live_only.code, Some(2), "{}", live_only.stderr);
}

#[test]
fn a_migration_needs_a_process_and_nodes() {
    let check = |words: &[&str], code: i32, part: &str| {
        let refused = run(words);
        assert_eq!(refused.code, Some(code), "{words:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(part), "{words:?}: {}", refused.stderr);
    };
    check(&["migrate"], 2, "PID|NAME");
    check(&["migrate", "1"], 2, "--to");
    check(&["migrate", "1", "--to=1", "--machine", MACHINE], 2, "--machine has no meaning");
    check(&["migrate", "1", "--to=1", "--rate=1K/s"], 2, "1M/s or more");
    check(&["migrate", "1", "--to=1", "--undo=x"], 2, "--undo");
}

#[test]
fn shared_memory_is_listed_and_other_files_are_refused() {
    let text = run(&["shm", "list"]).ok();
    assert!(text.starts_with("System V segments"), "{text}");
    assert!(text.contains("\nFile systems in memory"), "{text}");
    assert_eq!(run(&["shm", "list", "--json"]).ok_json()["schema"], "nodewise.shm/1");
    let refused = run(&["shm", "show", "/proc/version"]);
    assert_eq!(refused.code, Some(3));
    assert!(refused.stderr.contains("is not on tmpfs or hugetlbfs"), "{}", refused.stderr);
}
