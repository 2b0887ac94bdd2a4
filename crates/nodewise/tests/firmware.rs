//! Firmware tables in real kernels (Linux): what the model makes of a guest's tables is what its kernel shows.
//!
//! The layouts of `tests/lab` have CPUs, memory and distances; these are those with an HMAT and caches
//! before memory, a window of CXL memory, and an initiator that is not a CPU.

#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]
#![expect(clippy::print_stderr, reason = "a test that cannot run says why")]

#[path = "lab/firmware.rs"]
mod firmware;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use nodewise_lab::{FirmwareNodes, Guest, KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;
use serde_json::Value;

/// Separates the two machines.
const BETWEEN: &str = "--- as its kernel shows it ---";

const NODEWISE: &str = env!("CARGO_BIN_EXE_nodewise");

/// A guest like a machine. `None`, with the reason, where there are no guests.
fn guest(spec: &str) -> Option<Guest> {
    let lab = Lab::for_test(&KernelChoice::default()).inspect_err(|why| eprintln!("{spec} {why}")).ok()?;
    let machine = spec::machine(spec).unwrap();
    Some(lab.guest(Layout::new(&machine, &Limits::default()).unwrap()))
}

/// Both machines of a guest: of its tables, and as its kernel shows it.
fn boot(spec: &str, qemu: &[&str]) -> Option<(Value, Value)> {
    let mut guest = guest(spec)?;
    guest.qemu_arguments = qemu.iter().flat_map(|words| words.split(' ')).map(OsString::from).collect();
    Some(both(&guest))
}

/// Both machines that a guest shows: of its tables, and of the files of its kernel.
fn both(guest: &Guest) -> (Value, Value) {
    let script = format!(
        "{NODEWISE} show --json --machine acpi:/sys/firmware/acpi/tables && echo '{BETWEEN}' && \
         {NODEWISE} show --json"
    );
    let command: Vec<OsString> = ["sh", "-c", &script].into_iter().map(OsString::from).collect();
    let output = guest.run(&command).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let (tables, live) = text.split_once(BETWEEN).unwrap_or_else(|| {
        panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
    });
    (serde_json::from_str(tables).unwrap(), serde_json::from_str(live).unwrap())
}

/// The output of nodewise on this machine.
fn nodewise(words: &[&str]) -> String {
    let output = Command::new(NODEWISE).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Boots a guest and compares; gives the machine of the tables.
fn check(spec: &str, qemu: &[&str]) -> Option<Value> {
    let (tables, live) = boot(spec, qemu)?;
    firmware::compare(&tables, &live).unwrap_or_else(|why| panic!("{spec}: {why}\n{tables:#}\n{live:#}"));
    Some(tables)
}

#[test]
fn an_hmat_gives_the_kernels_costs_tiers_and_caches() {
    let spec = "2x(1c 384M) (384M) (384M); dist=10,21,17,28/21,10,28,17/17,28,10,28/28,17,28,10; \
                access=0>0:100ns/100G; access=1>1:100ns/100G; access=0>2:300ns,350ns/20G; \
                access=1>3:400ns/10G";
    let cache = "-numa hmat-cache,node-id=2,size=1G,level=1,associativity=direct,policy=write-back,line=64";
    let Some(machine) = check(spec, &[cache]) else { return };
    assert_eq!(machine["accesses"].as_array().unwrap().len(), 8, "{machine:#}");
    assert!(machine["tiers"].as_array().unwrap().len() > 1, "{machine:#}");
    assert!(machine["nodes"][2]["memory_side_caches"].is_array(), "{machine:#}");
}

#[test]
fn a_window_of_cxl_memory_is_a_possible_node() {
    let cxl = [
        "-machine cxl=on",
        "-device pxb-cxl,id=cxl.1,bus=pcie.0,bus_nr=52",
        "-machine cxl-fmw.0.targets.0=cxl.1,cxl-fmw.0.size=4G",
    ];
    let Some(machine) = check("2x(1c 512M); dist=21", &cxl) else { return };
    assert_eq!(machine["possible_nodes"], "0-2");
    assert_eq!(machine["nodes"].as_array().unwrap().len(), 2);
}

#[test]
fn an_initiator_that_is_no_cpu_has_a_node() {
    let initiator = [
        "-numa node,nodeid=2",
        "-numa dist,src=0,dst=2,val=30 -numa dist,src=1,dst=2,val=40 -numa dist,src=2,dst=2,val=10",
        "-numa dist,src=2,dst=0,val=30 -numa dist,src=2,dst=1,val=40",
        "-device virtio-rng-pci,id=rng",
        "-object acpi-generic-initiator,id=gi,pci-dev=rng,node=2",
    ];
    let Some(machine) = check("2x(1c 512M); dist=21", &initiator) else { return };
    assert_eq!(machine["nodes"][2]["generic_initiator"], true, "{machine:#}");
}

#[test]
fn tables_in_front_of_a_first_file_system_give_nodes_to_a_guest_without() {
    // RAM on both sides of the hole below 4 GiB.
    let spec = "2x(2c 1152M) (384M) (256M); dist=10,21,17,28/22,10,28,17/17,28,10,30/28,17,30,10; \
                access=0>0:100ns/100G; access=1>1:100ns/100G; access=0>2:300ns,350ns/20G; access=1>3:400ns/10G";
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (tables, initrd) = (path("tables"), path("tables.cpio"));
    nodewise(&["acpi", "--write", &tables, "--initrd", &initrd, "--machine", spec]);
    let Some(mut guest) = guest(spec) else { return };
    // The layout is smaller where it would be slow; here it is as large as the machine.
    let machine = spec::machine(spec).unwrap();
    let limits = Limits { cpus: 4, memory: machine.memory_total().unwrap() };
    guest.layout = Layout::new(&machine, &limits).unwrap();
    guest.nodes = FirmwareNodes::Missing;
    guest.early = std::fs::read(Path::new(&initrd)).unwrap();
    let (of_tables, live) = both(&guest);
    firmware::compare(&of_tables, &live).unwrap_or_else(|why| panic!("{why}\n{of_tables:#}\n{live:#}"));
    // They are those that were written, and their nodes those of the spec.
    let read = |machine: &str| -> Value {
        serde_json::from_str(&nodewise(&["show", "--json", "--machine", machine])).unwrap()
    };
    let written = read(&format!("acpi:{tables}"));
    firmware::compare(&written, &live).unwrap_or_else(|why| panic!("{why}\n{written:#}\n{live:#}"));
    let wanted = read(spec);
    assert_eq!(live["distances"], wanted["distances"]);
    let of_cpus = |machine: &Value| -> Vec<Value> {
        machine["nodes"].as_array().unwrap().iter().map(|node| node["cpus"].clone()).collect()
    };
    assert_eq!(of_cpus(&live), of_cpus(&wanted));
    let first = |machine: &Value| -> Vec<Value> {
        let all = machine["accesses"].as_array().unwrap();
        all.iter().filter(|access| access["class"] == "any").cloned().collect()
    };
    assert!(!first(&wanted).is_empty(), "{wanted:#}");
    assert_eq!(first(&live), first(&wanted));
}
