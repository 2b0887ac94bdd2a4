//! The running system, on samples made by hand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_diagnose::change::Delta;
use nodewise_diagnose::sample::{
    Allowed, BandwidthSample, ControllerSample, Denied, GroupSample, Identity, InterruptSample, Moment,
    NodeSample, PageMethod, PageSample, PageShare, PoolSample, ProcessSample, Sample, TaskSample, Unread,
};
use nodewise_diagnose::{Pid, Relation, identity};
use nodewise_machine::{Bytes, CpuId, CpuSet, MeminfoField, MeminfoValue, NodeCounters, NodeId};
use nodewise_view::Style;
use nodewise_view::digest::running::comparison::{Compared, RunningComparison};
use nodewise_view::digest::running::{Choice, Running, Shown, Sort, findings};
use nodewise_view::{csv, json, text};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::golden::check as golden;

fn moment(seconds: u64) -> Moment {
    let since_boot = Duration::from_secs(seconds);
    Moment { since_boot, wall: since_boot + Duration::from_secs(1_700_000_000) }
}

/// A node of four CPUs and 64 GiB; the last of several has next to no free memory.
fn node(number: u32, count: u32, seconds: u64) -> NodeSample {
    let mut node = NodeSample::new(NodeId::new(number));
    node.cpus = CpuSet::range(CpuId::new(number * 4), CpuId::new(number * 4 + 3));
    let free = if count > 1 && number == count - 1 { Bytes::from_mib(40) } else { Bytes::from_gib(40) };
    let field = |name: &str, size| MeminfoField { name: name.to_owned(), value: MeminfoValue::Size(size) };
    node.memory = vec![
        field("MemTotal", Bytes::from_gib(64)),
        field("MemFree", free),
        field("AnonPages", Bytes::from_mib(12_345)),
        field("FilePages", Bytes::from_gib(9)),
        field("Shmem", Bytes::from_gib(1)),
        field("Slab", Bytes::from_mib(700)),
    ];
    node.high_watermark = Some(Bytes::from_mib(96));
    let per_second = |rate: u64| Some(rate * seconds);
    node.allocations = NodeCounters {
        hit: per_second(81_203),
        miss: per_second(u64::from(number) * 812),
        foreign: per_second(u64::from(count - 1 - number) * 812),
        interleave_hit: per_second(0),
        local: per_second(80_000 + u64::from(number) * 812),
        other: per_second(1203),
    };
    node.pools =
        vec![PoolSample { page_size: Bytes::from_mib(2), total: 512, free: Some(12), surplus: None }];
    node
}

fn process(
    pid: u32,
    name: &str,
    seconds: u64,
    ticks_a_second: u64,
    at: Option<&[(u32, u64)]>,
) -> ProcessSample {
    let share = |mib| PageShare {
        size: Bytes::from_mib(mib),
        low: Bytes::from_mib(mib),
        high: Bytes::from_mib(mib),
        own: None,
    };
    let ticks = ticks_a_second * (seconds - 100);
    let allowed = Some(Allowed { cpus: Some(CpuSet::range(CpuId::new(0), CpuId::new(3))), nodes: None });
    let identity = Identity { pid: Pid::new(pid), started_ticks: 9_000 };
    let pages = at.map(|nodes| PageSample {
        seen: moment(seconds),
        method: PageMethod::Exact,
        nodes: nodes.iter().map(|(node, mib)| (NodeId::new(*node), share(*mib))).collect(),
    });
    let resident = Bytes::from_mib(at.map_or(900, |nodes| nodes.iter().map(|(_, mib)| mib).sum()));
    ProcessSample {
        polled: moment(seconds),
        name: name.into(),
        user: Some(1000),
        state: 'R',
        cpu_ticks: ticks,
        resident: Some(resident),
        allowed: allowed.clone(),
        group: Some("/system.slice/postgresql.service".into()),
        tasks: Some(vec![TaskSample {
            identity,
            name: name.into(),
            cpu_ticks: ticks,
            run: Some(Duration::from_millis(ticks * 10)),
            processor: Some(CpuId::new(1)),
            allowed,
            cpu_changes: Some(4),
            balancing: None,
        }]),
        denied: if pages.is_none() { Some(Denied::Rights) } else { None },
        pages,
        ..ProcessSample::new(identity)
    }
}

/// The machine with this number of nodes after these seconds.
pub(crate) fn sample(nodes: u32, seconds: u64) -> Sample {
    let last = nodes - 1;
    let times = |busy: u64, idle: u64| {
        let mut times = nodewise_source::parse::proc_stat::CpuTimes::default();
        (times.user, times.idle) = (busy * seconds, idle * seconds);
        times
    };
    let cpus =
        (0..nodes * 4).map(|cpu| (CpuId::new(cpu), if cpu % 4 == 0 { times(100, 0) } else { times(10, 90) }));
    Sample {
        moment: moment(seconds),
        nodes: (0..nodes).map(|number| node(number, nodes, seconds)).collect(),
        cpus: cpus.collect(),
        memory: Some(Bytes::from_gib(64 * u64::from(nodes))),
        processes: vec![
            Arc::new(process(733, "idle", seconds, 0, Some(&[(0, 9)]))),
            Arc::new(process(1188, "node\x1b[2Jexporter", seconds, 3, None)),
            Arc::new(process(4121, "postgres", seconds, 98, Some(&[(0, 1000), (last, 3000)]))),
            Arc::new(process(4122, "=java", seconds, 0, Some(&[(last, 4096)]))),
        ],
        users: BTreeMap::from([(1000, "alice\x1b".into())]),
        interrupts: vec![InterruptSample {
            device: "net:eth0".to_owned(),
            node: Some(NodeId::new(last)),
            lines: vec![30, 31],
            by_cpu: vec![(CpuId::new(0), 700 * seconds), (CpuId::new(last * 4 + 1), 100 * seconds)],
            ..InterruptSample::default()
        }],
        unread: vec![Unread {
            fact: "memory of processes by node".to_owned(),
            reason: "permission denied".to_owned(),
            objects: 1,
            remedy: Some("run as root".into()),
        }],
        ..Sample::default()
    }
}

fn running(nodes: u32, choice: Choice) -> Running {
    let (before, now) = (sample(nodes, 200), sample(nodes, 202));
    let delta = Delta::between(&before, &now).expect("the clock went on");
    let mut running = Running::new(&now, &delta, choice);
    running.checks = identity::check(&now, Some(identity::Interval { delta: &delta, readings: 1 }));
    running
}

#[test]
fn text_is_what_a_person_accepted() {
    let choice = Choice { threads: true, ..Choice::default() };
    for (nodes, width) in [(1, 60), (2, 60), (2, 100), (4, 80), (6, 80)] {
        let running = running(nodes, choice);
        golden(&format!("stat-{nodes}-nodes-{width}"), text::stat(&running, &Style::plain(width)));
    }
    let now = sample(2, 202);
    let boot = Running::new(&now, &Delta::since_boot(&now), Choice::default());
    golden("stat-since-boot-80", text::stat(&boot, &Style::plain(80)));
}

#[test]
fn text_fits_on_any_number_of_nodes_and_holds_no_control_byte() {
    for nodes in [1, 2, 3, 8, 64] {
        let running = running(nodes, Choice { shown: Shown::All, threads: true, ..Choice::default() });
        for width in [60, 80, 200] {
            let text = text::stat(&running, &Style::plain(width));
            assert!(
                text.lines().all(|line| line.width() <= width),
                "{nodes} nodes in {width} columns:\n{text}"
            );
            assert!(!text.contains('\x1b'), "{text}");
            for number in 0..nodes {
                let (column, row) = (format!("node {number}"), format!("\n{:>6}  ", number));
                assert!(text.contains(&column) || text.contains(&row), "node {number} of {nodes}:\n{text}");
            }
        }
    }
}

#[test]
fn what_deserves_attention_comes_first() {
    let running = running(2, Choice::default());
    let pids: Vec<u32> = running.processes.iter().map(|row| row.identity.pid.number()).collect();
    assert_eq!(
        pids,
        [4122, 4121, 1188],
        "stranded memory, then CPU time; an idle process without memory is left out"
    );
    let kinds: Vec<&str> = findings(&running).iter().map(|finding| finding.kind()).collect();
    assert_eq!(kinds, ["low_memory", "stranded_memory", "stranded_memory", "interrupts_on_other_nodes"]);
    let sorted = |sort| {
        let running = self::running(2, Choice { shown: Shown::All, sort, top: 2, ..Choice::default() });
        running.processes.iter().map(|row| row.identity.pid.number()).collect::<Vec<_>>()
    };
    assert_eq!(sorted(Sort::Cpu), [4121, 1188]);
    assert_eq!(sorted(Sort::Memory), [4122, 4121]);
    assert_eq!(sorted(Sort::Pid), [733, 1188]);
}

#[test]
fn json_says_what_the_text_says() {
    let running = running(2, Choice { threads: true, ..Choice::default() });
    let document: Value = serde_json::from_str(&json::stat(&running)).unwrap();
    let text = text::stat(&running, &Style::plain(200));
    assert_eq!(document["schema"], "nodewise.stat/1");
    assert_eq!(document["interval_s"], 2.0);
    assert!(text.contains("in 2.0 s"), "{text}");
    assert_eq!(document["nodes"][0]["rates"]["hit_per_s"], 81_203.0);
    assert!(text.contains("81,203"), "{text}");
    let first = &document["processes"][0];
    assert_eq!((&first["pid"], &first["stranded_share"]), (&Value::from(4122), &Value::from(1.0)));
    let second = &document["processes"][1];
    assert_eq!(second["memory"]["by_node"][1]["size_bytes"], 3000u64 << 20);
    assert_eq!((&second["stranded_share"], &second["local_index"]), (&Value::from(0.75), &Value::from(0.25)));
    assert_eq!(second["cpu_by_node"][0]["certain_share"], 1.0);
    assert_eq!((&second["user"], &second["user_name"]), (&Value::from(1000), &Value::from("alice\x1b")));
    assert_eq!(document["processes"][2]["memory_unread"], "permission denied");
    for row in document["findings"].as_array().unwrap() {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&text).contains(&words(row["sentence"].as_str().unwrap())), "{row}\n{text}");
    }
    assert_eq!(json::stat_line(&running).lines().count(), 1);
    let line: Value = serde_json::from_str(&json::stat_line(&running)).unwrap();
    assert_eq!(line, document);
}

#[test]
fn csv_has_a_line_for_each_fact_that_is_known() {
    let running = running(2, Choice::default());
    let text = csv::stat(&running);
    let fields = csv::stat::HEAD.trim_end().split(',').count();
    assert!(text.lines().all(|line| line.split(',').count() == fields), "{text}");
    assert!(text.contains("4121,postgres,1,memory,3145728000,bytes\n"), "{text}");
    assert!(text.contains(",,1,miss,812.000000,per_s\n"), "{text}");
    assert!(text.contains(",'=java,"), "a name is not a formula: {text}");
    assert!(!text.contains("1188,node\\x1b[2Jexporter,,stranded"), "{text}");
    assert!(!text.contains(",memory_low,"), "every page was counted: {text}");
}

#[test]
fn csv_has_the_ends_of_estimates() {
    let mut now = sample(2, 202);
    let pages = placed(PageMethod::Drawn(100), &[[900, 800, 950], [100, 50, 200]]);
    now.processes = vec![Arc::new(ProcessSample {
        pages: Some(pages),
        ..process(812, "worker", 202, 50, Some(&[(0, 1000)]))
    })];
    let text = csv::stat(&Running::new(&now, &Delta::since_boot(&now), Choice::default()));
    for (name, mib) in [("memory", 900), ("memory_low", 800), ("memory_high", 950)] {
        let line = format!("812,worker,0,{name},{},bytes\n", mib << 20);
        assert!(text.contains(&line), "{line}: {text}");
    }
}

#[test]
fn since_boot_no_share_of_a_node_is_certain() {
    let now = sample(2, 202);
    let running = Running::new(&now, &Delta::since_boot(&now), Choice::default());
    let document: Value = serde_json::from_str(&json::stat(&running)).unwrap();
    assert_eq!(
        (&document["interval_s"], &document["processes"][0]["cpu_by_node"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(document["processes"][0]["may_run_on"], "0");
}

#[test]
fn bandwidth_has_the_part_of_other_nodes_and_nothing_that_was_not_counted() {
    let mut samples = [sample(2, 200), sample(2, 202)];
    let caches = |seconds: u64| {
        let cache = |domain: u32, cpus, total_bytes, local_bytes| BandwidthSample {
            domain,
            cpus,
            total_bytes,
            local_bytes,
        };
        let cpus = |first, last| CpuSet::range(CpuId::new(first), CpuId::new(last));
        vec![
            cache(0, cpus(0, 3), Some(seconds * 5_000_000_000), Some(seconds * 4_000_000_000)),
            cache(1, cpus(4, 7), Some(seconds * 250_000_000), None),
            cache(2, cpus(2, 5), None, None),
        ]
    };
    samples[0].bandwidth = caches(200);
    samples[1].bandwidth = caches(202);
    let delta = Delta::between(&samples[0], &samples[1]).unwrap();
    let running = Running::new(&samples[1], &delta, Choice::default());
    let text = text::stat(&running, &Style::plain(80));
    for line in [
        "  0-3      0  5.00      4.00         1.00  0",
        "  4-7      1  0.25         -            -  1",
        "  2-5    0-1     -",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    let document: Value = serde_json::from_str(&json::stat(&running)).unwrap();
    let caches = &document["bandwidth"];
    assert_eq!(caches[0]["other_nodes_bytes_per_s"], 1e9);
    assert_eq!(
        (&caches[1]["total_bytes_per_s"], &caches[1]["own_node_bytes_per_s"]),
        (&250e6.into(), &Value::Null)
    );
    let csv = csv::stat(&running);
    assert!(csv.contains(",,0,bandwidth_own_node_cache_0,4000000000.000000,bytes_per_s\n"), "{csv}");
    assert!(!csv.contains("cache_2"), "{csv}");
}

#[test]
fn traffic_of_memory_controllers_is_that_of_a_die() {
    let mut samples = [sample(2, 200), sample(2, 202)];
    let dies = |seconds: u64| {
        let die = |first, last, read_bytes, written_bytes| ControllerSample {
            cpus: CpuSet::range(CpuId::new(first), CpuId::new(last)),
            controllers: 8,
            read_bytes,
            written_bytes,
        };
        vec![
            die(0, 3, Some(seconds * 5_000_000_000), Some(seconds * 1_000_000_000)),
            die(4, 7, Some(seconds * 250_000_000), None),
        ]
    };
    samples[0].controllers = dies(200);
    samples[1].controllers = dies(202);
    let delta = Delta::between(&samples[0], &samples[1]).unwrap();
    let running = Running::new(&samples[1], &delta, Choice::default());
    let text = text::stat(&running, &Style::plain(80));
    for line in ["  0-3      0  5.00     1.00  6.00  8", "  4-7      1  0.25        -     -  8"] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    let document: Value = serde_json::from_str(&json::stat(&running)).unwrap();
    let dies = &document["memory_controllers"];
    assert_eq!((&dies[0]["read_bytes_per_s"], &dies[0]["written_bytes_per_s"]), (&5e9.into(), &1e9.into()));
    assert_eq!((&dies[1]["nodes"], &dies[1]["written_bytes_per_s"]), (&"1".into(), &Value::Null));
    let csv = csv::stat(&running);
    assert!(csv.contains(",,0,traffic_written_die_of_cpu_0,1000000000.000000,bytes_per_s\n"), "{csv}");
    assert!(!csv.contains("traffic_written_die_of_cpu_4"), "{csv}");
    // Nothing is known since boot: the counters began with the first sample.
    let since_boot = Running::new(&samples[1], &Delta::since_boot(&samples[1]), Choice::default());
    assert_eq!(since_boot.controllers[0].read_bytes, None);
}

/// Two moments of this number of nodes, five minutes apart: a process grew on the last node, one ended, one began.
fn comparison(nodes: u32, relation: Relation, top: usize) -> RunningComparison {
    let digest = |now: &Sample, before: &Sample| {
        let delta = Delta::between(before, now).expect("the clock went on");
        let choice = Choice { shown: Shown::All, top: usize::MAX, ..Choice::default() };
        Running::new(now, &delta, choice)
    };
    let last = nodes - 1;
    let later = |seconds: u64| {
        let mut sample = sample(nodes, seconds);
        sample.nodes[0].memory[2].value = MeminfoValue::Size(Bytes::from_mib(24_000));
        sample.processes = vec![
            Arc::new(process(733, "idle", seconds, 0, Some(&[(0, 9)]))),
            Arc::new(process(4121, "postgres", seconds, 49, Some(&[(0, 500), (last, 9000)]))),
            Arc::new(process(5000, "new\x1b[2J", seconds, 20, None)),
        ];
        sample
    };
    let before = digest(&sample(nodes, 202), &sample(nodes, 200));
    let after = digest(&later(502), &later(500));
    let differences = if relation == Relation::OtherMachine {
        vec!["8 CPUs before, 16 CPUs after".to_owned()]
    } else {
        Vec::new()
    };
    let compared = |name, running| Compared { name, at: Duration::from_secs(95), running };
    RunningComparison::new(
        compared("old.nwr", &before),
        compared("new.nwr", &after),
        relation,
        differences,
        top,
    )
}

#[test]
fn two_moments_are_shown_before_after_and_by_the_change() {
    for (nodes, width) in [(2, 80), (4, 140)] {
        let text = text::stat::comparison(&comparison(nodes, Relation::SameBoot, 20), &Style::plain(width));
        golden(&format!("stat-comparison-{nodes}-nodes-{width}"), text);
    }
    let text = text::stat::comparison(&comparison(2, Relation::OtherMachine, 20), &Style::plain(80));
    golden("stat-comparison-machines-80", text);
}

#[test]
fn a_comparison_fits_and_holds_no_control_byte() {
    for nodes in [1, 2, 16, 64] {
        for width in [60, 80, 200] {
            let text =
                text::stat::comparison(&comparison(nodes, Relation::OtherBoot, 1), &Style::plain(width));
            assert!(text.lines().all(|line| line.width() <= width), "{nodes} nodes in {width}:\n{text}");
            assert!(!text.contains('\x1b'), "{text}");
        }
    }
}

#[test]
fn the_forms_of_a_comparison_say_the_same() {
    let comparison = comparison(2, Relation::SameBoot, 20);
    let document: Value = serde_json::from_str(&json::stat_comparison(&comparison)).unwrap();
    assert_eq!(document["schema"], "nodewise.stat-comparison/1");
    assert_eq!((&document["relation"], &document["backwards"]), (&"same_boot".into(), &false.into()));
    let postgres = &document["processes"][0];
    assert_eq!((&postgres["name"], &postgres["matched_by"]), (&"postgres".into(), &"identity".into()));
    assert_eq!(postgres["resident"]["change_bytes"], 5500u64 << 20);
    assert_eq!(postgres["by_node"][0]["node"], 1, "the largest change first");
    assert_eq!(postgres["by_node"][1]["change_bytes"], -(500i64 << 20));
    assert_eq!(postgres["cpu_share"]["change"], -0.49);
    let names = |list: &str| -> Vec<Value> {
        document[list].as_array().unwrap().iter().map(|row| row["name"].clone()).collect()
    };
    assert_eq!(names("only_after"), ["new\u{1b}[2J"]);
    assert_eq!(names("only_before"), ["=java", "node\u{1b}[2Jexporter"], "the largest first");
    let anon = &document["facts"].as_array().unwrap().iter().find(|fact| fact["name"] == "anon").unwrap();
    assert_eq!((&anon["node"], &anon["change"]), (&0.into(), &(11_655.0 * 1_048_576.0).into()));
    let text = text::stat::comparison(&comparison, &Style::plain(200));
    for words in ["+5.4 GiB", "+11.4 GiB", "-49 %", "Only after", "Only before"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains(document["headline"].as_str().unwrap()), "{text}");
    let table = csv::stat_comparison(&comparison);
    assert!(table.lines().all(|line| line.split(',').count() == 10), "{table}");
    assert!(table.contains("4121,postgres,,resident,4194304000,9961472000,5767168000,,,bytes\n"), "{table}");
    assert!(table.contains(",,0,anon,12944670720,25165824000,12221153280,,,bytes\n"), "{table}");
    assert!(table.contains("4122,'=java,1,memory,4294967296,0,-4294967296,,,bytes\n"), "{table}");
}

#[test]
fn a_process_whose_memory_is_not_known_has_no_change_of_it() {
    let comparison = comparison(2, Relation::SameBoot, 20);
    let unknown = comparison.only_after.iter().find(|row| row.name.starts_with("new")).unwrap();
    assert_eq!(unknown.nodes(), None, "nobody looked at its pages");
    assert_eq!(comparison.left_out, [0; 3]);
    let short = self::comparison(2, Relation::SameBoot, 1);
    assert_eq!((short.processes.len(), short.left_out), (1, [1, 1, 0]));
}

/// A process at both of two moments: its ticks a second, and where its pages are.
fn grown(before: (u64, PageSample), after: (u64, PageSample)) -> RunningComparison {
    let digest = |seconds: u64, (ticks, pages): &(u64, PageSample)| {
        let sample = |seconds| {
            let mut process = process(812, "worker", seconds, *ticks, Some(&[(0, 1000)]));
            process.pages = Some(pages.clone());
            Sample { processes: vec![Arc::new(process)], ..sample(2, seconds) }
        };
        let (earlier, now) = (sample(seconds - 2), sample(seconds));
        Running::new(
            &now,
            &Delta::between(&earlier, &now).expect("the clock went on"),
            Choice::every_process(),
        )
    };
    let (before, after) = (digest(202, &before), digest(502, &after));
    let compared = |running| Compared { name: "a.nwr", at: Duration::ZERO, running };
    RunningComparison::new(compared(&before), compared(&after), Relation::SameBoot, Vec::new(), 20)
}

/// Pages on nodes, in MiB each: size, and the ends of its interval.
fn placed(method: PageMethod, nodes: &[[u64; 3]]) -> PageSample {
    let mib = Bytes::from_mib;
    let share = |[size, low, high]: &[u64; 3]| PageShare {
        size: mib(*size),
        low: mib(*low),
        high: mib(*high),
        own: None,
    };
    let nodes = (0..).map(NodeId::new).zip(nodes.iter().map(share)).collect();
    PageSample { seen: moment(1), method, nodes }
}

#[test]
fn the_conclusion_names_the_change_that_it_counts() {
    let counted = |sizes: [u64; 2]| placed(PageMethod::Exact, &sizes.map(|size| [size; 3]));
    let check = |before, after, expected: &str| {
        let headline = grown(before, after).headline();
        assert!(headline.ends_with(expected), "{headline}: {expected}");
    };
    let all = [1000, 0];
    check((50, counted(all)), (50, counted(all)), "nor of a process that is in both");
    check((1, counted(all)), (2, counted(all)), "worker: 1.0 % of a CPU more");
    // Memory that only moved is neither more memory nor more CPU time.
    check((50, counted(all)), (50, counted([400, 600])), "worker: 600 MiB less on node 0");
}

#[test]
fn a_difference_that_sampling_explains_is_no_change() {
    let drawn = |nodes: &[[u64; 3]]| (50, placed(PageMethod::Drawn(100), nodes));
    let noise = grown(drawn(&[[500, 400, 600], [500, 400, 600]]), drawn(&[[530, 430, 630], [470, 370, 570]]));
    assert_eq!(noise.notable_processes().len(), 0, "{noise:?}");
    let text = text::stat::comparison(&noise, &Style::plain(120));
    assert!(text.contains("Processes of both moments  no notable change"), "{text}");
    // A node that no drawn page was on may have some of it.
    let unseen = grown(drawn(&[[1000, 963, 1000]]), drawn(&[[985, 930, 1000], [15, 1, 50]]));
    assert_eq!(unseen.notable_processes().len(), 0, "{unseen:?}");
    let moved = grown(drawn(&[[900, 800, 950], [100, 50, 200]]), drawn(&[[100, 50, 200], [900, 800, 950]]));
    assert_eq!(moved.notable_processes().len(), 1);
    let document: Value = serde_json::from_str(&json::stat_comparison(&moved)).unwrap();
    let node = &document["processes"][0]["by_node"][0];
    let mib = |mib: i64| Value::from(mib << 20);
    let bounds = (&node["change_bytes"], &node["low_bytes"], &node["high_bytes"]);
    assert_eq!(bounds, (&mib(-800), &mib(-900), &mib(-600)));
    let table = csv::stat_comparison(&moved);
    assert!(table.contains(",-838860800,-943718400,-629145600,bytes\n"), "{table}");
}

#[test]
fn services_have_the_memory_that_is_charged_to_them_by_node() {
    let mib = |mib| Bytes::from_mib(mib);
    let memory = |kinds: &[(&str, [u64; 2])]| {
        let on = |sizes: [u64; 2]| (0..).map(NodeId::new).zip(sizes.map(mib)).collect();
        kinds.iter().map(|(kind, sizes)| ((*kind).to_owned(), on(*sizes))).collect()
    };
    let group = |path: &str, seconds, cpu: u64, memory| GroupSample {
        path: path.into(),
        polled: moment(seconds),
        cpu: Some(Duration::from_secs(cpu)),
        memory,
        ..GroupSample::default()
    };
    let groups = |seconds: u64| {
        let database = [
            ("anon", [100, 300]),
            ("file", [500, 0]),
            ("shmem", [400, 0]),
            ("unevictable", [50, 0]),
            ("kernel_stack", [1, 0]),
        ];
        vec![
            group("/", seconds, 0, memory(&[("anon", [900, 900])])),
            group("/docker/\x1b[2J", seconds, 0, memory(&[("anon", [1, 1]), ("unevictable", [7, 0])])),
            group("/system.slice", seconds, 0, memory(&database)),
            group("/system.slice/=db.service", seconds, seconds * 3, memory(&database)),
            group("/system.slice/idle.service", 100, 5, memory(&[])),
        ]
    };
    let mut samples = [sample(2, 200), sample(2, 202)];
    samples[0].groups = groups(200);
    samples[1].groups = groups(202);
    let delta = Delta::between(&samples[0], &samples[1]).unwrap();
    let running = Running::new(&samples[1], &delta, Choice { services: true, ..Choice::default() });
    let text = text::stat(&running, &Style::plain(120));
    let services = running.services.as_ref().unwrap();
    let named: Vec<&str> = services.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(named, ["=db.service", "/docker/\\x1b[2J", "idle.service"], "{text}");
    let first = &services[0];
    assert_eq!((first.cpu_share, first.size()), (Some(3.0), Some(mib(901))), "parts of others are not added");
    assert_eq!(services[1].size(), Some(mib(9)), "version 1 has unevictable pages in no other kind");
    let idle = &services[2];
    assert_eq!((idle.cpu_share, idle.size()), (None, None));
    assert!(text.contains("0: 67 %, 1: 33 %") && text.contains("300 %"), "{text}");
    let document: Value = serde_json::from_str(&json::stat(&running)).unwrap();
    assert_eq!(document["services"][0]["by_node"][1]["size_bytes"], 300u64 << 20);
    assert_eq!(document["services"][0]["kind"], "service");
    assert!(document["services"][2].get("charged_bytes").is_none(), "{document}");
    let csv = csv::stat(&running);
    assert!(csv.contains(",,'=db.service,1,service_memory,314572800,bytes\n"), "{csv}");
    assert!(!text.contains('\x1b') && !csv.contains('\x1b'));
    let few = Running::new(&samples[1], &delta, Choice { services: true, top: 1, ..Choice::default() });
    let rest = |running: &Running| {
        let document: Value = serde_json::from_str(&json::stat(running)).unwrap();
        let rows = document.get("services").map(|rows| rows.as_array().unwrap().len());
        (rows, document.get("services_left_out").and_then(Value::as_u64))
    };
    assert_eq!((few.services_left_out, rest(&few)), (2, (Some(1), Some(2))));
    samples[1].groups.clear();
    let none = Running::new(&samples[1], &delta, Choice { services: true, ..Choice::default() });
    assert_eq!(rest(&none), (Some(0), Some(0)), "there are none");
    assert_eq!(rest(&Running::new(&samples[1], &delta, Choice::default())), (None, None), "no one asked");
}
