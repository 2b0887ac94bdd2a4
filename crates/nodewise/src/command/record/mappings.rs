//! `nodewise record --maps`: the mappings of a few processes beside each sample, at a bounded price.
//!
//! Reading mappings walks every page of a process, and holds its memory map meanwhile. All readings together
//! may take 1 % of a CPU: after one that took T, the next one waits for 100 T, and of several processes the
//! one whose turn is longest ago is next. A process that would take more than 20 ms is sampled
//! ([`Thoroughness::ByPrice`]). Between two readings the last one stays in the recording, with its time.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::Pid;
use nodewise_machine::printable::quote;
use nodewise_source::mappings::{MappingsError, Thoroughness, read};
use nodewise_source::paths;
use nodewise_source::process::search;
use nodewise_source::sample::{Identity, MappingsSample, Moment, ProcessSample, Sample, Unread};
use nodewise_source::tree::Tree;

use crate::failure::Failure;
use crate::live_pages::LivePages;

/// The share of a CPU that reading may take.
const SHARE: f64 = 0.01;
/// The most processes whose mappings are kept: a name may be that of hundreds.
const MOST_PROCESSES: usize = 64;
/// Bytes of a name that the kernel keeps.
const NAME_BYTES: usize = 15;

/// A process as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    Number(Pid),
    /// Every process of the name.
    Name(String),
}

impl Wanted {
    fn read(text: &str) -> Self {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse() {
            Ok(number) if is_number => Self::Number(Pid::new(number)),
            _ => Self::Name(text.to_owned()),
        }
    }

    fn is(&self, process: &ProcessSample) -> bool {
        match self {
            Self::Number(pid) => process.identity.pid == *pid,
            Self::Name(name) => {
                *process.name == **name
                    || name.len() > NAME_BYTES
                        && process.name.len() == NAME_BYTES
                        && name.starts_with(&*process.name)
            }
        }
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
    /// Until when no process is read again.
    rest: Duration,
    seed: u64,
}

impl Mapped {
    /// The processes with these numbers and names.
    pub(super) fn new(words: &[String], seed: u64) -> Self {
        let wanted = words.iter().map(|word| Wanted::read(word)).collect();
        Self { tree: Tree::live(), wanted, last: BTreeMap::new(), rest: Duration::ZERO, seed }
    }

    /// Refuses what no process is; a name may come with the program that is started.
    pub(super) fn check(&self, has_program: bool) -> Result<(), Failure> {
        for wanted in &self.wanted {
            match wanted {
                Wanted::Number(pid) if !self.tree.exists(&paths::process(*pid)) => {
                    return Err(Failure::cannot(format_args!("--maps {pid}: process {pid} does not exist")));
                }
                Wanted::Name(name) if !has_program => {
                    let found = search::named(&self.tree, name).map_err(Failure::cannot)?;
                    if found.is_empty() {
                        let name = quote(name);
                        return Err(Failure::cannot(format_args!(
                            "--maps {name}: no process is named {name}"
                        )));
                    }
                }
                Wanted::Number(_) | Wanted::Name(_) => {}
            }
        }
        Ok(())
    }

    /// Adds the mappings to a sample that was just taken.
    pub(super) fn add_to(&mut self, sample: &mut Sample) {
        let now = sample.moment.since_boot;
        let is_wanted = |process: &ProcessSample| {
            !process.kernel_thread && self.wanted.iter().any(|wanted| wanted.is(process))
        };
        let there = sample.processes.iter().filter(|process| is_wanted(process));
        let there: Vec<Identity> = there.map(|process| process.identity).collect();
        if there.len() > MOST_PROCESSES {
            sample.unread.push(Unread {
                fact: "mappings of processes (--maps)".to_owned(),
                reason: format!("more than {MOST_PROCESSES} processes have the name"),
                objects: there.len() - MOST_PROCESSES,
                remedy: Some("name some of them by number".into()),
            });
        }
        let mut there: Vec<Identity> = there.into_iter().take(MOST_PROCESSES).collect();
        self.last.retain(|identity, _| there.binary_search(identity).is_ok());
        // Those that were never read first, then the one whose turn is longest ago.
        there.sort_by_key(|identity| self.last.get(identity).map(|(tried, _)| *tried));
        for identity in there {
            if self.last.contains_key(&identity) && now < self.rest {
                break;
            }
            let look = self.look(identity, sample.moment);
            self.last.insert(identity, (now, look));
        }
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
                self.rest = self.rest.max(now.since_boot) + took.div_f64(SHARE);
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
    use nodewise_source::sample::{ProcessScope, SampleOptions, Sampler};

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
        assert_eq!(mapped.rest, first.moment.since_boot + took * 100);
        // A moment later it is too early, and the last reading stays.
        let mut early = first.clone();
        early.moment.since_boot = mapped.rest - Duration::from_nanos(1);
        mapped.add_to(&mut early);
        assert_eq!(early.mappings[0].seen, seen);
        let mut later = first.clone();
        later.moment.since_boot = mapped.rest;
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
}
