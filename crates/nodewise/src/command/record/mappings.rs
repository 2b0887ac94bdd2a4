//! `nodewise record --maps`: the mappings of a few processes beside each sample, at a bounded price.
//!
//! Reading mappings walks every page of a process, and holds its memory map meanwhile. All readings together
//! may take 1 % of a CPU: after one that took T, the next one waits for 100 T, and of several processes the
//! one whose turn is longest ago is next; those that were never read come first. Only the first sample does not
//! wait: it has all of them. A process that would take more than 20 ms is sampled ([`Thoroughness::ByPrice`]).
//! Between two readings the last one stays in the recording, with its time.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::Pid;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::quote;
use nodewise_source::mappings::{MappingsError, Thoroughness, read};
use nodewise_source::process::search;
use nodewise_source::sample::{
    Identity, MappingsSample, Moment, ProcessSample, ProcessScope, Sample, SampleOptions, Sampler, Unread,
};
use nodewise_source::tree::Tree;

use crate::command::process::is_number;
use crate::failure::Failure;
use crate::live_pages::LivePages;

/// The share of a CPU that reading may take.
const SHARE: f64 = 0.01;
/// The most processes whose mappings are kept: a name may be that of hundreds.
const MOST_PROCESSES: usize = 64;

/// A process as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    Number(Pid),
    /// Every process of the name.
    Name(String),
}

impl Wanted {
    fn read(text: &str) -> Self {
        match text.parse() {
            Ok(number) if is_number(text) => Self::Number(Pid::new(number)),
            _ => Self::Name(text.to_owned()),
        }
    }

    fn is(&self, process: &ProcessSample) -> bool {
        match self {
            Self::Number(pid) => process.identity.pid == *pid,
            // This program may have any name, and is not what is recorded.
            Self::Name(name) => {
                process.identity.pid.number() != std::process::id()
                    && search::is_called(process.name.as_bytes(), name)
            }
        }
    }

    /// Whether its mappings are recorded: threads of the kernel have none.
    fn has_mappings(&self, process: &ProcessSample) -> bool {
        !process.kernel_thread && self.is(process)
    }
}

/// The outcome of a reading.
enum Look {
    Mappings(MappingsSample),
    Refused(Unread),
    /// It ended between the sample and the reading.
    Ended,
}

/// Processes whose mappings are recorded.
pub(super) struct Mapped {
    tree: Tree,
    wanted: Vec<Wanted>,
    /// The last reading of each, with the moment when it was tried.
    last: BTreeMap<Identity, (Duration, Look)>,
    /// Until when no process is read; `None` before the first sample.
    rest: Option<Duration>,
    seed: u64,
}

impl Mapped {
    /// The processes with these numbers and names.
    pub(super) fn new(words: &[String], seed: u64) -> Self {
        let wanted = words.iter().map(|word| Wanted::read(word)).collect();
        Self { tree: Tree::live(), wanted, last: BTreeMap::new(), rest: None, seed }
    }

    /// Refuses what no process is; a name may come with the program that is started.
    pub(super) fn check(&self, has_program: bool) -> Result<(), Failure> {
        if self.wanted.is_empty() {
            return Ok(());
        }
        let options = SampleOptions { processes: ProcessScope::All, ..SampleOptions::default() };
        self.check_in(&Sampler::new(Tree::live(), options).sample(Moment::now()), has_program)
    }

    fn check_in(&self, sample: &Sample, has_program: bool) -> Result<(), Failure> {
        let is_missing =
            |wanted: &&Wanted| !sample.processes.iter().any(|process| wanted.has_mappings(process));
        for wanted in self.wanted.iter().filter(is_missing) {
            return Err(Failure::cannot(match wanted {
                Wanted::Name(_) if has_program => continue,
                Wanted::Name(name) => format!("--maps {0}: no process is named {0}", quote(name)),
                Wanted::Number(pid) if sample.processes.iter().any(|process| wanted.is(process)) => {
                    format!("--maps {pid}: process {pid} is a thread of the kernel, which has no mappings")
                }
                Wanted::Number(pid) => format!("--maps {pid}: process {pid} does not exist"),
            }));
        }
        Ok(())
    }

    /// Adds the mappings to a sample that was just taken.
    pub(super) fn add_to(&mut self, sample: &mut Sample) {
        let now = sample.moment.since_boot;
        let is_wanted =
            |process: &ProcessSample| self.wanted.iter().any(|wanted| wanted.has_mappings(process));
        let there = sample.processes.iter().filter(|process| is_wanted(process));
        let there: Vec<Identity> = there.map(|process| process.identity).collect();
        if there.len() > MOST_PROCESSES {
            sample.unread.push(Unread {
                fact: "mappings of processes (--maps)".to_owned(),
                reason: format!("more than {MOST_PROCESSES} processes match"),
                objects: there.len() - MOST_PROCESSES,
                remedy: Some("name some of them by number".into()),
            });
        }
        let mut there: Vec<Identity> = there.into_iter().take(MOST_PROCESSES).collect();
        self.last.retain(|identity, _| there.binary_search(identity).is_ok());
        // Those that were never read first, then the one whose turn is longest ago.
        there.order_by_key(|identity| self.last.get(identity).map(|(tried, _)| *tried));
        // The first sample has all of them; from then on one waits for the other.
        let is_first = self.rest.is_none();
        for identity in there {
            if !is_first && self.rest.is_some_and(|rest| now < rest) {
                break;
            }
            let look = self.look(identity, sample.moment);
            self.last.insert(identity, (now, look));
        }
        self.rest.get_or_insert(now);
        sample.mappings.clear();
        for (_, look) in self.last.values() {
            match look {
                Look::Mappings(mappings) => sample.mappings.push(mappings.clone()),
                Look::Refused(unread) => sample.unread.push(unread.clone()),
                Look::Ended => {}
            }
        }
    }

    fn look(&mut self, identity: Identity, now: Moment) -> Look {
        let pid = identity.pid;
        let found = read(&self.tree, pid, Thoroughness::ByPrice, self.seed, Some(&mut LivePages::open(pid)));
        match found {
            Ok(mappings) => {
                let took = mappings.took.unwrap_or(mappings.predicted);
                let begins = self.rest.unwrap_or_default().max(now.since_boot);
                self.rest = Some(begins.saturating_add(took.div_f64(SHARE)));
                Look::Mappings(MappingsSample { identity, seen: now, mappings: mappings.into() })
            }
            Err(MappingsError::NoProcess(_) | MappingsError::Ended(_) | MappingsError::Zombie(_)) => {
                Look::Ended
            }
            Err(error) => Look::Refused(Unread {
                fact: format!("mappings of process {pid}"),
                reason: error.to_string(),
                objects: 1,
                remedy: None,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        let options = SampleOptions { processes: ProcessScope::All, ..SampleOptions::default() };
        Sampler::new(Tree::live(), options).sample(Moment::now())
    }

    #[test]
    fn a_word_is_a_number_or_a_name() {
        assert_eq!(Wanted::read("12"), Wanted::Number(Pid::new(12)));
        for name in ["", "x12", "12x", "+12", "99999999999"] {
            assert_eq!(Wanted::read(name), Wanted::Name(name.to_owned()));
        }
        let process = |name: &str| {
            let identity = Identity { pid: Pid::new(7), started_ticks: 1 };
            ProcessSample { name: name.into(), ..ProcessSample::new(identity) }
        };
        assert!(Wanted::read("7").is(&process("x")) && !Wanted::read("8").is(&process("x")));
        assert!(Wanted::read("a-long-name-of-a-program").is(&process("a-long-name-of-")));
        assert!(!Wanted::read("a-long").is(&process("a-long-name-of-")));
    }

    #[test]
    fn readings_rest_for_a_hundred_times_what_they_took() {
        let me = std::process::id();
        let mut mapped = Mapped::new(&[me.to_string()], 1);
        mapped.check(false).unwrap();
        let mut first = sample();
        mapped.add_to(&mut first);
        let seen = first.mappings[0].seen;
        assert_eq!((first.mappings.len(), seen), (1, first.moment));
        let took = first.mappings[0].mappings.took.unwrap();
        let rest = mapped.rest.unwrap();
        assert_eq!(rest, first.moment.since_boot + took * 100);
        // A moment later it is too early, and the last reading stays.
        let mut early = first.clone();
        early.moment.since_boot = rest - Duration::from_nanos(1);
        mapped.add_to(&mut early);
        assert_eq!(early.mappings[0].seen, seen);
        let mut later = first.clone();
        later.moment.since_boot = rest;
        mapped.add_to(&mut later);
        assert_eq!(later.mappings[0].seen, later.moment);
        // A process that is gone has no mappings any more.
        later.processes.clear();
        mapped.add_to(&mut later);
        assert_eq!(later.mappings, []);
    }

    #[test]
    fn what_no_process_is_is_refused() {
        let check = |word: &str, has_program| Mapped::new(&[word.to_owned()], 1).check(has_program);
        let message = |word: &str| check(word, false).unwrap_err().message;
        assert_eq!(message("4194304"), "--maps 4194304: process 4194304 does not exist");
        assert_eq!(message("no-such-name"), "--maps \"no-such-name\": no process is named \"no-such-name\"");
        assert!(check("no-such-name", true).is_ok(), "the program may bring it");
        assert!(check("4194304", true).is_err());
    }

    fn of_names(names: &[&str]) -> Sample {
        let process = |(pid, name): (u32, &&str)| {
            let identity = Identity { pid: Pid::new(pid), started_ticks: 1 };
            let kernel_thread = name.starts_with('k');
            ProcessSample { name: (*name).into(), kernel_thread, ..ProcessSample::new(identity) }.into()
        };
        let processes = (std::process::id()..).zip(names).map(process).collect();
        Sample { moment: Moment::now(), processes, ..Sample::default() }
    }

    #[test]
    fn what_is_accepted_is_recorded() {
        let me = std::process::id();
        let sample = of_names(&["recorder", "postgres", "kthreadd"]);
        let check = |word: &str| Mapped::new(&[word.to_owned()], 1).check_in(&sample, false);
        assert!(check("postgres").is_ok() && check(&me.to_string()).is_ok());
        // This program itself, a thread of the kernel, and a name that only a command line has.
        for name in ["recorder", "kthreadd", "/usr/bin/postgres"] {
            let expected = format!("--maps {0}: no process is named {0}", quote(name));
            assert_eq!(check(name).unwrap_err().message, expected);
        }
        let refused = check(&(me + 2).to_string()).unwrap_err().message;
        assert!(refused.ends_with("is a thread of the kernel, which has no mappings"), "{refused}");
    }

    #[test]
    fn only_the_first_sample_reads_without_a_rest() {
        let me = std::process::id();
        let mut mapped = Mapped::new(&[me.to_string(), "new".to_owned()], 1);
        let mut first = of_names(&["first"]);
        mapped.add_to(&mut first);
        // A short reading may take no time that the kernel counts.
        let rest = mapped.rest.unwrap().max(first.moment.since_boot + Duration::from_secs(1));
        mapped.rest = Some(rest);
        // A process that began meanwhile waits, although it was never read.
        let mut next = of_names(&["first", "new"]);
        next.moment.since_boot = rest - Duration::from_nanos(1);
        mapped.add_to(&mut next);
        assert_eq!(mapped.last.len(), 1);
        next.moment.since_boot = rest;
        mapped.add_to(&mut next);
        assert_eq!(mapped.last.len(), 2);
    }
}
