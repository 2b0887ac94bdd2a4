//! numastat against every record of the originals, to the byte, on machines rebuilt from what was
//! printed.

#![expect(clippy::print_stdout, reason = "a test says what could not be compared and how much holds")]

#[path = "../golden/home.rs"]
mod home;
mod printed;
mod rebuild;
#[path = "../golden/record.rs"]
mod record;
#[path = "../golden/words.rs"]
mod words;

use std::ffi::OsString;
use std::sync::atomic::{AtomicUsize, Ordering};

use libtest_mimic::{Arguments, Trial};
use nodewise_compat::numastat::line;
use nodewise_compat::{Call, Release, Settings, Tool, run};
use nodewise_source::tree::{Memory, Tree};

use home::Home;
use rebuild::{Known, Ties};
use record::Record;

static HELD: AtomicUsize = AtomicUsize::new(0);
static HELD_IN_STRICT: AtomicUsize = AtomicUsize::new(0);
static ALL: AtomicUsize = AtomicUsize::new(0);

/// Whether `docs/compat.md` says that the answer is different by default.
fn is_deliberate(record: &Record) -> bool {
    let cmd = record.cmd.as_str();
    let no_such_process = record.stderr.contains("Can't read");
    let needs_node_0 = record.stderr.contains("cannot open /sys/devices/system/node/node0");
    let sorts_sparse = cmd == "numastat -cs2 -m" && record.section.contains("sparse");
    no_such_process || needs_node_0 || sorts_sparse
}

/// Runs the command of a record; returns status, standard output and standard error.
fn answer(record: &Record, tree: &Tree, width: Option<usize>, strict: bool) -> (i32, String, String) {
    let words: Vec<&str> = record.cmd.split(' ').collect();
    let at = words.iter().position(|word| *word == "numastat").expect("a command of numastat");
    let variable = words[..at].iter().find_map(|word| word.strip_prefix("NUMASTAT_WIDTH="));
    let settings = Settings {
        release: record.release().expect("an imitated release"),
        strict,
        numastat_width: variable.map(|value| line::from_variable(value.as_ref())).or(width),
        ..Settings::default()
    };
    let args = words[at + 1..].iter().map(OsString::from).collect();
    let call = Call { settings, terminal: || None, ..Call::new(Tool::Numastat, args, tree) };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run(&call, &mut out, &mut err);
    let mut err = String::from_utf8_lossy(&err).into_owned();
    if let Some(usage) = err.find("Usage: numastat ") {
        err.replace_range(usage.., "<NUMASTAT-USAGE>\n");
    }
    (i32::from(status), String::from_utf8_lossy(&out).into_owned(), err)
}

/// Compares an answer with a record; says what differs.
fn compare_with(record: &Record, rc: i32, out: &str, err: &str) -> Result<(), String> {
    if (rc, out, err) == (record.rc, &record.stdout, &record.stderr) {
        return Ok(());
    }
    let Record { cmd, rc: recorded, stdout, stderr, .. } = record;
    Err(format!("{cmd}: {rc}, recorded {recorded}\n{out}{err}recorded:\n{stdout}{stderr}"))
}

/// Compares one record; says what is wrong.
fn check(record: &Record, tree: &Tree, width: Option<usize>) -> Result<(), String> {
    let compare = |strict| {
        let (rc, out, err) = answer(record, tree, width, strict);
        compare_with(record, rc, &out, &err)
    };
    compare(true).map_err(|text| format!("strict: {text}"))?;
    HELD_IN_STRICT.fetch_add(1, Ordering::Relaxed);
    match (compare(false), is_deliberate(record)) {
        (Ok(()), _) => {
            HELD.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        (Err(_), true) => Ok(()),
        (Err(text), false) => Err(text),
    }
}

/// The fields of meminfo, in the kernel's order, as a record of the same file has them.
fn fields(records: &[Record]) -> Vec<String> {
    let is_complete = |record: &&Record| {
        record.release() == Some(Release::V2_0_19)
            && ["numastat -m", "numastat -m -c"].contains(&record.cmd.as_str())
            && record.rc == 0
    };
    let record = records.iter().find(is_complete).expect("a record of the whole meminfo");
    let tables = printed::tables(&record.stdout);
    tables[0].rows.iter().map(|(name, _)| name.clone()).collect()
}

/// Checks the records of a section one after the other.
fn section(records: Vec<Record>, fields: &[String]) -> Result<(), String> {
    let mut known = Known::new(fields);
    if records.iter().any(|record| record.section.contains("one-high")) {
        known = known.with_node(8);
    }
    let mut seen_plain = false;
    let mut wrong = Vec::new();
    for record in &records {
        let fake = record.section.contains("/sys/devices/system/node");
        // On the simulated machines the second half was printed on lines of 80 bytes.
        let folded = fake && (record.cmd == "numastat -c -n" || record.cmd == "numastat" && seen_plain);
        let width = folded.then_some(80);
        seen_plain |= record.cmd == "numastat";
        let result = if record.section.starts_with("no /sys") {
            check(record, &Tree::memory(Memory::new()), width)
        } else if record.section.contains("node = empty") {
            check(record, &Tree::memory(Memory::new().directory("/sys/devices/system/node")), width)
        } else {
            let before = known.clone();
            check(record, &known.machine(record, Ties::AsKnown), width).or_else(|_| {
                known = before;
                check(record, &known.machine(record, Ties::AsPrinted), width)
            })
        };
        ALL.fetch_add(1, Ordering::Relaxed);
        wrong.extend(result.err());
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(format!("{} of {}:\n{}", wrong.len(), records.len(), wrong.join("\n")))
    }
}

/// A trial for each release and section of a file.
fn trials(file: &str, records: Vec<Record>) -> Vec<Trial> {
    let fields = fields(&records);
    let mut sections: Vec<((Release, String), Vec<Record>)> = Vec::new();
    let is_ours = |record: &Record| home::responsible_test(file, record) == Ok(Home::Numastat);
    for record in records.into_iter().filter(is_ours) {
        let Some(release) = record.release() else { continue };
        // Widths and other users are sections of the same machine.
        let machine = if record.section.starts_with("numastat") {
            "numastat".to_owned()
        } else {
            record.section.clone()
        };
        match sections.iter_mut().find(|(key, _)| *key == (release, machine.clone())) {
            Some((_, known)) => known.push(record),
            None => sections.push(((release, machine), vec![record])),
        }
    }
    let trial = |((release, name), records): ((Release, String), Vec<Record>)| {
        let fields = fields.clone();
        let name = format!("{file}::{}::{name}", release.number());
        Trial::test(name, move || section(records, &fields).map_err(Into::into))
    };
    sections.into_iter().map(trial).collect()
}

fn main() {
    let arguments = Arguments::from_args();
    let folder = record::folder();
    let trials =
        home::NUMASTAT.into_iter().flat_map(|file| trials(file, record::read(&folder, file))).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    println!(
        "numastat: {} of {} records hold as they are, {} with NODEWISE_STRICT_COMPAT=1",
        HELD.load(Ordering::Relaxed),
        ALL.load(Ordering::Relaxed),
        HELD_IN_STRICT.load(Ordering::Relaxed)
    );
    conclusion.exit();
}
