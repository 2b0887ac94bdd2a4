//! A study played from recorded times: its text at several widths, and its JSON twin.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nodewise_experiment::candidates::{Candidates, LeftOut};
use nodewise_experiment::cooling::CoolDown;
use nodewise_experiment::evidence::{Counter, CpuTime, Evidence, Moves, Repeats};
use nodewise_experiment::executor::{Arm, Ending, Executor, Residency, Run, Unprepared, Usage};
use nodewise_experiment::experiment::{Clock, Event, Experiment};
use nodewise_experiment::fidelity::Fidelity;
use nodewise_experiment::metric::Metric;
use nodewise_experiment::schedule::ArmId;
use nodewise_experiment::study::{End, Plan, Record, Rounds, Study, Treatment};
use nodewise_experiment::verdict::Analysis;
use nodewise_machine::conditions::Conditions;
use nodewise_machine::placement::{Placement, Scope};
use nodewise_machine::{Bytes, CpuSet, MemPolicy, NodeCounters, NodeId, spec};
use nodewise_view::digest::change::change_words;
use nodewise_view::digest::example::predicted;
use nodewise_view::digest::why::Why;
use nodewise_view::text::Extent;
use nodewise_view::{Style, json, text};

use crate::golden::check;

/// Plays a program that takes 1 s, 10 % less where its pages are local, and cannot run interleaved.
struct Player {
    run: u32,
}

impl Executor for Player {
    fn run(&mut self, arm: &Arm) -> Run {
        self.run += 1;
        // A small wobble that is the same for every arm in a block's neighbourhood, and differs
        // from run to run.
        let wobble = 1.0 + f64::from(self.run * 7 % 11) / 2000.0;
        let local = arm.name.starts_with("local to node 0");
        let seconds = if local { 0.9 } else { 1.0 } * wobble;
        let on_zero = if local { 1000 } else { 620 };
        let residency = Residency {
            by_node: [
                (NodeId::new(0), Bytes::from_mib(on_zero)),
                (NodeId::new(1), Bytes::from_mib(1000 - on_zero)),
            ]
            .into_iter()
            .filter(|(_, size)| size.get() > 0)
            .collect(),
        };
        if arm.name == "interleave all" {
            return Run {
                complaint: Some("cannot\u{1b}[2J map\n".to_owned()),
                ..Run::ended(Ending::Code(1))
            };
        }
        Run {
            wall: Some(Duration::from_secs_f64(seconds)),
            residency: Some(residency),
            fidelity: fidelity(arm),
            usage: Some(usage(seconds)),
            evidence: self.evidence(local, seconds),
            ..Run::ended(Ending::Done)
        }
    }
}

impl Player {
    /// Returns the counts of a run on four CPUs. Others spoil every seventh.
    fn evidence(&self, local: bool, seconds: f64) -> Evidence {
        let others = if self.run % 7 == 0 { 1.2 } else { 0.004 };
        let (here, there) = if local { (250_000, 12) } else { (155_000, 95_000) };
        let node = |local, other, miss| NodeCounters {
            hit: Some(local + other),
            miss: Some(miss),
            foreign: Some(0),
            interleave_hit: Some(0),
            local: Some(local),
            other: Some(other),
        };
        Evidence {
            cpu: Some(CpuTime {
                all: Duration::from_secs_f64(4.0 * seconds),
                busy: Duration::from_secs_f64(seconds + others),
                stolen: Some(Duration::ZERO),
            }),
            own: Some(Duration::from_secs_f64(seconds)),
            allocations: [(NodeId::new(0), node(here, 0, 0)), (NodeId::new(1), node(0, there, 31))].into(),
            moves: Moves { migrated: Some(if local { 0 } else { 1_500 }), ..Moves::default() },
            events: [(Counter::TlbLoadMisses, 12_345_678)].into(),
        }
    }
}

/// Every placement is seen to hold but that on node 1, which a launcher undoes.
fn fidelity(arm: &Arm) -> Option<Fidelity> {
    let undone = arm.name == "local to node 1";
    let share = |is_asked: bool| is_asked.then_some(if undone { 0.25 } else { 0.999 });
    let placement = &arm.placement;
    let fidelity = Fidelity {
        cpus: share(placement.cpus.is_some()),
        policy: share(placement.policy.is_some()),
        nodes: share(placement.policy.as_ref().is_some_and(|policy| !policy.nodes.is_empty())),
        other_cpus: undone.then(|| CpuSet::from([0, 1])),
        other_policy: undone.then_some(MemPolicy::DEFAULT),
    };
    fidelity.least().map(|_| fidelity)
}

fn usage(seconds: f64) -> Usage {
    Usage {
        user: Duration::from_secs_f64(seconds),
        system: Duration::ZERO,
        max_rss: Bytes::from_mib(1000),
        minor_faults: 256_123,
        major_faults: 0,
        voluntary_switches: 4,
        involuntary_switches: 7,
    }
}

/// A clock by which every look takes a second.
#[derive(Default)]
struct Ticking(Cell<u64>);

impl Clock for Ticking {
    fn now(&self) -> Duration {
        self.0.set(self.0.get() + 1);
        Duration::from_secs(self.0.get())
    }
}

/// The study of that program on a machine with two nodes, with its scope and candidates.
pub fn play() -> (Study, Scope, Candidates) {
    let mut machine = spec::machine("2x(2c 8G); dist=21; kernel=6.12").expect("the spec is one");
    machine.settings.transparent_hugepage = Some("always".to_owned());
    let candidates = Candidates::from_machine(&machine);
    let treatments = candidates.chosen.iter().cloned().map(Treatment::from);
    let plan =
        Plan::new(treatments, Metric::Wall, Rounds::Exactly(10), 42).expect("there are arms and rounds");
    let also = vec![Metric::CpuTime, Metric::Counted(Counter::NodeLoads)];
    let plan = plan.with_repeats(Some(Repeats::DEFAULT)).with_also(also);
    let conditions = Conditions {
        command: vec!["./solver".to_owned(), "input one.dat".to_owned()],
        load: Some(3.2),
        allowed_cpus: Some(CpuSet::from([0, 1, 2, 3])),
        ..Conditions::from_machine(&machine)
    };
    let interrupt = AtomicBool::new(false);
    let mut observer = |_: Event<'_>| {};
    let mut study = Experiment {
        executor: &mut Player { run: 0 },
        clock: &Ticking::default(),
        observer: &mut observer,
        interrupt: &interrupt,
    }
    .conduct(plan, conditions);
    for counter in [Counter::NodeLoads, Counter::NodeLoadMisses] {
        study.not_counted.insert(counter, "this CPU does not count it".to_owned());
    }
    (study, Scope::from_machine(&machine), candidates)
}

#[test]
fn a_study_with_a_winner_and_a_failure() {
    let (study, scope, candidates) = play();
    let analysis = Analysis::from_study(&study);
    for width in [60, 80, 120] {
        let text =
            text::tune(&study, &analysis, &scope, &candidates.left_out, Extent::Brief, &Style::plain(width));
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        assert!(!text.contains('\u{1b}'));
        check(&format!("tune-{width}"), text);
    }
}

#[test]
fn the_conclusion_is_repeated_where_the_results_fill_a_screen() {
    let (study, scope, candidates) = play();
    let check = |study: &Study, left_out: &[LeftOut], repeated: bool| {
        let analysis = Analysis::from_study(study);
        let text = text::tune(study, &analysis, &scope, left_out, Extent::Brief, &Style::plain(120));
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("use: nodewise run "), "{text}");
        assert_eq!(text.lines().last() == Some(first), repeated, "{text}");
    };
    check(&study, &candidates.left_out, true);
    let mut short = study;
    for Record { run, .. } in &mut short.records {
        (run.evidence, run.residency) = (Evidence::default(), None);
    }
    short.not_counted.clear();
    short.plan.also.clear();
    check(&short, &[], false);
}

#[test]
fn a_preparation_that_failed_is_named_under_the_results_until_then() {
    let (mut study, scope, candidates) = play();
    study.prepare = Some(["sh", "-c", "sync; drop"].map(str::to_owned).to_vec());
    study.end = End::PreparationFailed(Unprepared {
        ending: Ending::Code(127),
        complaint: Some("sh: 1: drop: \u{1b}[2Jnot found\n\n".to_owned()),
    });
    study.cool_down = Some(CoolDown {
        most: Duration::from_secs(30),
        began_millicelsius: Some(41_500),
        waited: Duration::from_secs(125),
        still_hot: 2,
    });
    let analysis = Analysis::from_study(&study);
    let text = text::tune(&study, &analysis, &scope, &candidates.left_out, Extent::Brief, &Style::plain(60));
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(" before every run: sh -c \"sync; drop\" "), "{text}");
    let expected = "the preparation failed, and these are the results until then: sh -c \"sync; drop\" ended \
                    with exit code 127: sh: 1: drop: \\x1b[2Jnot found ";
    assert!(flat.contains(expected), "{text}");
    let json = json::tune(&study, &analysis, &scope, &candidates.left_out, None, &[]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let waited = "waited 2m 05s in all for the CPUs to cool down; before 2 runs they were still hotter than in the \
                  beginning ";
    assert!(flat.contains(waited), "{text}");
    assert_eq!(json["cool_down"]["began_celsius"], 41.5);
    assert_eq!(json["end"], "preparation_failed");
    assert_eq!(json["prepare"]["command"][2], "sync; drop");
    assert_eq!(json["prepare"]["failed"], "ended with exit code 127: sh: 1: drop: \u{1b}[2Jnot found");
}

#[test]
fn the_json_twin_says_the_same() {
    let (study, scope, candidates) = play();
    let analysis = Analysis::from_study(&study);
    let json: serde_json::Value =
        serde_json::from_str(&json::tune(&study, &analysis, &scope, &candidates.left_out, None, &[]))
            .unwrap();
    assert_eq!(json["schema"], "nodewise.tune/2");
    assert_eq!(json["seed"], 42);
    let arms = json["arms"].as_array().unwrap();
    assert_eq!(arms.len(), study.plan.arms().len());
    let text = text::tune(&study, &analysis, &scope, &candidates.left_out, Extent::All, &Style::plain(160));
    for arm in arms {
        let name = arm["name"].as_str().unwrap();
        let row = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        let verdict = match arm["verdict"].as_str().unwrap() {
            "baseline" => "baseline",
            "better" => "faster",
            "worse" => "slower",
            "no_difference_shown" => "no difference",
            "too_few_rounds" => "too few rounds",
            "not_as_asked" => "not as asked",
            "failed" => "failed",
            other => panic!("{other}"),
        };
        assert!(row.contains(verdict), "{row} should say {verdict}");
        if let Some(ratio) = arm["effect"]["ratio"].as_f64() {
            assert!(row.contains(&change_words(ratio, 1)), "{row}");
        }
    }
    let samples = json["samples"].as_array().unwrap();
    assert_eq!(samples.len(), study.records.len());
    assert!(
        text.contains("other programs wanted 3.2 CPUs when it began, of the 4 that may be used"),
        "{text}"
    );
    told_alike(&json, &text);
    let aside = samples.iter().filter(|sample| sample["set_aside"] == true).count();
    let repeated: u64 = arms.iter().map(|arm| arm["repeated"].as_u64().unwrap()).sum();
    assert!(repeated > 0 && aside as u64 >= repeated, "{aside} with the warm-up, {repeated}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("{repeated} runs were spoilt by other programs")), "{text}");
    assert_eq!(arms[0]["counted"]["dtlb_load_misses"], 12_345_678.0);
    assert!(text.contains("12.3M"), "{text}");
    assert_eq!(json["not_counted"][0]["event"], "node-loads");
    assert_eq!(json["not_counted"][0]["why"], "this CPU does not count it");
    assert_eq!(json["advice"]["kind"], "use");
    let line = json["advice"]["command_lines"][0].as_str().unwrap();
    assert!(text.contains(&format!("use: {line}")), "{text}");
    let why = &json["advice"]["why"];
    assert_eq!((&why["counted"], &why["node"]), (&"memory_share".into(), &0.into()));
    assert_eq!((&why["default"], &why["best"]), (&0.62.into(), &1.0.into()));
    assert!(words.contains(&format!("Why: {}", why["sentence"].as_str().unwrap())), "{text}");
    assert!(json["example"].is_null());
}

/// The observed effect of one run of a placement.
type Seen = fn(bool) -> Run;

/// Why the second placement, which is better, is called so.
fn why(seen: Seen) -> String {
    struct Two(Seen);
    impl Executor for Two {
        fn run(&mut self, arm: &Arm) -> Run {
            let is_best = arm.name == "best";
            let wall = Some(Duration::from_millis(if is_best { 500 } else { 1000 }));
            Run { wall, ending: Ending::Done, ..(self.0)(is_best) }
        }
    }
    let arms = ["default", "best"].map(|name| Treatment::new(name, Placement::DEFAULT));
    let study = Experiment {
        executor: &mut Two(seen),
        clock: &Ticking::default(),
        observer: &mut |_: Event<'_>| {},
        interrupt: &AtomicBool::new(false),
    }
    .conduct(Plan::new(arms, Metric::Wall, Rounds::Exactly(10), 1).expect("two arms"), Conditions::default());
    Why::from_study(&study, &Analysis::from_study(&study)).expect("it is better").sentence()
}

#[test]
fn the_evidence_that_differs_most_directly_carries_the_advice() {
    fn events(count: u64) -> Run {
        let events = [(Counter::TlbLoadMisses, count)].into();
        Run { evidence: Evidence { events, ..Evidence::default() }, ..Run::ended(Ending::Done) }
    }
    fn faults(count: u64, misses: u64) -> Run {
        Run { usage: Some(Usage { minor_faults: count, ..usage(1.0) }), ..events(misses) }
    }
    fn on_zero(mib: u64, misses: u64) -> Run {
        let by_node = [(NodeId::new(0), Bytes::from_mib(mib)), (NodeId::new(1), Bytes::from_mib(100 - mib))];
        Run { residency: Some(Residency { by_node: by_node.into() }), ..events(misses) }
    }
    let unknown = |seen: Seen| assert!(why(seen).starts_with("not known: "), "{}", why(seen));
    unknown(|_| Run::ended(Ending::Done));
    unknown(|best| events(if best { 90_000 } else { 100_000 }));
    unknown(|best| events(if best { 1 } else { 900 }));
    // More misses explain no gain.
    unknown(|best| events(if best { 900_000 } else { 100_000 }));
    let check = |seen: Seen, expected: &str| assert_eq!(why(seen), expected);
    check(
        |best| events(if best { 100_000 } else { 9_000_000 }),
        "9.0M loads missed the TLB by default, 100k with best",
    );
    check(
        |best| if best { faults(600, 5_000) } else { faults(9_000, 5_500) },
        "9000 page faults by default, 600 with best",
    );
    check(
        |best| if best { faults(600, 5_000) } else { faults(9_000, 50_000) },
        "50.0k loads missed the TLB by default, 5000 with best",
    );
    check(
        |best| if best { on_zero(50, 1) } else { on_zero(96, 50_000) },
        "96 % of its memory was on node 0 by default, 50 % with best",
    );
}

#[test]
fn the_first_look_gives_its_example_in_both_forms() {
    let (study, scope, candidates) = play();
    let (analysis, rows) = (Analysis::from_study(&study), predicted().unwrap());
    let json = json::tune(&study, &analysis, &scope, &candidates.left_out, None, &rows);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let text = text::first(&study, &analysis, &candidates.left_out, Extent::Brief, &Style::plain(100));
    let shown: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Example")).collect();
    let predicted = json["example"]["predicted"].as_array().unwrap();
    assert_eq!(predicted.len(), 3);
    for one in predicted {
        let row = shown.iter().find(|line| line.trim_start().starts_with(one["placement"].as_str().unwrap()));
        let rate = format!("{:.0} GB/s", one["bytes_per_s"].as_f64().unwrap() / 1e9);
        let latency = format!("{:.0} ns", one["latency_ns"].as_f64().unwrap());
        assert!(row.is_some_and(|row| row.contains(&rate) && row.contains(&latency)), "{one} {text}");
    }
    assert_eq!((&json["example"]["nodes"], &json["example"]["link_bytes_per_s"]), (&2.into(), &40e9.into()));
}

#[test]
fn a_first_look_fits_sixty_columns_and_is_worth_reading_where_its_time_held_no_round() {
    let (study, _, candidates) = play();
    let text = text::first(
        &study,
        &Analysis::from_study(&study),
        &candidates.left_out,
        Extent::Brief,
        &Style::plain(60),
    );
    assert!(text.contains("baseline\n"), "the last column is whole: {text}");
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    let text = text::tune::too_short(
        2,
        "25.0 s without --time is too short: it showed: default 9.0 s",
        &Style::plain(60),
    );
    let expected = "2 nodes: where memory lies can make a difference on this\n  machine\n25.0 s without --time is too short: ";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("  interleave all    160 GB/s  +100 %"), "{text}");
    assert!(text.contains("\n  nodewise tune --time 5m\n"), "{text}");
}

/// How far arms ran as asked, and the metrics that decide nothing.
fn told_alike(json: &serde_json::Value, text: &str) {
    let arms = json["arms"].as_array().expect("a study has arms");
    let strayed = arms.iter().find(|arm| arm["name"] == "local to node 1").expect("it was tried");
    assert_eq!((&strayed["verdict"], &strayed["effect"]), (&"not_as_asked".into(), &serde_json::Value::Null));
    assert_eq!(
        (&strayed["fidelity"]["cpus_share"], &strayed["fidelity"]["held"]),
        (&0.25.into(), &false.into())
    );
    assert_eq!(strayed["fidelity"]["other_policy"], "default");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let reason = strayed["reason"].as_str().expect("there is a reason");
    assert!(words.contains(&format!("local to node 1 did not run as asked: {reason}")), "{text}");
    assert!(arms[0]["fidelity"].is_null(), "nothing is asked of the default");
    assert_eq!((&json["also"][0]["kind"], &json["also"][1]["kind"]), (&"cpu".into(), &"node-loads".into()));
    let cpu = arms[1]["also"][0]["ratio"].as_f64().expect("both have values");
    assert!(words.contains(&change_words(cpu, 1)), "{text}");
    assert!(arms[1]["also"][1].is_null());
    assert!(words.contains("Shown too node-loads not known: this CPU does not count it"), "{text}");
    for counted in ["numa_hit", "numa_foreign"] {
        assert!(arms[0]["counted"][counted].is_number(), "{counted}");
    }
}

/// A study of numbers of threads alone, given by variables or in the command.
fn of_threads(command: &[&str], environment: &[(&str, &str)]) -> Vec<String> {
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let threads = Treatment {
        environment: environment.collect(),
        threads: Some(2),
        ..Treatment::new("default, 2 threads", Placement::DEFAULT)
    };
    let plan =
        Plan::new([threads.clone(), threads], Metric::Wall, Rounds::Exactly(1), 1).expect("there are arms");
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let study = Experiment {
        executor: &mut Player { run: 0 },
        clock: &Ticking::default(),
        observer: &mut |_: Event<'_>| {},
        interrupt: &AtomicBool::new(false),
    }
    .conduct(plan, Conditions { command, ..Conditions::default() });
    nodewise_view::digest::study::command_lines(&study, ArmId::new(1), &Scope::default())
}

#[test]
fn where_only_the_threads_differ_the_line_is_the_program_with_their_number() {
    let told = of_threads(&["./solver"], &[("OMP_NUM_THREADS", "2"), ("GOMAXPROCS", "2")]);
    assert_eq!(told, ["OMP_NUM_THREADS=2 GOMAXPROCS=2 ./solver"]);
    assert_eq!(of_threads(&["zstd", "-T{threads}", "a b"], &[]), ["zstd -T2 'a b'"]);
}
