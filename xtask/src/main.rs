//! Tasks done to nodewise rather than by it: `cargo xtask --help`.
//!
//! # Modules
//!
//! - `setup.rs` `cargo xtask lab-setup`; in `setup/` packages, a private apt, kernels and their modules,
//!   what the compiler needs for guests of arm64 (`setup/target.rs`)
//! - `libnuma.rs` `cargo xtask libnuma` and its kin; in `libnuma/` building and linking, where the parts go
//!   (`libnuma/places.rs`), comparing symbols, the benchmark beside Debian's, real programs on our library
//! - `tidy.rs` `cargo xtask tidy`; in `tidy/` a rule or a reader per file
//! - `topology.rs` `cargo xtask topology`, the captures as lscpu (`topology/lscpu.rs`) and hwloc
//!   (`topology/hwloc.rs`) read them, recorded for a test
//! - `suite.rs` `cargo xtask test` and `cargo xtask quick`; `suite/lint.rs` lints while programs are compiled,
//!   `suite/lanes.rs` programs that boot guests and all others, side by side, `suite/account.rs` what ran, failed and
//!   was skipped, read from the output of `cargo test`
//! - `damage.rs` `cargo xtask damage`, damaged captures, archives and ACPI tables; in `damage/` machines to
//!   be damaged (`damage/specimen.rs`, `damage/synthetic.rs`), kinds of damage, and the independent reading
//!   that judges them: the kernel's forms (`damage/grammar.rs`) and what files say twice
//!   (`damage/redundancy.rs`)
//! - `aa.rs` `cargo xtask aa`, a program against itself, and `aa-input`, a file to compress; in `aa/`
//!   `nodewise tune` on a number that ignores its placement (`aa/noise.rs`)
//! - `stats.rs` `cargo xtask stats`, how often `tune` is wrong where the truth is known; in `stats/` equal
//!   arms
//! - `advise_programs.rs` `cargo xtask advise-programs`, real programs in guests before and after an advice
//!   (`advise_programs/programs.rs`)
//! - `fuzz.rs` `cargo xtask fuzz`
//! - `soak.rs` `cargo xtask lab-soak`, drawn scripts in real kernels
//! - `migrate_soak.rs` `cargo xtask migrate-soak`, memory that moves in a guest
//! - `balance_soak.rs` `cargo xtask balance-soak`, programs under managers of placement in a guest
//! - `course_soak.rs` `cargo xtask course-soak`, memory that follows its programs over time
//! - `doctor_soak.rs` `cargo xtask doctor-soak`, rules of doctor in sick guests; `doctor_soak/busy.rs` the same rules silent in
//!   healthy ones
//! - `drop_in.rs` `cargo xtask drop-in`, drawn command lines beside numactl's own tools
//! - `fleet_rates.rs` `cargo xtask fleet-rates`, how often the rule for outliers of `fleet` is wrong
//! - `churn.rs` `cargo xtask churn`, samples of this machine or a guest while processes come and go
//! - `bench.rs` `cargo xtask bench`, nodewise beside its peers; in `bench/` what is counted and timed;
//!   `bench/peers.rs` memory beside its peers: `bench/peers/passes.rs` bandwidth, `bench/peers/chases.rs`
//!   latency, `bench/peers/loaded.rs` traffic beside a chase, `bench/peers/programs.rs` what packaged peers
//!   print, `bench/peers/reference.rs` plain code in C; `bench/sample.rs` CPU time of a sample,
//!   `bench/sample/below.rs` beside below; `bench/fleet.rs` reports on thousands of hosts
//! - `dist.rs` `cargo xtask dist`, the command as one static file
//! - `package.rs` `cargo xtask package`; in `package/` the command in both forms (`package/binary.rs`), files where they
//!   belong (`package/tree.rs`), what is made of them (`package/debian.rs`, `package/rpm.rs`, `package/tarball.rs`), the
//!   crates that are inside (`package/parts.rs`), the distributions' checkers (`package/lint.rs`), and clean systems to try it
//!   in (`package/roots.rs`), also of other platforms (`package/emulated.rs`)
//! - `ports.rs` `cargo xtask ports`, libnuma, the static command and unit tests on platforms that are emulated
//! - `count_programs.rs` `cargo xtask count-programs`, lines of real programs under known placements
//! - `pretend_numactl.rs` `cargo xtask pretend-numactl`, numactl's own tests on hypothetical machines
//! - `pretend_lab.rs` `cargo xtask pretend-lab`, the same scripts in `nodewise pretend` and in a guest
//! - `platform.rs` the platforms that programs are built for
//! - `wheel.rs` `cargo xtask wheel`, Python's nodewise and its tests
//! - `pages.rs` `cargo xtask pages`, reports and diagrams in a browser; in `pages/` the tools (`pages/tools.rs`), and
//!   what is looked at (`pages/reports.rs`)
//! - `site.rs` `cargo xtask site`, docs/ as a site
//! - `program.rs` running other programs
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "xtask talks to the person who started it")]

mod aa;
mod advise_programs;
mod balance_soak;
mod bench;
mod churn;
mod count_programs;
mod course_soak;
mod damage;
mod dist;
mod doctor_soak;
mod drop_in;
mod fleet_rates;
mod fuzz;
mod libnuma;
mod migrate_soak;
mod package;
mod pages;
mod platform;
mod ports;
mod pretend_lab;
mod pretend_numactl;
mod program;
mod setup;
mod site;
mod soak;
mod stats;
mod suite;
mod tidy;
mod topology;
mod wheel;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use nodewise_lab::Arch;
use nodewise_machine::Bytes;
use platform::Platform;

#[derive(Parser)]
#[command(about = "What is done to nodewise rather than by it", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Tune a program against itself, under two names: whatever is found is an error
    Aa {
        /// How many studies
        #[arg(long, default_value_t = 20)]
        studies: u32,
        /// Rounds that each has at most
        #[arg(long, default_value_t = 40)]
        runs: u32,
        /// Random seed of the orders of runs; each study has its own
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Run nodewise tune, with four equal placements, on a command that prints a number with this noise
        #[arg(long)]
        noise: Option<aa::noise::Noise>,
        /// The program and its arguments
        #[arg(trailing_var_arg = true, required_unless_present = "noise", value_name = "PROGRAM")]
        command: Vec<String>,
    },
    /// Print one number with noise: the command that aa --noise tunes
    #[command(hide = true)]
    AaDraw {
        /// The noise
        noise: aa::noise::Noise,
    },
    /// Write a file to compress: words drawn at random, always the same for a seed
    AaInput {
        /// The file
        file: PathBuf,
        /// Its size in megabytes of 10^6 bytes
        #[arg(long, default_value_t = 200)]
        megabytes: u64,
        /// Random seed of the words
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Place real programs badly in a guest of four nodes, ask advise, and apply what it says
    AdvisePrograms {
        /// Which of them, by the beginning of the name; all without one
        names: Vec<String>,
        /// Install Debian's packages that are missing
        #[arg(long)]
        install: bool,
        /// Ask doctor beside the ordinary ones instead, placed by no one: it must not warn
        #[arg(long)]
        doctor: bool,
    },
    /// Compare nodewise with its peers, side by side in one run
    Bench {
        /// Benchmarks to run: start, family, peers, sample, fleet
        #[arg(default_value = "start")]
        suite: String,
        /// How often each command runs [default: 1000; peers: 9; sample: 5]
        #[arg(long)]
        rounds: Option<usize>,
        /// sample: mappings of one more process
        #[arg(long, default_value_t = 60_000)]
        mappings: u32,
        /// sample: build below first, a peer that no package has (takes minutes)
        #[arg(long)]
        install: bool,
    },
    /// Damage captures, archives and ACPI tables at random: nothing may crash, hang or change silently
    Damage {
        /// How many machines
        #[arg(long, default_value_t = 20_000)]
        machines: u64,
        /// The number of the first machine, to see one again
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// Random seed of the damages
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Sample this machine while processes come and go, and check every sum
    Churn {
        /// How long
        #[arg(long, default_value_t = 600)]
        seconds: u64,
        /// Births in a minute
        #[arg(long, default_value_t = 10_000)]
        births: u64,
        /// A CPU to switch off and on all the while
        #[arg(long)]
        hotplug: Option<u32>,
        /// Do it in a guest of the lab, with two nodes of two CPUs
        #[arg(long)]
        guest: bool,
    },
    /// Build the command as one static file
    Dist,
    /// Play drawn command lines with numactl and its friends and with the originals, and compare
    DropIn {
        /// How many
        #[arg(long, default_value_t = 1000)]
        lines: u64,
        /// The facts that they are drawn from
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The number of the first line
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// Play them in a guest with four nodes
        #[arg(long)]
        guest: bool,
        /// Print the differences that rules cover, too (not with --guest)
        #[arg(long, conflicts_with = "guest")]
        differences: bool,
        /// The folder that packages of another release were unpacked into: numactl, libnuma1 and libc6 with
        /// dpkg -x [default: the installed originals]
        #[arg(long, value_name = "ROOT")]
        original: Option<PathBuf>,
    },
    /// Play the rule for outliers of nodewise fleet on groups of healthy machines, and on groups with a sick one
    FleetRates {
        /// How many groups of up to 100 machines; of larger ones fewer
        #[arg(long, default_value_t = 20_000)]
        groups: usize,
        /// Random seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Print the table of thresholds instead
        #[arg(long)]
        calibrate: bool,
    },
    /// Install and fetch what the lab needs: QEMU, busybox, kernels
    LabSetup {
        /// A kernel to fetch, by the start of its release (6.12, 6.18, 6.1); may be repeated [default: 6.12,
        /// for every architecture of guests]
        #[arg(long = "kernel", value_name = "VERSION")]
        kernels: Vec<String>,
        /// The architecture of the kernels: amd64, arm64
        #[arg(long, value_parser = arch)]
        arch: Option<Arch>,
    },
    /// Play drawn scripts of calls on drawn machines, in real kernels and in the model
    LabSoak {
        /// The kernel, by the start of its release (6.12, 6.18, 6.1)
        #[arg(long, value_name = "VERSION", default_value = nodewise_lab::kernel::DEFAULT_VERSION)]
        kernel: String,
        /// The architecture of the machines: amd64, arm64
        #[arg(long, value_parser = arch, default_value = Arch::default().debian())]
        arch: Arch,
        /// The number of the first machine
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// How many machines are drawn
        #[arg(long, default_value_t = 34)]
        machines: u64,
        /// How many scripts are played on each
        #[arg(long, default_value_t = 60)]
        scripts: u64,
        /// Kinds of scripts, that many of each, without the other checks of the model: calls, thp, threads, pools, groups, swap, cache
        #[arg(long, value_name = "KIND,...")]
        kind: Option<String>,
    },
    /// Move memory of a program that works, in a guest: at a rate, until Ctrl-C, until the program ends
    MigrateSoak {
        /// How much, in MiB; the guest has somewhat more than twice of it
        #[arg(long, value_name = "MIB", default_value_t = 128)]
        size: u64,
        /// MiB that move in a second: an emulated guest should be able to move several times as much
        #[arg(long, value_name = "MIB", default_value_t = 2)]
        rate: u64,
    },
    /// Run twelve programs that start and end in a guest of four nodes, under each manager of placement in turn
    BalanceSoak {
        /// Minutes under each manager
        #[arg(long, default_value_t = 20.0)]
        minutes: f64,
        /// Managers, or `evaluate` for an evaluation of balance by itself
        #[arg(long, value_delimiter = ',', default_value = "nodewise,numad,kernel,none")]
        with: Vec<balance_soak::Manager>,
        /// The nodewise to try, such as an optimised one [default: that of the tests, whose windows take seconds of CPU time in
        /// an emulated guest]
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
        /// Install numad where it is missing
        #[arg(long)]
        install: bool,
    },
    /// Run programs whose memory follows them in a guest, and compare with the bands of the model
    CourseSoak {
        /// The kernel, by the start of its release (6.12, 6.18, 6.1)
        #[arg(long, value_name = "VERSION", default_value = nodewise_lab::kernel::DEFAULT_VERSION)]
        kernel: String,
        /// Parts of the names of checks [default: all]
        checks: Vec<String>,
    },
    /// Make guests sick, and see that the rules of doctor find it, and are silent when it is mended
    DoctorSoak {
        /// Parts of the names of checks, with --busy the beginnings of names of layouts [default: all]
        checks: Vec<String>,
        /// Run ordinary programs in healthy guests instead, beside which doctor must not warn
        #[arg(long)]
        busy: bool,
        /// Install Debian's packages that are missing for --busy
        #[arg(long, requires = "busy")]
        install: bool,
    },
    /// Make packages for Debian and RPM, a tarball, a list of parts, and sums
    Package {
        /// The machine to build for: x86_64, aarch64, riscv64, powerpc64le [default: this one]
        #[arg(long, value_parser = platform)]
        arch: Option<Platform>,
        /// Cargo's profile; dev is quick, and made to be tried only
        #[arg(long, default_value = "dist")]
        profile: String,
        /// Where the packages go [default: target/package]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Make everything twice and compare the bytes
        #[arg(long)]
        twice: bool,
        /// Check the packages with lintian and rpmlint
        #[arg(long, conflicts_with = "twice")]
        lint: bool,
    },
    /// Install packages that were made in clean roots of Debian's releases, use, upgrade and remove them
    PackageRoots {
        /// The releases
        #[arg(default_values = ["bookworm", "trixie"])]
        releases: Vec<String>,
        /// The machine of the packages, emulated if it is not this one: x86_64, aarch64, riscv64, powerpc64le
        #[arg(long, value_parser = platform)]
        arch: Option<Platform>,
        /// Where the packages are [default: target/package]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Make the packages first, of this command: what the tests do with the one that they compiled
        #[arg(long, value_name = "FILE", conflicts_with_all = ["arch", "out"])]
        command: Option<PathBuf>,
    },
    /// Count programs under placements whose local share is known, and compare with their pages; a table for docs/counting.md
    CountPrograms {
        /// The machine of the guest; may be repeated
        #[arg(long = "machine", default_values = count_programs::MACHINES)]
        machines: Vec<String>,
        /// Which programs, by the beginning of the name; all without one
        #[arg(long, default_value = "")]
        program: String,
        /// Which placements, by the beginning of the name; all without one
        #[arg(long, default_value = "")]
        placement: String,
        /// Measure the CPU time that counting costs, instead
        #[arg(long, conflicts_with = "placement")]
        cost: bool,
    },
    /// Play drawn scripts of memory policy calls in nodewise pretend and in a guest of the same machine, and compare them
    PretendLab(pretend_lab::PretendLab),
    /// Run numactl's own tests on hypothetical machines in nodewise pretend; fetches their source package
    PretendNumactl,
    /// Build libnuma and the static command for machines that have no packages, and run unit tests there, emulated
    Ports {
        /// The machines: x86_64, aarch64, riscv64, powerpc64le
        #[arg(value_parser = platform, default_values = ["riscv64", "powerpc64le"])]
        platforms: Vec<Platform>,
    },
    /// Build Python's nodewise as a wheel with the command inside
    Wheel {
        /// The static command [default: built as dist]
        #[arg(long, value_name = "FILE")]
        command: Option<PathBuf>,
        /// Where the wheel goes [default: target/package]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Install it for these Pythons, and run its tests here
        #[arg(long, value_name = "PYTHONS", value_delimiter = ',', num_args = 0..=1, default_missing_value = "python3")]
        check: Vec<String>,
        /// Run the tests in a guest with four nodes, too
        #[arg(long, requires = "check")]
        guest: bool,
    },
    /// Run the fuzz targets, one after the other
    Fuzz {
        /// Targets to run [default: all]
        targets: Vec<String>,
        /// How long each runs
        #[arg(long, default_value_t = 600)]
        seconds: u32,
    },
    /// Build libnuma.so.1 and libnuma.a and compare their symbols with the list
    Libnuma {
        /// The machine to build for: x86_64, aarch64, riscv64, powerpc64le [default: this one]
        #[arg(long, value_parser = platform)]
        arch: Option<Platform>,
        /// The folder to build into, as lib and include [default: target/libnuma/ARCH]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// The folder that numa.pc names in place of the one that is built into: /usr
        #[arg(long, value_name = "DIR")]
        prefix: Option<PathBuf>,
        /// The folder of libraries below the prefix: lib64 [default: lib]
        #[arg(long, value_name = "DIR", conflicts_with = "multiarch")]
        libdir: Option<PathBuf>,
        /// Put libraries into Debian's folder for the machine: lib/x86_64-linux-gnu
        #[arg(long)]
        multiarch: bool,
    },
    /// Measure what loading and calling libnuma costs, beside Debian's
    LibnumaBench,
    /// Run real programs on our libnuma, here and in a guest with four nodes
    LibnumaClients {
        /// Which of them, by the beginning of the name; all without one
        names: Vec<String>,
    },
    /// Look at reports, diagrams and PNG in a browser: consoles, requests, layout, accessibility, hostile names
    Pages {
        /// Measure this machine for a report, too (a minute)
        #[arg(long)]
        live: bool,
    },
    /// Build docs/ as a site, by mdBook (fetched where it is missing)
    Site,
    /// Play experiments whose truth is known: how often tune is wrong, and what its race saves
    Stats {
        /// Studies a row [default: 500 of equal arms and of effects, 1000 with a known gain, 2100 of the
        /// advice, 400 comparisons]
        #[arg(long)]
        studies: Option<u32>,
        /// The facts that they are drawn from
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Print one table only
        #[arg(long)]
        table: Option<stats::Table>,
    },
    /// Compare the tree with the rules of ARCHITECTURE.md
    Tidy {
        /// List every place that the language check counts, also where the limit allows it
        #[arg(long)]
        list: bool,
        /// Print the readability of each page instead
        #[arg(long, hide = true)]
        readability: bool,
    },
    /// Compare how lscpu and hwloc read the captures of the corpus with the records that a test uses
    Topology {
        /// Replace the records by what the installed lscpu and lstopo-no-graphics say
        #[arg(long)]
        record: bool,
    },
    /// Check format, arrows and invariants, lints and the unit tests of all crates without simulated studies
    Quick,
    /// Set up the lab, then run format, tidy, lints and every test
    Test {
        /// Crates whose lints and tests to run, such as view [default: all, with the lab]
        crates: Vec<String>,
        /// Leave out the lab: no set-up, and tests that need it are skipped
        #[arg(long)]
        skip_lab: bool,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Aa { studies, runs, seed, noise: Some(noise), .. } => {
            root().and_then(|root| aa::noise::run(&root, noise, studies, runs, seed, aa::allowed(studies)))
        }
        Task::Aa { studies, runs, seed, noise: None, command } => aa::run(studies, runs, seed, &command),
        Task::AaDraw { noise } => aa::noise::draw(noise),
        Task::AaInput { file, megabytes, seed } => aa::input(&file, megabytes, seed),
        Task::AdvisePrograms { names, install, doctor } => root().and_then(|root| {
            advise_programs::run(&root, &advise_programs::AdvisePrograms { names, install, doctor })
        }),
        Task::Bench { suite, rounds, mappings, install } => root().and_then(|root| {
            if install {
                bench::install(&suite)?;
            }
            bench::run(&root, &suite, rounds, mappings)
        }),
        Task::Damage { machines, first, seed } => damage::run(machines, first, seed),
        Task::Churn { seconds, births, hotplug, guest } => {
            churn::start(&churn::Churn { seconds, births, hotplug, guest })
        }
        Task::Dist => root().and_then(|root| {
            println!("{}", dist::build(&root)?.display());
            Ok(())
        }),
        Task::DropIn { lines, seed, first, guest, differences, original } => root().and_then(|root| {
            drop_in::run(&root, &drop_in::DropIn { lines, seed, first, guest, differences, original })
        }),
        Task::CountPrograms { machines, program, placement, cost } => {
            let choice = count_programs::Choice { machines, program, placement, cost };
            root().and_then(|root| count_programs::run(&root, &choice))
        }
        Task::PretendLab(play) => root().and_then(|root| pretend_lab::run(&root, &play)),
        Task::PretendNumactl => root().and_then(|root| pretend_numactl::run(&root)),
        Task::LabSetup { kernels, arch } => setup::run(&setup::wanted(&kernels, arch)),
        Task::LabSoak { kernel, arch, first, machines, scripts, kind: kinds } => {
            let soak = soak::Soak { kernel, arch, first, machines, scripts, kinds };
            root().and_then(|root| soak::run(&root, &soak))
        }
        Task::MigrateSoak { size, rate } => {
            root().and_then(|root| migrate_soak::run(&root, Bytes::from_mib(size), Bytes::from_mib(rate)))
        }
        Task::BalanceSoak { minutes, with, program, install } => {
            let tried = program.as_deref();
            root().and_then(|root| balance_soak::run(&root, minutes, &with, tried, install))
        }
        Task::CourseSoak { kernel, checks } => {
            root().and_then(|root| course_soak::run(&root, &kernel, &checks))
        }
        Task::DoctorSoak { checks, busy: true, install } => {
            root().and_then(|root| doctor_soak::busy::run(&root, &checks, install))
        }
        Task::DoctorSoak { checks, .. } => root().and_then(|root| doctor_soak::run(&root, &checks)),
        Task::Package { arch, profile, out, twice, lint } => root().and_then(|root| {
            let packaging = package::Packaging::new(&root, arch, &profile, out)?;
            if twice {
                return package::twice(&packaging);
            }
            let made = package::run(&packaging)?;
            if lint { package::lint::run(&root, &made) } else { Ok(()) }
        }),
        Task::PackageRoots { releases, command: Some(command), .. } => {
            root().and_then(|root| package::roots::quick(&root, &command, &releases))
        }
        Task::PackageRoots { releases, arch, out, .. } => root().and_then(|root| {
            package::roots::run(&package::Packaging::new(&root, arch, "dist", out)?, &releases)
        }),
        Task::Ports { platforms } => root().and_then(|root| ports::run(&root, &platforms)),
        Task::Wheel { command, out, check, guest } => root().and_then(|root| {
            let out = out.unwrap_or_else(|| root.join("target/package"));
            let wheel = wheel::build(&root, command, &out)?;
            wheel::check(&root, &wheel, &check, guest)
        }),
        Task::Fuzz { targets, seconds } => root().and_then(|root| fuzz::run(&root, &targets, seconds)),
        Task::Libnuma { arch, out, prefix, libdir, multiarch } => {
            let destination = libnuma::Destination { out, prefix, libdir, multiarch };
            root().and_then(|root| libnuma::run(&root, arch, destination))
        }
        Task::LibnumaBench => root().and_then(|root| libnuma::bench::run(&root)),
        Task::LibnumaClients { names } => root().and_then(|root| libnuma::clients::run(&root, &names)),
        Task::Site => root().and_then(|root| {
            println!("{}", site::run(&root)?.display());
            Ok(())
        }),
        Task::Pages { live } => root().and_then(|root| pages::run(&root, &pages::Pages { live })),
        Task::FleetRates { seed, calibrate: true, .. } => {
            fleet_rates::calibrate(seed);
            Ok(())
        }
        Task::FleetRates { groups, seed, .. } => {
            fleet_rates::run(groups, seed);
            Ok(())
        }
        Task::Stats { studies, seed, table } => stats::run(studies, seed, table),
        Task::Tidy { readability: true, .. } => root().and_then(|root| tidy::readability(&root)),
        Task::Tidy { list, .. } => root().and_then(|root| tidy::run(&root, list)),
        Task::Topology { record } => root().and_then(|root| topology::run(&root, record)),
        Task::Quick => root().and_then(|root| suite::quick(&root)),
        Task::Test { crates, skip_lab } => {
            let part = match skip_lab {
                _ if !crates.is_empty() => suite::Part::Crates(crates),
                true => suite::Part::WithoutLab,
                false => suite::Part::All,
            };
            root().and_then(|root| suite::run(&root, &part))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Reads Debian's name of an architecture.
fn arch(text: &str) -> Result<Arch, String> {
    Arch::from_debian(text).ok_or_else(|| format!("expected {}", Arch::ALL.map(Arch::debian).join(" or ")))
}

/// Reads the name that compilers have for a platform.
fn platform(text: &str) -> Result<Platform, String> {
    let expected = || format!("expected {}", Platform::ALL.map(Platform::compiler).join(" or "));
    Platform::from_compiler(text).ok_or_else(expected)
}

/// The root of the repository.
fn root() -> anyhow::Result<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().context("xtask's folder has no parent")?;
    Ok(root.to_owned())
}
