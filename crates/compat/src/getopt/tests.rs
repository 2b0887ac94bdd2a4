//! The expected lines were written by the GNU C library 2.36 for the same options.

use super::*;
use proptest::prelude::{Just, Strategy, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

const LONGS: [Long; 9] = [
    Long { name: "cpubind", argument: Argument::Required, value: 'c' },
    Long { name: "cpunodebind", argument: Argument::Required, value: 'N' },
    Long { name: "cpu-compress", argument: Argument::None, value: 'z' },
    Long { name: "show", argument: Argument::None, value: 's' },
    Long { name: "shm", argument: Argument::Required, value: 'S' },
    Long { name: "same", argument: Argument::None, value: 'q' },
    Long { name: "samey", argument: Argument::None, value: 'q' },
    Long { name: "opt", argument: Argument::Optional, value: 'o' },
    Long { name: "sameopt", argument: Argument::None, value: 'r' },
];
const SHORTS: [Short; 3] = [
    Short { letter: 's', argument: Argument::None },
    Short { letter: 'c', argument: Argument::Required },
    Short { letter: 'o', argument: Argument::Optional },
];

fn spec(operands: Operands) -> Spec<'static> {
    Spec { shorts: &SHORTS, longs: &LONGS, operands }
}

/// Options as `value=argument;`, errors as their line and `;`, then `|` and the operands.
fn read(words: &[OsString], operands: Operands) -> String {
    let mut line = Getopt::new(words, spec(operands));
    let mut text = String::new();
    for found in line.by_ref() {
        match found {
            Ok(Found { value, argument: None }) => text.push_str(&format!("{value};")),
            Ok(Found { value, argument: Some(argument) }) => {
                text.push_str(&format!("{value}={};", argument.to_string_lossy()));
            }
            Err(wrong) => text.push_str(&format!("{wrong};")),
        }
    }
    let rest: Vec<String> = line.operands().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    format!("{text}|{}", rest.join(" "))
}

fn check(words: &str, expected: &str) {
    let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
    assert_eq!(read(&words, Operands::EndOptions), expected, "{words:?}");
}

fn check_any_place(words: &str, expected: &str) {
    let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
    assert_eq!(read(&words, Operands::AnyPlace), expected, "{words:?}");
}

#[test]
fn an_abbreviation_stands_for_the_only_option_that_begins_like_it() {
    check("--sho x", "s;|x");
    check("--cpub=1 x", "c=1;|x");
    check("--sameo", "r;|");
    // Exact although others are longer.
    check("--same", "q;|");
}

#[test]
fn an_ambiguous_word_is_answered_with_the_possibilities() {
    check(
        "--cpu=1",
        "option '--cpu=1' is ambiguous; possibilities: '--cpubind' '--cpunodebind' '--cpu-compress';|",
    );
    check(
        "--s",
        "option '--s' is ambiguous; possibilities: '--show' '--shm' '--same' '--samey' '--sameopt';|",
    );
    // `samey` means the same as the first one, so it is none of the possibilities.
    check("--sam", "option '--sam' is ambiguous; possibilities: '--same' '--sameopt';|");
}

#[test]
fn arguments_are_joined_or_the_next_word() {
    check("-sc1 z -s", "s;c=1;|z -s");
    check("-c -- x", "c=--;|x");
    check("-so", "s;o;|");
    check("-oo x", "o=o;|x");
    check("--opt x", "o;|x");
    check("--opt=x y", "o=x;|y");
    check("--shm -s y", "S=-s;|y");
    check("--shm=", "S=;|");
}

#[test]
fn errors_read_as_those_of_the_c_library() {
    check("-c", "option requires an argument -- 'c';|");
    check("--shm", "option '--shm' requires an argument;|");
    check("--show= x", "option '--show' doesn't allow an argument;|x");
    check("--nosuch=1", "unrecognized option '--nosuch=1';|");
    check("-s- x", "s;invalid option -- '-';|x");
    check("-:", "invalid option -- ':';|");
}

#[test]
fn the_first_operand_ends_the_options_or_does_not() {
    check("a -s b", "|a -s b");
    check("- -s", "|- -s");
    check_any_place("a -s b -- -s c", "s;|a b -s c");
    check_any_place("a - -s", "s;|a -");
    check_any_place("a --show --shm b", "s;S=b;|a");
    check_any_place("-- -s", "|-s");
}

#[test]
fn escape_sequences_in_a_wrong_word_are_written_as_escapes() {
    check("--\u{1b}[2J", "unrecognized option '--\\x1b[2J';|");
    check("-\u{1b}", "invalid option -- '\\x1b';|");
}

fn any_word() -> impl Strategy<Value = OsString> {
    let bytes = prop::collection::vec(
        prop_oneof![Just(b'-'), Just(b's'), Just(b'c'), Just(b'o'), Just(b'='), Just(0xff), 1u8..=255],
        0..6,
    );
    prop_oneof![
        bytes.prop_map(OsString::from_vec),
        prop::sample::select(&LONGS[..]).prop_map(|long| format!("--{}", long.name).into()),
        Just(OsString::from("--")),
    ]
}

proptest! {
    #[test]
    fn every_word_is_an_option_an_argument_or_an_operand(words in prop::collection::vec(any_word(), 0..8)) {
        for operands in [Operands::EndOptions, Operands::AnyPlace] {
            let mut line = Getopt::new(&words, spec(operands));
            let mut steps = 0;
            while line.next().is_some() {
                steps += 1;
                prop_assert!(steps <= words.iter().map(|word| word.len()).sum::<usize>() + 1);
            }
            let rest = line.operands();
            prop_assert!(rest.len() <= words.len());
            prop_assert!(rest.iter().all(|word| words.contains(word)));
        }
    }

    #[test]
    fn without_hyphens_nothing_is_an_option(words in prop::collection::vec("[a-z0-9=]{0,5}", 0..6)) {
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        for operands in [Operands::EndOptions, Operands::AnyPlace] {
            let mut line = Getopt::new(&words, spec(operands));
            prop_assert_eq!(line.next(), None);
            prop_assert_eq!(line.operands(), words.clone());
        }
    }

    #[test]
    fn what_follows_two_hyphens_is_untouched(words in prop::collection::vec(any_word(), 0..6)) {
        let mut all = vec![OsString::from("--")];
        all.extend(words.iter().cloned());
        for operands in [Operands::EndOptions, Operands::AnyPlace] {
            let mut line = Getopt::new(&all, spec(operands));
            prop_assert_eq!(line.next(), None);
            prop_assert_eq!(line.operands(), words.clone());
        }
    }
}
