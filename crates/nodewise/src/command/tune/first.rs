//! `nodewise tune` without a program: the first contact, which ends within half a minute.

use std::time::Duration;

use nodewise_experiment::candidates::LeftOut;
use nodewise_experiment::metric::{Metric, Pattern};
use nodewise_experiment::study::{End, Rounds, Treatment};
use nodewise_machine::Machine;
use nodewise_machine::placement::{HugePages, Scope};
use nodewise_stats::Direction;

use super::options::MOST_ROUNDS;
use crate::cli::tune::Tune;

/// The time for everything, where the user names neither time nor rounds: what comes before and after takes
/// less than the rest of half a minute.
const BUDGET: Duration = Duration::from_secs(25);

/// The rounds of a study in which nothing is compared.
const ALONE: u32 = 3;

/// The kind of program that is tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    No,
    /// A built-in workload, on several nodes with memory.
    SeveralNodes,
    /// A built-in workload on one node, where memory can be nowhere else.
    OneNode,
}

impl First {
    /// Which of them these options mean on a machine. Those who name placements or a metric have a question
    /// of their own.
    pub fn from_args(args: &Tune, machine: &Machine) -> Self {
        let is_program = !args.command.is_empty() || args.serve.is_some();
        let is_own = !args.placement.is_empty() || args.space.is_some() || args.threads.is_some();
        let has_several = Scope::from_machine(machine).memory_nodes.len() > 1;
        match (is_program, has_several || is_own || !args.metric.is_empty() || args.emit.is_some()) {
            (true, _) => Self::No,
            (false, true) => Self::SeveralNodes,
            (false, false) => Self::OneNode,
        }
    }

    /// Whether this study is a first look on a machine with several nodes whose time held no round: the user has
    /// chosen no time, and gets what is worth knowing in place of an error.
    pub fn is_too_short(self, args: &Tune, end: &End, scope: &Scope) -> bool {
        let has_own_time = self != Self::SeveralNodes || args.time.is_some() || scope.memory_nodes.len() < 2;
        !has_own_time && matches!(end, End::BudgetTooShort(_))
    }

    /// The built-in workload that is tuned.
    pub const fn workload(self) -> &'static str {
        match self {
            Self::OneNode => "both",
            Self::No | Self::SeveralNodes => "stream",
        }
    }

    /// How many rounds there are, unless the user says so.
    pub fn rounds(self, rounds: Rounds, args: &Tune) -> Rounds {
        match self {
            Self::SeveralNodes | Self::OneNode if args.runs.is_none() && args.time.is_none() => {
                Rounds::Within { budget: BUDGET, at_most: MOST_ROUNDS }
            }
            _ => rounds,
        }
    }
}

/// The latency that the built-in workload prints, and beside it the bandwidth.
pub fn metrics() -> (Metric, Vec<Metric>) {
    let printed = |text: &str, direction| {
        let pattern = Pattern::new(text).expect("the pattern is a regular expression with one group");
        Metric::Printed(pattern, direction)
    };
    let latency = printed("latency ([0-9.]+) ns", Direction::LowerIsBetter);
    (latency, vec![printed("bandwidth ([0-9.]+) GB/s", Direction::HigherIsBetter)])
}

/// Leaves out what is the default for the built-in workload: it does not advise huge pages, so where the
/// system waits for advice it gets none.
pub fn simplify(treatments: &mut Vec<Treatment>, left_out: &mut Vec<LeftOut>, machine: &Machine) {
    if machine.settings.transparent_hugepage.as_deref() != Some("madvise") {
        return;
    }
    let is_same = |treatment: &Treatment| treatment.placement.huge == Some(HugePages::NEVER);
    let why = "the same as default for a program that does not advise huge pages";
    for same in treatments.iter().filter(|treatment| is_same(treatment)) {
        left_out.push(LeftOut { name: same.name.clone(), why: why.to_owned() });
    }
    treatments.retain(|treatment| !is_same(treatment));
}

/// The rounds where there is nothing to compare with.
pub const fn rounds_alone(rounds: Rounds, treatments: usize) -> Rounds {
    match rounds {
        Rounds::Within { budget, .. } if treatments < 2 => Rounds::Within { budget, at_most: ALONE },
        rounds => rounds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser as _;
    use nodewise_experiment::study::TooShort;
    use nodewise_machine::spec;

    fn args(words: &[&str]) -> Tune {
        let cli = Cli::try_parse_from(["nodewise", "tune"].iter().chain(words)).unwrap();
        match cli.verb {
            Some(crate::cli::Verb::Tune(tune)) => tune,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_bare_tune_on_one_node_is_a_first_look() {
        let one = spec::machine("(2c 4G)").unwrap();
        let two = spec::machine("2x(2c 4G)").unwrap();
        assert_eq!(First::from_args(&args(&[]), &one), First::OneNode);
        assert_eq!(First::from_args(&args(&[]), &two), First::SeveralNodes);
        assert_eq!(First::from_args(&args(&["--metric=wall"]), &one), First::SeveralNodes);
        assert_eq!(First::from_args(&args(&["true"]), &one), First::No);
    }

    #[test]
    fn a_first_look_whose_time_held_no_round_is_an_error_only_where_the_user_chose_the_time() {
        let check = |spec: &str, words: &[&str], end: End, expected: bool| {
            let (machine, args) = (spec::machine(spec).unwrap(), args(words));
            let first = First::from_args(&args, &machine);
            assert_eq!(
                first.is_too_short(&args, &end, &Scope::from_machine(&machine)),
                expected,
                "{spec} {words:?}"
            );
        };
        let short = || End::BudgetTooShort(TooShort { budget: BUDGET, round: None });
        check("2x(2c 4G)", &[], short(), true);
        check("2x(2c 4G)", &["--metric=cpu"], short(), true);
        check("2x(2c 4G)", &["--time=3s"], short(), false);
        check("2x(2c 4G)", &["true"], short(), false);
        check("2x(2c 4G)", &[], End::BudgetSpent, false);
        check("(2c 4G)", &["--metric=cpu"], short(), false);
    }

    #[test]
    fn without_a_program_half_a_minute_is_enough_unless_the_user_says_more() {
        let rounds = |words: &[&str], first: First| first.rounds(Rounds::RACE, &args(words));
        assert!(
            matches!(rounds(&[], First::OneNode), Rounds::Within { budget, .. } if budget.as_secs() < 30)
        );
        assert_eq!(rounds(&["--runs=50"], First::OneNode), Rounds::RACE);
        assert_eq!(rounds(&["--time=3m"], First::SeveralNodes), Rounds::RACE);
        assert_eq!(rounds(&[], First::No), Rounds::RACE);
    }
}
