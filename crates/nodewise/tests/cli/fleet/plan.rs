//! Plans: scripts that a shell reads, played with substitutes for ssh.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use super::recorded::{Recorded, TWO_NODES};
use crate::export::kubernetes::{check, yaml};
use crate::nodewise::{command, output, path, run, without_variables, wrong};

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn every_script_is_one_that_a_shell_reads() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    fs::write(file("hosts.txt"), "web1\nroot@web2\n").unwrap();
    let engines: [&[&str]; 3] = [
        &["--slurm", "n[1-64]", "--option=--account=a b"],
        &["--ssh", &file("hosts.txt"), "--parallel", "8"],
        &["--k8s", "--image", "registry.example.org/nodewise:0.1", "--count", "3"],
    ];
    for (at, words) in engines.iter().enumerate() {
        let plan = file(&at.to_string());
        let ran = run(&[&["fleet", "plan", "-o", &plan, "--run", "r1"], *words].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for entry in fs::read_dir(&plan).unwrap() {
            let script = entry.unwrap().path();
            let is_script = script.extension().is_some_and(|ending| ending == "sh" || ending == "sbatch");
            if is_script {
                let ran = output(without_variables("sh").arg("-n").arg(&script));
                assert_eq!(ran.code, Some(0), "{}: {}", script.display(), ran.stderr);
            }
        }
        let again = run(&[&["fleet", "plan", "-o", &plan], *words].concat());
        assert!(again.code == Some(2) && again.stderr.contains("already"), "{}", again.stderr);
    }
    wrong("fleet", &["plan", "-o", &file("x")], "--slurm");
    wrong(
        "fleet",
        &["plan", "-o", &file("x"), "--k8s", "--image", "a", "--namespace", "A b"],
        "is not a namespace",
    );
    wrong(
        "fleet",
        &["plan", "-o", &file("x"), "--slurm", "p", "--option", "account"],
        "is not an option of sbatch",
    );
    fs::write(file("bad.txt"), "web1\n-oProxyCommand=reboot\n").unwrap();
    wrong("fleet", &["plan", "-o", &file("x"), "--ssh", &file("bad.txt")], "line 2");
}

#[test]
fn hosts_are_surveyed_through_ssh_and_those_that_fail_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let recorded = Recorded { machine: TWO_NODES, host: "any", attempt: 0, slowness: &[1.0, 1.0] };
    // The words of a host are those of the plan and the records of the machine that it stands for.
    let words = recorded.words(folder.path());
    let records: Vec<&str> = words.iter().skip(6).map(String::as_str).collect();
    program(
        &file("nodewise on host"),
        &format!("#!/bin/sh\nexec {} \"$@\" --machine '{TWO_NODES}' {}\n", path(), records.join(" ")),
    );
    program(
        &file("ssh"),
        "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do case $1 in -o) shift;; esac; shift; done\ntarget=$1; shift\n\
         [ \"$target\" = web3 ] && { echo \"ssh: connect to host web3 port 22: No route to host\" >&2; exit 255; }\n\
         exec sh -c \"$*\"\n",
    );
    fs::write(file("hosts.txt"), "web1\nroot@web2\nweb3\nweb4\n").unwrap();
    let plan = file("plan").display().to_string();
    let words =
        ["fleet", "plan", "--ssh", &file("hosts.txt").display().to_string(), "--parallel", "2", "-o", &plan];
    let program = file("nodewise on host").display().to_string();
    run(&[&words[..], &["--run", "r1", "--program", &program]].concat()).ok();
    let mut started = command(["fleet", "run", &plan]);
    started.env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
    let ran = output(&mut started);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("4 of 4 hosts have answered"), "{}", ran.stderr);
    let report: Value = run(&["fleet", "report", &plan, "--json"]).json();
    assert_eq!((&report["run"], &report["hosts_surveyed"]), (&"r1".into(), &3.into()), "{report}");
    assert_eq!(report["failed"][0]["host"], "web3");
    let reason = report["failed"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("255") && reason.contains("No route to host"), "{reason}");
}

#[test]
fn manifests_have_the_fields_of_kubernetes_and_no_others() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/kubernetes/objects-1.37.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan");
    let words = [
        "fleet",
        "plan",
        "--k8s",
        "--image",
        "registry.example.org/nodewise:0.1",
        "--count",
        "3",
        "--run",
        "r1",
    ];
    run(&[&words[..], &["--namespace", "ops", "-o", plan.to_str().unwrap()]].concat()).ok();
    for (file, kind) in [("daemonset.yaml", "DaemonSet"), ("job.yaml", "Job")] {
        let text = fs::read_to_string(plan.join(file)).unwrap();
        let object = yaml(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        check(&object, &schema[kind], &schema, kind).unwrap();
        assert_eq!((&object["metadata"]["namespace"], &object["kind"]), (&"ops".into(), &kind.into()));
        // A check that finds nothing is none.
        for (from, to) in
            [("hostPID: true", "hostPID: 7"), ("spec:", "specs:"), ("fieldPath: spec.nodeName", "path: x")]
        {
            let wrong = yaml(&text.replacen(from, to, 1)).unwrap();
            assert!(check(&wrong, &schema[kind], &schema, kind).is_err(), "{file}: {from}");
        }
    }
}

#[test]
fn a_run_that_is_not_complete_in_time_ends_with_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hosts"), "web1\n").unwrap();
    let ran = run(&["fleet", "run", "--follow", folder.path().to_str().unwrap(), "--for", "10ms"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("0 of 1 hosts"), "{}", ran.stderr);
    wrong("fleet", &["run", folder.path().to_str().unwrap()], "has no submit.sh");
}
