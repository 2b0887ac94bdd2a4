//! One file per verb: what was typed, to the libraries, to a view, to an exit code.

pub mod acpi;
pub mod advise;
pub mod balance;
pub mod bandwidth;
pub mod c2c;
pub mod capture;
pub mod compare;
pub mod doctor;
pub mod emulation;
pub mod explain;
pub mod help;
pub mod hugepages;
pub mod io;
pub mod lab;
pub mod latency;
pub mod links;
pub mod maps;
pub mod migrate;
pub mod process;
pub mod record;
pub mod recording;
pub mod run;
pub mod shm;
pub mod show;
pub mod simulate;
pub mod stat;
pub mod subject;
pub mod top;
pub mod tune;
pub mod workload;
pub mod zones;

use nodewise_compat::Tool;

use crate::cli::{Global, Verb};
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::personality::by_verb;

/// Does what was typed; without a verb, the overview.
pub fn run(verb: Option<&Verb>, global: &Global) -> Outcome {
    let Some(verb) = verb else { return show::overview(global) };
    if let Some((name, hint)) = verb.only_here() {
        refuse_another_machine(name, hint, global)?;
    }
    match verb {
        Verb::Show(args) => show::run(args, global),
        Verb::Stat(args) => stat::run(args, global),
        Verb::Doctor(args) => doctor::run(args, global),
        Verb::Advise(args) => advise::run(args, global),
        Verb::Top(args) => top::run(args, global),
        Verb::Acpi(args) => acpi::run(args, global),
        Verb::Maps(args) => maps::run(args, global),
        Verb::Capture(args) => capture::run(args, global),
        Verb::Record(args) => record::run(args, global),
        Verb::Run(args) => run::run(args, global),
        Verb::Tune(args) => tune::run(args, global),
        Verb::Compare(args) => compare::run(args, global),
        Verb::Latency(args) => latency::run(args, global),
        Verb::Bandwidth(args) => bandwidth::run(args, global),
        Verb::C2c(args) => c2c::run(args, global),
        Verb::Io(args) => io::run(args, global),
        Verb::Workload(args) => workload::run(args, global),
        Verb::Explain(args) => explain::run(args, global),
        Verb::Zonelist(args) => zones::zonelist(args, global),
        Verb::Zones(args) => zones::zones(args, global),
        Verb::Migrate(args) => migrate::run(args, global),
        Verb::Balance(args) => balance::run(args, global),
        Verb::Shm(args) => shm::run(args, global),
        Verb::HugePages(args) => hugepages::run(args, global),
        Verb::Emulation(args) => emulation::run(args, global),
        Verb::Simulate(args) => simulate::run(args, global),
        Verb::Lab(args) => lab::run(args, global),
        Verb::Numactl(args) => by_verb(Tool::Numactl, &args.words, global),
        Verb::Numastat(args) => by_verb(Tool::Numastat, &args.words, global),
        Verb::Migratepages(args) => by_verb(Tool::Migratepages, &args.words, global),
        Verb::Migspeed(args) => by_verb(Tool::Migspeed, &args.words, global),
        Verb::Memhog(args) => by_verb(Tool::Memhog, &args.words, global),
        Verb::Links(args) => links::run(args, global),
        Verb::Help(args) => help::run(args, global),
        Verb::Version(args) => help::version(args, global),
    }
}

fn refuse_another_machine(verb: &str, hint: &str, global: &Global) -> Result<(), Failure> {
    if input::is_live(&global.machine) {
        return Ok(());
    }
    let hint = if hint.is_empty() { String::new() } else { format!(" ({hint})") };
    Err(Failure::usage(format_args!(
        "--machine has no meaning with nodewise {verb}: it works on this machine only{hint}"
    )))
}
