//! Fallback orders as the kernel printed them.

use nodewise_machine::{Machine, spec};
use nodewise_model::{BuiltAt, FallbackOrders};

use crate::server::{machine, numbers};

fn check(machine: &Machine, built: BuiltAt, expected: &[&[u32]]) {
    let orders: Vec<Vec<u32>> =
        FallbackOrders::from_machine(machine, built).iter().map(|(_, order)| numbers(order)).collect();
    assert_eq!(orders, expected);
}

/// On 6.12 for arm64 too.
#[test]
fn case_01_zonelist_seed4() {
    check(&machine(), BuiltAt::Boot, &[&[0, 1, 2, 3], &[1, 0, 3, 2], &[2, 3, 0, 1], &[3, 2, 1, 0]]);
}

const HEADLESS: &str = "2x(1c 512M) 2x(512M)";

/// On 6.12 for arm64 too.
#[test]
fn case_02_zonelist_cpuless_boot() {
    let machine = spec::machine(HEADLESS).unwrap();
    check(&machine, BuiltAt::Boot, &[&[0, 1, 2, 3], &[1, 2, 3, 0], &[2, 3, 0, 1], &[3, 0, 1, 2]]);
}

#[test]
fn case_03_zonelist_cpuless_hotplug() {
    let machine = spec::machine(HEADLESS).unwrap();
    check(&machine, BuiltAt::RunTime, &[&[0, 2, 3, 1], &[1, 3, 2, 0], &[2, 3, 0, 1], &[3, 2, 0, 1]]);
}

#[test]
fn case_05_zonelist_slit_asym() {
    let machine =
        spec::machine("2x(1c 1G) 2x(1G); dist=10,21,17,28/21,10,28,17/17,28,10,28/28,17,28,10").unwrap();
    check(&machine, BuiltAt::Boot, &[&[0, 2, 1, 3], &[1, 3, 0, 2], &[2, 0, 3, 1], &[3, 1, 0, 2]]);
}

/// From the published log of a Raspberry Pi 5 with eight emulated nodes.
#[test]
fn case_07_zonelist_pi5() {
    let machine = spec::machine("8x(1c 1G); dist=10; arch=aarch64").unwrap();
    let rotation = |start: u32| (start..8).chain(0..start).collect::<Vec<u32>>();
    let expected: Vec<Vec<u32>> = (0..8).map(rotation).collect();
    check(&machine, BuiltAt::Boot, &expected.iter().map(Vec::as_slice).collect::<Vec<_>>());
}
