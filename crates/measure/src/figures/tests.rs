use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

use super::*;

fn read(name: &str) -> ToolFigures {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/figures").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    ToolFigures::parse(&text).expect("it is known").expect("it has figures")
}

fn parsed(text: &str) -> ToolFigures {
    ToolFigures::parse(text).expect("it is known").expect("it has figures")
}

/// The titles of the tables, each with how many figures it has.
fn titles(figures: &ToolFigures) -> Vec<(&str, usize)> {
    figures.groups.iter().map(|group| (group.title.as_str(), group.table.len())).collect()
}

fn matrix(figures: &ToolFigures, at: usize) -> &BTreeMap<(NodeId, NodeId), f64> {
    match &figures.groups[at].table {
        FigureTable::Matrix { cells, .. } => cells,
        other => panic!("{other:?}"),
    }
}

fn list(figures: &ToolFigures, at: usize) -> Vec<(&str, f64)> {
    match &figures.groups[at].table {
        FigureTable::List { figures, .. } => {
            figures.iter().map(|(name, value)| (name.as_str(), *value)).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn pair(from: u32, memory: u32) -> (NodeId, NodeId) {
    (NodeId::new(from), NodeId::new(memory))
}

#[test]
fn a_whole_output_of_mlc_is_read() {
    let figures = read("mlc-3.10-two-nodes.txt");
    assert_eq!((figures.tool, figures.version.as_deref()), (FigureTool::Mlc, Some("3.10")));
    assert_eq!(
        titles(&figures),
        [
            ("idle latency, random access", 4),
            ("bandwidth, peak injection", 5),
            ("bandwidth between nodes", 4),
            ("latency under load", 19),
            ("cache to cache", 2),
            ("cache to cache, remote socket L2->L2 HITM latency (data address homed in writer socket)", 2),
            ("cache to cache, remote socket L2->L2 HITM latency (data address homed in reader socket)", 2),
        ]
    );
    assert_eq!(matrix(&figures, 0)[&pair(0, 1)], 140.4);
    assert_eq!(list(&figures, 1)[0], ("ALL Reads", 225.6308));
    assert_eq!(list(&figures, 1)[1], ("3:1 Reads-Writes", 208.3499));
    assert_eq!(matrix(&figures, 2)[&pair(1, 0)], 34.3222);
    let FigureTable::Loaded(points) = &figures.groups[3].table else { panic!("{figures:?}") };
    assert_eq!(points[5], LoadedFigure { delay: 100, latency_ns: 119.65, gb_per_s: 181.4994 });
    assert_eq!(list(&figures, 4)[1], ("Local Socket L2->L2 HITM latency", 49.3));
    assert_eq!(matrix(&figures, 5)[&pair(1, 0)], 113.2);
    assert_eq!(figures.groups[0].notes.len(), 2, "{:?}", figures.groups[0].notes);
    assert_eq!(figures.problems, []);
}

#[test]
fn outputs_of_one_four_and_eight_nodes_are_read() {
    let one = read("mlc-3.5-one-node.txt");
    assert_eq!(one.version.as_deref(), Some("3.5"));
    assert_eq!(
        titles(&one),
        [
            ("bandwidth between nodes", 1),
            ("bandwidth, maximum", 5),
            ("idle latency", 1),
            ("idle latency", 1),
            ("cache to cache", 2),
        ]
    );
    assert_eq!(matrix(&one, 0)[&pair(0, 0)], 28.1572);
    assert!(one.groups[0].notes.contains(&"rows are sockets".to_owned()), "{one:?}");
    assert_eq!((matrix(&one, 2)[&pair(0, 0)], list(&one, 3)), (93.1, vec![("one load", 93.4)]));
    assert_eq!(one.problems, []);

    let four = read("mlc-3.11b-four-nodes.txt");
    assert_eq!(titles(&four), [("idle latency, random access", 16), ("latency under load", 6)]);
    assert!(four.groups[1].notes.contains(&"Using large pages for buffers".to_owned()), "{four:?}");
    assert_eq!(four.problems, []);

    // The last line is cut.
    let eight = read("mlc-3.11a-eight-nodes.txt");
    assert_eq!((eight.groups[0].table.len(), eight.groups[2].table.len()), (64, 56));
    let [problem] = &eight.problems[..] else { panic!("{eight:?}") };
    assert_eq!(problem.line, 39);
    assert!(problem.what.starts_with("expected a node and 8 numbers, found \"7"), "{problem}");
}

#[test]
fn stream_is_read() {
    let figures = read("stream-5.10.txt");
    assert_eq!((figures.tool, figures.version.as_deref()), (FigureTool::Stream, Some("5.10")));
    assert_eq!(list(&figures, 0), [("Copy", 8.2398), ("Scale", 8.119), ("Add", 6.1325), ("Triad", 6.1253)]);
    let notes = &figures.groups[0].notes;
    assert!(notes.contains(&"Number of Threads counted = 8".to_owned()), "{notes:?}");
    // Before 5.10 the heads were others; two runs are two tables.
    let old = "STREAM version $Revision: 5.9 $\nFunction      Rate (MB/s)   Avg time     Min time     Max time\n\
               Copy:       20000.5000       0.0016       0.0016       0.0017\n\
               Function      Rate (MB/s)   Avg time     Min time     Max time\nTriad:      10000.0000       0.0024\n";
    let old = parsed(old);
    assert_eq!(old.version.as_deref(), Some("5.9"));
    assert_eq!((list(&old, 0), list(&old, 1)), (vec![("Copy", 20.0005)], vec![("Triad", 10.0)]));
}

#[test]
fn perf_is_read() {
    let bench = read("perf-bench-mem.txt");
    assert_eq!((bench.tool, bench.version.as_deref()), (FigureTool::Perf, None));
    assert_eq!(titles(&bench), [("perf bench mem memcpy", 3)]);
    // Its GB are 2^30 bytes.
    assert_eq!(list(&bench, 0)[0], ("default", 18.581_027_1));
    let stat = read("perf-stat.txt");
    assert_eq!(titles(&stat), [("memory traffic, perf stat", 2)]);
    assert_eq!(list(&stat, 0)[0], ("uncore_imc/cas_count_read/", 0.804_035_754));
    let numa = parsed(
        "# Running 'numa/mem' benchmark:\n\n # Running main, \"perf bench numa mem -p 1\"\n\n \
         main,                          12.345, secs,           runtime-max/thread\n \
         main,                          25.500, GB/sec,         thread-speed\n \
         main,                          51.000, GB/sec,         total-speed\n",
    );
    assert_eq!(titles(&numa), [("perf bench numa mem", 2)]);
    assert_eq!(list(&numa, 0), [("thread-speed", 25.5), ("total-speed", 51.0)]);
    let quiet =
        parsed("# Running 'numa/mem' benchmark:\n 25.500 GB/sec/thread speed\n 51.000 GB/sec total speed\n");
    assert_eq!(list(&quiet, 0), [("thread speed", 25.5), ("total speed", 51.0)]);
    let by_socket = parsed(
        "Performance counter stats for 'system wide':\nS0        1           1,024.00 MiB  uncore_imc/data_reads/\n\
         S1        1      <not counted> MiB  uncore_imc/data_reads/\n 2.000000 seconds time elapsed\n",
    );
    assert_eq!(list(&by_socket, 0), [("S0 1 uncore_imc/data_reads/", 0.536_870_912)]);
}

#[test]
fn other_texts_are_not_known_and_empty_ones_are_refused() {
    for text in ["", "hello", "available: 2 nodes (0-1)", "Function foo", "# Running 'sched/pipe' benchmark:"]
    {
        assert_eq!(ToolFigures::parse(text), None, "{text}");
    }
    let refused = |text: &str| ToolFigures::parse(text).unwrap().unwrap_err().to_string();
    assert_eq!(
        refused("Intel(R) Memory Latency Checker - v3.9\n"),
        "this output of Intel Memory Latency Checker has no figure that can be read: expected a section that begins \
         with \"Measuring\", and numbers below it"
    );
    assert_eq!(
        refused("Measuring idle latencies (in ns)...\nNuma node 0 1\n 0 80.8 -1\n"),
        "this output of Intel Memory Latency Checker has no figure that can be read: line 3: expected a node and \
         numbers above 0, found \"0 80.8 -1\""
    );
    assert!(
        refused("Function Best Rate MB/s\nCopy: nan\n")
            .ends_with("line 2: expected a rate in MB/s above 0, found \"Copy: nan\"")
    );
}

#[test]
fn lines_that_cannot_be_read_are_named_and_the_rest_is_there() {
    let check = |text: &str, expected: &str| {
        let figures = parsed(&format!("Measuring idle latencies (in ns)...\nNuma node 0\n0 90\n{text}\n"));
        let found: Vec<String> = figures.problems.iter().map(ToString::to_string).collect();
        assert_eq!(found, [expected], "{text}");
        assert_eq!(matrix(&figures, 0)[&pair(0, 0)], 90.0);
    };
    check("1 90 91", "line 4: expected a node and 1 numbers, found \"1 90 91\"");
    check("1024 90", "line 4: expected a node and numbers above 0, found \"1024 90\"");
    check("1 0.0", "line 4: expected a node and numbers above 0, found \"1 0.0\"");
    check("1 1e400", "line 4: expected a node and numbers above 0, found \"1 1e400\"");
    check("Numa node 0 0", "line 4: expected each node once, found \"Numa node 0 0\"");
    check(
        "Measuring Loaded Latencies\n00000 90.1",
        "line 5: expected a delay, a latency and a bandwidth, found \"00000 90.1\"",
    );
    check(
        "Measuring Peak Injection Memory Bandwidths\nALL Reads : many",
        "line 5: expected a number above 0 behind the name, found \"ALL Reads : many\"",
    );
    check(
        "Each iteration took long",
        "line 4: expected clocks, and ns in parentheses, found \"Each iteration took long\"",
    );
}

#[test]
fn latencies_and_bandwidths_come_apart() {
    let figures = read("mlc-3.10-two-nodes.txt");
    assert_eq!(figures.only(true).unwrap().groups.len(), 5);
    assert_eq!(figures.only(false).unwrap().groups.len(), 2);
    assert_eq!(read("stream-5.10.txt").only(true), None);
}

/// A matrix as MLC prints it.
fn printed(cells: &[Vec<f64>]) -> String {
    let mut text =
        "Measuring Memory Bandwidths between nodes within system\n\t\tNuma node\nNuma node\t".to_owned();
    for node in 0..cells.len() {
        text.push_str(&format!("{node:>6}\t"));
    }
    for (node, row) in cells.iter().enumerate() {
        text.push_str(&format!("\n{node:>8}\t"));
        row.iter().for_each(|value| text.push_str(&format!("{value:.1}\t")));
    }
    text + "\n"
}

proptest! {
    #[test]
    fn a_printed_matrix_is_read_back(
        cells in (1_usize..9).prop_flat_map(|nodes| {
            proptest::collection::vec(proptest::collection::vec(1_u32..10_000_000, nodes), nodes)
        }),
        is_doubled in any::<bool>(),
    ) {
        let cells: Vec<Vec<f64>> =
            cells.iter().map(|row| row.iter().map(|value| f64::from(*value) / 10.0).collect()).collect();
        let text = printed(&cells);
        // Some logs have each line end twice.
        let text = if is_doubled { text.replace('\n', "\r\n\r\n") } else { text };
        let figures = parsed(&text);
        prop_assert_eq!(&figures.problems, &[]);
        let found = matrix(&figures, 0);
        prop_assert_eq!(found.len(), cells.len() * cells.len());
        for ((from, memory), value) in found {
            let expected = cells[from.number() as usize][memory.number() as usize] / 1e3;
            prop_assert!((value - expected).abs() <= expected * 1e-8, "{} {}", value, expected);
        }
    }

    #[test]
    fn any_text_is_survived(text in "\\PC{0,80}", head in 0_usize..6, lines in "([0-9.,\\-:GMBib/sec% \t\n]|Reads|Triad:|ns\\)){0,120}") {
        let heads = [
            "Measuring idle latencies (in ns)...\nNuma node 0 1\n",
            "Measuring Peak Injection Memory Bandwidths\n",
            "Measuring Loaded Latencies\n",
            "Function Best Rate MB/s\n",
            "# Running 'mem/memcpy' benchmark:\n",
            "Performance counter stats for x\n",
        ];
        let _ = ToolFigures::parse(&text);
        for rest in [&text, &lines] {
            let Some(Ok(figures)) = ToolFigures::parse(&format!("{}{rest}", heads[head])) else { continue };
            for group in &figures.groups {
                prop_assert!(!group.table.is_empty());
                let values: Vec<f64> = match &group.table {
                    FigureTable::Matrix { cells, .. } => cells.values().copied().collect(),
                    FigureTable::List { figures, .. } => figures.iter().map(|(_, value)| *value).collect(),
                    FigureTable::Loaded(points) => points.iter().flat_map(|of| [of.latency_ns, of.gb_per_s]).collect(),
                };
                prop_assert!(values.iter().all(|value| value.is_finite() && *value > 0.0));
            }
        }
    }
}
