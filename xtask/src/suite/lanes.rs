//! Two runs of `cargo test` side by side: programs that boot guests, which wait for one another again and again,
//! and all others, which have the cores meanwhile.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::account::Account;
use crate::program;

/// Programs of tests that boot guests.
const GUESTS: [&str; 6] = ["lab", "golden", "friends", "emulation", "firmware", "boot"];

/// The words of cargo that choose programs of tests, one run each.
#[derive(Debug, PartialEq, Eq)]
pub struct Lanes {
    pub guests: Vec<String>,
    pub others: Vec<String>,
}

/// Reads by cargo's word which programs of tests there are.
pub fn choose(root: &Path) -> Result<Lanes> {
    parse(&program::metadata(root)?).context("cargo metadata is not what the tests expect")
}

fn parse(metadata: &Value) -> Option<Lanes> {
    let mut names = BTreeSet::new();
    for package in metadata["packages"].as_array()? {
        for target in package["targets"].as_array()? {
            if target["kind"].as_array()?.iter().any(|kind| kind == "test") {
                names.insert(target["name"].as_str()?.to_owned());
            }
        }
    }
    let (guests, others): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| GUESTS.contains(&name.as_str()));
    let named = |names: Vec<String>| names.into_iter().flat_map(|name| ["--test".to_owned(), name]);
    let units = ["--lib", "--bins", "--examples"].map(str::to_owned);
    Some(Lanes { guests: named(guests).collect(), others: units.into_iter().chain(named(others)).collect() })
}

/// Runs both side by side, shows what they print, and returns one account of both. The first is shown line by line;
/// of the second each program's lines at once.
pub fn run(first: &mut Command, second: &mut Command, show: Show<'_>) -> (Result<()>, Account) {
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let mut account = Account::default();
            (accounted(second, &mut account, Until::End, show), account)
        });
        let mut account = Account::default();
        let result = accounted(first, &mut account, Until::Line, show);
        let (other, more) = beside.join().expect("reading a pipe does not panic");
        account.join(more);
        let result = match (result, other) {
            (Err(one), Err(other)) => Err(one.context(format!("{other:#}"))),
            (one, other) => one.and(other),
        };
        (result, account)
    })
}

/// A way for lines to a person.
pub type Show<'a> = &'a (dyn Fn(&str) + Sync);

/// How long lines of a command are held back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// To the end of the line.
    Line,
    /// To the end of the program that printed them.
    End,
}

/// Runs a command whose output passes through an account on its way to the user.
pub fn accounted(command: &mut Command, account: &mut Account, until: Until, show: Show<'_>) -> Result<()> {
    let line = program::line(command);
    // One pipe for both streams: cargo names a program on one, its tests speak on the other, and their order
    // says what belongs together.
    let (reader, writer) = os_pipe::pipe().context("cannot make a pipe")?;
    let mut child = command
        .stdout(writer.try_clone().context("cannot make a pipe")?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("cannot start: {line}"))?;
    // The pipe ends with its last writer, and the command has two of them.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut reader = BufReader::new(reader);
    let (mut bytes, mut shown) = (Vec::new(), String::new());
    while reader.read_until(b'\n', &mut bytes)? > 0 {
        let text = String::from_utf8_lossy(&bytes);
        let programs = account.programs();
        let is_shown = account.line(text.trim_end_matches('\n'));
        if account.programs() > programs {
            show(&std::mem::take(&mut shown));
        }
        match until {
            _ if !is_shown => {}
            Until::Line => show(&text),
            Until::End => shown.push_str(&text),
        }
        bytes.clear();
    }
    show(&shown);
    let status = child.wait()?;
    if !status.success() {
        bail!("{line}: {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_of_tests_is_in_one_of_the_runs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's folder");
        let lanes = choose(root).unwrap();
        for name in GUESTS {
            assert!(lanes.guests.iter().any(|word| word == name), "{name}: {lanes:?}");
        }
        let files = |words: &[String]| words.iter().filter(|word| !word.starts_with("--")).count();
        assert!(files(&lanes.others) >= 10, "{lanes:?}");
        assert!(lanes.others.iter().all(|word| !GUESTS.contains(&word.as_str())), "{lanes:?}");
        assert_eq!(&lanes.others[..3], ["--lib", "--bins", "--examples"]);
        assert_eq!(parse(&Value::default()), None);
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// Both runs with these scripts: the result, the account, and all lines as they were shown.
    fn ran(first: &str, second: &str) -> (Result<()>, String, Vec<String>) {
        let shown = std::sync::Mutex::new(Vec::new());
        let keep = |text: &str| shown.lock().unwrap().push(text.to_owned());
        let (result, account) = run(&mut shell(first), &mut shell(second), &keep);
        (result, account.to_string(), shown.into_inner().unwrap())
    }

    #[test]
    fn both_runs_are_in_one_account_and_either_may_fail() {
        let program = |name: &str, result: &str| {
            format!("echo '     Running tests/{name}.rs (deps/{name}-0)'; echo 'test result: {result}'")
        };
        let ok = "ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 3.00s";
        let failed = "FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.00s";
        let (result, account, shown) = ran(&program("a", ok), &program("b", ok));
        result.unwrap();
        assert!(account.starts_with("ran: 4 tests in 2 programs, 0 failed\n"), "{account}");
        let whole = format!("     Running tests/b.rs (deps/b-0)\ntest result: {ok}\n");
        assert!(shown.contains(&whole), "{shown:?}");
        let bad = format!("{}; exit 101", program("b", failed));
        let (result, account, _) = ran(&program("a", ok), &bad);
        assert!(format!("{:#}", result.unwrap_err()).contains("101"));
        assert!(account.starts_with("ran: 4 tests in 2 programs, 1 failed\n"), "{account}");
        let (result, _, _) = ran(&bad, "exit 3");
        let message = format!("{:#}", result.unwrap_err());
        assert!(message.contains("101") && message.contains("exit status: 3"), "{message}");
    }
}
