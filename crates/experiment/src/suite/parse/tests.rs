use super::*;
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

const SUITE: &str = r#"
title = "two things"

[[input]]
name = "text"
kind = "text"
size = "64M"
seed = 7

[[benchmark]]
name = "xz"
command = "xz -T{threads} -c {inputs}/text > out"
prepare-each = "rm -f out"
threads = [1, "all"]
needs = { xz = "xz-utils" }
timeout = "2m"

[[benchmark]]
name = "hash"
about = "no   traffic"
command = "openssl speed"
metric = "rate: ([0-9.]+)"
unit = "MB/s"
better = "higher"
memory-traffic = false
needs = { openssl = "openssl", geek = "https://example.org/" }
"#;

/// Reads the suite above with one of its parts replaced.
fn check(part: &str, replacement: &str, expected: &str) {
    assert!(SUITE.contains(part), "{part} is not in the suite");
    let error = parse(&SUITE.replace(part, replacement)).unwrap_err();
    assert_eq!(format!("line {}: {}", error.line, error.what), expected);
}

#[test]
fn a_suite_is_read_with_all_it_says() {
    let suite = parse(SUITE).unwrap();
    assert_eq!(suite.title, "two things");
    let text = Content::Text { size: Bytes::from_mib(64) };
    assert_eq!(suite.inputs, [Input { name: "text".to_owned(), content: text, seed: 7 }]);
    let [xz, hash] = &suite.benchmarks[..] else { panic!("{suite:?}") };
    assert_eq!(xz.metric, Gauge::wall());
    assert_eq!(xz.threads, [Threads::Count(1), Threads::All]);
    assert_eq!(xz.timeout, Duration::from_secs(120));
    assert_eq!(xz.prepare_each.as_ref().map(Command::text), Some("rm -f out"));
    assert!(xz.memory_traffic && !hash.memory_traffic);
    assert_eq!(hash.about.as_deref(), Some("no traffic"));
    assert_eq!(hash.threads, [Threads::All]);
    assert_eq!((hash.metric.unit.as_str(), hash.metric.direction()), ("MB/s", Direction::HigherIsBetter));
    assert_eq!(hash.needs[1].origin, Origin::Package("openssl".to_owned()));
    assert_eq!(hash.needs[0].origin, Origin::Address("https://example.org/".to_owned()));
}

#[test]
fn unknown_keys_are_named_with_their_line() {
    let error = parse(&SUITE.replace("prepare-each", "prepare-every")).unwrap_err();
    assert_eq!(error.line, 13);
    assert!(error.what.starts_with("unknown field `prepare-every`, expected one of `name`"), "{error}");
    let error = parse("title = 3").unwrap_err();
    assert!(
        error.to_string().starts_with("line 1, column 9: invalid type: integer `3`, expected a string"),
        "{error}"
    );
}

#[test]
fn what_is_wrong_is_told_with_what_would_be_right() {
    check(
        "unit = \"MB/s\"\nbetter = \"higher\"",
        "",
        "line 22: a number that is printed needs better = \"higher\" or better = \"lower\"",
    );
    check("\"higher\"", "\"more\"", "line 24: better is \"more\": expected \"higher\" or \"lower\"");
    check(
        "rate: ([0-9.]+)",
        "rate",
        "line 22: \"rate\" has 0 groups: expected one around the number, as in \"rate: ([0-9.]+)\"",
    );
    check(
        "\"2m\"",
        "\"2 m\"",
        "line 16: \"2 m\" is not a time: expected seconds, or a number with ms, s, m or h as in 10m",
    );
    check("\"2m\"", "\"25h\"", "line 16: \"25h\" is out of range: expected at most 24h");
    check("[1, ", "[0, ", "line 14: 0 is not a number of threads: expected 1 to 8192");
    check(
        "\"all\"",
        "\"most\"",
        "line 14: \"most\" is not a number of threads: expected a number or \"all\"",
    );
    check("[1, \"all\"]", "[]", "line 14: expected 1 to 100 numbers of threads, as threads = [1, \"all\"]");
    check(
        "{threads}",
        "2",
        "line 12: it runs with several numbers of threads, but the command has no {threads}",
    );
    check("{inputs}/text", "{inputs}/test", "line 12: there is no [[input]] with the name \"test\"");
    check(
        "xz = \"xz-utils\"",
        "xz = \"-o evil\"",
        "line 15: \"-o evil\" is not a Debian package: expected its name, or an address that begins with https://",
    );
    check("name = \"hash\"", "name = \"xz\"", "line 19: two benchmarks are called \"xz\"");
    check(
        "\"text\"\nsize",
        "\"random\"\nsize",
        "line 6: \"random\" is not a kind of input: expected text or c",
    );
    check("size = \"64M\"", "", "line 6: a text needs a size, as size = \"64M\"");
    check(
        "\"64M\"",
        "\"64X\"",
        "line 7: size: \"64X\" is not a size: expected a number of bytes, or one with K, M, G or T as in 512M",
    );
    check(
        "name = \"text\"",
        "name = \"../text\"",
        "line 5: \"../text\" is not a name of an input: expected letters, digits, _ and -",
    );
    check(
        "name = \"hash\"",
        "name = \"a\\u001b[2Jb\"",
        "line 19: \"a\\x1b[2Jb\" is not a name: expected 1 to 40 printable letters",
    );
}

#[test]
fn a_suite_without_benchmarks_and_a_huge_one_are_refused() {
    let error = parse("title = \"nothing\"").unwrap_err();
    assert_eq!(error.to_string(), "line 1, column 1: the suite has no benchmark: expected a [[benchmark]]");
    let error = parse(&" ".repeat(MOST_BYTES + 1)).unwrap_err();
    assert_eq!(error.to_string(), "line 1, column 1: the file is larger than 1048576 bytes");
    let many = "[[benchmark]]\nname = \"a\"\ncommand = \"b\"\n".repeat(101);
    let error = parse(&format!("title = \"many\"\n{many}")).unwrap_err();
    assert_eq!(error.to_string(), "line 1, column 1: a suite has at most 100 benchmarks and 100 inputs");
    assert!(parse(&format!("title = {}1", "[".repeat(100_000))).is_err());
}

#[test]
fn of_time_less_is_better() {
    let suite = |rest: &str| {
        parse(&format!("title = \"t\"\n[[benchmark]]\nname = \"a\"\ncommand = \"true\"\n{rest}"))
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert_eq!(suite("better = \"lower\"\nunit = \"s\""), Ok(()));
    let refused = |rest| suite(rest).unwrap_err();
    assert!(refused("better = \"higher\"").starts_with("line 5, column 10: of time less is better"));
    assert!(refused("unit = \"ms\"").starts_with("line 5, column 8: time is in s"));
}

proptest! {
    #[test]
    fn any_text_is_survived(text in any::<String>()) {
        let _ = parse(&text);
        let _ = parse(&format!("title = \"t\"\n[[benchmark]]\n{text}"));
    }

    #[test]
    fn any_part_may_be_missing_or_doubled(cut in 0usize..SUITE.len(), end in 0usize..SUITE.len()) {
        let kept = [&SUITE[..cut], &SUITE[end..]].concat();
        if let Err(error) = parse(&kept) {
            prop_assert!(error.line >= 1 && error.line <= kept.lines().count() + 1, "{error}");
            prop_assert!(printable(&error.what) == error.what);
        }
    }

    #[test]
    fn what_is_written_is_read(
        names in prop::collection::btree_set("[a-z]{1,8}( [a-z]{1,8})?", 1..6), count in 1u32..64, limit in 1u64..600,
    ) {
        let benchmarks: String = names.iter().map(|name| format!(
            "[[benchmark]]\nname = '{name}'\ncommand = 'run {{threads}}'\nthreads = [{count}]\ntimeout = '{limit}s'\n"
        )).collect();
        let suite = parse(&format!("title = 'drawn'\n{benchmarks}")).unwrap();
        let mut found: Vec<String> = suite.benchmarks.iter().map(|one| one.name.clone()).collect();
        found.sort_unstable();
        prop_assert_eq!(found, names.into_iter().collect::<Vec<_>>());
        for one in &suite.benchmarks {
            prop_assert_eq!(&one.threads[..], [Threads::Count(count)]);
            prop_assert_eq!(one.timeout, Duration::from_secs(limit));
        }
    }
}
