use proptest::prelude::{any, prop, prop_assert, proptest};

use super::*;

const TWO: &str = "available: 2 nodes (0,2)\n\
                   node 0 cpus: 0 1 4\n\
                   node 0 size: 128835 MB\n\
                   node 0 free: 48997 MB\n\
                   node 2 cpus:\n\
                   node 2 size: <not available>\n\
                   node 2 free: <not available>\n\
                   node distances:\n\
                   node   0   2 \n  0:  10  21 \n  2:  21  10 \n";

fn n(number: u32) -> NodeId {
    NodeId::new(number)
}

#[test]
fn an_output_is_read_with_its_prompt_and_line_ends_of_other_systems() {
    let mut expected = Hardware { distances: vec![vec![10, 21], vec![21, 10]], ..Hardware::default() };
    expected.nodes.insert(
        n(0),
        HardwareNode {
            cpus: "0-1,4".parse().unwrap(),
            size: Some(Bytes::from_mib(128_835)),
            free: Some(Bytes::from_mib(48_997)),
        },
    );
    expected.nodes.insert(n(2), HardwareNode::default());
    for text in [TWO.to_owned(), format!("[root@db1 ~]# numactl -H\n{TWO}\n"), TWO.replace('\n', "\r\n")] {
        assert!(is_numactl_hardware(&text), "{text}");
        assert_eq!(parse(&text).as_ref(), Ok(&expected), "{text}");
    }
    let compressed = TWO.replace("0 1 4", "0-1,4 (3)");
    assert_eq!(parse(&compressed), Ok(expected));
    let flat =
        "available: 1 nodes (0)\nnode 0 cpus: 0\nnode 0 size: 64 MB\nNo distance information available.\n";
    assert_eq!(parse(flat).unwrap().distances, Vec::<Vec<u32>>::new());
}

#[test]
fn a_line_that_is_not_numactls_is_named_with_what_was_expected() {
    let check = |from: &str, to: &str, line: u32, sentence: &str| {
        let error = parse(&TWO.replacen(from, to, 1)).unwrap_err();
        assert_eq!((error.line, error.sentence().as_str()), (line, sentence), "{to}");
    };
    check("0 1 4", "0 x", 2, "expected numbers of CPUs, found \"node 0 cpus: 0 x\"");
    check(
        "48997 MB",
        "-1 MB",
        4,
        "expected a number of MB, or <not available>, found \"node 0 free: -1 MB\"",
    );
    check(
        "48997 MB",
        "99999999999999999 MB",
        4,
        "expected a number of MB, or <not available>, found \"node 0 free: 99999999999999999 MB\"",
    );
    check("node 2 cpus", "node 7 cpus", 5, "expected one of the nodes 0,2, found \"node 7 cpus:\"");
    check("(0,2)", "(0-x)", 1, "expected a list of nodes such as (0-3), found \"available: 2 nodes (0-x)\"");
    check("(0,2)", "(0,2-3)", 9, "expected the nodes 0,2-3, one column each, found \"node   0   2\"");
    check("2:  21  10", "2:  21", 11, "expected node 2, a colon and 2 distances, found \"2:  21\"");
    check("  2:  21  10 \n", "", 10, "expected 2 rows of distances, found nothing");
    check(
        "node 2 cpus:\nnode 2 size: <not available>\nnode 2 free: <not available>\n",
        "",
        8,
        "expected the lines of node 2, which the first one announces, found nothing",
    );
    assert_eq!(parse("").unwrap_err().line, 1);
    assert!(!is_numactl_hardware("hello\navailable: 1 nodes (0)\n"));
}

#[test]
fn every_output_of_the_corpus_is_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/numactl-H");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let read = parse(&text).unwrap();
        let lines = text.lines().filter(|line| line.contains("cpus:")).count();
        assert_eq!((read.nodes.len(), is_numactl_hardware(&text)), (lines, true), "{text}");
        count += 1;
    }
    assert!(count > 10);
}

proptest! {
    #[test]
    fn any_text_is_survived(text in any::<String>(), cut in any::<prop::sample::Index>(), word in "[a-z0-9:()<>, -]{0,12}") {
        let _ = parse(&text);
        let cut = cut.index(TWO.len());
        let changed = format!("{}{word}{}", &TWO[..cut], &TWO[cut..]);
        let lines = changed.lines().count();
        if let Err(error) = parse(&changed) {
            prop_assert!(error.line as usize <= lines.max(1), "{error:?}");
        }
    }
}
