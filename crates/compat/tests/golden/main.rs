//! numactl beside its original: every recorded command, and those of other tools on its machines, with the same words in both releases.
//!
//! With the strict settings every record must hold. Without them too, but for those about which
//! [`different`] says what must hold instead. Each section of a file of records is a test, which shows how
//! many answers hold.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test speaks to its caller")]

mod answer;
mod different;
#[path = "../../../syscall/tests/kernel/filter.rs"]
mod filter;
mod guest;
mod home;
mod in_process;
mod program;
mod record;
mod scripted;
mod trees;
mod words;

use std::collections::BTreeMap;
use std::ffi::{OsString, c_long};
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use nodewise_compat::{Call, Settings, Tool};
use nodewise_source::tree::Tree;
use nodewise_syscall::Errno;

use answer::Answer;
use different::Context;
use guest::{Guest, TOPOLOGIES};
use home::Home;
use record::Record;

fn main() {
    if let Some(status) = personality() {
        std::process::exit(status);
    }
    guest::other_roles();
    let arguments = Arguments::from_args();
    let folder = record::folder();
    let mut trials = Vec::new();
    for file in home::GOLDEN {
        let topology = TOPOLOGIES.into_iter().find(|topology| topology.file == file);
        let place = topology.map_or(Where::Here, |topology| Where::Guest(Guest::new(topology, &folder)));
        trials.extend(trials_of(&folder, file, place).into_iter().enumerate());
    }
    // The first section of a guest boots it, so those come first: as many boots at once as tests.
    trials.sort_by_key(|(place, _)| *place);
    let mut trials: Vec<Trial> = trials.into_iter().map(|(_, trial)| trial).collect();
    trials.push(Trial::test("every_record_is_run_by_a_test_or_has_a_reason", move || count(&folder)));
    libtest_mimic::run(&arguments, trials).exit();
}

/// Reports how many of all records are run, and why the others are not.
fn count(folder: &Path) -> Result<(), Failed> {
    let mut names: Vec<String> = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".jsonl")?.to_owned()))
        .collect();
    names.sort_unstable();
    let (mut run, mut others) = (BTreeMap::new(), BTreeMap::new());
    for file in &names {
        for record in record::read(folder, file) {
            match home::responsible_test(file, &record) {
                Ok(home) => *run.entry(home).or_insert(0) += 1,
                Err(why) => *others.entry(why).or_insert(0) += 1,
            }
        }
    }
    let (here, rest): (usize, usize) = (run.values().sum(), others.values().sum());
    println!("{here} of {} records are run: {run:?}", here + rest);
    for (why, count) in others {
        println!("{count} are not: {why}");
    }
    if here == 0 { Err("there are no records".into()) } else { Ok(()) }
}

/// Plays the role of this program when it is called by another name, in a guest.
fn personality() -> Option<i32> {
    let mut words = std::env::args_os();
    let name = words.next()?;
    if Path::new(&name).file_name()? == "seccomp-run" {
        return Some(run_with_filter(&words.collect::<Vec<_>>()));
    }
    Tool::named(&name)?;
    let tree = Tree::live();
    let call = Call::from_words(std::env::args_os(), &tree)?;
    Some(nodewise_compat::run(&call, &mut std::io::stdout(), &mut std::io::stderr()).into())
}

/// `seccomp-run ERRNO CALL,CALL.. -- COMMAND`
fn run_with_filter(words: &[OsString]) -> i32 {
    let text = |at: usize| words[at].to_str().expect("words of the records");
    let calls: Vec<c_long> = text(1)
        .split(',')
        .flat_map(|name| match name {
            "all6" => filter::NUMA_CALLS.to_vec(),
            "set_mempolicy" => vec![libc::SYS_set_mempolicy],
            "mbind" => vec![libc::SYS_mbind],
            "sched_setaffinity" => vec![libc::SYS_sched_setaffinity],
            other => panic!("{other} is no call of the records"),
        })
        .collect();
    let errno = Errno::new(text(0).parse().expect("a number of an error"));
    filter::block(&calls, errno).expect("a guest takes filters");
    let error = std::process::Command::new(&words[3]).args(&words[4..]).exec();
    panic!("{error}");
}

/// Where the commands of a file run.
#[derive(Clone)]
enum Where {
    Here,
    Guest(Guest),
}

/// Whether this test runs a record.
fn is_ours(file: &str, record: &Record) -> bool {
    home::responsible_test(file, record) == Ok(Home::Golden)
}

/// A record with its number in its file.
type Numbered = (usize, Record);

/// A test for each section of a file and each release.
fn trials_of(folder: &Path, file: &'static str, place: Where) -> Vec<Trial> {
    let all = record::read(folder, file);
    let hardware: Vec<Record> = all.iter().filter(|record| shows_hardware(record)).cloned().collect();
    let records = all.into_iter().enumerate().filter(|(_, record)| is_ours(file, record));
    let mut sections: Vec<(String, Vec<Numbered>)> = Vec::new();
    for (at, record) in records {
        let release = record.release().expect("it was filtered").number();
        let name = format!("{file}::{release}::{}", record.section);
        match sections.iter_mut().find(|(known, _)| *known == name) {
            Some((_, records)) => records.push((at, record)),
            None => sections.push((name, vec![(at, record)])),
        }
    }
    let trial = |(name, records): (String, Vec<Numbered>)| {
        let place = place.clone();
        let hardware = hardware.clone();
        Trial::test(name, move || section(file, &records, &place, &hardware))
    };
    sections.into_iter().map(trial).collect()
}

fn shows_hardware(record: &Record) -> bool {
    record.cmd == "numactl --hardware"
}

/// Runs the records of a section; `hardware` are those that show the machines of the file.
fn section(file: &str, records: &[Numbered], place: &Where, hardware: &[Record]) -> Result<(), Failed> {
    let mut failures = Vec::new();
    for (at, record) in records {
        let release = record.release().expect("it was filtered");
        let hardware = hardware.iter().find(|shown| shown.tool == record.tool);
        let hardware = hardware.map(|shown| Answer::from_record(shown).masked(&shown.cmd));
        let context = Context { file, record, release, hardware };
        for strict in [true, false] {
            let answer = match place {
                Where::Here => Some(answer_here(file, record, strict)),
                Where::Guest(guest) => guest.answer(*at, strict)?,
            };
            let Some(answer) = answer else { return Ok(()) };
            let recorded = Answer::from_record(record).masked(&record.cmd);
            let expected =
                if strict { context.expected_strictly(&recorded) } else { context.expected(&recorded) };
            failures.extend(different::difference(record, strict, &answer.masked(&record.cmd), &expected));
        }
    }
    println!("{} of {} answers hold", 2 * records.len() - failures.len(), 2 * records.len());
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

fn answer_here(file: &str, record: &Record, strict: bool) -> Answer {
    let release = record.release().expect("it was filtered");
    let settings = Settings { release, strict, ..Settings::default() };
    let tree = if file == "host-one-node" { trees::host() } else { trees::simulated(&record.section) };
    in_process::run(record, &tree, settings)
}
