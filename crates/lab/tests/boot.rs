//! Real kernels in guests: what a layout promises is what the guest's kernel says.
//!
//! Each guest is asked everything in one script, because booting takes far longer than answering.
#![forbid(unsafe_code)]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use nodewise_lab::layout::{GuestNode, Layout, Limits};
use nodewise_lab::{
    BootEvent, Engine, EngineChoice, EngineTaken, Engines, Guest, GuestError, KernelChoice, Lab,
};
use nodewise_machine::{Machine, spec};

/// The lab, or `None` after saying in one line why it is missing.
fn lab(test: &str) -> Option<Lab> {
    let found = Lab::for_test(&KernelChoice::default());
    if let Err(line) = &found {
        // Straight to the descriptor: what a passing test prints is otherwise swallowed.
        let _ = writeln!(std::io::stderr(), "{test} {line}");
    }
    found.ok()
}

fn machine(text: &str) -> Machine {
    spec::machine(text).expect("the specs of these tests are valid")
}

fn guest(lab: &Lab, spec: &str) -> Guest {
    let layout = Layout::new(&machine(spec), &Limits::default()).expect("the machines of these tests fit");
    lab.guest(layout)
}

fn words<const N: usize>(words: [&str; N]) -> [OsString; N] {
    words.map(OsString::from)
}

/// Asks the guest's kernel for its nodes, one line per fact.
const ASK: &str = r#"
cd /sys/devices/system/node
echo online $(cat online) cpu $(cat has_cpu) memory $(cat has_memory)
for node in $(ls -d node* | sed s/node// | sort -n); do
    echo $node cpus $(cat node$node/cpulist)
    echo $node distance $(cat node$node/distance)
    for class in 0 1; do
        access=node$node/access$class/initiators
        if [ -d $access ]; then
            echo $node access$class $(cd $access; ls -d node* | tr '\n' ' ';
                cat read_latency write_latency read_bandwidth write_bandwidth)
        fi
    done
done
cd /sys/devices/system/cpu
for cpu in $(ls -d cpu[0-9]* | sed s/cpu// | sort -n); do
    echo cpu $cpu package $(cat cpu$cpu/topology/physical_package_id) \
        siblings $(cat cpu$cpu/topology/thread_siblings_list)
done
"#;

/// Returns the answer that the guest's kernel should give, by the layout.
fn expected(layout: &Layout) -> String {
    let with = |keep: &dyn Fn(&GuestNode) -> bool| -> nodewise_machine::NodeSet {
        layout.nodes.iter().filter(|node| keep(node)).map(|node| node.id).collect()
    };
    let mut text = format!(
        "online {} cpu {} memory {}\n",
        with(&|_| true),
        with(&|node| !node.cpus.is_empty()),
        with(&|node| node.memory.is_some())
    );
    for node in &layout.nodes {
        text.push_str(format!("{} cpus {}", node.id, node.cpus).trim_end());
        text.push_str(&format!("\n{} distance", node.id));
        for to in &layout.nodes {
            let distance = layout.distances.get(node.id, to.id).expect("every cell of a layout is set");
            text.push_str(&format!(" {distance}"));
        }
        text.push('\n');
        for class in 0..2 {
            let Some(initiator) = node.initiator.filter(|_| node.memory.is_some()) else { continue };
            let cell =
                layout.accesses.iter().find(|cell| (cell.initiator, cell.target) == (initiator, node.id));
            let values = cell.map_or([None; 4], |cell| {
                [
                    cell.read_latency_ns,
                    cell.write_latency_ns,
                    cell.read_bandwidth_mb_per_s,
                    cell.write_bandwidth_mb_per_s,
                ]
            });
            // sysfs shows 0 for what the HMAT does not say.
            let values = values.map(|value| value.unwrap_or(0).to_string()).join(" ");
            text.push_str(&format!("{} access{class} node{initiator} {values}\n", node.id));
        }
    }
    let shape = layout.shape;
    for cpu in 0..shape.cpus() {
        let package = cpu / (shape.dies * shape.cores * shape.threads);
        let first = cpu - cpu % shape.threads;
        let siblings = if shape.threads == 1 {
            cpu.to_string()
        } else {
            format!("{first}-{}", first + shape.threads - 1)
        };
        text.push_str(&format!("cpu {cpu} package {package} siblings {siblings}\n"));
    }
    text
}

/// Boots a machine and compares every node with its layout.
fn check(test: &str, spec: &str) {
    let Some(lab) = lab(test) else { return };
    let guest = guest(&lab, spec);
    let output = guest.run(&words(["sh", "-c", ASK])).expect("the guest boots");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected(&guest.layout), "{spec}");
    assert_eq!(output.status, 0);
}

#[test]
fn the_four_node_server_boots() {
    check("the_four_node_server_boots", "2x(2x(12c2t 128G)); dist=11,20");
}

#[test]
fn two_sockets_boot() {
    check("two_sockets_boot", "2x(10c2t 64G); dist=21");
}

#[test]
fn a_raspberry_pi_with_emulated_nodes_boots() {
    check("a_raspberry_pi_with_emulated_nodes_boots", "(4c 1G) 7x(1G); dist=20");
}

#[test]
fn sparse_asymmetric_nodes_with_an_hmat_boot() {
    check(
        "sparse_asymmetric_nodes_with_an_hmat_boot",
        "(2c 8G) (1c 4G) (2c) (16G) (8G); ids=0,1,2,8,9; \
         dist=10,16,20,28,30/17,10,20,26,30/20,20,10,30,30/28,26,30,10,40/31,30,30,40,10; \
         access=0>0:100ns/80G; access=1>1:100ns/80G; access=0-1>8:250ns,300ns/30G,15G",
    );
}

/// Passing of arguments, output, status, folders and variables between host and guest.
#[test]
fn a_command_runs_as_if_it_were_here() {
    let Some(lab) = lab("a_command_runs_as_if_it_were_here") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scratch = folder.path().join("a scratch folder, with a comma");
    let start = folder.path().join("it's here");
    fs::create_dir(&scratch).expect("a scratch folder");
    fs::create_dir(&start).expect("a folder to start in");
    fs::write(scratch.join("in"), "from the host\n").expect("a file in the scratch folder");
    let mut guest = guest(&lab, "(2c 1G)");
    guest.scratch = Some(scratch.clone());
    guest.directory = Some(start.clone());
    guest.variables.push(("LAB TEST".into(), "a value".into()));
    guest.append = vec!["nodewise.word=1 numa_balancing=disable".into(), "nodewise.other=2".into()];
    let script = r#"
        printf '%s\n' "$#" "$@" > "$NODEWISE_SCRATCH/arguments"
        cat "$NODEWISE_SCRATCH/in"
        pwd
        tr '\0' '\n' < /proc/$$/environ | cut -d= -f1 | sort
        touch /tmp/made /etc/made && ls /tmp/made
        touch /usr/made || echo /usr is read-only
        cat /proc/cmdline | tr ' ' '\n' | grep -E '^nodewise|^numa'
        head -c 1000000 /dev/zero | tr '\0' x
        echo
        echo to stderr >&2
        exit 42
    "#;
    let bytes: Vec<u8> = (1..=255).collect();
    let odd = OsString::from_vec(bytes.clone());
    let mut command = words(["sh", "-c", script, "sh", "two words", "", "$HOME `x` \"y\" 'z'"]).to_vec();
    command.push(odd);
    let output = guest.run(&command).expect("the guest boots");
    assert_eq!(output.status, 42);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.ends_with("\nto stderr\n") && stderr.contains("Read-only file system"), "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<&str> = stdout.lines().collect();
    let long = lines.iter().position(|line| line.len() == 1_000_000).expect("a long line");
    lines.remove(long);
    let start = start.canonicalize().expect("the folder exists");
    let mut names = vec!["LAB TEST", "NODEWISE_SCRATCH", "PATH"];
    names.extend(["HOME", "LANG", "LC_ALL"].into_iter().filter(|name| std::env::var_os(name).is_some()));
    names.sort_unstable();
    let mut wanted = vec!["from the host", start.to_str().expect("a plain path")];
    wanted.extend(names);
    wanted.extend(["/tmp/made", "/usr is read-only"]);
    wanted.extend(["nodewise.word=1", "numa_balancing=disable", "nodewise.other=2"]);
    assert_eq!(lines, wanted);
    let mut arguments = b"4\ntwo words\n\n$HOME `x` \"y\" 'z'\n".to_vec();
    arguments.extend(&bytes);
    arguments.push(b'\n');
    assert_eq!(fs::read(scratch.join("arguments")).expect("the guest wrote it"), arguments);
    assert!(!std::path::Path::new("/tmp/made").exists(), "what a guest writes stays in the guest");
}

/// Whether a process whose command line holds these bytes runs on this host.
fn runs(mark: &OsStr) -> bool {
    fs::read_dir("/proc").expect("a mounted /proc").filter_map(Result::ok).any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.windows(mark.len()).any(|window| window == mark.as_bytes())
    })
}

#[test]
fn a_guest_that_is_stopped_leaves_nothing() {
    let Some(lab) = lab("a_guest_that_is_stopped_leaves_nothing") else { return };
    let mut guest = guest(&lab, "(1c 512M)");
    let mark = format!("nodewise-lab-test-{}", std::process::id());
    guest.qemu_arguments = words(["-name", &mark]).to_vec();
    guest.timeout = Duration::from_secs(4);
    let error = guest.run(&words(["sleep", "100000"])).expect_err("the command does not end");
    assert!(matches!(error, GuestError::TimedOut { .. }), "{error}");
    assert!(error.to_string().starts_with("the guest was stopped after 4 s"), "{error}");
    assert!(!runs(OsStr::new(&mark)), "QEMU outlives its guest");
}

/// With the KVM of this machine, or with TCG and the reason.
#[test]
fn a_guest_starts_whether_kvm_works_or_not() {
    let Some(lab) = lab("a_guest_starts_whether_kvm_works_or_not") else { return };
    let mut guest = guest(&lab, "2x(1c 512M); dist=20");
    guest.engines = Engines::new(EngineChoice::Auto);
    let mut engines: Vec<EngineTaken> = Vec::new();
    let mut watch = |event: BootEvent<'_>| {
        if let BootEvent::Engine(taken) = event {
            engines.push(taken.clone());
        }
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let ask = words(["sh", "-c", "cat /sys/devices/system/node/online; grep -c -w ^processor /proc/cpuinfo"]);
    let status = guest.stream_watched(&ask, &mut stdout, &mut stderr, &mut watch).expect("the guest boots");
    assert_eq!((status, String::from_utf8_lossy(&stdout).as_ref()), (0, "0-1\n2\n"));
    let [taken] = &engines[..] else { panic!("one engine is named: {engines:?}") };
    let opened = fs::OpenOptions::new().read(true).write(true).open("/dev/kvm");
    let start = match (&opened, taken.engine) {
        (Ok(_), Engine::Kvm) => "/dev/kvm can be opened",
        (Ok(_), Engine::Tcg) => "KVM failed: ",
        (Err(_), _) => "/dev/kvm: ",
    };
    assert!(taken.reason.starts_with(start), "{taken}");
    let _ = writeln!(std::io::stderr(), "a_guest_starts_whether_kvm_works_or_not: engine: {taken}");
}

#[test]
fn a_panic_is_reported_with_the_console() {
    let Some(lab) = lab("a_panic_is_reported_with_the_console") else { return };
    let error = guest(&lab, "(1c 512M)")
        .run(&words(["sh", "-c", "echo before; echo c > /proc/sysrq-trigger"]))
        .expect_err("the kernel panics");
    let GuestError::Panicked { reason, console } = &error else { panic!("not a panic: {error}") };
    assert_eq!(reason, "sysrq triggered crash", "{error}");
    assert!(console.lines().iter().any(|line| line.contains("sysrq: Trigger a crash")), "{error}");
}

#[test]
fn what_qemu_refuses_is_told_in_its_words() {
    let Some(lab) = lab("what_qemu_refuses_is_told_in_its_words") else { return };
    let mut guest = guest(&lab, "(1c 512M)");
    guest.qemu_arguments = words(["-device", "no-such-device"]).to_vec();
    let error = guest.run(&words(["true"])).expect_err("QEMU refuses the device");
    assert!(error.to_string().contains("'no-such-device' is not a valid device model name"), "{error}");
}
