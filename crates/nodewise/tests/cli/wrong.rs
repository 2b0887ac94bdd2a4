//! Wrong usage: the message says what is wrong, where, and what would be right, and the exit code
//! shows it from everything else.

use crate::nodewise::{run, shell};

/// Nothing on standard output, this exit code, and these lines on standard error.
#[track_caller]
fn check(arguments: &[&str], code: i32, lines: &[&str]) {
    let ran = run(arguments);
    let expected: String = lines.iter().map(|line| format!("nodewise: {line}\n")).collect();
    assert_eq!((ran.stderr.as_str(), ran.stdout.as_str()), (expected.as_str(), ""), "{arguments:?}");
    assert_eq!(ran.code, Some(code), "{arguments:?}");
}

/// As [`check`], for words that clap does not take: it adds where to read more.
#[track_caller]
fn refuse(arguments: &[&str], verb: &str, code: i32, message: &str) {
    check(arguments, code, &[message, &format!("{verb} --help lists its options")]);
}

#[test]
fn a_wrong_verb_is_named_with_the_nearest() {
    let refuse = |arguments: &[&str], message: &str| refuse(arguments, "nodewise", 2, message);
    refuse(&["shw"], "\"shw\" is not a verb of nodewise: did you mean show?");
    refuse(&["xyzzy"], "\"xyzzy\" is not a verb of nodewise");
    refuse(&["numastats"], "\"numastats\" is not a verb of nodewise: did you mean numastat?");
    refuse(&["zone"], "\"zone\" is not a verb of nodewise: did you mean zones?");
    refuse(&["tun"], "\"tun\" is not a verb of nodewise: did you mean tune?");
    refuse(&["--colour", "red"], "--colour is not an option of nodewise: did you mean --color?");
    refuse(
        &["--color", "alway"],
        "--color: \"alway\" is not one of auto, always, never: did you mean always?",
    );
    refuse(&["--shw"], "--shw is not an option of nodewise");
    refuse(&["--color", "red"], "--color: \"red\" is not one of auto, always, never");
    refuse(&["--machine"], "--machine needs a value: --machine M");
}

#[test]
fn help_of_nothing_names_the_nearest_verb_or_topic() {
    check(&["help", "polices"], 2, &["\"polices\" is not a verb or a topic: did you mean policies?"]);
    check(&["help", "latnecy"], 2, &["\"latnecy\" is not a verb or a topic: did you mean latency?"]);
    check(&["help", "workload", "steam"], 2, &["\"steam\" is not a verb of workload: did you mean stream?"]);
    check(&["help", "show", "nodes"], 2, &["\"nodes\" is not a verb of show"]);
    check(&["help", "\u{1b}[2J"], 2, &["\"\\x1b[2J\" is not a verb or a topic"]);
    check(
        &["explain", "interleav:0"],
        2,
        &[
            "\"interleav:0\" is not a memory policy: did you mean interleave? (expected one of default, preferred, bind, interleave, local, preferred-many, weighted-interleave, with nodes as in bind:0-1)",
        ],
    );
}

#[test]
fn an_option_that_needs_another_and_a_negative_number_are_named_by_the_option() {
    refuse(&["latency", "--chase", "0:0"], "nodewise latency", 2, "--chase needs --loaded");
    refuse(&["latency", "--pauses=1", "--mix=read"], "nodewise latency", 2, "--mix needs --loaded");
    refuse(&["explain", "--threads", "2"], "nodewise explain", 2, "--threads needs --cost");
    refuse(&["show", "--caches"], "nodewise show", 2, "--caches needs --svg FILE or --png FILE");
    refuse(
        &["compare", "--list"],
        "nodewise compare",
        2,
        "nodewise compare needs --suite NAME|FILE or --before FILE",
    );
    refuse(
        &["tune", "--runs", "-1", "--", "true"],
        "nodewise tune",
        2,
        "--runs: -1 is out of range: expected 1 to 4294967295",
    );
    refuse(
        &["workload", "chase", "--samples", "-1"],
        "nodewise workload chase",
        2,
        "--samples: -1 is out of range: expected 1 to 4294967295",
    );
}

/// The old spellings hold for one release; help does not show them.
#[test]
fn renamed_options_are_still_read() {
    let machine = "--machine=2x(2c 1G)";
    for (old, new) in [
        (&["emulation", "plan", "--nodes=4", machine][..], &["emulation", "plan", "--count=4", machine][..]),
        (&["emulation", "plan", "--size=512M", machine], &["emulation", "plan", "--node-size=512M", machine]),
        (&["explain", "local", "--memory=cache", machine], &["explain", "local", "--kind=cache", machine]),
        (&["explain", "local", "--huge", machine], &["explain", "local", "--thp", machine]),
        (&["lab", "--cpus=2", "--dry-run", machine], &["lab", "--max-cpus=2", "--dry-run", machine]),
    ] {
        assert_eq!(run(old).ok(), run(new).ok(), "{old:?}");
    }
    for (verb, old) in
        [("latency", "--huge "), ("bandwidth", "--kernel "), ("explain", "--memory "), ("lab", "--cpus ")]
    {
        let help = run(&[verb, "--help"]).ok();
        assert!(!help.contains(old), "{old} in {help}");
    }
}

#[test]
fn a_machine_that_is_none_is_explained() {
    let forms = "expected live, a machine file (.json), a capture (a folder, .tar, .tar.gz or .tar.bz2), tables of the firmware (acpi:DIR, dtb:FILE), an output of dmidecode, numactl -H, lscpu or likwid-topology, XML of hwloc, or a spec as \"4x(8c 64G)\"";
    check(&["--machine", "nosuch.json"], 2, &[&format!("--machine: nosuch.json does not exist: {forms}")]);
    check(&["show", "--machine", ""], 2, &[&format!("--machine: \"\" does not exist: {forms}")]);
    check(
        &["show", "--machine", "/etc"],
        2,
        &["--machine: capture /etc: it holds neither sys/ nor proc/, so it is not a capture of a machine"],
    );
    check(
        &["show", "--machine", "/proc"],
        2,
        &[
            "--machine: capture /proc: it is the inside of proc/, not a capture: expected the folder that holds proc/ (this machine itself is live)",
        ],
    );
    let ran = run(&["show", "--machine", "4x(8z 64G)"]);
    assert_eq!(
        ran.stderr,
        "nodewise: --machine: expected cores (12c2t), a memory size (128G), or a setting such as l3=32M/6c (column 4)\n  4x(8z 64G)\n     ^\n"
    );
}

#[test]
fn verbs_of_this_machine_refuse_another_and_do_not_offer_it() {
    for (words, hint) in [
        (&["compare", "--suite=board"][..], ""),
        (&["latency"], " (--from=FILE shows a result from elsewhere)"),
        (&["bandwidth"], " (--from=FILE shows a result from elsewhere)"),
        (&["c2c"], " (--from=FILE shows a result from elsewhere)"),
        (&["workload", "stream"], ""),
        (&["links", "/nonexistent"], ""),
    ] {
        let message = format!(
            "--machine has no meaning with nodewise {}: it works on this machine only{hint}",
            words[0]
        );
        check(&[&["--machine", "2x(1c 1G)"], words].concat(), 2, &[&message]);
        let help = run(&[words[0], "--help"]).ok();
        assert!(!help.contains("--machine"), "{help}");
    }
    for words in [&["show"][..], &["io"], &["run"], &["tune"], &["emulation", "plan"]] {
        let help = run(&[words, &["--help"]].concat()).ok();
        assert!(help.contains("--machine"), "{help}");
    }
    let enable = &["emulation", "enable", "--machine", "2x(1c 1G)", "--nodes=2", "--dry-run"];
    check(enable, 2, &["--machine: boot files are changed on this system, or in an image that --root names"]);
    assert!(!run(&["emulation", "enable", "--help"]).ok().contains("--machine"));
}

#[test]
fn tune_times_here_and_counts_elsewhere() {
    let elsewhere = &["tune", "--machine", "2x(1c 1G)"];
    let program = "--machine needs a program, whose cache lines are counted in a guest of the machine: nodewise tune \
                   --machine M -- PROGRAM";
    check(elsewhere, 2, &[program]);
    let timed = "--metric has no meaning with --machine: there the program runs once under each placement, and is not timed";
    check(&[elsewhere, &["--metric=wall", "--", "true"][..]].concat(), 2, &[timed]);
    let counted = "--latency has no meaning without --machine: here the program is timed";
    check(&["tune", "--latency=x.json", "--", "true"], 2, &[counted]);
}

#[test]
fn links_says_which_link_cannot_be_written_and_why() {
    check(&["links", "/nonexistent"], 3, &["cannot write /nonexistent/numactl: no such file or directory"]);
}

#[test]
fn show_refuses_what_it_cannot_use() {
    let refuse = |arguments: &[&str], message: &str| refuse(arguments, "nodewise show", 2, message);
    refuse(&["show", "--jsn"], "--jsn is not an option of nodewise show: did you mean --json?");
    refuse(&["show", "there"], "nodewise show has no use for \"there\"");
    refuse(&["show", "--svg"], "--svg needs a value: --svg FILE");
    refuse(&["show", "--json", "--svg", "x.svg"], "--json and --svg cannot be used together");
    check(
        &["show", "--svg", "/nonexistent/x.svg"],
        3,
        &["cannot write /nonexistent/x.svg: no such file or directory"],
    );
}

#[test]
fn capture_refuses_what_it_cannot_write() {
    refuse(&["capture"], "nodewise capture", 2, "nodewise capture needs --output FILE");
    check(
        &["capture", "-o", "x.zip"],
        2,
        &[
            "cannot derive the format from the name x.zip: expected .tar, .tar.gz, .tar.bz2, or no ending for a folder, or .json for a machine file",
        ],
    );
    check(
        &["capture", "-o", "/nonexistent/x.tar"],
        3,
        &["cannot write /nonexistent/x.tar: no such file or directory"],
    );
    check(
        &["capture", "-o", "/nonexistent/x"],
        3,
        &["cannot write /nonexistent/x: no such file or directory"],
    );
    check(
        &["capture", "--machine", "2x(1c 1G)", "-o", "x.tar"],
        2,
        &["only a machine that was read from files can be written as files: name the output .json instead"],
    );
}

#[test]
fn run_refuses_words_with_its_own_exit_code() {
    let refuse = |arguments: &[&str], message: &str| {
        refuse(&[&["run"], arguments].concat(), "nodewise run", 125, message);
    };
    refuse(&["--balance", "true"], "--balance is not an option of nodewise run: did you mean --balancing?");
    refuse(&["--localalloc=3", "true"], "--localalloc takes no value: got \"3\"");
    refuse(&["-C", "0", "-N", "0", "true"], "--physcpubind and --cpunodebind cannot be used together");
    refuse(&["-m", "0", "-m", "0", "true"], "--membind is given twice");
    refuse(&["--huge=maybe", "true"], "--huge: \"maybe\" is not one of always, never, pool");
    // The verb is found behind options that have values.
    let ran = run(&["--machine", "live", "run", "--foo", "true"]);
    assert_eq!(ran.code, Some(125), "{}", ran.stderr);
}

#[test]
fn run_refuses_placements_that_cannot_be() {
    let check = |arguments: &[&str], message: &str| {
        let words = [&["run", "--machine", "2x(2c 1G) (1G)", "--dry-run"], arguments].concat();
        check(&words, 125, &[message]);
    };
    check(&["--membind=7"], "--membind: node 7 does not exist: this machine has nodes 0-2");
    check(
        &["--membind=x"],
        "--membind: \"x\" does not name nodes: expected a number, \"all\", or a device such as net:eth0 (column 1)",
    );
    check(
        &["--interleave=0-"],
        "--interleave: \"0-\" does not name nodes: expected a number after \"-\" (column 3)",
    );
    check(&["-i", "!all"], "--interleave: \"!all\" names no node at all");
    check(&["-w", "9"], "--weighted-interleave: node 9 does not exist: this machine has nodes 0-2");
    check(&["-p", "0,1"], "--preferred takes one node: 0-1 are 2; --preferred-many takes several");
    check(&["-P", "same"], "--preferred-many: \"same\" needs a node option before it");
    check(
        &["-N", "2"],
        "--cpunodebind: node 2 has no CPUs: a program cannot run there (its memory can be used with --membind=2); the nearest node with CPUs is 0: --cpunodebind=0",
    );
    check(&["-C", "77"], "--physcpubind: CPU 77 does not exist: this machine has CPUs 0-3");
    check(
        &["-C", "0-4294967295"],
        "--physcpubind: \"0-4294967295\" does not name CPUs: expected a number below 262144 (column 3)",
    );
    check(
        &["-m", "0", "-l"],
        "--membind and --localalloc contradict each other: one memory policy at a time",
    );
    check(
        &["-b"],
        "--balancing needs --membind, --preferred-many or --near with --strict: pages move inside the nodes they name",
    );
    check(
        &["--near", "foo:1"],
        "--near: \"foo:1\" is not a device: expected gpu:N, net:IF, block:DEV, ib:DEV, file:PATH, ip:HOST or pci:ADDR",
    );
    check(&["--near", "gpu:0"], "--near: gpu:0 does not exist: this machine has none of its kind");
}

#[test]
fn run_says_when_there_is_nothing_to_run() {
    check(&["run"], 125, &["no program to run: nodewise run [OPTIONS] -- PROGRAM [ARGUMENT]..."]);
    check(&["run", "--"], 125, &["no program to run: nodewise run [OPTIONS] -- PROGRAM [ARGUMENT]..."]);
    // The program was taken for the nodes: that is what the message is about.
    check(
        &["run", "--membind", "true"],
        125,
        &[
            "--membind: \"true\" does not name nodes: expected a number, \"all\", or a device such as net:eth0 (column 1)",
        ],
    );
    check(
        &["run", "--machine", "2x(1c 1G)", "true"],
        125,
        &[
            "cannot start a program on another machine (2x(1c 1G)): --dry-run and --explain can be used with it, or nodewise lab",
        ],
    );
}

#[test]
fn tune_refuses_what_it_cannot_try() {
    let words = |arguments: &[&str], message: &str| {
        refuse(&[&["tune"], arguments].concat(), "nodewise tune", 2, message);
    };
    words(&["--runs", "x"], "--runs: \"x\" is not a whole number");
    words(&["--runs", "0"], "--runs: 0 is out of range: expected 1 to 4294967295");
    words(&["--seed", "x"], "--seed: \"x\" is not a whole number");
    words(&["--metric"], "--metric needs a value: --metric wall|cpu|rss|EVENT|REGEX");
    let tune = |arguments: &[&str], message: &str| check(&[&["tune"], arguments].concat(), 2, &[message]);
    let time = "is not a time: expected seconds, or a number with ms, s, m or h as in 10m";
    tune(&["--time", "0", "true"], &format!("--time: \"0\" {time}"));
    tune(&["--time", "1x", "true"], &format!("--time: \"1x\" {time}"));
    tune(&["--run-limit", "soon", "true"], &format!("--run-limit: \"soon\" {time}"));
    tune(
        &["--metric", "(", "true"],
        "--metric: \"(\" is not a regular expression: found open group without closing ')'",
    );
    tune(
        &["--metric", "[0-9]+", "true"],
        "--metric: \"[0-9]+\" has 0 groups: expected one around the number, as in \"rate: ([0-9.]+)\"",
    );
    tune(
        &["--higher-is-better", "true"],
        "--higher-is-better contradicts --metric=wall: less time is better",
    );
    tune(&["--placement", "nosuch", "true"], "--placement: --nosuch is not an option of nodewise run");
    tune(
        &["--placement", "membind=x", "true"],
        "--placement: --membind: \"x\" does not name nodes: expected a number, \"all\", or a device such as net:eth0 (column 1)",
    );
}

#[test]
fn workloads_refuse_what_is_too_little_or_too_much() {
    let words = |kind: &str, arguments: &[&str], message: &str| {
        let verb = format!("nodewise workload {kind}");
        refuse(&[&["workload", kind], arguments].concat(), &verb, 2, message);
    };
    words("stream", &["--threads", "0"], "--threads: 0 is out of range: expected 1 to 4294967295");
    words("stream", &["--passes", "0"], "--passes: 0 is out of range: expected 1 to 4294967295");
    words("chase", &["--samples", "x"], "--samples: \"x\" is not a whole number");
    words(
        "chase",
        &["--size", "1Z"],
        "--size: \"1Z\" is not a size: expected a number of bytes, or one with K, M, G or T as in 512M",
    );
    refuse(&["workload", "sort"], "nodewise workload", 2, "\"sort\" is not a verb of nodewise workload");
    check(
        &["workload", "chase", "--size", "1B"],
        2,
        &["1 B is too small for 1 thread: expected at least 64 B"],
    );
    check(
        &["workload", "chase", "--size", "999999T"],
        3,
        &["no memory for 976.6 PiB: expected a smaller size"],
    );
}

#[test]
fn explain_refuses_policies_that_no_kernel_takes() {
    let policy = |text: &str, message: &str| {
        check(&["explain", text, "--machine", "2x(1c 1G) (1G) (1c)"], 2, &[message]);
    };
    let modes = "default, preferred, bind, interleave, local, preferred-many, weighted-interleave, with nodes as in bind:0-1";
    policy("strict:1", &format!("\"strict:1\" is not a memory policy: expected one of {modes}"));
    policy("bind", "\"bind\": bind needs nodes, as in bind:0-2");
    policy("local:1", "\"local:1\": local takes no nodes");
    let flags = "expected static, relative or balancing after \"=\", several joined with \"|\" as in bind=static|balancing:0";
    policy("bind=sticky:1", &format!("\"bind=sticky:1\": {flags}"));
    policy("bind=static,relative:0", &format!("\"bind=static,relative:0\": {flags}"));
    let refuse = |text: &str, why: &str| policy(text, &format!("{text}: Linux 6.12 answers EINVAL: {why}"));
    refuse("bind=static|relative:0", "nodes are either static or relative, not both");
    refuse("local=static", "local takes neither static nor relative");
    refuse("bind=static:7", "node 7 does not exist: this machine has nodes 0-3");
    refuse("bind=static:3", "node 3 has no memory: nodes 0-2 do");
    refuse("bind:7", "node 7 does not exist: this machine has nodes 0-3");
    refuse("bind:3", "node 3 has no memory: nodes 0-2 do");
    refuse("interleave=balancing:0", "balancing goes with bind and preferred-many, not with interleave");
    check(
        &["explain", "bind=static:2", "--allowed", "0-1", "--machine", "2x(1c 1G) (1G) (1c)"],
        2,
        &["bind=static:2: Linux 6.12 answers EINVAL: node 2 is outside this cpuset's memory nodes 0-1"],
    );
    check(
        &["explain", "bind:16", "--machine", "17x(1c 1G); arch=aarch64"],
        2,
        &["bind:16: Linux 6.12 answers EINVAL: kernels of this architecture are built for nodes 0-15"],
    );
    let old = |text: &str, kernel: &str, why: &str| {
        let message = format!("{text}: Linux {kernel} answers EINVAL: {why} or newer: this is {kernel}");
        check(&["explain", text, "--kernel", kernel, "--machine", "2x(1c 1G)"], 2, &[&message]);
    };
    old("weighted interleave:0", "6.6", "weighted interleave needs Linux 6.9");
    old("bind=balancing:0", "5.10", "balancing inside a bind policy needs Linux 5.12");
    old("prefer (many)=balancing:0", "6.9", "balancing inside a preferred-many policy needs Linux 6.10");
}

#[test]
fn distances_of_emulated_nodes_are_those_that_a_kernel_takes() {
    let plan = |text: &str, message: &str| {
        let words = ["emulation", "plan", "--nodes=2", "--distances", text, "--machine", "1x(1c 1G)"];
        refuse(&words, "nodewise emulation plan", 2, message);
    };
    plan("5,10", "--distances: 5 is out of range: expected 10 to 255");
    plan("10,x", "--distances: \"x\" is not a whole number");
}

#[test]
fn explain_refuses_what_the_machine_lacks() {
    let explain = |option: &[&str], code: i32, message: &str| {
        check(&[&["explain", "--machine", "2x(1c 1G) (1G)"], option].concat(), code, &[message]);
    };
    explain(&["--cpu-node", "9"], 2, "--cpu-node: node 9 does not exist: this machine has nodes 0-2");
    explain(&["--cpu-node", "2"], 2, "--cpu-node: node 2 has no CPUs: nodes 0-1 have some");
    check(
        &["explain", "--cpu-node", "1", "--machine", "(1c 1G) (1G)"],
        2,
        &["--cpu-node: node 1 has no CPUs: node 0 has some"],
    );
    check(&["explain", "--machine", "2x(1c)"], 3, &["no node of this machine has memory"]);
    let words = |arguments: &[&str], message: &str| {
        refuse(&[&["explain"], arguments].concat(), "nodewise explain", 2, message);
    };
    words(&["--kernel", "new"], "--kernel: \"new\" is not a release: expected two numbers as in 6.12");
    words(
        &["--kernel", "2.4"],
        "--kernel: the model knows Linux 4.14 and later, not 2.4: it was compared with 6.1, 6.12 and 6.18",
    );
    words(&["--size", "80"], "--size: 80 has no unit: expected 80M or 80G, or 80B for bytes");
    words(&["--cpu-node", "x"], "--cpu-node: \"x\" is not a whole number");
    refuse(&["zonelist", "0"], "nodewise zonelist", 2, "nodewise zonelist has no use for \"0\"");
    refuse(&["zones", "--rebuilt"], "nodewise zones", 2, "--rebuilt is not an option of nodewise zones");
}

#[test]
fn simulate_refuses_scenarios_that_cannot_be_played() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    let file = file.to_str().unwrap();
    let play = |text: &str, message: &str| {
        std::fs::write(file, format!("machine = \"2x(1c 1G) (1G)\"\n{text}")).unwrap();
        check(&["simulate", file], 2, &[&format!("scenario \"{file}\": {message}")]);
    };
    let program = |rest: &str| format!("[[program]]\nname = \"a\"\n{rest}");
    let event = |rest: &str| format!("{}[[event]]\nat = 1\nprogram = \"a\"\n{rest}", program(""));
    play("", "it has neither a [[program]] nor an [[event]]");
    play(
        "[[event]]\nat = 1\nprogram = \"b\"\nend = true",
        "line 2: \"b\" does not run: a [[program]], a fork or a thread starts it",
    );
    play(&program("cpu-node = 2"), "line 2: a program cannot run on node 2: nodes 0-1 have CPUs");
    play(&program("policy = \"bind:7\""), "line 2: node 7 does not exist: this machine has nodes 0-2");
    play(&event("move-pages = \"heap\"\nto = \"0-1\""), "line 4: to: \"0-1\" is not one node");
    play(
        &event("allocate = \"1G\"\nregion = \"heap\"\nto = \"1\""),
        "line 4: to belongs to move-pages, migrate-pages, and not to allocate",
    );
    play(&event("touch = \"heap\"\noffset = \"1G\""), "line 4: offset needs a length, as in length = \"1G\"");
    play(
        &event("touch = \"heap\"\noffset = \"1K\"\nlength = \"1G\""),
        "line 4: offset: 1024 bytes are not a whole number of pages of 4096",
    );
    play(
        "swap = \"much\"\n[[program]]\nname = \"a\"",
        "swap: \"much\" is not a size: expected one as 512M or 80G",
    );
    play("numa-balancing = 4\n[[program]]\nname = \"a\"", "numa-balancing is 4: expected 0, 1, 2 or 3");
    play(&event("free = \"heap\""), "line 4: \"a\" has no region \"heap\"");
    play(
        &event("allocate = \"much\""),
        "line 4: allocate: \"much\" is not a size: expected one as 512M or 80G",
    );
    play(&format!("{}{}", program(""), program("")), "line 4: \"a\" runs already");
    let names = "database, database-interleaved, jvm, hpc, pi5, cxl, pods, cache, fork, calls";
    check(
        &["simulate", "nosuch"],
        2,
        &[&format!(
            "cannot read scenario \"nosuch\": no such file or directory (those that come with nodewise: {names})"
        )],
    );
    check(
        &["simulate", "nosuch", "--source"],
        2,
        &[&format!("\"nosuch\" does not come with nodewise: expected one of {names}")],
    );
    let words = |arguments: &[&str], message: &str| {
        refuse(&[&["simulate"], arguments].concat(), "nodewise simulate", 2, message);
    };
    words(&[], "nodewise simulate needs SCENARIO");
    words(&["database", "--json", "--svg", "x.svg"], "--json and --svg cannot be used together");
    check(
        &["simulate", "cxl", "--machine", "1x(1c 64G)"],
        2,
        &["scenario \"cxl\": line 15: a program cannot run on node 1: node 0 has CPUs"],
    );
}

#[test]
fn lab_refuses_words_with_its_own_exit_code() {
    let refuse = |arguments: &[&str], message: &str| {
        refuse(&[&["lab"], arguments].concat(), "nodewise lab", 125, message);
    };
    refuse(&[], "nodewise lab needs COMMAND...");
    refuse(&["--max-cpus", "0", "true"], "--max-cpus: 0 is out of range: expected 1 to 4294967295");
    refuse(
        &["--timeout", "x", "true"],
        "--timeout: \"x\" is not a time: expected seconds, or a number with ms, s, m or h as in 10m",
    );
    refuse(&["--append"], "--append needs a value: --append ARGS");
    refuse(
        &["--memory", "x", "true"],
        "--memory: \"x\" is not a size: expected a number of bytes, or one with K, M, G or T as in 512M",
    );
}

#[test]
fn nothing_that_was_typed_reaches_the_terminal_as_it_is() {
    for words in [
        "$escape",
        "--$escape",
        "show $escape",
        "show --machine $escape",
        "show --machine \"4x($escape)\"",
        "show --svg /nonexistent/$escape",
        "capture -o $escape.zip",
        "run $escape",
        "run --membind=$escape true",
        "run --near=$escape true",
        "run --huge=$escape true",
        "run -- /nonexistent/$escape",
        "tune --runs $escape",
        "tune --time $escape true",
        "tune --metric \"($escape\" true",
        "tune --placement $escape true",
        "tune -- $escape",
        "workload $escape",
        "workload chase --size $escape",
        "lab --memory $escape true",
        "explain $escape",
        "explain bind=$escape:0",
        "explain bind:$escape",
        "explain --kernel $escape",
        "zonelist $escape",
        "simulate $escape",
        "simulate --source $escape",
    ] {
        let ran = shell(&format!("escape=$(printf '\\033[2J'); exec $nodewise {words}"));
        assert!(ran.code.is_some_and(|code| code != 0), "{words}: {:?}", ran.code);
        assert!(!ran.stderr.contains('\u{1b}') && !ran.stdout.contains('\u{1b}'), "{words}: {}", ran.stderr);
        assert!((ran.stderr + &ran.stdout).contains("[2J"), "{words} names what was typed");
    }
}
