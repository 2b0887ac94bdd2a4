//! numastat, migratepages, migspeed and memhog beside their originals, in real kernels: every
//! recorded command runs in a guest of the same nodes, in both releases, with and without the strict
//! settings.
//!
//! Numbers of a running machine are masked; that tables are right to the byte is what the test
//! `numastat` shows. What pages really do is in `places.rs`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a guest speaks to its host through them")]

#[path = "../../../syscall/tests/kernel/filter.rs"]
mod filter;
mod guest;
#[path = "../golden/home.rs"]
mod home;
mod mask;
mod places;
#[path = "../golden/program.rs"]
mod program;
#[path = "../golden/record.rs"]
mod record;
mod roles;
#[path = "../golden/words.rs"]
mod words;

use libtest_mimic::{Arguments, Failed, Trial};
use nodewise_compat::Release;

use guest::{Guest, TOPOLOGIES};
use home::Home;
use record::Record;

/// The tools of this test.
const TOOLS: [&str; 4] = ["numastat", "migratepages", "migspeed", "memhog"];

fn main() {
    if let Some(status) = roles::role() {
        std::process::exit(status);
    }
    let arguments = Arguments::from_args();
    let folder = record::folder();
    let mut all = Vec::new();
    for topology in TOPOLOGIES {
        let guest = Guest::new(topology, &folder);
        let mut trials = Vec::new();
        for file in topology.files {
            trials.extend(trials_of(file, record::read(&folder, file), &guest));
        }
        if topology.several_nodes {
            let name = format!("{}::places", topology.files[0]);
            trials.push(Trial::test(name, move || guest.places().map_err(Failed::from)));
        }
        all.extend(trials.into_iter().enumerate());
    }
    // The first test of a guest boots it, so those come first: as many boots at once as tests.
    all.sort_by_key(|(place, _)| *place);
    let trials = all.into_iter().map(|(_, trial)| trial).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

/// Whether this test runs a record: those of numastat in guests too, whose tables the test `numastat`
/// compares to the byte.
pub fn is_ours(file: &str, record: &Record) -> bool {
    match home::responsible_test(file, record) {
        Ok(Home::Friends) => true,
        Ok(Home::Numastat) => file.starts_with("numastat-and-friends"),
        _ => false,
    }
}

/// The tool that a recorded command runs.
pub fn tool_of(cmd: &str) -> Option<&'static str> {
    TOOLS.into_iter().find(|tool| cmd.split(' ').any(|word| word == *tool))
}

/// A test for each release and tool of a file.
fn trials_of(file: &'static str, records: Vec<Record>, guest: &Guest) -> Vec<Trial> {
    let mut groups: Vec<(String, Vec<(usize, Record)>)> = Vec::new();
    for (at, record) in records.into_iter().enumerate().filter(|(_, record)| is_ours(file, record)) {
        let (Some(release), Some(tool)) = (record.release(), tool_of(&record.cmd)) else { continue };
        let name = format!("{file}::{}::{tool}", release.number());
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, records)) => records.push((at, record)),
            None => groups.push((name, vec![(at, record)])),
        }
    }
    let trial = |(name, records): (String, Vec<(usize, Record)>)| {
        let guest = guest.clone();
        Trial::test(name.clone(), move || compare(&name, file, &records, &guest))
    };
    groups.into_iter().map(trial).collect()
}

/// Whether `docs/compat.md` says that the answer is different by default: processes that cannot be read.
fn is_deliberate(record: &Record) -> bool {
    record.stderr.contains("Can't read")
}

fn compare(name: &str, file: &str, records: &[(usize, Record)], guest: &Guest) -> Result<(), Failed> {
    let (mut compared, mut wrong) = (0, Vec::new());
    for (at, record) in records {
        for strict in [true, false] {
            if !strict && is_deliberate(record) {
                continue;
            }
            let Some(answer) = guest.answer(file, *at, strict)? else { return Ok(()) };
            let expected = (record.rc, record.stdout.clone(), record.stderr.clone());
            let mask = |answer| mask::masked(&record.cmd, answer);
            compared += 1;
            if mask(answer.clone()) != mask(expected) {
                let (rc, out, err) = answer;
                wrong.push(format!(
                    "{} (strict: {strict}): {rc}, recorded {}\n{out}{err}recorded:\n{}{}",
                    record.cmd, record.rc, record.stdout, record.stderr
                ));
            }
        }
    }
    println!("{name}: {} of {compared} answers hold", compared - wrong.len());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// The release that a record is of, for the environment of its command.
pub fn release_of(record: &Record) -> &'static str {
    record.release().unwrap_or(Release::V2_0_19).number()
}
