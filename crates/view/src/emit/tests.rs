use super::*;
use nodewise_machine::spec;

const MACHINE: &str = "2x(4c 8G)";

fn scope() -> Scope {
    Scope::of(&spec::machine(MACHINE).unwrap())
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
        let emitted = emit(target.parse().unwrap(), placement, &words(program), &scope()).unwrap();
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

#[test]
fn java_gets_no_cpus_of_other_nodes_than_its_memory() {
    let both = Placement::memory(PolicyMode::Bind, NodeSet::from([0, 1]));
    let java = |placement: &Placement| emit(Target::Jvm, placement, &[], &scope());
    assert!(java(&both).unwrap().text.contains("-XX:+UseNUMA "));
    let one_side = both.with_cpus(CpuSet::from([0, 1]));
    let why = java(&one_side).unwrap_err().to_string();
    assert!(why.contains("memory of nodes 0-1 goes with CPUs 0-7, this placement has CPUs 0-1"), "{why}");
}

#[test]
fn what_a_tool_cannot_say_is_refused_or_noted() {
    let why = emit(Target::Libvirt, &weighted(), &[], &scope()).unwrap_err().to_string();
    assert!(why.starts_with("libvirt has no mode for weighted-interleave"), "{why}");
    let huge = Placement { huge: Some(TransparentHuge::Never), ..local() };
    let notes = emit(Target::Libvirt, &huge, &[], &scope()).unwrap().notes;
    assert!(notes[0].contains("huge pages off cannot be said here"), "{notes:?}");
    let text = emit(Target::Systemd, &huge, &words("/bin/a"), &scope()).unwrap().text;
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
            for huge in [None, Some(TransparentHuge::Allowed), Some(TransparentHuge::OnlyAdvised)] {
                let placement = Placement { huge, ..Placement::memory(mode, nodes()) };
                match emit(target, &placement, &program, &scope()) {
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
fn an_unknown_tool_is_told_the_known_ones() {
    let error = "numctl".parse::<Target>().unwrap_err().to_string();
    assert!(error.contains("numctl"), "{error}");
    assert!(error.contains("expected one of numactl, systemd, docker"), "{error}");
    for target in Target::ALL {
        assert_eq!(target.name().parse(), Ok(target));
    }
}
