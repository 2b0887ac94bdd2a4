//! On a terminal: width, colour, progress. `script` of util-linux gives a command a terminal.

use std::fs::File;
use std::process::{Command, Stdio};

use crate::nodewise::{a_memory_node, path, wider, without_variables};

/// Returns what a shell line writes to a terminal of this many columns, without carriage returns at line
/// ends.
fn on_terminal(columns: u32, variables: &str, line: &str) -> String {
    typed_on_terminal(columns, variables, line, Stdio::null())
}

/// As [`on_terminal`], with what is typed there.
fn typed_on_terminal(columns: u32, variables: &str, line: &str, keys: Stdio) -> String {
    let line = format!("stty cols {columns} rows 24; export {variables}; nodewise={}; {line}", path());
    let mut command = without_variables("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).stdin(keys);
    let output =
        command.env("SHELL", "/bin/sh").env("TERM", "xterm").output().expect("util-linux has script");
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).expect("nodewise prints text").replace("\r\n", "\n")
}

/// A text as it looks on the terminal: without colour, and without what was drawn over.
fn seen(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        rest = rest.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.lines()
        .map(|line| line.rsplit('\r').next().unwrap_or_default())
        .fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn a_terminal_gives_the_width_and_takes_colour() {
    for columns in [60, 100] {
        let text =
            on_terminal(columns, "A=1", "$nodewise show --machine '2x(2x(24c 126G l3=32M/6c)); dist=11,20'");
        assert!(text.contains("\u{1b}[1mNodes\u{1b}[0m"), "{text}");
        assert_eq!(wider(&seen(&text), columns as usize), [""; 0], "{columns}");
        let plain = format!(
            "COLUMNS={columns} $nodewise show --machine '2x(2x(24c 126G l3=32M/6c)); dist=11,20' | cat"
        );
        assert_eq!(seen(&text), on_terminal(80, "A=1", &plain), "colour only repeats what words say");
    }
}

#[test]
fn a_terminal_can_refuse_colour() {
    for (variables, option) in [("NO_COLOR=1", ""), ("TERM=dumb", ""), ("A=1", "--color=never")] {
        let text = on_terminal(80, variables, &format!("$nodewise show {option} --machine '2x(1c 1G)'"));
        assert!(!text.contains('\u{1b}'), "{variables} {option}: {text}");
    }
}

#[test]
fn colour_goes_where_the_terminal_is() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let line = format!("$nodewise run --explain -- true 2> {}", log.display());
    on_terminal(80, "A=1", &line);
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.starts_with("Memory  default\n"), "{text:?}");
    let text = on_terminal(60, "A=1", "$nodewise run --explain -- true > /dev/null");
    assert!(text.contains("\u{1b}[1mMemory"), "{text:?}");
    assert_eq!(wider(&seen(&text), 60), [""; 0]);
}

#[test]
fn tune_draws_progress_on_a_terminal_and_takes_it_away() {
    let node = a_memory_node();
    let line = format!("$nodewise tune --seed 1 --runs 2 --placement membind={node} -- true");
    let text = on_terminal(60, "A=1", &line);
    for drawn in ["warm-up 1 of 3: default, 0s", "round 1 of at most 2: ", "round 2 of at most 2: ", " left"]
    {
        assert!(text.contains(drawn), "{drawn} is not in {text:?}");
    }
    let seen = seen(&text);
    assert!(!seen.contains("round 1 of "), "{seen}");
    let result = seen.split_once("Ctrl-C ends it with the results so far\n").expect("the first line").1;
    assert!(result.starts_with("too few rounds to say which is best"), "{result}");
    assert_eq!(wider(result, 60), [""; 0]);
}

#[test]
fn a_program_that_opens_its_terminal_finds_none_and_is_not_waited_for_for_ever() {
    for program in ["stty -echo < /dev/tty", "read line < /dev/tty", "echo > /dev/tty"] {
        let line =
            format!("$nodewise tune --runs 1 --placement huge=never -- sh -c '{program}'; echo code $?");
        let text = seen(&on_terminal(80, "A=1", &line)).replace("\n  ", " ");
        assert!(text.ends_with("code 3\n"), "{text}");
        assert!(text.contains("the program fails without any placement too: ended with exit code"), "{text}");
        assert!(text.contains("/dev/tty: No such device or address"), "{text}");
    }
}

#[test]
fn the_keys_for_an_interrupt_end_a_study_and_not_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    assert!(Command::new("mkfifo").arg(&keys).status().unwrap().success());
    // Open for both, so that no one waits for the other end.
    let end = File::options().read(true).write(true).open(&keys).unwrap();
    // Once it runs, the program types Ctrl-C; it would end with 9 if the signal reached it as well.
    let program = format!("trap 'exit 9' INT; printf '\\003' > {}; sleep 100 & wait", keys.display());
    let line = format!("exec $nodewise tune --placement localalloc --json -- sh -c \"{program}\"");
    let text = typed_on_terminal(80, "A=1", &line, end.into());
    let json = &text[text.find("{\n").expect("a study is printed")..];
    let study: serde_json::Value = serde_json::from_str(&seen(json)).unwrap();
    assert_eq!(study["end"], "interrupted");
    assert_eq!(study["samples"][0]["ending"], "interrupted");
}
