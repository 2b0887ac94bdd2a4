//! How many threads a program is to use, and how it gets that number.

use nodewise_experiment::candidates::LeftOut;
use nodewise_experiment::command::environment::THREAD_VARIABLES;
use nodewise_experiment::study::Treatment;
use nodewise_machine::Machine;
use nodewise_machine::placement::{Placement, Scope};
use nodewise_machine::printable::quote;

/// More threads than any machine has CPUs.
const MOST: u32 = 1 << 16;

/// A number of threads, or what it follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Exactly(u32),
    /// As many as CPUs that the placement allows.
    Cpus,
    /// As many as cores of these CPUs.
    Cores,
}

impl Count {
    /// Reads a number, `cpus` or `cores`.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "cpus" => Ok(Self::Cpus),
            "cores" => Ok(Self::Cores),
            number => match number.parse() {
                Ok(count @ 1..=MOST) => Ok(Self::Exactly(count)),
                _ => Err(format!(
                    "{} is not a number of threads: expected 1 to {MOST}, cpus or cores",
                    quote(text)
                )),
            },
        }
    }

    /// Reads several, with commas between.
    ///
    /// # Errors
    /// The first that does not read.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        text.split(',').map(Self::parse).collect()
    }

    /// The number for a placement.
    fn number(self, placement: &Placement, machine: &Machine) -> u32 {
        let all = Scope::from_machine(machine).cpus;
        let cpus = placement.cpus.as_ref().map_or(all.clone(), |cpus| cpus.intersection(&all));
        let cores = || {
            let used = |core: &&nodewise_machine::CpuSet| !core.intersection(&cpus).is_empty();
            machine.cores().values().filter(used).count()
        };
        let number = match self {
            Self::Exactly(number) => return number,
            Self::Cpus => cpus.len(),
            Self::Cores => cores(),
        };
        u32::try_from(number).unwrap_or(MOST).max(1)
    }
}

/// Each treatment with each number of threads. A program whose words ask for the number (`asks`) gets
/// it there and nowhere else; others get it through the variables that libraries look at.
pub fn with_thread_counts(
    treatments: Vec<Treatment>,
    counts: &[Count],
    asks: bool,
    machine: &Machine,
) -> (Vec<Treatment>, Vec<LeftOut>) {
    let (mut all, mut left_out): (Vec<Treatment>, Vec<LeftOut>) = (Vec::new(), Vec::new());
    for treatment in treatments {
        for count in counts {
            let number = count.number(&treatment.placement, machine);
            let same = |one: &&Treatment| one.placement == treatment.placement && one.threads == Some(number);
            if let Some(same) = all.iter().find(same) {
                let name = format!("{}, {}", treatment.name, words(*count));
                left_out.push(LeftOut { name, why: format!("the same as {} here", same.name) });
                continue;
            }
            let mut one = treatment.clone();
            one.name = format!("{}, {}", treatment.name, words(Count::Exactly(number)));
            one.threads = Some(number);
            if !asks {
                one.environment.extend(THREAD_VARIABLES.map(|name| (name.to_owned(), number.to_string())));
            }
            all.push(one);
        }
    }
    (all, left_out)
}

fn words(count: Count) -> String {
    match count {
        Count::Exactly(1) => "1 thread".to_owned(),
        Count::Exactly(number) => format!("{number} threads"),
        Count::Cpus => "a thread per CPU".to_owned(),
        Count::Cores => "a thread per core".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{CpuSet, spec};
    use proptest::prelude::{any, proptest};

    #[test]
    fn counts_are_numbers_or_what_the_placement_has() {
        assert_eq!(
            Count::parse_list("1,4, cores,cpus").unwrap(),
            [Count::Exactly(1), Count::Exactly(4), Count::Cores, Count::Cpus]
        );
        for text in ["", "0", "-1", "65537", "many", "1,,2"] {
            let error = Count::parse_list(text).unwrap_err();
            assert!(
                error.contains("is not a number of threads: expected 1 to 65536, cpus or cores"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_placement_with_fewer_cpus_gets_fewer_threads_and_equal_numbers_are_run_once() {
        let machine = spec::machine("2x(2c2t 8G)").unwrap();
        let default = Treatment::new("default", Placement::DEFAULT);
        let bound = Treatment::new("CPUs 0,4", Placement::on_cpus(CpuSet::from([0, 4])));
        let counts = Count::parse_list("cpus,cores,1").unwrap();
        let (all, left_out) = with_thread_counts(vec![default, bound], &counts, false, &machine);
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "default, 8 threads",
                "default, 4 threads",
                "default, 1 thread",
                "CPUs 0,4, 2 threads",
                "CPUs 0,4, 1 thread"
            ]
        );
        assert_eq!(left_out.len(), 1);
        assert_eq!(left_out[0].name, "CPUs 0,4, 1 thread");
        assert_eq!(left_out[0].why, "the same as CPUs 0,4, 1 thread here");
        assert_eq!(all[1].environment["OMP_NUM_THREADS"], "4");
        assert_eq!(all[1].environment.len(), THREAD_VARIABLES.len());
    }

    #[test]
    fn a_command_that_asks_is_told_there_alone() {
        let machine = spec::machine("(2c 8G)").unwrap();
        let default = Treatment::new("default", Placement::DEFAULT);
        let (all, _) = with_thread_counts(vec![default], &[Count::Cpus], true, &machine);
        assert_eq!((all[0].threads, all[0].environment.len()), (Some(2), 0));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = Count::parse_list(&text);
        }
    }
}
