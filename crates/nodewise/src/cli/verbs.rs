//! The verbs, as one table.
//!
//! clap builds every option of every verb at each start, unless a verb's options are
//! [deferred](Command::defer) until that verb is typed. Its derive does not defer them, so the two
//! traits that it would write are written here, by the table.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args as _, Command, Error, FromArgMatches, Subcommand};

use super::{
    acpi, bandwidth, c2c, capture, compare, emulation, explain, io, lab, latency, personality, run, show,
    simulate, tune, workload,
};

macro_rules! verbs {
    ($($name:literal $variant:ident($arguments:ty) $about:literal)*) => {
        /// The verbs.
        #[derive(Debug)]
        pub enum Verb {
            $(
                #[doc = $about]
                $variant($arguments),
            )*
        }

        impl Subcommand for Verb {
            fn augment_subcommands(command: Command) -> Command {
                command.subcommands([$(
                    Command::new($name)
                        .about($about)
                        .defer(|verb| <$arguments>::augment_args(verb).about($about)),
                )*])
            }

            fn augment_subcommands_for_update(command: Command) -> Command {
                Self::augment_subcommands(command)
            }

            fn has_subcommand(name: &str) -> bool {
                [$($name),*].contains(&name)
            }
        }

        impl FromArgMatches for Verb {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
                match matches.subcommand() {
                    $(Some(($name, own)) => <$arguments>::from_arg_matches(own).map(Self::$variant),)*
                    _ => Err(Error::raw(ErrorKind::MissingSubcommand, "expected a verb")),
                }
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
                Self::from_arg_matches(matches).map(|verb| *self = verb)
            }
        }
    };
}

verbs! {
    "show" Show(show::Show) "Shows where memory is: nodes, CPUs, distances, caches, devices, settings"
    "acpi" Acpi(acpi::Acpi) "Shows what the firmware says of nodes: SRAT, SLIT, HMAT, CEDT and MSCT, and what Linux makes of it"
    "capture" Capture(capture::Capture) "Saves this machine for another one to look at"
    "run" Run(run::Run) "Starts a program under a placement"
    "tune" Tune(tune::Tune) "Runs a program under many placements and says which is best"
    "compare" Compare(compare::Compare)
        "Runs a suite of benchmarks before and after a change and says what changed"
    "latency" Latency(latency::Latency)
        "Measures what a load from each node's memory costs, from the CPUs of each node"
    "bandwidth" Bandwidth(bandwidth::Bandwidth)
        "Measures how many bytes per second come from each node's memory, to the CPUs of each node"
    "c2c" C2c(c2c::C2c) "Measures what it costs one CPU to get a cache line that another one has"
    "io" Io(io::Io)
        "Shows the node of each device, and measures what reading disks into memory of each node gives"
    "workload" Workload(workload::Workload) "Runs a built-in program whose speed depends on memory"
    "explain" Explain(explain::Explain)
        "Tells which nodes the kernel takes memory from under a policy, and when each gives way"
    "zonelist" Zonelist(explain::Zonelist)
        "Shows the order in which each node's allocations try nodes and zones"
    "zones" Zones(explain::Zones)
        "Shows the zones of every node: sizes, free pages, watermarks, and reserves"
    "emulation" Emulation(emulation::Emulation)
        "Emulates NUMA nodes: shows what is there, plans, switches it on and off, verifies"
    "simulate" Simulate(simulate::Simulate)
        "Plays programs that take memory over time on a machine, and tells where it comes from"
    "lab" Lab(lab::Lab) "Boots a machine as a real kernel in QEMU and runs a command there"
    "numactl" Numactl(personality::Words) "Behaves exactly like numactl"
    "numastat" Numastat(personality::Words) "Is numastat"
    "migratepages" Migratepages(personality::Words) "Is migratepages"
    "migspeed" Migspeed(personality::Words) "Is migspeed"
    "memhog" Memhog(personality::Words) "Is memhog"
    "links" Links(personality::Links)
        "Makes numactl, numastat, migratepages, migspeed and memhog: links to this program in a folder"
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::cli::Cli;

    #[test]
    fn the_long_help_of_a_verb_begins_as_its_line_in_the_table() {
        let mut command = Cli::command();
        command.build();
        for verb in command.get_subcommands() {
            let about = verb.get_about().expect("the table has a line for each").to_string();
            if let Some(long) = verb.get_long_about() {
                assert!(long.to_string().starts_with(&about), "{}: {long}", verb.get_name());
            }
        }
    }
}
