//! Policies as they are typed, and memory in huge pages.

use super::{SERVER, json, number, refused};
use crate::nodewise::run;

fn policy(typed: &str) -> serde_json::Value {
    json(&["explain", typed, "--size=4K", "--machine", SERVER])
}

#[test]
fn preferred_without_a_node_is_local() {
    assert_eq!(policy("preferred")["policy"], "local");
    refused(&["preferred=static"], 2, "prefer=static: Linux 6.12 answers EINVAL");
    refused(&["preferred-many"], 2, "preferred-many needs nodes");
}

#[test]
fn nodes_that_cannot_be_used_are_left_out_as_the_kernel_does() {
    let document = policy("bind:0,9");
    assert_eq!((&document["policy"], &document["left_out_nodes"]), (&"bind:0".into(), &"9".into()));
    let text = run(&["explain", "bind:0,9", "--size=4K", "--machine", SERVER]).ok();
    assert!(
        text.contains("  node 9 is not usable here: the kernel leaves it out without an error\n"),
        "{text}"
    );
    assert_eq!(policy("bind:0")["left_out_nodes"], serde_json::Value::Null);
    // A cpuset does the same, and nothing that is left is an error.
    let document = json(&["explain", "bind:0-1", "--allowed=1-3", "--size=4K", "--machine", SERVER]);
    assert_eq!((&document["policy"], &document["left_out_nodes"]), (&"bind:1".into(), &"0".into()));
    refused(&["bind:9"], 2, "bind:9: Linux 6.12 answers EINVAL: node 9 does not exist");
}

#[test]
fn the_words_of_numactl_are_understood() {
    assert_eq!(policy("membind:1")["policy"], "bind:1");
    assert_eq!(policy("localalloc")["policy"], "local");
    refused(&["membinds:1"], 2, "is not a memory policy");
    refused(&["bind:1", "--size=80"], 2, "--size: 80 has no unit: expected 80M or 80G, or 80B for bytes");
}

/// The shares of the steps, each as pages of a size by node.
fn steps(machine: &str, options: &[&str]) -> Vec<(u64, Vec<u64>)> {
    let words = [&["explain", "interleave:all", "--machine", machine], options].concat();
    let document = json(&words);
    let step = |step: &serde_json::Value| {
        let shares = step["shares"].as_array().unwrap();
        (number(step, "page_bytes") >> 12, shares.iter().map(|share| number(share, "pages")).collect())
    };
    document["steps"].as_array().unwrap().iter().map(step).collect()
}

#[test]
fn a_machine_that_gives_huge_pages_to_all_has_turns_of_whole_ones() {
    let always = "2x(4c 8G); thp=always";
    assert_eq!(steps(always, &["--size=8M"]), [(512, vec![2, 2])]);
    assert_eq!(steps("2x(4c 8G); thp=madvise", &["--size=8M"]), [(1, vec![1024, 1024])]);
    assert_eq!(steps(always, &["--size=8M", "--thp=never"]), [(1, vec![1024, 1024])]);
    // Before the first whole one, and behind the last, pages are small.
    let parts = steps(always, &["--size=8M", "--first-page=100"]);
    assert_eq!(parts, [(1, vec![206, 206]), (512, vec![1, 2]), (1, vec![50, 50])]);
    assert_eq!(steps(always, &["--size=1M"]), [(1, vec![128, 128])]);
    // Files in memory and the page cache follow other settings.
    assert_eq!(steps(always, &["--size=8M", "--kind=shared"]), [(1, vec![1024, 1024])]);
    let text = run(&["explain", "interleave:all", "--size=8M", "--machine", always]).ok();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(
        "in huge pages of 2 MiB where they fit: transparent_hugepage is always; a turn is a whole one"
    ));
}

#[test]
fn only_advised_memory_has_huge_pages_from_other_nodes() {
    let of = |when: &str| {
        let words = ["explain", "local", "--machine=2x(1c 1G)", "--size=1G", "--cpu-node=0"];
        let document = json(&[&words[..], &[when]].concat());
        let huge = document["steps"].as_array().unwrap().iter().filter(|step| step["page_bytes"] != 4096);
        huge.flat_map(|step| step["shares"].as_array().unwrap().clone()).any(|share| share["node"] == 1)
    };
    assert_eq!((of("--thp"), of("--thp=always")), (true, false));
}
