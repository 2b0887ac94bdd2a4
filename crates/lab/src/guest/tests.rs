//! Guests whose QEMU is a script.

use super::*;
use crate::layout::Limits;
use nodewise_machine::spec;

/// A guest whose QEMU runs a shell script in the folder of a run; `$HERE` is a folder that
/// outlives it.
fn guest(folder: &Path, script: &str) -> Guest {
    let image = folder.join("script");
    fs::write(&image, script).unwrap();
    let qemu = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/qemu");
    let layout = Layout::new(&spec::machine("(1c 1G)").unwrap(), &Limits::default()).unwrap();
    let path = std::env::var("PATH").unwrap();
    Guest::new(layout, Kernel { image, release: None }, Tools { qemu, busybox: "/bin/sh".into(), path })
}

fn run(script: &str) -> Result<Output, String> {
    let folder = tempfile::tempdir().unwrap();
    guest(folder.path(), script).run(&["true".into()]).map_err(|error| error.to_string())
}

#[test]
fn the_commands_status_and_output_come_back() {
    let output = run("echo out >&3; echo err >&4; : > share/started; echo 9 > share/status").unwrap();
    assert_eq!(output, Output { status: 9, stdout: b"out\n".to_vec(), stderr: b"err\n".to_vec() });
}

#[test]
fn a_boot_that_the_emulator_spoiled_is_repeated() {
    let fault = "echo \"qemu: x.c:1: f: Assertion \\`a' failed.\" >&2; exit 1";
    let twice = format!(
        "[ -e $HERE/b ] && {{ echo 0 > share/status; exit 0; }}\n\
         [ -e $HERE/a ] && : > $HERE/b\n: > $HERE/a\n{fault}"
    );
    assert_eq!(run(&twice).unwrap().status, 0);
    let always = run(&format!("echo x >> $HERE/count; {fault}")).unwrap_err();
    assert_eq!(
        always,
        "the guest ended without a result; QEMU says:\n    qemu: x.c:1: f: Assertion `a' failed."
    );
}

#[test]
fn a_command_is_never_started_twice() {
    let folder = tempfile::tempdir().unwrap();
    let script = ": > share/started; echo x >> $HERE/count\n\
                  echo \"qemu: x.c:1: f: Assertion \\`a' failed.\" >&2; exit 1";
    guest(folder.path(), script).run(&["true".into()]).unwrap_err();
    assert_eq!(fs::read_to_string(folder.path().join("count")).unwrap(), "x\n");
}

#[test]
fn failures_are_told_apart() {
    assert_eq!(
        run("echo 'Kernel panic - not syncing: why' > console").unwrap_err(),
        "the guest's kernel panicked: why; its console:\n    Kernel panic - not syncing: why"
    );
    assert_eq!(
        run("echo no such device >&2; echo booting > console").unwrap_err(),
        "the guest ended without a result; QEMU says:\n    no such device; the end of its console:\n    booting"
    );
    assert_eq!(run("exit 0").unwrap_err(), "the guest ended without a result");
    let folder = tempfile::tempdir().unwrap();
    let mut slow = guest(folder.path(), "exec sleep 1000");
    slow.timeout = Duration::from_millis(1);
    let error = slow.run(&["true".into()]).unwrap_err().to_string();
    assert_eq!(error, "the guest was stopped after 0.001 s");
}

#[test]
fn what_cannot_be_passed_on_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = |change: &dyn Fn(&mut Guest), command: &[OsString], expected: &str| {
        let mut guest = guest(folder.path(), "echo started > $HERE/started");
        change(&mut guest);
        assert_eq!(guest.run(command).unwrap_err().to_string(), expected);
        assert!(!folder.path().join("started").exists());
    };
    let command = ["true".into()];
    refuse(&|_| {}, &[], "a guest needs a command to run");
    refuse(
        &|guest| guest.append = vec!["a=\"b c\"".into()],
        &command,
        "\"a=\"b c\"\" cannot be added to the kernel's command line: quotes cannot be passed",
    );
    refuse(
        &|guest| guest.append = vec!["a -- b".into()],
        &command,
        "\"a -- b\" cannot be added to the kernel's command line: what follows \"--\" would go to the \
         guest's init",
    );
    refuse(
        &|guest| guest.append = vec!["x".repeat(1024)],
        &command,
        &format!(
            "\"{}…\" cannot be added to the kernel's command line: more than 1024 bytes do not fit",
            "x".repeat(80)
        ),
    );
    refuse(
        &|guest| guest.scratch = Some("/no/such/folder".into()),
        &command,
        "the scratch folder \"/no/such/folder\" cannot be shared with the guest: no such file or directory",
    );
}

#[test]
fn qemu_gets_the_kernel_the_folders_and_the_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let mut guest = guest(folder.path(), "");
    guest.kernel.image = "/kernels/vmlinuz".into();
    guest.scratch = Some(folder.path().to_owned());
    guest.qemu_arguments = vec!["-device".into(), "pxb-pcie".into()];
    let words = guest.emulator(Engine::Tcg, None, &["numa=fake=4"]).into_iter().skip(1);
    let line = words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ");
    assert_eq!(
        line,
        "-kernel /kernels/vmlinuz -machine q35 -cpu max,la57=off,erms=off,fsrm=off -accel tcg,thread=single -display none -initrd \
         initramfs -append console=ttyS0 loglevel=7 panic=-1 no_timer_check mitigations=off numa=fake=4 \
         -chardev file,id=console,path=console -serial chardev:console \
         -fsdev local,id=root,path=/,security_model=none,multidevs=remap,readonly=on \
         -device virtio-9p-pci,fsdev=root,mount_tag=root \
         -fsdev local,id=run,path=share,security_model=none,multidevs=remap \
         -device virtio-9p-pci,fsdev=run,mount_tag=run \
         -fsdev local,id=scratch,path=scratch,security_model=none,multidevs=remap \
         -device virtio-9p-pci,fsdev=scratch,mount_tag=scratch -device virtio-serial-pci \
         -chardev file,id=stdout,path=/dev/fd/3 -device virtserialport,chardev=stdout,name=stdout \
         -chardev file,id=stderr,path=/dev/fd/4 -device virtserialport,chardev=stderr,name=stderr \
         -chardev file,id=dev_stdout,path=/dev/fd/3 -device virtserialport,chardev=dev_stdout,name=dev_stdout \
         -chardev file,id=dev_stderr,path=/dev/fd/4 -device virtserialport,chardev=dev_stderr,name=dev_stderr \
         -nodefaults -no-reboot -m size=1024M -smp cpus=1,sockets=1,cores=1,threads=1 -object \
         memory-backend-ram,id=node0,size=1024M -numa node,nodeid=0,cpus=0-0,memdev=node0 -numa \
         dist,src=0,dst=0,val=10 -device pxb-pcie"
    );
}

/// A guest that may try KVM, whose device is one that everybody can open.
fn kvm_guest(folder: &Path, choice: EngineChoice, script: &str) -> Guest {
    let mut guest = guest(folder, script);
    guest.engines = Engines::new(choice).with(Path::new("/dev/null"), LONG);
    guest
}

const LONG: Duration = Duration::from_secs(600);

/// Runs it, with the engines that it had and how often QEMU was started.
fn run_kvm(
    choice: EngineChoice,
    silence: Duration,
    script: &str,
) -> (Result<Output, String>, Vec<String>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut guest = kvm_guest(folder.path(), choice, &format!("echo x >> $HERE/count\n{script}"));
    guest.engines = Engines::new(choice).with(Path::new("/dev/null"), silence);
    let mut engines = Vec::new();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut watch = |event: BootEvent<'_>| {
        if let BootEvent::Engine(taken) = event {
            engines.push(taken.to_string());
        }
    };
    let status = guest.stream_watched(&["true".into()], &mut stdout, &mut stderr, &mut watch);
    let starts = fs::read_to_string(folder.path().join("count")).unwrap_or_default().lines().count();
    (status.map(|status| Output { status, stdout, stderr }).map_err(|why| why.to_string()), engines, starts)
}

/// The end of a script that ends well with TCG, and with KVM as `kvm` says.
fn by_engine(kvm: &str) -> String {
    format!(
        "case \"$*\" in *'-accel kvm'*) {kvm};; esac\n\
         echo out >&3; : > share/started; echo 0 > share/status"
    )
}

#[test]
fn a_guest_that_kvm_cannot_run_gets_tcg_with_the_reason() {
    for (kvm, reason) in [
        (
            "echo 'qemu-system-x86_64: error: failed to set MSR 0x10a to 0x0' >&2; exit 1",
            "failed to set MSR 0x10a to 0x0",
        ),
        ("echo 'KVM internal error. Suberror: 1' >&2; exec sleep 1000", "KVM internal error. Suberror: 1"),
        ("echo 'Kernel panic - not syncing: why' > console; exit 0", "the guest's kernel panicked: why"),
        ("exit 1", "QEMU ended before the guest's init reported"),
    ] {
        let (output, engines, starts) = run_kvm(EngineChoice::Auto, LONG, &by_engine(kvm));
        assert_eq!(output.unwrap().stdout, b"out\n", "{kvm}");
        assert_eq!((engines, starts), (vec![format!("tcg: KVM failed: {reason}")], 2), "{kvm}");
    }
    let hangs = by_engine("exec sleep 1000");
    let (output, engines, _) = run_kvm(EngineChoice::Auto, Duration::from_millis(1), &hangs);
    assert_eq!(output.unwrap().stdout, b"out\n");
    assert_eq!(engines, ["tcg: KVM failed: the guest wrote nothing for 0.001 s"]);
}

#[test]
fn a_kvm_that_works_is_taken() {
    let well = "echo out >&3; : > share/started; echo 3 > share/status; exit";
    let folder = tempfile::tempdir().unwrap();
    let guest = kvm_guest(folder.path(), EngineChoice::Auto, &by_engine(well));
    let mut engines = Vec::new();
    let mut watch = |event: BootEvent<'_>| {
        if let BootEvent::Engine(taken) = event {
            engines.push(taken.to_string());
        }
    };
    let status = guest.stream_watched(&["true".into()], &mut Vec::new(), &mut Vec::new(), &mut watch);
    assert_eq!((status.unwrap(), &engines[..]), (3, &["kvm: /dev/null can be opened".to_owned()][..]));
    let words = guest.emulator(Engine::Kvm, None, &[]).into_iter().map(|word| word.into_string().unwrap());
    let line = words.collect::<Vec<_>>().join(" ");
    assert!(line.contains(" -cpu host -accel kvm -display none "), "{line}");
}

#[test]
fn kvm_is_tried_once_for_guests_of_one_choice() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("echo x >> $HERE/count\n{}", by_engine("exit 1"));
    let guest = kvm_guest(folder.path(), EngineChoice::Auto, &script);
    for starts in [2, 3] {
        assert_eq!(guest.clone().run(&["true".into()]).unwrap().status, 0);
        assert_eq!(fs::read_to_string(folder.path().join("count")).unwrap().lines().count(), starts);
    }
}

#[test]
fn a_demand_for_kvm_is_an_error_where_it_does_not_work() {
    let (output, engines, starts) =
        run_kvm(EngineChoice::Kvm, LONG, &by_engine("echo 'qemu: no KVM' >&2; exit 1"));
    assert_eq!(output.unwrap_err(), "KVM cannot run this guest: qemu: no KVM (--engine=tcg needs no KVM)");
    assert_eq!((engines.len(), starts), (0, 1));
    let (output, engines, starts) = run_kvm(EngineChoice::Tcg, LONG, &by_engine("exit 1"));
    assert_eq!((output.unwrap().status, &engines[..], starts), (0, &["tcg".to_owned()][..], 1));
}

#[test]
fn a_command_that_kvm_began_is_not_started_again() {
    let kvm = ": > share/started; echo 'error: kvm run failed Bad address' >&2; exec sleep 1000";
    let folder = tempfile::tempdir().unwrap();
    let script = format!("echo x >> $HERE/count\n{}", by_engine(kvm));
    let guest = kvm_guest(folder.path(), EngineChoice::Auto, &script);
    assert_eq!(
        guest.run(&["true".into()]).unwrap_err().to_string(),
        "KVM cannot run this guest: kvm run failed Bad address (--engine=tcg needs no KVM)"
    );
    assert_eq!(fs::read_to_string(folder.path().join("count")).unwrap(), "x\n");
}

#[test]
fn time_that_follows_instructions_needs_tcg() {
    let folder = tempfile::tempdir().unwrap();
    let mut guest = kvm_guest(folder.path(), EngineChoice::Auto, "");
    guest.qemu_arguments = ["-icount", "shift=3"].map(OsString::from).to_vec();
    let taken = guest.first_engine(None).unwrap().to_string();
    assert_eq!(taken, "tcg: time that follows instructions (-icount) needs TCG");
}

#[test]
fn a_disk_is_an_empty_file_of_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let mut guest = guest(folder.path(), "stat -c '%s %b' disk >&3; echo 0 > share/status");
    guest.disk = Some(Bytes::from_gib(1));
    let words = guest.emulator(Engine::Tcg, None, &[]).into_iter().map(|word| word.into_string().unwrap());
    let line = words.collect::<Vec<_>>().join(" ");
    assert!(
        line.contains(
            "-drive file=disk,if=none,id=disk,format=raw,cache=unsafe -device virtio-blk-pci,drive=disk"
        ),
        "{line}"
    );
    assert_eq!(guest.run(&["true".into()]).unwrap().stdout, b"1073741824 0\n");
}

#[test]
fn a_firmware_without_nodes_has_memory_and_cpus_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut guest = guest(folder.path(), "");
    guest.nodes = FirmwareNodes::Missing;
    let words = guest.emulator(Engine::Tcg, None, &[]).into_iter().map(|word| word.into_string().unwrap());
    let line = words.collect::<Vec<_>>().join(" ");
    assert!(line.ends_with("-no-reboot -m size=1024M -smp cpus=1,sockets=1,cores=1,threads=1"), "{line}");
}

#[test]
fn a_guest_has_its_first_script_and_shell_behind_an_early_archive() {
    let folder = tempfile::tempdir().unwrap();
    let mut guest = guest(folder.path(), "cat initramfs >&3; echo 0 > share/status");
    guest.early = b"early".to_vec();
    let archive = guest.run(&["true".into()]).unwrap().stdout;
    assert!(archive.starts_with(b"early070701"));
    let has = |part: &[u8]| archive.windows(part.len()).any(|window| window == part);
    assert!(has(b"bin/busybox\0") && has(b"\x7fELF") && has(b"switch_root"));
}
