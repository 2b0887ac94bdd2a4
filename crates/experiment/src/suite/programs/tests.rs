use super::*;
use crate::executor::NoWitness;
use crate::suite::Suite;
use crate::suite::parse::parse;
use nodewise_machine::placement::Placement;

fn suite(benchmark: &str) -> Suite {
    parse(&format!("title = \"t\"\n[[input]]\nname = \"text\"\nkind = \"text\"\nsize = \"5000\"\n[[benchmark]]\nname = \"a/b ..\"\n{benchmark}")).unwrap()
}

/// Prepares and runs the one benchmark of a suite this many times.
fn check(benchmark: &str, runs: usize) -> Vec<Result<f64, String>> {
    let suite = suite(benchmark);
    let interrupt = AtomicBool::new(false);
    let mut nobody = NoWitness;
    let treatments = vec![Treatment::new("default", Placement::DEFAULT)];
    let mut programs = Programs::new(Path::new("/bin/true"), treatments, &mut nobody, &interrupt).unwrap();
    std::fs::create_dir(programs.inputs()).unwrap();
    std::fs::write(programs.inputs().join("text"), "x".repeat(5000)).unwrap();
    let cases = suite.cases(3);
    let metric = &cases[0].benchmark.metric.metric;
    let arm = programs.plan(metric).unwrap().arms()[0].clone();
    if let Err(why) = programs.prepare(&cases[0]) {
        return vec![Err(why)];
    }
    let one = |run: Run| run.value(metric).ok_or_else(|| run.ending.to_string());
    (0..runs).map(|_| one(programs.run(&cases[0], &arm))).collect()
}

const PRINTED: &str = "metric = '=([0-9]+)'\nbetter = 'higher'\n";

#[test]
fn a_command_finds_its_inputs_its_threads_and_a_folder_of_its_own() {
    let command = "command = 'echo \"n=$(($(wc -c < {inputs}/text) + {threads}))\"; test -z \"$(ls)\"'";
    assert_eq!(check(&format!("{command}\n{PRINTED}"), 1), [Ok(5003.0)]);
    let command = "command = '{nodewise} && pwd | grep -c nodewise-compare- && echo =1'";
    assert_eq!(check(&format!("{command}\n{PRINTED}"), 1), [Ok(1.0)]);
}

#[test]
fn preparations_come_before_the_first_run_and_before_every_one() {
    let steps = "prepare = 'echo x > once'\nprepare-each = 'echo y >> each'\n\
                 command = 'echo =$(cat once each | wc -l)'\n";
    assert_eq!(check(&format!("{steps}{PRINTED}"), 3), [Ok(2.0), Ok(3.0), Ok(4.0)]);
}

#[test]
fn a_preparation_that_fails_is_told() {
    let failed = check("command = 'true'\nprepare = 'echo no disk >&2; exit 3'", 1);
    assert_eq!(failed, [Err("its preparation ended with exit code 3: no disk".to_owned())]);
    let failed = check("command = 'true'\nprepare-each = 'exit 3'", 1);
    assert_eq!(failed, [Err("could not be started: its preparation ended with exit code 3".to_owned())]);
}

#[test]
fn a_run_that_takes_too_long_has_failed() {
    let failed = check("command = 'sleep 60'\ntimeout = '1s'", 1);
    assert_eq!(failed, [Err("did not end within 1s".to_owned())]);
}

#[test]
fn nothing_is_left_behind() {
    let interrupt = AtomicBool::new(false);
    let mut nobody = NoWitness;
    let programs = Programs::new(Path::new("x"), Vec::new(), &mut nobody, &interrupt).unwrap();
    let inputs = programs.inputs();
    std::fs::create_dir(&inputs).unwrap();
    drop(programs);
    assert!(!inputs.exists());
}
