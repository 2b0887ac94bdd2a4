//! `nodewise top` in a terminal that tmux plays, and without one.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::nodewise::{command, path, run, without_variables};
use crate::sandbox::has;

/// A terminal of tmux's, gone with the test.
struct Tmux {
    folder: tempfile::TempDir,
}

impl Tmux {
    /// A terminal of this size in which a shell runs a line; `$nodewise` is the command. `None` without tmux.
    fn start(width: u32, height: u32, line: &str) -> Option<Self> {
        if !has("tmux", "tmux") {
            return None;
        }
        let tmux = Self { folder: tempfile::tempdir().unwrap() };
        fs::write(tmux.folder.path().join("conf"), "set -g status off\nset -g default-shell /bin/sh\n")
            .unwrap();
        let (width, height) = (width.to_string(), height.to_string());
        let line = format!("nodewise={}; {line}; echo code $?; read line", path());
        tmux.ask(&["new-session", "-d", "-x", &width, "-y", &height, &line]);
        Some(tmux)
    }

    fn ask(&self, words: &[&str]) -> Output {
        let mut tmux = without_variables("tmux");
        tmux.env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        tmux.arg("-S").arg(self.folder.path().join("socket")).arg("-f").arg(self.folder.path().join("conf"));
        let output = tmux.args(words).current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "tmux {words:?}: {output:?}");
        output
    }

    fn keys(&self, keys: &[&str]) {
        self.ask(&[&["send-keys"], keys].concat());
    }

    fn resize(&self, width: u32, height: u32) {
        self.ask(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    fn seen(&self) -> String {
        String::from_utf8(self.ask(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// Waits until the screen is as it should be, and returns it.
    fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let seen = self.seen();
            if is_so(&seen) {
                return seen;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "no {what} within a minute:\n{seen}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the screen is as it should be, and is no longer being drawn.
    fn settled(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let mut alike = 0;
        let mut last = String::new();
        let began = Instant::now();
        while alike < 8 {
            let seen = self.seen();
            alike = if seen == last && is_so(&seen) { alike + 1 } else { 0 };
            assert!(began.elapsed() < Duration::from_secs(60), "no {what} within a minute:\n{seen}");
            last = seen;
            thread::sleep(Duration::from_millis(50));
        }
        last
    }

    fn shows(&self, text: &str) -> String {
        self.until(text, |seen| seen.contains(text))
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.folder.path().join("socket")).arg("kill-server");
        let _ = tmux.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

#[test]
fn screens_follow_keys_and_sizes_and_the_terminal_is_given_back() {
    let Some(tmux) = Tmux::start(80, 24, "echo before; $nodewise top 500ms") else { return };
    tmux.shows("[2 processes]");
    tmux.shows(" PID name");
    for (key, shown) in [
        ("1", "[1 nodes]"),
        ("3", "[3 process]"),
        ("5", "[5 devices]"),
        ("6", "[6 services]"),
        ("?", "[? help]"),
    ] {
        tmux.keys(&[key]);
        tmux.shows(shown);
    }
    tmux.keys(&["Escape"]);
    tmux.keys(&["2"]);
    tmux.keys(&["/", "no-such-process", "Enter"]);
    tmux.shows("no process matches the filter");
    tmux.keys(&["\\\\"]);
    tmux.until("process", |seen| seen.lines().any(|line| line.starts_with('>')));
    tmux.resize(60, 15);
    let small = tmux.until("screen of 15 lines", |seen| {
        seen.lines().nth(14).is_some_and(|line| line.starts_with("q quit"))
    });
    assert_eq!(small.lines().count(), 15, "{small}");
    tmux.resize(40, 9);
    tmux.shows("terminal too small: 40x9, needs 60x15");
    tmux.resize(160, 50);
    tmux.shows("control group");
    tmux.keys(&["e", "saved.txt", "Enter"]);
    tmux.shows("wrote saved.txt");
    let saved = fs::read_to_string(tmux.folder.path().join("saved.txt")).unwrap();
    assert!(saved.starts_with("nodewise top  ") && saved.lines().count() == 50, "{saved}");
    tmux.keys(&["e", "saved.txt", "Enter"]);
    tmux.shows("saved.txt already exists: choose another name");
    assert_eq!(fs::read_to_string(tmux.folder.path().join("saved.txt")).unwrap(), saved);
    tmux.keys(&["q"]);
    let after = tmux.shows("code 0");
    assert!(after.contains("before") && !after.contains("PID"), "the text before is back: {after}");
}

#[test]
fn a_view_is_suspended_and_resumed() {
    let Some(tmux) = Tmux::start(80, 24, "exec sh -i") else { return };
    tmux.keys(&[&format!("{} top", path()), "Enter"]);
    tmux.shows("[2 processes]");
    tmux.keys(&["C-z"]);
    let stopped = tmux.shows("Stopped");
    assert!(!stopped.contains("[2 processes]"), "{stopped}");
    tmux.keys(&["stty -a", "Enter"]);
    let settings = tmux.shows("icanon");
    assert!(!settings.contains("-icanon") && !settings.contains("-echo "), "{settings}");
    tmux.keys(&["fg", "Enter"]);
    tmux.shows("[2 processes]");
    tmux.keys(&["1"]);
    tmux.shows("[1 nodes]");
    tmux.keys(&["q"]);
    tmux.until("shell", |seen| !seen.contains("[1 nodes]"));
}

#[test]
fn signals_give_the_terminal_back() {
    for signal in ["TERM", "HUP", "INT"] {
        let line = format!(
            "timeout --foreground --preserve-status -s {signal} 3 $nodewise top; echo code $?; stty -a"
        );
        let Some(tmux) = Tmux::start(80, 24, &line) else { return };
        tmux.shows("[2 processes]");
        let after = tmux.shows("icanon");
        assert!(after.contains("code 0"), "{signal}: {after}");
        assert!(!after.contains("-icanon") && !after.contains("[2 processes]"), "{signal}: {after}");
    }
}

#[test]
fn a_view_ends_with_its_terminal() {
    // The shell survives the end of its terminal; the view has the default action, or ignores the signal, too.
    for (trap, codes) in [("trap : HUP", &["0", "3"][..]), ("trap '' HUP", &["3"])] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("code");
        let line = format!("{trap}; $nodewise top; echo $? > {}", file.display());
        let Some(tmux) = Tmux::start(80, 24, &line) else { return };
        tmux.shows("[2 processes]");
        tmux.keys(&["p"]);
        tmux.shows("PAUSED");
        drop(tmux);
        let began = Instant::now();
        let code = loop {
            let code = fs::read_to_string(&file).unwrap_or_default();
            if code.ends_with('\n') {
                break code;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{trap}: it goes on without its terminal");
            thread::sleep(Duration::from_millis(20));
        };
        // 0 by the signal, 3 by the first look at a terminal that is gone: whichever is seen first.
        assert!(codes.contains(&code.trim()), "{trap}: exit status {code}");
    }
}

/// A recording that `kill -9` has ended, with half a block at its end.
fn killed(file: &Path) {
    let words = ["record", "-o", file.to_str().unwrap(), "--every", "100ms"];
    let mut child = command(words).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    let length = || fs::metadata(file).map_or(0, |file| file.len());
    let wait = |least: u64| {
        while length() <= least {
            assert!(began.elapsed() < Duration::from_secs(120), "no block within two minutes");
            thread::sleep(Duration::from_millis(50));
        }
        length()
    };
    // The header, then a block every ten seconds.
    let header = wait(0);
    wait(header);
    child.kill().unwrap();
    child.wait().unwrap();
    let bytes = fs::read(file).unwrap();
    fs::write(file, [&bytes[..], &bytes[bytes.len() - 30..]].concat()).unwrap();
}

#[test]
fn a_recording_that_was_killed_is_replayed_the_same_each_time() {
    if !has("tmux", "tmux") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.nwr");
    killed(&file);
    let replay = || {
        let line = format!("$nodewise top --color never --from {} --at 2s", file.display());
        let tmux = Tmux::start(200, 60, &line).unwrap();
        let begin = tmux.settled("screen", |seen| seen.contains("\nq quit"));
        tmux.keys(&["]"]);
        let step = tmux.settled("step", |seen| *seen != begin);
        tmux.keys(&["["]);
        tmux.until(&format!("way back to\n{begin}\nbut"), |seen| seen == begin);
        tmux.keys(&["g", "0", "Enter"]);
        let first = tmux.settled("first sample", |seen| seen.contains("0:00:00 of "));
        tmux.keys(&["4"]);
        tmux.shows("top shows no mappings of a recording");
        tmux.keys(&["2"]);
        tmux.keys(&["G"]);
        let last = tmux.settled("last sample", |seen| seen.contains("its end is missing"));
        tmux.keys(&["p"]);
        tmux.shows("end of the recording");
        tmux.keys(&["q"]);
        tmux.shows("code 0");
        [begin, step, first, last]
    };
    let [once, again] = thread::scope(|scope| {
        [scope.spawn(replay), scope.spawn(replay)].map(|replay| replay.join().unwrap())
    });
    for (one, other) in once.iter().zip(again) {
        assert!(*one == other, "the same place:\n{one}\n{other}");
    }
    // Without a terminal it is the text of stat.
    let name = file.to_str().unwrap();
    for at in [&["--at", "2s"][..], &["--at", "0"], &["--at", "0ms"], &[]] {
        let text = |verb| {
            let ran = run(&[&[verb, "--from", name], at].concat());
            (ran.code, ran.stdout, ran.stderr)
        };
        assert_eq!(text("top"), text("stat"));
    }
    let line = format!("TERM=dumb $nodewise top --from {name}");
    let tmux = Tmux::start(80, 60, &line).unwrap();
    assert!(tmux.shows("code 0").contains("Nodes  in "), "a terminal that cannot place text");
}

#[test]
fn wrong_words_are_refused_with_what_would_be_right() {
    let refused = |words: &[&str], message: &str, code: i32| {
        let ran = run(&[&["top"], words].concat());
        assert_eq!(ran.code, Some(code), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{words:?}: {}", ran.stderr);
    };
    refused(&["10ms"], "expected 200ms to 299s", 2);
    refused(&["x"], "is not a time", 2);
    refused(&["--at", "3s"], "--from", 2);
    refused(&["--machine", "2x(1c 1G)"], "--from=FILE replays a recording", 2);
    refused(&["--from", "Cargo.toml"], "it is not a recording", 3);
}
