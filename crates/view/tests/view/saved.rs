//! Documents that are read back: what was written is written again to the letter, and what is not a result is
//! refused with the field and what would be right.

use nodewise_measure::perftest::{Comparison, Side, Table};
use nodewise_measure::survey::Marks;
use nodewise_view::json::{self, Saved};
use nodewise_view::svg::{Theme, io_svg};
use nodewise_view::{Style, csv, text};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use serde_json::{Value, json};

use crate::bandwidth::{cores, report, troubled, with_peaks};
use crate::io::{comparisons, files, report as devices};

/// Reads a document and writes it again.
fn again(document: &str) -> Result<String, String> {
    let saved = Saved::from_json(document)?;
    match saved.schema() {
        schema if json::bandwidth::READ.contains(&schema) => {
            json::bandwidth::read(&saved).map(|report| json::bandwidth(&report))
        }
        schema if json::file::READ.contains(&schema) => {
            json::file::read(&saved).map(|report| json::file(&report))
        }
        schema if json::io::READ.contains(&schema) => json::io::read(&saved).map(|report| json::io(&report)),
        json::perftest::SCHEMA => json::perftest::read(&saved).map(|tables| json::perftest(&tables)),
        _ => json::c2c::read(&saved).map(|report| json::c2c(&report)),
    }
}

#[test]
fn a_document_is_written_again_to_the_letter() {
    let mut pairs = cores(8);
    pairs.pairs[1].figure = None;
    pairs.pairs[1].refused = Some("CPU 7 is not online, or not allowed to this process any more".to_owned());
    pairs.pairs[1].after = None;
    let bandwidths = [report(1), report(8), troubled(), with_peaks(4)].map(|report| json::bandwidth(&report));
    let others = [json::file(&files(2)), json::c2c(&pairs), json::perftest(&comparisons(3))];
    let disks = [1, 8].map(|nodes| json::io(&devices(nodes)));
    for document in bandwidths.into_iter().chain(others).chain(disks) {
        assert_eq!(again(&document).as_ref(), Ok(&document));
    }
}

#[test]
fn every_form_of_what_was_read_is_that_of_what_was_measured() {
    let style = Style::plain(80);
    let measured = troubled();
    let document = json::bandwidth(&measured);
    let read = json::bandwidth::read(&Saved::from_json(&document).unwrap()).unwrap();
    assert_eq!(text::bandwidth(&read, &style), text::bandwidth(&measured, &style));
    assert_eq!(csv::bandwidth(&read), csv::bandwidth(&measured));
    let measured = cores(8);
    let document = json::c2c(&measured);
    let read = json::c2c::read(&Saved::from_json(&document).unwrap()).unwrap();
    assert_eq!(text::c2c(&read, &style), text::c2c(&measured, &style));
    assert_eq!(read, measured);
    let measured = devices(3);
    let document = json::io(&measured);
    let read = json::io::read(&Saved::from_json(&document).unwrap()).unwrap();
    assert_eq!(text::io(&read, &style), text::io(&measured, &style));
    assert_eq!(csv::io(&read), csv::io(&measured));
    assert_eq!(io_svg(&read, Theme::Auto), io_svg(&measured, Theme::Auto));
    assert_eq!(read, measured);
    let document = json::perftest(&comparisons(3));
    assert_eq!(json::perftest::read(&Saved::from_json(&document).unwrap()), Ok(comparisons(3)));
}

/// A document as version 1 had it: with the number of disturbed samples alone.
fn of_version_1(document: &str) -> String {
    fn simplify(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if let Some(marks) = fields.get_mut("disturbed_samples") {
                    *marks = marks["any"].clone();
                }
                fields.values_mut().for_each(simplify);
            }
            Value::Array(items) => items.iter_mut().for_each(simplify),
            _ => {}
        }
    }
    let mut value: Value = serde_json::from_str(document).expect("a document is JSON");
    simplify(&mut value);
    let schema = value["schema"].as_str().expect("a document has a schema").replace("/2", "/1");
    value["schema"] = schema.into();
    value.to_string()
}

#[test]
fn documents_of_version_1_are_read_with_the_number_of_disturbed_samples() {
    let marks = Marks { stolen: 2, slower: 1, disturbed: 3, samples: 45, ..Marks::default() };
    let (mut rates, mut disks, mut tmpfs) = (report(2), devices(2), files(2));
    rates.matrix[0].cell.marks = marks;
    disks.devices[0].ways[0].cell.marks = marks;
    tmpfs.ways[0].cell.marks = marks;
    for (document, cell) in [
        (json::bandwidth(&rates), "/matrix/0"),
        (json::io(&disks), "/devices/0/reads/0"),
        (json::file(&tmpfs), "/files/0"),
    ] {
        let marks = |document: &str| {
            let value: Value = serde_json::from_str(document).unwrap();
            value.pointer(cell).unwrap()["disturbed_samples"].clone()
        };
        let written = |stolen: u32, slower: u32, of: &Value| {
            json!({
                "stolen": stolen, "switched": 0, "faulted": 0, "slower": slower, "any": 3, "of": of
            })
        };
        assert_eq!(marks(&document), written(2, 1, &json!(45)), "{cell}");
        let old = of_version_1(&document);
        assert_eq!(marks(&old), 3, "{cell}");
        let read = again(&old).unwrap();
        let samples = serde_json::from_str::<Value>(&old).unwrap().pointer(cell).unwrap()["samples"].clone();
        assert_eq!(marks(&read), written(0, 0, &samples), "{cell}");
        let wrong = old.replace("\"disturbed_samples\":3", "\"disturbed_samples\":\"3\"");
        let expected = "disturbed_samples is neither an object nor, as in version 1, a number";
        assert!(again(&wrong).unwrap_err().contains(expected), "{cell}");
    }
}

#[test]
fn rates_of_perftest_in_its_older_unit_are_read_back() {
    let text =
        " #bytes #iterations BW peak[MB/sec] BW average[MB/sec]\n 2 1000 6.41 6.13\n 4 1000 13.33 0.00\n";
    let side = |label: &str| Side { label: label.to_owned(), node: None, table: Table::parse(text).unwrap() };
    let measured = Comparison::from_sides(vec![side("near"), side("far")]);
    let document = json::perftest(&measured);
    assert_eq!(json::perftest::read(&Saved::from_json(&document).unwrap()), Ok(measured));
}

#[test]
fn a_result_of_devices_is_refused_with_the_field_and_what_would_be_right() {
    let document = json::io(&devices(2));
    let check = |from: &str, to: &str, expected: &str| {
        assert!(document.contains(from), "{from}");
        let refused = again(&document.replacen(from, to, 1)).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    };
    check("io/2", "io/9", "its schema is \"nodewise.io/9\": expected nodewise.c2c/1");
    check(
        "\"kind\": \"block\"",
        "\"kind\": \"\\u001b[2J\"",
        "devices[0]: kind is \"\\x1b[2J\": expected block, file",
    );
    check("\"node\": 0", "\"node\": 4000000000", "devices[0]: node 4000000000 is beyond");
    check("\"node\": 0", "\"knot\": 0", "devices[0]: expected either node or node_unknown");
    check(
        "\"access\": \"sequential\"",
        "\"access\": \"fast\"",
        "devices[0]: reads[0]: access is \"fast\": expected sequential, random",
    );
    check("\"median_us\": 84.0", "\"median_us\": -1", "reads[1]: median_us is -1: expected a number above 0");
    check("\"median_us\"", "\"medium\"", "devices[0]: reads[1]: median_us is missing");
    check("\"buffer_bytes\": 16777216", "\"buffer_bytes\": -1", "invalid value");
    let of_tables = "devices[4]: perftest[0]: ";
    let rate = format!("{of_tables}sides[0]: rows[0]: typical_us is 1e300: expected a number from 1e-9");
    check("\"typical_us\": 1.2", "\"typical_us\": 1e300", &rate);
    check("\"kind\": \"latency\"", "\"kind\": \"weight\"", &format!("{of_tables}kind is \"weight\""));
    check("\"size_bytes\": 4,", "\"size_bytes\": 2,", "sides[0]: rows has two of 2 bytes: expected one");
    let none = document.replace("typical_us", "hours");
    let refused = again(&none).unwrap_err();
    let expected = "rows has none with a value to compare: expected typical_us or average_us";
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn what_is_no_result_is_refused_with_the_field_and_what_would_be_right() {
    let check = |document: &str, from: &str, to: &str, expected: &str| {
        assert!(document.contains(from), "{from}");
        let refused = again(&document.replacen(from, to, 1)).unwrap_err();
        assert!(refused.contains(expected), "{refused}");
    };
    let rates = json::bandwidth(&report(1));
    let of_rates = |from: &str, to: &str, expected: &str| check(&rates, from, to, expected);
    of_rates("bandwidth/2", "tune/1", "its schema is \"nodewise.tune/1\": expected nodewise.c2c/1");
    of_rates("\"schema\"", "\"scheme\"", "missing field `schema`");
    of_rates("\"kernel\": \"read\"", "\"kernel\": \"raed\"", "\"raed\" is not a kernel");
    of_rates("\"threads\": 8", "\"threads\": 0", "matrix[0]: threads is 0: expected 1 to ");
    of_rates(
        "\"median_gb_per_s\": 73.0",
        "\"median_gb_per_s\": 1e300",
        "matrix[0]: median_gb_per_s is 1e300: expected a number from 1e-9 to 1e15",
    );
    of_rates("\"median_gb_per_s\"", "\"medium\"", "matrix[0]: median_gb_per_s is missing");
    of_rates("\"cpus\": \"0-7\"", "\"cpus\": \"0-\"", "matrix[0]: cpus: ");
    of_rates("\"took_s\": 41.5", "\"took_s\": 1e18", "took_s is 1000000000000000000: expected a time");
    of_rates("\"distance\": 10", "\"distance\": -10", "invalid value");
    of_rates("\"matrix\": [", "\"matrix\": [3,", "invalid type: integer `3`");
    let peaks = json::bandwidth(&with_peaks(2));
    let of_peaks = |from: &str, to: &str, expected: &str| check(&peaks, from, to, expected);
    of_peaks(
        "\"count\": 4",
        "\"count\": 0",
        "peak.nodes[0]: channels: expected numbers above 0 that memory can have",
    );
    of_peaks("\"mt_per_s\": 3200", "\"mt_per_s\": 4000000000", "peak.nodes[0]: channels: expected numbers");
    of_peaks("\"channels\"", "\"canals\"", "peak.nodes[0]: expected either channels or unknown");
    of_peaks("\"sockets\": 2", "\"sockets\": 0", "peak.sockets is 0: expected 1 or more");
    let pairs = json::c2c(&cores(2));
    let of_pairs = |from: &str, to: &str, expected: &str| check(&pairs, from, to, expected);
    of_pairs("\"to_cpu\": 0", "\"to_cpu\": 4000000000", "pairs[0]: to_cpu is 4000000000: expected a number");
    of_pairs("\"home_node\": 0", "\"home_node\": 4000000000", "pairs[0]: node 4000000000 is beyond");
    // The first of each is in a group, which is not read.
    let second = |field: &str| pairs.match_indices(field).last().unwrap().0;
    for (field, word, expected) in [
        (
            "\"transfer\": \"clean\"",
            "\"transfer\": \"ping\"",
            "transfer is \"ping\": expected hand-over, dirty",
        ),
        ("\"home\": \"near\"", "\"home\": \"here\"", "home is \"here\": expected near, far, elsewhere"),
        ("\"relation\": \"cache\"", "\"relation\": \"town\"", "relation is \"town\": expected core, cluster"),
    ] {
        let at = second(field);
        let wrong = format!("{}{word}{}", &pairs[..at], &pairs[at + field.len()..]);
        let refused = again(&wrong).unwrap_err();
        assert!(refused.starts_with("pairs[") && refused.contains(expected), "{refused}");
    }
    check(
        &json::file(&files(1)),
        "\"operation\": \"write\"",
        "\"operation\": \"erase\"",
        "files[0]: operation is \"erase\": expected write, rewrite, read",
    );
}

#[test]
fn words_from_a_document_cannot_drive_a_terminal() {
    let document = json::bandwidth(&report(1)).replace("AVX2, 2 streams", "\\u001b[2J");
    let read = json::bandwidth::read(&Saved::from_json(&document).unwrap()).unwrap();
    for shown in [text::bandwidth(&read, &Style::plain(80)), csv::bandwidth(&read)] {
        assert!(!shown.contains('\x1b'), "{shown}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_figures_are_read_back(
        rates in proptest::collection::vec(1e-9..1e15_f64, 40), disturbed in any::<bool>(), words in ".{0,20}",
    ) {
        let mut report = report(2);
        let cells = report.matrix.iter_mut().chain(&mut report.kernels).chain(&mut report.scaling);
        for (way, rate) in cells.zip(rates) {
            way.cell.disturbed = disturbed;
            way.variant = Some(words.clone());
            if let Some(figure) = &mut way.cell.figure {
                (figure.median, figure.best, figure.interval) = (rate, rate, None);
            }
        }
        report.account.conditions.load = Some(1.0 / 3.0);
        let first = again(&json::bandwidth(&report)).unwrap();
        prop_assert_eq!(again(&first), Ok(first));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        prop_assert!(again(&text).is_err());
    }

    #[test]
    fn a_cut_or_changed_document_is_read_or_refused(share in 0.0..0.999_f64, byte in any::<u8>()) {
        let devices = [json::io(&devices(1)), json::perftest(&comparisons(1))];
        let others = [json::bandwidth(&with_peaks(2)), json::c2c(&cores(2)), json::file(&files(1))];
        for whole in others.into_iter().chain(devices) {
            let at = (whole.trim_end().len() as f64 * share) as usize;
            prop_assert!(again(&whole[..at]).is_err());
            let mut changed = whole.into_bytes();
            changed[at] = byte;
            if let Ok(Ok(first)) = String::from_utf8(changed).map(|changed| again(&changed)) {
                prop_assert_eq!(again(&first), Ok(first));
            }
        }
    }
}
