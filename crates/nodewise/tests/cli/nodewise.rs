//! Running the built command, and reading its output.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nodewise_machine::{CpuId, Machine, NodeId};
use serde_json::Value;

/// Variables of whoever runs the tests that would show in what is printed.
const VARIABLES: [&str; 6] = ["COLUMNS", "NO_COLOR", "CLICOLOR_FORCE", "TERM", "GLIBC_TUNABLES", "TMPDIR"];

/// Begins a script that nodewise runs and that signals it: between the two is a guard, whose parent
/// this puts into `$nodewise`.
pub const KNOW_NODEWISE: &str = "read -r _ _ _ nodewise _ < /proc/$PPID/stat";

/// Result of a command.
pub struct Ran {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("nodewise prints text");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ran {
    /// The standard output of a command that ended well.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// The standard output as JSON, however the command ended.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }

    /// The standard output of a command that ended well, as JSON.
    #[track_caller]
    pub fn ok_json(self) -> Value {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self.json()
    }
}

/// A folder with these files: a capture, or the root of an image.
pub fn folder_of(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// The path of the built command.
pub fn path() -> &'static str {
    env!("CARGO_BIN_EXE_nodewise")
}

/// nodewise with these arguments, away from the terminal and the variables of whoever runs the tests.
pub fn command<T: AsRef<OsStr>>(arguments: impl IntoIterator<Item = T>) -> Command {
    let mut command = without_variables(path());
    command.args(arguments);
    command
}

/// A program without the variables that would show in what nodewise prints.
pub fn without_variables(program: &str) -> Command {
    let mut command = Command::new(program);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    // Folders of PATH that this user may not look into would show in messages on programs.
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    command.stdin(Stdio::null());
    command
}

/// Runs nodewise with these arguments.
pub fn run(arguments: &[&str]) -> Ran {
    output(&mut command(arguments))
}

/// Runs a verb with words that are wrong usage, and looks for what its message has to say.
pub fn wrong(verb: &str, words: &[&str], expected: &str) {
    let ran = run(&[&[verb], words].concat());
    assert_eq!(ran.code, Some(2), "{verb} {words:?}: {}", ran.stderr);
    assert!(ran.stderr.contains(expected), "{verb} {words:?}: {}", ran.stderr);
}

/// Runs a shell script in which `$nodewise` is the built command.
pub fn shell(script: &str) -> Ran {
    let mut command = without_variables("sh");
    output(command.arg("-c").arg(script).env("nodewise", path()))
}

/// Runs a command to its end.
pub fn output(command: &mut Command) -> Ran {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}")).into()
}

/// The machine that runs the tests, as nodewise sees it.
pub fn live() -> Machine {
    let json = run(&["show", "--json"]).ok();
    nodewise_source::machine_file::from_json(&json).expect("show --json prints a machine file")
}

/// A node with memory that this process may use.
pub fn a_memory_node() -> NodeId {
    let machine = live();
    let allowed = machine.allowed_nodes.clone().unwrap_or_else(|| machine.node_ids());
    machine.memory_nodes().intersection(&allowed).first().expect("the tests run in some memory")
}

/// How many nodes have memory that this process may use.
pub fn memory_nodes() -> usize {
    let machine = live();
    let allowed = machine.allowed_nodes.clone().unwrap_or_else(|| machine.node_ids());
    machine.memory_nodes().intersection(&allowed).len()
}

/// A CPU that this process may use.
pub fn a_cpu() -> CpuId {
    let machine = live();
    let allowed = machine.allowed_cpus.clone().unwrap_or_else(|| machine.online_cpus());
    machine.online_cpus().intersection(&allowed).first().expect("the tests run on some CPU")
}

/// Compares a text with the one that a person accepted.
#[track_caller]
pub fn golden(name: &str, text: String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/golden").join(format!("{name}.txt"));
    let expected = snapbox::Data::read_from(&path, None).raw();
    snapbox::Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV).eq(text, expected);
}

/// Lines that are wider than a terminal of this many columns.
pub fn wider(text: &str, columns: usize) -> Vec<&str> {
    text.lines().filter(|line| line.chars().count() > columns).collect()
}

/// Says why a test cannot run, in one line; where a machine waits for the result (`CI=true`), the
/// test fails instead.
pub fn missing(why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "{why}");
    eprintln!("skipped: {why}");
}

/// Lists the records of real machines in a folder of the corpus: `captures`. The corpus is `data`, or the
/// folder that `NODEWISE_CORPUS` names.
pub fn corpus(folder: &str) -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    let folder = std::env::var_os("NODEWISE_CORPUS").map_or(data, PathBuf::from).join(folder);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    paths.sort_unstable();
    paths
}
