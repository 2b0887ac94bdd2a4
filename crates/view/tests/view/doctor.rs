//! A diagnosis as text and JSON, on findings made by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_diagnose::diagnosis::LeftOut;
use nodewise_diagnose::finding::{
    Confidence, Evidence, Mend, OWN, Owner, RuleFinding, Scope, Severity, Subject, Value,
};
use nodewise_diagnose::rule::Lack;
use nodewise_diagnose::sample::{Identity, Unread};
use nodewise_diagnose::situation::{Class, NodeState};
use nodewise_diagnose::thresholds::{self, ReplacedThreshold};
use nodewise_diagnose::{Diagnosis, Pid, Rule, rules};
use nodewise_machine::{Bytes, Machine, NodeId, NodeSet, spec};
use nodewise_view::digest::doctor::{DoctorReport, MOST, price, subject, value};
use nodewise_view::{Style, json, text};
use serde_json::Value as Json;
use unicode_width::UnicodeWidthStr;

use crate::golden::check as golden;

const HOSTILE: &str = "my\x1b[2Jsqld\u{202e}";

fn rule(id: &str) -> &'static Rule {
    rules::ALL.iter().copied().find(|rule| rule.id == id).expect("the catalogue has it")
}

fn nodes(text: &str) -> NodeSet {
    text.parse().expect("nodes")
}

fn process(name: &str) -> Subject {
    let identity = Identity { pid: Pid::new(2417), started_ticks: 9_000 };
    Subject::Process { identity, name: name.to_owned(), owner: Owner::Service("mysqld.service".to_owned()) }
}

/// A finding with every part, and one below it.
fn swapping(name: &str) -> RuleFinding {
    let summary = "pages of node 1 are swapped out while nodes 0,2-3 have 82.7 GiB available";
    let mut finding = RuleFinding::new("swap-while-free", Severity::Critical, process(name), summary);
    finding.concerns = Some(Bytes::from_mib(448));
    finding.nodes = nodes("1");
    finding.evidence = vec![
        Evidence::new("swapped out", Value::Rate(11_482.4, "pages"), "/proc/vmstat"),
        Evidence::new(
            "available on nodes 0,2-3",
            Value::Size(Bytes::from_gib(82)),
            "/sys/devices/system/node/nodeN/meminfo",
        )
        .against(Value::Size(Bytes::from_gib(6)), OWN),
        Evidence::new(
            "node 1's share of the memory that it holds",
            Value::Share(0.974),
            "/proc/PID/numa_maps",
        ),
        Evidence::new("failed", Value::Count(12_375, "node reclaims"), "/proc/vmstat"),
        Evidence::new("set by", Value::text(format!("unit of {name}")), "/proc/PID/cgroup"),
    ];
    finding.cause = Some(format!("{name} may use node 1 only: the policy bind:1"));
    finding.mends = vec![
        Mend {
            commands: vec![
                "systemctl set-property --runtime mysqld.service AllowedCPUs=0-11,24-35 AllowedMemoryNodes=0-3".to_owned(),
            ],
            needs_root: true,
            moves: Some(Bytes::from_gib(40)),
            undo: vec!["systemctl set-property --runtime mysqld.service AllowedCPUs= AllowedMemoryNodes=".to_owned()],
            ..Mend::words("keep the unit on these nodes; its pages move while the command runs", Scope::Now)
        },
        Mend::words("permanently: systemctl edit mysqld.service", Scope::Restart),
    ];
    finding.experiment = Some("compare placements with nodewise tune -- COMMAND".to_owned());
    let summary = "node 1 has 60 MiB free, below its high watermark of 82 MiB";
    let below = RuleFinding::new("node-at-watermark", Severity::Warning, Subject::Nodes(nodes("1")), summary);
    finding.explains = vec![below];
    finding
}

fn stranded() -> RuleFinding {
    let summary = "4 GiB of its memory on node 2 is used from node 0";
    let subject = Subject::Process {
        identity: Identity { pid: Pid::new(733), started_ticks: 7 },
        name: "java".to_owned(),
        owner: Owner::Itself,
    };
    let mut finding = RuleFinding::new("memory-stranded", Severity::Warning, subject, summary);
    finding.confidence = Confidence::Likely;
    finding
}

fn diagnosis(findings: Vec<RuleFinding>) -> Diagnosis {
    let gib = Bytes::from_gib;
    let state = NodeState {
        size: gib(126),
        free: gib(38),
        available: Some(gib(71)),
        high: Some(Bytes::from_mib(155)),
        has_cpus: true,
    };
    let mut nodes: BTreeMap<NodeId, NodeState> = (0..4).map(|node| (NodeId::new(node), state)).collect();
    nodes.insert(NodeId::new(3), NodeState { available: None, high: None, ..state });
    let lack = |fact, reason: &str, remedy: Option<&str>| Lack {
        fact,
        reason: reason.to_owned(),
        remedy: remedy.map(str::to_owned),
    };
    let rates = || lack("rates", "one moment only", Some("nodewise doctor without --once, on that machine"));
    Diagnosis {
        class: Class::Real,
        window: Some(Duration::from_secs(10)),
        findings,
        examined: vec![rule("memory-stranded"), rule("node-at-watermark"), rule("swap-while-free")],
        not_examined: vec![
            (
                rule("zone-reclaim-void"),
                vec![rates(), lack("events of the system", "permission denied", None)],
            ),
            (rule("kswapd-one-node"), vec![rates()]),
        ],
        left_out: ["memory-stranded", "swap-while-free"]
            .map(|rule| LeftOut {
                rule,
                process: stranded().subject,
                lack: lack(
                    "policies of processes",
                    "it is too large",
                    Some("nodewise doctor --pid PID reads them"),
                ),
            })
            .into(),
        elsewhere: 1,
        processes: [412, 389, 9],
        nodes,
        interrupts: 6,
        devices: 12,
        replaced: Vec::new(),
    }
}

fn machine() -> Machine {
    spec::machine("2x(2x(24c 126G)); dist=11,20; kernel=6.12").expect("a spec")
}

fn unread() -> Vec<Unread> {
    vec![Unread {
        fact: "memory of processes by node".to_owned(),
        reason: "permission denied".to_owned(),
        objects: 23,
        remedy: Some("run as root".into()),
    }]
}

/// Text and JSON of a diagnosis.
fn forms(diagnosis: &Diagnosis, width: usize, change: impl Fn(&mut DoctorReport<'_>)) -> (String, Json) {
    let (machine, unread) = (machine(), unread());
    let mut report = DoctorReport {
        diagnosis,
        machine: &machine,
        taken_at: Some(Duration::from_secs(1_700_000_000)),
        source: None,
        unread: &unread,
        ignored: &[],
        others: 0,
        all: false,
        thresholds: None,
    };
    change(&mut report);
    let text = text::doctor(&report, &Style::plain(width));
    (text, serde_json::from_str(&json::doctor(&report)).expect("JSON"))
}

#[test]
fn text_is_what_a_person_accepted() {
    let sick = diagnosis(vec![swapping("mysqld"), stranded()]);
    let healthy = diagnosis(Vec::new());
    for width in [60, 80] {
        golden(&format!("doctor-sick-{width}"), forms(&sick, width, |_| {}).0);
        golden(&format!("doctor-healthy-{width}"), forms(&healthy, width, |_| {}).0);
    }
}

#[test]
fn only_commands_are_wider_than_the_page_and_nothing_drives_a_terminal() {
    let sick = diagnosis(vec![swapping(HOSTILE), stranded()]);
    let commands: Vec<&String> =
        sick.findings[0].mends.iter().flat_map(|mend| mend.commands.iter().chain(&mend.undo)).collect();
    for width in [40, 60, 80, 120] {
        let (text, _) = forms(&sick, width, |report| report.ignored = &[]);
        for line in text.lines().filter(|line| line.width() > width) {
            let is_command = commands.iter().any(|command| *command == line.trim_start());
            assert!(is_command || line.starts_with("   check: nodewise doctor"), "{width}: {line}");
        }
        assert!(!text.contains(['\x1b', '\u{202e}']), "{text}");
        for command in &commands {
            assert!(text.lines().any(|line| line.trim_start() == *command), "{command}:\n{text}");
        }
    }
}

/// The text in one line, so that nothing depends on where it wraps.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn json_says_what_the_text_says() {
    let sick = diagnosis(vec![swapping("mysqld"), stranded()]);
    let ignored = [stranded()];
    let (machine, unread) = (machine(), unread());
    let report = DoctorReport {
        diagnosis: &sick,
        machine: &machine,
        taken_at: None,
        source: Some("night.nwr"),
        unread: &unread,
        ignored: &ignored,
        others: 2,
        all: false,
        thresholds: None,
    };
    let text = flat(&text::doctor(&report, &Style::plain(100)));
    let json: Json = serde_json::from_str(&json::doctor(&report)).unwrap();
    let says = |words: &str| assert!(text.contains(&flat(words)), "{words:?} is missing:\n{text}");
    assert_eq!(json["schema"], "nodewise.doctor/1");
    assert_eq!((&json["window_s"], &json["taken_at_s"]), (&Json::from(10.0), &Json::Null));
    says(json["conclusion"].as_str().unwrap());
    says(json["source"].as_str().unwrap());
    says(json["machine"]["class"].as_str().unwrap());
    assert_eq!(json["findings"].as_array().unwrap().len(), sick.findings.len());
    for (found, shown) in json["findings"].as_array().unwrap().iter().zip(&sick.findings) {
        says(&format!(
            "{}, {} {} {}",
            text_of(found, "severity"),
            text_of(found, "confidence"),
            shown.rule,
            subject(&shown.subject)
        ));
        says(text_of(found, "summary"));
        says(text_of(found, "check"));
        assert_eq!(found["evidence"].as_array().unwrap().len(), shown.evidence.len());
        for (fact, evidence) in found["evidence"].as_array().unwrap().iter().zip(&shown.evidence) {
            says(&format!("{} {}", text_of(fact, "fact"), value(&evidence.value)));
            says(text_of(fact, "read_from"));
        }
        for (mend, way) in found["mend"].as_array().unwrap().iter().zip(&shown.mends) {
            says(&format!("{} ({})", text_of(mend, "what"), price(way)));
            for command in mend["commands"].as_array().unwrap().iter().chain(mend["undo"].as_array().unwrap())
            {
                says(command.as_str().unwrap());
            }
        }
        for source in found["sources"].as_array().unwrap() {
            says(source.as_str().unwrap());
        }
        for below in found["explains"].as_array().unwrap() {
            says(&format!("explains: {}", text_of(below, "id")));
            says(text_of(below, "summary"));
        }
    }
    let swapping = &json["findings"][0];
    for part in ["cause", "experiment"] {
        says(&format!("{part}: {}", text_of(swapping, part)));
    }
    let values: Vec<&Json> =
        swapping["evidence"].as_array().unwrap().iter().map(|fact| &fact["value"]).collect();
    assert_eq!((&values[0]["per_s"], &values[0]["unit"]), (&Json::from(11_482.4), &Json::from("pages")));
    assert_eq!(values[1]["size_bytes"], 82_u64 << 30);
    assert_eq!(swapping["evidence"][1]["threshold"]["size_bytes"], 6_u64 << 30);
    assert_eq!((&values[2]["share"], &values[3]["count"]), (&Json::from(0.974), &Json::from(12_375)));
    assert_eq!(swapping["subject"]["owner"]["name"], "mysqld.service");
    for lacking in json["not_examined"].as_array().unwrap() {
        says(&format!("{}: {}", text_of(lacking, "fact"), text_of(lacking, "reason")));
        for rule in lacking["rules"].as_array().unwrap() {
            says(rule.as_str().unwrap());
        }
    }
    let in_part = &json["not_examined_processes"][0];
    says(&format!(
        "\"{}\" ({}): {}: {}; {} ({})",
        text_of(&in_part["processes"][0], "name"),
        in_part["processes"][0]["pid"],
        text_of(in_part, "fact"),
        text_of(in_part, "reason"),
        text_of(in_part, "remedy"),
        "memory-stranded, swap-while-free",
    ));
    says(text_of(&json["unread"][0], "fact"));
    assert_eq!(json["examined"]["rules"].as_array().unwrap().len(), 3);
    says("3 rules, 412 processes (memory of 389 known, 9 significant), interrupts of 6 devices, 12 devices");
    says("1 rule for other kinds of machines, 2 findings about other processes, 1 finding ignored");
    assert_eq!(json["ignored"][0]["id"], "memory-stranded");
    assert_eq!(
        (&json["rules_elsewhere"], &json["findings_of_other_processes"]),
        (&Json::from(1), &Json::from(2))
    );
}

fn text_of<'a>(value: &'a Json, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} of {value}"))
}

#[test]
fn a_replaced_threshold_is_named_at_its_findings_and_at_the_end() {
    let stranded_share = ReplacedThreshold { threshold: &thresholds::MEMORY_STRANDED, value: 0.3 };
    let size = ReplacedThreshold { threshold: &thresholds::SIGNIFICANT, value: 512.0 };
    let mut finding = stranded();
    finding.replaced = vec![stranded_share];
    let mut found = diagnosis(vec![finding]);
    found.replaced = vec![size, stranded_share];
    let (text, json) = forms(&found, 80, |_| {});
    let text = flat(&text);
    let share = "stranded_share 30 %, by default 10 %";
    assert!(text.contains(&format!("replaced thresholds: {share} check:")), "{text}");
    let end = "Replaced thresholds 2 numbers all-rules.significant_mib 512 MiB, by default 300 MiB memory-stranded:";
    assert!(text.contains(&format!("{end} {share}")), "{text}");
    let expected = serde_json::json!({
        "table": "memory-stranded", "key": "stranded_share", "unit": "share", "value": 0.3, "default": 0.1,
    });
    assert_eq!(json["findings"][0]["replaced_thresholds"], serde_json::json!([expected]));
    assert_eq!(json["replaced_thresholds"][1], expected);
    assert_eq!(json["replaced_thresholds"][0]["default"], 300.0);
    // A finding below another one has its own; the file belongs to the command that examines the rule again.
    let mut explained = stranded();
    explained.replaced = vec![stranded_share];
    let mut root = stranded();
    root.explains = vec![explained];
    let (text, json) = forms(&diagnosis(vec![root]), 80, |report| report.thresholds = Some("'my t.toml'"));
    assert!(flat(&text).contains(&format!("(replaced thresholds: {share})")), "{text}");
    let check = "nodewise doctor --rule memory-stranded --thresholds 'my t.toml'";
    assert!(text.contains(&format!("check: {check}\n")), "{text}");
    assert_eq!(
        (&json["findings"][0]["check"], &json["findings"][0]["explains"][0]["check"]),
        (&check.into(), &check.into())
    );
    let (text, json) = forms(&diagnosis(vec![stranded()]), 80, |_| {});
    assert!(!text.to_lowercase().contains("replaced") && !json.to_string().contains("replaced"), "{text}");
}

#[test]
fn a_healthy_machine_shows_its_nodes_and_what_is_not_known_is_a_dash() {
    let (text, json) = forms(&diagnosis(Vec::new()), 80, |_| {});
    let first = "4 nodes (real, 2 packages), Linux 6.12, 10.0 s watched: nothing wrong was found (3 of 5 rules examined)";
    assert!(flat(&text).starts_with(first), "{text}");
    assert!(text.contains("     0  38 GiB     71 GiB         155 MiB\n"), "{text}");
    assert!(text.contains("     3  38 GiB          -               -\n"), "{text}");
    assert_eq!(json["nodes"][0]["high_watermark_bytes"], 155 << 20);
    assert_eq!(json["nodes"][3]["available_bytes"], Json::Null);
}

#[test]
fn silence_of_rules_that_did_not_run_is_not_health() {
    let mut void = diagnosis(Vec::new());
    void.examined.clear();
    let conclusion = |diagnosis: &Diagnosis| forms(diagnosis, 80, |_| {}).1["conclusion"].clone();
    assert_eq!(conclusion(&void), "nothing could be examined");
    void.not_examined.clear();
    void.class = Class::One;
    assert_eq!(conclusion(&void), "no rule applies to this machine");
    void.class = Class::NoNodes;
    assert_eq!(conclusion(&void), "nothing could be examined");
    let ignored = [stranded()];
    let healthy = diagnosis(Vec::new());
    let machine = machine();
    let report = DoctorReport {
        diagnosis: &healthy,
        machine: &machine,
        taken_at: None,
        source: None,
        unread: &[],
        ignored: &ignored,
        others: 0,
        all: false,
        thresholds: None,
    };
    assert_eq!(report.conclusion(), "nothing else wrong was found (3 of 5 rules examined)");
    let mut whole = diagnosis(Vec::new());
    whole.not_examined.clear();
    assert_eq!(conclusion(&whole), "nothing wrong was found");
}

#[test]
fn the_text_has_ten_findings_and_counts_the_others() {
    let many = diagnosis((0..13).map(|_| stranded()).collect());
    let heads = |text: &str| text.lines().filter(|line| line.contains("warning, likely")).count();
    let (text, json) = forms(&many, 80, |_| {});
    assert_eq!((heads(&text), json["findings"].as_array().unwrap().len()), (MOST, 13));
    assert!(text.contains("\n3 more findings, shown with --all\n"), "{text}");
    let (text, _) = forms(&many, 80, |report| report.all = true);
    assert_eq!(heads(&text), 13);
    assert!(!text.contains("--all"), "{text}");
}

#[test]
fn the_brief_form_is_one_line() {
    let (machine, sick) = (machine(), diagnosis(vec![swapping(HOSTILE), stranded()]));
    let mut report = DoctorReport {
        diagnosis: &sick,
        machine: &machine,
        taken_at: None,
        source: None,
        unread: &[],
        ignored: &[],
        others: 0,
        all: false,
        thresholds: None,
    };
    let expected = "nodewise: 1 critical, 1 warning: swap-while-free \"my\\x1b[2Jsqld\\u{202e}\" (2417); \
                    memory-stranded \"java\" (733)";
    assert_eq!(report.brief(), expected);
    let many = diagnosis((0..12).map(|_| stranded()).collect());
    report.diagnosis = &many;
    assert!(report.brief().ends_with("; 2 more"));
    let healthy = diagnosis(Vec::new());
    report.diagnosis = &healthy;
    assert_eq!(report.brief(), "nodewise: nothing wrong was found (3 of 5 rules examined)");
}

#[test]
fn metrics_have_each_finding_once_and_the_rules_that_were_examined() {
    let hostile = Subject::Process {
        identity: Identity { pid: Pid::new(9), started_ticks: 7 },
        name: "a\"b\\\n\u{1b}[2J".to_owned(),
        owner: Owner::Itself,
    };
    let hostile = RuleFinding::new("bound-away", Severity::Note, hostile, "x");
    let found = diagnosis(vec![swapping("mysqld"), stranded(), stranded(), hostile]);
    let machine = machine();
    let report = DoctorReport {
        diagnosis: &found,
        machine: &machine,
        taken_at: None,
        source: None,
        unread: &[],
        ignored: &[],
        others: 0,
        all: false,
        thresholds: None,
    };
    let text = nodewise_view::metrics::doctor(&report);
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(samples.len(), 5, "{text}");
    assert!(
        samples[0].starts_with("nodewise_finding{id=\"swap-while-free\",severity=\"critical\",subject=\""),
        "{text}"
    );
    assert_eq!(
        samples[1],
        "nodewise_finding{id=\"memory-stranded\",severity=\"warning\",subject=\"java (733)\"} 1"
    );
    assert!(samples[2].contains("subject=\"a\\\"b\\\\") && !text.contains('\u{1b}'), "{text}");
    assert_eq!(
        samples[3..],
        ["nodewise_rules{state=\"examined\"} 3", "nodewise_rules{state=\"not_examined\"} 2"]
    );
}
