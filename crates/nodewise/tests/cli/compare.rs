//! `nodewise compare` with suites of tiny shell commands whose numbers are known, and with files that
//! were saved.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::nodewise::{Ran, command, output, run, wider};
use crate::sandbox::{install, is_root};

/// A suite whose one benchmark prints a number from a file, so that a change is a change of the file.
fn suite(folder: &tempfile::TempDir, rest: &str) -> String {
    let path = folder.path().join("suite.toml");
    let number = folder.path().join("number");
    let text = format!(
        "title = \"tiny\"\n[[benchmark]]\nname = \"speed\"\ncommand = \"echo speed $(cat {}) {{threads}}\"\n\
         metric = \"speed ([0-9.]+)\"\nbetter = \"higher\"\nunit = \"GB/s\"\nthreads = [1, 3]\n{rest}",
        number.display()
    );
    fs::write(&path, text).unwrap();
    fs::write(number, "10\n").unwrap();
    path.display().to_string()
}

fn path_of(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

fn compare(words: &[&str]) -> Ran {
    run(&[&["compare"], words].concat())
}

/// A file of the articles' tables.
fn recorded(name: &str) -> String {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suites/recorded");
    folder.join(name).display().to_string()
}

#[test]
fn a_change_between_two_sessions_is_shown_and_a_loss_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let (suite, before, after) =
        (suite(&folder, ""), path_of(&folder, "before.json"), path_of(&folder, "after.json"));
    let saved = compare(&["--suite", &suite, "--save", &before, "--runs=5", "--seed=1"]);
    assert_eq!(saved.code, Some(0), "{}", saved.stderr);
    assert!(saved.stdout.contains("tiny: 5 rounds in "), "{}", saved.stdout);
    // A number that never varies has no noise: every change of it is shown.
    fs::write(folder.path().join("number"), "12\n").unwrap();
    let words = ["--suite", &suite, "--against", &before, "--save", &after, "--runs=5", "--seed=2"];
    let faster = compare(&[&words[..], &["--json"]].concat());
    assert_eq!(faster.code, Some(0), "{}", faster.stderr);
    let table = &faster.json()["tables"][0];
    assert_eq!(faster.json()["schema"], "nodewise.compare/1");
    for row in table["rows"].as_array().unwrap() {
        assert_eq!(row["verdict"], "better", "{row}");
        assert!((row["change"]["speed_ratio"].as_f64().unwrap() - 1.2).abs() < 1e-9, "{row}");
    }
    let means: Vec<&Value> =
        table["geometric_means"].as_array().unwrap().iter().map(|mean| &mean["threads"]).collect();
    assert_eq!(means, [&1, &3]);
    // The other way round it is lost; nothing is run for that.
    let slower = compare(&["--before", &after, "--after", &before]);
    assert_eq!(slower.code, Some(1), "{}", slower.stderr);
    assert!(slower.stdout.contains("-16.7 %") && slower.stdout.contains("slower"), "{}", slower.stdout);
    assert_eq!(slower.stderr, "");
}

#[test]
fn a_suite_that_was_edited_under_its_name_is_not_called_faster() {
    let folder = tempfile::tempdir().unwrap();
    let (path, before) = (path_of(&folder, "suite.toml"), path_of(&folder, "before.json"));
    let write = |command: &str| {
        let text = format!(
            "title = \"t\"\n[[benchmark]]\nname = \"a\"\ncommand = \"{command}\"\nmetric = \"v: ([0-9]+)\"\nbetter = \"higher\"\n"
        );
        fs::write(&path, text).unwrap();
    };
    write("echo v: 10");
    compare(&["--suite", &path, "--save", &before, "--runs=5", "--seed=1"]).ok();
    write("echo v: 20");
    let ran = compare(&["--suite", &path, "--against", &before, "--runs=5", "--seed=2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("changed") && !ran.stdout.contains("+100"), "{}", ran.stdout);
    let how = "its command was \"echo v: 10\" and is \"echo v: 20\"";
    assert!(ran.stdout.contains(how), "{}", ran.stdout);
}

/// A folder with a dpkg-query that knows one file, as of a package with this version.
fn with_dpkg(folder: &tempfile::TempDir, version: &str) -> String {
    let script = format!(
        "#!/bin/sh\ncase $1 in\n-S) shift 2; for file; do case $file in */nodewise-tool) echo \"tools:amd64: $file\";; esac; done; exit 1;;\n\
         -W) echo 'tools:amd64 {version}';;\nesac\n"
    );
    fs::write(folder.path().join("script"), script).unwrap();
    install(&folder.path().join("script"), &folder.path().join("dpkg-query"), 0o755);
    fs::write(folder.path().join("tool"), "#!/bin/sh\necho v: 10\n").unwrap();
    install(&folder.path().join("tool"), &folder.path().join("nodewise-tool"), 0o755);
    format!("{}:/usr/bin:/bin", folder.path().display())
}

#[test]
fn other_versions_of_the_programs_stand_under_the_circumstances() {
    let folder = tempfile::tempdir().unwrap();
    let (path, before) = (path_of(&folder, "suite.toml"), path_of(&folder, "before.json"));
    let text = "title = \"t\"\n[[benchmark]]\nname = \"a\"\ncommand = \"nodewise-tool\"\nmetric = \"v: ([0-9]+)\"\n\
                better = \"higher\"\nneeds = { nodewise-tool = \"tools\" }\n";
    fs::write(&path, text).unwrap();
    let compare = |search: &str, words: &[&str]| {
        output(
            command([&["compare", "--suite", &path], words].concat())
                .env("PATH", search)
                .env("COLUMNS", "100"),
        )
    };
    let search = with_dpkg(&folder, "1.0-1");
    let list = compare(&search, &["--list"]).ok();
    assert!(list.contains("  installed\n") && list.contains("  tools 1.0-1\n"), "{list}");
    let list = compare(&search, &["--list", "--json"]).ok_json();
    assert_eq!(list["benchmarks"][0]["needs"][0]["version"], "tools 1.0-1");
    compare(&search, &["--save", &before, "--runs=2"]).ok();
    let search = with_dpkg(&folder, "2.0-1");
    let ran = compare(&search, &["--against", &before, "--runs=2", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let expected =
        serde_json::json!({ "what": "nodewise-tool", "before": "tools 1.0-1", "after": "tools 2.0-1" });
    let differences = ran.json()["differences"].as_array().unwrap().clone();
    assert!(differences.contains(&expected), "{differences:?}");
    // A program that no package has is reported as that.
    fs::remove_file(folder.path().join("dpkg-query")).unwrap();
    let search = format!("{}:/nowhere", folder.path().display());
    let ran = compare(&search, &["--against", &before, "--runs=1", "--json"]);
    let expected = serde_json::json!({ "what": "nodewise-tool", "before": "tools 1.0-1" });
    assert!(ran.json()["differences"].as_array().unwrap().contains(&expected), "{}", ran.stdout);
}

#[test]
fn what_is_saved_holds_every_sample_and_is_what_json_prints() {
    let folder = tempfile::tempdir().unwrap();
    let (suite, saved) = (suite(&folder, ""), path_of(&folder, "saved.json"));
    let ran = compare(&["--suite", &suite, "--save", &saved, "--runs=2", "--seed=9", "--json"]);
    assert_eq!(fs::read_to_string(&saved).unwrap(), ran.stdout);
    let session = ran.json();
    assert_eq!((&session["schema"], &session["end"]), (&"nodewise.suite/1".into(), &"completed".into()));
    assert_eq!((&session["rounds"], &session["seed"]), (&2.into(), &9.into()));
    assert!(session["conditions"]["kernel"].is_string() && session["settings"]["nodes"].is_string());
    for case in session["benchmarks"].as_array().unwrap() {
        let samples = case["arms"][0]["samples"].as_array().unwrap();
        assert_eq!(samples.len(), 4, "two rounds of two runs; the warm-up does not count");
        assert!(samples.iter().all(|sample| sample["value"] == 10.0), "{samples:?}");
    }
    let lines = compare(&["--suite", &suite, "--runs=1", "--csv"]).ok();
    assert_eq!(lines.lines().count(), 1 + 2 * 2, "{lines}");
    assert!(lines.starts_with("benchmark,threads,unit,placement,round,replicate,value,"), "{lines}");
}

#[test]
fn placements_are_compared_in_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let suite = suite(&folder, "");
    let words = ["--suite", &suite, "--placements=default,localalloc,huge=never", "--runs=2", "--json"];
    let ran = compare(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let tables = ran.json()["tables"].as_array().unwrap().clone();
    let subjects: Vec<&str> = tables.iter().map(|table| table["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects.len(), 2);
    assert!(tables.iter().all(|table| table["reference"] == "default" && table["paired"] == true));
    assert_eq!(tables[0]["rows"][0]["verdict"], "too_few_rounds");
}

#[test]
fn what_is_not_installed_and_what_fails_is_named_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let rest = "[[benchmark]]\nname = \"absent\"\ncommand = \"x\"\nneeds = { nodewise-absent = \"absent-package\" }\n\
                [[benchmark]]\nname = \"broken\"\ncommand = \"echo no space >&2; exit 3\"\n";
    let suite = suite(&folder, rest);
    let ran = compare(&["--suite", &suite, "--runs=1"]);
    assert_eq!(ran.code, Some(0));
    for words in [
        "nodewise: absent is left out: nodewise-absent not installed: apt-get install absent-package\n",
        "nodewise: broken is given up: ended with exit code 3: no space\n",
    ] {
        assert!(ran.stderr.contains(words), "{words} is not in\n{}", ran.stderr);
    }
    assert!(ran.stdout.contains("Not run\n  absent: nodewise-absent not installed"), "{}", ran.stdout);
    let only = compare(&["--suite", &suite, "--runs=1", "--benchmark=absent"]);
    assert_eq!(only.code, Some(3));
    assert!(only.stderr.ends_with(
        "nodewise: nothing of this suite can be run here: apt-get install absent-package, or --install\n"
    ));
    assert_eq!(compare(&["--suite", &suite, "--runs=1", "--benchmark=broken"]).code, Some(3));
    let list = output(command(["compare", "--suite", &suite, "--list"]).env("COLUMNS", "120")).ok();
    assert!(list.contains("apt-get install absent-package"), "{list}");
}

/// A suite that lacks a program, in a folder with an apt-get that writes down what it was asked for and then
/// does this.
struct Lacking(tempfile::TempDir);

impl Lacking {
    fn new(apt: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let needs = "needs = { nodewise-absent = \"absent-package\", sh = \"dash\" }";
        let text =
            format!("title = \"t\"\n[[benchmark]]\nname = \"a\"\ncommand = \"nodewise-absent\"\n{needs}\n");
        fs::write(folder.path().join("suite.toml"), text).unwrap();
        let script = format!(
            "#!/bin/sh\ncd {}\necho \"$@\" >> asked\necho from apt\n{apt}\n",
            folder.path().display()
        );
        fs::write(folder.path().join("script"), script).unwrap();
        install(&folder.path().join("script"), &folder.path().join("apt-get"), 0o755);
        Self(folder)
    }

    fn run(&self, mut command: std::process::Command, options: &[&str]) -> Ran {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", self.0.path().display());
        let suite = path_of(&self.0, "suite.toml");
        output(
            command
                .args(["compare", "--suite", &suite, "--runs=1", "--install"])
                .args(options)
                .env("PATH", path),
        )
    }

    /// Returns the requests to apt-get.
    fn asked(&self) -> String {
        fs::read_to_string(self.0.path().join("asked")).unwrap_or_default()
    }
}

/// An apt-get that installs the program.
const INSTALLS: &str = "printf '#!/bin/sh\\n' > new; install -m 755 new nodewise-absent";

#[test]
fn what_is_missing_is_installed_by_apt_get_and_then_run() {
    if !is_root() {
        return;
    }
    let lacking = Lacking::new(INSTALLS);
    let ran = lacking.run(command([""; 0]), &["--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.json()["benchmarks"][0]["name"], "a");
    assert!(
        ran.stderr.starts_with("nodewise: running apt-get install absent-package\nfrom apt\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        lacking.asked(),
        "install --yes --no-remove -o APT::Cmd::Pattern-Only=true -- absent-package\n"
    );
    // Now nothing is missing.
    assert_eq!(lacking.run(command([""; 0]), &[]).code, Some(0));
    assert_eq!(lacking.asked().lines().count(), 1);
}

#[test]
fn an_installation_that_fails_or_brings_nothing_ends_with_the_reason() {
    if !is_root() {
        return;
    }
    let check = |apt: &str, expected: &str| {
        let lacking = Lacking::new(apt);
        let ran = lacking.run(command([""; 0]), &[]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""));
        let rest = ran.stderr.strip_prefix("nodewise: running apt-get install absent-package\nfrom apt\n");
        assert_eq!(rest, Some(expected), "{}", ran.stderr);
    };
    check(
        "echo 'E: Unable to locate package absent-package' >&2; exit 100",
        "E: Unable to locate package absent-package\n\
         nodewise: --install: apt-get install absent-package has failed (apt-get update may be needed before)\n",
    );
    check(
        "exit 0",
        "nodewise: --install: apt-get was content, but the search path has no nodewise-absent of absent-package\n",
    );
    let lacking = Lacking::new("");
    fs::remove_file(lacking.0.path().join("apt-get")).unwrap();
    let suite = path_of(&lacking.0, "suite.toml");
    let mut without = command(["compare", "--install", "--suite", &suite]);
    let ran = output(without.env("PATH", lacking.0.path()));
    let end = "nodewise: --install: cannot run apt-get: no such file or directory\n";
    assert!(ran.code == Some(3) && ran.stderr.ends_with(end), "{}", ran.stderr);
}

#[test]
fn only_root_installs_and_others_are_told_what_would_be_run() {
    let lacking = Lacking::new(INSTALLS);
    let public = crate::sandbox::Public::new();
    let command = if is_root() { public.as_nobody(&[]) } else { command([""; 0]) };
    let ran = lacking.run(command, &[]);
    let message = "nodewise: --install needs root: it would run apt-get install absent-package\n";
    assert_eq!((ran.code, ran.stderr.as_str(), ran.stdout.as_str()), (Some(3), message, ""));
    assert_eq!(lacking.asked(), "");
}

#[test]
fn a_list_as_json_says_what_a_suite_holds_and_what_is_missing() {
    let lacking = Lacking::new("");
    let suite = path_of(&lacking.0, "suite.toml");
    let mut list = compare(&["--suite", &suite, "--list", "--json"]).json();
    // Only where dpkg knows it.
    let version = list["benchmarks"][0]["needs"][1].as_object_mut().unwrap().remove("version");
    assert!(version.is_none_or(|version| version.as_str().unwrap().starts_with("dash ")));
    let expected = serde_json::json!({
        "schema": "nodewise.benchmarks/1",
        "suite": "t",
        "install": "apt-get install absent-package",
        "benchmarks": [{
            "name": "a",
            "command": "nodewise-absent",
            "metric": { "kind": "wall", "unit": "s", "better": "lower" },
            "threads": ["all"],
            "memory_traffic": true,
            "time_limit_s": 600,
            "needs": [
                { "program": "nodewise-absent", "package": "absent-package", "there": false },
                { "program": "sh", "package": "dash", "there": true },
            ],
        }],
    });
    assert_eq!(list, expected);
    // What both say of a suite that comes with nodewise is the same.
    let list = compare(&["--suite=board", "--list", "--json"]).json();
    let text = output(command(["compare", "--suite=board", "--list"]).env("COLUMNS", "200")).ok();
    for benchmark in list["benchmarks"].as_array().unwrap() {
        let name = benchmark["name"].as_str().unwrap();
        // Its line, and those on which the cells of a narrow table go on.
        let mut lines = text.lines().skip_while(|line| !line.trim_start().starts_with(name));
        let first = lines.next().unwrap().to_owned();
        let line = lines
            .take_while(|line| line.starts_with("    "))
            .fold(first, |all, line| all + " " + line.trim());
        let about = benchmark["about"].as_str().unwrap();
        assert!(line.contains(about.split(' ').next().unwrap()), "{about} is not in {line}");
        assert_eq!(benchmark["threads"], serde_json::json!([1, "all"]));
        let is_missing = benchmark["needs"].as_array().unwrap().iter().any(|need| need["there"] == false);
        assert_eq!(line.contains("not installed"), is_missing, "{line}");
    }
    assert_eq!(compare(&["--suite=board", "--list", "--install"]).code, Some(2));
}

#[test]
fn the_tables_of_the_articles_come_out_of_their_files() {
    let files =
        |board: &str| [recorded(&format!("{board}-without.json")), recorded(&format!("{board}-with.json"))];
    let [before, after] = files("pi4");
    for columns in ["60", "80", "140"] {
        let ran =
            output(command(["compare", "--before", &before, "--after", &after]).env("COLUMNS", columns));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert_eq!(wider(&ran.stdout, columns.parse().unwrap()), [""; 0]);
        let mean = ran.stdout.lines().find(|line| line.contains("geometric mean")).unwrap();
        let words: Vec<&str> = mean.split_whitespace().collect();
        assert_eq!(words, ["geometric", "mean", "+1.96", "%", "+8.46", "%"]);
    }
    let [before, after] = files("pi5");
    let folder = tempfile::tempdir().unwrap();
    let picture = path_of(&folder, "pi5.svg");
    let ran = compare(&["--before", &before, "--after", &after, "--csv", "--svg", &picture]);
    for name in ["zstd", "xz"] {
        for threads in [1, 4] {
            let line = format!("after,before,{name},{threads},,,,,,,,,,missing\n");
            assert!(ran.stdout.contains(&line), "{line} is not in\n{}", ran.stdout);
        }
    }
    assert!(fs::read_to_string(picture).unwrap().contains("geometric mean"));
    let one = compare(&["--before", &before, "--after", &after, "--benchmark=zstd"]).ok();
    assert!(
        one.contains("zstd, 4 threads: the article's table lacks this row; its text says +164 %"),
        "{one}"
    );
    assert!(!one.contains("Geekbench"));
}

#[test]
fn the_suites_that_come_with_nodewise_are_listed_and_printed() {
    for (name, row) in [("board", "STREAM add"), ("server", "PostgreSQL")] {
        for columns in ["60", "80"] {
            let ran = output(command(["compare", "--suite", name, "--list"]).env("COLUMNS", columns));
            assert_eq!(wider(&ran.stdout, columns.parse().unwrap()), [""; 0]);
            assert!(ran.stdout.contains(row), "{}", ran.stdout);
        }
        let source = compare(&["--suite", name, "--source"]).ok();
        assert!(source.contains(&format!("title = \"{name}\"\n")), "{source}");
    }
}

#[test]
fn wrong_files_and_options_are_named_with_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let suite = suite(&folder, "typo = 1\n");
    let (board, foreign) = (recorded("pi4-with.json"), path_of(&folder, "foreign.json"));
    fs::write(&foreign, "{\"schema\": \"nodewise.tune/1\"}").unwrap();
    let right = path_of(&folder, "right.toml");
    fs::write(&right, "title = \"other\"\n[[benchmark]]\nname = \"a\"\ncommand = \"true\"\n").unwrap();
    let check = |words: &[&str], expected: &str| {
        let ran = compare(words);
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{expected} is not in {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{words:?}");
    };
    check(&["--suite", &suite], "line 9, column 1: unknown field `typo`, expected one of `name`, ");
    check(
        &["--suite=nosuch"],
        "cannot read \"nosuch\": no such file or directory (board and server come with nodewise)",
    );
    check(&["--suite=board", "--benchmark=xy"], "--benchmark: suite \"board\" has no benchmark \"xy\"");
    check(
        &["--suite", &right, "--against", &foreign],
        "its schema is \"nodewise.tune/1\": expected nodewise.suite/1",
    );
    check(&["--suite", &right, "--against", &board], "--against: its suite is \"board\": expected \"other\"");
    check(
        &["--suite", &right, "--against", "/nonexistent"],
        "--against: cannot read \"/nonexistent\": no such file",
    );
    check(&["--suite", &right, "--placements=default"], "expected two or more with commas between");
    check(&["--suite", &right, "--time=soon"], "--time: \"soon\" is not a time");
    check(&["--suite", &right, "--source"], "does not come with nodewise: board and server do");
    check(&["--before", &board], "needs --after FILE");
    check(&[], "needs --suite NAME|FILE");
    check(&["--suite=board", "--machine=2x(2c 1G)"], "--machine has no meaning with nodewise compare");
    check(&["--suite=board", "--runs=0"], "--runs: 0 is out of range: expected 1 to 200");
}

#[test]
fn ctrl_c_saves_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let saved = path_of(&folder, "saved.json");
    let suite = path_of(&folder, "suite.toml");
    // The benchmark itself presses Ctrl-C, in its fourth run: the second of the first measured round.
    let script = "echo x >> {inputs}/runs; test $(wc -l < {inputs}/runs) -lt 4 || kill -INT $NODEWISE_TEST_PARENT; echo 5";
    fs::write(
        &suite,
        format!("title = \"t\"\n[[benchmark]]\nname = \"a\"\ncommand = \"{script}\"\nmetric = \"([0-9]+)\"\nbetter = \"lower\"\n")
            .replace("{inputs}/", &format!("{}/", folder.path().display())),
    )
    .unwrap();
    let shell = format!(
        "NODEWISE_TEST_PARENT=$$; export NODEWISE_TEST_PARENT; exec {} compare --suite {suite} --save {saved} --runs=50",
        crate::nodewise::path()
    );
    let ran = crate::nodewise::shell(&shell);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let session: Value = serde_json::from_str(&fs::read_to_string(&saved).unwrap()).unwrap();
    assert_eq!(session["end"], "interrupted");
    let samples = session["benchmarks"][0]["arms"][0]["samples"].as_array().unwrap().len();
    assert!((1..=2).contains(&samples), "{session}");
    assert!(ran.stdout.contains("ended before its time"), "{}", ran.stdout);
}
