//! Documents that are read back: what was written is written again to the letter, and what is not a result is
//! refused with the field and what would be right.

use nodewise_view::json::{self, Saved};
use nodewise_view::{Style, csv, text};
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};

use crate::bandwidth::{cores, report, troubled};
use crate::io::files;

/// Reads a document and writes it again.
fn again(document: &str) -> Result<String, String> {
    let saved = Saved::of(document)?;
    match saved.schema() {
        json::bandwidth::SCHEMA => json::bandwidth::read(&saved).map(|report| json::bandwidth(&report)),
        json::file::SCHEMA => json::file::read(&saved).map(|report| json::file(&report)),
        _ => json::c2c::read(&saved).map(|report| json::c2c(&report)),
    }
}

#[test]
fn a_document_is_written_again_to_the_letter() {
    let mut pairs = cores(8);
    pairs.pairs[1].figure = None;
    pairs.pairs[1].refused = Some("CPU 7 is not online, or not allowed to this process any more".to_owned());
    pairs.pairs[1].after = None;
    let bandwidths = [report(1), report(8), troubled()].map(|report| json::bandwidth(&report));
    for document in bandwidths.into_iter().chain([json::file(&files(2)), json::c2c(&pairs)]) {
        assert_eq!(again(&document).as_ref(), Ok(&document));
    }
}

#[test]
fn every_form_of_what_was_read_is_that_of_what_was_measured() {
    let style = Style::plain(80);
    let measured = troubled();
    let document = json::bandwidth(&measured);
    let read = json::bandwidth::read(&Saved::of(&document).unwrap()).unwrap();
    assert_eq!(text::bandwidth(&read, &style), text::bandwidth(&measured, &style));
    assert_eq!(csv::bandwidth(&read), csv::bandwidth(&measured));
    let measured = cores(8);
    let document = json::c2c(&measured);
    let read = json::c2c::read(&Saved::of(&document).unwrap()).unwrap();
    assert_eq!(text::c2c(&read, &style), text::c2c(&measured, &style));
    assert_eq!(read, measured);
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
    of_rates("bandwidth/1", "tune/1", "its schema is \"nodewise.tune/1\": expected nodewise.c2c/1");
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
    let read = json::bandwidth::read(&Saved::of(&document).unwrap()).unwrap();
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
        for whole in [json::bandwidth(&report(1)), json::c2c(&cores(2)), json::file(&files(1))] {
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
