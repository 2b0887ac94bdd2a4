//! `--space` and `--threads`: which candidates there are, and what a program gets.

use std::fs;

use serde_json::Value;

use crate::nodewise::{Ran, run};

fn tune(options: &[&str], program: &[&str]) -> Ran {
    run(&[&["tune", "--repeats=0", "--runs=1", "--json"], options, &["--"], program].concat())
}

fn study(options: &[&str], program: &[&str]) -> Value {
    tune(options, program).ok_json()
}

fn names(study: &Value) -> Vec<String> {
    study["arms"].as_array().unwrap().iter().map(|arm| arm["name"].as_str().unwrap().to_owned()).collect()
}

fn wrong(ran: &Ran, expected: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

/// Tunes `true` in the space of this text.
fn space(text: &str, options: &[&str]) -> Ran {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let option = format!("--space={}", file.path().display());
    tune(&[&[option.as_str()], options].concat(), &["true"])
}

#[test]
fn the_number_of_threads_stands_in_the_command() {
    let study = study(
        &["--placement=localalloc", "--threads=1,3", "--metric=got ([0-9]+)"],
        &["sh", "-c", "echo got {threads}; [ -z \"$OMP_NUM_THREADS\" ]"],
    );
    assert_eq!(names(&study)[..2], ["default, 1 thread", "default, 3 threads"]);
    for arm in study["arms"].as_array().unwrap() {
        assert_eq!(arm["summary"]["median"].as_f64(), arm["threads"].as_f64(), "{arm}");
    }
}

#[test]
fn without_a_place_in_the_command_variables_tell_the_number() {
    let script = "[ $OMP_NUM_THREADS = $GOMAXPROCS ] && echo got $OMP_NUM_THREADS";
    let study =
        study(&["--placement=localalloc", "--threads=2", "--metric=got ([0-9]+)"], &["sh", "-c", script]);
    assert_eq!(study["arms"][0]["summary"]["median"], 2.0);
    let environment = study["arms"][0]["environment"].as_array().unwrap();
    let told = |name: &str| environment.iter().any(|one| one["name"] == name && one["value"] == "2");
    assert!(told("RAYON_NUM_THREADS"), "{environment:?}");
}

#[test]
fn a_command_that_asks_gets_the_cpus_of_its_placement() {
    let cpu = crate::nodewise::a_cpu();
    let placement = format!("--placement=physcpubind={cpu}");
    let study = study(&[&placement, "--metric=got ([0-9]+)"], &["sh", "-c", "echo got {threads}"]);
    let cpus = crate::nodewise::live().allowed_cpus.map(|cpus| cpus.len() as f64);
    assert_eq!(study["arms"][0]["summary"]["median"].as_f64(), cpus);
    if study["arms"].as_array().unwrap().len() > 1 {
        assert_eq!(study["arms"][1]["summary"]["median"], 1.0);
    }
}

#[test]
fn a_space_is_the_product_of_its_axes_and_the_default_is_in_it() {
    let cpu = crate::nodewise::a_cpu();
    let text = format!("huge = ['default', 'never']\ncpus = ['all', '{cpu}']\nplacements = ['localalloc']");
    let study = space(&text, &["--threads=1,2"]).ok_json();
    let names = names(&study);
    assert_eq!(names[..2], ["default, 1 thread", "default, 2 threads"]);
    assert!(names.contains(&"huge pages off, 2 threads".to_owned()), "{names:?}");
    let left_out = study["left_out"].as_array().unwrap().len();
    let machine = crate::nodewise::live();
    if machine.allowed_cpus.is_some_and(|cpus| cpus.len() > 1) {
        assert!(names.contains(&format!("CPU {cpu}, huge pages off, 1 thread")), "{names:?}");
        assert!(names.len() + left_out >= 2 * 4, "{names:?}");
    }
}

#[test]
fn what_is_the_same_here_is_tried_once_and_said() {
    let machine = crate::nodewise::live();
    let all = machine.allowed_cpus.clone().unwrap_or_else(|| machine.online_cpus());
    let text = format!("cpus = ['all', '{all}']");
    let study = space(&text, &[]).ok_json();
    assert_eq!(names(&study), ["default"]);
    let why: Vec<&str> =
        study["left_out"].as_array().unwrap().iter().map(|left| left["why"].as_str().unwrap()).collect();
    assert_eq!(why, ["the same as default here"]);
}

#[test]
fn a_space_that_is_wrong_is_told_with_its_line() {
    wrong(
        &space("usual = true\nmemry = []", &[]),
        "line 2, column 1: unknown field `memry`, expected one of `usual`",
    );
    wrong(&space("memory = ['nosuch=1']", &[]), "line 1: --nosuch is not an option of nodewise run");
    wrong(&space("memory = ['default',\n 'membind=999']", &[]), "line 2: --membind: node 999 does not exist");
    wrong(
        &space("huge = ['often']", &[]),
        "line 1, column 9: huge: \"often\" is not one of default, always, never",
    );
    wrong(&space("threads = [1]", &["--threads=2"]), "the file of --space says how many threads already");
    wrong(&tune(&["--space=/nowhere"], &["true"]), "--space \"/nowhere\": no such file or directory");
    wrong(
        &tune(&["--space=/nowhere", "--placement=localalloc"], &["true"]),
        "--space and --placement cannot be used together",
    );
    wrong(
        &tune(&["--threads=1,many"], &["true"]),
        "--threads: \"many\" is not a number of threads: expected 1 to 65536, cpus or cores",
    );
}
