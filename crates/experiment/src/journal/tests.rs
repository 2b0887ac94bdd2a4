//! Journals that are whole, cut at every byte, changed, of other studies, and made up.

use super::*;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::executor::{Ending, Residency, Run};
use crate::experiment::Experiment;
use crate::fidelity::{Fidelity, Look};
use crate::metric::Metric;
use crate::mock::{Mock, MockClock, plan};
use crate::race::Rules;
use crate::study::{End, Rounds, Study, Treatment};
use crate::verdict::Analysis;
use nodewise_machine::placement::Placement;
use nodewise_machine::{Bytes, CpuSet, MemPolicy, NodeId, NodeSet, PolicyMode};
use proptest::prelude::{ProptestConfig, any, prop, prop_assert, prop_assert_eq, proptest};

/// The plan of these studies: three arms in at most this many rounds.
fn race(rounds: u32) -> Plan {
    plan(2, Rounds::Exactly(rounds), 7).with_race(Rules::DEFAULT)
}

/// Plays the nth run of an arm: its time is fixed by what runs and when, so that it does not matter in
/// which sitting; one arm is slower, and one run in nine fails.
fn play(arm: u32, nth: usize) -> Run {
    let wobble = ((nth * 7919 + 13) % 101) as f64 / 5000.0;
    let seconds = if arm == 1 { 1.1 } else { 1.0 } + wobble;
    let ending = if nth % 9 == 8 && arm != 0 { Ending::Code(3) } else { Ending::Done };
    Run { wall: Some(Duration::from_secs_f64(seconds)), ..Run::ended(ending) }
}

fn head(plan: &Plan) -> Head {
    let conditions = Conditions { command: vec!["./it".to_owned()], ..Conditions::default() };
    Head::from_plan(plan, &conditions, &[])
}

fn open(path: &Path) -> Result<Journal, JournalError> {
    let file = OpenOptions::new().read(true).append(true).create(true).open(path);
    Journal::over(file.map_err(|why| JournalError::File { what: "open", why })?)
}

/// One sitting over a journal; ends after `at_most` new runs.
fn sit(path: &Path, plan: Plan, at_most: usize) -> Result<Study, JournalError> {
    let mut journal = open(path)?;
    journal.begin(&head(&plan), 1_700_000_000, Some("1.2.3"))?;
    let known = journal.past();
    let clock = MockClock::default();
    let interrupt = AtomicBool::new(at_most == 0);
    let new = std::cell::Cell::new(0);
    let mut executor = Mock::new(clock.clone(), |arm, at| {
        new.set(new.get() + 1);
        interrupt.store(new.get() >= at_most, std::sync::atomic::Ordering::Relaxed);
        play(arm.id.number(), known + at)
    });
    let study = Experiment {
        executor: &mut executor,
        clock: &clock,
        observer: &mut |_: crate::experiment::Event<'_>| {},
        interrupt: &interrupt,
    }
    .conduct_with(plan, Conditions::default(), &mut journal);
    match journal.failure() {
        Some(failure) => Err(failure),
        None => Ok(study),
    }
}

fn path(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("journal")
}

/// Collects what must be the same however often a study was broken off.
fn outcome(study: &Study) -> (String, Vec<Record>, Duration, End) {
    let analysis = Analysis::from_study(study);
    (format!("{:?} {:?}", analysis.advice, study.race), study.records.clone(), study.took, study.end.clone())
}

#[test]
fn a_study_in_many_sittings_is_the_study_in_one() {
    let whole = tempfile::tempdir().unwrap();
    let expected = outcome(&sit(&path(&whole), race(12), usize::MAX).unwrap());
    for at_most in [1, 2, 5, 17] {
        let folder = tempfile::tempdir().unwrap();
        let mut sittings = 0;
        let study = loop {
            let study = sit(&path(&folder), race(12), at_most).unwrap();
            sittings += 1;
            if study.end != End::Interrupted {
                break study;
            }
        };
        assert!(sittings > 1);
        assert_eq!(outcome(&study), expected, "{at_most} runs a sitting");
    }
}

#[test]
fn a_crash_at_any_byte_loses_at_most_the_run_that_was_being_written() {
    let whole = tempfile::tempdir().unwrap();
    let expected = sit(&path(&whole), race(3), usize::MAX).unwrap();
    let bytes = std::fs::read(path(&whole)).unwrap();
    for cut in (0..bytes.len()).step_by(61).chain([bytes.len() - 1]) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(path(&folder), &bytes[..cut]).unwrap();
        let lines = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
        let runs = lines.saturating_sub(2);
        let before = open(&path(&folder)).unwrap();
        assert_eq!(before.past(), runs, "cut at {cut}");
        drop(before);
        let study = sit(&path(&folder), race(3), usize::MAX).unwrap();
        assert_eq!(outcome(&study), outcome(&expected), "cut at {cut}");
        let after = open(&path(&folder)).unwrap();
        assert_eq!(after.past(), study.records.len());
    }
}

#[test]
fn a_longer_study_goes_on_and_a_shorter_one_forgets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let noisy = |rounds| plan(2, Rounds::Exactly(rounds), 7);
    let three = sit(&path(&folder), noisy(3), usize::MAX).unwrap();
    let five = sit(&path(&folder), noisy(5), usize::MAX).unwrap();
    assert_eq!((three.blocks_begun(), five.blocks_begun()), (3, 5));
    assert_eq!(five.records[..three.records.len()], three.records);
    let one = sit(&path(&folder), noisy(1), 0).unwrap();
    assert_eq!(one.records, five.records);
    assert_eq!(one.end, End::Completed);
}

#[test]
fn a_longer_time_goes_on_from_the_time_that_was_spent() {
    let folder = tempfile::tempdir().unwrap();
    let within = |seconds| plan(2, Rounds::Within { budget: Duration::from_secs(seconds), at_most: 100 }, 7);
    let short = sit(&path(&folder), within(15), usize::MAX).unwrap();
    let long = sit(&path(&folder), within(30), usize::MAX).unwrap();
    assert!(long.records.len() > short.records.len());
    assert_eq!(long.records[..short.records.len()], short.records);
    assert!(long.records.windows(2).all(|pair| pair[0].ended() <= pair[1].began), "time never goes back");
    assert!(long.took >= Duration::from_secs(25) && long.took < Duration::from_secs(36), "{:?}", long.took);
}

fn refused(path: &Path, plan: Plan) -> String {
    sit(path, plan, 1).unwrap_err().to_string()
}

#[test]
fn a_journal_of_another_study_is_refused_with_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    sit(&path(&folder), race(3), 4).unwrap();
    let check = |plan: Plan, difference: &str| {
        assert_eq!(refused(&path(&folder), plan), format!("the journal is of another study: {difference}"));
    };
    check(plan(2, Rounds::Exactly(3), 8).with_race(Rules::DEFAULT), "the seed is 7 there and 8 here");
    check(
        plan(3, Rounds::Exactly(3), 7).with_race(Rules::DEFAULT),
        "arm 3 is missing there and \"arm 3\" here",
    );
    check(
        plan(2, Rounds::Exactly(3), 7),
        "the race is \"margin 0.02, error 0.05, bets on signs\" there and \"none\" here",
    );
    let metric = Metric::Printed(crate::metric::Pattern::new("x=(.*)").unwrap(), Direction::LowerIsBetter);
    let mut printed = race(3);
    printed.metric = metric;
    check(printed, "the metric is \"wall\" there and \"less of x=(.*)\" here");
    let other = Head { seed: 7, facts: [("the kernel".to_owned(), "6.1\u{1b}".to_owned())].into() };
    let mine = Head { seed: 7, facts: [("the kernel".to_owned(), "6.12".to_owned())].into() };
    let Difference { what, there, here } = other.difference(&mine).unwrap();
    assert_eq!((what.as_str(), there.as_str(), here.as_str()), ("the kernel", "\"6.1\\x1b\"", "\"6.12\""));
}

/// Writes these objects as the lines of a journal.
fn made_up(objects: &[&str]) -> Vec<u8> {
    objects.iter().flat_map(|object| format!("{}\n", line::seal(object)).into_bytes()).collect()
}

const HEAD: &str = r#"{"study":{"schema":"nodewise.journal/2","seed":7,"facts":{}}}"#;
const SITTING: &str = r#"{"sitting":{"began_unix_s":5}}"#;

#[test]
fn a_line_that_is_not_as_it_was_written_is_refused_with_its_number() {
    let check = |bytes: &[u8], expected: &str| {
        let error = read(bytes).unwrap_err().to_string();
        assert_eq!(error, expected);
    };
    check(b"hello", "line 1 of the journal: expected the first line of a journal (nodewise.journal/2)");
    check(b"\xff", "line 1 of the journal: expected the first line of a journal (nodewise.journal/2)");
    check(b"hello\n", "line 1 of the journal: expected {\"check\":\" with a checksum of 16 digits behind it");
    check(
        &made_up(&[SITTING, HEAD]),
        "line 1 of the journal: expected the first line of a journal (nodewise.journal/2)",
    );
    check(
        &made_up(&[HEAD, HEAD, SITTING]),
        "line 2 of the journal: expected a run: the head is there already",
    );
    let newer = r#"{"study":{"schema":"nodewise.journal/9","seed":7,"facts":{}}}"#;
    check(
        &made_up(&[newer, SITTING]),
        "line 1 of the journal: expected the schema nodewise.journal/2 or nodewise.journal/1, found \"nodewise.journal/9\"",
    );
    let mut changed = made_up(&[HEAD, SITTING, SITTING]);
    let at = changed.iter().position(|byte| *byte == b'\n').unwrap() + 50;
    changed[at] ^= 1;
    check(
        &changed,
        "line 2 of the journal: expected the checksum of the rest of the line: the line was changed or cut",
    );
}

#[test]
fn every_sitting_of_a_journal_names_the_version_that_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    for version in [Some("1.2.3"), Some("1.3.0-rc.1"), None] {
        let mut journal = open(&path).unwrap();
        journal.begin(&head(&race(3)), 1_700_000_000, version).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let sittings: Vec<serde_json::Value> =
        text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let versions: Vec<&serde_json::Value> =
        sittings.iter().map(|line| &line["sitting"]["nodewise"]).collect();
    assert_eq!(versions, [&"1.2.3".into(), &"1.3.0-rc.1".into(), &serde_json::Value::Null]);
    assert!(!text.lines().last().unwrap().contains("nodewise\":"), "no version is not noted as one: {text}");
}

// A line as version 1 wrote it, before runs recorded how far they went as asked.
#[test]
fn a_journal_of_the_schema_before_is_read() {
    let head = HEAD.replace("journal/2", "journal/1");
    let run = r#"{"run":{"round":1,"place":0,"arm":1,"replicate":0,"began_ns":5,"set_aside":false,"ending":"done","wall_ns":7,"printed":2.5,"usage":null,"pages":{"0":4096},"steal_share":null,"load":null,"cpu":null,"own_ns":null,"allocations":{},"moves":{"migrated":null,"failed":null,"balanced":null,"hints":null},"events":{},"complaint":null}}"#;
    let contents = read(&made_up(&[&head, SITTING, run])).unwrap();
    let run = &contents.records[0].run;
    assert_eq!((run.printed, run.also_printed.len(), &run.fidelity), (Some(2.5), 0, &None));
}

/// Reads back two runs with this fidelity; of the last line alone an error would be forgiven.
fn read_back(fidelity: Fidelity) -> Result<Option<Fidelity>, String> {
    let run = Run { fidelity: Some(fidelity), ..Run::ended(Ending::Done) };
    let slot = Slot { arm: crate::schedule::ArmId::new(1), replicate: 0 };
    let record =
        Record { block: Block::WarmUp, place: 0, slot, began: Duration::ZERO, run, set_aside: false };
    let text = write(&head(&race(1)), [&record, &record]).unwrap();
    let mut records = read(text.as_bytes()).map_err(|error| error.to_string())?.records;
    Ok(records.pop_front().unwrap().run.fidelity)
}

#[test]
fn a_run_whose_pages_were_all_where_they_belong_is_read_back() {
    let policy = MemPolicy::new(PolicyMode::Bind, NodeSet::from([0, 1, 2]));
    let pages = (0..).map(NodeId::new).zip([29, 25, 2].map(Bytes::new));
    let seen = Residency { by_node: pages.collect() };
    let look = Look { memory: vec![(policy.clone(), seen)], ..Look::default() };
    let asked = Placement { policy: Some(policy), ..Placement::DEFAULT };
    let fidelity = Fidelity::from_look(&look, &asked).unwrap();
    assert_eq!(read_back(fidelity.clone()), Ok(Some(fidelity)));
}

#[test]
fn a_race_that_began_before_there_were_crosses_goes_on_without_them() {
    let memory = Placement::memory(PolicyMode::Preferred, NodeSet::from([1]));
    let placements = [Placement::DEFAULT, memory, Placement::on_cpus(CpuSet::from([3]))];
    let plan = || {
        let names = ["default", "memory", "CPUs"];
        let arms = names.iter().zip(&placements).map(|(name, one)| Treatment::new(*name, one.clone()));
        Plan::new(arms, Metric::Wall, Rounds::Exactly(12), 7).unwrap().with_race(Rules::DEFAULT)
    };
    let goes_on = |path: &Path| {
        let may_cross = open(path).unwrap().may_cross();
        sit(path, if may_cross { plan().with_crossing() } else { plan() }, 4)
    };
    let begun = |plan, schema| {
        let folder = tempfile::tempdir().unwrap();
        sit(&path(&folder), plan, 4).unwrap();
        let text = std::fs::read_to_string(path(&folder)).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let first = line::unseal(first).unwrap().replace(SCHEMA, schema);
        std::fs::write(path(&folder), format!("{}\n{rest}", line::seal(&first))).unwrap();
        folder
    };
    let older = begun(plan(), "nodewise.journal/1");
    let study = goes_on(&path(&older)).unwrap();
    assert_eq!((study.records.len(), study.plan.crossing), (8, false));
    let words = refused(&path(&older), plan().with_crossing());
    assert!(words.contains("the race is") && words.contains(", then crosses"), "{words}");
    let newer = begun(plan().with_crossing(), SCHEMA);
    let study = goes_on(&path(&newer)).unwrap();
    assert_eq!((study.records.len(), study.plan.crossing), (8, true));
    let empty = tempfile::tempdir().unwrap();
    assert!(open(&path(&empty)).unwrap().may_cross());
}

#[test]
fn shares_beyond_everything_are_refused_unless_by_the_last_digit() {
    let of = |share| Fidelity { nodes: Some(share), ..Default::default() };
    for share in [1.5, 1.000001, -0.1] {
        let error = read_back(of(share)).unwrap_err();
        assert_eq!(error, "line 2 of the journal: fidelity: expected shares from 0 to 1");
    }
    assert_eq!(read_back(of(1.0000000000000002)), Ok(Some(of(1.0))));
}

#[test]
fn a_last_line_that_the_disk_never_got_is_left_out() {
    let mut bytes = made_up(&[HEAD, SITTING]);
    let whole = bytes.len() as u64;
    bytes.extend_from_slice(b"\0\0\0\0\0\n");
    assert_eq!(read(&bytes).unwrap().whole, whole);
}

#[test]
fn runs_in_another_order_than_the_seed_gives_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    sit(&path(&folder), race(3), 6).unwrap();
    let text = std::fs::read_to_string(path(&folder)).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.swap(2, 4);
    std::fs::write(path(&folder), lines.join("\n") + "\n").unwrap();
    assert_eq!(
        refused(&path(&folder), race(3)),
        "run 1 of the journal is of arm 1 in warm-up, time 1: expected arm 0 in warm-up, time 1, as the seed says"
    );
}

#[test]
fn a_journal_in_use_and_one_that_cannot_be_written_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(&path(&folder)).unwrap();
    let error = open(&path(&folder)).unwrap_err().to_string();
    assert_eq!(error, "the journal is in use by another nodewise");
    drop(first);
    let error = open(folder.path()).unwrap_err().to_string();
    assert_eq!(error, "cannot open the journal: is a directory");
    let error = open(Path::new("/dev/full")).unwrap_err().to_string();
    assert_eq!(error, "the journal is not an ordinary file");
}

#[test]
fn a_full_disk_ends_a_study_with_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(&path(&folder)).unwrap();
    journal.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let clock = MockClock::default();
    let mut executor = Mock::new(clock.clone(), |arm, at| play(arm.id.number(), at));
    let mut ignore = |_: crate::experiment::Event<'_>| {};
    let interrupt = AtomicBool::new(false);
    let study =
        Experiment { executor: &mut executor, clock: &clock, observer: &mut ignore, interrupt: &interrupt }
            .conduct_with(race(3), Conditions::default(), &mut journal);
    assert_eq!((study.end, study.records.len()), (End::Interrupted, 1));
    let failure = journal.failure().unwrap().to_string();
    assert_eq!(failure, "cannot write the journal: no space left on device");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
        let _ = read(&[made_up(&[HEAD]), bytes].concat());
    }

    #[test]
    fn any_run_is_read_back_as_it_was(
        round in any::<u32>(), arm in any::<u32>(), replicate in any::<u8>(), ns in any::<u64>(),
        printed in prop::option::of(1e-300f64..1e300), text in prop::option::of(any::<String>()),
        counts in prop::collection::vec(prop::option::of(any::<u64>()), 8), which in 0usize..10,
        share in prop::option::of(0.0f64..=1.0),
    ) {
        let why = text.clone().unwrap_or_default();
        let ending = [
            Ending::Done, Ending::Code(-1), Ending::Signal(9), Ending::NotStarted(why.clone()),
            Ending::TimedOut(Duration::from_nanos(ns)), Ending::Stopped(Duration::from_nanos(ns)),
            Ending::NoMetric(crate::metric::MetricError::NoMatch { pattern: why.clone() }),
            Ending::NoMetric(crate::metric::MetricError::NotANumber { text: why }),
            Ending::NoMetric(crate::metric::MetricError::NotPositive { number: -0.5 }),
            Ending::Service("the server".to_owned()),
        ][which].clone();
        let allocations = nodewise_machine::NodeCounters {
            hit: counts[0], miss: counts[1], foreign: counts[2], interleave_hit: counts[3], local: counts[4],
            other: counts[5],
        };
        let evidence = crate::evidence::Evidence {
            own: counts[6].map(Duration::from_nanos),
            cpu: counts[7].map(|all| crate::evidence::CpuTime {
                all: Duration::from_nanos(all), busy: Duration::ZERO, stolen: counts[0].map(Duration::from_nanos),
            }),
            allocations: [(NodeId::new(arm), allocations)].into(),
            moves: crate::evidence::Moves { migrated: counts[1], ..Default::default() },
            events: counts[2].map(|count| (crate::evidence::Counter::NodeLoads, count)).into_iter().collect(),
        };
        let run = Run {
            wall: counts[3].map(Duration::from_nanos), printed, evidence,
            also_printed: printed.map(|number| (text.clone().unwrap_or_default(), number)).into_iter().collect(),
            fidelity: share.map(|share| Fidelity {
                cpus: Some(share), other_cpus: Some(CpuSet::from([1, 7])),
                other_policy: Some(MemPolicy::DEFAULT), ..Default::default()
            }),
            complaint: text,
            ..Run::ended(ending)
        };
        let block = if round == 0 { Block::WarmUp } else { Block::Measured(round) };
        let slot = Slot { arm: crate::schedule::ArmId::new(arm), replicate };
        let record = Record { block, place: arm, slot, began: Duration::from_nanos(ns), run, set_aside: ns % 2 == 0 };
        let head = Head { seed: ns, facts: [("a".to_owned(), "b\n".to_owned())].into() };
        let bytes = write(&head, [&record]).unwrap().into_bytes();
        let contents = read(&bytes).unwrap();
        prop_assert_eq!(contents.head, Some(head));
        prop_assert_eq!(contents.records.len(), 1);
        prop_assert_eq!(&contents.records[0], &record);
        prop_assert!(contents.whole == bytes.len() as u64);
    }
}
