use super::*;
use crate::command::environment::THREAD_VARIABLES;
use crate::schedule::ArmId;
use nodewise_machine::spec;

const MACHINE: &str = "2x(4c 8G)";

fn scope() -> Scope {
    Scope::from_machine(&spec::machine(MACHINE).unwrap())
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn local() -> Placement {
    Placement::memory(PolicyMode::Bind, NodeSet::from([1])).with_cpus(CpuSet::from([4, 5, 6, 7]))
}

fn interleaved() -> Placement {
    Placement::memory(PolicyMode::Interleave, NodeSet::from([0, 1]))
}

fn weighted() -> Placement {
    Placement::memory(PolicyMode::WeightedInterleave, NodeSet::from([0, 1]))
}

#[test]
fn each_tool_says_a_placement_in_its_own_words() {
    let check = |target: &str, placement: &Placement, program: &str, expected: &str| {
        let emitted =
            emit(target.parse().unwrap(), placement, &words(program), &scope(), &Paths::default()).unwrap();
        assert_eq!(emitted.text, expected, "{target}");
    };
    check("numactl", &local(), "./a b", "numactl --cpunodebind=1 --membind=1 ./a b");
    check("numactl", &Placement::DEFAULT, "./a", "./a");
    check(
        "systemd",
        &local(),
        "./a",
        "# systemctl edit NAME.service\n[Service]\nCPUAffinity=4-7\nNUMAPolicy=bind\nNUMAMask=1\n",
    );
    check("docker", &local(), "./a", "docker run --cpuset-cpus=4-7 --cpuset-mems=1 IMAGE ./a");
    check(
        "podman",
        &interleaved(),
        "./a",
        "podman run --cap-add=SYS_NICE IMAGE numactl --interleave=all ./a",
    );
    check("slurm", &local(), "./a", "srun --cpu-bind=mask_cpu:0xf0 --mem-bind=mask_mem:0x2 ./a");
    check("slurm", &weighted(), "./a", "srun --cpu-bind=none nodewise run --weighted-interleave=all -- ./a");
    check("mpi", &interleaved(), "./a", "mpirun --bind-to none numactl --interleave=all ./a");
    check(
        "k8s",
        &interleaved(),
        "./a 'b",
        "# in the pod, for the container\ncommand: [\"numactl\", \"--interleave=all\", \"./a\", \"'b\"]\nsecurityContext:\n  capabilities: {add: [SYS_NICE]}\n",
    );
    check(
        "k8s",
        &interleaved(),
        "$(HOME) \u{202e}$$",
        "# in the pod, for the container\ncommand: [\"numactl\", \"--interleave=all\", \"$$(HOME)\", \"\\u202e$$$$\"]\nsecurityContext:\n  capabilities: {add: [SYS_NICE]}\n",
    );
    check(
        "systemd",
        &weighted(),
        "/bin/a 100%",
        "# systemctl edit NAME.service\n[Service]\nExecStart=\nExecStart=nodewise run --weighted-interleave=all -- /bin/a \"100%%\"\n",
    );
    check(
        "libvirt",
        &local(),
        "",
        "<!-- virsh edit DOMAIN: inside of <domain> -->\n<vcpu placement='static' cpuset='4-7'>4</vcpu>\n<numatune>\n  <memory mode='strict' nodeset='1'/>\n</numatune>\n",
    );
    check(
        "openmp",
        &local(),
        "./a",
        "OMP_NUM_THREADS=4 OMP_PLACES='{4},{5},{6},{7}' OMP_PROC_BIND=true numactl --cpunodebind=1 --membind=1 ./a",
    );
    check(
        "torchrun",
        &local(),
        "train.py",
        "OMP_NUM_THREADS=$((4 / WORKERS)) numactl --cpunodebind=1 --membind=1 torchrun --nproc-per-node=WORKERS train.py",
    );
    check("jvm", &interleaved(), "java -jar a.jar", "numactl --interleave=all java -XX:-UseNUMA -jar a.jar");
    check("jvm", &local(), "-jar a.jar", "numactl --cpunodebind=1 --membind=1 java -jar a.jar");
    check(
        "mongod",
        &interleaved(),
        "",
        "# systemctl edit mongod.service\n[Service]\nNUMAPolicy=interleave\nNUMAMask=0-1\n",
    );
    check(
        "mysqld",
        &interleaved(),
        "",
        "# /etc/mysql/conf.d/numa.cnf\n[mysqld]\ninnodb_numa_interleave=ON\n",
    );
    check(
        "postgres",
        &local(),
        "",
        "# systemctl edit postgresql@.service\n[Service]\nCPUAffinity=4-7\nNUMAPolicy=bind\nNUMAMask=1\n",
    );
}

/// An arm that differs from the default by its number of threads, and what else is passed on.
fn arm(placement: Placement, threads: u32, by_variables: bool) -> Arm {
    let names = THREAD_VARIABLES.into_iter().filter(|_| by_variables);
    Arm {
        id: ArmId::new(1),
        name: format!("x, {threads} threads"),
        placement,
        environment: names.map(|name| (name.to_owned(), threads.to_string())).collect(),
        threads: Some(threads),
    }
}

/// All of the variables behind a word each, as most tools take them.
fn all(before: &str, count: u32) -> String {
    THREAD_VARIABLES.map(|name| format!("{before}{name}={count}")).join(" ")
}

#[test]
fn each_tool_is_told_the_number_of_threads() {
    let check = |target: &str, placement: &Placement, expected: &str| {
        let arm = arm(placement.clone(), 3, true);
        let emitted =
            of_arm(target.parse().unwrap(), &arm, &words("./a b"), &scope(), &Paths::default()).unwrap();
        assert_eq!(emitted.text, expected, "{target}");
    };
    let none = Placement::DEFAULT;
    let (plain, e, x) = (all("", 3), all("-e ", 3), all("-x ", 3));
    let huge = Placement { huge: Some(HugePages::NEVER), ..local() };
    check("numactl", &none, &format!("{plain} ./a b"));
    check("numactl", &local(), &format!("{plain} numactl --cpunodebind=1 --membind=1 ./a b"));
    let run = format!("{plain} nodewise run --cpunodebind=1 --membind=1 --huge=never -- ./a b");
    check("numactl", &huge, &run);
    let head = |service: &str| format!("# systemctl edit {service}\n[Service]\nEnvironment={plain}\n");
    check("systemd", &none, &head("NAME.service"));
    let weighted_start = "ExecStart=\nExecStart=nodewise run --weighted-interleave=all -- ./a b\n";
    check("systemd", &weighted(), &format!("{}{weighted_start}", head("NAME.service")));
    check("docker", &none, &format!("docker run {e} IMAGE ./a b"));
    check("docker", &local(), &format!("docker run --cpuset-cpus=4-7 {e} --cpuset-mems=1 IMAGE ./a b"));
    let inside = format!("podman run {e} --cap-add=SYS_NICE IMAGE numactl --interleave=all ./a b");
    check("podman", &interleaved(), &inside);
    let export = format!("srun --export=ALL,{}", plain.replace(' ', ","));
    check("slurm", &none, &format!("{export} ./a b"));
    let ours = format!("{export} --cpu-bind=none nodewise run --weighted-interleave=all -- ./a b");
    check("slurm", &weighted(), &ours);
    check("mpi", &none, &format!("mpirun --bind-to none {x} ./a b"));
    check("mpi", &interleaved(), &format!("mpirun --bind-to none {x} numactl --interleave=all ./a b"));
    let env = THREAD_VARIABLES.map(|name| format!("- {{name: {name}, value: \"3\"}}\n")).concat();
    let command = "# in the pod, for the container\ncommand: [\"./a\", \"b\"]\n";
    check("k8s", &none, &format!("{command}env:\n{env}"));
    let places = "OMP_PLACES='{0},{1},{2},{3},{4},{5},{6},{7}' OMP_PROC_BIND=spread";
    check("openmp", &none, &format!("{plain} {places} ./a b"));
    let share = THREAD_VARIABLES.map(|name| format!("{name}=$(((3 + WORKERS - 1) / WORKERS))")).join(" ");
    check("torchrun", &none, &format!("{share} torchrun --nproc-per-node=WORKERS ./a b"));
    check("jvm", &none, &format!("{plain} java -XX:+UseNUMA ./a b"));
    check("mongod", &none, &head("mongod.service"));
    let lines = format!("{}NUMAPolicy=interleave\nNUMAMask=0-1\n", head("mysql.service"));
    check("mysqld", &interleaved(), &lines);
    check("postgres", &none, &head("postgresql@.service"));
    let why = of_arm(Target::Libvirt, &arm(none, 3, true), &[], &scope(), &Paths::default())
        .unwrap_err()
        .to_string();
    assert_eq!(why, "libvirt has no setting for 3 threads: set it inside the guest");
    let notes =
        of_arm(Target::Libvirt, &arm(local(), 3, true), &[], &scope(), &Paths::default()).unwrap().notes;
    assert_eq!(notes, [why]);
}

#[test]
fn a_number_that_stands_in_the_command_is_written_with_it() {
    for target in Target::ALL {
        let arm = arm(local(), 3, false);
        let emitted = of_arm(target, &arm, &words("/bin/a -j3"), &scope(), &Paths::default()).unwrap();
        let is_said = emitted.text.contains("-j3") || emitted.text.contains("\"-j3\"");
        let is_noted = emitted.notes.iter().any(|note| note.contains('3'));
        assert!(is_said || is_noted, "{target:?}: {emitted:?}");
        assert!(!emitted.text.contains("GOMAXPROCS"), "{target:?}: no variable was set: {emitted:?}");
    }
    let systemd =
        of_arm(Target::Systemd, &arm(local(), 3, false), &words("/bin/a -j3"), &scope(), &Paths::default())
            .unwrap();
    assert!(systemd.text.ends_with("NUMAMask=1\nExecStart=\nExecStart=/bin/a -j3\n"), "{}", systemd.text);
    let openmp =
        of_arm(Target::OpenMp, &arm(local(), 3, false), &words("./a -j3"), &scope(), &Paths::default())
            .unwrap();
    assert!(openmp.text.starts_with("OMP_NUM_THREADS=3 OMP_PLACES='{4},"), "{}", openmp.text);
}

#[test]
fn java_is_told_where_its_cpus_and_memory_are_of_different_nodes() {
    let notes = |placement: Placement| {
        emit(Target::Jvm, &placement, &[], &scope(), &Paths::default()).unwrap().notes.join("\n")
    };
    let cpus = |cpus: &[u32]| cpus.iter().map(|cpu| nodewise_machine::CpuId::new(*cpu)).collect::<CpuSet>();
    let bind = || Placement::memory(PolicyMode::Bind, NodeSet::from([1]));
    let warned = |placement, masks: &str| {
        let notes = notes(placement);
        assert!(notes.ends_with(masks), "{notes}");
        assert!(!notes.contains("UseNUMA"), "the flag does not stand there: {notes}");
    };
    let of_1 = "memory of nodes 1 goes with CPUs 4-7, this placement has CPUs";
    warned(bind().with_cpus(cpus(&[0, 1, 2, 3])), &format!("{of_1} 0-3"));
    warned(bind(), &format!("{of_1} 0-7"));
    let of_all = "memory of nodes 0-1 goes with CPUs 0-7, this placement has CPUs 0-3";
    warned(Placement::on_cpus(cpus(&[0, 1, 2, 3])), of_all);
    assert_eq!(notes(local()), "");
    assert_eq!(notes(interleaved()), "");
    assert_eq!(notes(Placement::memory(PolicyMode::Local, NodeSet::new())), "");
    let flag = "-XX:+UseNUMA has an effect with the parallel collector, G1 and ZGC";
    assert_eq!(notes(Placement::DEFAULT), flag);
}

#[test]
fn java_gets_no_cpus_of_other_nodes_than_its_memory() {
    let both = Placement::memory(PolicyMode::Bind, NodeSet::from([0, 1]));
    let java = |placement: &Placement| emit(Target::Jvm, placement, &[], &scope(), &Paths::default());
    assert!(java(&both).unwrap().text.contains("-XX:+UseNUMA "));
    let one_side = both.with_cpus(CpuSet::from([0, 1]));
    let why = java(&one_side).unwrap_err().to_string();
    assert!(why.contains("memory of nodes 0-1 goes with CPUs 0-7, this placement has CPUs 0-1"), "{why}");
}

#[test]
fn what_a_tool_cannot_say_is_refused_or_noted() {
    let why = emit(Target::Libvirt, &weighted(), &[], &scope(), &Paths::default()).unwrap_err().to_string();
    assert!(why.starts_with("libvirt has no mode for weighted-interleave"), "{why}");
    let huge = Placement { huge: Some(HugePages::NEVER), ..local() };
    let notes = emit(Target::Libvirt, &huge, &[], &scope(), &Paths::default()).unwrap().notes;
    assert!(notes[0].contains("huge pages off cannot be said here"), "{notes:?}");
    let pool = Placement { huge: Some(HugePages::Pool), ..Placement::DEFAULT };
    let text = emit(Target::Jvm, &pool, &[], &scope(), &Paths::default()).unwrap().text;
    assert_eq!(text.trim_end(), "java -XX:+UseNUMA -XX:+UseLargePages -jar APPLICATION.jar");
    let text = emit(Target::Systemd, &huge, &words("/bin/a"), &scope(), &Paths::default()).unwrap().text;
    assert!(
        text.contains(
            "\nExecStart=\nExecStart=nodewise run --cpunodebind=1 --membind=1 --huge=never -- /bin/a\n"
        ),
        "{text}"
    );
}

#[test]
fn every_tool_answers_for_every_placement_and_nothing_raw_gets_through() {
    let program = vec!["./a".to_owned(), "\u{1b}[2J\u{202e}".to_owned()];
    let nodes = || NodeSet::from([0, 1]);
    for target in Target::ALL {
        for mode in PolicyMode::ALL {
            for huge in [None, Some(HugePages::ALWAYS), Some(HugePages::Pool)] {
                let placement = Placement { huge, ..Placement::memory(mode, nodes()) };
                match emit(target, &placement, &program, &scope(), &Paths::default()) {
                    Ok(emitted) => {
                        assert!(!emitted.text.is_empty(), "{target:?} {mode:?}");
                        let raw = emitted.text.contains(['\u{1b}', '\u{202e}']);
                        assert!(!raw, "{target:?} {mode:?}: {}", emitted.text);
                    }
                    Err(why) => assert!(why.to_string().len() > 20, "{target:?} {mode:?}"),
                }
            }
        }
    }
}

#[test]
fn a_unit_of_systemd_has_full_paths_and_is_not_empty() {
    let paths =
        Paths { nodewise: Some("/opt/nodewise".to_owned()), program: Some("/home/me/solver".to_owned()) };
    let emitted = emit(Target::Systemd, &weighted(), &words("./solver in.dat"), &scope(), &paths).unwrap();
    assert!(emitted.text.contains("ExecStart=/opt/nodewise run --weighted-interleave="), "{}", emitted.text);
    assert!(emitted.text.ends_with(" -- /home/me/solver in.dat\n"), "{}", emitted.text);
    assert!(!emitted.notes.iter().any(|note| note.contains("full path")), "{:?}", emitted.notes);
    for target in [Target::Systemd, Target::Mongod, Target::Postgres] {
        let why = emit(target, &Placement::DEFAULT, &words("/bin/a"), &scope(), &paths).unwrap_err();
        assert!(why.to_string().starts_with("there is no placement to set: name one"), "{why}");
    }
}

#[test]
fn an_unknown_tool_is_told_the_known_ones() {
    let error = "numctl".parse::<Target>().unwrap_err().to_string();
    assert!(error.contains("numctl"), "{error}");
    assert!(error.contains("expected one of numactl, systemd, docker"), "{error}");
    for target in Target::ALL {
        assert_eq!(target.name().parse(), Ok(target));
    }
}
