//! Placements in the words of other tools, each put before the tool itself.

use std::fs;

use crate::nodewise::{a_memory_node, output, run, without_variables};
use crate::sandbox::has;

const TWO_NODES: &str = "2x(4c 8G)";

/// Returns the output of `run --emit` for two nodes.
#[track_caller]
fn emitted(tool: &str, options: &str, program: &str) -> String {
    let words = ["run", "--machine", TWO_NODES, "--emit", tool];
    let options = options.split_whitespace();
    let program = program.split_whitespace();
    let words: Vec<&str> = words.into_iter().chain(options).chain(["--"]).chain(program).collect();
    run(&words).ok()
}

/// Returns systemd's messages about a unit of this text; those about this machine are not ours.
fn systemd_on(unit: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let service = folder.path().join("numa.service");
    fs::write(&service, unit).unwrap();
    let checked = output(without_variables("systemd-analyze").arg("verify").arg(&service));
    checked.stderr.lines().filter(|line| line.contains("numa.service")).map(str::to_owned).collect()
}

#[test]
fn systemd_takes_every_drop_in() {
    if !has("systemd-analyze", "systemd") {
        return;
    }
    for options in [
        "--cpunodebind=1 --membind=1",
        "--interleave=all",
        "--preferred=1",
        "--localalloc",
        "--physcpubind=0-2,5",
    ] {
        let drop_in = emitted("systemd", options, "/bin/true");
        // It says what it does not understand and goes on.
        assert_eq!(systemd_on(&format!("{drop_in}ExecStart=/bin/true\n")), [""; 0], "{drop_in}");
    }
    let wrong = systemd_on("[Service]\nNUMAPolicy=interleav\nNUMAMask=0\nExecStart=/bin/true\n").concat();
    assert!(wrong.contains("interleav"), "a check that finds nothing is none: {wrong}");
}

#[test]
fn a_unit_of_systemd_holds_full_paths_and_there_is_none_without_a_placement() {
    let unit = emitted("systemd", "--weighted-interleave=all", "./a.sh -x");
    let here = std::env::current_dir().unwrap();
    let ends = format!(" -- {}/a.sh -x\n", here.display());
    assert!(unit.contains(&format!("\nExecStart={} run ", crate::nodewise::path())), "{unit}");
    assert!(unit.ends_with(&ends), "{unit}");
    let unit = emitted("systemd", "--weighted-interleave=all", "sh -x");
    assert!(unit.contains(" -- /") && unit.ends_with("/sh -x\n"), "{unit}");
    let ran = run(&["run", "--machine", TWO_NODES, "--emit=systemd", "--", "/bin/true"]);
    assert_eq!(ran.stdout, "");
    assert!(ran.code != Some(0) && ran.stderr.contains("there is no placement to set"), "{}", ran.stderr);
}

#[test]
fn systemd_takes_a_program_with_any_words() {
    if !has("systemd-analyze", "systemd") {
        return;
    }
    let odd = ["100%", "%n", "%Q", "$HOME", "it's", "a \"b\" \\", ";", "", "two\nlines", "\u{1b}[2J\u{202e}"];
    let words =
        ["run", "--machine", TWO_NODES, "--emit=systemd", "--weighted-interleave=all", "--", "/bin/echo"];
    let drop_in = run(&words.into_iter().chain(odd).collect::<Vec<_>>()).ok();
    // What takes the place of nodewise takes any words as well, and is here for sure.
    let here = drop_in.replace(&format!("ExecStart={} run", crate::nodewise::path()), "ExecStart=/bin/echo");
    assert_ne!(here, drop_in);
    assert_eq!(systemd_on(&here), [""; 0], "{drop_in}");
    let bare = systemd_on("[Service]\nExecStart=/bin/echo '%Q'\n").concat();
    assert!(bare.contains("%Q"), "a check that finds nothing is none: {bare}");
}

#[test]
fn srun_takes_every_option() {
    if !has("srun", "slurm-client") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let conf = folder.path().join("slurm.conf");
    fs::write(
        &conf,
        "ClusterName=c\nSlurmctldHost=localhost\nAuthType=auth/none\nCredType=cred/none\nTaskPlugin=task/affinity\nNodeName=localhost CPUs=2\nPartitionName=p Nodes=ALL Default=YES\n",
    )
    .unwrap();
    // Options are read before usage is printed, and no controller is asked.
    let srun = |options: &str| {
        let options = options.split_whitespace();
        output(without_variables("srun").env("SLURM_CONF", &conf).args(options).arg("--usage"))
    };
    for options in ["--cpunodebind=1 --membind=1", "--preferred=1", "--localalloc", "--interleave=all"] {
        let line = emitted("slurm", options, "true");
        let ours = line.strip_prefix("srun ").expect("it is a line of srun");
        let ours = ours.split(" nodewise ").next().unwrap().trim_end().trim_end_matches(" true");
        let checked = srun(ours);
        assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""), "{line}");
    }
    assert!(
        srun("--mem-bind=interleave").stderr.contains("unrecognized"),
        "a check that finds nothing is none"
    );
}

#[test]
fn mpirun_takes_every_line() {
    if !has("mpirun", "openmpi-bin") {
        return;
    }
    // The options are read and the ranks mapped; nothing is started.
    let mpirun = |line: &str| {
        let dry = ["--allow-run-as-root", "--do-not-launch", "-n", "1"];
        output(without_variables("mpirun").args(dry).args(line.split_whitespace()))
    };
    for options in ["--cpunodebind=1 --membind=1", "--interleave=all", "--weighted-interleave=all"] {
        let line = emitted("mpi", options, "/bin/true");
        let checked = mpirun(line.strip_prefix("mpirun ").expect("it is a line of mpirun"));
        assert_eq!(checked.code, Some(0), "{line}{}{}", checked.stdout, checked.stderr);
    }
    let told = study_of_threads("mpi");
    let line = told.lines().find_map(|line| line.strip_prefix("mpirun ")).expect("it is a line of mpirun");
    assert!(line.starts_with("--bind-to none -x OMP_NUM_THREADS=1 -x "), "{line}");
    let checked = mpirun(line);
    assert_eq!(checked.code, Some(0), "{line}{}{}", checked.stdout, checked.stderr);
    for wrong in ["--bind-to nonsense /bin/true", "--bind-to none --xx OMP_NUM_THREADS=1 /bin/true"] {
        let wrong = mpirun(wrong);
        assert_ne!(wrong.code, Some(0), "a check that finds nothing is none: {}", wrong.stdout);
    }
}

#[test]
fn what_is_written_can_be_typed() {
    let line = emitted("numactl", "--cpunodebind=1 --membind=1", "./a b");
    assert_eq!(line, "numactl --cpunodebind=1 --membind=1 ./a b\n");
    let wrong = run(&["run", "--machine", TWO_NODES, "--interleave=all", "--emit", "numctl"]);
    assert_eq!(wrong.code, Some(125));
    assert!(wrong.stderr.contains("expected one of numactl, systemd"), "{}", wrong.stderr);
    let weighted = ["run", "--machine", TWO_NODES, "--weighted-interleave=all", "--emit", "libvirt"];
    let why = run(&weighted).stderr;
    assert!(
        why.starts_with("nodewise: --emit libvirt: libvirt has no mode for weighted-interleave"),
        "{why}"
    );
}

#[test]
fn a_study_writes_its_best_placement() {
    let script = "if grep -q ' bind' /proc/self/numa_maps; then echo score: 20; else echo score: 10; fi";
    let node = a_memory_node();
    let placement = format!("--placement=membind={node}");
    let words = |extra: &'static str, direction: &'static str| {
        let metric = "--metric=score: ([0-9.]+)";
        let all = ["tune", "--emit=systemd", &placement, metric, direction, extra, "--", "sh", "-c", script];
        run(&all.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>())
    };
    let text = words("", "--higher-is-better").ok();
    assert!(text.contains(&format!("NUMAPolicy=bind\nNUMAMask={node}\n")), "{text}");
    let json = words("--json", "--higher-is-better").ok_json();
    assert_eq!(json["emitted"]["tool"], "systemd");
    let kept = words("", "");
    assert!(
        kept.stderr.contains("nothing to write for systemd: the default is to be kept"),
        "{}",
        kept.stderr
    );
}

/// Returns the output of `tune --emit` for a program that is better with one thread than with two.
#[track_caller]
fn study_of_threads(tool: &str) -> String {
    let emit = format!("--emit={tool}");
    let metric = "--metric=score: ([0-9]+)";
    let script = "echo score: $((100 / OMP_NUM_THREADS))";
    let placement = "--placement=localalloc";
    let options = ["tune", &emit, "--threads=2,1", placement, metric, "--higher-is-better", "--runs=12"];
    run(&[&options[..], &["--", "sh", "-c", script]].concat()).ok()
}

#[test]
fn a_study_writes_its_best_number_of_threads() {
    let all = |before: &str| format!("{before}OMP_NUM_THREADS=1 {before}OPENBLAS_NUM_THREADS=1 ");
    let systemd = study_of_threads("systemd");
    assert!(systemd.contains(&format!("\n[Service]\nEnvironment={}", all(""))), "{systemd}");
    let openmp = study_of_threads("openmp");
    assert!(openmp.contains(&format!("\n\n{}", all(""))), "{openmp}");
    assert!(!openmp.contains("OMP_NUM_THREADS=2"), "{openmp}");
}

#[test]
fn where_nothing_was_shown_nothing_is_advised() {
    let words = ["tune", "--runs=1", "--no-race", "--placement=localalloc", "--emit=systemd", "--", "true"];
    let few = run(&words);
    let expected = "nothing to write for systemd: too few rounds were run to show anything";
    assert!(few.stderr.contains(expected), "{}", few.stderr);
    assert!(!few.stderr.contains("is to be kept"), "{}", few.stderr);
}
