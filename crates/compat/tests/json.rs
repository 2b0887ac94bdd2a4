//! `--json` of the tools that do something: what they did on this machine.

use std::ffi::OsString;
use std::process::Command;

use nodewise_compat::{Call, Tool, run};
use nodewise_source::tree::Tree;
use nodewise_syscall::pages::page_size;
use serde_json::{Value, json};

/// Runs a tool on this machine.
fn answer(tool: Tool, words: &[&str]) -> (u8, String, String) {
    let tree = Tree::live();
    let args = words.iter().map(OsString::from).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = run(&Call::new(tool, args, &tree), &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("what is written is text");
    (status, text(out), text(err))
}

#[track_caller]
fn document(tool: Tool, words: &[&str]) -> Value {
    let (status, out, err) = answer(tool, words);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    serde_json::from_str(&out).expect("nothing but JSON is on standard output")
}

/// The first node of this machine that may give memory.
fn node() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let list = status.lines().find_map(|line| line.strip_prefix("Mems_allowed_list:"));
    let digits: String = list.unwrap_or("0").trim().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

#[test]
fn memhog_says_where_its_memory_is() {
    let node = node();
    let hog = document(Tool::Memhog, &["-r2", "--json", "1m", "membind", &node.to_string()]);
    let page = page_size() as u64;
    assert_eq!(
        hog,
        json!({
            "schema": "nodewise.memhog/1", "bytes": 1 << 20, "passes": 2, "policy": "bind", "nodes": [node],
            "pages_by_node": [{"node": node, "pages": (1 << 20) / page}],
        })
    );
}

#[test]
fn migspeed_says_how_fast_and_where_the_pages_are() {
    let node = node();
    let word = node.to_string();
    let moved = document(Tool::Migspeed, &["-p", "10", "--json", &word, &word]);
    let page = page_size() as u64;
    assert_eq!((&moved["schema"], &moved["bytes"]), (&json!("nodewise.migspeed/1"), &json!(10 * page)));
    assert_eq!(moved["pages_by_node"], json!([{"node": node, "pages": 10}]));
    assert!(moved["bytes_per_second"].as_f64().is_some_and(|speed| speed > 0.0), "{moved}");
}

#[test]
fn migratepages_says_how_many_pages_stayed() {
    let node = node();
    let word = node.to_string();
    let mut sleeper = Command::new("sleep").arg("600").spawn().expect("sleep is there");
    let pid = sleeper.id().to_string();
    let moved = document(Tool::Migratepages, &["--json", &pid, &word, &word]);
    sleeper.kill().and_then(|()| sleeper.wait()).expect("it is ours");
    assert_eq!(moved["schema"], "nodewise.migratepages/1");
    assert_eq!((&moved["from"], &moved["to"]), (&json!([node]), &json!([node])));
    assert_eq!(moved["pid"].to_string(), pid);
    assert_eq!(moved["pages_not_moved"], 0);
}

#[test]
fn what_went_wrong_is_told_as_without_json() {
    let (status, out, err) = answer(Tool::Migratepages, &["--json", "4294967295", "0", "0"]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.starts_with("migrate_pages: "), "{err}");
}
