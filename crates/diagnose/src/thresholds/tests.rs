//! Files of thresholds, and the catalogue. Each threshold's effect is in the tests of `rules`.

use std::collections::BTreeSet;

use nodewise_machine::printable::printable;
use proptest::prelude::*;

use super::*;
use crate::rules;
use ThresholdUnit::Count;

#[test]
fn a_file_replaces_the_thresholds_that_it_names() {
    let text = "# ours\n[memory-stranded]\nstranded_share = 0.3\n\n[irq-remote]\ninterrupts_per_s = 0x1_000\n\
                [all-rules]\nsignificant_mib = 1_024.5\n[bind-too-small]\n";
    let read = read(text).unwrap();
    assert_eq!(read.get(&MEMORY_STRANDED), 0.3);
    assert_eq!((read.get(&IRQ_RATE), read.get(&IRQ_SHARE)), (4096.0, IRQ_SHARE.default));
    assert_eq!(read.size(&SIGNIFICANT), Bytes::from_kib(1_049_088));
    assert_eq!((read.origin(&IRQ_RATE), read.origin(&IRQ_SHARE)), (REPLACED, OWN));
    assert_eq!(read.replaced().count(), 3);
    assert_eq!(super::read("").unwrap(), Thresholds::default());
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_would_be_right() {
    let check = |text: &str, expected: &str| {
        let error = read(text).unwrap_err().to_string();
        assert_eq!(error, expected, "{text:?}");
    };
    let range = "expected a number from 0 to 1 (share)";
    check("\n[memory-strandet]", "line 2: \"memory-strandet\" is not a rule: did you mean memory-stranded?");
    check("[xyzzy]", "line 1: \"xyzzy\" is not a rule: nodewise doctor rules lists them");
    check("[all-rule]\n", "line 1: \"all-rule\" is not a rule: did you mean all-rules?");
    check("[nodes-hidden]\n", "line 1: rule nodes-hidden has no thresholds");
    check(
        "stranded_share = 1",
        "line 1: expected a table of a rule, such as [memory-stranded]; found \"stranded_share\" outside of one",
    );
    check(
        "[irq-remote]\n\nshare = 0.1",
        "line 3: [irq-remote] has no threshold \"share\": expected remote_share, interrupts_per_s",
    );
    for (value, found) in [
        ("1.5", "1.5"),
        ("-0.1", "-0.1"),
        ("nan", "nan"),
        ("-inf", "-inf"),
        ("99999999999999999999999999999999999999999999", "99999999999999999999999999999999999999999999"),
        ("\"0.2\"", "the text \"0.2\""),
        ("\"\\u001b[2J\"", "the text \"\\x1b[2J\""),
        ("true", "true"),
        ("2026-01-01", "2026-01-01"),
        ("[0.2]", "a list"),
        ("{ a = 1 }", "a table"),
    ] {
        let text = format!("[memory-stranded]\nstranded_share = {value}\n");
        check(
            &text,
            &format!("line 2: memory-stranded.stranded_share: {range}; found {found}", found = found),
        );
    }
    check(
        "[memory-stranded]\nstranded_share = 0.1\n[irq-remote]\nremote_share = 2\n[xyzzy]\n",
        &format!("line 4: irq-remote.remote_share: {range}; found 2"),
    );
    check(&" ".repeat(MOST_BYTES + 1), "it has 262145 bytes: at most 262144 are read");
    for twice in ["[irq-remote]\n[irq-remote]", "[irq-remote]\nremote_share = 0\nremote_share = 0"] {
        let error = read(twice).unwrap_err();
        assert!(
            matches!(error, ThresholdsError::Syntax { line, .. } if line == twice.lines().count()),
            "{error}"
        );
    }
    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(matches!(read(&deep), Err(ThresholdsError::Syntax { .. })));
    let long = read(&format!("[\"{}\"]", "x".repeat(200_000))).unwrap_err().to_string();
    assert!(long.len() < 200, "{long}");
}

#[test]
fn the_catalogue_is_what_rules_name_and_its_numbers_are_in_their_ranges() {
    let mut named = BTreeSet::new();
    for rule in rules::ALL {
        for threshold in rule.thresholds {
            assert!([rule.id, ALL_RULES].contains(&threshold.table), "{}: {}", rule.id, threshold.name());
            assert!(named.insert((rule.id, threshold.table, threshold.key)), "{}: twice", rule.id);
        }
    }
    for (at, threshold) in ALL.iter().enumerate() {
        let name = (threshold.table, threshold.key);
        assert!(named.iter().any(|(_, table, key)| (*table, *key) == name), "{name:?} is in no rule");
        assert!(ALL[..at].iter().all(|other| (other.table, other.key) != name), "{name:?} twice");
        let range = threshold.least..=threshold.most;
        assert!(range.contains(&threshold.default) && threshold.least < threshold.most, "{name:?}");
        assert!(!threshold.about.is_empty() && !threshold.origin.is_empty(), "{name:?}");
        // The key ends in its unit.
        let unit = match threshold.unit {
            Share => "_share",
            Mib => "_mib",
            Times => "_times",
            Seconds => "_s",
            Microseconds => "_us",
            PerSecond(_) => "_per_s",
            Count(_) => "_count",
        };
        assert!(threshold.key.ends_with(unit), "{name:?}");
    }
}

/// Lines that look like those of a file.
fn line() -> impl Strategy<Value = String> {
    let name = |at: usize| ALL[at % ALL.len()];
    let any = any::<usize>();
    prop_oneof![
        any.prop_map(move |at| format!("[{}]", name(at).table)),
        (any, prop_oneof![Just("0.5"), Just("1"), Just("nan"), Just("-1"), Just("1e300"), Just("''")])
            .prop_map(move |(at, value)| format!("{} = {value}", name(at).key)),
        ".{0,30}",
    ]
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_in_words_fit_for_a_terminal(lines in prop::collection::vec(line(), 0..8)) {
        let text = lines.join("\n");
        match read(&text) {
            Ok(read) => prop_assert_eq!(super::read(&read.to_toml()), Ok(read)),
            Err(error) => {
                let error = error.to_string();
                let shown = printable(&error);
                prop_assert_eq!(shown.as_ref(), error.as_str());
            }
        }
    }

    #[test]
    fn what_is_written_is_read_back(values in prop::collection::vec((0..ALL.len(), 0.0..=1.0f64), 0..20)) {
        let mut thresholds = Thresholds::default();
        for (at, part) in values {
            let of = ALL[at];
            thresholds.set(of, (of.least + part * (of.most - of.least)).clamp(of.least, of.most));
        }
        prop_assert_eq!(read(&thresholds.to_toml()), Ok(thresholds));
    }
}
