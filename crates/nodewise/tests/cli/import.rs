//! Outputs of other tools as machines, printed by those tools about captures.

use std::fs;

use serde_json::Value;

use crate::export::unpacked;
use crate::nodewise::{corpus, output, run, without_variables};
use crate::sandbox::has;

/// CPUs of each node, by node.
fn nodes(machine: &Value) -> Vec<(Value, Value)> {
    let nodes = machine["nodes"].as_array().cloned().unwrap_or_default();
    nodes.iter().map(|node| (node["id"].clone(), node["cpus"].clone())).collect()
}

#[test]
fn what_lscpu_prints_of_a_capture_is_the_capture() {
    if !has("lscpu", "util-linux") {
        return;
    }
    let mut compared = 0;
    for capture in corpus("captures") {
        let name = capture.display().to_string();
        let folder = tempfile::tempdir().unwrap();
        let root = unpacked(&capture, folder.path());
        let expected = nodes(&run(&["show", "--json", "--machine", &name]).ok_json());
        for form in [&[][..], &["-J"]] {
            let printed = output(without_variables("lscpu").arg("-s").arg(&root).args(form));
            // Old captures lack files that lscpu needs, and where it sees no node it lists none.
            let lists_nodes = printed.stdout.contains("NUMA node0 CPU(s)");
            if printed.code != Some(0) || !lists_nodes {
                continue;
            }
            let file = folder.path().join("lscpu.txt");
            fs::write(&file, &printed.stdout).unwrap();
            let read = run(&["show", "--json", "--machine", file.to_str().unwrap()]).ok_json();
            assert_eq!(nodes(&read), expected, "{name} {form:?}\n{}", printed.stdout);
            compared += 1;
        }
    }
    assert!(compared >= 10 || std::env::var_os("NODEWISE_CORPUS").is_some(), "{compared}");
}
