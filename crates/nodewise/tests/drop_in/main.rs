//! numactl and its friends beside the installed originals, on command lines that are drawn.
//!
//! Each line runs with the original and with ours, strict and not, in an empty folder that is made for it, and
//! everything that can be seen of it is compared: standard output, standard error, the exit status, files with
//! their sizes and policies, segments of System V, the policy and the CPUs of the program that was started, the
//! pages of a process that was to be moved. Where the two differ a rule must say why (`rules`), and each rule
//! is a row of the table in `docs/compat.md`.
//!
//! `cargo xtask drop-in` plays more lines, with other seeds, in a guest with four nodes, or beside another
//! release.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test speaks to its caller")]

mod draw;
mod guest;
mod mask;
mod original;
mod play;
#[path = "../../../compat/tests/golden/program.rs"]
mod program;
mod reading;
mod rules;
mod verdict;

use libtest_mimic::{Arguments, Failed, Trial};

use original::Original;
use verdict::{Plan, Verdict};

/// Lines of the ordinary tests, which are always the same.
const USUAL: Plan = Plan { lines: 100, seed: 1, first: 0 };

fn main() {
    let (own, words): (Vec<String>, Vec<String>) = std::env::args().partition(|word| is_own(word));
    let value = |name: &str| own.iter().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str, otherwise: u64| {
        value(name).map_or(otherwise, |text| {
            text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number"))
        })
    };
    let plan = Plan {
        lines: number("--lines", USUAL.lines),
        seed: number("--seed", USUAL.seed),
        first: number("--first", USUAL.first),
    };
    if value("--hold").is_some() {
        return play::hold();
    }
    if let Some(original) = value("--in-guest") {
        let nodewise = value("--nodewise").expect("the host passes the path of nodewise");
        if let Err(error) = guest::inside(plan, original, nodewise) {
            eprintln!("{error}");
            std::process::exit(1);
        }
        return;
    }
    let original = value("--original").map(str::to_owned);
    let shows = value("--differences").is_some();
    let place = match value("--guest") {
        Some(_) => "guest",
        None => "here",
    };
    let name = format!("{}_drawn_lines_do_the_same_{place}", plan.lines);
    let drawn = Trial::test(name, move || {
        let original = match original.as_deref().map_or_else(Original::installed, Original::unpacked) {
            Ok(original) => original,
            Err(why) => return missing(&why),
        };
        let verdict = match place {
            "guest" => match guest::boot(plan, &original)? {
                Some(verdict) => verdict,
                None => return Ok(()),
            },
            _ => verdict::play(plan, &original)?,
        };
        if shows {
            verdict.covered.iter().for_each(|difference| println!("{difference}"));
        }
        finish(&verdict)
    });
    let table = Trial::test("the_rules_are_those_of_the_table_in_compat_md", rules::are_documented);
    libtest_mimic::run(&Arguments::from_iter(words), vec![table, drawn]).exit();
}

/// Whether a word is an option of ours. `cargo xtask drop-in` has words for them.
fn is_own(word: &str) -> bool {
    const OWN: [&str; 9] = [
        "--lines=",
        "--seed=",
        "--first=",
        "--guest=",
        "--in-guest=",
        "--nodewise=",
        "--hold=",
        "--original=",
        "--differences=",
    ];
    OWN.iter().any(|option| word.starts_with(option))
}

/// Without the original there is nothing to compare with.
fn missing(why: &str) -> Result<(), Failed> {
    if std::env::var_os("CI").is_some_and(|value| value == "true") {
        return Err(format!("this test needs the original: {why}").into());
    }
    eprintln!("skipped: {why}");
    Ok(())
}

fn finish(verdict: &Verdict) -> Result<(), Failed> {
    print!("{verdict}");
    if verdict.wrong.is_empty() { Ok(()) } else { Err(verdict.wrong.join("\n").into()) }
}
