//! `nodewise run`: what it says, what it starts, and that nothing of ours remains in it.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use crate::nodewise::{a_cpu, a_memory_node, command, golden, output, run, shell, wider, without_variables};
use crate::sandbox::install;

const MACHINE: &str = "2x(2x(2c 1G)) (4G); dist=11,20; dev=net:eth0@4";

#[test]
fn a_dry_run_tells_the_system_calls() {
    let mut texts = String::new();
    for options in [
        "--membind=0-1",
        "--interleave=all",
        "--weighted-interleave=!0",
        "--preferred=+1",
        "--preferred-many=0,2",
        "--localalloc",
        "--membind=0 --balancing",
        "--cpunodebind=1 --membind=same",
        "--physcpubind=all",
        "--near net:eth0",
        "--near net:eth0 --strict",
        "--huge=never",
        "--huge=always --membind=4",
        "",
    ] {
        let words = options.split_whitespace().chain(["--dry-run", "--", "prog", "a b"]);
        let ran = output(&mut command(["run", "--machine", MACHINE].into_iter().chain(words)));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        texts += &format!("$ nodewise run {options}\n{}{}", ran.stderr, ran.stdout);
    }
    golden("run-dry", texts);
}

#[test]
fn an_explanation_is_what_a_person_accepted_and_fits() {
    for columns in ["60", "80"] {
        let mut texts = String::new();
        for options in ["", "--membind=1,4", "--interleave=all", "--preferred=4", "--preferred-many=0,4"] {
            let words =
                ["run", "--machine", MACHINE, "--explain"].into_iter().chain(options.split_whitespace());
            texts += &format!("{}\n", output(command(words).env("COLUMNS", columns)).ok());
        }
        assert_eq!(wider(&texts, columns.parse().unwrap()), [""; 0]);
        golden(&format!("run-explain-{columns}"), texts);
    }
}

#[test]
fn an_explanation_leaves_the_output_to_the_program() {
    let ran = run(&["run", "--explain", "--localalloc", "--", "echo", "mine"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "mine\n"));
    assert!(ran.stderr.starts_with("Memory  local\n"), "{}", ran.stderr);
    assert!(run(&["run", "--explain"]).ok().starts_with("Memory  default\n"));
}

#[test]
fn the_programs_end_is_passed_on() {
    for code in [0, 1, 42, 125, 255] {
        assert_eq!(run(&["run", "--localalloc", "--", "sh", "-c", &format!("exit {code}")]).code, Some(code));
    }
    for signal in [9, 11, 13, 15] {
        let words = ["run", "--", "sh", "-c", &format!("kill -{signal} $$")];
        let status = command(words).output().unwrap().status;
        assert_eq!(status.signal(), Some(signal));
    }
}

/// The message for a program that cannot be started.
#[track_caller]
fn not_started(program: &Path, code: i32, message: &str) {
    let program = program.to_str().unwrap();
    let ran = run(&["run", "--localalloc", "--", program]);
    assert_eq!(ran.stderr, format!("nodewise: {}\n", message.replace("PROGRAM", program)));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(code), ""), "{program}");
}

#[test]
fn a_program_that_cannot_be_started_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let (path, written) = (folder.path().join(name), folder.path().join("written"));
        fs::write(&written, text).unwrap();
        install(&written, &path, mode);
        path
    };
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    not_started(Path::new("no-such-program"), 127, "PROGRAM is not found: no folder of PATH has it");
    not_started(Path::new(""), 127, "\"\" is not found: no folder of PATH has it");
    not_started(&folder.path().join("none"), 127, "PROGRAM is not found");
    not_started(folder.path(), 126, "PROGRAM cannot be executed: it is a directory");
    not_started(&plain, 126, "PROGRAM cannot be executed: no user has the permission (chmod +x)");
    not_started(&plain.join("below"), 126, "PROGRAM cannot be executed: not a directory");
    not_started(
        &file("script", "#!/nonexistent/sh\n", 0o755),
        127,
        "PROGRAM cannot be executed: the interpreter that it names does not exist",
    );
    symlink("loop", folder.path().join("loop")).unwrap();
    not_started(
        &folder.path().join("loop"),
        126,
        "PROGRAM cannot be executed: too many levels of symbolic links",
    );
}

#[test]
fn a_script_without_an_interpreter_line_runs_as_it_does_from_env() {
    let folder = tempfile::tempdir().unwrap();
    let (script, written) = (folder.path().join("script"), folder.path().join("written"));
    fs::write(&written, "echo ran\n").unwrap();
    install(&written, &script, 0o755);
    assert_eq!(run(&["run", "--", script.to_str().unwrap()]).ok(), "ran\n");
}

/// Runs a command once by itself and once behind `nodewise run`, and compares what both print.
#[track_caller]
fn same_behind_run(before: &str, options: &str, program: &str) {
    let bare = shell(&format!("{before} {program}"));
    let behind = shell(&format!("{before} $nodewise run {options} -- {program}"));
    assert_eq!(behind.stdout, bare.stdout, "{before} {options} {program}");
    assert_eq!((behind.code, behind.stderr.as_str()), (Some(0), ""), "{options} {program}");
    assert_ne!(bare.stdout, "", "{program} has something to compare");
}

#[test]
fn a_program_finds_the_process_as_it_was() {
    let status = "grep -vE '^(Pid|Tgid|NStgid|NSpid|NSpgid|NSsid|Vm.*|Rss.*|.*ctxt_switches|PPid|SigQ|HugetlbPages|State|StaBrk):' /proc/self/status";
    for options in ["", "--localalloc", "--explain 2>/dev/null"] {
        same_behind_run("exec", options, status);
    }
    for program in ["cat /proc/self/limits", "ls /proc/self/fd", "cat /proc/self/oom_score_adj", "pwd"] {
        same_behind_run("exec 7</dev/null; exec", "--localalloc", program);
    }
    same_behind_run(
        "umask 027; ulimit -n 99; exec",
        "--localalloc",
        "cat /proc/self/limits /proc/self/oom_score_adj",
    );
    same_behind_run("exec env -i A=1 B=2", "--localalloc", "/usr/bin/env");
    same_behind_run("exec", "--localalloc", "sed 's/x/y/' /proc/self/cmdline");
}

#[test]
fn signals_are_handed_on_as_they_were() {
    let program = "grep -E '^(SigBlk|SigIgn|SigCgt)' /proc/self/status";
    // systemd starts services with SIGPIPE ignored, and a program may rely on it.
    for ignored in ["PIPE", "HUP PIPE", "INT QUIT", "USR1"] {
        same_behind_run(&format!("trap '' {ignored}; exec"), "--localalloc", program);
    }
    let node = a_memory_node();
    for option in ["--block-signal=PIPE,USR1,TERM", "--block-signal", "--ignore-signal"] {
        if shell(&format!("env {option} true")).code != Some(0) {
            eprintln!("blocked signals skipped: this env(1) has no {option}");
            continue;
        }
        same_behind_run(&format!("exec env {option}"), &format!("--membind={node}"), program);
    }
}

#[test]
fn closed_streams_stay_closed() {
    for closed in ["<&-", "<&- 2>&-"] {
        let line = |runner: &str| format!("{runner} ls /proc/self/fd {closed}");
        assert_eq!(shell(&line("$nodewise run --")).ok(), shell(&line("")).ok(), "{closed}");
    }
    // `sh` itself complains about a write to a closed stream; on /dev/null it would be silent.
    let write = "sh -c 'echo lost || exit 9' >&-";
    assert_eq!(shell(write).code, Some(9));
    assert_eq!(shell(&format!("$nodewise run -- {write}")).code, Some(9));
}

#[test]
fn a_placement_is_what_the_program_has() {
    let (node, cpu) = (a_memory_node(), a_cpu());
    let policy = "cut -d' ' -f2 /proc/self/numa_maps | sort -u | head -1";
    let under = |options: &str, program: &str| {
        let mut command = command(["run"]);
        output(command.args(options.split_whitespace()).args(["--", "sh", "-c", program])).ok()
    };
    for (options, expected) in [
        (format!("--membind={node}"), format!("bind:{node}\n")),
        (format!("--preferred={node}"), format!("prefer:{node}\n")),
        (format!("--interleave={node}"), format!("interleave:{node}\n")),
        ("--localalloc".to_owned(), "local\n".to_owned()),
        (String::new(), "default\n".to_owned()),
    ] {
        assert_eq!(under(&options, policy), expected, "{options}");
    }
    let cpus = under(&format!("--physcpubind={cpu}"), "grep Cpus_allowed_list /proc/self/status");
    assert_eq!(cpus, format!("Cpus_allowed_list:\t{cpu}\n"));
}

#[test]
fn huge_pages_are_refused_to_the_program_alone() {
    let flag = "grep THP_enabled /proc/self/status";
    if !shell(flag).stdout.ends_with("1\n") {
        eprintln!("refusing huge pages skipped: this kernel does not say that this process has them");
        return;
    }
    assert_eq!(run(&["run", "--huge=never", "--", "sh", "-c", flag]).ok(), "THP_enabled:\t0\n");
    assert_eq!(shell(&format!("$nodewise run --huge=never -- true; {flag}")).ok(), "THP_enabled:\t1\n");
}

#[test]
fn malloc_is_told_to_take_pages_of_a_pool_that_has_some() {
    let with = |machine: &str| {
        output(&mut command(["run", "--machine", machine, "--huge=pool", "--dry-run", "--", "prog"]))
    };
    let ran = with("2x(2c 8G huge=2M:64)");
    assert_eq!(ran.stdout, "setenv(GLIBC_TUNABLES, glibc.malloc.hugetlb=2097152)\nexecvp(prog)\n");
    assert!(ran.stderr.contains("take pages of 2 MiB from the pools"), "{}", ran.stderr);
    let ran = with("2x(2c 8G)");
    assert_eq!(ran.code, Some(125));
    assert!(ran.stderr.contains("no pool has a free huge page"), "{}", ran.stderr);
}

#[test]
fn words_of_the_program_are_its_own() {
    let ran = run(&["run", "--localalloc", "echo", "--membind=9", "--", "-x", "--help"]);
    assert_eq!(ran.ok(), "--membind=9 -- -x --help\n");
    let mut command = without_variables(crate::nodewise::path());
    let word = std::os::unix::ffi::OsStringExt::from_vec(b"\xff\xfe".to_vec());
    let word: std::ffi::OsString = word;
    let output = command.args(["run", "--", "printf", "%s"]).arg(&word).output().unwrap();
    assert_eq!(output.stdout, b"\xff\xfe", "words need not be text");
}

#[test]
fn near_prefers_and_strict_binds_wherever_a_placement_is_shown() {
    let check = |options: &[&str], preferred: &str, bound: &str| {
        for (strict, expected, other) in [(false, preferred, bound), (true, bound, preferred)] {
            let words = ["run", "--machine", MACHINE, "--near=net:eth0"].iter().chain(options);
            let words: Vec<&str> = words.copied().chain(strict.then_some("--strict")).collect();
            let text = run(&words).ok();
            assert!(text.contains(expected) && !text.contains(other), "{words:?}: {text}");
        }
    };
    check(&["--explain"], "prefer:", "bind:");
    check(&["--dry-run"], "MPOL_PREFERRED", "MPOL_BIND");
    check(&["--emit=numactl"], "--preferred=", "--membind=");
    check(&["--emit=systemd"], "NUMAPolicy=preferred", "NUMAPolicy=bind");
}
