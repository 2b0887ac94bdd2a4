//! An advice as text and JSON, on a profile made by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_diagnose::advice::{
    Advice, HORIZON, Known, Profile, ProgramReading, Quality, Sharing, unstarted,
};
use nodewise_diagnose::balance::{Means, PageMove};
use nodewise_diagnose::finding::{Owner, Subject};
use nodewise_diagnose::knowledge::{self, Application};
use nodewise_diagnose::sample::{Identity, NodeSample, Sample};
use nodewise_diagnose::{Pid, Situation};
use nodewise_machine::{Bytes, MeminfoField, MeminfoValue, NodeId, NodeSet, spec};
use nodewise_view::digest::advice::{
    AdviceReport, AdvisedProgram, AppliedAdvice, AppliedDropIn, AppliedEnd, Recipe,
};
use nodewise_view::{Style, json, text};
use serde_json::Value as Json;
use unicode_width::UnicodeWidthStr;

use crate::golden::check as golden;

const HOSTILE: &str = "my\x1b[2Jsqld\u{202e}";

/// A database of 8 GiB that works on one of four nodes.
fn profile() -> Profile {
    let machine = spec::machine("4x(8c 64G)").expect("a spec");
    let sample = |node: &nodewise_machine::Node| {
        let mut sample = NodeSample::new(node.id);
        sample.cpus = node.cpus.clone();
        let size = MeminfoValue::Size(Bytes::from_gib(64));
        sample.memory =
            ["MemTotal", "MemFree"].map(|name| MeminfoField { name: name.to_owned(), value: size }).to_vec();
        sample
    };
    let now = Sample { nodes: machine.nodes.values().map(sample).collect(), ..Sample::default() };
    let situation = Situation::new(&machine, None, &now).expect("one sample");
    let size = Bytes::from_gib(8);
    Profile {
        memory: Known::certain(BTreeMap::from([
            (NodeId::new(1), Bytes::from_gib(6)),
            (NodeId::new(2), Bytes::from_gib(2)),
        ])),
        size: Known::certain(size),
        peak: Known::certain(size),
        need: Known::certain(size),
        growth: Known::new(0.0, Quality::Sampled),
        growth_edge: 1e7,
        threads: Known::certain(38),
        parallelism: Known::certain(4.2),
        runs_on: Known::new("1".parse().expect("a list"), Quality::Sampled),
        remote: Known::new(0.25, Quality::Sampled),
        stranded: Known::new(Bytes::from_gib(2), Quality::Sampled),
        sharing: Known::new(Sharing::Shared, Quality::Likely),
        latency: Known::new(false, Quality::Likely),
        device: Known::new(None, Quality::Likely),
        snapshot: Known::new(false, Quality::Likely),
        complaints: Known::certain(vec!["memory-stranded"]),
        cpus: Known::certain("0-31".parse().expect("a list")),
        policy: Known::certain(None),
        age: Known::certain(Duration::from_secs(9)),
        ..unstarted(&situation, &ProgramReading::default(), None, HORIZON)
    }
}

fn mysql() -> Application {
    knowledge::applications()
        .expect("the file is whole")
        .into_iter()
        .find(|program| program.id == "mysql")
        .expect("an entry")
}

fn with_report<T>(name: &str, show: impl FnOnce(&AdviceReport<'_>) -> T) -> T {
    let (profile, application) = (profile(), mysql());
    let advice = Advice::new(&profile, Some(&application));
    let identity = Identity { pid: Pid::new(2417), started_ticks: 9_000 };
    let owner = Owner::Service("mysqld.service".to_owned());
    let subject = Subject::Process { identity, name: name.to_owned(), owner: owner.clone() };
    let recipes = [Recipe {
        tool: "run",
        text: "nodewise run --cpunodebind=1 --membind=1 -- PROGRAM".to_owned(),
        notes: vec!["a note".to_owned()],
    }];
    let at_once = advice.at_once(&profile, 2417, &owner);
    show(&AdviceReport {
        program: AdvisedProgram::Process(&subject),
        others: 2,
        window: Some(Duration::from_secs(10)),
        taken_at: Some(Duration::from_secs(1_700_000_000)),
        profile: &profile,
        advice: &advice,
        application: Some(&application),
        in_force: Some(advice.in_force(&profile)),
        recipes: &recipes,
        at_once: &at_once,
        ask: Some("nodewise tune --placement default -- PROGRAM".to_owned()),
        trial: None,
        applied: None,
    })
}

#[test]
fn an_advice_is_shown() {
    for width in [60, 100] {
        let shown = with_report("mysqld", |report| text::advice(report, &Style::plain(width)));
        golden(&format!("advice-{width}"), shown);
    }
}

#[test]
fn text_and_json_agree() {
    let (shown, document) =
        with_report("mysqld", |report| (text::advice(report, &Style::plain(400)), json::advice(report)));
    let document: Json = serde_json::from_str(&document).unwrap();
    let word = |value: &Json| value.as_str().unwrap().to_owned();
    for words in [
        word(&document["conclusion"]),
        format!("row {}: {}", word(&document["row"]["row"]), word(&document["row"]["title"])),
        word(&document["reason"]),
        word(&document["in_force"]["differences"][0]),
        word(&document["at_once"][0]["commands"][0]),
        word(&document["at_once"][0]["undo"][0]),
        word(&document["ask_tune"]["command"]),
        word(&document["program"]["obsolete"]),
    ] {
        assert!(shown.contains(&words), "{words}: {shown}");
    }
    // Interleaving its buffer pool does not go with one node.
    assert_eq!(document["program"]["options"], serde_json::json!([]));
    assert!(!shown.contains("innodb_numa_interleave"), "{shown}");
    for fact in document["evidence"].as_array().unwrap() {
        assert!(shown.contains(&word(&fact["name"])), "{fact}");
        match &fact["not_known"] {
            Json::Null => assert!(fact["value"].is_object(), "{fact}"),
            reason => assert!(shown.contains(&word(reason)), "{fact}"),
        }
    }
}

/// An applied advice with everything in it.
fn applied(is_dry: bool) -> AppliedAdvice {
    let pages = PageMove { from: NodeId::new(2), to: NodeId::new(1), size: Bytes::from_mib(512) };
    let cpus = ("8-15".parse().expect("a list"), NodeSet::from([1]));
    let end = AppliedEnd {
        id: 7,
        ending: "interrupted".to_owned(),
        moved: Bytes::from_mib(256),
        failed: Bytes::from_kib(4),
        threads: 3,
        took: Duration::from_millis(1500),
        is_whole: false,
    };
    AppliedAdvice {
        is_dry,
        means: Means { pages: vec![pages], cpus: Some(cpus), spread: None },
        cpus: Some("0-31".parse().expect("a list")),
        rate: Bytes::from_mib(100),
        left: vec!["its memory policy (bind:1): only the program can set its own".to_owned()],
        missing_rights: is_dry.then(|| "advise --apply needs CAP_SYS_NICE".to_owned()),
        end: (!is_dry).then_some(end),
        drop_in: Some(AppliedDropIn {
            path: "/etc/systemd/system/mysqld.service.d/50-nodewise.conf".to_owned(),
            diff: "+NUMAPolicy=bind\n".to_owned(),
            is_written: !is_dry,
            next: vec!["systemctl daemon-reload".to_owned()],
        }),
        undo: if is_dry { Vec::new() } else { vec!["nodewise balance undo 7".to_owned()] },
    }
}

#[test]
fn what_is_applied_is_shown_instead_of_commands_and_text_and_json_agree() {
    for is_dry in [true, false] {
        let applied = applied(is_dry);
        let (shown, document) = with_report("mysqld", |report| {
            let report = AdviceReport { applied: Some(&applied), ..report.clone() };
            (text::advice(&report, &Style::plain(400)), json::advice(&report))
        });
        let document: Json = serde_json::from_str(&document).unwrap();
        let apply = &document["apply"];
        let texts = |value: &Json| {
            value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
        };
        let mut words: Vec<String> = texts(&apply["steps"]);
        words.extend::<Vec<String>>(texts(&apply["not_applied"]));
        words.extend::<Vec<String>>(texts(&apply["undo"]));
        words.push(apply["result"].as_str().unwrap().to_owned());
        words.push(apply["drop_in"]["path"].as_str().unwrap().to_owned());
        words.extend(apply["missing_rights"].as_str().map(str::to_owned));
        assert_eq!(words.len(), 3 + 2 + 1, "{apply}");
        for words in words {
            assert!(shown.contains(&words), "{words}: {shown}");
        }
        assert!(!shown.contains("\nNow  "), "commands to type are for those who do not apply it: {shown}");
        assert_eq!(
            (apply["dry_run"].as_bool(), apply["drop_in"]["written"].as_bool()),
            (Some(is_dry), Some(!is_dry))
        );
        assert_eq!(apply["end"].is_null(), is_dry);
        let step = "move pages of node 2 to node 1: 512 MiB at most, at 100 MiB/s: about 6 s";
        assert!(shown.contains(step) && shown.contains("CPUs 8-15 (node 1), instead of 0-31"), "{shown}");
        let result =
            "256 MiB moved, 3 threads bound, in 1.5 s; 4 KiB could not be moved; ended early: interrupted";
        assert_eq!(shown.contains(result), !is_dry, "{shown}");
    }
}

#[test]
fn a_hostile_name_reaches_no_terminal_and_lines_are_as_wide_as_it_is() {
    let (shown, document) =
        with_report(HOSTILE, |report| (text::advice(report, &Style::plain(60)), json::advice(report)));
    for text in [&shown, &document] {
        let is_hostile = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        let text =
            if std::ptr::eq(text, &document) { nodewise_machine::printable::json(text) } else { text.into() };
        assert!(!text.contains(is_hostile), "{text:?}");
    }
    // Commands stay on one line, so that they can be copied.
    let is_command = |line: &str| line.trim_start().starts_with("nodewise ");
    for line in shown.lines().filter(|line| !is_command(line)) {
        assert!(line.width() <= 60, "{line:?}");
    }
}
