//! Account of `cargo test`, read from its output: what ran and how long it took, what failed and why, and
//! what was skipped for which reason, and what held at a second try only.
//!
//! A test that cannot run passes and prints `skipped: REASON`. libtest shows what passing tests print only with
//! `--show-output`, and then all of it: [`Account::line`] keeps the reasons and says which lines a person should
//! see.

use std::collections::BTreeMap;
use std::fmt;

/// Lines of one failing test that the summary repeats. All of them are in the output above.
const MESSAGE_LINES: usize = 12;
/// Programs whose time the summary names.
const LONGEST: usize = 6;
/// The text in front of a reason in what tests print.
const SKIPPED: &str = "skipped: ";
/// The text in front of a test that failed and held when it was tried again, in what it prints.
const SECOND: &str = "second try: ";

/// The account of one run of `cargo test`, filled line by line.
#[derive(Debug, Default)]
pub struct Account {
    programs: Vec<Program>,
    failures: Vec<Failure>,
    /// Reasons, and how often each was given in which program.
    skipped: BTreeMap<String, BTreeMap<String, usize>>,
    /// Tests that held at the second try, each with what failed at the first.
    second: Vec<String>,
    section: Section,
}

/// A program of tests.
#[derive(Debug)]
struct Program {
    name: String,
    passed: usize,
    failed: usize,
    seconds: f64,
}

#[derive(Debug)]
struct Failure {
    program: String,
    test: String,
    message: Vec<String>,
}

/// The part of the output that the next line belongs to.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
enum Section {
    #[default]
    Running,
    Successes,
    Failures,
    /// The names of the tests that failed, a second time.
    Names,
}

impl Account {
    /// How many programs it has so far.
    pub fn programs(&self) -> usize {
        self.programs.len()
    }

    /// Adds what another account of a run beside or behind this one has.
    pub fn join(&mut self, other: Self) {
        self.programs.extend(other.programs);
        self.failures.extend(other.failures);
        self.second.extend(other.second);
        for (reason, programs) in other.skipped {
            let known = self.skipped.entry(reason).or_default();
            for (program, times) in programs {
                *known.entry(program).or_insert(0) += times;
            }
        }
    }

    /// Reads one line; `true` where a person should see it.
    pub fn line(&mut self, line: &str) -> bool {
        if let Some(name) = program(line) {
            self.programs.push(Program { name, passed: 0, failed: 0, seconds: 0.0 });
            self.section = Section::Running;
            return true;
        }
        if let Some(result) = line.strip_prefix("test result: ") {
            self.section = Section::Running;
            self.result(result);
            return true;
        }
        match (self.section, line) {
            (Section::Running | Section::Successes, "failures:") => {
                self.section = Section::Failures;
                return true;
            }
            (Section::Failures, "failures:") => {
                self.section = Section::Names;
                return true;
            }
            (Section::Running, "successes:") => self.section = Section::Successes,
            _ => {}
        }
        match self.section {
            Section::Running => {
                if let Some((name, reason)) = ignored(line) {
                    self.skip(format!("{name} (ignored): {reason}"));
                }
                self.reason(line);
                true
            }
            Section::Successes => {
                self.reason(line);
                false
            }
            Section::Failures => {
                self.failure(line);
                true
            }
            Section::Names => true,
        }
    }

    fn current(&self) -> String {
        self.programs.last().map_or_else(String::new, |program| program.name.clone())
    }

    fn skip(&mut self, reason: String) {
        let program = self.current();
        *self.skipped.entry(reason).or_default().entry(program).or_insert(0) += 1;
    }

    fn reason(&mut self, line: &str) {
        if let Some((_, test)) = line.split_once(SECOND) {
            self.second.push(test.to_owned());
        }
        let Some(at) = line.find(SKIPPED) else { return };
        // In front of it may be what was skipped, or a test's name that differs from line to line.
        let (subject, reason) = (line[..at].trim(), &line[at + SKIPPED.len()..]);
        // Tests of one program print side by side, and the end of another's line may follow: `skipok`.
        let end =
            self.skipped.keys().find(|known| reason.starts_with(*known)).map_or(reason.len(), String::len);
        let reason = &reason[..end];
        // Words without a blank in front are the name of a test, which the reason does not need.
        self.skip(if subject.contains(' ') && !subject.contains("::") {
            format!("{subject}: {reason}")
        } else {
            reason.to_owned()
        });
    }

    fn failure(&mut self, line: &str) {
        if let Some(test) = heading(line) {
            let (program, test) = (self.current(), test.to_owned());
            self.failures.push(Failure { program, test, message: Vec::new() });
        } else if let Some(failure) = self.failures.last_mut() {
            if failure.program == self.programs.last().map_or("", |program| &program.name)
                && !line.trim().is_empty()
            {
                failure.message.push(line.to_owned());
            }
        }
    }

    /// `ok. 95 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.24s`
    fn result(&mut self, text: &str) {
        let Some(program) = self.programs.last_mut() else { return };
        for part in text.split(['.', ';']).map(str::trim) {
            match part.split_once(' ') {
                Some((number, "passed")) => {
                    program.passed = program.passed.saturating_add(number.parse().unwrap_or(0))
                }
                Some((number, "failed")) => {
                    program.failed = program.failed.saturating_add(number.parse().unwrap_or(0))
                }
                _ => {}
            }
        }
        let seconds =
            text.rsplit_once("finished in ").and_then(|(_, time)| time.trim_end_matches('s').parse().ok());
        program.seconds += seconds.unwrap_or(0.0);
    }
}

/// The program that a line of cargo's announces:
/// `     Running tests/lab/main.rs (target/debug/deps/lab-f194c7ba63795ef0)`, `   Doc-tests nodewise_boot`.
fn program(line: &str) -> Option<String> {
    if let Some(name) = line.trim_start().strip_prefix("Doc-tests ") {
        return line.starts_with(' ').then(|| format!("{name} (documentation)"));
    }
    let (_, path) = line.strip_prefix("     Running ")?.strip_suffix(')')?.rsplit_once(" (")?;
    let file = path.rsplit('/').next()?;
    Some(file.rsplit_once('-').map_or(file, |(name, _)| name).to_owned())
}

/// `test two_quick ... ignored, takes half a minute`
fn ignored(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    Some((name.trim_end(), rest.strip_prefix(", ").unwrap_or("no reason given")))
}

/// `---- two-sockets::a_check ----` or `---- a_test stdout ----`
fn heading(line: &str) -> Option<&str> {
    let name = line.strip_prefix("---- ")?.strip_suffix(" ----")?;
    Some(name.strip_suffix(" stdout").unwrap_or(name))
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.programs.is_empty() {
            return writeln!(f, "no test ran");
        }
        let total = |of: fn(&Program) -> usize| self.programs.iter().map(of).fold(0, usize::saturating_add);
        let (passed, failed) = (total(|program| program.passed), total(|program| program.failed));
        writeln!(
            f,
            "ran: {} tests in {} programs, {failed} failed",
            passed.saturating_add(failed),
            self.programs.len()
        )?;
        let mut longest: Vec<&Program> = self.programs.iter().collect();
        longest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        for program in longest.iter().take(LONGEST).filter(|program| program.seconds >= 1.0) {
            writeln!(f, "{:>8.1} s  {}", program.seconds, program.name)?;
        }
        if self.skipped.is_empty() {
            writeln!(f, "skipped: nothing")?;
        } else {
            writeln!(f, "skipped:")?;
        }
        for (reason, programs) in &self.skipped {
            let counts: Vec<String> = programs
                .iter()
                .map(|(name, times)| if *times > 1 { format!("{name} {times} times") } else { name.clone() })
                .collect();
            writeln!(f, "  {reason} ({})", counts.join(", "))?;
        }
        for test in &self.second {
            writeln!(f, "held at the second try: {test}")?;
        }
        for failure in &self.failures {
            writeln!(f, "failed: {}: {}", failure.program, failure.test)?;
            for line in failure.message.iter().take(MESSAGE_LINES) {
                writeln!(f, "  {line}")?;
            }
            if failure.message.len() > MESSAGE_LINES {
                writeln!(f, "  ({} more lines above)", failure.message.len() - MESSAGE_LINES)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OUTPUT: &str = "\
   Compiling nodewise v0.1.0
     Running unittests src/main.rs (target/debug/deps/nodewise-303bac2fa4d2f378)

running 3 tests
test a ... ok
test two_quick ... ignored, takes half a minute
test b ... ok

successes:

---- a stdout ----
skipped: bwrap cannot make namespaces here
---- b stdout ----
chatter

successes:
    a
    b

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.24s

     Running tests/lab/main.rs (target/debug/deps/lab-1a54f5d6dcc5e621)

running 4 tests
arm::one skipped: no programs for it
arm::two skipped: no programs for itok
second try: arm::three: got 1, expected 2
test arm::one ... ok
test arm::two ... ok
test x ... FAILED
test y ... ok

failures:

---- x ----
got None, expected Some(2048)
on 2x(2c 768M)


failures:
    x

test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1839.77s

   Doc-tests nodewise_boot

running 1 test
test crates/boot/src/line.rs - line::value (line 148) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.29s
";

    const SUMMARY: &str = "\
ran: 7 tests in 3 programs, 1 failed
  1839.8 s  lab
skipped:
  bwrap cannot make namespaces here (nodewise)
  no programs for it (lab 2 times)
  two_quick (ignored): takes half a minute (nodewise)
held at the second try: arm::three: got 1, expected 2
failed: lab: x
  got None, expected Some(2048)
  on 2x(2c 768M)
";

    #[test]
    fn the_account_names_what_ran_failed_and_was_skipped() {
        let mut account = Account::default();
        let shown: Vec<&str> = OUTPUT.lines().filter(|line| account.line(line)).collect();
        assert_eq!(account.to_string(), SUMMARY);
        assert!(!shown.contains(&"chatter"), "{shown:#?}");
        assert!(shown.contains(&"got None, expected Some(2048)"), "{shown:#?}");
        assert_eq!(Account::default().to_string(), "no test ran\n");
    }

    #[test]
    fn a_long_message_is_cut_in_the_summary_alone() {
        let mut account = Account::default();
        account.line("     Running tests/a.rs (target/debug/deps/a-0)");
        for line in ["failures:", "---- t stdout ----"] {
            account.line(line);
        }
        assert!((0..20).all(|number| account.line(&format!("line {number}"))));
        let text = account.to_string();
        assert!(text.ends_with("  line 11\n  (8 more lines above)\n"), "{text}");
    }

    proptest! {
        #[test]
        fn any_output_is_survived(lines in prop::collection::vec(
            prop_oneof![
                ".*",
                Just("failures:".to_owned()),
                Just("successes:".to_owned()),
                "(     Running |   Doc-tests |test result: |---- |test ).*[)-]?",
                "test result: ok\\. [0-9]{1,30} passed; [0-9]{1,30} failed; finished in .{0,9}s",
            ],
            0..40,
        )) {
            let mut account = Account::default();
            for line in &lines {
                account.line(line);
            }
            prop_assert!(account.to_string().ends_with('\n'));
        }
    }
}
