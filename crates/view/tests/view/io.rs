//! Reports of devices, of files in memory and of perftest as text, JSON, lines with commas, and pictures:
//! all say the same.

use std::time::Duration;

use nodewise_machine::conditions::Conditions;
use nodewise_machine::{Bytes, CpuSet, NodeId};
use nodewise_measure::bandwidth::file::{FileReport, FileTransferReport, Operation, TmpfsLocation};
use nodewise_measure::cell::{PageKind, Placed};
use nodewise_measure::io::{Access, DeviceKind, DeviceReport, Home, IoReport, IoTransferReport};
use nodewise_measure::perftest::{Comparison, Side, Table};
use nodewise_measure::survey::figure::rounded;
use nodewise_measure::survey::{Account, CellReport, Figure, Marks};
use nodewise_stats::Interval;
use nodewise_view::svg::file::file_page;
use nodewise_view::svg::io::io_page;
use nodewise_view::svg::perftest::perftest_page;
use nodewise_view::svg::{Theme, file_svg, io_svg, perftest_svg};
use nodewise_view::{Style, csv, json, text};
use serde_json::Value;

use crate::golden::check as golden;
use crate::picture::{has_axes, tidy};

fn account() -> Account {
    let conditions = Conditions { cpu_model: Some("Example CPU 9000".to_owned()), ..Conditions::default() };
    Account { conditions, seed: 7, took: Duration::from_millis(12_500), ..Account::default() }
}

fn cell(from: u32, memory: u32, median: f64) -> CellReport {
    let interval = Some(Interval { low: rounded(median * 0.99), high: rounded(median * 1.01) });
    let placed = Placed { on_node: 4096, pages: 4096, ..Placed::default() };
    CellReport {
        from: NodeId::new(from),
        cpus: CpuSet::from([from * 8 + 1]),
        memory: NodeId::new(memory),
        pages: PageKind::Small,
        figure: Some(Figure {
            median: rounded(median),
            interval,
            best: rounded(median * 1.02),
            rounds: 9,
            samples: 45,
        }),
        refused: None,
        before: Some(placed.clone()),
        after: Some(placed),
        marks: Marks { samples: 45, ..Marks::default() },
        disturbed: false,
        again: false,
    }
}

fn device(name: &str, kind: DeviceKind, home: Home, ways: Vec<IoTransferReport>) -> DeviceReport {
    let size = (kind == DeviceKind::Block).then(|| Bytes::from_gib(256));
    DeviceReport { name: name.to_owned(), kind, home, size, refused: None, ways, perftest: Vec::new() }
}

/// A table in perftest's own form, of the sizes from 2 bytes on.
fn table(head: &str, values: &[f64]) -> Table {
    let rows =
        (1..).zip(values).map(|(power, value)| format!(" {:<10} 1000 {value:>16.2}\n", 1_u64 << power));
    Table::parse(&format!(" #bytes #iterations    {head}\n{}---\n", rows.collect::<String>()))
        .expect("it is one")
}

pub(crate) fn comparisons(sides: u32) -> Vec<Comparison> {
    let latency = |node: u32| {
        let far = 1.0 + 0.4 * f64::from(node.min(3));
        // The far side has a fall behind 32 bytes.
        let odd = if node > 0 { 2.5 } else { 1.0 };
        table("t_typical[usec]", &[1.2, 1.2, 1.25, 1.3, 1.5 * odd, 1.7, 2.0].map(|us| us * far))
    };
    let bandwidth = |_| table("BW average[Gb/sec]", &[0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.1]);
    let side =
        |node: u32, table| Side { label: format!("node {node}"), node: Some(NodeId::new(node)), table };
    let all = (0..sides).map(|node| side(node, latency(node)));
    Comparison::from_sides(all.chain((0..sides).map(|node| side(node, bandwidth(node)))).collect())
}

/// A disk, one that went away, a file system without direct I/O, a network interface and an RDMA device.
pub(crate) fn report(nodes: u32) -> IoReport {
    let of = |memory: u32| {
        let far = if memory == 0 { 1.0 } else { 1.3 };
        let way = |access, median| IoTransferReport { access, cell: cell(0, memory, median) };
        [way(Access::Sequential, 6.25 / far), way(Access::Random, 84.0 * far)]
    };
    let ways: Vec<IoTransferReport> = (0..nodes).flat_map(of).collect();
    let mut gone = ways.clone();
    for way in &mut gone {
        way.cell.figure = None;
        way.cell.refused = Some("/dev/sdb cannot be read: no such device".to_owned());
    }
    let on = |node| Home::Node(NodeId::new(node));
    let unknown = Home::Unknown("the kernel does not know the node of net:eth1".to_owned());
    let mut rdma = device("ib:mlx5_2", DeviceKind::Rdma, on(0), Vec::new());
    rdma.perftest = comparisons(nodes);
    let mut none = device("/tmp/a.file", DeviceKind::File, on(0), Vec::new());
    none.refused = Some("/tmp/a.file lies on a file system without direct I/O".to_owned());
    IoReport {
        account: account(),
        size: Bytes::from_mib(16),
        devices: vec![
            device("block:nvme0n1", DeviceKind::Block, on(0), ways),
            device("block:sdb", DeviceKind::Block, on(1), gone),
            none,
            device("net:eth1", DeviceKind::Network, unknown, Vec::new()),
            rdma,
        ],
    }
}

/// Files on this many nodes.
pub(crate) fn files(nodes: u32) -> FileReport {
    let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |memory| (from, memory)));
    let of = |(from, memory): (u32, u32)| {
        let far = if from == memory { 1.0 } else { 1.25 };
        let rate = |operation| match operation {
            Operation::Write => 2.0 / far,
            Operation::Rewrite => 6.0 / far,
            Operation::Read => 8.0 / far,
        };
        let way =
            move |operation| FileTransferReport { operation, cell: cell(from, memory, rate(operation)) };
        Operation::ALL.map(way)
    };
    let mut report = FileReport {
        account: account(),
        size: Bytes::from_mib(256),
        place: TmpfsLocation::Folder("/dev/shm".into()),
        ways: pairs.flat_map(of).collect(),
    };
    report.ways[0].cell.disturbed = true;
    if let Some(last) = report.ways.last_mut() {
        last.cell.figure = None;
        last.cell.refused =
            Some("/dev/shm has 10 MiB free, 256 MiB are needed: try a smaller --size".to_owned());
    }
    report
}

#[test]
fn texts_are_what_a_person_accepted() {
    golden("io-2-nodes", text::io(&report(2), &Style::plain(80)));
    golden("io-60", text::io(&report(2), &Style::plain(60)));
    golden("file-2-nodes", text::file(&files(2), &Style::plain(80)));
    golden("perftest-2-sides", text::perftest(&comparisons(2), &Style::plain(80)));
    golden("perftest-8-sides-60", text::perftest(&comparisons(8), &Style::plain(60)));
}

#[test]
fn texts_fit_their_width() {
    for width in [60, 80, 120] {
        let style = Style::plain(width);
        let mut texts: Vec<String> = [1, 2, 8].map(|nodes| text::io(&report(nodes), &style)).to_vec();
        texts.extend([1, 2, 8].map(|nodes| text::file(&files(nodes), &style)));
        texts.extend([1, 2, 24].map(|sides| text::perftest(&comparisons(sides), &style)));
        for line in texts.iter().flat_map(|text| text.lines()) {
            assert!(line.chars().count() <= width, "in {width} columns: {line}");
        }
    }
}

#[test]
fn a_label_from_outside_is_shortened_and_cannot_drive_a_terminal() {
    let label = format!("near\x1b[2J{}", "x".repeat(500));
    let side = Side { label, node: None, table: table("t_typical[usec]", &[1.0, 1.1]) };
    let comparisons = Comparison::from_sides(vec![side.clone(), side]);
    let written = text::perftest(&comparisons, &Style::plain(60));
    assert!(!written.contains('\x1b') && !csv::perftest(&comparisons).contains('\x1b'));
    assert!(written.lines().all(|line| line.chars().count() <= 60), "{written}");
    roxmltree::Document::parse(&perftest_svg(&comparisons, Theme::Auto)).unwrap();
    tidy(&perftest_page(&comparisons)).unwrap();
}

#[test]
fn text_csv_and_json_have_the_same_devices() {
    let report = report(2);
    let document: Value = serde_json::from_str(&json::io(&report)).unwrap();
    let (lines, wide) = (csv::io(&report), text::io(&report, &Style::plain(200)));
    let devices = document["devices"].as_array().unwrap();
    let reads = devices.iter().flat_map(|device| device["reads"].as_array().unwrap());
    // A device that was not read has a line too.
    let alone = devices.iter().filter(|device| device["reads"].as_array().unwrap().is_empty()).count();
    assert_eq!(reads.clone().count() + alone + 1, lines.lines().count());
    let columns = lines.lines().next().unwrap().split(',').count();
    assert!(lines.lines().all(|line| line.split(',').count() == columns), "{lines}");
    for read in reads.filter(|read| read["refused"].is_null()) {
        let sequential = read["access"] == "sequential";
        let median = if sequential { &read["median_gb_per_s"] } else { &read["median_us"] };
        let median = median.as_f64().unwrap();
        assert!(lines.contains(&format!(",{median},")), "{median}: {lines}");
        let shown = if median >= 100.0 { format!("{median:.0}") } else { format!("{median:.1}") };
        assert!(wide.contains(&shown), "{shown}: {wide}");
    }
    for device in devices {
        assert!(wide.contains(device["name"].as_str().unwrap()), "{wide}");
        let why = device["refused"].as_str().or(device["node_unknown"].as_str()).unwrap_or_default();
        assert!(wide.contains(why), "{why}: {wide}");
    }
    assert_eq!(document["devices"][0]["node"], 0);
    assert_eq!(document["devices"][4]["perftest"][0]["sides"][1]["memory_node"], 1);
    for finding in document["findings"].as_array().unwrap() {
        assert!(wide.contains(finding.as_str().unwrap()), "{finding}: {wide}");
    }
}

#[test]
fn text_csv_and_json_have_the_same_files() {
    let report = files(2);
    let document: Value = serde_json::from_str(&json::file(&report)).unwrap();
    let (lines, wide) = (csv::file(&report), text::file(&report, &Style::plain(200)));
    let files = document["files"].as_array().unwrap();
    assert_eq!((files.len(), lines.lines().count()), (12, 13));
    assert_eq!(document["folder"], "/dev/shm");
    for (file, line) in files.iter().zip(lines.lines().skip(1)) {
        let (from, memory) = (&file["from_node"], &file["memory_node"]);
        assert!(line.starts_with(&format!("{},{from},", file["operation"].as_str().unwrap())), "{line}");
        match file["median_gb_per_s"].as_f64() {
            Some(median) => {
                assert!(line.contains(&format!(",{memory},small,{median},")), "{line}");
                assert!(wide.contains(&format!("{median:.2}")), "{median}: {wide}");
            }
            None => assert!(wide.contains(file["refused"].as_str().unwrap()), "{wide}"),
        }
    }
    for finding in document["findings"].as_array().unwrap() {
        assert!(wide.contains(finding.as_str().unwrap()), "{finding}: {wide}");
    }
}

#[test]
fn text_csv_and_json_have_the_same_tables_of_perftest() {
    let comparisons = comparisons(3);
    let document: Value = serde_json::from_str(&json::perftest(&comparisons)).unwrap();
    let (lines, wide) = (csv::perftest(&comparisons), text::perftest(&comparisons, &Style::plain(200)));
    let sides: Vec<&Value> = document["tables"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|table| table["sides"].as_array().unwrap())
        .collect();
    let rows: usize = sides.iter().map(|side| side["rows"].as_array().unwrap().len()).sum();
    assert_eq!((sides.len(), rows + 1), (6, lines.lines().count()));
    for side in &sides {
        for kink in side["kinks"].as_array().unwrap() {
            let line = format!(
                "latency,{},{},{},",
                side["label"].as_str().unwrap(),
                side["memory_node"],
                kink["size_bytes"]
            );
            let line = lines.lines().find(|of| of.starts_with(&line)).unwrap();
            assert!(line.ends_with(",true"), "{line}");
        }
    }
    assert_eq!(sides[0]["kinks"].as_array().unwrap().len(), 0);
    assert_eq!(sides[1]["kinks"][0]["falls"], true);
    for table in document["tables"].as_array().unwrap() {
        for finding in table["findings"].as_array().unwrap() {
            assert!(wide.contains(finding.as_str().unwrap()), "{finding}: {wide}");
        }
    }
}

#[test]
fn pictures_end_as_their_texts_do() {
    let check = |text: &str, svg: &str| {
        let document = roxmltree::Document::parse(svg).unwrap();
        let labels = document.descendants().filter(|node| node.has_tag_name("text"));
        // Where a line ends there need be no blank.
        let words = |text: &str| text.split_whitespace().collect::<String>();
        let shown = words(&labels.filter_map(|label| label.text()).collect::<Vec<_>>().join(" "));
        let end: Vec<&str> = text.lines().skip_while(|line| *line != "How").collect();
        assert!(end.contains(&"Not measured") && end.contains(&"Findings"), "{text}");
        for line in end.iter().filter(|line| line.starts_with(' ')) {
            assert!(shown.contains(&words(line)), "{line}");
        }
    };
    let wide = Style::plain(1000);
    check(&text::io(&report(2), &wide), &io_svg(&report(2), Theme::Light));
    check(&text::file(&files(2), &wide), &file_svg(&files(2), Theme::Light));
}

#[test]
fn pictures_are_tidy_and_well_formed() {
    for nodes in [1, 2, 8, 16] {
        tidy(&io_page(&report(nodes))).unwrap_or_else(|error| panic!("io, {nodes} nodes: {error}"));
        tidy(&file_page(&files(nodes))).unwrap_or_else(|error| panic!("files, {nodes} nodes: {error}"));
        tidy(&perftest_page(&comparisons(nodes)))
            .unwrap_or_else(|error| panic!("perftest, {nodes}: {error}"));
    }
    let svgs = [
        io_svg(&report(2), Theme::Auto),
        file_svg(&files(8), Theme::Dark),
        perftest_svg(&comparisons(2), Theme::Light),
    ];
    for svg in &svgs {
        roxmltree::Document::parse(svg).unwrap();
    }
    has_axes(&svgs[0], &["node of the device", "other node"]);
    let [latency, bandwidth] = ["latency, us one way", "bandwidth, Gbit/s"];
    has_axes(&svgs[2], &[latency, bandwidth, "message size, bytes", "1", "2", "5"]);
}
