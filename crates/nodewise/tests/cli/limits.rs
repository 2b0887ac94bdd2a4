//! With less than a user usually has: what still works does, what does not names cause, limit and mend.

use std::os::unix::fs::PermissionsExt as _;

use crate::nodewise::{a_memory_node, output, run};
use crate::sandbox::{
    ENOSYS, EPERM, Public, can_contain, contained, filtered, is_root, without_get_mempolicy,
};

#[test]
fn an_ordinary_user_can_look_place_and_tune() {
    if !is_root() {
        return;
    }
    let public = Public::new();
    let nobody = |arguments: &[&str]| output(&mut public.as_nobody(arguments));
    let node = format!("--membind={}", a_memory_node());
    let sections = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with(char::is_uppercase))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        sections(&nobody(&["show"]).ok()),
        sections(&run(&["show"]).ok()),
        "an ordinary user sees the same"
    );
    let policy = "cut -d' ' -f2 /proc/self/numa_maps | sort -u | head -1";
    assert_eq!(nobody(&["run", &node, "--", "sh", "-c", policy]).ok(), format!("bind:{}\n", a_memory_node()));
    let study = nobody(&["tune", "--runs=1", "--placement=localalloc", "--json", "true"]).ok();
    assert!(study.contains("\"end\": \"completed\""), "{study}");
    let kept = nobody(&["capture", "-o", "/nodewise-test.tar"]);
    assert_eq!(
        (kept.code, kept.stderr.as_str()),
        (Some(3), "nodewise: cannot write /nodewise-test.tar: permission denied\n")
    );
}

#[test]
fn an_ordinary_user_learns_what_may_not_be_read() {
    if !is_root() {
        return;
    }
    let public = Public::new();
    let folder = tempfile::tempdir().unwrap();
    let (closed, file) = (folder.path().join("closed"), folder.path().join("machine.json"));
    std::fs::create_dir_all(closed.join("sys/devices")).unwrap();
    std::fs::write(&file, "{}").unwrap();
    for (path, mode) in [(folder.path(), 0o755), (&closed, 0), (&file, 0)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut hidden = public.as_nobody(&["run", "no-such-program"]);
    let ran = output(hidden.env("PATH", format!("{}:/usr/bin:/bin", closed.display())));
    let what = "no-such-program is not found: no folder of PATH that this user may look into has it";
    assert_eq!((ran.code, ran.stderr), (Some(127), format!("nodewise: {what}\n")));
    for (path, what) in
        [(&closed, "capture PATH: permission denied"), (&file, "cannot read PATH: permission denied")]
    {
        let path = path.to_str().unwrap();
        let ran = output(&mut public.as_nobody(&["show", "--machine", path]));
        assert_eq!(ran.stderr, format!("nodewise: --machine: {}\n", what.replace("PATH", path)));
        assert_eq!(ran.code, Some(2));
    }
}

#[test]
fn an_ordinary_user_learns_what_a_capture_left_out() {
    if !is_root() {
        return;
    }
    let public = Public::new();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(65534), Some(65534)).unwrap();
    let file = folder.path().join("a.tar");
    let ran = output(&mut public.as_nobody(&["capture", "-o", file.to_str().unwrap()]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mut lines = ran.stderr.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("nodewise: wrote ")), "{}", ran.stderr);
    for line in lines {
        assert!(line.starts_with("nodewise: left out"), "{line}");
    }
    run(&["show", "--machine", file.to_str().unwrap()]).ok();
}

#[test]
fn an_empty_container_still_shows_and_places() {
    if !can_contain() {
        return;
    }
    let node = format!("--membind={}", a_memory_node());
    assert!(output(&mut contained(&["show"])).ok().contains("\nNodes\n"));
    output(&mut contained(&["run", &node, "--", "true"])).ok();
    // Nothing can be written there, so there is no place for a program's output.
    let ran = output(&mut contained(&["tune", "--runs=1", "--placement=localalloc", "true"]));
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
    let text = ran.stdout.replace("\n  ", " ");
    assert!(text.contains("could not be started: no file for its output in /tmp (TMPDIR names another folder): read-only file system"), "{text}");
    let ran = output(&mut contained(&["capture", "-o", "/tmp/a.tar"]));
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(3), "nodewise: cannot write /tmp/a.tar: read-only file system\n")
    );
}

#[test]
fn a_filter_is_named_with_what_lifts_it() {
    if !can_contain() {
        return;
    }
    let node = a_memory_node();
    let membind = format!("--membind={node}");
    for (errno, name) in [(EPERM, "EPERM"), (ENOSYS, "ENOSYS")] {
        let filtered = |arguments: &[&str]| output(&mut filtered(errno, arguments));
        assert!(filtered(&["show"]).ok().contains("\nNodes\n"));
        filtered(&["run", "--", "true"]).ok();
        filtered(&["run", "--physcpubind=all", "--", "true"]).ok();
        let cause =
            format!("set_mempolicy(bind, node {node}): a seccomp filter answers set_mempolicy with {name}; ");
        let mend = "start the container with: docker run --";
        let ran = filtered(&["run", &membind, "--", "true"]);
        assert_eq!(ran.code, Some(125));
        assert!(ran.stderr.contains(&cause) && ran.stderr.contains(mend), "{}", ran.stderr);
        assert!(filtered(&["run", &membind, "--dry-run"]).ok().starts_with("set_mempolicy(MPOL_BIND, node "));
        let placement = format!("--placement=membind={node}");
        let ran = filtered(&["tune", &placement, "true"]);
        assert_eq!(ran.code, Some(3), "{}", ran.stdout);
        assert!(ran.stderr.starts_with(&format!("nodewise: --placement: {cause}")), "{}", ran.stderr);
        // What makes sense here is tried without what is forbidden.
        let ran = filtered(&["tune", "--runs=1", "true"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    }
}

/// `docs/compat.md`, "Blocked calls".
#[test]
fn a_tool_takes_calls_for_blocked_as_its_release_does() {
    if !can_contain() {
        return;
    }
    let pid = std::process::id().to_string();
    let node = a_memory_node().to_string();
    for (errno, release, strict, code) in [
        (EPERM, "2.0.19", "1", 1),
        (EPERM, "2.0.16", "1", 0),
        (ENOSYS, "2.0.19", "1", 1),
        (ENOSYS, "2.0.16", "1", 1),
        (EPERM, "2.0.19", "0", 0),
        (EPERM, "2.0.16", "0", 0),
        (ENOSYS, "2.0.19", "0", 0),
    ] {
        let mut command = without_get_mempolicy(errno, &["migratepages", &pid, &node, &node]);
        command.env("NODEWISE_NUMACTL_COMPAT", release).env("NODEWISE_STRICT_COMPAT", strict);
        let ran = output(&mut command);
        let refused = "numactl: This system does not support NUMA functionality\n";
        let expected = (Some(code), if code == 0 { "" } else { refused });
        assert_eq!((ran.code, ran.stderr.as_str()), expected, "{errno} as {release}, strict: {strict}");
    }
}
