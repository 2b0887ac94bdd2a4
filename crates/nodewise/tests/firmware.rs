//! Firmware tables in real kernels: what the model makes of a guest's tables is what its kernel shows.
//!
//! The layouts of `tests/lab` have CPUs, memory and distances; these are those with an HMAT and caches
//! before memory, a window of CXL memory, and an initiator that is not a CPU.

#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]
#![expect(clippy::print_stderr, reason = "a test that cannot run says why")]

#[path = "lab/firmware.rs"]
mod firmware;

use std::ffi::OsString;

use nodewise_lab::{KernelChoice, Lab, Layout, Limits};
use nodewise_machine::spec;
use serde_json::Value;

/// Separates the two machines.
const BETWEEN: &str = "--- as its kernel shows it ---";

/// Both machines of a guest: of its tables, and as its kernel shows it. `None`, with the reason, where
/// there are no guests.
fn boot(spec: &str, qemu: &[&str]) -> Option<(Value, Value)> {
    let lab = match Lab::for_test(&KernelChoice::default()) {
        Ok(lab) => lab,
        Err(why) => {
            eprintln!("{spec} {why}");
            return None;
        }
    };
    let machine = spec::machine(spec).unwrap();
    let mut guest = lab.guest(Layout::new(&machine, &Limits::default()).unwrap());
    guest.qemu_arguments = qemu.iter().flat_map(|words| words.split(' ')).map(OsString::from).collect();
    let nodewise = env!("CARGO_BIN_EXE_nodewise");
    let script = format!(
        "{nodewise} show --json --machine acpi:/sys/firmware/acpi/tables && echo '{BETWEEN}' && \
         {nodewise} show --json"
    );
    let command: Vec<OsString> = ["sh", "-c", &script].into_iter().map(OsString::from).collect();
    let output = guest.run(&command).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let (tables, live) = text.split_once(BETWEEN).unwrap_or_else(|| {
        panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
    });
    Some((serde_json::from_str(tables).unwrap(), serde_json::from_str(live).unwrap()))
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
