//! Virtual machines, put before QEMU and libvirt.

use crate::nodewise::{output, run, without_variables};
use crate::sandbox::has;

use super::{FULL, exported, fed, file, machines};

#[test]
fn libvirt_takes_every_domain() {
    if !has("virt-xml-validate", "libvirt-clients") || !has("xmllint", "libxml2-utils") {
        return;
    }
    let validate = |text: &str| {
        let (_folder, path) = file(text, "domain.xml");
        output(without_variables("virt-xml-validate").arg(&path).arg("domain"))
    };
    let mut taken = 0;
    for machine in machines() {
        let ran = run(&["export", "libvirt", "--machine", &machine]);
        if ran.code == Some(3) {
            assert!(ran.stderr.contains("a domain of libvirt needs"), "{machine}: {}", ran.stderr);
            continue;
        }
        let text = ran.ok();
        let checked = validate(&text);
        assert_eq!(checked.code, Some(0), "{machine}: {}{}", checked.stderr, checked.stdout);
        let (_folder, path) =
            file(&text.replacen("'kvm'", "'test'", 1).replacen("\"kvm\"", "\"test\"", 1), "domain.xml");
        // Grammar knows nothing of cells; the driver for tests reads them, and starts nothing.
        let defined = output(without_variables("virsh").args(["-c", "test:///default", "define"]).arg(&path));
        let of_cells = ["NUMA", "numa", "cell", "distance", "interconnect", "cache"];
        assert!(!of_cells.iter().any(|word| defined.stderr.contains(word)), "{machine}: {}", defined.stderr);
        taken += 1;
    }
    assert!(taken > 5, "{taken}");
    let wrong = exported("libvirt", FULL).replace("value=\"24\"", "value=\"9\"");
    assert_ne!(validate(&wrong).code, Some(0), "a check that finds nothing is none");
}

#[test]
fn qemu_builds_the_nodes() {
    if !has("qemu-system-x86_64", "qemu-system-x86") {
        return;
    }
    let text = exported("qemu", "2x(2c 128M); dist=21");
    let asked = "info numa\nquit\n";
    let guest = format!("{} -S -nodefaults -display none -monitor stdio", text.trim_end());
    let answer = fed(without_variables("sh").args(["-c", &guest]), asked);
    assert_eq!(answer.code, Some(0), "{text}{}", answer.stderr);
    assert!(
        answer.stdout.contains("2 nodes") && answer.stdout.contains("node 1 size: 128 MB"),
        "{}",
        answer.stdout
    );
}
