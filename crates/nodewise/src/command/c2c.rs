//! `nodewise c2c`: options to pairs, pairs to a survey, the survey to its reader.

use nodewise_machine::{CpuId, CpuSet, Machine, NodeId, NodeSet};
use nodewise_measure::c2c::pairs::representatives;
use nodewise_measure::c2c::report::home;
use nodewise_measure::c2c::{C2cReport, CoreBench, Pair, PairReport, Transfer, relation};
use nodewise_measure::survey::Account;
use nodewise_source::Detail;
use nodewise_view::svg::c2c_svg;
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::c2c::C2c;
use crate::cli::measure_options::MeasureOptions;
use crate::failure::{Failure, Outcome};
use crate::measuring::{self, Field, Forms, Measurement};
use crate::{input, live};

/// Runs the verb.
pub fn run(args: &C2c, global: &Global) -> Outcome {
    if let Some(path) = &args.from {
        return show(&measuring::saved_report(path, "c2c", json::c2c::read)?, args, global);
    }
    show(&measure(args)?, args, global)
}

/// The document of a measurement, in place of showing it.
///
/// # Errors
/// As the verb.
pub fn document(args: &C2c) -> Result<String, Failure> {
    Ok(json::c2c(&measure(args)?))
}

/// Shows a report as the options want it.
fn show(report: &C2cReport, args: &C2c, global: &Global) -> Outcome {
    let forms = Forms {
        picture: &|theme| c2c_svg(report, theme),
        json: &|| json::c2c(report),
        csv: &|| csv::c2c(report),
        text: &|style| text::c2c(report, style),
    };
    measuring::show(&args.measure, global, &forms)?;
    let refused = report.pairs.iter().map(|pair| pair.refused.as_deref());
    measuring::ended(report.pairs.iter().any(|pair| pair.figure.is_some()), &report.account, refused)
}

fn measure(args: &C2c) -> Result<C2cReport, Failure> {
    let measurement = Measurement::begin(&args.measure)?;
    let machine = input::load("live", Detail::Full)?.machine;
    let field = Field::from_options(&args.measure, &machine)?;
    let all: CpuSet = field.sources.iter().flat_map(|(_, cpus)| cpus.iter()).collect();
    if all.len() < 2 {
        return Err(Failure::cannot(format_args!(
            "one CPU has no other to get a line from: expected two or more, and there is {all}"
        )));
    }
    let named = args.measure.cpus.is_some();
    let cpus = if named { all.clone() } else { representatives(&machine, &all, most(&args.measure)) };
    let transfers = if args.transfer.is_empty() { Transfer::ALL.to_vec() } else { args.transfer.clone() };
    let pairs = pairs(&machine, &cpus, &field.targets, &transfers);
    let seed = measuring::seed(args.measure.seed);
    let mut bench = CoreBench::new(seed);
    let mut facts = measurement.facts(&machine, &args.measure, field.nodes());
    let conditions = live::conditions(&machine, &[]);
    let pace = measuring::pace(&args.measure, field.nodes());
    let survey = measuring::conduct(&mut bench, &pairs, pace, seed, &mut facts);
    let explain = |refusal: &_| measuring::explain(refusal, &machine);
    let report = |(pair, outcome): (&Pair, _)| {
        let home = home(machine.node_of(pair.to), machine.node_of(pair.from), pair.home);
        PairReport::new(*pair, relation(&machine, pair.to, pair.from), home, outcome, &explain)
    };
    Ok(C2cReport {
        account: Account::from_survey(&survey, conditions, bench.timer().source().name()),
        candidates: all.len(),
        pairs: pairs.iter().zip(&survey.outcomes).map(report).collect(),
    })
}

/// How many CPUs stand for all: their pairs grow with the square.
const fn most(options: &MeasureOptions) -> usize {
    match (options.quick, options.thorough) {
        (true, _) => 8,
        (false, true) => 32,
        (false, false) => 16,
    }
}

/// Every pair both ways, with each home and each transfer.
fn pairs(machine: &Machine, cpus: &CpuSet, memory: &NodeSet, transfers: &[Transfer]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for to in cpus.iter() {
        for from in cpus.iter().filter(|from| *from != to) {
            for home in homes(machine, to, from, memory) {
                for transfer in transfers {
                    pairs.push(Pair { to, from, home, transfer: *transfer });
                }
            }
        }
    }
    pairs
}

/// The nodes of both CPUs where they have memory, and the nearest other one.
fn homes(machine: &Machine, to: CpuId, from: CpuId, memory: &NodeSet) -> Vec<NodeId> {
    let nodes = [machine.node_of(to), machine.node_of(from)];
    let mut homes: Vec<NodeId> = nodes.into_iter().flatten().filter(|node| memory.contains(*node)).collect();
    homes.dedup();
    let near = nodes[0].map_or_else(Vec::new, |node| machine.closest(node));
    let other = |node: &NodeId| memory.contains(*node) && !nodes.contains(&Some(*node));
    homes.extend(near.into_iter().find(other).or_else(|| memory.iter().find(other)));
    homes
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn check(text: &str, to: u32, from: u32, expected: &[u32]) {
        let machine = spec::machine(text).unwrap();
        let homes = homes(&machine, CpuId::new(to), CpuId::new(from), &machine.memory_nodes());
        let homes: Vec<u32> = homes.iter().map(|node| node.number()).collect();
        assert_eq!(homes, expected, "{text}: {to} gets from {from}");
    }

    #[test]
    fn lines_are_at_home_with_either_cpu_and_elsewhere() {
        check("(4c 8G)", 0, 1, &[0]);
        check("2x(4c 8G)", 0, 1, &[0, 1]);
        check("2x(4c 8G)", 0, 4, &[0, 1]);
        check("2x(4c 8G)", 4, 0, &[1, 0]);
        check("3x(4c 8G)", 0, 4, &[0, 1, 2]);
        check("(4c) (4c 8G)", 0, 1, &[1]);
    }

    #[test]
    fn every_pair_is_measured_both_ways() {
        let machine = spec::machine("(3c 8G)").unwrap();
        let pairs = pairs(&machine, &machine.cpu_ids(), &machine.memory_nodes(), &Transfer::ALL);
        assert_eq!(pairs.len(), 3 * 2 * 3);
        let mut different = pairs.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), pairs.len());
    }
}
