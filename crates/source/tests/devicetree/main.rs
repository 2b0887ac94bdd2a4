//! Device trees: made by dtc and by QEMU, written by hand, broken in every way.
#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]
#![expect(clippy::print_stderr, reason = "a test that cannot run says why")]

mod blob;

use std::io::Write as _;
use std::process::{Command, Stdio};

use nodewise_machine::firmware::devicetree::{NodeProperty, NumaTree, Reg};
use nodewise_source::devicetree::read;

/// Compiles a tree with dtc; `None`, with the reason, where it is not installed.
fn compiled(source: &str) -> Option<Vec<u8>> {
    let dtc = Command::new("dtc")
        .args(["-q", "-I", "dts", "-O", "dtb"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut dtc) = dtc else {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "dtc is missing");
        eprintln!("no tree was compiled: dtc is not installed (package device-tree-compiler)");
        return None;
    };
    dtc.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    let output = dtc.wait_with_output().unwrap();
    assert!(output.status.success(), "dtc refuses\n{source}");
    Some(output.stdout)
}

/// CPUs and memory in a line each: path, own node, node that it inherits; path, node, ranges in MiB.
fn lines(tree: &NumaTree) -> Vec<String> {
    let id = |id: NodeProperty| match id {
        NodeProperty::Id(id) => id.to_string(),
        other => format!("{other:?}"),
    };
    let cpus = tree.cpus.iter().map(|cpu| {
        let state = if cpu.enabled { "" } else { " off" };
        format!("{} {} {}{state}", cpu.path, id(cpu.own), id(cpu.inherited))
    });
    let memory = tree.memory.iter().map(|memory| {
        let ranges = memory.ranges.as_ref().map(|ranges| {
            let mib = |reg: &Reg| format!("{}+{}", reg.start >> 20, reg.size >> 20);
            ranges.iter().map(mib).collect::<Vec<_>>().join(" ")
        });
        format!("{} {} {}", memory.path, id(memory.node), ranges.unwrap_or_else(|| "-".to_owned()))
    });
    cpus.chain(memory).collect()
}

fn check(source: &str, expected: &[&str]) -> Option<NumaTree> {
    let tree = read(&compiled(source)?).unwrap();
    assert_eq!(lines(&tree), expected, "{source}");
    Some(tree)
}

#[test]
fn the_tree_of_qemu_names_its_nodes() {
    let expected = [
        "/cpus/cpu@0 0 0",
        "/cpus/cpu@1 0 0",
        "/cpus/cpu@2 1 1",
        "/cpus/cpu@3 1 1",
        "/cpus/cpu@4 2 2",
        "/cpus/cpu@5 2 2",
        "/memory@90000000 3 2304+256",
        "/memory@70000000 2 1792+512",
        "/memory@60000000 1 1536+256",
        "/memory@40000000 0 1024+512",
    ];
    let Some(tree) = check(include_str!("virt-four-nodes.dts"), &expected) else { return };
    assert_eq!(tree.model.as_deref(), Some("linux,dummy-virt"));
    let map = tree.distance_map.unwrap();
    assert!(map.is_known);
    let triples = map.triples.unwrap();
    assert_eq!((triples.len(), triples[1], triples[2]), (16, [0, 1, 15], [0, 2, 25]));
}

#[test]
fn a_cpu_takes_the_node_of_the_nearest_parent() {
    let source = "/dts-v1/; / {
        #address-cells = <1>; #size-cells = <1>; numa-node-id = <3>; model = \"a\";
        cpus {
            #address-cells = <1>; #size-cells = <0>;
            cpu@0 { device_type = \"cpu\"; reg = <0>; numa-node-id = <1>; };
            cpu@1 { device_type = \"cpu\"; reg = <1>; };
            cpu@2 { device_type = \"cpu\"; reg = <2>; status = \"disabled\"; numa-node-id = [00 01]; };
            cpu-map { cluster0 { core0 { }; }; };
        };
        memory@0 { device_type = \"memory\"; reg = <0 0x10000000>, <0x20000000 0x10000000>; };
        soc { #address-cells = <2>; #size-cells = <1>;
            memory@1 { device_type = \"memory\"; reg = <0 0 0x10000000>; status = \"disabled\"; };
            memory@2 { device_type = \"memory\"; reg = <1 0 0x10000000>; numa-node-id = <2>; };
            memory@3 { device_type = \"memory\"; reg = <1 0>; };
        };
    };";
    check(
        source,
        &[
            "/cpus/cpu@0 1 1",
            "/cpus/cpu@1 Missing 3",
            "/cpus/cpu@2 Malformed Malformed off",
            "/memory@0 Missing 0+256 512+256",
            "/soc/memory@2 2 4096+256",
            "/soc/memory@3 Missing -",
        ],
    );
}

#[test]
fn a_distance_map_has_three_numbers_each() {
    let map = |inside: &str| {
        let source = format!("/dts-v1/; / {{ distance-map {{ {inside} }}; }};");
        Some(check(&source, &[])?.distance_map.unwrap())
    };
    let Some(good) = map("compatible = \"numa-distance-map-v1\"; distance-matrix = <0 0 10>, <0 1 20>;")
    else {
        return;
    };
    assert_eq!((good.is_known, good.triples), (true, Some(vec![[0, 0, 10], [0, 1, 20]])));
    let other = map("compatible = \"numa-distance-map-v2\"; distance-matrix = <0 0>;").unwrap();
    assert_eq!((other.is_known, other.triples), (false, None));
    assert_eq!(map("").unwrap().triples, None);
}
