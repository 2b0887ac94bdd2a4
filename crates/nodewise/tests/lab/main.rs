//! nodewise inside real kernels: machines are booted once each, and every check runs there.
//!
//! The same program has six roles. On the host it boots the guests and makes a test of each check
//! (`guest`); inside a guest, started with `--guest`, it watches over (`watchdog`) the process that runs the checks
//! and writes their results, `--checks` (`checks`); with `--probe` it is the program whose pages are looked at (`probe`), or, where
//! it stays for a while, with `--observed` (`observed`), or follows its CPU, with `--course` (`course`), or whose cache lines are counted, with `--walks` (`line_counts`).

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a guest speaks to its host through them")]

mod arm64;
mod checks;
mod course;
#[path = "../cli/filter.rs"]
mod filter;
mod firmware;
mod guest;
mod kernel;
mod line_counts;
mod locality;
mod nodewise;
mod observed;
mod observer;
mod pretended;
mod probe;
#[path = "../../../compat/tests/golden/program.rs"]
mod program;
mod sick_guests;
mod watchdog;
mod zoneinfo;

use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};
use nodewise_conformance::machines::{self, Drawn};
use nodewise_conformance::{cpuset, drawer, random, setting};
use nodewise_lab::kernel::{DEFAULT_VERSION, TESTED_VERSIONS};
use nodewise_lab::{Arch, KernelChoice, Lab};
use nodewise_machine::Bytes;
use serde_json::Value;

use crate::checks::{Extent, Load, scripts};
use crate::guest::{Guest, Plan};
use crate::sick_guests::SICK;

/// The machines: architecture, name, and a spec for the lab.
pub const LAYOUTS: [(Arch, &str, &str); 4] = [
    // The four-node server of the articles on the kernel's allocator.
    (Arch::X86, "four-nodes", "2x(2x(1c 512M)); dist=11,20"),
    (Arch::X86, "two-sockets", "2x(2c 768M); dist=21"),
    // A Raspberry Pi 5 with emulated nodes: only node 0 has CPUs, every other distance is 20.
    (Arch::X86, "pi-eight-nodes", "(4c 256M) 7x(256M)"),
    // Nodes of a device tree, with a way back that is longer. RAM starts at 1 GiB, so node 2 has memory on
    // both sides of 4 GiB: in two zones.
    (
        Arch::Arm,
        "arm64-device-tree",
        "(1c 2G) (1c 768M) (512M) (512M); dist=10,20,17,28/21,10,28,17/17,28,10,28/28,17,28,10",
    ),
];

/// A machine whose node 2 gains its first memory while it runs, and the words for QEMU that plug it in. Node 3 has
/// no CPUs: whether it is preferred depends on when orders are built.
const PLUGGED: (&str, &str) = (
    "2x(1c 512M) (1c) (512M); dist=20",
    "-m slots=1,maxmem=4G -object memory-backend-ram,id=later,size=256M -device pc-dimm,memdev=later,node=2",
);

/// A machine for managers of placement, with room for programs of the size from which numad moves any, and two CPUs on each
/// node: beside a thread that was kept on a node with one CPU nothing else finds time there.
const MANAGED: &str = "4x(2c 1G); dist=20";

/// A machine for programs that use memory of the other node, one after the other, and the words for QEMU that make its time that
/// of the instructions it executes, 32 ns for each: a busy host changes nothing, and a scan of so much memory always takes as long.
const COURSE: (&str, &str) = ("2x(1c 512M); dist=20", "-icount shift=5,sleep=off");

/// The same with memory of a slower tier.
const TIER_COURSE: &str = "(2c 512M) (512M); dist=10,20/20,10; access=0>0:80ns/100G; access=0>1:250ns/30G";

/// Machines that are drawn for the checks of the model, by the kernel that they boot and the number that they are
/// drawn from. Two are cut into emulated nodes, two have a window for CXL memory, three a slower tier:
/// the test of this table says so. `cargo xtask lab-soak --machines N` draws others.
const DRAWN: [(&str, u64); 6] = [
    ("6.12", 2),
    ("6.12", 4),
    ("6.12", 10),
    ("6.12", 56),
    // With the weights that a kernel works out from bandwidths, and a tier for which it does.
    ("6.18", 52),
    ("6.1", 14),
];

/// The disk of machines with all checks. Only what is written takes room.
const DISK: Bytes = Bytes::from_gib(1);

/// Scripts that are played on each machine: 200 in all.
const SCRIPTS: u64 = 20;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("--guest") => return guest::supervise(&words[1..]),
        Some("--checks") => return checks::run_all(&Plan::read(&words[2..]), &words[1]),
        Some("--probe") => return probe::run(&words[1..]),
        Some(scripts::PROGRAM) => return scripts::program(&words[1]),
        Some("--observed") => return observed::run(&words[1..]),
        Some(course::PROGRAM) => return course::run(&words[1..]),
        Some("--hangs") => return watchdog::hang(),
        Some("--walk" | "--walks") => return line_counts::walk(&words[1..]),
        _ => {}
    }
    let (options, words): (Vec<String>, Vec<String>) = std::env::args().partition(|word| is_own(word));
    let value = |name: &str| options.iter().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str, otherwise: u64| {
        value(name).map_or(otherwise, |text| {
            text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number"))
        })
    };
    let scripts = number("--scripts", SCRIPTS);
    let asked = value("--kernel");
    let arch = value("--arch").map_or_else(Arch::default, |text| {
        Arch::from_debian(text).unwrap_or_else(|| panic!("--arch={text}: expected amd64 or arm64"))
    });
    let fixed_kernel = asked.unwrap_or(DEFAULT_VERSION);
    // Those of the table, unless this many others are asked for.
    let drawn: Vec<(&str, u64)> = match value("--soak") {
        None => DRAWN.iter().map(|(kernel, seed)| (asked.unwrap_or(kernel), *seed)).collect(),
        Some(_) => {
            let first = number("--first", 0);
            (first..first + number("--soak", 0)).map(|seed| (fixed_kernel, seed)).collect()
        }
    };
    let scripts = |number: u64| number * 1000..number * 1000 + scripts.min(1000);
    let kinds = value("--kind")
        .map(|text| guest::kinds(text).unwrap_or_else(|| panic!("--kind={text}: expected kinds of scripts")));
    let tells_times = options.iter().any(|word| word == "--times");
    let is_long = options.iter().any(|word| word == "--long");
    let fixed = (0..).zip(LAYOUTS).map(|(number, (arch, name, spec))| {
        let checks = match (arch, name) {
            (Arch::X86, "four-nodes") => Extent::Moving,
            (Arch::X86, "two-sockets") => Extent::All,
            (Arch::X86, _) if is_long => Extent::All,
            (Arch::X86, _) => Extent::Short,
            (Arch::Arm, _) => Extent::Own,
        };
        let disk = (checks == Extent::All).then_some(DISK);
        let plan = Plan { disk, scripts: scripts(1_000_000 + number), ..Plan::new(arch, spec, checks) };
        Guest::new(name.to_owned(), plan, choice(fixed_kernel), tells_times)
    });
    let drawn = drawn.into_iter().map(|(kernel, seed)| {
        let draw = if arch == Arch::X86 { machines::machine } else { machines::plain_machine };
        let Drawn { spec, append, qemu } = draw(seed);
        let plan = Plan { append, qemu, scripts: scripts(seed), ..Plan::new(arch, spec, Extent::Model) };
        let plan = Plan { kinds: kinds.clone().unwrap_or(plan.kinds), ..plan };
        let other = if kernel == fixed_kernel { String::new() } else { format!("-linux-{kernel}") };
        Guest::new(format!("drawn-{seed}{other}"), plan, choice(kernel), tells_times)
    });
    let plugged =
        Plan { qemu: Some(PLUGGED.1.to_owned()), ..Plan::new(Arch::X86, PLUGGED.0, Extent::Plugged) };
    let plugged = Guest::new("memory-plugged-in".to_owned(), plugged, choice(fixed_kernel), tells_times);
    let (arch, _, four_nodes) = LAYOUTS[0];
    let cached = Plan { scripts: scripts(1_000_000), ..Plan::new(arch, four_nodes, Extent::Cached) };
    let cached = Guest::new("page-cache".to_owned(), cached, choice(fixed_kernel), tells_times);
    let arguments = Arguments::from_iter(words);
    let migration = value("--migrate").map(|_| {
        let load = Load {
            size: Bytes::from_mib(number("--migrate", 0)),
            rate: Bytes::from_mib(number("--rate", 32)),
        };
        // Room beside the memory for the guest's own, in whole blocks of memory, and on the node that it comes back to
        // for what the system keeps there meanwhile.
        let spec = format!("2x(1c {}M); dist=20", (load.size.mib() / 8 * 9 + 512).next_multiple_of(128));
        let plan = Plan { load: Some(load), ..Plan::new(Arch::X86, spec, Extent::Soak) };
        Guest::new("migration".to_owned(), plan, choice(fixed_kernel), tells_times)
    });
    let sick = SICK.iter().filter(|_| options.iter().any(|word| word == "--sick"));
    let sick = sick.map(|sick| {
        let kernel = choice(sick.kernel.unwrap_or(fixed_kernel));
        Guest::new(sick.name.to_owned(), sick.plan(), kernel, tells_times)
    });
    let managed = value("--managed").map(|_| {
        let length = std::time::Duration::from_secs(number("--managed", 0));
        let plan = Plan { length: Some(length), ..Plan::new(Arch::X86, MANAGED, Extent::Managed) };
        Guest::new("managed".to_owned(), plan, choice(fixed_kernel), tells_times)
    });
    let courses = [("course", COURSE.0, Extent::Course), ("tier-course", TIER_COURSE, Extent::TierCourse)];
    let courses = courses.into_iter().filter(|_| options.iter().any(|word| word == "--courses"));
    let courses = courses.map(|(name, machine, extent)| {
        let first = number("--first", 0);
        let qemu = Some(COURSE.1.to_owned());
        let plan = Plan { qemu, scripts: first..first, ..Plan::new(Arch::X86, machine, extent) };
        Guest::new(name.to_owned(), plan, choice(fixed_kernel), tells_times)
    });
    let parts = value("--checks").map(|text| text.split(',').map(str::to_owned).collect::<Vec<String>>());
    let guests = fixed
        .chain([plugged, cached])
        .chain(drawn)
        .chain(migration)
        .chain(sick)
        .chain(managed)
        .chain(courses);
    let guests = guests.map(|guest| wanted(guest, &arguments, parts.as_deref()));
    let mut trials: Vec<(usize, Trial)> =
        guests.flat_map(|guest| trials(guest).into_iter().enumerate()).collect();
    // The first check of a guest boots it, so those come first: as many boots at once as tests.
    trials.sort_by_key(|(place, _)| *place);
    let table = Trial::test("the_table_of_drawn_machines_has_all_kinds", table_has_all_kinds);
    let watchdog = Trial::test("a_check_that_hangs_is_ended_with_a_record", watchdog::ends_what_hangs);
    let proved = Trial::test("the_checks_that_the_page_of_doctor_names_exist", named_checks_exist);
    let bound = Trial::test(
        "an_exact_model_of_balancing_over_time_passes_and_a_narrow_one_does_not",
        checks::course::bound_holds,
    );
    let counted = Trial::test("counted_lines_are_those_of_arithmetic", line_counts::are_those_of_arithmetic);
    let phases = Trial::test("marked_phases_are_counted_apart", line_counts::phases);
    let sharing =
        Trial::test("lines_that_threads_of_two_nodes_write_to_are_found", line_counts::shared_lines);
    let kernel = Trial::test("lines_that_the_kernel_moves_are_those_of_arithmetic", line_counts::kernel);
    let example = Trial::test("the_example_of_locality_holds", locality::example_holds);
    let pretended = Trial::test("pretend_is_like_a_guest", pretended::is_like_a_guest);
    let ranked = Trial::test("placements_are_ranked_by_counted_lines", line_counts::ranked::placements);
    let check = Trial::test("lab_check_finds_and_shrinks_what_differs", command_finds_differences);
    let trials =
        [bound, counted, phases, sharing, kernel, example, pretended, ranked, table, watchdog, proved, check]
            .into_iter()
            .chain(trials.into_iter().map(|(_, trial)| trial))
            .collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// Whether a word is an option of ours: `--soak=N` for this many drawn machines, from number `--first=N` on,
/// `--scripts=N` for this many scripts on each, `--kind=KIND,...` for other kinds on drawn machines, `--kernel=V` for another kernel, `--arch=A` for the
/// architecture of drawn machines, `--checks=PART,PART` for checks that have one of these in their names alone,
/// `--migrate=MIB` and `--rate=MIB` (a second) for a machine on which so much memory moves, `--sick` for those of rules
/// of doctor, `--courses` for one with programs whose memory follows them (`--first=N` for other touches), `--managed=SECONDS` for one with programs that start and end for so long under each manager, `--times` for the time
/// that each check took, `--nodewise=FILE` for another program than the one that was built with these tests, `--long` for every measurement on each machine that has any. `cargo xtask lab-soak` and
/// `migrate-soak` have words for most.
fn is_own(word: &str) -> bool {
    let options = [
        "--soak=",
        "--first=",
        "--scripts=",
        "--kind=",
        "--kernel=",
        "--arch=",
        "--checks=",
        "--migrate=",
        "--rate=",
        "--managed=",
        guest::PROGRAM,
    ];
    ["--times", "--sick", "--courses", "--long"].contains(&word)
        || options.iter().any(|option| word.starts_with(option))
}

fn choice(kernel: &str) -> KernelChoice {
    let Ok(choice) = kernel.parse();
    choice
}

/// Of a small table chance would leave out what is rare.
fn table_has_all_kinds() -> Result<(), Failed> {
    let machines: Vec<Drawn> = DRAWN.iter().map(|(_, seed)| machines::machine(*seed)).collect();
    let count = |has: &dyn Fn(&Drawn) -> bool| machines.iter().filter(|machine| has(machine)).count();
    let is_emulated =
        |drawn: &Drawn, by: &str| drawn.append.as_deref().is_some_and(|word| word.ends_with(by));
    let kinds = [
        ("machines with emulated nodes", count(&|drawn| is_emulated(drawn, "")), 2),
        ("of them by size", count(&|drawn| is_emulated(drawn, "M")), 1),
        ("machines with a window", count(&|drawn| drawn.qemu.is_some()), 2),
        ("machines with a tier", count(&|drawn| drawn.spec.contains("access=")), 3),
        ("machines", LAYOUTS.len() + DRAWN.len(), 10),
        ("scripts", (LAYOUTS.len() + DRAWN.len()) * SCRIPTS as usize, 200),
    ];
    for (what, there, least) in kinds {
        if there < least {
            return Err(format!("{there} {what}, expected {least}").into());
        }
    }
    // Each of these kernels is fetched for the tests.
    let unknown = DRAWN.iter().find(|(kernel, _)| !TESTED_VERSIONS.contains(kernel));
    unknown.map_or(Ok(()), |(kernel, _)| Err(format!("nothing fetches Linux {kernel}").into()))
}

/// `nodewise lab --check` with the rules of another release than the kernel's: differences, their calls and programs.
fn command_finds_differences() -> Result<(), Failed> {
    if let Err(why) = Lab::for_test(&choice(DEFAULT_VERSION)) {
        eprintln!("{why}");
        return Ok(());
    }
    let [_, nodewise] = guest::programs();
    let mut command = Command::new(nodewise);
    command.args([
        "lab",
        "--check",
        "--engine=tcg",
        "--json",
        "--model=6.1",
        "--scripts=2",
        "--machine=2x(1c 512M); dist=20",
    ]);
    let output = command.output()?;
    let json: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", nodewise::complaint(&output)))?;
    let scripts = json["machines"][0]["scripts"].as_array().cloned().unwrap_or_default();
    let differing: Vec<&Value> = scripts.iter().filter(|script| script["outcome"] == "different").collect();
    checks::same("scripts", (scripts.len(), json["not_played"].as_u64()), (2, Some(0)))?;
    checks::same("exit code", output.status.code(), Some(i32::from(!differing.is_empty())))?;
    checks::same("the kernel and the rules", json["model"].as_str(), Some("6.1"))?;
    if differing.is_empty() {
        return Err(format!("6.12 is taken for 6.1: {json}").into());
    }
    for script in differing {
        let fewer = script["calls_left"].as_u64() < script["calls_drawn"].as_u64();
        let program = script["program"].as_str().is_some_and(|text| text.contains("int main"));
        checks::same(
            &format!("whether it is shrunk and has a program: {script}"),
            (fewer, program),
            (true, true),
        )?;
    }
    Ok(())
}

/// The table of docs/doctor.md names rules and checks that are there.
fn named_checks_exist() -> Result<(), Failed> {
    let page = include_str!("../../../../docs/doctor.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let names: Vec<&str> = Extent::all().flat_map(checks::of_machine).map(|(name, _)| *name).collect();
    let rows: Vec<(&str, &str)> = rows.filter(|(_, check)| check.contains('_')).collect();
    for (rule, check) in &rows {
        if !names.contains(check) {
            return Err(format!("{rule}: there is no check {check}").into());
        }
        if !include_str!("../../../../docs/rules.md").contains(&format!("## {rule}\n")) {
            return Err(format!("there is no rule {rule}").into());
        }
    }
    let sick = SICK.iter().flat_map(|guest| checks::of_machine(guest.checks)).map(|(name, _)| *name);
    let missing: Vec<&str> = sick.filter(|name| rows.iter().all(|(_, check)| check != name)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("not in docs/doctor.md: {missing:?}").into()) }
}

/// A guest that runs no other checks than those that a filter names, and no others than those that have one of these
/// parts in their names.
fn wanted(mut guest: Guest, arguments: &Arguments, parts: Option<&[String]>) -> Guest {
    if arguments.filter.is_none() && parts.is_none() {
        return guest;
    }
    let passes = |name: &str| {
        let name = format!("{}::{name}", guest.layout);
        arguments.filter.as_ref().is_none_or(|filter| {
            if arguments.exact { name == *filter } else { name.contains(filter.as_str()) }
        })
    };
    let is_named =
        |name: &str| parts.is_none_or(|parts| parts.iter().any(|part| name.contains(part.as_str())));
    let names = checks::of_machine(guest.plan.checks).map(|(name, _)| *name);
    let names = names.filter(|name| passes(name) && is_named(name));
    guest.plan.only = Some(names.map(str::to_owned).collect());
    guest
}

/// The tests of a machine, which is booted for the first of them.
fn trials(guest: Guest) -> Vec<Trial> {
    let trial = |(name, _): &'static (&'static str, checks::Check)| {
        let (layout, guest) = (guest.layout.clone(), guest.clone());
        Trial::test(format!("{layout}::{name}"), move || guest.result(name))
    };
    checks::of_machine(guest.plan.checks).filter(|(name, _)| guest.plan.has(name)).map(trial).collect()
}
